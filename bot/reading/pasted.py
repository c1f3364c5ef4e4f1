"""What a person pasted into a text: quotations, and lines as logs and version control print them."""

from __future__ import annotations

import re

_PASTED = re.compile(
    r"[ \t]*>"  # a quotation
    r"|[ \t*|\\/-]{0,20}[0-9a-f]{7,40}[ \t]"  # one line of a log of commits
    r"|(?:.{0,80}[^\w])?(?:(?:auto |rollup )?merge(?: of)?)(?: pull request| pr| branch)?[ \t]#[0-9]"
    r"|[ \t\[(]{0,4}[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
    r"|[ \t\[(]{0,4}[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"|[ \t\[(]{0,4}(?:trace|debug|info|notice|warn|warning|error|fatal|critical)\b[\])]?[ \t]*[:|]",
    re.ASCII | re.IGNORECASE,
)


def without_pasted(text: str) -> str:
    """The text without the lines that nobody wrote for this text; code is left to whoever reads Markdown."""
    return "\n".join(line for line in text.split("\n") if not _PASTED.match(line))
