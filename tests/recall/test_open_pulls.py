"""Which open pull request is shown with an open issue, and when it no longer is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bot.domain.answer import Context, Match, Mention, threads_in
from bot.domain.changes import Changes
from bot.domain.post import OpenPull
from bot.domain.thread import Kind, RepositoryAddress, Thread, Tombstone
from bot.memory.memory import Memory
from bot.recall.open_pulls import remembered_pulls, still_open, with_pulls
from tests.recall.conftest import Remember

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
REPOSITORY = RepositoryAddress("octo-org/hello-world")
QUESTION = Thread(50, "Logged out", 'File "/usr/lib/auth/session.py", line 3', "monalisa", NOW)
CONTEXT = Context(
    mentioned=(
        Mention(5, "Open", "open"), Mention(6, "Closed", "closed"), Mention(7, "A pull", "open", kind=Kind.PULL),
        Mention(99, missing="no record of this issue"),
    ),
    open_now=(Match(8, "Open too", 0.7, "open", NOW), Match(9, "Asked", 0.7, "open", NOW, kind=Kind.DISCUSSION)),
)  # fmt: skip
CLOSES = OpenPull(5, 60, "Closes it", closes=True, seen_at=NOW)


def test_the_most_telling_of_several_pull_requests_is_shown() -> None:
    cases = [
        ([CLOSES], [60]),
        (
            [replace(CLOSES, about=about) for about in (6, 7, 9, 99, 1)],
            [],
        ),  # no open issue that is shown
        ([replace(CLOSES, about=8), CLOSES], [60, 60]),
        ([replace(CLOSES, id=50)], []),  # the thread itself
        ([replace(CLOSES, closes=False)], []),
        ([OpenPull(5, 61, files=("src/auth/session.py",)), CLOSES], [60]),
        ([OpenPull(5, 61, files=("src/auth/session.py",))], []),  # its parent folder is another one
        ([OpenPull(5, 61, files=("auth/session.py",))], [61]),
        ([OpenPull(5, 61, files=("Auth\\Session.py",))], [61]),  # as the index compares paths, too
        ([OpenPull(5, 61, files=("session.py", "auth/session.pyx"))], []),
        ([replace(CLOSES, id=62, draft=True), CLOSES], [60]),
        ([CLOSES, replace(CLOSES, id=63)], [63]),
        ([CLOSES, OpenPull(5, 59, closes=True)], [59]),  # one in memory needs no date
    ]
    for candidates, expected in cases:
        context = with_pulls(CONTEXT, candidates, QUESTION)
        assert [pull.id for pull in context.pulls] == expected, candidates
        assert set(expected) <= set(threads_in(context)), candidates
        assert with_pulls(context, candidates, QUESTION) == context, candidates
        assert [pull.id for pull in with_pulls(CONTEXT, reversed(candidates), QUESTION).pulls] == expected, candidates


def pull(key: int, body: str, **rest: object) -> Thread:
    return Thread(key, f"Change {key}", body, "hubot", NOW, **({"kind": Kind.PULL} | rest))  # type: ignore[arg-type]


def test_remembered_pull_requests_count_if_they_say_that_they_close_the_issue(remember: Remember) -> None:
    memory: Memory = remember(
        Thread(12, "Crash", "It crashes.", "octocat", NOW),
        pull(20, "Fixes #12."),
        pull(21, "See #12."),
        pull(22, "A fix of #12 comes later."),
        pull(23, "Fixes other/repo#12."),
        pull(24, "Closes https://github.com/octo-org/hello-world/issues/12", draft=True),
        pull(25, "Fixes #12.", state="closed", closed_at=NOW),
        pull(26, "Fixes #121."),
    )
    pulls = remembered_pulls([12, 13], memory, REPOSITORY)
    assert sorted((each.about, each.id, each.draft, each.seen_at) for each in pulls) == [
        (12, 20, False, None),
        (12, 24, True, None),
    ]
    assert remembered_pulls([], memory, REPOSITORY) == []


def test_memory_overrides_what_was_seen_of_a_pull_request_before(remember: Remember) -> None:
    memory: Memory = remember(pull(20, ""), pull(21, "", state="closed", closed_at=NOW))
    memory.stage(Changes(records=(Tombstone(22, NOW),)))
    candidates = [OpenPull(5, number, "Before", seen_at=NOW) for number in (20, 21, 22, 23)]
    assert [(each.id, each.title) for each in still_open(candidates, memory)] == [(20, "Change 20"), (23, "Before")]
