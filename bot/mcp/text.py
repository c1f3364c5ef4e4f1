"""Answers as short plain text: a line for each thread, and other people's words in quotation marks on one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.comment.clean_text import cut, one_line
from bot.comment.prompt import DATA_NOTICE, visible
from bot.questions.thread import INDENT

TITLE, SENTENCE, SUMMARY = 160, 240, 300
DECISIONS, FILES, REASONS = 3, 6, 4

RowFields = Mapping[str, Any]


def quoted(text: str, most: int = SENTENCE) -> str:
    """The text on one line in quotation marks, those in it escaped."""
    return json.dumps(cut(one_line(visible(text)), most), ensure_ascii=False)


def plain_line(text: str) -> str:
    """The text on one line, which is not long."""
    return cut(one_line(visible(text)), SUMMARY)


def headed(line: str, data: RowFields, body: str) -> str:
    """An answer: what it is, what to know of it, and what was found."""
    notes = "".join(f"Note: {plain_line(note)}\n" for note in data["notes"])
    return f"{line}\n{notes}{DATA_NOTICE if body else ''}\n{body}".rstrip() + "\n"


def rows_text(found: Sequence[RowFields]) -> str:
    """Threads, each with how it ended and what was decided."""
    return "".join("\n" + "".join(f"{line}\n" for line in _lines(each)) for each in found)


def passages_text(found: Sequence[RowFields]) -> str:
    """Messages of sessions, each with the session that it was said in."""
    return "".join(
        f"\nsession {plain_line(each['session_id'])} ({plain_line(each['type'])}, {each['timestamp'][:10]})\n"
        f"{INDENT}{quoted(each['content'], SUMMARY)}\n"
        for each in found
    )


def head_text(row: RowFields) -> str:
    """The first line of a thread: how to cite it, what it is, its title."""
    kind = "pull request" if row["kind"] == "pull" else row["kind"]
    state = f"{row['state']} {kind}" if row["kind"] in ("issue", "pull") else kind
    return f"{plain_line(row['cite'])} ({state}, {row['updated_at'][:10]}) {quoted(row['title'], TITLE)}"


def row_ending(row: RowFields) -> str:
    """How it ended, in a few words; "" if unknown."""
    outcome = row["outcome"]
    if outcome["kind"] == "unknown":
        return ""
    words = [outcome["kind"]]
    words += [f"by {outcome['fix']}"] if outcome["fix"] else []
    words += [f"in {outcome['release']}"] if outcome["release"] else []
    words += [f"of #{outcome['duplicate_of']}"] if outcome["duplicate_of"] is not None else []
    said = f": {quoted(outcome['quote'])}" if outcome["quote"] else ""
    return one_line(" ".join(words)) + said


def _lines(row: RowFields) -> Iterator[str]:
    yield head_text(row)
    if row.get("why"):
        yield f"{INDENT}found because: {plain_line('; '.join(row['why'][:REASONS]))}"
    if told := row_ending(row):
        yield f"{INDENT}ended: {told}"
    elif row["summary"]:
        yield f"{INDENT}summary: {quoted(row['summary'], SUMMARY)}"
    yield from (f"{INDENT}{decided_text(each)}" for each in row["decisions"][:DECISIONS])
    if row["files"]:
        yield f"{INDENT}files: {plain_line(', '.join(row['files'][:FILES]))}"
    if row["url"]:
        yield f"{INDENT}{row['url']}"


def decided_text(decision: RowFields) -> str:
    """A decision with who took it and when."""
    who = one_line(" ".join(filter(None, (decision["author"], decision["role"].lower(), decision["at"][:10]))))
    return f"decided ({who}): {quoted(decision['text'])}"
