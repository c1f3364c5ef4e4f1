"""Search words as weapons: nothing in a text is an operator, and the number of terms is bounded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.index.scoring import MAX_QUERY_TERMS
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.reading.requests import commands
from bot.recall.library import similar_query
from tests.index.word_query import word_query
from tests.threats.corpus import LONG, repeat

DAY = datetime(2025, 6, 1, tzinfo=UTC)
OPERATORS = [
    "*:* AND [a TO z]~ ", "*", "?", "a* b? c~2 ", "[a TO z]", "{a TO }", "title:* ", "text:cookie OR notes:cookie ",
    "cookie^99999999 ", '"cookie login"~9999 ', "NOT cookie ", "cookie ANDNOT login ", "(((", "cookie AND ", "/.*/ ",
    "\\*", "id:1 ", "_all:x ", "(a OR b) ", "+cookie -login ", "every:", "now-1y ", "'; DROP TABLE ",
]  # fmt: skip


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """A few threads with many words, one of which mentions cookies."""
    memory = Memory(FolderStore(Path(tmp_path_factory.mktemp("memory")) / "store")).open()
    threads = [
        Thread(
            n, f"Thread {n}", " ".join(f"w{n}x{m}" for m in range(80)), "octocat", DAY + timedelta(n), state="closed"
        )
        for n in range(2, 12)
    ]
    threads.append(Thread(1, "The cookie is lost", "login fails", "octocat", DAY, state="closed"))
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("Remember")
    return memory.open()


def search_ids(memory: Memory, words: str) -> list[object]:
    return [hit.entry.id for hit in memory.search(word_query(words))]


def test_operators_find_nothing_that_their_words_do_not(memory: Memory) -> None:
    for operator in OPERATORS:
        harmless = "".join(character if character.isalnum() else " " for character in operator)
        assert search_ids(memory, operator) == search_ids(memory, harmless), operator
        assert 1 in search_ids(memory, f"cookie {operator}"), operator


def test_an_endless_query_of_operators_looks_up_a_bounded_number_of_terms() -> None:
    for operator in OPERATORS:
        text = repeat(operator, LONG // 4)
        for query in (word_query(text), similar_query(Thread(9, text, text, "octocat", DAY))):
            assert len(query.terms) < 40, operator


@pytest.mark.slow
def test_a_hundred_thousand_terms_cost_no_more_than_the_limit_of_terms(memory: Memory) -> None:
    query_text: Callable[[int], str] = lambda count: " ".join(f"w{n % 12}x{n}" for n in range(count))  # noqa: E731
    many = word_query(query_text(100_000))
    assert len(many.terms) > 50_000
    bounded = word_query(query_text(MAX_QUERY_TERMS))
    assert len(memory.search(many)) <= 200
    baseline = min(seconds(memory, bounded) for _ in range(3))
    assert min(seconds(memory, many) for _ in range(3)) < 8 * max(baseline, 0.05)


def seconds(memory: Memory, query: object) -> float:
    began = process_time()
    memory.search(query)  # type: ignore[arg-type]
    return process_time() - began


def test_a_command_asks_for_a_bounded_number_of_words() -> None:
    [command] = commands(f"/precedent search {' '.join(f'word{n}' for n in range(9_000))}")
    assert len(command.words) <= 1000
