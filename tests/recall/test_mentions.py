"""The threads that a thread mentions, with what memory knows of them."""

from dataclasses import replace
from typing import Any

import pytest

from bot.domain.answer import CondensedTurn
from bot.domain.thread import Kind, OutcomeKind, RepositoryAddress, Thread, Tombstone
from bot.recall.mentions import NO_RECORD, canonical_chain, find_mentions, mentioned_elsewhere, referenced_numbers
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, duplicate, message, thread

REPOSITORY = RepositoryAddress("octo-org/hello-world")
LIMITS = (3, 5_000)


def test_references_are_read_from_title_body_and_comments_in_order_and_once() -> None:
    issue = thread(9, "After #5", "See #3 and #5, and #9.", comments=(message("Also GH-7, not `#8`. See #3."),))
    assert referenced_numbers(issue, REPOSITORY) == [5, 3, 7]


def test_only_this_repository_counts() -> None:
    issue = thread(9, body="octo-org/hello-world#4, octo-org/other#5, https://github.com/octo-org/hello-world/issues/6")
    assert referenced_numbers(issue, REPOSITORY) == [4, 6]
    assert referenced_numbers(issue, RepositoryAddress()) == []


def test_references_in_a_bots_comment_do_not_count() -> None:
    assert referenced_numbers(thread(9, body="#3", comments=(message("#4", is_bot=True),)), REPOSITORY) == [3]


def test_a_link_to_another_host_counts_if_github_is_reached_there() -> None:
    issue = thread(9, body="https://git.example.com/octo-org/hello-world/issues/4")
    assert referenced_numbers(issue, REPOSITORY) == []
    assert referenced_numbers(issue, RepositoryAddress("octo-org/hello-world", ("git.example.com",))) == [4]


def test_a_mention_shows_how_the_thread_ended(remember: Remember) -> None:
    answer = message("We decided to keep PostgreSQL. Fixed by #8.", 3, "hubot", "MEMBER")
    old = closed(3, "Use PostgreSQL", "Redis lost `store/session.py`.", comments=(answer,), state_reason="completed")
    (mention,), listed = find_mentions(thread(9, body="As in #3"), REPOSITORY, remember(old), None, LIMITS)
    assert (mention.id, mention.title, mention.state, mention.state_reason) == (
        3,
        "Use PostgreSQL",
        "closed",
        "completed",
    )
    assert mention.outcome.fix == "#8"
    assert mention.decisions[0].text.startswith("We decided to keep PostgreSQL")
    assert mention.files == ("store/session.py",)
    assert mention.conversation[0].text.startswith("Redis lost")
    assert listed == ()


def test_the_thread_itself_is_left_out_even_at_the_end_of_a_chain(remember: Remember) -> None:
    memory = remember(duplicate(3, of=9), thread(9, body="#9 and #3"))
    full, listed = find_mentions(thread(9, body="#9 and #3"), REPOSITORY, memory, None, LIMITS)
    assert (full, listed) == ((), ())


def test_an_issue_that_memory_does_not_hold_has_no_record(remember: Remember) -> None:
    full, others = find_mentions(thread(9, body="#4"), REPOSITORY, remember(thread(1)), None, LIMITS)
    assert full == ()
    assert [(m.id, m.missing, m.title) for m in others] == [(4, NO_RECORD, "")]


def test_a_deleted_issue_has_no_record(remember: Remember) -> None:
    _, others = find_mentions(thread(9, body="#4"), REPOSITORY, remember(Tombstone(4, at(5))), None, LIMITS)
    assert [mention.id for mention in others if mention.missing] == [4]


def test_a_number_that_does_not_exist_yet_is_ignored(remember: Remember) -> None:
    memory = remember(thread(1))
    assert find_mentions(thread(9, body="#10"), REPOSITORY, memory, None, LIMITS) == ((), ())
    _, others = find_mentions(thread("ABC-9", body="#10"), REPOSITORY, memory, None, LIMITS)
    assert [mention.id for mention in others if mention.missing] == [10]


def test_three_mentions_are_shown_in_full_and_the_others_by_title(remember: Remember) -> None:
    memory = remember(
        *(thread(n, f"Title {n}", "A body that says a little more than nothing at all.") for n in range(1, 8))
    )
    full, listed = find_mentions(thread(9, body="#7 #6 #5 #4 #3"), REPOSITORY, memory, None, LIMITS)
    assert [m.id for m in full] == [7, 6, 5]
    assert [(m.id, m.title, m.conversation, m.summary) for m in listed] == [
        (4, "Title 4", (), ""),
        (3, "Title 3", (), ""),
    ]


def test_a_mention_without_a_record_does_not_use_up_the_limit(remember: Remember) -> None:
    memory = remember(*(thread(n) for n in (1, 2, 3, 4)))
    full, others = find_mentions(thread(99, body="#50 #1 #2 #60 #3 #4"), REPOSITORY, memory, None, LIMITS)
    assert [m.id for m in full] == [1, 2, 3]
    assert [m.id for m in others] == [50, 4]


