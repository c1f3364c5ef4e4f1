"""A comment that was sent by mail, without what the mail program put below or above it."""

from __future__ import annotations

import re

_MAY_BE_MAIL = ("wrote:", "Sent from my ", "Reply to this email", "Sent via ")
_SIGNATURE = re.compile(r"[ \t]*Sent (?:from my|via) \S", re.ASCII)
_FOOTER = re.compile(r"[ \t]*Reply to this email directly(?:,| or) view it on GitHub")
_SAID_BY = re.compile(r"[ \t]*(?:On|Am|Le|El) [^\n]{0,160}\d[^\n]{0,240}\bwrote:[ \t\r]*$", re.ASCII)
_RULE = frozenset({"", "-", "--", "---", "—", "–"})


def without_mail(text: str) -> str:
    """``text`` without a signature, the lines that it answers and the footer of the notification; all of it where
    nothing else is in it. Linear in its length."""
    if not any(mark in text for mark in _MAY_BE_MAIL):
        return text
    lines = text.split("\n")
    own = _without_answered(lines[: _end(lines)])
    while own and own[-1].strip() in _RULE:
        own.pop()
    return "\n".join(own).strip() or text


def _end(lines: list[str]) -> int:
    """Where the signature or the footer begins; a footer that stands unquoted ends a letter that does, too."""
    first = None
    for at, line in enumerate(lines):
        if first is None and _begins_letter(lines, at):
            first = at
        if _SIGNATURE.match(line):
            return at
        if _FOOTER.match(line):
            return at if first is None else first
    return len(lines)


def _without_answered(lines: list[str]) -> list[str]:
    """The lines without those that name a letter, and what is quoted of it."""
    kept: list[str] = []
    skips = False
    for at, line in enumerate(lines):
        if _begins_letter(lines, at):
            skips = True
        elif skips and line.strip() and line.lstrip()[:1] != ">" and not _begins_letter(lines, at - 1):
            skips = False
        if not skips:
            kept.append(line)
    return kept


def _begins_letter(lines: list[str], at: int) -> bool:
    """Whether this line says who wrote what follows, or does so with the next one."""
    if lines[at].lstrip()[:3] not in ("On ", "Am ", "Le ", "El "):
        return False
    return bool(_SAID_BY.match(lines[at]) or _SAID_BY.match(" ".join(lines[at : at + 2])))
