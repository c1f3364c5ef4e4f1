"""The guard before the organisation's index: it rests after a failure, counts, and knows what a rebuild may repair."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from bot.domain.organisation import FoundThread, OrganisationThread
from bot.domain.thread import Kind, ThreadId
from bot.errors import WorldError
from bot.recall.candidates import OrganisationUnavailable
from bot.server.model import Counters
from bot.server.organisation_guard import DOWN, REPAIR_AFTER, REST, SEARCHES, OrganisationGuard

FOUND = FoundThread(OrganisationThread(1, 2, 3, "a/b", Kind.ISSUE, "Crash", "x", datetime(2026, 1, 1, tzinfo=UTC)), 1.0)


@dataclass
class Place:
    """An index that fails with ``fault``, and everything that was asked of it."""

    now: float = 0.0
    fault: Exception | None = None
    counted: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)
    opened: int = 0
    found: list[FoundThread] = field(default_factory=lambda: [FOUND])

    def guard(self) -> OrganisationGuard:
        return OrganisationGuard(self._open, self._count, lambda: self.now)

    def _open(self, installation: int) -> Place:
        self.opened += 1
        return self

    def _count(self, values: Counters) -> None:
        self.counted.update({key: int(much) for key, much in values.items()})

    def _ask(self, name: str) -> None:
        self.asked.append(name)
        if self.fault:
            raise self.fault

    def exists(self) -> bool:
        self._ask("exists")
        return True

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        self._ask("search")
        return self.found

    def rarity(self, terms: Iterable[str]) -> Mapping[str, float]:
        self._ask("rarity")
        return {}

    def upsert(self, threads: Sequence[OrganisationThread]) -> None:
        self._ask("upsert")

    def delete(self, repository: int, ids: Collection[ThreadId] | None = None) -> None:
        self._ask("delete")

    def rebuild(self, threads: Iterable[OrganisationThread]) -> None:
        self._ask("rebuild")

    def compact(self, *, purges: bool = False) -> None:
        self._ask("compact")


def results(place: Place) -> dict[str, int]:
    return {labels[0]: much for (name, labels), much in place.counted.items() if name == SEARCHES}


def fails(guard: OrganisationGuard, installation: int = 7) -> str:
    with pytest.raises(OrganisationUnavailable) as caught:
        guard.index(installation).search(["crash"], {1})
    return str(caught.value)


def test_every_call_reaches_the_index_which_is_opened_once() -> None:
    place = Place()
    index = place.guard().index(7)
    assert place.opened == 0
    assert index.search(["crash"], {1}) == [FOUND]
    index.rarity(["crash"])
    index.upsert([])
    index.delete(1)
    index.rebuild([])
    index.compact()
    assert place.asked == ["search", "rarity", "upsert", "delete", "rebuild", "compact"]
    assert place.opened == 1


def test_after_a_failure_it_is_not_asked_for_a_while_and_then_opened_again() -> None:
    place = Place(fault=OrganisationUnavailable("too slow"))
    guard = place.guard()
    assert fails(guard) == "too slow"
    place.fault = None
    assert "tried again soon" in fails(guard)
    assert place.asked == ["search"]
    place.now += REST
    assert guard.index(7).search(["crash"], {1})
    assert place.opened == 2


def test_trouble_of_one_installation_is_not_that_of_another() -> None:
    place = Place(fault=OrganisationUnavailable("damaged"))
    guard = place.guard()
    fails(guard)
    place.fault = None
    assert guard.index(8).search(["crash"], {1})
    assert not guard.is_up


def test_trouble_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    place = Place(fault=OrganisationUnavailable("no route to host"))
    guard = place.guard()
    with caplog.at_level(logging.INFO):
        for installation in (7, 8, 7, 8):
            fails(guard, installation)
            place.now += REST
        place.fault = None
        for installation in (7, 8):
            guard.index(installation).search(["crash"], {1})
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "no route to host" in caplog.text


@pytest.mark.parametrize("use", ["search", "write"])
def test_trouble_of_one_use_leaves_the_other_alone_and_only_its_own_answer_ends_it(
    use: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a table that takes rows and cannot be searched: it is not told with each write and each search."""
    place = Place()
    guard = place.guard()
    index = guard.index(7)
    ways = {"search": lambda: index.search(["crash"], {1}), "write": lambda: index.upsert([])}
    ask, ask_otherwise = ways[use], ways["write" if use == "search" else "search"]
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            place.fault = OrganisationUnavailable("it cannot be read")
            with pytest.raises(OrganisationUnavailable):
                ask()
            place.fault = None
            ask_otherwise()
            assert not guard.is_up
            place.now += REST
        ask()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert guard.is_up


