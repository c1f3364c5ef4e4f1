"""Makes foreign text harmless inside our Markdown: it pings nobody, links nowhere and stays in its place.

Backslashes stop Markdown but not GitHub's own links, which are made from the finished page
(https://github.com/gjtorikian/html-pipeline, mention filter); a zero-width space inside the mention, number or address
stops both, and still does when an e-mail reply quotes the comment as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from bot.comment.clean_text import one_line, truncate, visible_text
from bot.reading.lookalikes import ZERO_WIDTH_SPACE

MAX_CHARS = 65_536
TITLE_CHARS = 120

_HAZARD = re.compile(
    r"(?P<html><)"
    r"|(?P<entity>&(?=#?[A-Za-z0-9]{1,32};))"
    r"|(?P<backslash>\\(?=[!-/:-@\[-`{-~]|\Z))"
    r"|(?P<mark>[`*\[\]|~^]|(?<![^\W_])_+|_+(?![^\W_]))"
    r"|(?P<dollar>\$(?!\s)|(?<!\s)\$)"
    r"|(?P<mention>@(?!\s))"
    r"|(?P<number>\#(?=[0-9]|\Z))"
    r"|(?P<prefix>(?<![A-Za-z0-9])(?:GH|GHSA|CVE)-(?=[A-Za-z0-9]|\Z))"
    r"|(?P<scheme>:(?=//))"
    r"|(?P<emoji>:(?=[A-Za-z0-9_+-]{1,100}:)(?![0-9]{1,2}:))"
    r"|(?P<path>/(?=(?:issues|pull|discussions|commit)/))"
    r"|(?P<host>www(?=\.))"
    r"|(?P<phrase>\bduplicate(?=\s+of\b))"
    r"|(?P<commit>(?<![A-Za-z0-9])[0-9a-f]{7,40}(?![A-Za-z0-9]))",
    re.IGNORECASE | re.ASCII,
)
_LINE_START = re.compile(r"(?P<mark>[-+=#:](?![A-Za-z0-9])|[0-9]{1,9}(?=[.)](?:\s|\Z)))|(?P<quote>>)", re.ASCII)
_PING = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])", re.ASCII)
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>.*)", re.ASCII)
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(?=[^ \t\n])", re.ASCII | re.MULTILINE)
_CODE = re.compile(r"(?<!`)`([^`\s](?:[^`]{0,198}[^`\s])?)`(?!`)")
_BACKTICKS = re.compile(r"`+")
_SAFE_IN_URL = "/:?#@!$&'*+,;=%~-._"
_HEX_GROUP_CHARS = 6


def inline(text: str, limit: int) -> str:
    """At most ``limit`` characters of the text on one line, as plain words for running text or a link's label.

    Markdown is shown as typed. Also safe inside raw HTML elements, though backslashes show there.
    """
    return _escape_line(truncate(one_line(text[:MAX_CHARS]), limit))


def prose(text: str, limit: int) -> str:
    """Like ``inline``, but text between single backticks stays code, and headings lose their hashes. For Markdown, not
    raw HTML."""
    line = truncate(one_line(_HEADING.sub("", text[:MAX_CHARS])), limit)
    shown, at = "", 0
    for match in _CODE.finditer(line):
        shown += _escape_inside(line[at : match.start()], is_first=at == 0) + code_span(match[1], limit)
        at = match.end()
    return shown + _escape_inside(line[at:], is_first=at == 0)


def _escape_inside(text: str, *, is_first: bool) -> str:
    return _escape_line(text) if is_first else _HAZARD.sub(_disarm, text)


def block(text: str, limit: int) -> str:
    """At most ``limit`` characters of a longer text: paragraphs keep their lines, fenced code stays fenced code.

    Headings lose their hashes; everything else is shown as typed. Begins or ends with a newline if code is first or
    last, so that no adjacent tag can break the fence. Put it at the start of a line; each of its lines may be prefixed.
    """
    return "\n\n".join(_blocks(truncate(visible_text(text[:MAX_CHARS]).strip("\n"), limit).split("\n")))


MAX_BACKTICKS = 9
"""Maximum backticks in a row: GitHub does not recognise code enclosed in more than eighty."""

_EXCESS_BACKTICKS = re.compile(f"`{{{MAX_BACKTICKS + 1},}}")


def code_span(text: str, limit: int) -> str:
    """At most ``limit`` characters of the text on one line as code, "" for "". For Markdown, not raw HTML."""
    code = _EXCESS_BACKTICKS.sub("`" * MAX_BACKTICKS, _break_pings(truncate(one_line(text[:MAX_CHARS]), limit)))
    if not code:
        return ""
    ticks = "`" * (_longest_run(code) + 1)
    pad = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{pad}{code}{pad}{ticks}"


def link(text: str, url: str, limit: int = TITLE_CHARS) -> str:
    """A link to one of our addresses, with a stranger's words of at most ``limit`` characters as its label.

    Only http(s) without credentials is linked; for other addresses the label stands alone.
    """
    label = inline(text, limit) or "(no title)"
    address = _address(url)
    return f"[{label}]({address})" if address else label


def hazards(text: str) -> Iterator[tuple[str, str]]:
    """Each part of ``text`` (one line) that Markdown or GitHub would treat as more than words: its kind and its
    characters."""
    for match in (*_HAZARD.finditer(text), _LINE_START.match(text)):
        if match:
            yield str(match.lastgroup), match[0]


def _address(url: str) -> str:
    """The URL, percent-encoded where it could end a link's target; "" if it must not be linked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
        return ""
    return quote(url, safe=_SAFE_IN_URL, errors="replace")


