"""What was said lately: conversations, who spoke, tiers within a budget, and the days as people call them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.comment.prompt import FORMS, Xml, render
from bot.domain.thread import Kind, Message, Thread, TimelineEvent
from bot.questions.context import (
    RecentConversations,
    Tier,
    history_of,
    recent_conversations,
    threads_of_issue,
    threads_of_participant,
    tiers_of,
)
from bot.questions.requests import MAX_CHARS, MIN_CHARS
from bot.reading.conversations import Conversation, ConversationHistory, Turn
from tests.examples import examples

NOW = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)  # a Thursday
ME = ["Hubot"]
BERLIN, NEW_YORK, AUCKLAND = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Pacific/Auckland")
ZONES = [UTC, BERLIN, NEW_YORK, AUCKLAND, ZoneInfo("Asia/Kolkata"), ZoneInfo("Pacific/Apia")]
DAY = 24 * 60


def before(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def thread(key: int | str, *said: tuple[float, str], title: str = "Login loops", **rest: Any) -> Thread:
    """A thread of messages, each so many minutes before now; the first is the opening text. Hubot's are the agent's."""
    (opened, body), *others = said
    comments = tuple(Message("hubot" if "mine" in text else "octocat", "NONE", before(at), text) for at, text in others)
    values: dict[str, Any] = {"author": "monalisa", "created_at": before(opened), "comments": comments}
    return Thread(key, title, body, **(values | rest))


def told(*threads: Thread, chars: int = MAX_CHARS, now: datetime = NOW, days: int = 7) -> ConversationHistory:
    return history_of(recent_conversations(threads, ME, now, days), Xml(UTC), chars)


def texts(one: Conversation) -> list[str]:
    return [turn.text for turn in one.turns]


# Conversations


@pytest.mark.parametrize(("gap", "parts"), [(timedelta(minutes=29, seconds=59), 1), (timedelta(minutes=30), 2)])
def test_half_an_hour_without_a_message_ends_a_conversation(gap: timedelta, parts: int) -> None:
    reply = Message("octocat", "NONE", before(60) + gap, "b")
    found = recent_conversations([thread(1, (60, "a"), comments=(reply,))], ME, NOW)
    assert len(found.conversations) == parts


def test_the_opening_text_is_the_first_message_and_each_gap_counts_by_itself() -> None:
    newest, oldest = recent_conversations(
        [thread(1, (200, "a"), (180, "b"), (160, "c"), (100, "d"))], ME, NOW
    ).conversations
    assert (texts(oldest), texts(newest)) == (["a", "b", "c"], ["d"])
    assert (oldest.start, oldest.end) == (before(200), before(160))
    assert (oldest.thread, oldest.title, oldest.kind) == (1, "Login loops", Kind.ISSUE)


def test_messages_are_in_order_of_time_however_they_were_read() -> None:
    (one,) = recent_conversations([thread(1, (30, "a"), (10, "c"), (20, "b"))], ME, NOW).conversations
    assert texts(one) == ["a", "b", "c"]


def test_who_spoke_is_the_agent_by_its_logins_and_else_a_human_with_a_name() -> None:
    (one,) = recent_conversations([thread(1, (10, "a"), (9, "mine"), (8, "b"))], ME, NOW).conversations
    assert [(turn.speaker, turn.name) for turn in one.turns] == [
        ("human", "monalisa"),
        ("you", "hubot"),
        ("human", "octocat"),
    ]


@pytest.mark.parametrize(("kind", "speaker"), [(Kind.SESSION, "you"), (Kind.ISSUE, "human"), (Kind.PULL, "human")])
def test_what_a_bot_says_is_the_agents_own_in_sessions_only(kind: Kind, speaker: str) -> None:
    answer = Message("somebot", "NONE", before(9), "b", is_bot=True)
    (one,) = recent_conversations([thread("x", (10, "a"), kind=kind, comments=(answer,))], ME, NOW).conversations
    assert [turn.speaker for turn in one.turns] == ["human", speaker]


def test_pages_are_no_conversations() -> None:
    assert recent_conversations([thread("docs:a.md", (10, "a"), kind=Kind.PAGE)], ME, NOW).conversations == ()


@pytest.mark.parametrize(("minutes", "counts"), [(7 * DAY, True), (7 * DAY + 1, False)])
def test_only_what_ended_in_the_last_seven_days_counts(minutes: float, counts: bool) -> None:
    assert bool(recent_conversations([thread(1, (minutes, "a"))], ME, NOW).conversations) is counts


def test_a_conversation_that_began_before_and_ended_within_is_whole() -> None:
    (one,) = recent_conversations([thread(1, (7 * DAY + 20, "a"), (7 * DAY - 5, "b"))], ME, NOW).conversations
    assert texts(one) == ["a", "b"]


def test_nothing_is_known_of_what_comes_after_now() -> None:
    one = thread(1, (10, "a"), (-1, "b"), state="closed", closed_at=before(-1))
    (found,) = recent_conversations([one, thread(2, (-5, "c"))], ME, NOW).conversations
    assert (texts(found), found.ending) == (["a"], "")


def test_how_a_closed_thread_ended_is_told() -> None:
    fix = Message("octocat", "OWNER", before(20), "Fixed in 2.3.0 by #12.")
    closing = {"state": "closed", "closed_at": before(19), "state_reason": "completed", "closed_by": "octocat"}
    (one,) = recent_conversations([thread(1, (30, "a"), comments=(fix,), **closing)], ME, NOW).conversations
    assert one.ending == "fixed"
    (one,) = recent_conversations([thread(1, (30, "a"), state="closed", closed_at=before(19))], ME, NOW).conversations
    assert one.ending == "closed"


def test_now_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        told(thread(1, (1, "a")), now=NOW.replace(tzinfo=None))


# Scopes


def test_an_issue_has_its_thread_and_the_sessions_that_worked_on_it() -> None:
    refers = TimelineEvent("cross-referenced", before(7), source=1, source_kind=Kind.ISSUE)
    known = [thread(1, (9, "a")), thread(2, (8, "b"), events=(refers,)), thread("t", (6, "d"), kind=Kind.SESSION)]
    known += [thread("s", (7, "c"), kind=Kind.SESSION, events=(refers,))]
    assert [one.id for one in threads_of_issue(known, 1)] == [1, "s"]


def test_a_participant_has_the_threads_in_which_they_wrote() -> None:
    known = [thread(1, (9, "a")), thread(2, (9, "a"), (8, "b")), thread(3, (9, "c"), author="OctoCat")]
    assert [one.id for one in threads_of_participant(known, "octocat")] == [2, 3]


# Status


@pytest.mark.parametrize(("minutes", "goes_on"), [(0, True), (29.99, True), (30, False), (3 * DAY, False)])
def test_a_conversation_goes_on_for_half_an_hour(minutes: float, goes_on: bool) -> None:
    assert told(thread(1, (minutes, "a")), thread(2, (4 * DAY, "b"))).is_continuation is goes_on


# Tiers


def tier_names(*threads: Thread, now: datetime = NOW) -> list[str]:
    return [tier.name for tier in tiers_of(recent_conversations(threads, ME, now))]


def test_the_active_thread_begins_with_the_newest_conversation_however_old() -> None:
    assert tier_names(thread(1, (3 * DAY, "a")), thread(2, (4 * DAY, "b"))) == ["ACTIVE", "EARLIER"]


@pytest.mark.parametrize(("end", "tier"), [(40 + 29.9, "ACTIVE"), (40 + 30, "LAST_DAY")])
def test_the_chain_goes_back_across_threads_while_less_than_half_an_hour_lies_between(end: float, tier: str) -> None:
    assert tier_names(thread(1, (40, "a"), (20, "b")), thread(2, (end, "c"))) == ["ACTIVE", tier]


def test_the_chain_reckons_from_the_earliest_beginning_in_it() -> None:
    long = thread(1, *((60 - 15 * n, "a") for n in range(4)))  # from 60 to 15 minutes ago
    assert tier_names(long, thread(2, (10, "b")), thread(3, (85, "c"))) == ["ACTIVE", "ACTIVE", "ACTIVE"]
    assert tier_names(long, thread(2, (40, "b")), thread(3, (85, "c"))) == ["ACTIVE", "ACTIVE", "ACTIVE"]


@pytest.mark.parametrize(
    ("minutes", "tier"),
    [(DAY, "LAST_DAY"), (DAY + 1, "YESTERDAY"), (36 * 60, "YESTERDAY"), (36 * 60 + 1, "EARLIER"), (7 * DAY, "EARLIER")],
)
def test_a_day_back_is_told_in_full_then_yesterday_and_what_was_earlier_in_short(minutes: float, tier: str) -> None:
    now_at = thread(9, (1, "now"))
    assert tier_names(now_at, thread(1, (minutes, "a"))) == ["ACTIVE", tier]
    shown = told(now_at, thread(1, (minutes, "a"))).shown[1]
    assert shown.is_summary is (tier != "LAST_DAY")
    assert bool(shown.turns) is (tier == "LAST_DAY")


def test_a_day_of_twenty_five_hours_leaves_nobody_out() -> None:
    now = datetime(2026, 10, 25, 23, 50, tzinfo=BERLIN)  # summer time ended that morning
    early = Thread(1, "", "a", "monalisa", datetime(2026, 10, 25, 0, 5, tzinfo=BERLIN))
    late = Thread(2, "", "b", "monalisa", datetime(2026, 10, 25, 23, 49, tzinfo=BERLIN))
    found = recent_conversations([early, late], ME, now)
    assert [tier.name for tier in tiers_of(found)] == ["ACTIVE", "YESTERDAY"]
    assert [one.relative for one in history_of(found, Xml(BERLIN)).shown] == ["today", "today"]


MINUTES = st.one_of(st.integers(0, 300), st.integers(0, 9 * DAY), st.sampled_from([30, 60, DAY, 2 * DAY, 7 * DAY]))
PLAIN = st.sampled_from(["short", "mine", "a longer text that goes on. " * 4, "x" * 700, "<&>\"'`\n" * 40])
HOSTILE = st.text(st.characters(codec=None), max_size=120)


@st.composite
def pasts(draw: st.DrawFn, words: st.SearchStrategy[str] = PLAIN | HOSTILE) -> RecentConversations:
    threads = []
    for number in range(draw(st.integers(0, 5))):
        times = sorted(draw(st.lists(MINUTES, min_size=1, max_size=6)), reverse=True)
        said = [(float(at), draw(words)) for at in times]
        kind = draw(st.sampled_from([Kind.ISSUE, Kind.PULL, Kind.SESSION]))
        key = f"s-{draw(words)}" if kind is Kind.SESSION else number + 1
        threads.append(thread(key, *said, kind=kind, title=draw(words), author=draw(words)))
    return recent_conversations(
        threads, ME, NOW.astimezone(draw(st.sampled_from(ZONES))), draw(st.sampled_from([1, 7, 30]))
    )


@settings(max_examples=examples(150), deadline=None)
@given(pasts(), st.sampled_from(sorted(FORMS)), st.integers(MIN_CHARS, 6_000))
def test_no_history_is_longer_than_its_budget(found: RecentConversations, name: str, chars: int) -> None:
    form = FORMS[name](found.zone)
    text = render(history_of(found, form, chars), form)
    assert len(text) <= chars
    assert text.endswith("\n") or not text


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_no_budget_of_a_thousand_is_passed_by_a_single_character(name: str) -> None:
    talk = thread(1, *((60 - n, "x" * (n % 7)) for n in range(30)))
    old = [thread(n, (2 * DAY + n, "y" * (n % 5)), title="") for n in range(2, 40)]
    form = FORMS[name](UTC)
    for known in ([talk, *old], [thread(1, (1, "a")), *old], [talk]):
        found = recent_conversations(known, ME, NOW)
        whole = len(render(history_of(found, form), form))
        for chars in [*range(MIN_CHARS, MIN_CHARS + 90), *range(whole - 90, whole + 10)]:
            text = render(history_of(found, form, chars), form)
            assert max(1, min(chars, whole) - 400) <= len(text) <= max(chars, MIN_CHARS)


def filled(found: RecentConversations, history: ConversationHistory) -> list[tuple[int, datetime]]:
    """What is shown, as pairs of the tier and a time: of a message, or of the end of what is told in short."""
    tier = dict(zip(found.conversations, tiers_of(found), strict=True))
    pieces = []
    for shown in history.shown:
        one = shown.conversation
        ends = [one.end] if shown.is_summary else [turn.at for turn in shown.turns]
        pieces += [(tier[one], at) for at in ends]
    return pieces


@settings(max_examples=examples(150), deadline=None)
@given(pasts(PLAIN), st.sampled_from(sorted(FORMS)), st.integers(MIN_CHARS, 4_000))
def test_the_tiers_are_filled_in_order_and_what_is_cut_is_the_oldest(
    found: RecentConversations, name: str, chars: int
) -> None:
    form = FORMS[name](found.zone)
    part, whole = history_of(found, form, chars), history_of(found, form)
    assert whole.omitted == 0
    assert [shown.conversation for shown in whole.shown] == list(found.conversations)
    assert [shown.conversation for shown in part.shown] == list(found.conversations[: len(part.shown)])
    assert part.omitted == len(found.conversations) - len(part.shown)
    for one, full in zip(part.shown, whole.shown, strict=False):
        kept = len(one.turns)
        assert [turn.at for turn in one.turns] == [turn.at for turn in full.turns[len(full.turns) - kept :]]
        assert one.omitted == len(full.turns) - kept
    kept_pieces, all_pieces = filled(found, part), filled(found, whole)
    cut = list(all_pieces)
    for piece in kept_pieces:
        cut.remove(piece)
    for tier, at in cut:
        assert not [piece for piece in kept_pieces if piece[0] > tier], "a later tier was filled before this one"
        if tier == Tier.ACTIVE:
            assert all(other >= at for kind, other in kept_pieces if kind == tier)
    assert [tier for tier, _ in all_pieces] == sorted(tier for tier, _ in all_pieces)


def test_the_order_in_which_threads_are_read_makes_no_difference() -> None:
    known = [thread(n, (float(30 * n), "a"), (30.0 * n, "b")) for n in range(1, 9)] + [
        thread("1", (30, "a"), (30, "b"))
    ]
    assert told(*known) == told(*reversed(known))
    for make in FORMS.values():
        texts_of = {
            render(history_of(recent_conversations(each, ME, NOW), make(UTC)), make(UTC))
            for each in (known, known[::-1])
        }
        assert len(texts_of) == 1


def test_of_the_newest_message_the_end_is_told_where_it_alone_is_too_long() -> None:
    history = told(thread(1, (20, "old"), (10, f"first {'word ' * 2_000}last")), chars=1_000)
    (shown,) = history.shown
    assert shown.omitted == 1
    assert shown.turns[0].text.startswith("[…] word word")
    assert shown.turns[0].text.endswith("word last")
    assert 900 <= len(render(history, Xml(UTC))) <= 1_000


def test_nobody_gets_more_than_the_most_or_less_than_the_least() -> None:
    known = thread(1, *((20 - n, "x" * 40_000) for n in range(5)))
    assert told(known, chars=10**9) == told(known)
    assert told(known, chars=1) == told(known, chars=MIN_CHARS)


def test_a_summary_that_does_not_fit_ends_the_history_though_an_older_one_would_fit() -> None:
    long = "A long sentence of many words " * 6
    known = [thread(1, (1, "x" * 250)), thread(2, (2 * DAY, long), title=long), thread(3, (3 * DAY, "a"), title="b")]
    history = told(*known, chars=1_000)
    assert [shown.conversation.thread for shown in history.shown] == [1]
    assert history.omitted == 2


@pytest.mark.slow
def test_a_hundred_thousand_messages_take_linear_time() -> None:
    comments = tuple(Message("octocat", "NONE", before(5_000 - n / 25), "x") for n in range(100_000))
    history = told(thread(1, (5_001, "a"), comments=comments))
    assert len(render(history, Xml(UTC))) > MAX_CHARS - 100


# Labels


def label(end: datetime, now: datetime) -> str:
    """How the day is called on which a conversation ended that is not the newest."""
    one = Conversation(1, Kind.ISSUE, "", (Turn("human", "monalisa", end.astimezone(UTC), "a"),))
    newest = Conversation(2, Kind.ISSUE, "", (Turn("human", "monalisa", now.astimezone(UTC), "b"),))
    return history_of(RecentConversations((newest, one), now), Xml(UTC)).shown[1].relative


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (31, "today, recent"),
        (240, "today, recent"),
        (241, "today"),
        (12 * 60, "today"),
        (12 * 60 + 1, "yesterday"),
        (36 * 60 + 1, "Tuesday"),
        (7 * DAY, "Thursday"),
        (9 * DAY, "Tuesday 2026-05-05"),
    ],
)
def test_a_day_is_called_as_people_call_it(minutes: int, expected: str) -> None:
    assert label(before(minutes), NOW) == expected


def local(zone: tzinfo, *when: int) -> datetime:
    return datetime(*when, tzinfo=zone)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("end", "now", "expected"),
    [
        (local(BERLIN, 2026, 5, 13, 23, 59), local(BERLIN, 2026, 5, 14, 0, 31), "yesterday, recent"),
        (local(BERLIN, 2026, 5, 14, 0, 0), local(BERLIN, 2026, 5, 14, 0, 31), "today, recent"),
        (local(UTC, 2026, 5, 13, 22, 30), local(BERLIN, 2026, 5, 14, 3, 0), "today, recent"),
        (local(UTC, 2026, 5, 14, 3, 30), local(NEW_YORK, 2026, 5, 14, 0, 30), "yesterday, recent"),
        # the night in which clocks go forward: five hours on the clock, four that passed
        (local(BERLIN, 2026, 3, 28, 23, 30), local(BERLIN, 2026, 3, 29, 4, 30), "yesterday, recent"),
        # and back: four on the clock, five that passed
        (local(BERLIN, 2026, 10, 24, 23, 30), local(BERLIN, 2026, 10, 25, 3, 30), "yesterday"),
        (local(AUCKLAND, 2026, 4, 4, 23, 59), local(AUCKLAND, 2026, 4, 6, 0, 1), "Saturday"),
    ],
)
def test_midnight_and_summer_time_are_those_of_the_time_zone(end: datetime, now: datetime, expected: str) -> None:
    assert label(end, now) == expected


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2 * 365 * DAY), st.integers(31, 30 * DAY), st.sampled_from(ZONES))
def test_a_label_agrees_with_the_calendar(later: int, minutes: int, zone: tzinfo) -> None:
    now = (NOW + timedelta(minutes=later)).astimezone(zone)
    end = (now.astimezone(UTC) - timedelta(minutes=minutes)).astimezone(zone)
    days = now.date().toordinal() - end.date().toordinal()
    names = {0: "today", 1: "yesterday"}
    expected = names.get(days, ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")[end.weekday()] + "day")
    expected += f" {end.date().isoformat()}" if days > 7 else ""
    assert label(end, now) == expected + (", recent" if minutes <= 240 else "")


def in_time(ends: Iterable[datetime]) -> bool:
    return all(one >= other for one, other in pairwise(ends))


@settings(max_examples=examples(50), deadline=None)
@given(pasts())
def test_conversations_come_newest_first_and_messages_in_order_of_time(found: RecentConversations) -> None:
    history = history_of(found, Xml(UTC))
    assert in_time(shown.conversation.end for shown in history.shown)
    assert all(in_time([turn.at for turn in shown.turns][::-1]) for shown in history.shown)
