"""A glance answers as the memory does that it was filled from, and is brought up to date in parts."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.card import CardLink, card_of, key_of, name_of
from bot.domain.changes import Changes, FixInfo
from bot.domain.thread import Kind, Message, Thread, ThreadId, Tombstone
from bot.errors import WorldError
from bot.index.protocol import Sizes
from bot.index.segment_file import pack, unpack
from bot.local_cache import database as file_module
from bot.local_cache import sync as fill_module
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS, SESSIONS, fact, open_database, writing
from bot.local_cache.sync import fill_cache
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.reading.analyzer import terms
from bot.recall.library import word_query
from tests.examples import examples
from tests.memory.samples import START, at, issue, remember

VOCABULARY = (
    "login", "session", "cookie", "proxy", "postgres", "migration", "snapshot", "import", "tags", "shelf", "archive",
    "worker", "server", "database", "extension", "sqlite3.OperationalError", "store/session.py", "ログイン", "zebra",
)  # fmt: skip


def weights(words: str) -> dict[str, float]:
    return {term: float(count) for term, count in Counter(terms(words)).items()}


def ids(glance: LocalCache, words: str, limit: int = 10) -> list[ThreadId]:
    return [found.card.id for found in glance.search(weights(words), limit=limit)]


def made(path: Path) -> sqlite3.Connection:
    OPENED.append(database := open_database(path, CARDS))
    return database


def glance_of(memory: Memory, path: Path, stamp: str = "1") -> LocalCache:
    database = made(path)
    fill_cache(database, memory, stamp)
    return LocalCache(database)


OPENED: list[Memory | sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """What a test opened is given back."""
    yield
    while OPENED:
        OPENED.pop().close()


def memory_in(folder: Path, *threads: Thread, sizes: Sizes | None = None) -> Memory:
    memory = Memory(FolderStore(folder), repo="octo-org/hello", **({"sizes": sizes} if sizes else {})).open()
    OPENED.append(memory)
    if threads:
        remember(memory, *threads)
    return memory


# What it knows of a thread


def test_an_ending_has_the_release_with_the_fix_as_soon_as_that_is_known(tmp_path: Path) -> None:
    said = Message("octocat", "OWNER", at(1), "Fixed by #9.", 1)
    thread = issue(7, state="closed", closed_at=at(2), closed_by="octocat", comments=(said,))
    memory = memory_in(tmp_path / "store", thread)

    def ending() -> tuple[str, str]:
        told = glance_of(memory, tmp_path / "glance.db").cards([7])[7].ending
        return told.fix, told.release

    fix = FixInfo(7, "#9", at(3), is_pull=True, commit="a" * 40, merged_at=at(1))
    for known, release in ((fix, ""), (replace(fix, looked_at=at(4), release="v1.2.0", released_at=at(4)), "v1.2.0")):
        memory.stage(Changes(fixes=(known,)))
        memory.commit("fix")
        assert ending() == ("#9", release)
    other = replace(fix, ref="#10", looked_at=at(5), release="v9")
    memory.stage(Changes(fixes=(other,)))
    memory.commit("another fix than the ending names")
    assert ending() == ("#9", "")


def test_an_ending_names_no_fix_that_is_known_to_be_none(tmp_path: Path) -> None:
    said = Message("octocat", "OWNER", at(1), "Fixed by #9.", 1)
    ended = {"state": "closed", "closed_at": at(2), "closed_by": "octocat"}
    stranger = replace(said, role="NONE", author="hubot")
    threads = (issue(7, comments=(said,), **ended), issue(8, comments=(stranger,), **ended))
    store = tmp_path / "store"

    def told(*more: Thread, fix: FixInfo | None = None) -> list[tuple[str, str]]:
        memory = memory_in(store, *threads, *more)
        memory.stage(Changes(fixes=(fix,) if fix else ()))
        memory.commit("known")
        glance = glance_of(memory, tmp_path / "glance.db")
        links = {link.source: link.kind for link in glance.links([9])}
        return [(glance.cards([key])[key].ending.kind, links.get(key, "")) for key in (7, 8)]

    assert told() == [("fixed", "fix"), ("unknown", "reference")]
    pull = issue(9, kind=Kind.PULL)
    for none in (issue(9), pull, replace(pull, state="closed", closed_at=at(3))):
        assert told(none) == [("unknown", "reference"), ("unknown", "reference")]
    merged = replace(pull, state="closed", closed_at=at(4), updated_at=at(4), merged_at=at(4))
    assert told(merged)[0] == ("fixed", "fix")
    assert told()[1][0] == "fixed"
    store = tmp_path / "another store"
    assert told(fix=FixInfo(7, "#9", at(9), refuted=True))[0] == ("unknown", "reference")
    assert told(fix=FixInfo(8, "#9", at(9), is_pull=True, commit="a" * 40, merged_at=at(3)))[1] == ("fixed", "fix")


# It answers as the memory does


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=12), limit=st.integers(1, 80))
def test_a_search_gives_the_same_threads_scores_and_order_as_the_index(
    memory: Memory, glance: LocalCache, words: list[str], limit: int
) -> None:
    asked = " ".join(words)
    hits = memory.search(word_query(asked), limit=limit)
    found = glance.search(weights(asked), limit=limit)
    assert [(one.card.id, one.score) for one in found] == [(hit.entry.id, hit.score) for hit in hits]
    assert [set(one.terms) for one in found if len(one.terms) <= 8] == [
        set(hit.terms) for hit, one in zip(hits, found, strict=True) if len(one.terms) <= 8
    ]


@pytest.mark.slow
def test_the_answers_are_the_same_where_the_index_has_many_segments_and_deleted_threads(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store")
    for step in range(4):
        remember(memory, *(issue(step * 200 + n + 1, step, f"cookie number {n} of the proxy") for n in range(200)))
    remember(memory, Tombstone(5, at(50)), issue(7, 60, "nothing of the kind"), issue(33, 61, "cookie cookie"))
    glance = glance_of(memory, tmp_path / "glance.db")
    for asked in ("cookie", "proxy number", "cookie proxy fennel", "kind"):
        hits = memory.search(word_query(asked), limit=900)
        assert [(one.card.id, one.score) for one in glance.search(weights(asked), limit=900)] == [
            (hit.entry.id, hit.score) for hit in hits
        ]
    assert len(memory.index.segments()) > 1


def test_large_segments_lie_in_parts_and_are_read_whole(tmp_path: Path) -> None:
    threads = [issue(n + 1, 0, f"cookie of proxy {n % 7}") for n in range(60)]
    memory = memory_in(tmp_path / "store", *threads, sizes=Sizes(documents=20))
    memory.rebuild_index()
    memory.commit("parts")
    glance = glance_of(memory, tmp_path / "glance.db")
    hits = memory.search(word_query("proxy elder"), limit=60)
    assert [(one.card.id, one.score) for one in glance.search(weights("proxy elder"), limit=60)] == [
        (hit.entry.id, hit.score) for hit in hits
    ]


@given(
    documents=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50, unique=True).map(sorted),
    data=st.data(),
)
def test_a_posting_list_is_the_same_after_packing(documents: list[int], data: st.DataObject) -> None:
    from array import array

    levels = bytes(data.draw(st.lists(st.integers(1, 31), min_size=len(documents), max_size=len(documents))))
    assert unpack(pack(array("I", documents), levels)) == (documents, levels)


@given(st.binary(max_size=60))
def test_a_posting_list_of_any_bytes_is_a_list_or_an_error(data: bytes) -> None:
    try:
        documents, levels = unpack(data)
    except (ValueError, KeyError, IndexError):
        return
    assert len(documents) == len(levels) > 0


# What is asked of it


def test_what_holds_less_than_the_floor_is_left_out(glance: LocalCache) -> None:
    every = glance.search(weights("login loop cookie"), limit=50)
    some = glance.search(weights("login loop cookie"), limit=50, floor=0.5)
    assert some == [one for one in every if one.part >= 0.5]
    assert 0 < len(some) < len(every)
    assert all(0 < one.part <= 1.0000001 for one in every)


def test_words_that_no_thread_has_count_against_what_holds_the_others(glance: LocalCache) -> None:
    alone = glance.search(weights("cookie"), limit=1)[0]
    beside = glance.search(weights("cookie zyxwvut qwertz"), limit=1)[0]
    assert (alone.part, beside.part < 0.5) == (1.0, True)


def test_threads_are_left_out_until_enough_are_kept(glance: LocalCache) -> None:
    is_open = glance.search(weights("the session of a proxy"), limit=3, keep=lambda card: card.state == "open")
    assert [found.card.state for found in is_open] == ["open"] * len(is_open)
    assert is_open[0].card.id == 51


def test_a_search_for_nothing_finds_nothing(glance: LocalCache) -> None:
    assert glance.search({}, limit=5) == glance.search({"cooki": 0.0}, limit=5) == []


def test_a_file_is_found_by_any_end_of_its_path(glance: LocalCache) -> None:
    assert set(glance.file_mentions("linkbarn/store/session.py")) == {14, 17}
    assert (
        glance.file_mentions("session.py")
        == glance.file_mentions("store\\Session.py")
        == glance.file_mentions("./store/session.py")
    )
    assert (
        glance.file_mentions("other/session.py") == glance.file_mentions("") == glance.file_mentions("ession.py") == {}
    )
    assert set(glance.file_mentions("srv/app/linkbarn/store/session.py")) == {14, 17}


def test_links_lead_both_ways_and_the_strongest_kind_is_told(glance: LocalCache) -> None:
    links = glance.links([48])
    assert CardLink(49, 48, "duplicate") in links
    assert CardLink(48, 50, "fix") in links
    assert CardLink(51, 48, "reference") in links
    assert len({(link.source, link.target) for link in links}) == len(links)


def test_the_newest_decisions_come_first(glance: LocalCache) -> None:
    found = glance.recently_decided(5)
    newest = [max(ruling.at for ruling in card.decisions if ruling.at) for card in found]
    assert newest == sorted(newest, reverse=True)
    assert len(found) == 5


def test_what_changed_since_a_moment_is_told_newest_first(memory: Memory, glance: LocalCache) -> None:
    since = datetime(2026, 9, 1, tzinfo=UTC)
    found = [card.id for card in glance.updated_since(since)]
    threads = {key: one for key, one in memory.records(range(1, 74)).items() if isinstance(one, Thread)}
    assert set(found) == {key for key, thread in threads.items() if thread.revised_at >= since}
    assert [threads[int(key)].revised_at for key in found] == sorted(
        (threads[int(key)].revised_at for key in found), reverse=True
    )


def test_the_messages_of_all_threads_are_counted(memory: Memory, glance: LocalCache) -> None:
    threads = [one for one in memory.records(range(1, 74)).values() if isinstance(one, Thread)]
    assert glance.turn_count == sum(1 + len(thread.comments) for thread in threads) == 250


@pytest.mark.parametrize("count", ["NaN", '"x"', "1e999", "-5", "null", "[1]", "{", str(2**70)])
def test_no_digest_breaks_the_count_of_messages(tmp_path: Path, count: str) -> None:
    database = made(tmp_path / "glance.db")
    rows = [(str(key), "", f'{{"turn_count": {told}}}', "", "") for key, told in enumerate((count, "3"))]
    database.executemany("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", rows)
    assert 4 <= LocalCache(database).turn_count <= 1_000_003


def test_names_of_digits_and_numbers_are_two_threads(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(7, 0, "zebra"), issue("7", 0, "zebra"), issue("docs/ä #1", 0, "zebra"))
    glance = glance_of(memory, tmp_path / "glance.db")
    assert {(one.card.id, type(one.card.id)) for one in glance.search(weights("zebra"), limit=9)} == {
        (7, int),
        ("7", str),
        ("docs/ä #1", str),
    }
    assert set(glance.cards([7, "7", 8])) == {7, "7"}
    assert [key_of(name_of(key)) for key in (7, "7", "#7", "=7")] == [7, "7", "#7", "=7"]


# It is brought up to date


@pytest.mark.slow
def test_only_what_changed_is_read_again_and_it_is_as_if_made_anew(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", *(issue(n, 0, f"cookie {n} in auth/f{n}.py see #1") for n in range(1, 250)))
    first = glance_of(memory, tmp_path / "glance.db")
    first.close()
    remember(memory, issue(5, 9, "zebra in auth/new.py"), Tombstone(240, at(9)), issue(300, 9, "zebra"))
    ticks: list[int] = []
    database = made(tmp_path / "glance.db")
    database.execute("UPDATE threads SET digest = '{}' WHERE id = '#150'")  # of a shard that did not change: it stays
    fill_cache(database, memory, "2", ticks.append)
    kept = LocalCache(database)
    fresh = glance_of(memory, tmp_path / "fresh.db")
    assert kept.fact("stamp") == "2"
    assert (kept.size, fresh.size) == (249, 249)
    assert kept.cards([150]) == {}
    assert set(fresh.cards([5, 240, 300])) == set(kept.cards([5, 240, 300])) == {5, 300}
    for path in ("auth/new.py", "auth/f5.py", "auth/f240.py", "auth/f6.py"):
        assert kept.file_mentions(path) == fresh.file_mentions(path)
    assert sorted(kept.links([1])) == sorted(fresh.links([1]))
    for asked in ("zebra", "cookie", "revision"):
        assert [(f.card.id, f.score) for f in kept.search(weights(asked), limit=400)] == [
            (f.card.id, f.score) for f in fresh.search(weights(asked), limit=400) if f.card.id != 150
        ]
    tables = ("segments", "postings", "documents", "files", "links", "shards")
    for table in tables:
        rows = [glance._database.execute(f"SELECT count(*) FROM {table}").fetchone() for glance in (kept, fresh)]
        assert rows[0] == rows[1], table
    assert ticks


def test_a_reading_that_is_cut_off_leaves_what_was_there(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"))
    glance_of(memory, tmp_path / "glance.db").close()
    remember(memory, issue(2, 0, "zebra"))

    def dies(_: int) -> None:
        raise KeyboardInterrupt

    database = made(tmp_path / "glance.db")
    with pytest.raises(KeyboardInterrupt):
        fill_cache(database, memory, "2", dies)
    glance = LocalCache(database)
    assert (glance.size, glance.fact("stamp"), ids(glance, "zebra")) == (1, "1", [1])


def test_who_reads_while_another_writes_sees_what_was_there(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"))
    glance_of(memory, tmp_path / "glance.db").close()
    reader = LocalCache(made(tmp_path / "glance.db"))
    writer = made(tmp_path / "glance.db")
    with writing(writer):
        writer.execute("DELETE FROM threads")
        assert reader.size == 1


# What is no glance is made anew


@pytest.mark.parametrize("data", [b"", b"not a database at all" * 100, b"SQLite format 3\0" + bytes(4000)])
def test_a_file_that_is_no_glance_is_made_anew(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "glance.db"
    path.write_bytes(data)
    database = made(path)
    assert (LocalCache(database).size, fact(database, "stamp")) == (0, "")


def test_a_glance_of_another_format_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "glance.db"
    old = open_database(path, SESSIONS)
    old.execute("INSERT INTO facts VALUES ('stamp', 'x')")
    old.close()
    assert (LocalCache(made(path)).size, fact(made(path), "stamp")) == (0, "")


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    made(tmp_path / "new/glance.db").close()
    assert stat.S_IMODE((tmp_path / "new/glance.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_where_nothing_can_be_written_the_remedy_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldError, match="XDG_CACHE_HOME"):
        made(tmp_path / "file/glance.db")


def test_a_glance_that_somebody_else_has_is_neither_damaged_nor_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "glance.db"
    other = made(path)
    other.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(file_module, "LOCK_TIMEOUT", 0.2)
    before = path.stat().st_ino
    with pytest.raises(WorldError, match="try again"):
        made(path)
    assert path.stat().st_ino == before


def test_a_digest_where_it_does_not_belong_counts_for_nothing(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"), issue(950, 0, "zebra"))
    shards = dict(memory.state.base.digest_shards())
    spoof = shards["digests/0000.jsonl"].replace(b"fails", b"SPOOF")
    store = FolderStore(tmp_path / "store")
    store.write(store.open(), {"digests/0009.jsonl": shards["digests/0009.jsonl"] + spoof}, "spoof")
    spoofed = Memory(FolderStore(tmp_path / "store")).open()
    glance = glance_of(spoofed, tmp_path / "glance.db")
    assert "SPOOF" not in glance.cards([1])[1].title
    assert set(glance.cards([1, 950])) == {1, 950}


@pytest.mark.parametrize("field", ["duplicate_of", "title", "files"])
def test_a_digest_with_half_a_character_in_it_stops_nothing(tmp_path: Path, field: str) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"), issue(2, 0, "zebra"))
    lines = [json.loads(line) for line in dict(memory.state.base.digest_shards())["digests/0000.jsonl"].splitlines()]
    lines[0][field] = ["\ud800"] if field == "files" else "\ud800"
    store = FolderStore(tmp_path / "store")
    store.write(store.open(), {"digests/0000.jsonl": "".join(json.dumps(one) + "\n" for one in lines).encode()}, "x")
    glance = glance_of(Memory(FolderStore(tmp_path / "store")).open(), tmp_path / "glance.db")
    assert set(glance.cards([1, 2])) == {1, 2}


@pytest.mark.parametrize(("documents", "levels"), [([0], b"\xc8"), ([0, 0], b"\1\1"), ([3, 1], b"\1\1"), ([0], b"")])
def test_a_list_that_no_index_of_ours_has_is_refused(documents: list[int], levels: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        fill_module._pack_postings(documents, levels)


# Cards


def test_a_card_tells_what_the_digest_does(glance: LocalCache) -> None:
    card = glance.cards([48])[48]
    assert (card.kind, card.state, card.title) == ("issue", "closed", "Login loop after the upgrade to 2.2")
    assert (card.ending.kind, card.ending.fix) == ("fixed", "#50")
    assert card.decisions[0].text
    assert card.created_at.tzinfo is not None


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    ["id", "kind", "title", "author", "created_at", "updated_at", "state", "labels", "summary", "files", "decisions",
     "outcome", "references", "duplicate_of", "turn_count", "keywords"]
)  # fmt: skip


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(FIELDS, Json, max_size=6))
def test_a_digest_of_any_shape_is_a_card_or_nothing(fields: dict[str, object]) -> None:
    line = json.dumps({"id": 1, "created_at": "2026-01-01T00:00:00Z"} | fields)
    card = card_of(line)
    assert card is None or json.dumps([card.title, card.files, card.labels]).encode()


@pytest.mark.parametrize("line", ["", "[", "[" * 100_000, "null", "3", '{"id": 1}', '{"id": true, "created_at": "x"}'])
def test_a_damaged_digest_is_no_card(line: str) -> None:
    assert card_of(line) is None


def test_every_field_of_a_thread_arrives_on_its_card(tmp_path: Path) -> None:
    said = Message("hubot", "MEMBER", START + timedelta(days=1), "We decided to use zebras. Fixed by #8.")
    thread = replace(
        issue(3, 0, "See #4 and octocat/other#5, in src/zoo.py"),
        kind=Kind.PULL, state="closed", closed_at=START + timedelta(days=2), state_reason="completed",
        labels=("bug",), comments=(said,),
    )  # fmt: skip
    card = glance_of(memory_in(tmp_path / "store", thread), tmp_path / "glance.db").cards([3])[3]
    assert (card.kind, card.state, card.state_reason, card.labels) == ("pull", "closed", "completed", ("bug",))
    assert (card.references, card.files, card.turn_count) == ((4, 8), ("src/zoo.py",), 2)
    assert [(ruling.text, ruling.author) for ruling in card.decisions] == [("We decided to use zebras.", "hubot")]
    assert card.ending.fix == "#8"


def test_an_empty_memory_is_an_empty_glance(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store")
    memory.stage(Changes())
    glance = glance_of(memory, tmp_path / "glance.db")
    assert (glance.size, ids(glance, "zebra"), glance.recently_decided(3), glance.links([1])) == (0, [], [], [])
