"""A search over many repositories: what counts as a hit, how far it searches, and how it names other repositories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.organisation import FoundThread, OrganisationThread
from bot.domain.thread import Outcome
from bot.questions.fields import ORGANISATION_FIELDS, row_of
from bot.questions.organisation import organisation_items, search_organisation
from bot.questions.requests import SearchFilter, WordSearch
from bot.questions.views import ending
from bot.reading.analyzer import terms
from bot.reading.search_query import search_query
from bot.recall.candidates import OrganisationUnavailable

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = {1: "octo-org/sdk", 2: "octo-org/app"}


class InMemoryIndex:
    """An index in memory; ``limits`` has the limits of its searches; those beyond ``longest`` take too long."""

    def __init__(self, *threads: OrganisationThread, longest: int = 100_000) -> None:
        self.threads, self.limits, self.longest = threads, list[int](), longest

    def exists(self) -> bool:
        return True

    def search(
        self, words: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        self.limits.append(limit)
        if limit > self.longest:
            raise OrganisationUnavailable("it did not answer")
        matches = [
            (sum(map(thread.terms.count, words)), thread) for thread in self.threads if thread.repository in scope
        ]
        results = [
            FoundThread(thread, float(n))
            for n, thread in matches
            if n and (before is None or thread.created_at < before)
        ]
        return sorted(results, key=lambda thread: -thread.score)[:limit]

    def rarity(self, words: Iterable[str]) -> Mapping[str, float]:
        counts = {word: sum(word in thread.terms for thread in self.threads) for word in words}
        return {word: 1 / max(1, count) for word, count in counts.items()}

    def upsert(self, threads: Sequence[OrganisationThread]) -> None: ...

    def delete(self, repository: int, ids: Collection[int | str] | None = None) -> None: ...

    def rebuild(self, threads: Iterable[OrganisationThread]) -> None: ...

    def compact(self, *, purges: bool = False) -> None: ...


def thread(number: int | str, title: str, repository: int = 1, **fields: object) -> OrganisationThread:
    base = OrganisationThread(
        repository, number, 1, "old/name", Kind.ISSUE, title, "octocat", NOW, terms=tuple(terms(title))
    )
    return replace(base, **fields)


def request(words: str, **choice: object) -> WordSearch:
    return WordSearch(words, SearchFilter()._replace(**choice), 3, query=search_query(words, NOW))


def test_a_hit_has_half_of_the_words_weighted_by_rarity() -> None:
    common = [thread(number, "proxy fails") for number in range(1, 9)]
    index = InMemoryIndex(*common, thread(9, "zebrafinch"), thread(10, "proxy zebrafinch", repository=7))
    hits = search_organisation(request("proxy zebrafinch"), index, NAMES).found
    assert [hit.card.id for hit in hits] == ["octo-org/sdk#9"]
    assert hits[0].part == pytest.approx((1 / 2) / (1 / 2 + 1 / 9))
    assert hits[0].terms == ("zebrafinch",)
    assert search_organisation(request("proxy quagga"), index, NAMES).found == ()  # which no thread has


def test_results_remain_when_a_wider_search_takes_too_long() -> None:
    threads = [thread(number, "proxy", author="hubot" if number == 9 else "me") for number in range(1, 1_001)]
    index = InMemoryIndex(*threads, longest=200)
    hits = search_organisation(request("proxy", author="hubot"), index, NAMES)
    assert [hit.thread.id for hit in hits.found] == [9]
    assert hits.notes == ("Only the best 200 threads were searched: try rarer words.",)
    index.longest = 0
    with pytest.raises(OrganisationUnavailable):
        search_organisation(request("proxy"), index, NAMES)


def test_a_search_widens_when_filters_leave_too_few_hits() -> None:
    index = InMemoryIndex(
        *(thread(number, "proxy") for number in range(1, 1_001)), thread(2_000, "proxy", author="hubot")
    )
    assert len(search_organisation(request("proxy"), index, NAMES).found) == 3
    assert index.limits == [200]
    (hit,) = search_organisation(request("proxy", author="hubot"), index, NAMES).found
    assert hit.thread.id == 2_000
    assert index.limits == [200, 200, 2_000]


def test_a_hit_has_the_current_name_of_its_repository() -> None:
    sha = "0d0e0ed056a45781a1b2c3d4e5f60718293a4b5c"
    closed = {"closed_at": NOW + timedelta(days=1), "url": "https://github.com/octo-org/sdk/issues/1"}
    fixed = Outcome(OutcomeKind.FIXED, fix="#13", release="v2")
    index = InMemoryIndex(
        thread(1, "proxy", outcome=fixed, **closed),
        thread(2, "proxy", outcome=replace(fixed, fix=sha), **closed),
        thread(3, "proxy", 2, outcome=replace(fixed, fix="other/place#4"), **closed),
    )
    hits = search_organisation(request("proxy"), index, NAMES).found
    assert [ending(hit.card) for hit in hits] == [
        "closed, fixed by octo-org/sdk#13 in v2",
        "closed, fixed by octo-org/sdk@0d0e0ed056 in v2",
        "closed, fixed by other/place#4 in v2",
    ]
    row = row_of(ORGANISATION_FIELDS, organisation_items(hits, "proxy")[0])
    assert (row["id"], row["cite"], row["repository"]) == (1, "octo-org/sdk#1", "octo-org/sdk")
    assert row["url"] == closed["url"]
    copy = thread("ABC-1", "proxy", outcome=Outcome(OutcomeKind.DUPLICATE, duplicate_of=12), **closed)
    (hit,) = search_organisation(request("proxy"), InMemoryIndex(copy), NAMES).found
    assert (hit.card.id, ending(hit.card)) == ("octo-org/sdk ABC-1", "closed, duplicate of octo-org/sdk#12")


def test_since_means_opened_or_closed_since_then() -> None:
    index = InMemoryIndex(thread(1, "proxy"), thread(2, "proxy", closed_at=NOW + timedelta(days=9)))
    hits = search_organisation(request("proxy", since=NOW + timedelta(days=5)), index, NAMES).found
    assert [hit.thread.id for hit in hits] == [2]
