"""The local cache answers like the memory it was filled from, and is updated in parts."""

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
from bot.index.segment_file import pack, unpack
from bot.local_cache import sync as sync_module
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS_SCHEMA, SESSIONS_SCHEMA, fact, open_database, writing
from bot.local_cache.local_memory import CACHE_FILE, FETCHED_FILE
from bot.local_cache.sync import fill_cache
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.reading.analyzer import ANALYSER_VERSION, terms
from tests.examples import examples
from tests.index.word_query import word_query
from tests.memory.samples import START, at, issue, remember

VOCABULARY = (
    "login", "session", "cookie", "proxy", "postgres", "migration", "snapshot", "import", "tags", "shelf", "archive",
    "worker", "server", "database", "extension", "sqlite3.OperationalError", "store/session.py", "ログイン", "zebra",
)  # fmt: skip


def weights(words: str) -> dict[str, float]:
    return {term: float(count) for term, count in Counter(terms(words)).items()}


def ids(local_cache: LocalCache, words: str, limit: int = 10) -> list[ThreadId]:
    return [hit.card.id for hit in local_cache.search(weights(words), limit=limit)]


def open_cache_database(path: Path) -> sqlite3.Connection:
    OPENED.append(database := open_database(path, CARDS_SCHEMA))
    return database


def cache_of(memory: Memory, path: Path, stamp: str = "1") -> LocalCache:
    database = open_cache_database(path)
    fill_cache(database, memory, stamp)
    return LocalCache(database)


OPENED: list[Memory | sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def close_opened() -> Iterator[None]:
    """Close what a test opened."""
    yield
    while OPENED:
        OPENED.pop().close()


def memory_in(folder: Path, *threads: Thread) -> Memory:
    memory = Memory(FolderStore(folder), repo="octo-org/hello").open()
    OPENED.append(memory)
    if threads:
        remember(memory, *threads)
    return memory


# Facts about a thread


def test_an_ending_has_the_release_of_its_fix_as_soon_as_it_is_known(tmp_path: Path) -> None:
    comment = Message("octocat", "OWNER", at(1), "Fixed by #9.", 1)
    thread = issue(7, state="closed", closed_at=at(2), closed_by="octocat", comments=(comment,))
    memory = memory_in(tmp_path / "store", thread)

    def ending() -> tuple[str, str]:
        card_ending = cache_of(memory, tmp_path / "glance.db").cards([7])[7].ending
        return card_ending.fix, card_ending.release

    fix = FixInfo(7, "#9", at(3), is_pull=True, commit="a" * 40, merged_at=at(1))
    for fix_info, release in (
        (fix, ""),
        (replace(fix, looked_at=at(4), release="v1.2.0", released_at=at(4)), "v1.2.0"),
    ):
        memory.stage(Changes(fixes=(fix_info,)))
        memory.commit("fix")
        assert ending() == ("#9", release)
    other = replace(fix, ref="#10", looked_at=at(5), release="v9")
    memory.stage(Changes(fixes=(other,)))
    memory.commit("another fix than the ending names")
    assert ending() == ("#9", "")


def test_an_ending_names_no_fix_that_turned_out_to_be_none(tmp_path: Path) -> None:
    comment = Message("octocat", "OWNER", at(1), "Fixed by #9.", 1)
    ended = {"state": "closed", "closed_at": at(2), "closed_by": "octocat"}
    stranger = replace(comment, role="NONE", author="hubot")
    threads = (issue(7, comments=(comment,), **ended), issue(8, comments=(stranger,), **ended))
    store = tmp_path / "store"

    def endings_and_links(*extra_threads: Thread, fix: FixInfo | None = None) -> list[tuple[str, str]]:
        memory = memory_in(store, *threads, *extra_threads)
        memory.stage(Changes(fixes=(fix,) if fix else ()))
        memory.commit("known")
        local_cache = cache_of(memory, tmp_path / "glance.db")
        links = {link.source: link.kind for link in local_cache.links([9])}
        return [(local_cache.cards([key])[key].ending.kind, links.get(key, "")) for key in (7, 8)]

    assert endings_and_links() == [("fixed", "fix"), ("unknown", "reference")]
    pull = issue(9, kind=Kind.PULL)
    for unmerged in (issue(9), pull, replace(pull, state="closed", closed_at=at(3))):
        assert endings_and_links(unmerged) == [("unknown", "reference"), ("unknown", "reference")]
    merged = replace(pull, state="closed", closed_at=at(4), updated_at=at(4), merged_at=at(4))
    assert endings_and_links(merged) == [("fixed", "fix"), ("unknown", "reference")], "it does not say that it closes 8"
    store = tmp_path / "a store with a change that closes both"
    assert endings_and_links(replace(merged, body="Fixes #7 and fixes #8."))[1][0] == "fixed"
    store = tmp_path / "another store"
    assert endings_and_links(fix=FixInfo(7, "#9", at(9), refuted=True))[0] == ("unknown", "reference")
    assert endings_and_links(
        fix=FixInfo(8, "#9", at(9), is_pull=True, commit="a" * 40, merged_at=at(3), closed_by="#9")
    )[1] == (
        "fixed",
        "fix",
    )


# Answers like those of the memory


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=12), limit=st.integers(1, 80))
def test_a_search_gives_the_same_threads_scores_and_order_as_the_index(
    memory: Memory, local_cache: LocalCache, words: list[str], limit: int
) -> None:
    query = " ".join(words)
    hits = memory.search(word_query(query), limit=limit)
    cached_hits = local_cache.search(weights(query), limit=limit)
    assert [(cached.card.id, cached.score) for cached in cached_hits] == [(hit.entry.id, hit.score) for hit in hits]
    assert [set(cached.terms) for cached in cached_hits if len(cached.terms) <= 8] == [
        set(hit.terms) for hit, cached in zip(hits, cached_hits, strict=True) if len(cached.terms) <= 8
    ]


