"""Which comments of ours show a thread: kept both ways, and owed a look when the thread changes where it is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.changes import (
    NOBODY,
    AnswerRecord,
    Changes,
    FixInfo,
    OpenPull,
    OrganisationKey,
    ReleaseNotice,
    Renewal,
    Request,
    StandingComment,
    ThreadComments,
)
from bot.domain.thread import Message, Thread, ThreadId, Tombstone
from bot.memory.manifest import MAX_OWED, Manifest, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from bot.memory.merge import MAX_NOTICES, newest_notices
from bot.memory.shards import COMMENTS
from tests.memory.samples import KINDS, Place, at, issue, query, remember

PULLS = (
    OpenPull(3, 205, "Mend it", closes=True, draft=True, files=("a/b.py",), seen_at=at(1)),
    OpenPull(4, 206, seen_at=at(1)),
)
ON_9 = StandingComment(9, at(1), 0, "f", (3, 205), ("0a1b2c3d",), pulls=PULLS)
BODY = "It fails at the first start."
REPLY = StandingComment(9, at(1), 77, "g", (3, 9))


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, request.param)
    memory = made.memory()
    memory.stage(Changes(records=(talk(3), issue(4), issue(9), issue(205))))
    stand(memory, ON_9, REPLY)
    yield made
    made.close()


def stand(memory: Memory, *comments: StandingComment) -> None:
    memory.stage(Changes(standing=comments))
    memory.commit("stand")


def shown_in(memory: Memory, key: ThreadId) -> tuple[tuple[ThreadId, int], ...]:
    return memory.state.thread_comments([key]).get(key, ThreadComments(key)).shown_in


def owed(memory: Memory) -> list[tuple[ThreadId, int, ThreadId]]:
    return [one.key for one in memory.state.manifest.owed]


def test_it_is_known_which_comments_show_a_thread_and_which_stand_on_one(place: Place) -> None:
    memory = place.memory()
    assert shown_in(memory, 3) == ((9, 0), (9, 77))
    assert shown_in(memory, 205) == ((9, 0),)
    assert memory.state.thread_comments([9])[9].comments == (ON_9, REPLY)
    assert memory.state.thread_comments([4, 12]) == {}


def test_a_later_state_of_a_comment_takes_the_place_of_the_earlier_one_in_both_lists(place: Place) -> None:
    memory = place.memory()
    stand(memory, StandingComment(9, at(2), 0, "h", (4,)))
    memory.stage(Changes(standing=(ON_9,)))  # older
    memory.stage(Changes(standing=(StandingComment(9, at(2), 77),)))  # it shows nothing: it is gone
    memory.commit("later")
    again = place.memory()
    assert {key: shown_in(again, key) for key in (3, 4, 9, 205)} == {3: (), 4: ((9, 0),), 9: (), 205: ()}
    assert [one.content for one in again.state.thread_comments([9])[9].comments] == ["h"]
    assert sorted(place.files("comments")) == ["comments/0000.jsonl"]


def test_the_comments_on_a_thread_that_is_gone_are_gone(place: Place) -> None:
    remember(place.memory(), Tombstone(9, at(5)))
    memory = place.memory()
    assert {key: shown_in(memory, key) for key in (3, 205)} == {3: (), 205: ()}
    assert place.files("comments") == {}


def test_comments_that_show_what_changed_under_an_earlier_version_are_renewed_after_it(place: Place) -> None:
    stand(place.memory(), StandingComment(4, at(2), 0, "h", (3, 9)))
    remember(place.memory(), talk(3, title="Another title", revision=1.5), issue(205, 0.5))
    manifest = replace(place.memory().state.manifest, owed=(), messages=None, layout=0)  # it knows of neither
    place.put({"manifest.json": encode_manifest(manifest)})
    memory = place.memory()
    remember(memory, issue(7))
    assert memory.search(query("fails"))
    memory.commit("upgrade")
    assert owed(place.memory()) == [(9, 0, 3), (9, 77, 3)], "not 4, which was written later"
    assert remember(place.memory(), issue(8))
    assert owed(place.memory()) == [(9, 0, 3), (9, 77, 3)]


def test_a_comment_that_shows_only_other_repositories_stands_until_it_shows_none(place: Place) -> None:
    alone = StandingComment(4, at(2), 0, "h", others=(OrganisationKey(7, 31), OrganisationKey(8, "docs/a.md")))
    stand(place.memory(), alone)
    memory = place.memory()
    assert memory.state.thread_comments([4])[4].comments == (alone,)
    assert b'"shows":[]' in place.files("comments")["comments/0000.jsonl"]  # earlier versions ask for it
    stand(memory, replace(alone, at=at(3), others=()), replace(alone, id=205))
    assert place.memory().state.thread_comments([4]) == {}
    remember(place.memory(), Tombstone(205, at(5)))
    assert place.memory().state.thread_comments([205])[205].comments == ()


def test_other_repositories_are_read_within_bounds_and_damage_costs_the_comment() -> None:
    def read(others: object) -> tuple[tuple[OrganisationKey, ...], bool]:
        line = {"id": 4, "comments": [{"at": "2025-01-01T00:00:00Z", "shows": [3], "others": others}]}
        linked, is_whole = COMMENTS.parse(line)
        return (linked.comments[0].others if linked.comments else ()), is_whole

    assert read([[7, number] for number in range(1, 90)]) == (tuple(OrganisationKey(7, n) for n in range(1, 5)), True)
    for damaged in ([[7]], [[7, 8, 9]], [["7", 8]], [[0, 8]], [[7, None]], [7], 7, "ab", {"a": 1}):
        assert read(damaged) == ((), False), damaged


def test_a_comment_that_is_to_be_looked_at_again_is_owed_until_that_is_done(place: Place) -> None:
    memory, again = place.memory(), Renewal(9, 0, 9, at(4))
    memory.stage(Changes(owed=(again,)))
    memory.commit("owe")
    memory = place.memory()
    assert memory.state.manifest.owed == (again,)
    memory.stage(Changes(renewed=(again,)))
    memory.commit("done")
    assert place.memory().state.manifest.owed == ()


def talk(number: int, *texts: str, revision: float = 0, role: str = "NONE", **fields: object) -> Thread:
    said = tuple(Message("hubot", role, at(1), text, 100 + place) for place, text in enumerate(texts))
    return replace(issue(number, body=BODY), comments=said, updated_at=at(revision), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "is_owed"),
    [
        (talk(3, "Me too."), False),
        (talk(3, labels=("bug",)), False),
        (talk(3, title="Another title"), True),
        (talk(3, body="Another text"), True),
        (talk(3, state="closed", closed_at=at(1)), True),
        (talk(3, "We decided to keep the old format.", role="MEMBER"), True),
        (Tombstone(3, at(1)), True),
        (talk(4, title="It is shown nowhere"), False),
    ],
)
def test_a_change_that_can_be_seen_is_owed_to_the_comments_that_show_the_thread(
    changed: Thread | Tombstone, is_owed: bool, tmp_path: Path
) -> None:
    place = Place(tmp_path, "folder")
    memory = place.memory()
    memory.stage(Changes(records=(talk(3), issue(4), issue(9)), standing=(ON_9, REPLY)))
    memory.commit("stand")
    assert owed(memory) == []
    remember(memory, changed if isinstance(changed, Tombstone) else replace(changed, updated_at=at(1)))
    assert owed(place.memory()) == ([(9, 0, 3), (9, 77, 3)] if is_owed else [])
    place.close()


def test_a_comment_that_was_edited_or_deleted_is_a_change_that_can_be_seen(tmp_path: Path) -> None:
    place = Place(tmp_path, "folder")
    memory = place.memory()
    memory.stage(Changes(records=(talk(3, "One.", "Two."), issue(9)), standing=(ON_9,)))
    memory.commit("stand")
    for revision, texts in enumerate((("One.", "Two.", "Three."), ("One.", "2.", "Three."), ("One.", "Three.")), 2):
        remember(memory, talk(3, *texts, revision=revision))
        assert [one.at for one in memory.state.manifest.owed] == ([at(revision)] if revision > 2 else [])
    place.close()


def test_of_two_comments_that_say_the_same_one_that_goes_is_a_change_that_can_be_seen(tmp_path: Path) -> None:
    """Such as two commands: our reply to the one that was deleted goes with it."""
    place = Place(tmp_path, "folder")
    memory = place.memory()
    memory.stage(Changes(records=(talk(3, "/precedent off", "/precedent off"), issue(9)), standing=(ON_9,)))
    memory.commit("stand")
    remember(memory, talk(3, "/precedent off", revision=2))
    assert owed(memory) == [(9, 0, 3)]
    place.close()


def test_what_was_done_is_owed_no_more_and_a_later_change_still_is(place: Place) -> None:
    memory = place.memory()
    remember(memory, talk(3, title="One", revision=1))
    first = memory.state.manifest.owed
    remember(place.memory(), talk(3, title="Two", revision=2))
    memory.stage(Changes(renewed=(first[0],)))
    memory.commit("done")
    assert [(one.key, one.at) for one in place.memory().state.manifest.owed] == [
        ((9, 0, 3), at(2)),
        ((9, 77, 3), at(2)),
    ]
    memory.stage(Changes(renewed=memory.state.manifest.owed))
    memory.commit("done")
    assert place.memory().state.manifest.owed == ()


def test_a_fix_that_was_found_and_a_thread_called_wrong_are_changes_too(place: Place) -> None:
    memory = place.memory()
    memory.stage(Changes(fixes=(FixInfo(205, "a" * 40, at(2)),)))
    assert owed(memory) == [(9, 0, 205)]
    memory.stage(
        Changes(renewed=memory.state.manifest.owed, fixes=(FixInfo(205, "a" * 40, at(3)),))
    )  # the same, looked up again
    assert owed(memory) == []
    memory.stage(Changes(requests=(Request(3, 5, "wrong", "octocat", at(2), about=(8,)),)))
    assert owed(memory) == []
    memory.stage(Changes(requests=(Request(3, 6, "wrong", "octocat", at(2), about=(9,)),)))
    assert owed(memory) == [(9, 0, 3), (9, 77, 3)]


def test_a_comment_made_of_what_another_run_changed_meanwhile_is_owed_a_look(place: Place) -> None:
    slow, quick = place.memory(), place.memory()
    slow.records([4])
    slow.stage(Changes(standing=(StandingComment(9, at(2), 0, "h", (4,)),)))
    remember(quick, talk(4, title="It is otherwise now", revision=1))
    slow.commit("slow")
    assert owed(place.memory()) == [(9, 0, 4)]


def test_of_two_runs_that_work_out_one_comment_the_first_has_it(place: Place) -> None:
    slow, quick = place.memory(), place.memory()
    stand(quick, replace(ON_9, at=at(2), content="quick"))
    slow.stage(Changes(standing=(replace(ON_9, at=at(3), content="slow"), replace(REPLY, at=at(3)))))
    slow.commit("slow")
    assert slow.taken_comments == {(9, 0)}
    assert [one.content for one in place.memory().state.thread_comments([9])[9].comments] == ["quick", "g"]


def test_a_rebuild_makes_the_lists_anew_also_of_what_an_earlier_version_said(place: Place) -> None:
    said = (
        AnswerRecord(4, "said", at(1), text_hash="e", comment_id=8, matches=((3, 0.9),)),
        AnswerRecord(205, "silent", at(1)),
    )
    memory = place.memory()
    memory.stage(Changes(answers=said))
    memory.commit("said")
    memory = place.memory()
    spoiled = COMMENTS.edits(place.files("comments"), {3: ThreadComments(3, (), ((8, 0),)), 205: None})
    place.put(dict(spoiled))
    memory = place.memory()
    memory.stage(Changes(read_whole=at(9)))
    memory.commit("rebuild")
    memory = place.memory()
    assert shown_in(memory, 3) == ((4, 0), (9, 0), (9, 77))
    assert shown_in(memory, 205) == ((9, 0),)
    assert memory.state.thread_comments([4])[4].comments == (StandingComment(4, at(1), 0, "e", (3,)),)


def test_a_line_that_is_damaged_costs_that_line(place: Place) -> None:
    place.put({"comments/0002.jsonl": b'{"id": 205, "shown_in": 5}\n', "comments/0000.jsonl": b"\0"})
    memory = place.memory()
    assert memory.state.thread_comments([3, 205]) == {}
    assert len(memory.notes) == 2
    stand(memory, replace(ON_9, at=at(2)))
    assert shown_in(place.memory(), 205) == ((9, 0),)


def test_what_is_owed_is_bounded_and_read_back_as_it_was(place: Place) -> None:
    many = Manifest().with_renewals(Renewal(number, 0, 3, at(number)) for number in range(1, MAX_OWED + 9))
    assert len(many.owed) == MAX_OWED
    assert many.owed[0].id == 1
    assert decode_manifest(encode_manifest(many)).owed == many.owed


NOTICE = ReleaseNotice(3, "#57", "v2.3.0", at(2), trying_since=at(2))
OF_DUPLICATE = ReleaseNotice(9, "#57", "v2.3.0", at(2), original=3, state="said", comment_id=70)


def notify(memory: Memory, *notices: ReleaseNotice) -> None:
    memory.stage(Changes(notices=notices))
    memory.commit("notify")


def noticed(memory: Memory, key: ThreadId) -> tuple[ReleaseNotice, ...]:
    return memory.state.thread_comments([key]).get(key, ThreadComments(key)).notices


def test_release_notices_are_kept_beside_the_comments_and_counted_once(place: Place) -> None:
    notify(place.memory(), NOTICE, OF_DUPLICATE)
    memory = place.memory()
    assert (noticed(memory, 3), noticed(memory, 9)) == ((NOTICE,), (OF_DUPLICATE,))
    assert memory.state.thread_comments([9])[9].comments == (ON_9, REPLY)
    assert memory.state.manifest.written == (at(2),), "the other one was promised by nobody"
    notify(memory, replace(NOTICE, trying_since=at(4)), replace(OF_DUPLICATE, state="removed"))
    again = place.memory()
    assert noticed(again, 3) == (replace(NOTICE, trying_since=at(4)),)
    assert [one.state for one in noticed(again, 9)] == ["removed"]
    assert again.state.manifest.written == (at(2),)


def test_a_settled_notice_is_never_a_promise_again(place: Place) -> None:
    memory = place.memory()
    for state in ("said", "pending", "removed", "said"):
        notify(memory, replace(NOTICE, state=state, trying_since=at(5) if state == "pending" else None))
    assert [one.state for one in noticed(place.memory(), 3)] == ["removed"]


def test_of_two_runs_that_promise_one_notice_the_first_has_it(place: Place) -> None:
    slow, quick = place.memory(), place.memory()
    notify(quick, NOTICE)
    notify(slow, replace(NOTICE, at=at(3), trying_since=at(3)), OF_DUPLICATE)
    assert slow.taken_notices == {(3, "#57")}
    memory = place.memory()
    assert (noticed(memory, 3), noticed(memory, 9)) == ((NOTICE,), (OF_DUPLICATE,))
    assert memory.state.manifest.written == (at(2),)


@pytest.mark.parametrize("reason", ["deleted", "forgotten"])
def test_the_notices_of_a_thread_go_with_it(place: Place, reason: str) -> None:
    notify(place.memory(), NOTICE, OF_DUPLICATE)
    memory = place.memory()
    memory.stage(Changes(records=(Tombstone(3, at(8), reason),)))
    assert noticed(memory, 3) == ()
    memory.commit("gone")
    memory = place.memory()
    assert (noticed(memory, 3), noticed(memory, 9)) == ((), (OF_DUPLICATE,))
    assert b"v2.3.0" not in place.files("comments")["comments/0000.jsonl"].split(b"\n")[0]


def test_a_damaged_notice_costs_that_notice(place: Place) -> None:
    whole = b'{"ref":"#57","release":"v2.3.0","at":"2026-01-01T00:00:00Z","state":"said"}'
    for bad in (b"5", b"{}", whole.replace(b"said", b"sung"), whole.replace(b"2026", b"x"), b"[]"):
        place.put({"comments/0000.jsonl": b'{"id":3,"notices":[%s,%s]}\n' % (bad, whole)})
        memory = place.memory()
        assert [one.state for one in noticed(memory, 3)] == ["said"]
        assert len(memory.notes) == 1
    place.put({"comments/0000.jsonl": b'{"id":3,"notices":7}\n'})
    assert noticed(place.memory(), 3) == ()


def test_the_notices_of_a_thread_are_bounded_and_in_order() -> None:
    many = [ReleaseNotice(3, f"#{number}", "v1.0", at(number)) for number in range(1, MAX_NOTICES + 5)]
    assert newest_notices(reversed(many)) == tuple(many[4:])


def test_until_when_reporters_were_notified_only_moves_on_until_it_is_switched_off() -> None:
    manifest = Manifest().with_notified(at(5)).with_notified(at(3)).with_notified(None)
    assert manifest.told_until == at(5)
    assert decode_manifest(encode_manifest(manifest)).told_until == at(5)
    off = manifest.with_notified(NOBODY)
    assert (off.told_until, b"told_until" in encode_manifest(off)) == (None, False)


@pytest.mark.parametrize("damage", [{}, "x", [{}], [{"about": "3", "id": 5}], [{"about": 3, "id": True}], [3]])
def test_damaged_pull_requests_cost_a_comment_and_no_other(damage: object) -> None:
    good = {"at": "2026-01-05T12:00:00Z", "reply": 77, "shows": [3]}
    line = {"id": 9, "comments": [{"at": "2026-01-05T12:00:00Z", "shows": [3], "pulls": damage}, good]}
    path = COMMENTS.path(9)
    found, is_whole = COMMENTS.read(path, f"{json.dumps(line)}\n".encode())
    assert [one.reply for one in found[9].comments] == [77]
    assert not is_whole


def test_of_too_many_pull_requests_and_too_long_titles_only_a_part_is_read() -> None:
    pulls = [{"about": number, "id": 5, "title": "x" * 5_000, "files": ["y" * 9_000] * 99} for number in range(1, 99)]
    line = {"id": 9, "comments": [{"at": "2026-01-05T12:00:00Z", "shows": [3], "pulls": pulls}]}
    found, _ = COMMENTS.read(COMMENTS.path(9), f"{json.dumps(line)}\n".encode())
    kept = found[9].comments[0].pulls
    assert (len(kept), len(kept[0].title), len(kept[0].files), len(kept[0].files[0])) == (20, 1_024, 5, 1_024)
