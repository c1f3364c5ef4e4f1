"""Wishes, fixes and pages on every store: kept, read by the next run, the same whoever writes first."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.changes import AnswerRecord, Changes, FixInfo, Request
from bot.domain.thread import Kind, Thread, ThreadId, Tombstone
from bot.memory.branch_store import BranchStore
from bot.memory.manifest import MAX_PENDING, MAX_SOURCES, MAX_STATE, Manifest, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from bot.memory.merge import later_fix, merge_requests, recent
from tests.examples import examples
from tests.memory.remotes import Hosted, opened
from tests.memory.samples import ANY_FIX, ANY_WISH, Place, at, fix, issue, remember, wish


@pytest.fixture
def shelf(tmp_path: Path) -> Place:
    """A memory in a folder: for what does not depend on the store."""
    return Place(tmp_path, "folder")


def keep(place: Place, **changes: Any) -> Memory:
    """Have one run keep this."""
    memory = place.memory()
    memory.stage(Changes(**{name: tuple(each) for name, each in changes.items()}))
    memory.commit("kept")
    return memory


def page(key: str, **fields: Any) -> Thread:
    return issue(key, kind=Kind.PAGE, **fields)


def test_the_next_run_reads_what_one_kept(place: Place) -> None:
    off = wish(7, 51, "off", state="done", reply_id=8)
    fixed = fix(7, 2, files=("a.py",), release="v2", released_at=at(1))
    keep(place, requests=(off, wish(120, 52)), fixes=(fixed,), pages=(("docs", "abc123"), ("wiki", "def456")))
    memory = place.memory()
    assert memory.requests([7, 8, 120]) == {7: (off,), 120: (wish(120, 52),)}
    assert memory.fixes([7, 8]) == {7: fixed}
    assert memory.state.manifest.pages == {"docs": "abc123", "wiki": "def456"}
    assert {path for path in place.files() if "jsonl" in path} == {
        "wishes/0000.jsonl",
        "wishes/0001.jsonl",
        "fixes/0000.jsonl",
    }
    assert memory.notes == []


def test_what_is_staged_is_read_before_it_is_written(shelf: Place) -> None:
    keep(shelf, requests=(wish(7, 5),))
    memory = shelf.memory()
    memory.stage(
        Changes(requests=(wish(7, 6, "off"), wish(7, 5, state="done")), fixes=(fix(7),), pages=(("docs", "a"),))
    )
    assert memory.requests([7]) == {7: (wish(7, 5, state="done"), wish(7, 6, "off"))}
    assert memory.fixes([7]) == {7: fix(7)}
    assert memory.state.manifest.pages == {"docs": "a"}
    assert [one.comment_id for one in memory.state.manifest.requests_since(at(0))] == [5, 6]
    assert set(memory.state.every_request()) == {wish(7, 5, state="done"), wish(7, 6, "off")}


def test_a_repeated_run_writes_nothing(shelf: Place) -> None:
    changes = Changes(requests=(wish(7, 5), wish(8, 6, "off")), fixes=(fix(7), fix(8)), pages=(("docs", "abc"),))
    memory = shelf.memory()
    memory.stage(changes)
    assert memory.commit("first")
    before = shelf.files()
    for again in (memory, shelf.memory()):
        again.stage(changes)
        again.stage(replace(changes, fixes=(fix(7, 0.5, release="v0"),)))
        assert not again.commit("again")
    assert shelf.files() == before


CHANGES = st.one_of(
    st.builds(lambda wishes: Changes(requests=tuple(wishes)), st.lists(ANY_WISH, max_size=4)),
    st.builds(lambda fixes: Changes(fixes=tuple(fixes)), st.lists(ANY_FIX, max_size=4)),
)


@pytest.mark.parametrize("kind", ["folder", pytest.param("branch", marks=pytest.mark.slow)])
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CHANGES, min_size=1, max_size=8), st.integers(0, 9**9))
def test_memory_holds_the_same_whoever_writes_what_first(
    kind: str, tmp_path_factory: pytest.TempPathFactory, parts: list[Changes], seed: int
) -> None:
    place, chance = Place(tmp_path_factory.mktemp("place"), kind), Random(seed)
    shuffled = [*parts, *chance.choices(parts, k=2)]
    chance.shuffle(shuffled)
    writers = [place.memory(), place.memory()]
    for changes in shuffled:
        writer = chance.choice(writers)
        writer.stage(replace(changes, requests=tuple(one for one in changes.requests if one.state != "pending")))
        if chance.random() < 0.5:
            writer.commit("a part")
    for writer in writers:
        writer.commit("the rest")
    wishes = [one for part in parts for one in part.requests if one.state != "pending"]
    memory = place.memory()
    held = memory.requests([1, 2, 3])
    assert held == {key: found for key in (1, 2, 3) if (found := merge_requests(w for w in wishes if w.id == key))}
    fixes: dict[ThreadId, FixInfo] = {}
    for one in (one for part in parts for one in part.fixes):
        fixes[one.id] = later_fix(one, fixes.get(one.id))
    assert memory.fixes([1, 2, 3]) == fixes
    assert memory.state.manifest.requests_since(at(-1)) == recent(wishes)
    place.close()


# -- several writers -------------------------------------------------------------------------------------------------


def test_two_memories_keep_both_wishes_and_the_later_fix(place: Place) -> None:
    one, two = place.memory(), place.memory()
    one.stage(Changes(requests=(wish(7, 5, "off"),), fixes=(fix(7, 2, release="v1"),), pages=(("docs", "a"),)))
    two.stage(Changes(requests=(wish(7, 6, "on"),), fixes=(fix(7, 1), fix(8)), pages=(("wiki", "b"),)))
    assert one.commit("one")
    assert two.commit("two")
    memory = place.memory()
    assert memory.requests([7]) == {7: (wish(7, 5, "off"), wish(7, 6, "on"))}
    assert memory.fixes([7, 8]) == {7: fix(7, 2, release="v1"), 8: fix(8)}
    assert memory.state.manifest.pages == {"docs": "a", "wiki": "b"}
    assert [each.comment_id for each in memory.state.manifest.requests_since(at(0))] == [5, 6]
    assert (one.taken_requests, two.taken_requests) == (set(), set())


def test_of_two_runs_that_take_up_a_wish_one_knows_that_it_was_second(place: Place) -> None:
    one, two = place.memory(), place.memory()
    for memory, moment in ((one, 1.0), (two, 1.5)):
        memory.stage(Changes(requests=(wish(7, 5, trying_since=at(moment)), wish(7, 6 + int(moment * 2)))))
    assert one.commit("one")
    assert two.commit("two")
    assert (one.taken_requests, two.taken_requests) == (set(), {5})
    assert place.memory().requests([7])[7][0].trying_since == at(1), "it is the first one's to answer"
    assert {each.comment_id for each in place.memory().requests([7])[7]} == {5, 8, 9}


def test_a_wish_that_waited_when_both_began_is_taken_too(shelf: Place) -> None:
    keep(shelf, requests=(wish(7, 5),))
    one, two = shelf.memory(), shelf.memory()
    one.stage(Changes(requests=(wish(7, 5, trying_since=at(1)),)))
    two.stage(Changes(requests=(wish(7, 5, trying_since=at(2)),)))
    assert one.commit("one")
    assert not two.commit("two"), "nothing is left to write"
    assert two.taken_requests == {5}


def test_what_became_of_a_wish_is_written_whoever_was_first(shelf: Place) -> None:
    one, two = shelf.memory(), shelf.memory()
    one.stage(Changes(requests=(wish(7, 5, trying_since=at(1)),)))
    two.stage(Changes(requests=(wish(7, 5, state="done", reply_id=9),)))
    assert one.commit("one")
    assert two.commit("two")
    assert two.taken_requests == set()
    assert shelf.memory().requests([7]) == {7: (wish(7, 5, state="done", reply_id=9),)}


def test_a_run_that_leaves_a_wish_for_later_takes_nothing(shelf: Place) -> None:
    one, two = shelf.memory(), shelf.memory()
    one.stage(Changes(requests=(wish(7, 5, "waiting"),)))
    two.stage(Changes(requests=(wish(7, 5, trying_since=at(2)),)))
    assert one.commit("one")
    assert two.commit("two")
    assert two.taken_requests == set()
    assert shelf.memory().requests([7]) == {7: (wish(7, 5, trying_since=at(2)),)}


def test_a_number_may_stand_for_an_issue_and_a_comment(shelf: Place) -> None:
    keep(shelf, requests=(wish(7, 7), wish(8, 7)))
    assert shelf.memory().state.manifest.requests_since(at(0)) == (wish(7, 7), wish(8, 7))


def test_an_unrelated_writer_takes_nothing(shelf: Place) -> None:
    keep(shelf, requests=(wish(7, 5),))
    one, two = shelf.memory(), shelf.memory()
    remember(one, issue(7, 1))
    two.stage(Changes(requests=(wish(7, 5, trying_since=at(2)),)))
    assert two.commit("two")
    assert two.taken_requests == set()


EARLIER = AnswerRecord(7, "pending", at(0), text_hash="a", question="first", trying_since=at(0))
SAID = replace(EARLIER, state="said", comment_id=70, trying_since=None)
NEWER = AnswerRecord(7, "pending", at(3), text_hash="b", question="second", trying_since=at(3))
AGAIN = replace(EARLIER, trying_since=at(3))


@pytest.mark.parametrize(
    ("before", "meanwhile", "promised", "is_taken"),
    [
        pytest.param(EARLIER, SAID, NEWER, False, id="it saw that an earlier promise was kept"),
        pytest.param(SAID, replace(SAID, ups=2), NEWER, False, id="it counted thumbs"),
        pytest.param(EARLIER, SAID, AGAIN, True, id="it saw that this promise was kept"),
        pytest.param(EARLIER, replace(EARLIER, trying_since=at(2)), AGAIN, True, id="it tries this promise again"),
        pytest.param(SAID, replace(NEWER, at=at(2), trying_since=at(2)), NEWER, True, id="it promised the same"),
        pytest.param(EARLIER, replace(SAID, question="second"), NEWER, True, id="it answered the same"),
        pytest.param(SAID, replace(SAID, state="removed"), NEWER, True, id="it saw that a person deleted the comment"),
        pytest.param(None, NEWER, AGAIN, True, id="it was the first to answer"),
    ],
)
def test_of_two_runs_that_promise_an_answer_one_gives_it(
    shelf: Place, before: AnswerRecord | None, meanwhile: AnswerRecord, promised: AnswerRecord, is_taken: bool
) -> None:
    if before:
        keep(shelf, answers=(before,))
    one, two = shelf.memory(), shelf.memory()
    one.stage(Changes(answers=(meanwhile,)))
    two.stage(Changes(records=(issue(7),), answers=(promised,)))
    assert one.commit("one")
    assert two.commit("two")
    assert two.taken == ({7} if is_taken else set())
    assert shelf.memory().state.answers([7]) == {7: meanwhile if is_taken else promised}


# -- threads that are gone -------------------------------------------------------------------------------------------


def test_wishes_and_fixes_go_with_the_text_of_a_deleted_thread(place: Place) -> None:
    remember(place.memory(), issue(7), issue(8))
    keep(place, requests=(wish(7, 5), wish(8, 6)), fixes=(fix(7), fix(8)))
    memory = place.memory()
    memory.stage(Changes(records=(Tombstone(7, at(2)),)))
    assert (set(memory.requests([7, 8])), set(memory.fixes([7, 8]))) == ({8}, {8})
    assert [one.id for one in memory.state.every_request()] == [8]
    assert memory.commit("gone")
    lines = [json.loads(place.files()[f"{folder}/0000.jsonl"]) for folder in ("wishes", "fixes")]
    assert [line["id"] for line in lines] == [8, 8]


def test_what_comes_for_a_deleted_thread_is_not_kept(place: Place) -> None:
    remember(place.memory(), issue(7))
    slow = place.memory()
    slow.stage(Changes(requests=(wish(7, 5),), fixes=(fix(7),)))
    remember(place.memory(), Tombstone(7, at(2)))
    slow.commit("too late")
    assert not [path for path in place.files() if path.startswith(("wishes/", "fixes/"))]
    assert place.memory().requests([7]) == place.memory().fixes([7]) == {}


# -- hostile bytes and other versions --------------------------------------------------------------------------------


@pytest.mark.parametrize("junk", [b"{", b"\xff\x00", b"[" * 65_536, b'{"id": 8}', b'{"id": 8, "wishes": 5}', b"[]"])
def test_a_hostile_line_costs_itself_and_is_told(shelf: Place, junk: bytes) -> None:
    keep(shelf, requests=(wish(7, 5), wish(9, 6)), fixes=(fix(7), fix(9)))
    files = shelf.files()
    for folder in ("wishes", "fixes"):
        shelf.put({f"{folder}/0000.jsonl": junk + b"\n" + files[f"{folder}/0000.jsonl"]})
    memory = shelf.memory()
    assert (set(memory.requests([7, 8, 9])), set(memory.fixes([7, 8, 9]))) == ({7, 9}, {7, 9})
    assert [note.split()[0] for note in memory.notes] == ["wishes/0000.jsonl", "fixes/0000.jsonl"]
    memory.stage(Changes(requests=(wish(8, 7),), fixes=(fix(8),)))
    memory.commit("mended")
    after = shelf.memory()
    assert (set(after.requests([7, 8, 9])), set(after.fixes([7, 8, 9])), after.notes) == ({7, 8, 9}, {7, 8, 9}, [])


def test_whole_files_of_nonsense_cost_no_run(shelf: Place) -> None:
    keep(shelf, requests=(wish(7, 5),), fixes=(fix(7),))
    shelf.put({"wishes/0000.jsonl": b"\0" * 65_536, "fixes/0000.jsonl": b"", "answers/0000.jsonl": b"\xff\n" * 9})
    memory = shelf.memory()
    assert (memory.requests([7]), memory.fixes([7]), memory.state.every_answer(), memory.state.every_request()) == (
        {}, {}, [], [],
    )  # fmt: skip


OLD = Manifest(analyser="1+x", cursor=at(5), threads=2, index={"MAIN_1.seg": "ab"}, written=(at(4), at(5)))


def test_a_manifest_of_the_version_before_is_read_and_stays_as_it_is() -> None:
    fields = json.loads(encode_manifest(OLD))
    assert not {"pages", "recent"} & fields.keys()
    assert encode_manifest(decode_manifest(encode_manifest(OLD))) == encode_manifest(OLD)


def test_a_branch_of_the_version_before_is_not_written_for_nothing(shelf: Place) -> None:
    remember(shelf.memory(), issue(1))
    memory = shelf.memory()
    memory.stage(Changes(records=(issue(1),)))
    assert not memory.commit("nothing new")
    assert (memory.state.manifest.pages, memory.state.manifest.requests_since(at(0)), memory.notes) == ({}, (), [])


@pytest.mark.parametrize(
    ("fields", "pages"),
    [
        ({"pages": 5}, {}),
        ({"pages": ["docs"]}, {}),
        ({"pages": {"docs": 5, "wiki": None, "": "x"}}, {"docs": "5"}),
        ({"pages": {"docs": "x" * 65_536}}, {"docs": "x" * MAX_STATE}),
        ({"recent": "abc"}, {}),
        ({"recent": [None, 5, {}, {"id": 7}, {"id": 7, "comment_id": 5}] * 9_000}, {}),
    ],
)
def test_odd_pages_and_wishes_do_not_cost_the_manifest(fields: dict[str, Any], pages: dict[str, str]) -> None:
    read = decode_manifest(json.dumps(json.loads(encode_manifest(OLD)) | fields).encode())
    assert read == replace(OLD, pages=pages)


@pytest.mark.slow
def test_what_a_later_version_keeps_is_left_alone_also_by_a_squash(tmp_path: Path) -> None:
    place = Place(tmp_path, "branch")
    later = {
        "moods/0000.jsonl": b'{"id":7}\n',
        "moods.json": b"{}",
        "records/x/y/z.bin": b"\0",
        "wishes/later.bin": b"1",
    }
    keep(place, requests=(wish(7, 5),))
    place.put(dict(later))
    store = BranchStore(str(tmp_path / "remote.git"), "precedent", None, squash_after=1)
    for number in range(3):
        memory = Memory(store).open()
        memory.stage(Changes(records=(issue(number + 1),), requests=(wish(7, 6 + number),)))
        memory.rebuild_index()
        assert memory.commit("and squashed")
    store.close()
    assert {path: data for path, data in place.files().items() if path in later} == later
    assert len(place.memory().requests([7])[7]) == 4
    place.close()


# -- over all threads ------------------------------------------------------------------------------------------------


def test_recent_wishes_of_all_threads_are_known_without_reading_them(shelf: Place) -> None:
    for key, comment_id in ((7, 10), (150, 60), (9_000, 105), (8, 112)):
        keep(shelf, requests=(wish(key, comment_id, state="done"),))
    memory = shelf.memory()
    assert [one.id for one in memory.state.manifest.requests_since(at(0))] == [150, 9_000, 8], (
        "one hour before the newest"
    )
    assert [one.id for one in memory.state.manifest.requests_since(at(1.05))] == [9_000, 8]
    assert memory.state.manifest.requests_since(at(2)) == ()


def test_what_waits_is_known_until_it_is_done_and_an_old_run_does_not_bring_it_back(shelf: Place) -> None:
    keep(shelf, requests=(wish(7, 10), wish(8, 900, state="done")))
    assert [one.id for one in shelf.memory().state.manifest.requests_since(at(0))] == [7, 8]
    slow = shelf.memory()
    keep(shelf, requests=(wish(7, 10, state="done"),))
    assert [one.id for one in shelf.memory().state.manifest.requests_since(at(0))] == [8]
    slow.stage(Changes(requests=(wish(7, 10, trying_since=at(1)), wish(9, 901))))
    slow.commit("late")
    later = shelf.memory()
    later.stage(Changes(requests=(wish(7, 10),)))
    assert not later.commit("later still")
    assert [one.id for one in shelf.memory().state.manifest.requests_since(at(0))] == [8, 9]


def test_everything_that_was_said_and_wished_can_be_gone_through(place: Place) -> None:
    told = [
        AnswerRecord(key, "said", at(1), comment_id=index + 1)
        for index, key in enumerate((1, 99, 100, 20_000, "ABC-1"))
    ]
    asked = [wish(key, index + 1) for index, key in enumerate((1, 1, 100, 1_234_567, "ABC-1"))]
    keep(place, answers=told, requests=asked)
    memory = place.memory()
    assert (set(memory.state.every_answer()), set(memory.state.every_request())) == (set(told), set(asked))
    newer = replace(told[1], at=at(2), ups=1)
    memory.stage(Changes(answers=(newer, AnswerRecord(5, "silent", at(1)))))
    assert set(memory.state.every_answer()) == {*told, newer, AnswerRecord(5, "silent", at(1))} - {told[1]}


def test_the_pages_that_are_there_are_listed(shelf: Place) -> None:
    keys = [f"docs/page {number}.md#part" for number in range(40)]
    remember(shelf.memory(), *map(page, keys), issue("ABC-1"), issue(7), issue("LOG-1", kind=Kind.SESSION))
    assert shelf.memory().state.page_ids() == sorted(keys)
    remember(shelf.memory(), *(Tombstone(key, at(1)) for key in keys[:30]))
    memory = shelf.memory()
    assert memory.state.page_ids() == sorted(keys[30:])
    memory.stage(Changes(records=(Tombstone(keys[39], at(1)), page("new"), page(keys[0], revision=2))))
    assert memory.state.page_ids() == sorted([*keys[30:39], "new", keys[0]])
    assert memory.notes == []


@pytest.mark.parametrize("data", [None, b"", b"{\n", b'{"id": "docs/a.md", "kind": "issue"}\n<<<<'])
def test_pages_are_listed_from_their_records_where_digests_are_damaged(shelf: Place, data: bytes | None) -> None:
    remember(shelf.memory(), page("docs/a.md"), page("docs/b.md"), issue("ABC-1"))
    shelf.put(dict.fromkeys(shelf.files("digests"), data))
    assert shelf.memory().state.page_ids() == ["docs/a.md", "docs/b.md"]


# -- promises --------------------------------------------------------------------------------------------------------


def promises(*keys: int) -> list[AnswerRecord]:
    return [
        AnswerRecord(key, "pending", at(key), "the limit of answers for one run is reached; the next run continues")
        for key in keys
    ]


def being_said(key: int) -> AnswerRecord:
    return AnswerRecord(key, "pending", at(key), text_hash="abc", trying_since=at(key))


@pytest.mark.slow
def test_a_flood_of_issues_pushes_out_no_promise_and_what_is_given_up_is_settled(place: Place) -> None:
    last = MAX_PENDING + 11
    flood = [issue(key, author="mona") for key in range(2, last + 1)]
    keep(place, records=[issue(1), *flood], answers=promises(*range(1, MAX_PENDING + 2)))
    memory = keep(place, answers=[*promises(*range(MAX_PENDING + 2, last)), being_said(last)])
    assert memory.state.manifest.pending == (*range(1, MAX_PENDING), last)
    assert [f"More than {MAX_PENDING} issues are waiting" in note for note in memory.notes] == [True]
    found = place.memory()
    assert found.state.manifest.pending == memory.state.manifest.pending
    said = found.state.answers(range(1, last + 1))
    assert {key for key, one in said.items() if one.state == "pending"} == set(found.state.manifest.pending)
    assert said[MAX_PENDING + 5].reason == "too many wait for an answer"
    memory.stage(Changes(answers=promises(1)))
    assert memory.state.manifest.pending == found.state.manifest.pending


def test_who_opened_few_issues_is_answered_although_another_opened_many_before(place: Place) -> None:
    flood = [issue(key, author="mona") for key in range(2, MAX_PENDING + 2)]
    keep(place, records=[issue(900), *flood], answers=promises(*range(2, MAX_PENDING + 2)))
    memory = keep(place, answers=promises(900))
    assert memory.state.manifest.pending == (*range(2, MAX_PENDING + 1), 900)
    assert memory.state.answers([MAX_PENDING + 1])[MAX_PENDING + 1].state == "silent"


def test_a_comment_that_stands_is_still_known_when_its_change_is_given_up(shelf: Place) -> None:
    standing = AnswerRecord(900, "pending", at(900), "waits", comment_id=77)
    memory = keep(shelf, answers=[*promises(*range(1, MAX_PENDING + 1)), standing])
    assert (memory.state.answers([900])[900].state, memory.state.answers([900])[900].comment_id) == ("said", 77)


def test_sources_of_pages_are_few_and_can_be_taken_out() -> None:
    manifest = Manifest().with_pages([("docs", "a"), ("wiki", "b"), ("docs", "c")])
    assert manifest.pages == {"docs": "c", "wiki": "b"}
    assert manifest.with_pages([("wiki", "")]).pages == {"docs": "c"}
    many = manifest.with_pages((f"source {number}", "x") for number in range(99))
    assert len(decode_manifest(encode_manifest(many)).pages) == MAX_SOURCES


# -- what it costs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(hosted: Hosted) -> Hosted:
    """A branch with wishes and fixes on thread 250 alone."""
    with opened(hosted) as store:
        memory = Memory(store).open()
        memory.stage(Changes(records=(issue(7), issue(250)), requests=(wish(250, 5),), fixes=(fix(250),)))
        memory.commit("filled")
    return hosted


def requests(hosted: Hosted, *keys: ThreadId, expected: bool) -> list[str]:
    """What a run asks for that reads all that is kept of these threads."""
    with opened(hosted) as store:
        hosted.mark()
        memory = Memory(store).open(keys if expected else ())
        (
            memory.records(keys),
            memory.requests(keys),
            memory.fixes(keys),
            memory.state.manifest.requests_since(at(0)),
            memory.state.manifest.pages,
        )
        return hosted.asked


@pytest.mark.slow
@pytest.mark.parametrize("expected", [True, False])
def test_shards_that_are_not_there_cost_nothing_and_others_come_with_the_rest(filled: Hosted, expected: bool) -> None:
    without, beside = (requests(filled, key, expected=expected) for key in (7, 250))
    assert without == beside
    assert len(without) == (5 if expected else 7)


@pytest.mark.slow
def test_all_that_is_kept_of_a_thread_can_be_brought_in_one_exchange(filled: Hosted) -> None:
    with opened(filled) as store:
        memory = Memory(store).open()
        filled.mark()
        memory.state.prefetch([7, 250])
        brought = filled.asked
        assert memory.records([7, 250]) == {7: issue(7), 250: issue(250)}
        assert (memory.state.answers([250]), len(memory.requests([250])), len(memory.fixes([250]))) == ({}, 1, 1)
        memory.stage(
            Changes(records=(issue(250, 1),), requests=(wish(250, 6),), answers=(AnswerRecord(7, "silent", at(2)),))
        )
        memory.commit("changed")
        assert brought == ["GET refs", "POST git-upload-pack"]
        assert filled.asked == [*brought, "GET refs", "POST git-receive-pack"]


def test_wishes_of_the_last_hour_keep_the_manifest_small() -> None:
    crowd = [wish(number, number, by=f"account{number % 50}", state="done") for number in range(1, 900)]
    held: tuple[Request, ...] = ()
    for start, end in pairwise(range(0, 900, 90)):
        held = recent(held, crowd[start:end])
    assert held[-1].at - held[0].at <= timedelta(hours=1)
    assert len(encode_manifest(replace(OLD, recent=held))) < 40_000