def test_a_rebuild_ends_all_trouble() -> None:
    place = Place(fault=OrganisationUnavailable("it cannot be read", "run: precedent org rebuild"))
    guard = place.guard()
    while place.now <= REPAIR_AFTER:
        fails(guard)
        place.now += REST
    place.fault = None
    assert guard.is_damaged(7)
    guard.index(7).rebuild([])
    assert not guard.is_damaged(7)
    assert guard.is_up


def test_a_bug_of_the_engine_is_trouble_too() -> None:
    place = Place(fault=KeyError("_score"))
    assert "KeyError" in fails(place.guard())


def test_searches_are_counted_by_result() -> None:
    place = Place()
    guard = place.guard()
    guard.index(7).search(["crash"], {1})
    place.found = []
    guard.index(7).search(["crash"], {1})
    place.fault = OrganisationUnavailable("too slow")
    fails(guard)
    fails(guard)
    assert results(place) == {"found": 1, "nothing": 1, "failed": 1, "resting": 1}


def test_a_search_goes_well_where_it_cannot_be_counted() -> None:
    place = Place()

    def count(_: Counters) -> None:
        raise WorldError("the database does not answer")

    guard = OrganisationGuard(lambda _: place, count, lambda: 0.0)
    assert guard.index(7).search(["crash"], {1}) == [FOUND]


def test_it_is_up_again_when_it_answers_or_nobody_has_asked_for_long() -> None:
    place = Place(fault=OrganisationUnavailable("too slow"))
    guard = place.guard()
    assert guard.is_up
    fails(guard)
    assert not guard.is_up
    place.now += DOWN + 1
    assert guard.is_up
    fails(guard)
    place.fault = None
    place.now += REST
    guard.index(7).search(["crash"], {1})
    assert guard.is_up


@pytest.mark.parametrize(("remedy", "is_damaged"), [("run: precedent org rebuild", True), ("", False)])
def test_only_what_a_rebuild_may_repair_counts_as_damage_and_only_after_a_while(remedy: str, is_damaged: bool) -> None:
    place = Place(fault=OrganisationUnavailable("it cannot be read", remedy))
    guard = place.guard()
    fails(guard)
    assert not guard.is_damaged(7)
    while place.now <= REPAIR_AFTER:
        place.now += REST
        fails(guard)
    assert guard.is_damaged(7) is is_damaged


def test_what_reads_no_thread_says_nothing_of_damage(caplog: pytest.LogCaptureFixture) -> None:
    """Each search asks for the rarity of its words first, from another table."""
    damage = OrganisationUnavailable("it cannot be read", "run: precedent org rebuild")
    place = Place(fault=damage)
    guard = place.guard()
    fails(guard)
    while place.now <= REPAIR_AFTER:
        place.now, place.fault = place.now + REST, None
        assert guard.index(7).exists()
        guard.index(7).rarity(["crash"])
        place.fault = damage
        fails(guard)
    assert guard.is_damaged(7)
    assert caplog.text.count("it cannot be read") == 1


def test_writes_are_counted_until_the_next_compaction() -> None:
    guard = Place().guard()
    index = guard.index(7)
    index.upsert([])
    index.delete(1)
    assert (guard.write_count(7), guard.write_count(8)) == (2, 0)
    index.compact()
    assert guard.write_count(7) == 0
