"""A replay of the newest threads: who is asked, in which order, what would have been shown, and for how long."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from time import monotonic

import pytest

from bot.domain.answer import Context
from bot.domain.thread import Kind, Thread
from bot.evaluation.backtest import ReplayedHits, ReplayOptions, newest_issues, replay
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import ReplayHistory
from bot.ranking.weights import SHOWN_FROM, shipped
from bot.settings.schema import Settings
from tests.evaluation.timelines import generated
from tests.recall.samples import at, closed, duplicate, said, thread

TITLE = "Login loops after the upgrade"
BODY = "The session cookie is refused behind the proxy: SESSION_PATH_MISMATCH in auth/cookie.py, again and again."
LONG = f"""{BODY}

Open the settings page as an administrator, switch on the second factor, log out and try to log in from another browser.
The form comes back empty without any message. In the developer tools the redirect answers with status 302 and without
the header, so the balancer drops the session. It worked before we moved to the container; reverting the configuration
of nginx did not help."""
PLAIN = "The page comes back empty without any message and the balancer drops the session of each administrator."
EVERYDAY = ("after the upgrade", "behind the proxy", "from the session", "with a cookie", "again and again")
WATCH = ReplayOptions(shipped(), Settings(), trains=False)


def unrelated(count: int, first: int = 2, seed: int = 1) -> list[Thread]:
    """Threads that share the words of everyday and otherwise have words of their own."""
    chance = Random(seed)
    found = []
    for key in range(first, first + count):
        own = ["".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3)) for _ in range(8)]
        body = f"When I open the {own[2]} the {own[3]} is gone {chance.choice(EVERYDAY)}. {' '.join(own)}"
        found.append(closed(key, f"The {own[0]} of {own[1]} fails", body, author=f"user{key % 7}"))
    return found


def replayed(
    threads: Sequence[Thread], count: int = 1, watch: ReplayOptions = WATCH, until: float | None = None
) -> list[ReplayedHits]:
    history = ReplayHistory.read(threads)
    return list(replay(history, LinkLabels.read(history.threads), newest_issues(history, count), watch, until=until))


def lives(count: int) -> list[Thread]:
    return [life.thread() for life in generated(count, Random(3))]


# Who is asked.


def test_the_newest_issues_of_people_are_asked_oldest_first() -> None:
    threads = [thread(key) for key in range(1, 9)]
    threads[7] = replace(threads[7], is_bot=True)
    threads[6] = replace(threads[6], kind=Kind.PULL)
    history = ReplayHistory.read(reversed(threads))
    assert [each.id for each in newest_issues(history, 3)] == [4, 5, 6]
    assert [each.id for each in newest_issues(history, 99)] == [1, 2, 3, 4, 5, 6]


def test_the_newest_are_replayed_first_also_across_epochs() -> None:
    seen = replayed(lives(70), 30)
    assert [one.replayed.id for one in seen] == list(range(70, 40, -1))


def test_each_that_was_replayed_is_ticked() -> None:
    history = ReplayHistory.read(lives(9))
    ticks: list[int] = []
    assert (
        len(list(replay(history, LinkLabels.read(history.threads), newest_issues(history, 4), WATCH, ticks.append)))
        == 4
    )
    assert ticks == [1] * 4


def test_a_replay_ends_when_its_time_is_over() -> None:
    assert replayed(lives(9), 4, until=monotonic() - 1) == []
    assert len(replayed(lives(9), 4, until=monotonic() + 600)) == 4


# What is seen.


def test_candidates_and_hits_are_the_same_in_the_same_order() -> None:
    for one in replayed(lives(70), 30):
        hits = one.replayed.hits
        assert [c.entry.id for c in one.candidates] == [hit.id for hit in hits]
        assert [(c.confidence, c.similarity) for c in one.candidates] == [(h.confidence, h.similarity) for h in hits]
        assert all(hit.is_shown == (hit.similarity >= SHOWN_FROM) for hit in hits)
        assert all(isinstance(hit.id, int) and hit.id < one.replayed.id for hit in hits)
        assert all(hit.why for hit in hits)


def test_no_more_are_seen_than_a_comment_has_places_for() -> None:
    alike = [closed(key, TITLE, BODY) for key in range(1, 7)] + [
        thread(key, TITLE, BODY, role="MEMBER") for key in range(7, 12)
    ]
    limits = Settings().troubleshooting
    (one,) = replayed([*alike, thread(50, TITLE, BODY)])
    assert [hit.is_open for hit in one.replayed.hits] == [False] * limits.max_results + [True] * limits.open_results


def test_states_are_those_of_the_moment_of_the_question() -> None:
    (one,) = replayed([closed(1, TITLE, BODY, after=80), *unrelated(5), thread(50, TITLE, BODY)])
    assert [(hit.id, hit.is_open) for hit in one.replayed.hits if hit.is_shown] == [(1, True)]


def test_what_people_linked_later_is_related_also_through_a_duplicate() -> None:
    marked = replace(thread(50, TITLE, BODY), comments=(said("Duplicate of #2.", 60, "hubot", "MEMBER"),))
    threads = [closed(1, TITLE, BODY), duplicate(2, 1, TITLE, BODY), closed(3, TITLE, BODY), *unrelated(5, 10), marked]
    (one,) = replayed(threads)
    related = {hit.id: hit.related for hit in one.replayed.hits}
    assert (related[1], related[3]) == (True, False)
    assert one.replayed.relations.duplicates == {1, 2}
    assert one.replayed.rank in (1, 2)


def test_where_nobody_linked_anything_there_is_no_rank() -> None:
    (one,) = replayed([closed(1, TITLE, BODY), *unrelated(5), thread(50, TITLE, BODY)])
    assert one.replayed.rank is None
    assert not any(hit.related for hit in one.replayed.hits)


def test_a_title_without_a_word_has_no_hits() -> None:
    (one,) = replayed([closed(1, TITLE, BODY), *unrelated(5), thread(50, "?", BODY)])
    assert (one.replayed.hits, one.candidates) == ((), ())


def test_what_the_thread_points_at_is_not_seen_nor_what_that_was_a_duplicate_of() -> None:
    threads = [closed(1, TITLE, BODY), duplicate(2, 1, TITLE, BODY), closed(3, TITLE, BODY), *unrelated(5, 10)]
    (one,) = replayed([*threads, thread(50, TITLE, f"{BODY} Like #2?")])
    assert [hit.id for hit in one.replayed.hits] == [3]


def test_those_who_are_ignored_are_not_heard() -> None:
    """Also not in a replay: what they wrote is no reason."""
    settings = Settings()
    deaf = replace(WATCH, settings=replace(settings, ignore=replace(settings.ignore, people=("Octocat",))))
    threads = [closed(1, "Login loops at night", BODY, author="octocat"), *unrelated(5), thread(50, TITLE, BODY)]
    (heard,), (unheard,) = replayed(threads), replayed(threads, watch=deaf)
    assert "SESSION_PATH_MISMATCH" in str(heard.replayed.hits[0].why)
    assert heard.candidates[0].evidence["same_error"] == 1.0
    assert "SESSION_PATH_MISMATCH" not in str([hit.why for hit in unheard.replayed.hits])
    assert all(c.evidence["same_error"] == 0.0 for c in unheard.candidates)


# The comments.


def rendered(one: Thread, context: Context) -> str:
    """Stands in for a template: names what there is to say."""
    assert one.state == "open"
    assert one.comments == ()
    matches = (*context.seen_before, *context.open_now)
    return " ".join([f"{one.id}:", *(f"#{match.id}" for match in matches)])


@pytest.mark.slow
def test_the_comment_shows_what_is_shown() -> None:
    with_comments = replace(WATCH, render=rendered)
    seen = replayed([*lives(70), *unrelated(20, 100)], 60, with_comments)
    assert any(one.replayed.markdown for one in seen)
    for one in seen:
        shown = one.replayed.shown
        expected = " ".join([f"{one.replayed.id}:", *(f"#{hit.id}" for hit in shown)]) if shown else ""
        assert one.replayed.markdown == expected


def test_without_somebody_to_write_there_are_no_comments() -> None:
    assert all(one.replayed.markdown == "" for one in replayed(lives(30), 20))


def test_a_comment_counts_what_it_mentions() -> None:
    with_comments = replace(WATCH, render=rendered)
    (one,) = replayed([*unrelated(5), thread(50, TITLE, "Like #3 and #4?")], watch=with_comments)
    assert (one.replayed.mentions, one.replayed.markdown) == (2, "50:")


# What the shipped ranking is held to.


@pytest.mark.parametrize(
    ("body", "trains"),
    [
        (LONG, False),
        (LONG, True),
        (BODY, False),
        (BODY, True),
        (PLAIN, False),
        (PLAIN, True),
    ],
)
def test_the_same_issue_of_years_ago_is_shown_among_unrelated_ones(body: str, trains: bool) -> None:
    asked = thread(100, TITLE, body, 1500, author="hubot")
    (one,) = replayed([closed(1, TITLE, body), *unrelated(70), asked], watch=replace(WATCH, trains=trains))
    first = one.candidates[0]
    assert one.replayed.hits[0].id == 1
    assert ("trained" in first.hit.near) is trains
    assert first.features["closed"] > 7, "ln of more than a thousand days"
    assert [hit.id for hit in one.replayed.shown] == [1]


def test_nothing_is_shown_to_one_like_which_there_is_none() -> None:
    (one,) = replayed([*unrelated(70), thread(100, TITLE, BODY, 1500)], watch=replace(WATCH, trains=True))
    assert one.replayed.shown == ()
    assert one.replayed.created_at == at(1500)
