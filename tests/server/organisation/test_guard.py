"""The guard of the organisation's index: it rests after failures, counts, and knows what a rebuild may repair."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.domain.organisation import FoundThread, OrganisationThread
from bot.domain.thread import Kind
from bot.errors import WorldError
from bot.recall.candidates import OrganisationUnavailable
from bot.server.model import Counters
from bot.server.organisation.guard import (
    COOLDOWN_SECONDS,
    DOWN_SECONDS,
    REPAIR_AFTER,
    SEARCHES_METRIC,
    OrganisationGuard,
)

FOUND = FoundThread(OrganisationThread(1, 2, 3, "a/b", Kind.ISSUE, "Crash", "x", datetime(2026, 1, 1, tzinfo=UTC)), 1.0)


@dataclass
class FakeIndex:
    """An index that fails with ``fault`` and records its calls."""

    now: float = 0.0
    fault: Exception | None = None
    counters: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    calls: list[str] = field(default_factory=list)
    opened: int = 0
    results: list[FoundThread] = field(default_factory=lambda: [FOUND])

    def guard(self) -> OrganisationGuard:
        return OrganisationGuard(self._open, self._count, lambda: self.now)

    def _open(self, installation: int) -> Any:
        self.opened += 1
        return self

    def _count(self, values: Counters) -> None:
        self.counters.update({key: int(count) for key, count in values.items()})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Each call of the index is recorded, and answered as by an index without words."""

        def call(*_: object, **__: object) -> Any:
            self.calls.append(name)
            if self.fault:
                raise self.fault
            return {"exists": True, "search": self.results, "rarity": {}}.get(name)

        return call


def results(fake_index: FakeIndex) -> dict[str, int]:
    return {labels[0]: count for (name, labels), count in fake_index.counters.items() if name == SEARCHES_METRIC}


def failure_of(guard: OrganisationGuard, installation: int = 7) -> str:
    with pytest.raises(OrganisationUnavailable) as caught:
        guard.index(installation).search(["crash"], {1})
    return str(caught.value)


def test_every_call_reaches_the_index_and_it_is_opened_once() -> None:
    fake_index = FakeIndex()
    index = fake_index.guard().index(7)
    assert fake_index.opened == 0
    assert index.search(["crash"], {1}) == [FOUND]
    index.rarity(["crash"])
    index.upsert([])
    index.delete(1)
    index.rebuild([])
    index.compact()
    assert fake_index.calls == ["search", "rarity", "upsert", "delete", "rebuild", "compact"]
    assert fake_index.opened == 1


def test_after_a_failure_the_index_rests_for_a_while_and_is_then_reopened() -> None:
    fake_index = FakeIndex(fault=OrganisationUnavailable("too slow"))
    guard = fake_index.guard()
    assert failure_of(guard) == "too slow"
    fake_index.fault = None
    assert "tried again soon" in failure_of(guard)
    assert fake_index.calls == ["search"]
    fake_index.now += COOLDOWN_SECONDS
    assert guard.index(7).search(["crash"], {1})
    assert fake_index.opened == 2


def test_a_failure_in_one_installation_does_not_affect_another() -> None:
    fake_index = FakeIndex(fault=OrganisationUnavailable("damaged"))
    guard = fake_index.guard()
    failure_of(guard)
    fake_index.fault = None
    assert guard.index(8).search(["crash"], {1})
    assert not guard.is_up


def test_a_failure_and_its_end_are_each_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    fake_index = FakeIndex(fault=OrganisationUnavailable("no route to host"))
    guard = fake_index.guard()
    with caplog.at_level(logging.INFO):
        for installation in (7, 8, 7, 8):
            failure_of(guard, installation)
            fake_index.now += COOLDOWN_SECONDS
        fake_index.fault = None
        for installation in (7, 8):
            guard.index(installation).search(["crash"], {1})
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "no route to host" in caplog.text


