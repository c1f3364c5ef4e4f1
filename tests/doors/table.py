"""The table of questions, and what judges an entry point's answer by it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.domain.card import CardId
from tests.doors.entrances import ELSEWHERE, MAX_REPLY, REPLIES, TERMINAL, Answers, Entrances, Found

FOLDER = Path(__file__).parent
MADE_UP = "kettle"
"""The memory of `tests.doors.history`. The other memories are archives of real projects."""


@dataclass(frozen=True)
class Expectation:
    """A row: a question to a memory, and what a person expects there. ``made_up.toml`` describes the fields."""

    memory: str
    query: str
    note: str
    first: tuple[CardId, ...] = ()
    among: tuple[CardId, ...] = ()
    unwanted: tuple[CardId, ...] = ()
    nothing: bool = False
    asks: bool = False
    on: int = ELSEWHERE
    unmet: str = ""

    def __str__(self) -> str:
        return f"{self.memory}: {self.query}" + (f" (on {self.on})" if self.on != ELSEWHERE else "")

    @property
    def expected(self) -> str:
        """The expectation in short."""
        parts = [f"first {_list(self.first)}"] * bool(self.first)
        parts += [f"among the first {_list(self.among)}"] * bool(self.among)
        parts += [f"not {_list(self.unwanted)}"] * bool(self.unwanted)
        parts += ["nothing"] * self.nothing + ["a reply to the comment"] * self.asks
        return ", ".join(parts)


def read_table(name: str) -> list[Expectation]:
    """The rows of a file of this folder, in its order."""
    tables: dict[str, list[dict[str, Any]]] = tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))
    return [_expectation(memory, fields) for memory, rows in tables.items() for fields in rows]


def _expectation(memory: str, fields: dict[str, Any]) -> Expectation:
    values: dict[str, Any] = {
        "unwanted" if name == "not" else name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
    }
    return Expectation(memory, **values)


def faults(row: Expectation, answers: Answers, entrances: Entrances) -> list[str]:
    """What is wrong with the answers to a question, one line each; none if all is as expected.

    Each answer is judged by the row, and those of the entry points are compared with each other.
    """
    return [
        f"{name}: {fault}" for name, found in answers.items() for fault in _faults_at(row, name, found, entrances)
    ] + list(_differences(row, answers, entrances))


def _faults_at(row: Expectation, name: str, found: Found | None, entrances: Entrances) -> Iterator[str]:
    if found is None:
        if row.asks or name != "question":
            yield "the comment was not understood as a question"
        return
    if found.error:
        yield found.error
        return
    first, among = row.first, row.among
    if name in REPLIES:
        first, among = entrances.in_reply(first, row.on)[:MAX_REPLY], entrances.in_reply(among, row.on)
    if found.ids[: len(first)] != first:
        yield f"does not begin with {_list(first)}"
    if missing := [key for key in among if key not in found.ids[: max(3, len(first) + len(among))]]:
        yield f"lacks {_list(missing)} at the top"
    if unwanted := [key for key in row.unwanted if key in found.ids]:
        yield f"lists {_list(unwanted)}"
    if row.nothing and found.ids:
        yield "finds something"


def _differences(row: Expectation, answers: Answers, entrances: Entrances) -> Iterator[str]:
    """How the entry points differ: those of the terminal list the same, and a reply begins like their list without what
    replies leave out."""
    given = {name: found for name, found in answers.items() if found is not None and not found.error}
    listed = next((given[name].ids for name in TERMINAL if name in given), ())
    for name in TERMINAL:
        if name in given and given[name].ids != listed:
            yield f"{name}: differs from the terminal"
    expected = entrances.in_reply(listed, row.on)[:MAX_REPLY]
    for name in REPLIES:
        if name in given and given[name].ids != expected:
            yield f"{name}: differs from the terminal"


def _list(keys: Iterable[CardId]) -> str:
    return " ".join(map(str, keys))


def described(row: Expectation, answers: Answers, problems: list[str]) -> str:
    """A row as text: the question, what is expected, each entry point's list, and the faults."""
    lists = [f"    {name:<9} {_shown(found)}" for name, found in answers.items()]
    return "\n".join(
        [
            f"{'WRONG' if problems else 'ok   '} {row}",
            f"    expected  {row.expected}",
            f"    because   {row.note}",
            *lists,
            *(f"    ! {problem}" for problem in problems),
        ]
    )


def _shown(found: Found | None) -> str:
    if found is None:
        return "(no question)"
    return found.error or " ".join(map(str, found.ids)) or "nothing"