@pytest.mark.slow
def test_answers_are_the_same_with_many_segments_and_deleted_threads(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store")
    for step in range(4):
        remember(memory, *(issue(step * 200 + n + 1, step, f"cookie number {n} of the proxy") for n in range(200)))
    remember(memory, Tombstone(5, at(50)), issue(7, 60, "nothing of the kind"), issue(33, 61, "cookie cookie"))
    local_cache = cache_of(memory, tmp_path / "glance.db")
    for query in ("cookie", "proxy number", "cookie proxy fennel", "kind"):
        hits = memory.search(word_query(query), limit=900)
        assert [(hit.card.id, hit.score) for hit in local_cache.search(weights(query), limit=900)] == [
            (hit.entry.id, hit.score) for hit in hits
        ]
    assert len(memory.index.segments()) > 1


@given(
    documents=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50, unique=True).map(sorted),
    data=st.data(),
)
def test_a_posting_list_is_the_same_after_packing(documents: list[int], data: st.DataObject) -> None:
    from array import array

    levels = bytes(data.draw(st.lists(st.integers(1, 31), min_size=len(documents), max_size=len(documents))))
    assert unpack(pack(array("I", documents), levels)) == (documents, levels)


@given(
    st.binary(max_size=60)
    | st.builds(lambda width, rest: bytes((width,)) + rest, st.sampled_from([1, 2, 4]), st.binary(max_size=60))
)
def test_any_bytes_are_read_as_a_posting_list_or_raise_an_error(data: bytes) -> None:
    try:
        documents, levels = unpack(data)
    except (ValueError, KeyError, IndexError):
        return
    assert len(documents) == len(levels) > 0


# Queries


def test_words_that_no_thread_has_lower_the_share_of_the_others(local_cache: LocalCache) -> None:
    alone = local_cache.search(weights("cookie"), limit=1)[0]
    beside = local_cache.search(weights("cookie zyxwvut qwertz"), limit=1)[0]
    assert (alone.part, beside.part < 0.5) == (1.0, True)


def test_a_search_for_nothing_finds_nothing(local_cache: LocalCache) -> None:
    assert local_cache.search({}, limit=5) == local_cache.search({"cooki": 0.0}, limit=5) == []


