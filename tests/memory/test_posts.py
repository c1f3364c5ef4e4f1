"""Our posts on a thread and the posts that show it: stored both ways, and renewed when the thread visibly changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bot.domain.changes import NOTICES_OFF, Changes, FixInfo, Request
from bot.domain.post import (
    COMMENT,
    OpenPull,
    OrganisationKey,
    Post,
    PostKey,
    Renewal,
    ThreadPosts,
    notice_slot,
    reply_slot,
)
from bot.domain.thread import FORGOTTEN, Message, Thread, ThreadId, Tombstone
from bot.memory.manifest import MAX_RENEWALS_DUE, Manifest, decode_manifest, encode_manifest
from bot.memory.memory import Memory
from bot.memory.merge import MAX_NOTICES, newest_posts
from bot.memory.shards import POSTS
from tests.memory.samples import ON_BRANCH_TOO, StoredMemory, at, issue, remember

OPEN_PULLS = (
    OpenPull(3, 205, "Mend it", closes=True, draft=True, files=("a/b.py",), seen_at=at(1)),
    OpenPull(4, 206, seen_at=at(1)),
)
ON_9 = Post(9, "said", at(1), content="f", shows=(3, 205), quotes=("0a1b2c3d",), pulls=OPEN_PULLS)
BODY = "It fails at the first start."
REPLY = Post(9, "said", at(1), reply_slot(77), content="g", shows=(3, 9))
NOTICE = Post(3, "pending", at(2), notice_slot("#57"), content="n", release="v2.3.0", trying_since=at(2))
DUPLICATE_NOTICE = Post(9, "said", at(1), notice_slot("#57"), release="v2.3.0", comment_id=70, shows=(3,))
SLOTS = pytest.mark.parametrize(
    "slot", [COMMENT, reply_slot(77), notice_slot("#57")], ids=["comment", "reply", "notice"]
)


@pytest.fixture
def stored(stored: StoredMemory) -> StoredMemory:
    memory = stored.memory()
    memory.stage(Changes(records=(talk(3), issue(4), issue(9), issue(205))))
    store_posts(memory, ON_9, REPLY)
    return stored


def store_posts(memory: Memory, *posts: Post) -> None:
    memory.stage(Changes(posts=posts))
    memory.commit("posts")


def posts_on(memory: Memory, key: ThreadId) -> tuple[Post, ...]:
    return memory.state.posts_on(key).posts


def shown_by(memory: Memory, key: ThreadId) -> tuple[PostKey, ...]:
    return memory.state.posts_on(key).shown_by


def owed_renewals(memory: Memory) -> list[tuple[ThreadId, str, ThreadId]]:
    return [renewal.key for renewal in memory.state.manifest.renewals_due]


@ON_BRANCH_TOO
def test_memory_knows_which_posts_show_a_thread_and_which_stand_on_it(stored: StoredMemory) -> None:
    memory = stored.memory()
    assert shown_by(memory, 3) == (ON_9.key, REPLY.key)
    assert shown_by(memory, 205) == (ON_9.key,)
    assert posts_on(memory, 9) == (ON_9, REPLY)
    assert memory.state.posts([4, 12]) == {}
    assert json.loads(stored.files("posts")["posts/0002.jsonl"]) == {"id": 205, "shown_by": [[9, ""]]}


@SLOTS
def test_a_later_post_replaces_the_earlier_one_in_both_lists(stored: StoredMemory, slot: str) -> None:
    memory, earlier = stored.memory(), Post(9, "said", at(2), slot, content="f", shows=(3,))
    store_posts(memory, earlier)
    memory.stage(Changes(posts=(replace(earlier, at=at(3), content="h", shows=(4,)),)))
    memory.stage(Changes(posts=(earlier,)))
    memory.commit("later")
    reopened = stored.memory()
    assert [earlier.key in shown_by(reopened, key) for key in (3, 4)] == [False, True]
    assert [post.content for post in posts_on(reopened, 9) if post.slot == slot] == ["h"]


def test_a_reply_that_shows_nothing_any_more_is_not_kept(stored: StoredMemory) -> None:
    store_posts(stored.memory(), replace(REPLY, at=at(2), shows=()), replace(ON_9, at=at(2)).showing(None))
    memory = stored.memory()
    assert [post.slot for post in posts_on(memory, 9)] == [COMMENT]
    assert {key: shown_by(memory, key) for key in (3, 9, 205)} == {3: (), 9: (), 205: ()}
    assert sorted(stored.files("posts")) == ["posts/0000.jsonl"]


def test_of_the_posts_on_a_deleted_thread_only_that_there_was_a_comment_is_kept(stored: StoredMemory) -> None:
    store_posts(stored.memory(), DUPLICATE_NOTICE)
    remember(stored.memory(), Tombstone(9, at(5)))
    memory = stored.memory()
    assert posts_on(memory, 9) == (ON_9.showing(None),)
    assert {key: shown_by(memory, key) for key in (3, 9, 205)} == {3: (), 9: (), 205: ()}


def test_a_run_that_did_not_know_that_a_thread_is_gone_stores_nothing_that_its_posts_show(stored: StoredMemory) -> None:
    slow, late = stored.memory(), replace(ON_9, at=at(6), content="late")
    slow.stage(Changes(posts=(late, replace(REPLY, at=at(6)), replace(DUPLICATE_NOTICE, at=at(6)))))
    remember(stored.memory(), Tombstone(9, at(5)))
    slow.commit("late")
    memory = stored.memory()
    assert posts_on(memory, 9) == (late.showing(None),)
    assert {key: shown_by(memory, key) for key in (3, 9, 205)} == {3: (), 9: (), 205: ()}


def test_a_thread_that_comes_back_has_its_comment_as_before(stored: StoredMemory) -> None:
    remember(stored.memory(), Tombstone(9, at(5)))
    remember(stored.memory(), issue(9, 6))
    assert posts_on(stored.memory(), 9) == (ON_9.showing(None),)


def test_of_the_posts_on_a_forgotten_thread_nothing_is_kept(stored: StoredMemory) -> None:
    store_posts(stored.memory(), DUPLICATE_NOTICE)
    slow = stored.memory()
    slow.stage(Changes(posts=tuple(replace(post, at=at(6)) for post in (ON_9, REPLY, DUPLICATE_NOTICE))))
    remember(stored.memory(), Tombstone(9, at(5), FORGOTTEN))
    assert stored.memory().state.every_thread_posts() == []
    assert stored.files("posts") == {}
    slow.commit("late")
    assert stored.files("posts") == {}
    assert stored.memory().state.manifest.pending == ()


def test_where_a_gone_thread_is_shown_is_known_until_it_is_shown_no_more(stored: StoredMemory) -> None:
    for reason in ("deleted", FORGOTTEN):
        remember(stored.memory(), Tombstone(3, at(5), reason))
        assert shown_by(stored.memory(), 3) == (ON_9.key, REPLY.key)
    store_posts(stored.memory(), *(replace(post, at=at(6)).showing(None) for post in (ON_9, REPLY)))
    assert stored.memory().state.posts([3]) == {}


def test_after_damage_to_the_manifest_posts_that_show_what_changed_since_are_renewed(stored: StoredMemory) -> None:
    store_posts(stored.memory(), Post(4, "said", at(2), content="h", shows=(3, 9)), DUPLICATE_NOTICE)
    remember(stored.memory(), talk(3, title="Another title", revision=1.5), issue(205, 0.5))
    stored.put({"manifest.json": b"{"})
    memory = stored.memory()
    remember(memory, issue(7))
    expected = [(*ON_9.key, 3), (*REPLY.key, 3)]
    assert owed_renewals(stored.memory()) == expected, "not 4, which was written later, nor the notice"
    assert remember(stored.memory(), issue(8))
    assert owed_renewals(stored.memory()) == expected


def test_a_reply_about_other_repositories_is_kept_until_it_shows_none(stored: StoredMemory) -> None:
    others = (OrganisationKey(7, 31), OrganisationKey(8, "docs/a.md"))
    reply = Post(4, "said", at(2), reply_slot(40), content="h", others=others)
    store_posts(stored.memory(), reply)
    assert posts_on(stored.memory(), 4) == (reply,)
    store_posts(stored.memory(), replace(reply, at=at(3), others=()))
    assert stored.memory().state.posts([4]) == {}


LINE = {"state": "said", "at": "2025-01-01T00:00:00Z", "shows": [3]}


def test_links_to_other_repositories_are_bounded_and_damage_costs_the_post() -> None:
    def read(others: object) -> tuple[tuple[OrganisationKey, ...], bool]:
        thread, is_intact = POSTS.parse({"id": 4, "posts": [LINE | {"others": others}]})
        return (thread.posts[0].others if thread.posts else ()), is_intact

    assert read([[7, number] for number in range(1, 90)]) == (tuple(OrganisationKey(7, n) for n in range(1, 5)), True)
    for damaged in ([[7]], [[7, 8, 9]], [["7", 8]], [[0, 8]], [[7, None]], [7], 7, "ab", {"a": 1}):
        assert read(damaged) == ((), False), damaged


def test_an_owed_renewal_is_kept_until_it_is_done(stored: StoredMemory) -> None:
    memory, renewal = stored.memory(), Renewal(9, "", 9, at(4))
    memory.stage(Changes(renewals_due=(renewal,)))
    memory.commit("owe")
    memory = stored.memory()
    assert memory.state.manifest.renewals_due == (renewal,)
    memory.stage(Changes(renewals_done=(renewal,)))
    memory.commit("done")
    assert stored.memory().state.manifest.renewals_due == ()


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
def test_a_visible_change_owes_a_renewal_of_the_comments_and_replies_that_show_the_thread(
    changed: Thread | Tombstone, is_owed: bool, stored: StoredMemory
) -> None:
    memory = stored.memory()
    store_posts(memory, DUPLICATE_NOTICE)
    remember(memory, talk(3, "One.", "Two.", revision=0.5))
    assert owed_renewals(memory) == []
    remember(memory, changed if isinstance(changed, Tombstone) else replace(changed, updated_at=at(1)))
    assert [(renewal.key, renewal.at) for renewal in stored.memory().state.manifest.renewals_due] == (
        [((*ON_9.key, 3), at(1)), ((*REPLY.key, 3), at(1))] if is_owed else []
    )


def test_deleting_one_of_two_equal_comments_is_a_visible_change(stored: StoredMemory) -> None:
    """For example two commands: our reply to the deleted one is removed with it."""
    memory = stored.memory()
    remember(memory, talk(3, "/precedent off", "/precedent off", revision=1))
    remember(memory, talk(3, "/precedent off", revision=2))
    assert owed_renewals(memory) == [(*ON_9.key, 3), (*REPLY.key, 3)]


def test_a_finished_renewal_is_not_owed_but_a_later_change_still_is(stored: StoredMemory) -> None:
    memory = stored.memory()
    remember(memory, talk(3, title="One", revision=1))
    first = memory.state.manifest.renewals_due
    remember(stored.memory(), talk(3, title="Two", revision=2))
    memory.stage(Changes(renewals_done=(first[0],)))
    memory.commit("done")
    assert [(renewal.key, renewal.at) for renewal in stored.memory().state.manifest.renewals_due] == [
        ((*ON_9.key, 3), at(2)),
        ((*REPLY.key, 3), at(2)),
    ]
    memory.stage(Changes(renewals_done=memory.state.manifest.renewals_due))
    memory.commit("done")
    assert stored.memory().state.manifest.renewals_due == ()


def test_a_new_fix_and_a_match_called_wrong_are_visible_changes(stored: StoredMemory) -> None:
    memory = stored.memory()
    memory.stage(Changes(fixes=(FixInfo(205, "a" * 40, at(2)),)))
    assert owed_renewals(memory) == [(*ON_9.key, 205)]
    memory.stage(
        Changes(renewals_done=memory.state.manifest.renewals_due, fixes=(FixInfo(205, "a" * 40, at(3)),))
    )  # the same, looked up again
    assert owed_renewals(memory) == []
    memory.stage(Changes(requests=(Request(3, 5, "wrong", "octocat", at(2), about=(8,)),)))
    assert owed_renewals(memory) == []
    memory.stage(Changes(requests=(Request(3, 6, "wrong", "octocat", at(2), about=(9,)),)))
    assert owed_renewals(memory) == [(*ON_9.key, 3), (*REPLY.key, 3)]


def test_a_post_that_shows_what_another_run_changed_meanwhile_is_renewed(stored: StoredMemory) -> None:
    slow, quick = stored.memory(), stored.memory()
    slow.records([4])
    slow.stage(Changes(posts=(Post(9, "said", at(2), content="h", shows=(4,)),)))
    remember(quick, talk(4, title="It is otherwise now", revision=1))
    slow.commit("slow")
    assert owed_renewals(stored.memory()) == [(*ON_9.key, 4)]


@SLOTS
def test_the_first_of_two_runs_that_promise_one_post_wins(stored: StoredMemory, slot: str) -> None:
    slow, quick = stored.memory(), stored.memory()
    other = Post(4, "pending", at(3), slot, content="other", shows=(3,), trying_since=at(3))
    first = replace(other, id=9, at=at(2), content="quick", trying_since=at(2))
    store_posts(quick, first)
    store_posts(slow, replace(other, id=9, content="slow"), other)
    assert (quick.taken, slow.taken) == (set(), {PostKey(9, slot)})
    memory = stored.memory()
    assert [post for post in posts_on(memory, 9) if post.slot == slot] == [first]
    assert posts_on(memory, 4) == (other,)


@SLOTS
def test_a_run_that_renews_a_post_after_another_run_did_knows_it_was_taken(stored: StoredMemory, slot: str) -> None:
    before = Post(9, "said", at(1.5), slot, content="f", shows=(3,), comment_id=70)
    store_posts(stored.memory(), before)
    slow, quick = stored.memory(), stored.memory()
    store_posts(quick, replace(before, at=at(2), content="quick", trying_since=at(2)))
    store_posts(slow, replace(before, at=at(3), content="slow", trying_since=at(3)))
    assert slow.taken == {PostKey(9, slot)}
    assert [post.content for post in posts_on(stored.memory(), 9) if post.slot == slot] == ["quick"]


def test_a_rebuild_restores_the_lists_of_posts_that_show_a_thread(stored: StoredMemory) -> None:
    wrong = {3: ThreadPosts(3, (), (PostKey(8), REPLY.key)), 205: None}
    stored.put(dict(POSTS.edits(stored.files("posts"), wrong)))
    memory = stored.memory()
    assert [shown_by(memory, key) for key in (3, 205)] == [(PostKey(8), REPLY.key), ()]
    memory.stage(Changes(read_whole=at(9)))
    memory.commit("rebuild")
    memory = stored.memory()
    assert [shown_by(memory, key) for key in (3, 205)] == [(ON_9.key, REPLY.key), (ON_9.key,)]


def test_a_damaged_line_costs_only_that_line(stored: StoredMemory) -> None:
    stored.put({"posts/0002.jsonl": b'{"id": 205, "shown_by": 5}\n', "posts/0000.jsonl": b"\0"})
    memory = stored.memory()
    assert memory.state.posts([3, 205]) == {}
    assert len(memory.notes) == 2
    store_posts(memory, replace(ON_9, at=at(2)))
    assert shown_by(stored.memory(), 205) == (ON_9.key,)


def test_owed_renewals_are_bounded_and_round_trip(stored: StoredMemory) -> None:
    many = Manifest().with_renewals(Renewal(number, "", 3, at(number)) for number in range(1, MAX_RENEWALS_DUE + 9))
    assert len(many.renewals_due) == MAX_RENEWALS_DUE
    assert many.renewals_due[0].id == 1
    assert decode_manifest(encode_manifest(many)).renewals_due == many.renewals_due


def test_comments_and_notices_are_counted_once_when_they_are_promised(stored: StoredMemory) -> None:
    comment, reply = replace(NOTICE, slot=COMMENT, at=at(3)), replace(NOTICE, slot=reply_slot(5), shows=(9,))
    store_posts(stored.memory(), NOTICE, DUPLICATE_NOTICE, comment, reply)
    memory = stored.memory()
    assert posts_on(memory, 3) == (comment, reply, NOTICE)
    assert posts_on(memory, 9) == (ON_9, REPLY, DUPLICATE_NOTICE)
    assert memory.state.manifest.written == (at(2), at(3)), "a reply counts with its request"
    again = replace(NOTICE, trying_since=at(4), revised_at=at(4))
    store_posts(memory, again, replace(DUPLICATE_NOTICE, state="removed"))
    reopened = stored.memory()
    assert posts_on(reopened, 3) == (comment, reply, again)
    assert [post.state for post in posts_on(reopened, 9)] == ["said", "said", "removed"]
    assert reopened.state.manifest.written == (at(2), at(3))


@SLOTS
def test_a_settled_post_never_becomes_a_promise_again(stored: StoredMemory, slot: str) -> None:
    memory = stored.memory()
    promise = replace(NOTICE, id=4, slot=slot, shows=(3,))
    for state in ("said", "pending", "removed", "said"):
        store_posts(memory, replace(promise, state=state, trying_since=at(5) if state == "pending" else None))
    assert [post.state for post in posts_on(stored.memory(), 4)] == ["removed"]


def test_a_damaged_post_costs_only_that_post(stored: StoredMemory) -> None:
    intact = b'{"slot":"%s","release":"v2.3.0","at":"2026-01-01T00:00:00Z","state":"said"}' % NOTICE.slot.encode()
    forged = [(b"said", b"sung"), (b"2026", b"x"), (b"notice:", b"reply:"), (b"notice:", b"notice:A"), (b"notice", b"")]
    for damaged in (b"5", b"{}", b"[]", *(intact.replace(*each) for each in forged)):
        stored.put({"posts/0000.jsonl": b'{"id":3,"posts":[%s,%s]}\n' % (damaged, intact)})
        memory = stored.memory()
        assert [post.state for post in posts_on(memory, 3)] == ["said"], damaged
        assert len(memory.notes) == 1
    stored.put({"posts/0000.jsonl": b'{"id":3,"posts":7}\n'})
    assert posts_on(stored.memory(), 3) == ()


def test_the_newest_notices_of_a_thread_are_kept_beside_all_other_posts() -> None:
    other = [replace(ON_9, id=3), replace(REPLY, id=3)]
    many = [Post(3, "said", at(1 + number), notice_slot(f"#{number}")) for number in range(MAX_NOTICES + 5)]
    kept = newest_posts([*reversed(many), *other])
    assert {post for post in kept if post.key.is_note} == {*many[5:]}
    assert [post for post in kept if not post.key.is_note] == other
    assert newest_posts(sorted(kept, key=lambda post: post.at)) == kept


def test_a_notice_that_is_no_longer_kept_counts_as_showing_nothing(stored: StoredMemory) -> None:
    memory = stored.memory()
    notices = [
        replace(DUPLICATE_NOTICE, at=at(1 + number), slot=notice_slot(f"#{number}")) for number in range(MAX_NOTICES)
    ]
    store_posts(memory, *notices)
    assert notices[0].key in shown_by(memory, 3)
    store_posts(memory, replace(DUPLICATE_NOTICE, at=at(99), slot=notice_slot("#99")))
    assert len(shown_by(memory, 3)) == MAX_NOTICES + 2, "the comment and the reply show it too"
    assert notices[0].key not in shown_by(stored.memory(), 3)


def test_the_time_of_the_last_notice_only_advances_until_notices_are_switched_off() -> None:
    manifest = Manifest().with_notified(at(5)).with_notified(at(3)).with_notified(None)
    assert manifest.notified_until == at(5)
    assert decode_manifest(encode_manifest(manifest)).notified_until == at(5)
    off = manifest.with_notified(NOTICES_OFF)
    assert (off.notified_until, b"notified_until" in encode_manifest(off)) == (None, False)


@pytest.mark.parametrize("damage", [{}, "x", [{}], [{"about": "3", "id": 5}], [{"about": 3, "id": True}], [3]])
def test_damaged_pull_requests_cost_only_their_post(damage: object) -> None:
    line = {"id": 9, "posts": [LINE | {"pulls": damage}, LINE | {"slot": REPLY.slot}]}
    by_thread, is_intact = POSTS.read(POSTS.path(9), f"{json.dumps(line)}\n".encode())
    assert [post.slot for post in by_thread[9].posts] == [REPLY.slot]
    assert not is_intact


def test_pull_requests_and_their_titles_are_bounded() -> None:
    pulls = [{"about": number, "id": 5, "title": "x" * 2_000, "files": ["y" * 2_000] * 9} for number in range(1, 30)]
    line = {"id": 9, "posts": [LINE | {"pulls": pulls}]}
    by_thread, _ = POSTS.read(POSTS.path(9), f"{json.dumps(line)}\n".encode())
    read = by_thread[9].posts[0].pulls
    assert (len(read), len(read[0].title), len(read[0].files), len(read[0].files[0])) == (20, 1_024, 5, 1_024)
