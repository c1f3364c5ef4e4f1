"""What nobody stands behind but a stranger: for a search as of a moment it is there only while it is open and rare."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.digest import FOREVER, IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.index import build_index, open_index
from bot.index.protocol import FLOOD, Index, IndexDocument, Query

START = datetime(2020, 1, 1, tzinfo=UTC)
ASKED = Query({"crash": 1.0})


def at(days: float) -> datetime:
    return START + timedelta(days=days)


def lone(
    key: ThreadId, closed: float | None = 1, until: datetime | None = FOREVER, author: str = "mona"
) -> IndexDocument:
    state, flips = ("open", ()) if closed is None else ("closed", (at(closed),))
    entry = IndexEntry(key, Kind.ISSUE, "A crash", author, state, START, START, flips=flips, unvouched_until=until)
    return IndexDocument(entry, ["crash"])


def index_of(folder: Path, *documents: IndexDocument) -> Index:
    build_index(folder, documents)
    return open_index(folder)


def ids(index: Index, before: datetime | None = None) -> list[ThreadId]:
    return [hit.entry.id for hit in index.search(ASKED, before=before)]


def test_what_a_stranger_closed_alone_is_not_there_until_somebody_comes(tmp_path: Path) -> None:
    index = index_of(tmp_path, lone(1, closed=2, until=at(4)), lone(2, closed=2), lone(3, closed=2, until=None))
    assert [ids(index, at(days)) for days in (1, 3, 5)] == [[1, 2, 3], [3], [1, 3]]
    assert ids(index) == [1, 2, 3]


def test_it_is_not_counted_either(tmp_path: Path) -> None:
    other = IndexDocument(IndexEntry(9, Kind.ISSUE, "Slow", "octocat", "open", START, START), ["slow"])
    alone, with_it = index_of(tmp_path / "a", other), index_of(tmp_path / "b", other, *map(lone, range(1, 9)))
    asked = ["crash", "slow", "never"]
    assert with_it.rarity(asked, before=at(5)) == alone.rarity(asked, before=at(5))
    assert with_it.rarity(asked) != alone.rarity(asked)
    held = [frozenset({"slow"}), frozenset({"crash"})]
    assert with_it.joint_frequency(held, before=at(5)) == alone.joint_frequency(held, before=at(5))
    assert with_it.joint_frequency(held) != alone.joint_frequency(held)


@pytest.mark.parametrize(("count", "there"), [(FLOOD, FLOOD), (FLOOD + 1, 0)])
def test_an_account_with_more_open_ones_than_anybody_has_floods(tmp_path: Path, count: int, there: int) -> None:
    index = index_of(tmp_path, *(lone(n, closed=None, author="Mona" if n % 2 else "mona") for n in range(1, count + 1)))
    index.update([lone(500, closed=None, author="octocat")])
    found = ids(index, at(5))
    assert 500 in found
    assert len(found) == there + 1
    assert len(ids(index)) == count + 1


def test_a_flood_counts_over_all_segments(tmp_path: Path) -> None:
    index = index_of(tmp_path, *(lone(n, closed=None) for n in range(1, FLOOD + 1)))
    assert len(ids(index, at(5))) == FLOOD
    index.update([lone(900, closed=None)])
    assert ids(index, at(5)) == []
    index.update([lone(900, closed=None, until=at(2))])
    assert ids(index, at(5)) == [*range(1, FLOOD + 1), 900]


# A history that tells no roles


def untold(document: IndexDocument) -> IndexDocument:
    """The document of an issue that does not tell what its author is to the repository."""
    return replace(document, has_role=False)


@pytest.mark.parametrize("closed", [None, 2], ids=["open", "closed"])
def test_where_nobody_told_a_role_nobody_is_a_stranger(tmp_path: Path, closed: float | None) -> None:
    keys = range(1, FLOOD + 6)
    index = index_of(tmp_path, *(untold(lone(key, closed=closed)) for key in keys))
    assert ids(index, at(5)) == [*keys]
    assert not any(hit.entry.is_unvouched_at(at(5)) for hit in index.search(ASKED, before=at(5)))
    assert not any(entry.is_unvouched_at(None) for entry in index.entries(keys).values())


def test_the_first_role_that_is_told_makes_strangers_of_those_without_one(tmp_path: Path) -> None:
    index = index_of(tmp_path, *(untold(lone(n, closed=None)) for n in range(1, FLOOD + 2)), untold(lone(99, closed=2)))
    assert len(ids(index, at(5))) == FLOOD + 2
    index.update([lone(500, closed=None, author="octocat")])
    assert ids(index, at(5)) == [500]
    assert all(entry.is_unvouched_at(at(5)) for entry in index.entries([1, 99, 500]).values())
    index.update([], remove=[500])
    assert len(ids(index, at(5))) == FLOOD + 2


@pytest.mark.parametrize("role_of", [Kind.PULL, Kind.PAGE, Kind.SESSION])
def test_only_an_issue_tells_whether_a_history_has_roles(tmp_path: Path, role_of: Kind) -> None:
    other = IndexDocument(IndexEntry(7, role_of, "Other", "octocat", "open", START, START), ["other"])
    assert ids(index_of(tmp_path, untold(lone(1, closed=2)), other), at(5)) == [1]


def test_a_role_that_was_told_later_makes_nobody_a_stranger_before_it(tmp_path: Path) -> None:
    later = IndexDocument(IndexEntry(7, Kind.ISSUE, "Slow", "octocat", "open", at(8), at(8)), ["slow"])
    index = index_of(tmp_path, untold(lone(1, closed=2)), later)
    assert [ids(index, at(days)) for days in (5, 9)] == [[1], []]


@pytest.mark.parametrize(("has_role", "counted"), [(True, 0), (False, 2)])
def test_duplicates_by_the_word_of_one_person_count_where_nobody_is_a_stranger(
    tmp_path: Path, has_role: bool, counted: int
) -> None:
    original = replace(lone(1, closed=None), has_role=has_role)
    held = [replace(lone(key, closed=2), has_role=has_role) for key in (2, 3)]
    copies = [replace(one, entry=replace(one.entry, duplicate_of=1, duplicate_at=at(2))) for one in held]
    index = index_of(tmp_path, original, *copies)
    assert {hit.entry.id: hit.duplicates for hit in index.search(ASKED, before=at(5))}[1] == counted
    assert index.entries([2])[2].duplicate_of_at(at(5)) == (None if has_role else 1)