def test_a_file_is_found_by_any_end_of_its_path(local_cache: LocalCache) -> None:
    assert set(local_cache.file_mentions("linkbarn/store/session.py")) == {14, 17}
    assert (
        local_cache.file_mentions("session.py")
        == local_cache.file_mentions("store\\Session.py")
        == local_cache.file_mentions("./store/session.py")
    )
    assert (
        local_cache.file_mentions("other/session.py")
        == local_cache.file_mentions("")
        == local_cache.file_mentions("ession.py")
        == {}
    )
    assert set(local_cache.file_mentions("srv/app/linkbarn/store/session.py")) == {14, 17}


def test_links_lead_both_ways_and_have_their_strongest_kind(local_cache: LocalCache) -> None:
    links = local_cache.links([48])
    assert CardLink(49, 48, "duplicate") in links
    assert CardLink(48, 50, "fix") in links
    assert CardLink(51, 48, "reference") in links
    assert len({(link.source, link.target) for link in links}) == len(links)


def test_the_newest_decisions_come_first(local_cache: LocalCache) -> None:
    cards = local_cache.recently_decided(5)
    newest = [max(ruling.at for ruling in card.decisions if ruling.at) for card in cards]
    assert newest == sorted(newest, reverse=True)
    assert len(cards) == 5


def test_threads_that_changed_since_a_moment_come_newest_first(memory: Memory, local_cache: LocalCache) -> None:
    since = datetime(2026, 9, 1, tzinfo=UTC)
    keys = [card.id for card in local_cache.updated_since(since)]
    threads = {key: record for key, record in memory.records(range(1, 74)).items() if isinstance(record, Thread)}
    assert set(keys) == {key for key, thread in threads.items() if thread.revised_at >= since}
    assert [threads[int(key)].revised_at for key in keys] == sorted(
        (threads[int(key)].revised_at for key in keys), reverse=True
    )


def test_the_messages_of_all_threads_are_counted(memory: Memory, local_cache: LocalCache) -> None:
    threads = [record for record in memory.records(range(1, 74)).values() if isinstance(record, Thread)]
    assert local_cache.turn_count == sum(1 + len(thread.comments) for thread in threads) == 250


@pytest.mark.parametrize("count", ["NaN", '"x"', "1e999", "-5", "null", "[1]", "{", str(2**70)])
def test_no_digest_breaks_the_count_of_messages(tmp_path: Path, count: str) -> None:
    database = open_cache_database(tmp_path / "glance.db")
    rows = [(str(key), "", f'{{"turn_count": {turn_count}}}', "", "") for key, turn_count in enumerate((count, "3"))]
    database.executemany("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", rows)
    assert 4 <= LocalCache(database).turn_count <= 1_000_003


def test_a_number_and_a_string_of_its_digits_are_two_threads(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(7, 0, "zebra"), issue("7", 0, "zebra"), issue("docs/ä #1", 0, "zebra"))
    local_cache = cache_of(memory, tmp_path / "glance.db")
    assert {(hit.card.id, type(hit.card.id)) for hit in local_cache.search(weights("zebra"), limit=9)} == {
        (7, int),
        ("7", str),
        ("docs/ä #1", str),
    }
    assert set(local_cache.cards([7, "7", 8])) == {7, "7"}
    assert [key_of(name_of(key)) for key in (7, "7", "#7", "=7")] == [7, "7", "#7", "=7"]


# Updates


