"""How threads ended: what counts as evidence, and when nothing is claimed."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model import Kind, Message, Outcome, OutcomeKind, Thread, TimelineEvent
from bot.reading.outcome import MAX_QUOTE, outcome
from tests.bench import bench_endings

CLOSED = datetime(2024, 5, 3, 12, 0, tzinfo=UTC)
SHA = "0d0e0ed056a4578107cd5cc90484dd57cde089de"


def said(text: str, before: timedelta = timedelta(0), author: str = "monalisa", role: str = "MEMBER") -> Message:
    return Message(author, role, CLOSED - before, text, id=7)


def closed(*comments: Message, **fields: object) -> Thread:
    thread = Thread(
        id=42,
        title="Login loops",
        body="It loops.",
        author="octocat",
        created_at=CLOSED - timedelta(days=90),
        state="closed",
        closed_at=CLOSED,
        closed_by="monalisa",
        comments=comments,
    )
    return replace(thread, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Fixed by #57.", OutcomeKind.FIXED),
        ("This was fixed in 8b3a56dd0bd2.", OutcomeKind.FIXED),
        ("Closing, as #57 has been merged.", OutcomeKind.FIXED),
        ("Done.", OutcomeKind.FIXED),
        ("I believe this is fixed now. Please reopen otherwise.", OutcomeKind.FIXED),
        ("Duplicate of #12.", OutcomeKind.DUPLICATE),
        ("Closing in favour of https://github.com/octocat/hello/issues/12", OutcomeKind.DUPLICATE),
        ("Thanks! Closing as a duplicate.", OutcomeKind.DUPLICATE),
        ("We decided not to support this.", OutcomeKind.NOT_PLANNED),
        ("wontfix, sorry", OutcomeKind.NOT_PLANNED),
        ("That code is no longer used, closing.", OutcomeKind.STALE),
        ("Closing due to lack of activity.", OutcomeKind.STALE),
        ("This is expected behavior.", OutcomeKind.ANSWERED),
        ("As a workaround, clear the cookie.", OutcomeKind.WORKAROUND),
    ],
)
def test_a_closing_comment_that_says_so_gives_the_kind(text: str, kind: OutcomeKind) -> None:
    found = outcome(closed(said(text)))
    assert found.kind is kind
    assert (found.comment, found.comment_id, found.author, found.role, found.at) == (0, 7, "monalisa", "MEMBER", CLOSED)
    assert found.confidence >= 0.75


@pytest.mark.parametrize(
    "text",
    [
        "Is this a duplicate of #12?",
        "This is not a duplicate of #12.",
        "Maybe a duplicate of #12",
        "This will be fixed by #57",
        "Not fixed by #57",
        "#57 is related.",
        "It should be done in the library.",
        "> Fixed by #57.\n\nI see.",
        "~~Fixed by #57.~~ See below.",
        "```\nFixed by #57.\n```\nis the log line",
        "It calls `obsolete()` there.",
        "Duplicate of #42",
        "The parser rejected the file.",
    ],
)
def test_doubt_quotes_and_code_name_no_kind(text: str) -> None:
    assert outcome(closed(said(text))).kind is OutcomeKind.UNKNOWN


def test_the_fix_and_the_duplicate_are_named() -> None:
    assert outcome(closed(said("Fixed by #57."))).fix == "#57"
    assert outcome(closed(said("Fixed in https://github.com/octocat/hello/pull/57"))).fix == "#57"
    assert outcome(closed(said(f"Fixed in https://github.com/octocat/hello/commit/{SHA}"))).fix == SHA
    assert outcome(closed(said("Dupe of #12"))).duplicate_of == 12


def test_an_open_thread_has_no_outcome() -> None:
    assert outcome(replace(closed(said("Fixed by #57.")), state="open")) == Outcome()


def test_without_evidence_nothing_is_claimed() -> None:
    assert outcome(closed()) == Outcome()
    assert outcome(closed(said("Me too, any news on that one?", timedelta(days=200), "hubot", "NONE"))) == Outcome()


def test_a_comment_at_closing_without_a_known_phrase_is_quoted_and_given_no_kind() -> None:
    found = outcome(closed(said("The cookie path changed. Clear it or upgrade.")))
    assert found.kind is OutcomeKind.UNKNOWN
    assert found.quote == "The cookie path changed. Clear it or upgrade."


def test_an_explicit_reference_counts_however_long_before_the_closing_it_was_made() -> None:
    found = outcome(closed(said("Dupe of #12", timedelta(days=137), "hubot", "NONE")))
    assert (found.kind, found.duplicate_of) == (OutcomeKind.DUPLICATE, 12)
    assert found.confidence < outcome(closed(said("Dupe of #12"))).confidence


def test_bots_courtesy_and_housekeeping_are_passed_over() -> None:
    bot = replace(said("Closing as stale."), is_bot=True)
    thread = closed(
        said("Fixed by #57."), said("Thanks!", author="octocat"), said("Spring cleaning."), said("@bors r+"), bot
    )
    assert outcome(thread).comment == 0


def test_what_is_said_after_the_closing_counts_only_from_the_closer_and_at_once() -> None:
    late = timedelta(seconds=-60)
    assert outcome(closed(said("Fixed by #57.", late))).comment == 0
    assert outcome(closed(said("Fixed by #57.", late, "hubot"))) == Outcome()
    assert outcome(closed(said("Fixed by #57.", timedelta(minutes=-3)))) == Outcome()


def test_a_reopening_takes_back_what_was_said_before_it() -> None:
    fixed = said("Fixed by #57.", timedelta(hours=5))
    reopened = TimelineEvent("reopened", CLOSED - timedelta(hours=2))
    assert outcome(closed(fixed)).kind is OutcomeKind.FIXED
    assert outcome(closed(fixed, events=(reopened,))) == Outcome()


def test_a_slip_of_the_hand_is_no_reopening() -> None:
    slip = TimelineEvent("reopened", CLOSED - timedelta(seconds=6))
    assert outcome(closed(said("Fixed by #57.", timedelta(minutes=20)), events=(slip,))).kind is OutcomeKind.FIXED


@pytest.mark.parametrize(
    ("event", "fix", "evidence"),
    [
        (TimelineEvent("closed", CLOSED, "monalisa", commit=SHA), SHA, "closing commit"),
        (TimelineEvent("closed", CLOSED, source=57, source_kind=Kind.PULL), "#57", "closing pull request"),
        (TimelineEvent("referenced", CLOSED - timedelta(hours=3), commit=SHA), SHA, "commit shortly before closing"),
        (
            TimelineEvent("cross-referenced", CLOSED - timedelta(days=2), source=57, source_kind=Kind.PULL),
            "#57",
            "pull request shortly before closing",
        ),
    ],
)
def test_events_around_the_closing_name_the_fix(event: TimelineEvent, fix: str, evidence: str) -> None:
    found = outcome(closed(events=(event,)))
    assert (found.kind, found.fix, found.evidence, found.comment) == (OutcomeKind.FIXED, fix, (evidence,), None)


@pytest.mark.parametrize(
    "event",
    [
        TimelineEvent("referenced", CLOSED - timedelta(days=30), commit=SHA),
        TimelineEvent("referenced", CLOSED + timedelta(days=30), commit=SHA),
        TimelineEvent("cross-referenced", CLOSED - timedelta(days=2), source=57, source_kind=Kind.ISSUE),
        TimelineEvent("closed", CLOSED, "monalisa"),
    ],
)
def test_events_far_from_the_closing_or_of_another_sort_name_nothing(event: TimelineEvent) -> None:
    assert outcome(closed(events=(event,))) == Outcome()


def test_words_and_events_that_agree_are_put_together() -> None:
    event = TimelineEvent("closed", CLOSED, "monalisa", commit=SHA)
    found = outcome(closed(said("Done."), events=(event,)))
    assert (found.kind, found.fix) == (OutcomeKind.FIXED, SHA)
    assert found.evidence == ("last comment before closing", "closing commit", "said to be fixed")


def test_a_mark_as_duplicate_counts_until_it_is_taken_back() -> None:
    marked = TimelineEvent("marked_as_duplicate", CLOSED, source=12)
    taken_back = TimelineEvent("unmarked_as_duplicate", CLOSED + timedelta(seconds=1))
    found = outcome(closed(events=(marked,)))
    assert (found.kind, found.duplicate_of) == (OutcomeKind.DUPLICATE, 12)
    assert outcome(closed(events=(marked, taken_back))) == Outcome()


def test_the_state_reason_counts_where_people_choose_it() -> None:
    assert outcome(closed(state_reason="not_planned")).kind is OutcomeKind.NOT_PLANNED
    assert outcome(closed(state_reason="duplicate")).kind is OutcomeKind.DUPLICATE
    assert outcome(closed(state_reason="completed")) == Outcome()
    assert outcome(closed(said("Dupe of #12"), state_reason="not_planned")).kind is OutcomeKind.DUPLICATE


def test_the_quote_is_the_sentence_that_says_it() -> None:
    text = "I looked at this again. The path was wrong. Fixed by #57. " + "And more of the story. " * 30
    assert outcome(closed(said(text))).quote == "Fixed by #57. And more of the story."


@given(st.lists(st.text(max_size=60), max_size=4), st.integers(-300, 300))
def test_any_thread_gives_a_bounded_outcome(texts: list[str], seconds: int) -> None:
    thread = closed(*(said(text, timedelta(seconds=seconds)) for text in texts))
    found = outcome(thread)
    assert len(found.quote) <= MAX_QUOTE
    assert 0 <= found.confidence <= 1
    assert found.comment is None or found.quote


@pytest.mark.parametrize(
    "piece",
    ["fixed by ", "#1 ", "dup of ", "(", "not ", "as of ", "https://a/", "now ", "is ", "[", "ok ", ">", "*", "a."],
)
def test_hostile_comments_are_read_in_bounded_time(piece: str) -> None:
    start = datetime.now(UTC)
    outcome(closed(said((piece * 65_536)[:65_536])))
    assert datetime.now(UTC) - start < timedelta(seconds=5)


@pytest.mark.shared
def test_endings_that_a_reader_found_are_found_and_kinds_are_right(shared: Path) -> None:
    labels = bench_endings.load_labels(shared)
    threads = {name: bench_endings.load_threads(shared, name) for name in {label["archive"] for label in labels}}
    tally: Counter[str] = sum(
        (bench_endings.judge(label, threads[label["archive"]][label["id"]]) for label in labels), Counter()
    )
    assert tally["threads"] == 160
    assert tally["shown_right"] >= 0.95 * tally["shown"]
    assert tally["shown_right"] >= 0.88 * tally["endings"]
    assert tally["kind_right"] >= 0.95 * tally["asserted"]
    assert tally["asserted"] >= 0.4 * tally["threads"]
