"""The same question gives the same threads in the same order at every entry point, and those that a person expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.thread import Thread
from bot.reading.analyzer import tokens
from bot.sources.archive_file import read_archive
from tests.cli.fixtures import built_once
from tests.doors.entrances import ELSEWHERE, MAX_REPLY, REPLIES, TERMINAL, Entrances, Found, opened
from tests.doors.memories import archive_of, build
from tests.doors.table import MADE_UP, Expectation, described, faults, read_table
from tests.examples import examples

Open = Callable[[str], Entrances]
"""The entry points to the memory of this name."""

ROWS, PROJECT_ROWS = read_table("made_up.toml"), read_table("projects.toml")


@pytest.fixture(scope="module")
def entrances_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Gives the entry points to a memory, which is built when it is asked for first."""
    with ExitStack() as stack:

        @cache
        def open_memory(name: str) -> Entrances:
            store = built_once(tmp_path_factory, name, partial(build, name))
            return stack.enter_context(opened(store))

        yield open_memory


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_question_finds_the_same_expected_threads_everywhere(row: Expectation, entrances_of: Open) -> None:
    _check(row, entrances_of(row.memory))


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("row", PROJECT_ROWS, ids=str)
def test_a_question_to_a_real_project_finds_the_same_expected_threads_everywhere(
    row: Expectation, shared: Path, entrances_of: Open
) -> None:
    _check(row, entrances_of(row.memory))


def _check(row: Expectation, entrances: Entrances) -> None:
    answers = entrances.ask(row.query, row.on)
    problems = faults(row, answers, entrances)
    differs = [problem for problem in problems if "differs" in problem]
    if differs or bool(problems) != bool(row.unmet):
        pytest.fail(described(row, answers, problems or ["it is met"]), pytrace=False)


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_words_find_the_same_threads_in_the_same_order_everywhere(entrances_of: Open, data: st.DataObject) -> None:
    entrances = entrances_of(MADE_UP)
    threads = [record for record in entrances.kept.state.every_record() if isinstance(record, Thread)]
    words = sorted({word for thread in threads for word in tokens(f"{thread.title} {thread.body}")})
    query = " ".join(data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=32)))
    answers = {name: found for name, found in entrances.ask(query).items() if found is not None}
    listed = answers["json"].ids
    assert [answers[name] for name in TERMINAL] == [Found(listed)] * len(TERMINAL)
    shown = entrances.in_reply(listed, ELSEWHERE)[:MAX_REPLY]
    assert [answers[name].ids[: len(shown)] for name in REPLIES if name in answers] == [shown] * sum(
        name in answers for name in REPLIES
    )


# -- the table itself --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [ROWS, PROJECT_ROWS], ids=["made up", "projects"])
def test_every_row_asks_something_else_and_expects_something(rows: list[Expectation]) -> None:
    assert len({str(row) for row in rows}) == len(rows)
    assert [row for row in rows if row.nothing == bool(row.first or row.among)] == []
    assert [row for row in rows if {*row.first, *row.among} & {*row.unwanted}] == []
    assert [row for row in rows if not row.note] == []


def test_the_rows_name_threads_of_the_made_up_memory(entrances_of: Open) -> None:
    assert _unknown(ROWS, {record.id for record in entrances_of(MADE_UP).kept.state.every_record()}) == []


@pytest.mark.shared
@pytest.mark.slow
def test_the_rows_name_threads_of_the_real_projects(shared: Path) -> None:
    names = {row.memory for row in PROJECT_ROWS}
    threads = {name: {thread.id for thread in read_archive(archive_of(name))} for name in names}
    assert [row for row in PROJECT_ROWS if _unknown([row], threads[row.memory])] == []


def _unknown(rows: list[Expectation], known: set[int | str]) -> list[int | str]:
    return [key for row in rows for key in (*row.first, *row.among, *row.unwanted) if key not in known]


# -- what judges an answer ---------------------------------------------------------------------------------------------

GOOD = Found((3, 4, 12))
BOTH_DIFFER = [f"{name}: differs from the terminal" for name in REPLIES]
EVERYWHERE = dict.fromkeys((*TERMINAL, *REPLIES), GOOD)


@pytest.mark.parametrize(
    ("expected", "problems"),
    [
        ({"first": (3, 4)}, []),
        ({"first": (3,), "among": (12, 4)}, []),
        ({"first": (4,)}, ["does not begin with 4"]),
        ({"first": (3, 4, 12, 5)}, ["does not begin with 3 4 12 5"]),
        ({"among": (12, 5)}, ["lacks 5 at the top"]),
        ({"unwanted": (12, 5)}, ["lists 12"]),
        ({"nothing": True}, ["finds something"]),
    ],
)
def test_an_answer_is_judged_by_its_row(expected: dict[str, object], problems: list[str], entrances_of: Open) -> None:
    row = Expectation(MADE_UP, "", "", **expected)  # type: ignore[arg-type]
    assert faults(row, EVERYWHERE, entrances_of(MADE_UP)) == [
        f"{name}: {problem}" for name in EVERYWHERE for problem in problems
    ]


@pytest.mark.parametrize(
    ("answers", "problems"),
    [
        ({"mcp": Found((4, 3, 12))}, ["mcp: differs from the terminal"]),
        ({"json": Found()}, ["json: differs from the terminal"]),
        ({"command": Found((3, 4))}, ["command: differs from the terminal"]),
        ({"question": None}, []),
        ({"command": None}, ["command: the comment was not understood as a question"]),
        ({"mcp": Found(error="query: too long")}, ["mcp: query: too long"]),
        (
            dict.fromkeys(TERMINAL, Found((3, 4, 12, 13, 14, 15))),
            [f"{name}: differs from the terminal" for name in REPLIES],
        ),
        (dict.fromkeys(TERMINAL, Found((3, "a page", 4, 12))), []),
    ],
)
def test_the_answers_are_compared_without_what_replies_leave_out(
    answers: dict[str, Found | None], problems: list[str], entrances_of: Open
) -> None:
    row = Expectation(MADE_UP, "", "", unwanted=(99,))
    assert faults(row, EVERYWHERE | answers, entrances_of(MADE_UP)) == problems


def test_a_reply_lists_five_threads_and_never_its_own(entrances_of: Open) -> None:
    row = Expectation(MADE_UP, "", "", first=(3, 4, 12, 13, 14, 15), on=4)
    listed = dict.fromkeys(TERMINAL, Found(row.first))
    entrances = entrances_of(MADE_UP)
    assert faults(row, listed | dict.fromkeys(REPLIES, Found((3, 12, 13, 14, 15))), entrances) == []
    assert faults(row, listed | {"command": Found((3, 4, 12, 13, 14))}, entrances) != []


def test_a_question_that_must_be_understood_as_one_is(entrances_of: Open) -> None:
    row = Expectation(MADE_UP, "", "", first=(3,), asks=True)
    problem = "question: the comment was not understood as a question"
    assert faults(row, EVERYWHERE | {"question": None}, entrances_of(MADE_UP)) == [problem]