@pytest.mark.slow
def test_an_update_reads_only_changes_and_equals_a_fresh_cache(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", *(issue(n, 0, f"cookie {n} in auth/f{n}.py see #1") for n in range(1, 250)))
    first = cache_of(memory, tmp_path / "glance.db")
    first.close()
    remember(memory, issue(5, 9, "zebra in auth/new.py"), Tombstone(240, at(9)), issue(300, 9, "zebra"))
    ticks: list[int] = []
    database = open_cache_database(tmp_path / "glance.db")
    database.execute("UPDATE threads SET digest = '{}' WHERE id = '#150'")  # in an unchanged shard, so it stays
    fill_cache(database, memory, "2", ticks.append)
    updated = LocalCache(database)
    fresh = cache_of(memory, tmp_path / "fresh.db")
    assert updated.fact("stamp") == "2"
    assert (updated.size, fresh.size) == (249, 249)
    assert updated.cards([150]) == {}
    assert set(fresh.cards([5, 240, 300])) == set(updated.cards([5, 240, 300])) == {5, 300}
    for path in ("auth/new.py", "auth/f5.py", "auth/f240.py", "auth/f6.py"):
        assert updated.file_mentions(path) == fresh.file_mentions(path)
    assert sorted(updated.links([1])) == sorted(fresh.links([1]))
    for query in ("zebra", "cookie", "revision"):
        assert [(f.card.id, f.score) for f in updated.search(weights(query), limit=400)] == [
            (f.card.id, f.score) for f in fresh.search(weights(query), limit=400) if f.card.id != 150
        ]
    tables = ("segments", "postings", "documents", "files", "links", "shards")
    for table in tables:
        rows = [
            local_cache._database.execute(f"SELECT count(*) FROM {table}").fetchone()
            for local_cache in (updated, fresh)
        ]
        assert rows[0] == rows[1], table
    assert ticks


def test_an_interrupted_update_changes_nothing(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"))
    cache_of(memory, tmp_path / "glance.db").close()
    remember(memory, issue(2, 0, "zebra"))

    def dies(_: int) -> None:
        raise KeyboardInterrupt

    database = open_cache_database(tmp_path / "glance.db")
    with pytest.raises(KeyboardInterrupt):
        fill_cache(database, memory, "2", dies)
    local_cache = LocalCache(database)
    assert (local_cache.size, local_cache.fact("stamp"), ids(local_cache, "zebra")) == (1, "1", [1])


def test_a_reader_sees_the_old_state_while_another_connection_writes(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"))
    cache_of(memory, tmp_path / "glance.db").close()
    reader = LocalCache(open_cache_database(tmp_path / "glance.db"))
    writer = open_cache_database(tmp_path / "glance.db")
    with writing(writer):
        writer.execute("DELETE FROM threads")
        assert reader.size == 1


# Unusable files are recreated


def test_a_file_that_is_no_cache_is_recreated(tmp_path: Path) -> None:
    contents = [b"", b"not a database at all" * 100, b"SQLite format 3\0" + bytes(4000)]
    for data in contents:
        path = tmp_path / "glance.db"
        path.write_bytes(data)
        database = open_cache_database(path)
        assert (LocalCache(database).size, fact(database, "stamp")) == (0, ""), data


def test_the_names_of_local_files_contain_the_versions_that_read_them() -> None:
    """So two versions on one machine never use each other's files."""
    mark = f"{CARDS_SCHEMA.format}-{ANALYSER_VERSION}"
    assert (mark in CACHE_FILE, mark in FETCHED_FILE) == (True, True)


def test_a_cache_of_another_format_is_recreated(tmp_path: Path) -> None:
    path = tmp_path / "glance.db"
    old = open_database(path, SESSIONS_SCHEMA)
    old.execute("INSERT INTO facts VALUES ('stamp', 'x')")
    old.close()
    assert (LocalCache(open_cache_database(path)).size, fact(open_cache_database(path), "stamp")) == (0, "")


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    open_cache_database(tmp_path / "new/glance.db").close()
    assert stat.S_IMODE((tmp_path / "new/glance.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_an_unwritable_cache_gives_an_error_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldError, match="XDG_CACHE_HOME"):
        open_cache_database(tmp_path / "file/glance.db")


def test_a_cache_that_another_process_locks_is_neither_damaged_nor_replaced(tmp_path: Path) -> None:
    path = tmp_path / "glance.db"
    other = open_cache_database(path)
    other.execute("BEGIN EXCLUSIVE")
    before = path.stat().st_ino
    with pytest.raises(WorldError, match="try again"):
        open_database(path, CARDS_SCHEMA, lock_timeout=0.2)
    assert path.stat().st_ino == before


def test_a_digest_in_the_wrong_shard_is_ignored(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"), issue(950, 0, "zebra"))
    shards = dict(memory.state.base.digest_shards())
    spoof = shards["digests/0000.jsonl"].replace(b"fails", b"SPOOF")
    store = FolderStore(tmp_path / "store")
    store.write(store.open(), {"digests/0009.jsonl": shards["digests/0009.jsonl"] + spoof}, "spoof")
    spoofed = Memory(FolderStore(tmp_path / "store")).open()
    local_cache = cache_of(spoofed, tmp_path / "glance.db")
    assert "SPOOF" not in local_cache.cards([1])[1].title
    assert set(local_cache.cards([1, 950])) == {1, 950}


@pytest.mark.parametrize("field", ["duplicate_of", "title", "files"])
def test_a_digest_with_a_lone_surrogate_does_no_harm(tmp_path: Path, field: str) -> None:
    memory = memory_in(tmp_path / "store", issue(1, 0, "zebra"), issue(2, 0, "zebra"))
    lines = [json.loads(line) for line in dict(memory.state.base.digest_shards())["digests/0000.jsonl"].splitlines()]
    lines[0][field] = ["\ud800"] if field == "files" else "\ud800"
    store = FolderStore(tmp_path / "store")
    store.write(store.open(), {"digests/0000.jsonl": "".join(json.dumps(row) + "\n" for row in lines).encode()}, "x")
    local_cache = cache_of(Memory(FolderStore(tmp_path / "store")).open(), tmp_path / "glance.db")
    assert set(local_cache.cards([1, 2])) == {1, 2}


def test_an_impossible_posting_list_is_refused() -> None:
    cases = [([0], b"\xc8"), ([0, 0], b"\1\1"), ([3, 1], b"\1\1"), ([0], b"")]
    for documents, levels in cases:
        with pytest.raises(ValueError, match="damaged"):
            sync_module._pack_postings(documents, levels)


# Cards


def test_a_card_has_the_facts_of_its_digest(local_cache: LocalCache) -> None:
    card = local_cache.cards([48])[48]
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
def test_a_digest_of_any_shape_gives_a_card_or_nothing(fields: dict[str, object]) -> None:
    line = json.dumps({"id": 1, "created_at": "2026-01-01T00:00:00Z"} | fields)
    card = card_of(line)
    assert card is None or json.dumps([card.title, card.files, card.labels]).encode()


def test_a_damaged_digest_gives_no_card() -> None:
    lines = ["", "[", "[" * 100_000, "null", "3", '{"id": 1}', '{"id": true, "created_at": "x"}']
    assert [line for line in lines if card_of(line) is not None] == []


def test_the_fields_of_a_thread_arrive_on_its_card(tmp_path: Path) -> None:
    comment = Message("hubot", "MEMBER", START + timedelta(days=1), "We decided to use zebras. Fixed by #8.")
    thread = replace(
        issue(3, 0, "See #4 and octocat/other#5, in src/zoo.py"),
        kind=Kind.PULL, state="closed", closed_at=START + timedelta(days=2), state_reason="completed",
        labels=("bug",), comments=(comment,),
    )  # fmt: skip
    card = cache_of(memory_in(tmp_path / "store", thread), tmp_path / "glance.db").cards([3])[3]
    assert (card.kind, card.state, card.state_reason, card.labels) == ("pull", "closed", "completed", ("bug",))
    assert (card.references, card.files, card.turn_count) == ((4, 8), ("src/zoo.py",), 2)
    assert [(ruling.text, ruling.author) for ruling in card.decisions] == [("We decided to use zebras.", "hubot")]
    assert card.ending.fix == "#8"


def test_an_empty_memory_gives_an_empty_cache(tmp_path: Path) -> None:
    memory = memory_in(tmp_path / "store")
    memory.stage(Changes())
    local_cache = cache_of(memory, tmp_path / "glance.db")
    assert (local_cache.size, ids(local_cache, "zebra"), local_cache.recently_decided(3), local_cache.links([1])) == (
        0,
        [],
        [],
        [],
    )
