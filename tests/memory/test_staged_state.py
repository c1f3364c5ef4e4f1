"""Requests, fixes and pages: stored, read by the next run, the same whoever writes first."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.bounds import MAX_NAME
from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.post import Post, PostKey, Vote
from bot.domain.thread import Kind, Thread, ThreadId, Tombstone
from bot.memory.branch_store import MAX_GROWTH
from bot.memory.manifest import MAX_PENDING, MAX_SOURCES, Manifest, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from bot.memory.merge import later_fix, merge_requests, recent
from tests.examples import examples
from tests.memory.remotes import HostedRepository, open_store
from tests.memory.samples import ANY_FIX, ANY_REQUEST, ON_BRANCH_TOO, StoredMemory, ask, at, fix, issue, remember


def save(stored: StoredMemory, **changes: Any) -> Memory:
    """Have one run store these changes."""
    memory = stored.memory()
    memory.stage(Changes(**{name: tuple(item) for name, item in changes.items()}))
    memory.commit("kept")
    return memory


def page(key: str, **fields: Any) -> Thread:
    return issue(key, kind=Kind.PAGE, **fields)


@ON_BRANCH_TOO
def test_the_next_run_reads_what_a_run_stored(stored: StoredMemory) -> None:
    off = ask(7, 51, "off", state="done")
    fixed = fix(7, 2, files=("a.py",), release="v2", released_at=at(1))
    save(stored, requests=(off, ask(120, 52)), fixes=(fixed,), pages=(("docs", "abc123"), ("wiki", "def456")))
    memory = stored.memory()
    assert memory.requests([7, 8, 120]) == {7: (off,), 120: (ask(120, 52),)}
    assert memory.fixes([7, 8]) == {7: fixed}
    assert memory.state.manifest.pages == {"docs": "abc123", "wiki": "def456"}
    assert {path for path in stored.files() if "jsonl" in path} == {
        "requests/0000.jsonl",
        "requests/0001.jsonl",
        "fixes/0000.jsonl",
    }
    assert memory.notes == []


def test_staged_changes_are_read_before_they_are_written(stored: StoredMemory) -> None:
    save(stored, requests=(ask(7, 5),))
    memory = stored.memory()
    memory.stage(Changes(requests=(ask(7, 6, "off"), ask(7, 5, state="done")), fixes=(fix(7),), pages=(("docs", "a"),)))
    assert memory.requests([7]) == {7: (ask(7, 5, state="done"), ask(7, 6, "off"))}
    assert memory.fixes([7]) == {7: fix(7)}
    assert memory.state.manifest.pages == {"docs": "a"}
    assert [item.comment_id for item in memory.state.manifest.requests_since(at(0))] == [5, 6]
    assert set(memory.state.every_request()) == {ask(7, 5, state="done"), ask(7, 6, "off")}


CHANGES = st.one_of(
    st.builds(lambda requests: Changes(requests=tuple(requests)), st.lists(ANY_REQUEST, max_size=4)),
    st.builds(lambda fixes: Changes(fixes=tuple(fixes)), st.lists(ANY_FIX, max_size=4)),
)


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CHANGES, min_size=1, max_size=8), st.integers(0, 9**9))
def test_memory_ends_the_same_in_any_order_of_writes(
    tmp_path_factory: pytest.TempPathFactory, parts: list[Changes], seed: int
) -> None:
    stored, rng = StoredMemory(tmp_path_factory.mktemp("place")), Random(seed)
    shuffled = [*parts, *rng.choices(parts, k=2)]
    rng.shuffle(shuffled)
    writers = [stored.memory(), stored.memory()]
    for changes in shuffled:
        writer = rng.choice(writers)
        writer.stage(replace(changes, requests=tuple(item for item in changes.requests if item.state != "pending")))
        if rng.random() < 0.5:
            writer.commit("a part")
    for writer in writers:
        writer.commit("the rest")
    done = [item for part in parts for item in part.requests if item.state != "pending"]
    memory = stored.memory()
    actual = memory.requests([1, 2, 3])
    assert actual == {
        key: merged for key in (1, 2, 3) if (merged := merge_requests(item for item in done if item.id == key))
    }
    fixes: dict[ThreadId, FixInfo] = {}
    for item in (item for part in parts for item in part.fixes):
        fixes[item.id] = later_fix(item, fixes.get(item.id))
    assert memory.fixes([1, 2, 3]) == fixes
    assert memory.state.manifest.requests_since(at(-1)) == recent(done)
    stored.close()


# -- several writers -------------------------------------------------------------------------------------------------


@ON_BRANCH_TOO
def test_two_memories_keep_both_requests_and_the_later_fix(stored: StoredMemory) -> None:
    first, second = stored.memory(), stored.memory()
    first.stage(Changes(requests=(ask(7, 5, "off"),), fixes=(fix(7, 2, release="v1"),), pages=(("docs", "a"),)))
    second.stage(Changes(requests=(ask(7, 6, "on"),), fixes=(fix(7, 1), fix(8)), pages=(("wiki", "b"),)))
    assert first.commit("one")
    assert second.commit("two")
    memory = stored.memory()
    assert memory.requests([7]) == {7: (ask(7, 5, "off"), ask(7, 6, "on"))}
    assert memory.fixes([7, 8]) == {7: fix(7, 2, release="v1"), 8: fix(8)}
    assert memory.state.manifest.pages == {"docs": "a", "wiki": "b"}
    assert [item.comment_id for item in memory.state.manifest.requests_since(at(0))] == [5, 6]
    assert (first.taken_requests, second.taken_requests) == (set(), set())


def test_the_second_of_two_runs_that_handle_a_request_knows_it_was_taken(stored: StoredMemory) -> None:
    first, second = stored.memory(), stored.memory()
    for memory, moment in ((first, 1.0), (second, 1.5)):
        memory.stage(Changes(requests=(ask(7, 5, trying_since=at(moment)), ask(7, 6 + int(moment * 2)))))
    assert first.commit("one")
    assert second.commit("two")
    assert (first.taken_requests, second.taken_requests) == (set(), {5})
    assert stored.memory().requests([7])[7][0].trying_since == at(1), "it is the first one's to answer"
    assert {item.comment_id for item in stored.memory().requests([7])[7]} == {5, 8, 9}


TRIED = ask(7, 5, trying_since=at(2))
FIRST = ask(7, 5, trying_since=at(1))
DONE = ask(7, 5, state="done")


@pytest.mark.parametrize(
    ("before", "change", "request_of_second", "taken", "after"),
    [
        pytest.param(ask(7, 5), Changes(requests=(FIRST,)), TRIED, {5}, FIRST, id="it was pending when both began"),
        pytest.param(None, Changes(requests=(TRIED,)), DONE, set(), DONE, id="the second one knows the outcome"),
        pytest.param(None, Changes(requests=(ask(7, 5),)), TRIED, set(), TRIED, id="the first one postpones it"),
        pytest.param(ask(7, 5), Changes(records=(issue(7, 1),)), TRIED, set(), TRIED, id="the first one is unrelated"),
    ],
)
def test_a_request_is_taken_only_by_a_run_that_tries_it_first(
    stored: StoredMemory,
    before: Request | None,
    change: Changes,
    request_of_second: Request,
    taken: set[int],
    after: Request,
) -> None:
    if before:
        save(stored, requests=(before,))
    first, second = stored.memory(), stored.memory()
    first.stage(change)
    second.stage(Changes(requests=(request_of_second,)))
    assert first.commit("one")
    assert second.commit("two") is not bool(taken), "nothing is left to write if it was taken"
    assert second.taken_requests == taken
    assert stored.memory().requests([7]) == {7: (after,)}


def test_the_same_comment_id_may_occur_on_two_threads(stored: StoredMemory) -> None:
    save(stored, requests=(ask(7, 7), ask(8, 7)))
    assert stored.memory().state.manifest.requests_since(at(0)) == (ask(7, 7), ask(8, 7))


EARLIER = Post(7, "pending", at(0), question="first", trying_since=at(0), content="a")
SAID = replace(EARLIER, state="said", comment_id=70, trying_since=None)
NEWER = Post(7, "pending", at(3), question="second", trying_since=at(3), content="b")
AGAIN = replace(EARLIER, trying_since=at(3))


@pytest.mark.parametrize(
    ("before", "between", "promised", "is_taken"),
    [
        pytest.param(EARLIER, SAID, NEWER, False, id="it saw that an earlier promise was kept"),
        pytest.param(SAID, replace(SAID, votes=(Vote("hubot", True),)), NEWER, False, id="it counted thumbs"),
        pytest.param(EARLIER, SAID, AGAIN, True, id="it saw that this promise was kept"),
        pytest.param(EARLIER, replace(EARLIER, trying_since=at(2)), AGAIN, True, id="it tries this promise again"),
        pytest.param(SAID, replace(NEWER, at=at(2), trying_since=at(2)), NEWER, True, id="it promised the same"),
        pytest.param(EARLIER, replace(SAID, question="second", revised_at=at(2)), NEWER, True, id="it answered it"),
        pytest.param(SAID, replace(SAID, state="removed"), NEWER, True, id="it saw that a person deleted the comment"),
        pytest.param(None, NEWER, AGAIN, True, id="it was the first to answer"),
    ],
)
def test_only_one_of_two_runs_that_promise_a_comment_writes_it(
    stored: StoredMemory, before: Post | None, between: Post, promised: Post, is_taken: bool
) -> None:
    if before:
        save(stored, posts=(before,))
    first, second = stored.memory(), stored.memory()
    first.stage(Changes(posts=(between,)))
    second.stage(Changes(records=(issue(7),), posts=(promised,)))
    assert first.commit("one")
    assert second.commit("two")
    assert second.taken == ({PostKey(7)} if is_taken else set())
    assert stored.memory().state.comments([7]) == {7: between if is_taken else promised}


# -- deleted threads -------------------------------------------------------------------------------------------------


def test_requests_and_fixes_are_removed_with_a_deleted_thread(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(7), issue(8))
    save(stored, requests=(ask(7, 5), ask(8, 6)), fixes=(fix(7), fix(8)))
    memory = stored.memory()
    memory.stage(Changes(records=(Tombstone(7, at(2)),)))
    assert (set(memory.requests([7, 8])), set(memory.fixes([7, 8]))) == ({8}, {8})
    assert [item.id for item in memory.state.every_request()] == [8]
    assert memory.commit("gone")
    lines = [json.loads(stored.files()[f"{folder}/0000.jsonl"]) for folder in ("requests", "fixes")]
    assert [line["id"] for line in lines] == [8, 8]


def test_requests_and_fixes_for_a_deleted_thread_are_not_stored(stored: StoredMemory) -> None:
    remember(stored.memory(), issue(7))
    slow = stored.memory()
    slow.stage(Changes(requests=(ask(7, 5),), fixes=(fix(7),)))
    remember(stored.memory(), Tombstone(7, at(2)))
    slow.commit("too late")
    assert not [path for path in stored.files() if path.startswith(("requests/", "fixes/"))]
    assert stored.memory().requests([7]) == stored.memory().fixes([7]) == {}


# -- hostile bytes and foreign files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "junk",
    [b"{", b"\0" * 65_536, b"[" * 65_536, b'{"id": 8, "posts": 5}', b'{"id": 8, "posts": [5], "requests": 5}', b"[]"],
)
def test_a_hostile_line_costs_only_itself_and_is_reported(stored: StoredMemory, junk: bytes) -> None:
    answers = [Post(key, "said", at(1)) for key in (7, 9)]
    save(stored, requests=(ask(7, 5), ask(9, 6)), fixes=(fix(7), fix(9)), posts=answers)
    files = stored.files()
    for folder in ("requests", "fixes", "posts"):
        stored.put({f"{folder}/0000.jsonl": junk + b"\n" + files[f"{folder}/0000.jsonl"]})
    memory = stored.memory()
    keys = (7, 8, 9)
    assert [set(read(keys)) for read in (memory.requests, memory.fixes, memory.state.comments)] == [{7, 9}] * 3
    assert [note.split()[0] for note in memory.notes] == ["requests/0000.jsonl", "fixes/0000.jsonl", "posts/0000.jsonl"]
    memory.stage(Changes(requests=(ask(8, 7),), fixes=(fix(8),), posts=(replace(answers[0], id=8),)))
    memory.commit("mended")
    after = stored.memory()
    assert [set(read(keys)) for read in (after.requests, after.fixes, after.state.comments)] == [{*keys}] * 3
    assert after.notes == []


MANIFEST = Manifest(analyser="1+x", cursor=at(5), threads=2, index={"MAIN_1.seg": "ab"}, written=(at(4), at(5)))


@pytest.mark.parametrize(
    ("fields", "pages"),
    [
        ({"pages": 5}, {}),
        ({"pages": ["docs"]}, {}),
        ({"pages": {"docs": 5, "wiki": None, "": "x"}}, {"docs": "5"}),
        ({"pages": {"docs": "x" * 65_536}}, {"docs": "x" * MAX_NAME}),
        ({"recent": "abc"}, {}),
        ({"recent": [None, 5, {}, {"id": 7}, {"id": 7, "comment_id": 5}] * 9_000}, {}),
    ],
)
def test_malformed_pages_and_requests_do_not_cost_the_manifest(fields: dict[str, Any], pages: dict[str, str]) -> None:
    read = decode_manifest(json.dumps(json.loads(encode_manifest(MANIFEST)) | fields).encode())
    assert read == replace(MANIFEST, pages=pages)


@pytest.mark.slow
@pytest.mark.parametrize("stored", ["branch"], indirect=True)
def test_foreign_files_survive_even_a_squash(stored: StoredMemory, hosted: HostedRepository) -> None:
    foreign = {
        "moods/0000.jsonl": b'{"id":7}\n',
        "moods.json": b"{}",
        "records/x/y/z.bin": b"\0",
        "requests/later.bin": b"1",
    }
    save(stored, requests=(ask(7, 5),))
    stored.put(dict(foreign))
    with open_store(hosted, limit=replace(MAX_GROWTH, commits=1)) as store:
        for number in range(3):
            memory = Memory(store).open()
            memory.stage(Changes(records=(issue(number + 1),), requests=(ask(7, 6 + number),)))
            memory.rebuild_index()
            assert memory.commit("and squashed")
    assert {path: data for path, data in stored.files().items() if path in foreign} == foreign
    assert len(stored.memory().requests([7])[7]) == 4


# -- over all threads ------------------------------------------------------------------------------------------------


def test_the_manifest_lists_recent_requests_of_all_threads(stored: StoredMemory) -> None:
    for key, comment_id in ((7, 10), (150, 60), (9_000, 105), (8, 112)):
        save(stored, requests=(ask(key, comment_id, state="done"),))
    memory = stored.memory()
    assert [item.id for item in memory.state.manifest.requests_since(at(0))] == [150, 9_000, 8], (
        "one hour before the newest"
    )
    assert [item.id for item in memory.state.manifest.requests_since(at(1.05))] == [9_000, 8]
    assert memory.state.manifest.requests_since(at(2)) == ()


def test_a_pending_request_is_listed_until_done_and_a_slow_run_does_not_restore_it(stored: StoredMemory) -> None:
    save(stored, requests=(ask(7, 10), ask(8, 900, state="done")))
    assert [item.id for item in stored.memory().state.manifest.requests_since(at(0))] == [7, 8]
    slow = stored.memory()
    save(stored, requests=(ask(7, 10, state="done"),))
    assert [item.id for item in stored.memory().state.manifest.requests_since(at(0))] == [8]
    slow.stage(Changes(requests=(ask(7, 10, trying_since=at(1)), ask(9, 901))))
    slow.commit("late")
    later = stored.memory()
    later.stage(Changes(requests=(ask(7, 10),)))
    assert not later.commit("later still")
    assert [item.id for item in stored.memory().state.manifest.requests_since(at(0))] == [8, 9]


def test_all_comments_and_requests_can_be_listed(stored: StoredMemory) -> None:
    answers = [
        Post(key, "said", at(1), comment_id=index + 1) for index, key in enumerate((1, 99, 100, 20_000, "ABC-1"))
    ]
    all_requests = [ask(key, index + 1) for index, key in enumerate((1, 1, 100, 1_234_567, "ABC-1"))]
    save(stored, posts=answers, requests=all_requests)
    memory = stored.memory()
    assert (set(memory.state.every_comment()), set(memory.state.every_request())) == (set(answers), set(all_requests))
    newer = replace(answers[1], at=at(2), votes=(Vote("hubot", True),))
    memory.stage(Changes(posts=(newer, Post(5, "silent", at(1)))))
    assert set(memory.state.every_comment()) == {*answers, newer, Post(5, "silent", at(1))} - {answers[1]}


def test_the_ids_of_living_pages_are_listed(stored: StoredMemory) -> None:
    keys = [f"docs/page {number}.md#part" for number in range(40)]
    remember(stored.memory(), *map(page, keys), issue("ABC-1"), issue(7), issue("LOG-1", kind=Kind.SESSION))
    assert sorted(stored.memory().page_ids()) == sorted(keys)
    remember(stored.memory(), *(Tombstone(key, at(1)) for key in keys[:30]))
    memory = stored.memory()
    assert sorted(memory.page_ids()) == sorted(keys[30:])
    memory.stage(Changes(records=(Tombstone(keys[39], at(1)), page("new"), page(keys[0], revision=2))))
    assert sorted(memory.page_ids()) == sorted([*keys[30:39], "new", keys[0]])
    assert memory.notes == []


# -- promises --------------------------------------------------------------------------------------------------------


def promises(*keys: int) -> list[Post]:
    return [
        Post(key, "pending", at(key), reason="the limit of answers for one run is reached; the next run continues")
        for key in keys
    ]


def being_posted(key: int) -> Post:
    return Post(key, "pending", at(key), trying_since=at(key), content="abc")


@pytest.mark.slow
def test_a_flood_of_issues_displaces_no_promise_and_dropped_ones_are_settled(stored: StoredMemory) -> None:
    last = MAX_PENDING + 11
    flood = [issue(key, author="mona") for key in range(2, last + 1)]
    save(stored, records=[issue(1), *flood], posts=promises(*range(1, MAX_PENDING + 2)))
    memory = save(stored, posts=[*promises(*range(MAX_PENDING + 2, last)), being_posted(last)])
    assert memory.state.manifest.pending == (*range(1, MAX_PENDING), last)
    assert [f"More than {MAX_PENDING} issues are waiting" in note for note in memory.notes] == [True]
    reopened = stored.memory()
    assert reopened.state.manifest.pending == memory.state.manifest.pending
    answers = reopened.state.comments(range(1, last + 1))
    assert {key for key, answer in answers.items() if answer.state == "pending"} == set(reopened.state.manifest.pending)
    assert answers[MAX_PENDING + 5].reason == "too many wait for an answer"
    memory.stage(Changes(posts=promises(1)))
    assert memory.state.manifest.pending == reopened.state.manifest.pending


def test_a_single_issue_is_answered_even_if_somebody_opened_many_before(stored: StoredMemory) -> None:
    flood = [issue(key, author="mona") for key in range(2, MAX_PENDING + 2)]
    save(stored, records=[issue(900), *flood], posts=promises(*range(2, MAX_PENDING + 2)))
    memory = save(stored, posts=promises(900))
    assert memory.state.manifest.pending == (*range(2, MAX_PENDING + 1), 900)
    assert memory.state.comments([MAX_PENDING + 1])[MAX_PENDING + 1].state == "silent"


def test_a_posted_comment_is_still_known_if_its_update_is_dropped(stored: StoredMemory) -> None:
    standing = Post(900, "pending", at(900), reason="waits", comment_id=77)
    memory = save(stored, posts=[*promises(*range(1, MAX_PENDING + 1)), standing])
    assert (memory.state.comments([900])[900].state, memory.state.comments([900])[900].comment_id) == ("said", 77)


def test_page_sources_are_bounded_and_can_be_removed() -> None:
    manifest = Manifest().with_pages([("docs", "a"), ("wiki", "b"), ("docs", "c"), ("wiki", "")])
    assert manifest.pages == {"docs": "c"}
    many = manifest.with_pages((f"source {number}", "x") for number in range(99))
    assert len(decode_manifest(encode_manifest(many)).pages) == MAX_SOURCES


# -- requests to the server ------------------------------------------------------------------------------------------


@pytest.fixture
def filled(hosted: HostedRepository) -> HostedRepository:
    """A branch with requests and fixes for thread 250 only."""
    with open_store(hosted) as store:
        memory = Memory(store).open()
        memory.stage(Changes(records=(issue(7), issue(250)), requests=(ask(250, 5),), fixes=(fix(250),)))
        memory.commit("filled")
    return hosted


def read_threads(hosted: HostedRepository, *keys: ThreadId, expected: bool) -> list[str]:
    """Read everything stored about these threads and return the requests to the server."""
    with open_store(hosted) as store:
        hosted.mark()
        memory = Memory(store).open(keys if expected else ())
        (
            memory.records(keys),
            memory.requests(keys),
            memory.fixes(keys),
            memory.state.manifest.requests_since(at(0)),
            memory.state.manifest.pages,
        )
        return hosted.request_lines


@pytest.mark.slow
@pytest.mark.parametrize("expected", [True, False])
def test_missing_shards_cost_no_request_and_present_ones_come_with_the_rest(
    filled: HostedRepository, expected: bool
) -> None:
    without_shards, with_shards = (read_threads(filled, key, expected=expected) for key in (7, 250))
    assert without_shards == with_shards
    assert len(without_shards) == (5 if expected else 7)


@pytest.mark.slow
def test_everything_about_threads_can_be_prefetched_in_one_exchange(filled: HostedRepository) -> None:
    with open_store(filled) as store:
        memory = Memory(store).open()
        filled.mark()
        memory.state.prefetch([7, 250])
        prefetch_requests = filled.request_lines
        assert memory.records([7, 250]) == {7: issue(7), 250: issue(250)}
        assert (memory.state.comments([250]), len(memory.requests([250])), len(memory.fixes([250]))) == ({}, 1, 1)
        memory.stage(Changes(records=(issue(250, 1),), requests=(ask(250, 6),), posts=(Post(7, "silent", at(2)),)))
        memory.commit("changed")
        assert prefetch_requests == ["GET refs", "POST git-upload-pack"]
        assert filled.request_lines == [*prefetch_requests, "GET refs", "POST git-receive-pack"]


def test_limiting_requests_to_the_last_hour_keeps_the_manifest_small() -> None:
    all_requests = [ask(number, number, by=f"account{number % 50}", state="done") for number in range(1, 900)]
    recent_ones: tuple[Request, ...] = ()
    for start, end in pairwise(range(0, 900, 90)):
        recent_ones = recent(recent_ones, all_requests[start:end])
    assert recent_ones[-1].at - recent_ones[0].at <= timedelta(hours=1)
    assert len(encode_manifest(replace(MANIFEST, recent=recent_ones))) < 40_000