def _escape_line(text: str) -> str:
    """One line without leading white space, safe anywhere in Markdown."""
    start = _LINE_START.match(text)
    if not start:
        return _HAZARD.sub(_disarm, text)
    if start["quote"]:
        return "&gt;" + _HAZARD.sub(_disarm, text[1:])
    if start["mark"].isdigit():
        # a number of seven digits or more could be an abbreviated commit
        mark = _HAZARD.sub(_disarm, start["mark"])
        return f"{mark}\\{text[start.end()]}" + _HAZARD.sub(_disarm, text[start.end() + 1 :])
    return f"\\{_HAZARD.sub(_disarm, text)}"


def _disarm(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match[0]
    if kind == "html":
        return "&lt;"
    if kind == "entity":
        return "&amp;"
    if kind in ("backslash", "mark"):
        return "".join(f"\\{character}" for character in text)
    if kind == "dollar":
        # the only documented form in which a dollar sign does not open a formula
        return "<span>&#36;</span>"
    if kind == "commit":
        return ZERO_WIDTH_SPACE.join(text[at : at + _HEX_GROUP_CHARS] for at in range(0, len(text), _HEX_GROUP_CHARS))
    return text + ZERO_WIDTH_SPACE


def _break_pings(code: str) -> str:
    """Code without mentions, for e-mail replies; GitHub itself links nothing in code."""
    return _PING.sub(f"@{ZERO_WIDTH_SPACE}", code)


def _longest_run(code: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(code)), default=0)


def _blocks(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        if opening := _opening_fence(lines[at]):
            end = _closing_line(lines, at + 1, opening)
            if any(line.strip() for line in lines[at + 1 : end]):
                yield _fence(lines[at + 1 : end], is_first=at == 0, is_last=end + 1 >= len(lines))
            at = end + 1
        else:
            end = next(
                (n for n in range(at, len(lines)) if not lines[n].strip() or _opening_fence(lines[n])), len(lines)
            )
            if end > at:
                yield "\n".join(_escape_line(_HEADING.sub("", line.strip())) for line in lines[at:end])
            at = max(end, at + 1)


def _opening_fence(line: str) -> str:
    """The fence that opens code on this line, "" if there is none (https://spec.commonmark.org/0.31.2/#fenced-code-blocks)."""
    match = _FENCE.fullmatch(line)
    return match["fence"] if match and not (match["fence"][0] == "`" and "`" in match["info"]) else ""


def _closing_line(lines: list[str], start: int, opening: str) -> int:
    for at in range(start, len(lines)):
        line = lines[at].strip()
        if len(line) >= len(opening) and not line.strip(opening[0]):
            return at
    return len(lines)


def _fence(lines: list[str], *, is_first: bool, is_last: bool) -> str:
    """Code in our own fence, without its language, as some are rendered (``mermaid``, ``math``, ``suggestion``)."""
    code = _break_pings("\n".join(line.rstrip() for line in lines))
    ticks = "`" * max(3, _longest_run(code) + 1)
    before, after = "\n" * is_first, "\n" * is_last
    return f"{before}{ticks}\n{code}\n{ticks}{after}"