def test_each_conversation_has_at_most_five_thousand_characters(remember: Remember) -> None:
    talk = tuple(message("word " * 100, n) for n in range(4, 40))
    memory = remember(*(thread(n, comments=talk) for n in (1, 2, 3)))
    full, _ = find_mentions(thread(9, body="#1 #2 #3"), REPOSITORY, memory, None, LIMITS)
    assert [m.id for m in full] == [1, 2, 3]
    assert all(4_000 < sum(turn.length for turn in m.conversation) <= 5_000 for m in full)


@pytest.mark.parametrize("limit", [0, 1, 10])
def test_the_number_of_mentions_shown_in_full_is_a_setting(remember: Remember, limit: int) -> None:
    memory = remember(*(thread(n) for n in range(1, 9)))
    full, listed = find_mentions(thread(9, body="#1 #2 #3 #4 #5 #6 #7 #8"), REPOSITORY, memory, None, (limit, 5_000))
    assert (len(full), len(listed)) == (min(limit, 8), 8 - min(limit, 8))


def test_a_hundred_references_end_in_a_short_list(remember: Remember) -> None:
    memory = remember(*(thread(n) for n in range(1, 101)))
    body = " ".join(f"#{n}" for n in range(1, 101))
    full, listed = find_mentions(thread(200, body=body), REPOSITORY, memory, None, LIMITS)
    assert (len(full), len(listed)) == (3, 10)


def test_a_pull_request_is_shown_with_its_state(remember: Remember) -> None:
    memory = remember(
        thread(1, kind=Kind.PULL),
        thread(2, kind=Kind.PULL, draft=True),
        closed(3, kind=Kind.PULL, merged_at=at(3.5)),
        closed(4, kind=Kind.PULL),
    )
    full, listed = find_mentions(thread(9, body="#1 #2 #3 #4"), REPOSITORY, memory, None, (3, 5_000))
    states = [(m.kind, m.state, m.draft, m.merged_at) for m in (*full, *listed)]
    assert states == [
        (Kind.PULL, "open", False, None),
        (Kind.PULL, "open", True, None),
        (Kind.PULL, "closed", False, at(3.5)),
        (Kind.PULL, "closed", False, None),
    ]
    full, listed = find_mentions(thread(9, body="#1 #2 #4 #3"), REPOSITORY, memory, None, (3, 5_000))
    assert [(m.id, m.merged_at) for m in listed] == [(3, at(3.5))]


def test_a_pull_request_that_was_merged_later_is_shown_as_open(remember: Remember) -> None:
    memory = remember(closed(3, after=30, kind=Kind.PULL, merged_at=at(33)))
    (mention,), _ = find_mentions(thread(9, body="#3"), REPOSITORY, memory, at(9), LIMITS)
    assert (mention.state, mention.merged_at) == ("open", None)


# Other repositories


def test_threads_of_other_repositories_are_named() -> None:
    cases = [
        ("octocat/other#5", ("octocat/other#5",)),
        ("See https://github.com/octocat/other/issues/5 and Octocat/Other#5.", ("octocat/other#5",)),
        ("https://github.com/octocat/other/pull/6#issuecomment-1", ("octocat/other#6",)),
        ("octocat/hello-world#5 and #6", ()),
        ("`octocat/other#5`", ()),
        ("https://example.org/octocat/other/issues/5", ()),
        (" ".join(f"octocat/other#{n}" for n in range(1, 9)), tuple(f"octocat/other#{n}" for n in range(1, 6))),
        ("[" * 65_536, ()),
        ("\ud800octocat/other#5\x00", ("octocat/other#5",)),
    ]
    assert [
        body
        for body, expected in cases
        if mentioned_elsewhere(thread(9, body=body), RepositoryAddress("octocat/hello-world")) != expected
    ] == []


def test_threads_of_other_repositories_are_read_from_title_body_and_peoples_comments() -> None:
    issue = thread(
        9,
        title="As octocat/a#1",
        body="octocat/b#2",
        comments=(message("octocat/c#3"), message("octocat/d#4", is_bot=True), message("octocat/A#1")),
    )
    assert mentioned_elsewhere(issue, RepositoryAddress("octocat/hello-world")) == (
        "octocat/a#1",
        "octocat/b#2",
        "octocat/c#3",
    )


def test_a_company_server_has_its_own_hosts() -> None:
    issue = thread(9, title="https://git.example.com/octocat/a/issues/1", body="https://github.com/octocat/b/issues/2")
    assert mentioned_elsewhere(issue, RepositoryAddress("octocat/hello-world", ("git.example.com",))) == (
        "octocat/a#1",
    )


# Duplicates


def test_a_duplicate_of_an_unknown_thread_is_shown_without_its_original(remember: Remember) -> None:
    unknown = duplicate(3, of=77)
    other = closed(4, "Hang", "It hangs.", comments=(message("Duplicate of octocat/other#5.", 4.5, "hubot", "MEMBER"),))
    five = closed(5, "Not this one", "Nothing to do with it.")
    full, _ = find_mentions(
        thread(9, body="#3 #4"), RepositoryAddress("octocat/hello-world"), remember(unknown, other, five), None, LIMITS
    )
    shown = [(m.id, m.chain, m.outcome.kind, m.outcome.duplicate_of) for m in full]
    assert shown == [(3, (), OutcomeKind.DUPLICATE, 77), (4, (), OutcomeKind.DUPLICATE, None)]


