"""Issues that nobody vouches for: a search as of a moment finds them only while they are open and no flood."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.digest import FOREVER, IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.index import build_index, open_index
from bot.index.protocol import FLOOD_THRESHOLD, Index, IndexDocument, Query

START = datetime(2020, 1, 1, tzinfo=UTC)
QUERY = Query({"crash": 1.0})


def at(days: float) -> datetime:
    return START + timedelta(days=days)


def unvouched_document(
    key: ThreadId, closed: float | None = 1, until: datetime | None = FOREVER, author: str = "mona"
) -> IndexDocument:
    state, state_changes = ("open", ()) if closed is None else ("closed", (at(closed),))
    entry = IndexEntry(
        key, Kind.ISSUE, "A crash", author, state, START, START, state_changes=state_changes, unvouched_until=until
    )
    return IndexDocument(entry, ["crash"])


def index_of(folder: Path, *documents: IndexDocument) -> Index:
    build_index(folder, documents)
    return open_index(folder)


def ids(index: Index, before: datetime | None = None) -> list[ThreadId]:
    return [hit.entry.id for hit in index.search(QUERY, before=before)]


def test_an_unvouched_closed_issue_is_hidden_until_somebody_else_takes_part(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        unvouched_document(1, closed=2, until=at(4)),
        unvouched_document(2, closed=2),
        unvouched_document(3, closed=2, until=None),
    )
    assert [ids(index, at(days)) for days in (1, 3, 5)] == [[1, 2, 3], [3], [1, 3]]
    assert ids(index) == [1, 2, 3]


def test_hidden_issues_are_not_counted_either(tmp_path: Path) -> None:
    other = IndexDocument(IndexEntry(9, Kind.ISSUE, "Slow", "octocat", "open", START, START), ["slow"])
    without_unvouched, with_unvouched = (
        index_of(tmp_path / "a", other),
        index_of(tmp_path / "b", other, *map(unvouched_document, range(1, 9))),
    )
    terms = ["crash", "slow", "never"]
    assert with_unvouched.rarity(terms, before=at(5)) == without_unvouched.rarity(terms, before=at(5))
    assert with_unvouched.rarity(terms) != without_unvouched.rarity(terms)
    groups = [frozenset({"slow"}), frozenset({"crash"})]
    assert with_unvouched.joint_frequency(groups, before=at(5)) == without_unvouched.joint_frequency(
        groups, before=at(5)
    )
    assert with_unvouched.joint_frequency(groups) != without_unvouched.joint_frequency(groups)


@pytest.mark.parametrize(("count", "expected"), [(FLOOD_THRESHOLD, FLOOD_THRESHOLD), (FLOOD_THRESHOLD + 1, 0)])
def test_too_many_open_issues_of_one_account_count_as_a_flood(tmp_path: Path, count: int, expected: int) -> None:
    index = index_of(
        tmp_path, *(unvouched_document(n, closed=None, author="Mona" if n % 2 else "mona") for n in range(1, count + 1))
    )
    index.update([unvouched_document(500, closed=None, author="octocat")])
    found_ids = ids(index, at(5))
    assert 500 in found_ids
    assert len(found_ids) == expected + 1
    assert len(ids(index)) == count + 1


def test_a_flood_is_counted_over_all_segments(tmp_path: Path) -> None:
    index = index_of(tmp_path, *(unvouched_document(n, closed=None) for n in range(1, FLOOD_THRESHOLD + 1)))
    assert len(ids(index, at(5))) == FLOOD_THRESHOLD
    index.update([unvouched_document(900, closed=None)])
    assert ids(index, at(5)) == []
    index.update([unvouched_document(900, closed=None, until=at(2))])
    assert ids(index, at(5)) == [*range(1, FLOOD_THRESHOLD + 1), 900]


# A history without roles


def without_role(document: IndexDocument) -> IndexDocument:
    """The document of an issue that does not record the role of its author."""
    return replace(document, has_role=False)


@pytest.mark.parametrize("closed", [None, 2], ids=["open", "closed"])
def test_in_a_history_without_roles_no_issue_is_unvouched(tmp_path: Path, closed: float | None) -> None:
    keys = range(1, FLOOD_THRESHOLD + 6)
    index = index_of(tmp_path, *(without_role(unvouched_document(key, closed=closed)) for key in keys))
    assert ids(index, at(5)) == [*keys]
    assert not any(hit.entry.is_unvouched_at(at(5)) for hit in index.search(QUERY, before=at(5)))
    assert not any(entry.is_unvouched_at(None) for entry in index.entries(keys).values())


def test_the_first_known_role_makes_issues_without_one_unvouched(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        *(without_role(unvouched_document(n, closed=None)) for n in range(1, FLOOD_THRESHOLD + 2)),
        without_role(unvouched_document(99, closed=2)),
    )
    assert len(ids(index, at(5))) == FLOOD_THRESHOLD + 2
    index.update([unvouched_document(500, closed=None, author="octocat")])
    assert ids(index, at(5)) == [500]
    assert all(entry.is_unvouched_at(at(5)) for entry in index.entries([1, 99, 500]).values())
    index.update([], remove=[500])
    assert len(ids(index, at(5))) == FLOOD_THRESHOLD + 2


@pytest.mark.parametrize("role_of", [Kind.PULL, Kind.PAGE, Kind.SESSION])
def test_only_issues_show_whether_a_history_has_roles(tmp_path: Path, role_of: Kind) -> None:
    other = IndexDocument(IndexEntry(7, role_of, "Other", "octocat", "open", START, START), ["other"])
    assert ids(index_of(tmp_path, without_role(unvouched_document(1, closed=2)), other), at(5)) == [1]


def test_a_later_role_makes_no_issue_unvouched_before_it(tmp_path: Path) -> None:
    later = IndexDocument(IndexEntry(7, Kind.ISSUE, "Slow", "octocat", "open", at(8), at(8)), ["slow"])
    index = index_of(tmp_path, without_role(unvouched_document(1, closed=2)), later)
    assert [ids(index, at(days)) for days in (5, 9)] == [[1], []]


@pytest.mark.parametrize(("has_role", "counted"), [(True, 0), (False, 2)])
def test_duplicates_stated_by_one_person_count_only_in_a_history_without_roles(
    tmp_path: Path, has_role: bool, counted: int
) -> None:
    original = replace(unvouched_document(1, closed=None), has_role=has_role)
    closed_documents = [replace(unvouched_document(key, closed=2), has_role=has_role) for key in (2, 3)]
    copies = [
        replace(document, entry=replace(document.entry, duplicate_of=1, duplicate_at=at(2)))
        for document in closed_documents
    ]
    index = index_of(tmp_path, original, *copies)
    assert {hit.entry.id: hit.duplicates for hit in index.search(QUERY, before=at(5))}[1] == counted
    assert index.entries([2])[2].duplicate_of_at(at(5)) == (None if has_role else 1)
