"""A hostile template against the sandbox: it reaches nothing, and nothing takes long."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bot.comment.template_sandbox import Sandbox, TemplateFault
from tests.comment.test_templates import BASE, SHIPPED_TEXT, render
from tests.examples import share

ROOT = Path(__file__).parents[2]
MEGABYTE = 2**20

WALKS = [
    "self.__class__", "self._TemplateReference__context", "self.marker()", "self['__class__']", "self|attr('blocks')",
    "super.__self__", "super().__class__", "super(1)", "super()()", "super", "loop", "loop.__init__", "caller()",
    "marker.__init__.__globals__", "marker|attr('__class__')", "marker|attr('\\x5f\\x5fclass\\x5f\\x5f')", "varargs",
    "marker['\\x5f\\x5fclass\\x5f\\x5f']", "marker['__cla' 'ss__']", "marker['__cla' ~ 'ss__']", "marker['format']",
    "marker.format(marker)", "'{0.__class__}'.format(marker)", "'{0.__class__}'.format_map(words)",
    "'{0}'.format.__self__", "'%s' % words", "'%c' % 64", "'%*d' % (999999999, 1)", "marker % marker",
    "words.__class__", "words.get('why')", "words.items()", "words|dictsort", "words|items", "words.keys", "words|list",
    "words|pprint", "words|tojson", "words|xmlattr", "words|string", "seen_before.append(1)", "seen_before|random",
    "seen_before|map('upper')|first", "seen_before|map(attribute='__class__')|first", "seen_before|groupby('link')",
    "seen_before|selectattr('link')|first", "seen_before|sort|first", "seen_before|sum", "seen_before|batch(1)",
    "seen_before|slice(9)", "seen_before|reject|list", "seen_before[0].__class__", "(seen_before|first).__class__",
    "range(3)", "range.__init__", "dict(a=1)", "dict.__bases__", "lipsum(n=9999)", "lipsum.__globals__['os']",
    "cycler('a').next()", "cycler.__init__.__globals__", "joiner(',')()", "joiner.__init__", "namespace(a=1).a",
    "namespace.__class__", "config", "request", "url_for", "get_flashed_messages", "_", "gettext('x')", "environment",
    "__builtins__", "__import__('os')", "open('/etc/passwd')", "eval('1')", "context", "resolve('x')", "exported_vars",
    "marker.join", "[].__class__", "[1,2].__len__()", "{}.__class__", "{'a': 1}", "()|attr('__class__')", "(1).real",
    "1.0.__class__", "true.__class__", "none.__class__", "''.join(['a'])", "''.__class__.__mro__[1].__subclasses__()",
    "marker|replace('a','b')", "marker|upper", "marker|safe", "marker|e", "marker|striptags", "marker|urlize",
    "marker|wordwrap(1)", "marker|truncate(1)", "marker|center(10**9)", "marker|center(1000000000)",
    "marker|indent(1000000000)", "marker|indent('x')", "marker|filesizeformat", "marker|wordcount", "marker|reverse",
    "marker|list", "marker|int", "marker|format(1)", "'%0999999999d'|format(1)", "marker|paid loop",
    "marker|toll(-999)",
    "marker is sameas marker", "marker is callable", "marker is filter", "marker is in words", "marker in words",
    "'x' * 10**9", "'x' * 1000000000", "[1] * 1000000000", "'x' ~ 'y'", "10**9**9", "2**99999999", "1 / 3", "1e999",
    "9999999999 * 9999999999", "-1 * -1 - -9999999999", "1 << 99", "a := 1", "lambda: 1", "await marker",
    "marker.a.b.c", "words['nobody']", "mentioned[99]", "mentioned[-99]", "mentioned[1:]", "mentioned[marker]",
    "[[1]]", "[marker]", "[marker, marker]|join", "[1, 2]|join", "mentioned|join", "words.mentioned|join('x')",
    "words.mentioned|first", "words.mentioned|length", "words|length", "1|join", "nobody|first", "nobody|join",
]  # fmt: skip
"""Expressions that a template may not use, or that fail: each as ``{{ ... }}``, in a condition, a loop and a block."""

STATEMENTS = [
    "{% include 'base.md.j2' %}", "{% include 'shipped/base.md.j2' %}", "{% include 'words.yml' %}",
    "{% include ['a', 'base.md.j2'] %}", "{% include marker ignore missing %}", "{% include '/proc/self/environ' %}",
    "{% import 'base.md.j2' as a with context %}", "{% from 'base.md.j2' import a with context %}",
    "{% extends '../words.yml' %}", "{% extends '/proc/self/environ' %}", "{% extends 'words.yml' %}",
    "{% extends none %}", "{% extends ['base.md.j2'] %}", "{% extends 'base.md.j2' if 1 %}", "{% extends '' %}",
    "{% extends 'shipped/../words.yml' %}", "{% extends 'BASE.MD.J2' %}", "{% extends 'base.md.j2\\0' %}",
    "{% macro a() %}{% endmacro %}", "{% call a() %}{% endcall %}", "{% set a.b = 1 %}", "{% set marker.x = 1 %}",
    "{% set a, b = 1, 2, 3 %}", "{% set a %}{{ a }}{% endset %}", "{% with a = 1 %}{{ a }}{% endwith %}",
    "{% filter center(10**9) %}x{% endfilter %}", "{% autoescape false %}x{% endautoescape %}", "{% do 1 %}",
    "{% trans %}x{% endtrans %}", "{% break %}", "{% continue %}", "{% debug %}", "{% block %}",
    "{% block a %}{% block a %}{% endblock %}{% endblock %}", "{% block a required %}{% endblock %}",
    "{% for a in seen_before recursive %}{{ loop(a) }}{% endfor %}", "{% for a in range(9) %}{% endfor %}",
    "{% for a in loop %}{% endfor %}", "{% for a in 'abc' %}{% endfor %}", "{% for a in words %}{% endfor %}",
    "{% for a in [1,2] %}{{ loop.cycle(1, 2) }}{% endfor %}", "{% for a in [1,2] %}{{ loop.__init__ }}{% endfor %}",
    "{% for a in [1,2] %}{{ loop.changed(a) }}{% endfor %}", "{% for a in [1,2] %}{{ loop.previtem }}{% endfor %}",
    "{% for a in [1,2] %}{{ loop._iterator }}{% endfor %}", "{% for a in [1,2] %}{{ loop['__init__'] }}{% endfor %}",
    "{% for _a in [1] %}{% endfor %}", "{% for a.b in [1] %}{% endfor %}", "{% set _a = 1 %}", "{% set __a__ = 1 %}",
    "{% for a, b in mentioned %}{% endfor %}", "{% if loop.index %}{% endif %}", "{%- endfor -%}",
]  # fmt: skip

GREEDY = {
    "turns in turns": "".join(f"{{% for a{n} in [1,2,3,4,5,6,7,8,9] %}}" for n in range(19)) + "{% endfor %}" * 19,
    "turns over supers": "{% block body %}" + "{% for a in [1,2,3,4,5,6,7,8,9] %}" * 4 + "{{ super() }}"
    + "{% endfor %}" * 4 + "{% endblock %}",
    "blocks in blocks": "".join(f"{{% block b{n} %}}" for n in range(800)) + "{% endblock %}" * 800,
    "blocks that call each other": "{% block a %}{{ super() }}{% endblock %}{% block b %}{{ super() }}{% endblock %}",
    "marker over and over": "{{ marker }}" * 5000,
    "conversations over and over": "{% for m in mentioned %}" + "{{ m.conversation }}" * 3000 + "{% endfor %}",
    "long comparisons": "{% if " + " == ".join(["marker"] * 9000) + " %}{% endif %}",
    "long sums": "{% if " + " + ".join(["1"] * 20_000) + " %}{% endif %}",
    "long joins": "{{ [" + ",".join(["'xxxxxxxx'"] * 5000) + "]|join('" + "y" * 10_000 + "') }}",
    "doubling numbers": "{% set a = 9 %}" + "{% set a = a * a %}" * 2000,
    "many names": "".join(f"{{% set a{n} = 1 %}}" for n in range(3500)),
    "many conditions": "{% if 1 %}a{% else %}b{% endif %}" * 2000,
    "many brackets": "{{ " + "[" * 30_000,
    "many dots": "{{ marker" + ".a" * 20_000 + " }}",
    "many filters": "{{ marker" + "|default" * 7000 + " }}",
    "many tests": "{{ marker" + " is defined" * 5000 + " }}",
    "many elses": "{{ 1" + " if 1 else 1" * 5000 + " }}",
    "many comments": "{#" * 30_000,
    "many openings": "{{" * 30_000,
    "white space": "{{" + " " * 60_000,
    "quotes": "{{ '" + "\\'" * 30_000,
    "digits": "{{ " + "1_" * 30_000,
}  # fmt: skip


def refusal_of(source: str) -> str:
    """Why the sandbox refuses to render ``source``; empty if it does not."""
    view = {"marker": "-->", "words": {"why": "Why"}, "mentioned": [{"link": "x"}], "seen_before": [{"link": "x"}]}
    sandbox = Sandbox({"t": source, "base.md.j2": "x", "shipped/base.md.j2": "x"})
    try:
        sandbox.render("t", view, 10_000)
    except TemplateFault as fault:
        return str(fault)
    return ""


def test_no_expression_reaches_beyond_the_values() -> None:
    reasons = {walk: refusal_of(f"{{{{ {walk} }}}}") for walk in WALKS}
    assert {walk: reason for walk, reason in reasons.items() if re.search("^$|object at 0x|\n", reason)} == {}


def test_no_statement_loads_another_file_or_calls_anything() -> None:
    assert [statement for statement in STATEMENTS if not refusal_of(statement)] == []


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize(
    "around", ["{{ ... }}", "{% if ... %}x{% endif %}", "{% for a in ... %}x{% endfor %}", "{% set a = ... %}"]
)
def test_the_shipped_template_is_used_instead_and_one_line_says_so(around: str) -> None:
    for walk in WALKS[:: 1 if around == "{{ ... }}" else 4]:
        text, problem = render(
            {"context.md.j2": f"{BASE}{{% block lead %}}{around.replace('...', walk)}{{% endblock %}}"}
        )
        assert text.replace("\nx\n", "", 1) == SHIPPED_TEXT, walk
        is_mute = "set" in around or "if" in around  # what prints nothing leaves the text as it is
        assert (
            (problem or "").startswith(".github/precedent, for context.md.j2: ") or text != SHIPPED_TEXT or is_mute
        ), walk


MEASURE = f"""
import json, resource, sys, time
sys.path.insert(0, {str(ROOT)!r})
from tests.comment.test_templates import BASE, SHIPPED_TEXT, render
resource.setrlimit(resource.RLIMIT_AS, ({512 * MEGABYTE}, {512 * MEGABYTE}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
text, problem = render({{"context.md.j2": BASE + sys.stdin.read()}})
took = time.process_time() - began
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps([took, grown * 1024, text.startswith("<!-- precedent:v1"), problem or ""]))
"""


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("name", share(GREEDY, 3))
def test_no_template_takes_two_seconds_or_much_memory(name: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", MEASURE], input=GREEDY[name].encode(), capture_output=True, timeout=60, check=False
    )
    assert process.returncode == 0, process.stderr.decode()[-500:]
    took, grown, is_complete, problem = json.loads(process.stdout)
    assert is_complete
    assert took < 2
    assert grown < 128 * MEGABYTE
    assert "\n" not in problem


def test_names_that_the_sandbox_does_not_offer_do_not_exist() -> None:
    for name in ("range", "dict", "lipsum", "cycler", "joiner", "namespace", "self", "loop", "caller", "environment"):
        with pytest.raises(TemplateFault):
            Sandbox({"t": f"{{{{ {name} }}}}"}).render("t", {}, 1000)
