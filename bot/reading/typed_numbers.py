"""Tells the numbers that people typed as references from ordinals, colours, machine code and pasted output.

GitHub links every ``#3``. Most of these forms are about no issue, and naming one as if they were looks foolish.
"""

from __future__ import annotations

import re

_LOOKAROUND_CHARS = 120
"""Characters before and after a number that are looked at."""

_COUNTED = """
apartment approach apt arg argument assertion assumption attempt bit box build building bullet channel chapter
checkpoint choice circle client column comment commit concern condition container core cpu criterion cycle day device
disk display edge edition entry episode epoch error example exercise experiment failure field figure finding floor
footnote frame function gpu goal group hypothesis idea image instance item iteration job key lap layer lesson level line
listing lot machine message method milestone module monitor node number objective observation operand option page
parameter param part phase photo pic picture pipeline player point port position possibility principle priority proof
question reason recommendation register replica requirement revision room round row rule run sample scenario screen
screenshot section server session shard shot slice slide slot snippet solution stage step suggestion suite symptom table
test theory tier tip trial unit usecase variant variation vector version video vm wave way week window worker workaround
year
"""
"""Words whose number says which of several, not which issue. Left out are those that people put before issues: task,
problem, feature, request, case, discussion, ticket, patch, thread."""

_NO_ACRONYM = """
ACK AFAICT AFAIK ALSO AND AS AT BACKPORT BLOCKED BTW BUG BUGS BY CC CF CHANGES CLOSED CLOSES DEPENDS DONE DUP DUPLICATE
EDIT EG EPIC FAQ FEATURE FIX FIXED FIXES FIXME FOR FROM FWIW FYI GH HI IE IMO IN IS ISSUE ISSUES LGTM LIKE MERGE MERGED
MR MRS NACK NB NEW NO NOT NOTE OF OK ON OR PR PROBLEM PRS PS PTAL PULL RE REF REFS RELATED REQUEST REVERT SAME SEE STORY
TASK THAT THE THIS TICKET TIL TLDR TO TODO UPDATE UTACK VIA VS WIP WITH XXX YES
"""
_COUNTED_WORDS = frozenset(word + ending for word in _COUNTED.split() for ending in ("", "s", "es"))
_NO_ACRONYMS = frozenset(_NO_ACRONYM.split())
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{1,7}", re.ASCII)
_NUMBER_WORDS = frozenset(("no", "no.", "nr", "nr.", "num", "number"))
_BEFORE_A_VERB = frozenset(
    ("please", "to", "you", "we", "i", "can", "could", "will", "would", "should", "i'll", "we'll", "let's")
)
"""Words before a verb: ``please test #3`` is about an issue."""

_ALSO = re.compile(r"[ \t]*(?:,|/|&|\+|-|–|and|or|to|through|until|vs\.?)[ \t]*(?:(?:and|or)[ \t]+)?\Z")
"""Between two numbers of one list: what the first is, the second is."""

_OF_SEVERAL = re.compile(r"[ \t]{0,2}(?:/[ \t]?|of[ \t](?:the[ \t])?)\d{1,4}\b(?![ \t]*#)", re.ASCII)
_FOREMOST = re.compile(
    r"(?i:[ \t](?:most|top|priority|reason|cause|request\b|requested|complaint|choice|rule|thing|goal|source|blocker"
    r"|pain|concern|question|mistake|offender|culprit|contender|enemy|in the world|on (?:the|my|our) list))"
)
_COLOUR_CHARS = (3, 4, 6, 8)
_COLOUR = re.compile(
    r"(?i:colou?rs?|background|fill|stroke|border|outline|shadow|hex|tint|rgb|foreground|bg|fg)(?:-[a-z]{2,10}){0,2}"
    r"(?:[ \t]{0,3}(?:[:=]|\b(?:is|of|to|code|value|with|as)\b))?(?:[ \t]{1,3}[\w.%]{1,10}){0,4}[ \t]{0,3}[\"'(]?\Z",
    re.ASCII,
)
_COLOUR_WORDS_CHARS = 60
_DECLARATION_END = re.compile(r"[ \t]*(?:\{|!important)")
_REGISTER = r"(?:[bdhqrsvwx]\d{1,2}|sp|lr|pc|fp|ip|[wx]zr)"
_OPERAND = re.compile(
    rf"(?:\b{_REGISTER}(?:\.\w{{1,3}})?[\]}}!]{{0,2}},|,[ \t]?#-?(?:0x[0-9a-f]{{1,16}}|\d{{1,19}}),)\Z",
    re.ASCII | re.IGNORECASE,
)
"""Before an immediate operand (``add x8, x8, #3``)."""

