"""Which comments of ours show a thread: stored both ways, and renewed when the thread visibly changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bot.domain.changes import NOTICES_OFF, Changes, FixInfo, Request
from bot.domain.post import OpenPull, OrganisationKey, Post, Renewal, ThreadPosts, notice_slot, reply_slot
from bot.domain.thread import Message, Thread, ThreadId, Tombstone
from bot.memory.manifest import MAX_OWED, Manifest, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from bot.memory.merge import MAX_NOTICES, newest_posts
from bot.memory.shards import COMMENTS
from tests.memory.samples import ON_BRANCH_TOO, StoredMemory, at, issue, remember

OPEN_PULLS = (
    OpenPull(3, 205, "Mend it", closes=True, draft=True, files=("a/b.py",), seen_at=at(1)),
    OpenPull(4, 206, seen_at=at(1)),
)
ON_9 = Post(9, "said", at(1), content="f", shows=(3, 205), quotes=("0a1b2c3d",), pulls=OPEN_PULLS)
BODY = "It fails at the first start."
REPLY = Post(9, "said", at(1), reply_slot(77), content="g", shows=(3, 9))


@pytest.fixture
def stored(stored: StoredMemory) -> StoredMemory:
    memory = stored.memory()
    memory.stage(Changes(records=(talk(3), issue(4), issue(9), issue(205))))
    store_comments(memory, ON_9, REPLY)
    return stored


def store_comments(memory: Memory, *comments: Post) -> None:
    memory.stage(Changes(posts=comments))
    memory.commit("stand")


def shown_in(memory: Memory, key: ThreadId) -> tuple[tuple[ThreadId, int], ...]:
    return memory.state.posts([key]).get(key, ThreadPosts(key)).shown_by


def owed_renewals(memory: Memory) -> list[tuple[ThreadId, int, ThreadId]]:
    return [renewal.key for renewal in memory.state.manifest.owed]


@ON_BRANCH_TOO
def test_memory_knows_which_comments_show_a_thread_and_which_stand_on_it(stored: StoredMemory) -> None:
    memory = stored.memory()
    assert shown_in(memory, 3) == ((9, 0), (9, 77))
    assert shown_in(memory, 205) == ((9, 0),)
    assert memory.state.posts([9])[9].comments == (ON_9, REPLY)
    assert memory.state.posts([4, 12]) == {}


def test_a_later_state_of_a_comment_replaces_the_earlier_one_in_both_lists(stored: StoredMemory) -> None:
    memory = stored.memory()
    store_comments(memory, Post(9, "said", at(2), content="h", shows=(4,)))
    memory.stage(Changes(posts=(ON_9,)))  # older
    memory.stage(Changes(posts=(Post(9, "said", at(2), reply_slot(77)),)))  # it shows nothing, so it is gone
    memory.commit("later")
    reopened = stored.memory()
    assert {key: shown_in(reopened, key) for key in (3, 4, 9, 205)} == {3: (), 4: ((9, 0),), 9: (), 205: ()}
    assert [comment.content for comment in reopened.state.posts([9])[9].comments] == ["h"]
    assert sorted(stored.files("comments")) == ["comments/0000.jsonl"]


def test_comments_on_a_deleted_thread_are_removed(stored: StoredMemory) -> None:
    remember(stored.memory(), Tombstone(9, at(5)))
    memory = stored.memory()
    assert {key: shown_in(memory, key) for key in (3, 205)} == {3: (), 205: ()}
    assert stored.files("comments") == {}


def test_after_damage_to_the_manifest_comments_that_show_what_changed_since_are_renewed(stored: StoredMemory) -> None:
    store_comments(stored.memory(), Post(4, "said", at(2), content="h", shows=(3, 9)))
    remember(stored.memory(), talk(3, title="Another title", revision=1.5), issue(205, 0.5))
    stored.put({"manifest.json": b"{"})
    memory = stored.memory()
    remember(memory, issue(7))
    assert owed_renewals(stored.memory()) == [(9, 0, 3), (9, 77, 3)], "not 4, which was written later"
    assert remember(stored.memory(), issue(8))
    assert owed_renewals(stored.memory()) == [(9, 0, 3), (9, 77, 3)]


def test_a_comment_on_other_repositories_is_kept_until_it_shows_none(stored: StoredMemory) -> None:
    comment = Post(4, "said", at(2), content="h", others=(OrganisationKey(7, 31), OrganisationKey(8, "docs/a.md")))
    store_comments(stored.memory(), comment)
    memory = stored.memory()
    assert memory.state.posts([4])[4].comments == (comment,)
    assert b'"shows":[]' in stored.files("comments")["comments/0000.jsonl"]  # the reader requires it
    store_comments(memory, replace(comment, at=at(3), others=()), replace(comment, id=205))
    assert stored.memory().state.posts([4]) == {}
    remember(stored.memory(), Tombstone(205, at(5)))
    assert stored.memory().state.posts([205])[205].comments == ()


def test_links_to_other_repositories_are_bounded_and_damage_costs_the_comment() -> None:
    def read(others: object) -> tuple[tuple[OrganisationKey, ...], bool]:
        line = {"id": 4, "comments": [{"at": "2025-01-01T00:00:00Z", "shows": [3], "others": others}]}
        comments, is_intact = COMMENTS.parse(line)
        return (comments.comments[0].others if comments.comments else ()), is_intact

    assert read([[7, number] for number in range(1, 90)]) == (tuple(OrganisationKey(7, n) for n in range(1, 5)), True)
    for damaged in ([[7]], [[7, 8, 9]], [["7", 8]], [[0, 8]], [[7, None]], [7], 7, "ab", {"a": 1}):
        assert read(damaged) == ((), False), damaged


def test_an_owed_renewal_is_kept_until_it_is_done(stored: StoredMemory) -> None:
    memory, renewal = stored.memory(), Renewal(9, "", 9, at(4))
    memory.stage(Changes(owed=(renewal,)))
    memory.commit("owe")
    memory = stored.memory()
    assert memory.state.manifest.owed == (renewal,)
    memory.stage(Changes(renewed=(renewal,)))
    memory.commit("done")
    assert stored.memory().state.manifest.owed == ()


def talk(number: int, *texts: str, revision: float = 0, role: str = "NONE", **fields: object) -> Thread:
    messages = tuple(Message("hubot", role, at(1), text, 100 + position) for position, text in enumerate(texts))
    return replace(issue(number, body=BODY), comments=messages, updated_at=at(revision), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "is_owed"),
    [
        (talk(3, "One.", "Two.", "Me too."), False),
        (talk(3, "One.", "Two.", labels=("bug",)), False),
        (talk(3, "One.", "Two.", title="Another title"), True),
        (talk(3, "One.", "Two.", body="Another text"), True),
        (talk(3, "One.", "Two.", state="closed", closed_at=at(1)), True),
        (talk(3, "One.", "Two.", "We decided to keep the old format.", role="MEMBER"), True),
        (talk(3, "One.", "2."), True),
        (talk(3, "Two."), True),
        (Tombstone(3, at(1)), True),
        (talk(4, title="It is shown nowhere"), False),
    ],
)
def test_a_visible_change_owes_a_renewal_of_the_comments_that_show_the_thread(
    changed: Thread | Tombstone, is_owed: bool, stored: StoredMemory
) -> None:
    memory = stored.memory()
    remember(memory, talk(3, "One.", "Two.", revision=0.5))
    assert owed_renewals(memory) == []
    remember(memory, changed if isinstance(changed, Tombstone) else replace(changed, updated_at=at(1)))
    assert [(renewal.key, renewal.at) for renewal in stored.memory().state.manifest.owed] == (
        [((9, 0, 3), at(1)), ((9, 77, 3), at(1))] if is_owed else []
    )


def test_deleting_one_of_two_equal_comments_is_a_visible_change(stored: StoredMemory) -> None:
    """For example two commands: our reply to the deleted one is removed with it."""
    memory = stored.memory()
    remember(memory, talk(3, "/precedent off", "/precedent off", revision=1))
    remember(memory, talk(3, "/precedent off", revision=2))
    assert owed_renewals(memory) == [(9, 0, 3), (9, 77, 3)]


def test_a_finished_renewal_is_not_owed_but_a_later_change_still_is(stored: StoredMemory) -> None:
    memory = stored.memory()
    remember(memory, talk(3, title="One", revision=1))
    first = memory.state.manifest.owed
    remember(stored.memory(), talk(3, title="Two", revision=2))
    memory.stage(Changes(renewed=(first[0],)))
    memory.commit("done")
    assert [(renewal.key, renewal.at) for renewal in stored.memory().state.manifest.owed] == [
        ((9, 0, 3), at(2)),
        ((9, 77, 3), at(2)),
    ]
    memory.stage(Changes(renewed=memory.state.manifest.owed))
    memory.commit("done")
    assert stored.memory().state.manifest.owed == ()


def test_a_new_fix_and_a_match_called_wrong_are_visible_changes(stored: StoredMemory) -> None:
    memory = stored.memory()
    memory.stage(Changes(fixes=(FixInfo(205, "a" * 40, at(2)),)))
    assert owed_renewals(memory) == [(9, 0, 205)]
    memory.stage(
        Changes(renewed=memory.state.manifest.owed, fixes=(FixInfo(205, "a" * 40, at(3)),))
    )  # the same, looked up again
    assert owed_renewals(memory) == []
    memory.stage(Changes(requests=(Request(3, 5, "wrong", "octocat", at(2), about=(8,)),)))
    assert owed_renewals(memory) == []
    memory.stage(Changes(requests=(Request(3, 6, "wrong", "octocat", at(2), about=(9,)),)))
    assert owed_renewals(memory) == [(9, 0, 3), (9, 77, 3)]


def test_a_comment_that_shows_what_another_run_changed_meanwhile_is_renewed(stored: StoredMemory) -> None:
    slow, quick = stored.memory(), stored.memory()
    slow.records([4])
    slow.stage(Changes(posts=(Post(9, "said", at(2), content="h", shows=(4,)),)))
    remember(quick, talk(4, title="It is otherwise now", revision=1))
    slow.commit("slow")
    assert owed_renewals(stored.memory()) == [(9, 0, 4)]


def test_the_first_of_two_runs_that_prepare_one_comment_wins(stored: StoredMemory) -> None:
    slow, quick = stored.memory(), stored.memory()
    store_comments(quick, replace(ON_9, at=at(2), content="quick"))
    slow.stage(Changes(posts=(replace(ON_9, at=at(3), content="slow"), replace(REPLY, at=at(3)))))
    slow.commit("slow")
    assert slow.taken_comments == {(9, 0)}
    assert [comment.content for comment in stored.memory().state.posts([9])[9].comments] == ["quick", "g"]


def test_a_rebuild_restores_the_lists_even_for_a_comment_of_which_only_the_answer_is_left(stored: StoredMemory) -> None:
    answers = (
        Post(4, "said", at(1), comment_id=8, matches=((3, 0.9),), content="e"),
        Post(205, "silent", at(1)),
    )
    memory = stored.memory()
    memory.stage(Changes(posts=answers))
    memory.commit("said")
    memory = stored.memory()
    damaged_lists = COMMENTS.edits(stored.files("comments"), {3: ThreadPosts(3, (), ((8, 0),)), 205: None})
    stored.put(dict(damaged_lists))
    memory = stored.memory()
    memory.stage(Changes(read_whole=at(9)))
    memory.commit("rebuild")
    memory = stored.memory()
    assert shown_in(memory, 3) == ((4, 0), (9, 0), (9, 77))
    assert shown_in(memory, 205) == ((9, 0),)
    assert memory.state.posts([4])[4].comments == (Post(4, "said", at(1), content="e", shows=(3,)),)


def test_a_damaged_line_costs_only_that_line(stored: StoredMemory) -> None:
    stored.put({"comments/0002.jsonl": b'{"id": 205, "shown_in": 5}\n', "comments/0000.jsonl": b"\0"})
    memory = stored.memory()
    assert memory.state.posts([3, 205]) == {}
    assert len(memory.notes) == 2
    store_comments(memory, replace(ON_9, at=at(2)))
    assert shown_in(stored.memory(), 205) == ((9, 0),)


def test_owed_renewals_are_bounded_and_round_trip(stored: StoredMemory) -> None:
    many = Manifest().with_renewals(Renewal(number, "", 3, at(number)) for number in range(1, MAX_OWED + 9))
    assert len(many.owed) == MAX_OWED
    assert many.owed[0].id == 1
    assert decode_manifest(encode_manifest(many)).owed == many.owed


NOTICE = Post(3, "pending", at(2), notice_slot("#57"), release="v2.3.0", trying_since=at(2))
DUPLICATE_NOTICE = Post(9, "said", at(1), notice_slot("#57"), release="v2.3.0", comment_id=70, shows=(3,))


def store_notices(memory: Memory, *notices: Post) -> None:
    memory.stage(Changes(posts=notices))
    memory.commit("notify")


def notices_of(memory: Memory, key: ThreadId) -> tuple[Post, ...]:
    return memory.state.posts([key]).get(key, ThreadPosts(key)).notices


def test_release_notices_are_kept_beside_the_comments_and_counted_once(stored: StoredMemory) -> None:
    store_notices(stored.memory(), NOTICE, DUPLICATE_NOTICE)
    memory = stored.memory()
    assert (notices_of(memory, 3), notices_of(memory, 9)) == ((NOTICE,), (DUPLICATE_NOTICE,))
    assert memory.state.posts([9])[9].comments == (ON_9, REPLY)
    assert memory.state.manifest.written == (at(2),), "the other one was promised by nobody"
    store_notices(memory, replace(NOTICE, trying_since=at(4)), replace(DUPLICATE_NOTICE, state="removed"))
    reopened = stored.memory()
    assert notices_of(reopened, 3) == (replace(NOTICE, trying_since=at(4)),)
    assert [notice.state for notice in notices_of(reopened, 9)] == ["removed"]
    assert reopened.state.manifest.written == (at(2),)


def test_a_settled_notice_never_becomes_a_promise_again(stored: StoredMemory) -> None:
    memory = stored.memory()
    for state in ("said", "pending", "removed", "said"):
        store_notices(memory, replace(NOTICE, state=state, trying_since=at(5) if state == "pending" else None))
    assert [notice.state for notice in notices_of(stored.memory(), 3)] == ["removed"]


def test_the_first_of_two_runs_that_promise_one_notice_wins(stored: StoredMemory) -> None:
    slow, quick = stored.memory(), stored.memory()
    store_notices(quick, NOTICE)
    store_notices(slow, replace(NOTICE, at=at(3), trying_since=at(3)), DUPLICATE_NOTICE)
    assert slow.taken_notices == {(3, "#57")}
    memory = stored.memory()
    assert (notices_of(memory, 3), notices_of(memory, 9)) == ((NOTICE,), (DUPLICATE_NOTICE,))
    assert memory.state.manifest.written == (at(2),)


@pytest.mark.parametrize("reason", ["deleted", "forgotten"])
def test_the_notices_of_a_thread_are_removed_with_it(stored: StoredMemory, reason: str) -> None:
    store_notices(stored.memory(), NOTICE, DUPLICATE_NOTICE)
    memory = stored.memory()
    memory.stage(Changes(records=(Tombstone(3, at(8), reason),)))
    assert notices_of(memory, 3) == ()
    memory.commit("gone")
    memory = stored.memory()
    assert (notices_of(memory, 3), notices_of(memory, 9)) == ((), (DUPLICATE_NOTICE,))
    assert b"v2.3.0" not in stored.files("comments")["comments/0000.jsonl"].split(b"\n")[0]


def test_a_damaged_notice_costs_only_that_notice(stored: StoredMemory) -> None:
    intact = b'{"ref":"#57","release":"v2.3.0","at":"2026-01-01T00:00:00Z","state":"said"}'
    for damaged in (b"5", b"{}", intact.replace(b"said", b"sung"), intact.replace(b"2026", b"x"), b"[]"):
        stored.put({"comments/0000.jsonl": b'{"id":3,"notices":[%s,%s]}\n' % (damaged, intact)})
        memory = stored.memory()
        assert [notice.state for notice in notices_of(memory, 3)] == ["said"]
        assert len(memory.notes) == 1
    stored.put({"comments/0000.jsonl": b'{"id":3,"notices":7}\n'})
    assert notices_of(stored.memory(), 3) == ()


def test_the_notices_of_a_thread_are_bounded_and_in_order() -> None:
    many = [
        Post(3, "pending", at(number), notice_slot(f"#{number}"), release="v1.0")
        for number in range(1, MAX_NOTICES + 5)
    ]
    assert newest_posts(reversed(many)) == tuple(many[4:])


def test_the_time_of_the_last_notice_only_advances_until_notices_are_switched_off() -> None:
    manifest = Manifest().with_notified(at(5)).with_notified(at(3)).with_notified(None)
    assert manifest.told_until == at(5)
    assert decode_manifest(encode_manifest(manifest)).told_until == at(5)
    off = manifest.with_notified(NOTICES_OFF)
    assert (off.told_until, b"told_until" in encode_manifest(off)) == (None, False)


@pytest.mark.parametrize("damage", [{}, "x", [{}], [{"about": "3", "id": 5}], [{"about": 3, "id": True}], [3]])
def test_damaged_pull_requests_cost_only_their_comment(damage: object) -> None:
    good = {"at": "2026-01-05T12:00:00Z", "reply": 77, "shows": [3]}
    line = {"id": 9, "comments": [{"at": "2026-01-05T12:00:00Z", "shows": [3], "pulls": damage}, good]}
    path = COMMENTS.path(9)
    by_thread, is_intact = COMMENTS.read(path, f"{json.dumps(line)}\n".encode())
    assert [comment.reply for comment in by_thread[9].comments] == [77]
    assert not is_intact


def test_pull_requests_and_their_titles_are_bounded() -> None:
    pulls = [{"about": number, "id": 5, "title": "x" * 2_000, "files": ["y" * 2_000] * 9} for number in range(1, 30)]
    line = {"id": 9, "comments": [{"at": "2026-01-05T12:00:00Z", "shows": [3], "pulls": pulls}]}
    by_thread, _ = COMMENTS.read(COMMENTS.path(9), f"{json.dumps(line)}\n".encode())
    pulls_read = by_thread[9].comments[0].pulls
    assert (len(pulls_read), len(pulls_read[0].title), len(pulls_read[0].files), len(pulls_read[0].files[0])) == (
        20,
        1_024,
        5,
        1_024,
    )
