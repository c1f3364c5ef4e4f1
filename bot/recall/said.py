"""What people say in a text, in prose and in code, apart from what their machines add to it."""

from __future__ import annotations

import re

from bot.reading.signals import without_addresses

_MACHINE_LINE = re.compile(
    r"[ \t>]*(?:#?\d{1,4}:?[ \t]+(?:0x[0-9a-f]|- |\w+(?:::|\.)\w)|at (?:\S+ ?[:(]|/)|File \"|make(?:\[\d+\])?: "
    r"|[^ \n]{0,200} recipe for target|note: (?:run with|the compiler|we would appreciate))",
    re.ASCII,
)
"""How lines of stack traces and of make begin, and a compiler's request to report its failure."""

_MACHINE = re.compile(
    r"(?:task|thread) '[^'\n]{0,80}' (?:panicked|failed) at"
    r"|(?<![\w/\\])(?:[A-Za-z]:)?[\w.@+~-]{0,80}(?:[/\\][\w.@+~-]{1,80}){2,40}(?::\d+)*"
    r"|(?<![\w.-])[\w-]{1,80}\.[A-Za-z]{1,4}:\d+(?::\d+)*"
    r"|\b[\w.-]{1,40}@[\w.-]{1,80}",
    re.ASCII,
)
"""How a panic is told, paths, positions in files, prompts and addresses of mail."""


def said(text: str) -> str:
    """``text`` without stack frames, paths, positions, prompts and the output of make. Linear in its length."""
    lines = without_addresses(text).split("\n")
    return "\n".join(_MACHINE.sub(" ", line) for line in lines if not _MACHINE_LINE.match(line))