@pytest.mark.parametrize("use", ["search", "write"])
def test_failing_searches_and_failing_writes_are_tracked_separately(use: str, caplog: pytest.LogCaptureFixture) -> None:
    """Such as a table that takes rows but cannot be searched: not every write and search logs a change."""
    fake_index = FakeIndex()
    guard = fake_index.guard()
    index = guard.index(7)
    calls = {"search": lambda: index.search(["crash"], {1}), "write": lambda: index.upsert([])}
    call, other_call = calls[use], calls["write" if use == "search" else "search"]
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            fake_index.fault = OrganisationUnavailable("it cannot be read")
            with pytest.raises(OrganisationUnavailable):
                call()
            fake_index.fault = None
            other_call()
            assert not guard.is_up
            fake_index.now += COOLDOWN_SECONDS
        call()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert guard.is_up


def test_a_rebuild_ends_every_failure() -> None:
    fake_index = FakeIndex(fault=OrganisationUnavailable("it cannot be read", "run: precedent org rebuild"))
    guard = fake_index.guard()
    while fake_index.now <= REPAIR_AFTER:
        failure_of(guard)
        fake_index.now += COOLDOWN_SECONDS
    fake_index.fault = None
    assert guard.is_damaged(7)
    guard.index(7).rebuild([])
    assert not guard.is_damaged(7)
    assert guard.is_up


def test_an_exception_of_the_engine_counts_as_a_failure() -> None:
    fake_index = FakeIndex(fault=KeyError("_score"))
    assert "KeyError" in failure_of(fake_index.guard())


def test_searches_are_counted_by_result() -> None:
    fake_index = FakeIndex()
    guard = fake_index.guard()
    guard.index(7).search(["crash"], {1})
    fake_index.results = []
    guard.index(7).search(["crash"], {1})
    fake_index.fault = OrganisationUnavailable("too slow")
    failure_of(guard)
    failure_of(guard)
    assert results(fake_index) == {"found": 1, "nothing": 1, "failed": 1, "resting": 1}


def test_a_search_succeeds_even_if_it_cannot_be_counted() -> None:
    fake_index = FakeIndex()

    def count(_: Counters) -> None:
        raise WorldError("the database does not answer")

    guard = OrganisationGuard(lambda _: fake_index, count, lambda: 0.0)
    assert guard.index(7).search(["crash"], {1}) == [FOUND]


def test_the_index_is_up_again_after_an_answer_or_long_without_a_call() -> None:
    fake_index = FakeIndex(fault=OrganisationUnavailable("too slow"))
    guard = fake_index.guard()
    assert guard.is_up
    failure_of(guard)
    assert not guard.is_up
    fake_index.now += DOWN_SECONDS + 1
    assert guard.is_up
    failure_of(guard)
    fake_index.fault = None
    fake_index.now += COOLDOWN_SECONDS
    guard.index(7).search(["crash"], {1})
    assert guard.is_up


@pytest.mark.parametrize(("remedy", "is_damaged"), [("run: precedent org rebuild", True), ("", False)])
def test_only_a_lasting_failure_that_a_rebuild_may_repair_counts_as_damage(remedy: str, is_damaged: bool) -> None:
    fake_index = FakeIndex(fault=OrganisationUnavailable("it cannot be read", remedy))
    guard = fake_index.guard()
    failure_of(guard)
    assert not guard.is_damaged(7)
    while fake_index.now <= REPAIR_AFTER:
        fake_index.now += COOLDOWN_SECONDS
        failure_of(guard)
    assert guard.is_damaged(7) is is_damaged


def test_calls_that_read_no_thread_do_not_clear_damage(caplog: pytest.LogCaptureFixture) -> None:
    """Each search first reads the rarity of its words, from another table."""
    damage = OrganisationUnavailable("it cannot be read", "run: precedent org rebuild")
    fake_index = FakeIndex(fault=damage)
    guard = fake_index.guard()
    failure_of(guard)
    while fake_index.now <= REPAIR_AFTER:
        fake_index.now, fake_index.fault = fake_index.now + COOLDOWN_SECONDS, None
        assert guard.index(7).exists()
        guard.index(7).rarity(["crash"])
        fake_index.fault = damage
        failure_of(guard)
    assert guard.is_damaged(7)
    assert caplog.text.count("it cannot be read") == 1


def test_writes_are_counted_until_the_next_compaction() -> None:
    guard = FakeIndex().guard()
    index = guard.index(7)
    index.upsert([])
    index.delete(1)
    assert (guard.write_count(7), guard.write_count(8)) == (2, 0)
    index.compact()
    assert guard.write_count(7) == 0
