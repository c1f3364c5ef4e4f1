"""Word lists: stop words, words of every tracker, names that look like code, headings of issue templates."""

from __future__ import annotations

_STOP_WORDS = """
about above after again against all also although always am an and another any anybody anyone anything anyway are
aren around as at away back be because been before being below between both but by can cannot could couldn did didn
do does doesn doing don done down during each eg either else etc even ever every everything few for from further get
gets getting give given go goes going gone got had hadn has hasn have haven having he hello her here hers hi him his
how however https http ie if in indeed instead into is isn it its itself just least less let like ll lot made make
makes making many may maybe me might more most much must my myself need needs neither never no nor not nothing now
of off often ok okay on once one only onto or other others otherwise ought our ours out over own per perhaps please
pretty probably quite rather re really same say says see seem seems several shall she should shouldn since so some
somehow someone something sometimes soon still such than thank thanks that the their theirs them then there
therefore these they thing things think this those though through thus to together too toward under unless until up
upon us use used uses using ve very via want wants was wasn way we well went were weren what whatever when whenever
where whether which while who whole whom whose why will with within without won would wouldn www yes yet you your
yours yourself
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that say nothing about a subject, and what a tokeniser leaves of contractions and of addresses."""

_COMMON_WORDS = """
able actually add added bug case cases change changes code comment correct correctly current currently different
error errors example expect expected fail failed fails feature file files find first fix fixed found good great
happen happens help idea important issue issues kind know last line lines long look looks message new nice old open
output point possible problem problems program properly question reason related report result right run running
second set simple sort start sure take test tests time times try trying two version work working works wrong
"""
COMMON_WORDS = frozenset(_COMMON_WORDS.split())
"""Words that every tracker is full of: they stay searchable, but do not serve as keywords."""

_PRODUCT_NAMES = """
AppImage DevTools DockerHub FreeBSD GitHub GitLab GraphQL IntelliJ JavaScript LaTeX LibreSSL LinkedIn MacBook MacOS
MacPorts MariaDB MongoDB MySQL NetBSD NixOS OpenBSD OpenGL OpenSSL PostgreSQL PowerPC PowerShell PyCharm PyPI
StackOverflow TypeScript VSCode WebKit WebSocket YouTube iOS iPad iPhone macOS node.js vue.js next.js
"""
PRODUCT_NAMES = frozenset(_PRODUCT_NAMES.split())
"""Names that are written like identifiers or files and are neither."""

_TEMPLATE_HEADINGS = """
actual behavior|actual behaviour|actual outcome|actual result|actual results|additional context
additional info|additional information|additional notes|alternatives|alternatives considered|any other comments
anything else|are you willing to submit a pr|are you willing to submit pr|backtrace|browser|browser version|bug
bug description|bug report|bug summary|checklist|code|code of conduct|code sample|contact details
current behavior|current behaviour|current result|debug log|debug logs|describe alternatives you've considered
describe the bug|describe the feature|describe the issue|describe the problem|describe the solution you'd like
description|description of the issue|desktop|detailed description|device|environment|environment details
environment information|error|error log|error logs|error message|example|example code|expected
expected behavior|expected behaviour|expected outcome|expected result|expected results|feature|feature description
feature request|how are you affected|how can we reproduce|how did you install|how did you obtain it|how to reproduce
i expected to see this happen|instead, this happened|is there an existing issue for this
is your feature request related to a problem|issue|issue description|issue summary|link to reproduction
log output|logs|meta|minimal example|minimal reproducible example|minimal reproduction|minimal test case|motivation
name and version|observed behavior|observed behaviour|operating system|operating system and version|os|os version
other information|output|package version|platform|possible fix|possible solution|pre-submission checks|prerequisites
problem|problem description|proposal|proposed solution|relevant log output|reproducer|reproducible example
reproducible test case|reproduction|reproduction link|reproduction steps|result|screenshot|screenshots
screenshots or videos|severity|smartphone|stack trace|stacktrace|steps|steps to reproduce
steps to reproduce the behavior|steps to reproduce the behaviour|steps to reproduce the issue|str|suggested fix
suggested solution|summary|system info|system information|test case|testcase|to reproduce|traceback|use case
validations|version|version information|versions|want to work on this issue|what did you expect to happen
what did you expect to see|what did you do|what did you see instead|what happened|what is the current behavior
what is the expected behavior|what version are you using|what went wrong|workaround|your environment
"""
TEMPLATE_HEADINGS = frozenset(_TEMPLATE_HEADINGS.strip().replace("\n", "|").split("|"))
"""Headings and labels of issue templates, in lower case and without the punctuation around them."""