def chain_of(remember: Remember, *links: tuple[int, int]) -> list[int | str]:
    memory = remember(*(duplicate(key, of=target) for key, target in links), thread(1, "The first of all"))
    return canonical_chain(links[0][0], memory, None)


def test_a_chain_of_duplicates_is_followed_to_its_end(remember: Remember) -> None:
    assert chain_of(remember, (4, 3), (3, 2), (2, 1)) == [4, 3, 2, 1]


def test_a_cycle_ends_at_the_last_thread_that_was_new(remember: Remember) -> None:
    assert chain_of(remember, (4, 3), (3, 2), (2, 4)) == [4, 3, 2]
    assert chain_of(remember, (3, 3)) == [3]


def test_a_chain_ends_before_an_unknown_thread(remember: Remember) -> None:
    assert chain_of(remember, (4, 3), (3, 77)) == [4, 3]


def test_a_chain_is_followed_only_to_a_limit(remember: Remember) -> None:
    assert len(chain_of(remember, *((n, n - 1) for n in range(40, 1, -1)))) == 11


def test_a_mentioned_duplicate_is_shown_as_its_canonical_issue(remember: Remember) -> None:
    memory = remember(duplicate(4, of=3), duplicate(3, of=1), closed(1, "The first of all"))
    full, _ = find_mentions(thread(9, body="#4, also #1"), REPOSITORY, memory, None, LIMITS)
    assert [(m.id, m.title, m.chain) for m in full] == [(1, "The first of all", (4, 3))]


# As of an earlier time


def test_nothing_later_than_the_given_time_is_shown(remember: Remember) -> None:
    later = message("Fixed by #8.", 30, "hubot", "MEMBER")
    memory = remember(closed(3, "Old", "It breaks.", after=27, comments=(later,)), thread(4, "Later", days=25))
    full, others = find_mentions(thread(9, body="#3 and #4", days=20), REPOSITORY, memory, at(20), LIMITS)
    assert [(m.id, m.state, m.missing) for m in (*full, *others)] == [(3, "open", ""), (4, "", NO_RECORD)]
    assert "Fixed" not in str(full[0].conversation)


# What a mention shows


def summary_and_conversation(remember: Remember, issue: Thread) -> tuple[str, tuple[CondensedTurn, ...]]:
    (mention,), _ = find_mentions(thread(99, body=f"#{issue.id}"), REPOSITORY, remember(issue), None, LIMITS)
    return mention.summary, mention.conversation


def test_a_reply_too_short_to_be_understood_is_no_summary(remember: Remember) -> None:
    issue = thread(
        3, body="Packets that were coalesced cannot be told apart.", comments=(message("And `packet_dropped`."),)
    )
    assert summary_and_conversation(remember, issue)[0] == "Packets that were coalesced cannot be told apart."


def test_a_reply_of_some_length_is_the_summary(remember: Remember) -> None:
    reply = "Please try the nightly build, it should be gone there by now."
    assert summary_and_conversation(remember, thread(3, body="It breaks.", comments=(message(reply),)))[0] == reply


def test_a_conversation_that_says_no_more_than_the_summary_is_left_out(remember: Remember) -> None:
    body = "This is the tracking issue for everything about header compression."
    assert summary_and_conversation(remember, thread(3, body=body)) == (body, ())
    assert summary_and_conversation(remember, thread(4, body=f"{body}\n\nSee the list."))[1] != ()


@pytest.mark.parametrize(
    ("author", "acts", "is_known"),
    [
        ("monalisa", {}, False),
        ("octocat", {}, True),
        ("HUBOT", {"comments": (message("Me too.", 3.5, "hubot"),)}, True),
        ("hubot", {"comments": (message("Me too.", 30, "hubot"),)}, False),
        ("hubot", {"closed_by": "hubot"}, True),
    ],
)
def test_who_took_part_before_knows_the_thread(
    remember: Remember, author: str, acts: dict[str, Any], *, is_known: bool
) -> None:
    memory = remember(replace(closed(3, "Old"), **{"author": "octocat", "closed_by": "octocat", **acts}))
    (mention,), _ = find_mentions(replace(thread(9, body="#3"), author=author), REPOSITORY, memory, None, LIMITS)
    assert mention.is_known is is_known
    comments = (message("See #3.", 9.5, "monalisa"), message("As in #3", 9.6, author))
    (mention,), _ = find_mentions(replace(thread(9), comments=comments), REPOSITORY, memory, None, LIMITS)
    assert not mention.is_known, "the first who names it counts"


def test_a_question_for_what_was_decided_is_told_apart(remember: Remember) -> None:
    asking = RepositoryAddress("octo-org/hello-world")
    for text, is_asked in (("What did we decide in #3?", True), ("We decided it in #3.", False)):
        (mention,), _ = find_mentions(thread(9, body=text), asking, remember(closed(3)), None, LIMITS)
        assert mention.is_asked is is_asked
