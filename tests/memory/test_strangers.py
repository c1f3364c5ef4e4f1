"""What nobody stands behind but a stranger: for a search as of a moment it is there only while it is open and rare."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.indexed import FOREVER, Entry
from bot.memory.index import FLOOD, Document, Query
from bot.memory.whoosh import WhooshIndex, build, open_index
from bot.model import Kind, ThreadId

START = datetime(2020, 1, 1, tzinfo=UTC)
ASKED = Query({"crash": 1.0})


def at(days: float) -> datetime:
    return START + timedelta(days=days)


def lone(key: ThreadId, closed: float | None = 1, until: datetime | None = FOREVER, author: str = "mona") -> Document:
    state, flips = ("open", ()) if closed is None else ("closed", (at(closed),))
    entry = Entry(key, Kind.ISSUE, "A crash", author, state, START, START, flips=flips, alone_until=until)
    return Document(entry, ["crash"])


def index_of(folder: Path, *documents: Document) -> WhooshIndex:
    build(folder, documents)
    return open_index(folder)


def ids(index: WhooshIndex, before: datetime | None = None) -> list[ThreadId]:
    return [hit.entry.id for hit in index.search(ASKED, before=before)]


def test_what_a_stranger_closed_alone_is_not_there_until_somebody_comes(tmp_path: Path) -> None:
    index = index_of(tmp_path, lone(1, closed=2, until=at(4)), lone(2, closed=2), lone(3, closed=2, until=None))
    assert [ids(index, at(days)) for days in (1, 3, 5)] == [[1, 2, 3], [3], [1, 3]]
    assert ids(index) == [1, 2, 3]


def test_it_is_not_counted_either(tmp_path: Path) -> None:
    other = Document(Entry(9, Kind.ISSUE, "Slow", "octocat", "open", START, START), ["slow"])
    alone, with_it = index_of(tmp_path / "a", other), index_of(tmp_path / "b", other, *map(lone, range(1, 9)))
    asked = ["crash", "slow", "never"]
    assert with_it.rarity(asked, before=at(5)) == alone.rarity(asked, before=at(5))
    assert with_it.rarity(asked) != alone.rarity(asked)


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