_SHIFTS = frozenset(
    (
        "lsl",
        "lsr",
        "asr",
        "ror",
        "sxtb",
        "sxth",
        "sxtw",
        "uxtb",
        "uxth",
        "uxtw",
        "svc",
        "swi",
        "brk",
        "bkpt",
        "hlt",
        "udf",
    )
)
"""Instructions before an operand without a comma."""

_STREETS = frozenset(("st", "street", "ave", "avenue", "rd", "road", "blvd", "lane", "drive"))
_HOUSE = re.compile(r"\b\d{1,6} (?:\w{1,20} ){1,4}\Z")
_OPERAND_CHARS = 40


def is_typed(text: str, start: int, end: int, previous: tuple[int, bool] | None = None) -> bool:
    """Whether ``#N`` at ``start`` to ``end`` of a text names an issue, not the place of something in a list.

    ``previous`` is where the number before it ended, and what was found about it.
    """
    first = max(0, start - _LOOKAROUND_CHARS)
    before = text[max(first, text.rfind("\n", first, start) + 1) : start]
    after = text[end : end + _LOOKAROUND_CHARS].partition("\n")[0]
    if previous and previous[0] >= first and _ALSO.fullmatch(text[previous[0] : start]):
        return previous[1]
    words = before.rsplit(None, 3)[-3:]
    if words and (before[-1:].isspace() or before.endswith(",")) and _is_counted(words, before):
        return False
    if _OF_SEVERAL.match(after) or _DECLARATION_END.match(after):
        return False
    if text[start:end] == "#1" and _FOREMOST.match(after):
        return False
    return not (end - start - 1 in _COLOUR_CHARS and _COLOUR.search(before[-_COLOUR_WORDS_CHARS:]))


def _is_counted(words: list[str], before: str) -> bool:
    """Whether the last of these words makes the number after it an ordinal, an operand or part of an address."""
    last = words[-1].lower()
    noun = words[-2].lower() if last in _NUMBER_WORDS and len(words) > 1 else last
    if noun.lstrip("([\"'*_") in _COUNTED_WORDS:
        return len(words) < 2 or words[-2].lower() not in _BEFORE_A_VERB
    if _ACRONYM.fullmatch(words[-1]) and words[-1] not in _NO_ACRONYMS:
        return len(words) < 2 or not words[-2].isupper()
    if last in _SHIFTS or (last[-1] == "," and _OPERAND.search(before.rstrip()[-_OPERAND_CHARS:])):
        return True
    return last.rstrip(".,") in _STREETS and bool(_HOUSE.search(before.rstrip()[: -len(last)]))


_PASTED_LINE = re.compile(
    r"[ \t*|\\/-]{0,20}[0-9a-f]{7,40}[ \t]"  # one line of a log of commits
    r"|(?i:(?:.{0,80}[^\w])?(?:(?:auto |rollup )?merge(?: of)?)(?: pull request| pr| branch)?[ \t]#[0-9])"
    r"|[ \t\[(]{0,4}[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
    r"|[ \t\[(]{0,4}[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"|[ \t]{0,4}(?:trace|debug|info|warn|warning|error|fatal|TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL"
    r"|CRITICAL)[ \t]*[:|]"
    r"|[ \t]{0,4}[\[(](?i:trace|debug|info|notice|warn|warning|error|fatal|critical)[\])]"
    # a frame of a debugger, of PHP or of Dart, or a line of a container's build
    r"|[ \t>|]{0,20}#\d{1,4}:?(?:[ \t]{2,20}\S{0,200}[\w$>](?:[(.:]| \((?:file|package|dart):)"
    r"|[ \t]+(?:0x[0-9a-f]|[0-9a-f]{8,16}\b|(?:in|pc)[ \t]\S|/\S|<anonymous"
    r"|\[(?:internal|native|[\w -]{0,40}\d{1,3}/\d)"
    r"|\{main\}|sha256:|DONE \d|CACHED\b|ERROR\b|\d+\.\d+ \S|transferring "
    r"|\S{1,160} ?\([^)\n]{0,300}\)(?: at \S{1,200}:\d| from /| \(|:)|\S{1,200}\(\d+\):))",
    re.ASCII,
)
_HUNK = re.compile(r"@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@|(?:diff --git |\+\+\+ b/|--- a/)", re.ASCII)
_HUNK_LINES = ("+", "-", " ", "\\", "@@", "index ")


def without_pasted_lines(text: str) -> str:
    """The text without the lines of logs, stack traces and diffs. Code stays. Linear in its length."""
    kept: list[str] = []
    is_diff = False
    for line in text.split("\n"):
        is_diff = bool(_HUNK.match(line)) or (is_diff and line.startswith(_HUNK_LINES))
        if not (is_diff or _PASTED_LINE.match(line)):
            kept.append(line)
    return "\n".join(kept)
