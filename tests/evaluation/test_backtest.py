"""A replay of the newest threads: which ones, in which order, what would have been shown, and for how long."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from time import monotonic

import pytest

from bot.domain.answer import Context
from bot.domain.thread import Kind, Thread
from bot.evaluation.backtest import (
    MORE_SIMILAR,
    NO_REASON,
    NOT_READ,
    SAME_AUTHOR,
    ReplayedHits,
    ReplayOptions,
    newest_issues,
    replay,
)
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import ReplayHistory
from bot.ranking.weights import CUT_SIMILARITY, shipped
from bot.settings.schema import Settings
from tests.evaluation.timelines import generated
from tests.recall.samples import at, closed, duplicate, message, thread

TITLE = "Login loops after the upgrade"
BODY = "The session cookie is refused behind the proxy: SESSION_PATH_MISMATCH in auth/cookie.py, again and again."
LONG = f"""{BODY}

Open the settings page as an administrator, switch on the second factor, log out and try to log in from another browser.
The form comes back empty without any message. In the developer tools the redirect answers with status 302 and without
the header, so the balancer drops the session. It worked before we moved to the container; reverting the configuration
of nginx did not help."""
PLAIN = "The page comes back empty without any message and the balancer drops the session of each administrator."
EVERYDAY = ("after the upgrade", "behind the proxy", "from the session", "with a cookie", "again and again")
OPTIONS = ReplayOptions(shipped(), Settings())


def unrelated(count: int, first: int = 2, seed: int = 1) -> list[Thread]:
    """Threads that share everyday words; all their other words are their own."""
    rng = Random(seed)
    threads = []
    for key in range(first, first + count):
        invented = ["".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3)) for _ in range(8)]
        body = f"When I open the {invented[2]} the {invented[3]} is gone {rng.choice(EVERYDAY)}. {' '.join(invented)}"
        threads.append(closed(key, f"The {invented[0]} of {invented[1]} fails", body, author=f"user{key % 7}"))
    return threads


def replayed(
    threads: Sequence[Thread], count: int = 1, options: ReplayOptions = OPTIONS, until: float | None = None
) -> list[ReplayedHits]:
    history = ReplayHistory.read(threads)
    return list(replay(history, LinkLabels.read(history.threads), newest_issues(history, count), options, until=until))


def generated_threads(count: int) -> list[Thread]:
    return [life.thread() for life in generated(count, Random(3))]


# Which issues are replayed.


def test_the_newest_issues_by_people_are_chosen_oldest_first() -> None:
    threads = [thread(key) for key in range(1, 9)]
    threads[7] = replace(threads[7], is_bot=True)
    threads[6] = replace(threads[6], kind=Kind.PULL)
    history = ReplayHistory.read(reversed(threads))
    assert [each.id for each in newest_issues(history, 3)] == [4, 5, 6]
    assert [each.id for each in newest_issues(history, 99)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_the_newest_issues_are_replayed_first() -> None:
    replays = replayed(generated_threads(70), 30)
    assert [result.replayed.id for result in replays] == list(range(70, 40, -1))


def test_progress_ticks_once_for_each_replayed_issue() -> None:
    history = ReplayHistory.read(generated_threads(9))
    ticks: list[int] = []
    assert (
        len(list(replay(history, LinkLabels.read(history.threads), newest_issues(history, 4), OPTIONS, ticks.append)))
        == 4
    )
    assert ticks == [1] * 4


def test_a_replay_ends_when_its_time_is_up() -> None:
    assert replayed(generated_threads(9), 4, until=monotonic() - 1) == []
    assert len(replayed(generated_threads(9), 4, until=monotonic() + 600)) == 4


# The hits.


@pytest.mark.slow
def test_candidates_and_hits_are_the_same_in_the_same_order() -> None:
    for result in replayed(generated_threads(70), 30):
        hits = result.replayed.hits
        assert [c.entry.id for c in result.candidates] == [hit.id for hit in hits]
        assert [(c.confidence, c.similarity) for c in result.candidates] == [(h.confidence, h.similarity) for h in hits]
        assert all(hit.is_shown == (hit.similarity >= CUT_SIMILARITY) for hit in hits)
        assert all(isinstance(hit.id, int) and hit.id < result.replayed.id for hit in hits)
        assert all(hit.why for hit in hits)


def test_a_replay_has_no_more_hits_than_a_comment_can_show() -> None:
    alike = [closed(key, TITLE, BODY) for key in range(1, 7)] + [
        thread(key, TITLE, BODY, role="MEMBER") for key in range(7, 12)
    ]
    limits = Settings().similar
    (result,) = replayed([*alike, thread(50, TITLE, BODY)])
    assert [hit.is_open for hit in result.replayed.hits] == [False] * limits.max + [True] * limits.open


def test_threads_have_the_state_they_had_when_the_question_was_asked() -> None:
    (result,) = replayed([closed(1, TITLE, BODY, after=80), *unrelated(5), thread(50, TITLE, BODY)])
    assert [(hit.id, hit.is_open) for hit in result.replayed.hits if hit.is_shown] == [(1, True)]


def test_threads_that_people_linked_later_are_related_even_through_a_duplicate() -> None:
    marked = replace(thread(50, TITLE, BODY), comments=(message("Duplicate of #2.", 60, "hubot", "MEMBER"),))
    threads = [closed(1, TITLE, BODY), duplicate(2, 1, TITLE, BODY), closed(3, TITLE, BODY), *unrelated(5, 10), marked]
    (result,) = replayed(threads)
    related = {hit.id: hit.related for hit in result.replayed.hits}
    assert (related[1], related[3]) == (True, False)
    assert result.replayed.relations.duplicates == {1, 2}
    assert result.replayed.rank in (1, 2)


def test_there_is_no_rank_when_nobody_linked_anything() -> None:
    (result,) = replayed([closed(1, TITLE, BODY), *unrelated(5), thread(50, TITLE, BODY)])
    assert result.replayed.rank is None
    assert not any(hit.related for hit in result.replayed.hits)


def linked_to(key: int, **fields: object) -> Thread:
    """An issue that a maintainer later called a duplicate of this one."""
    comment = message(f"Duplicate of #{key}.", 60, "hubot", "MEMBER")
    return replace(thread(50, TITLE, BODY), comments=(comment,), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("threads", "linked", "reason"),
    [
        ([closed(key, TITLE, BODY, author=f"user{key}") for key in range(1, 9)], 8, MORE_SIMILAR),
        ([thread(49, "Cookie of the proxy", BODY, 49.5), closed(1, TITLE, BODY, author="hubot")], 49, SAME_AUTHOR),
        ([closed(1, "Trouble", "It loops."), *unrelated(20)], 1, NOT_READ),
    ],
)
def test_a_related_thread_that_is_found_but_not_listed_has_the_reason(
    threads: list[Thread], linked: int, reason: str
) -> None:
    (result,) = replayed([*threads, linked_to(linked)])
    assert result.replayed.passed_over is not None
    assert (result.replayed.passed_over.id, result.replayed.passed_over.reason) == (linked, reason)
    assert (result.replayed.passed_over.similarity is None) == (reason in (SAME_AUTHOR, NOT_READ))


def test_no_thread_is_passed_over_if_a_related_one_is_listed() -> None:
    (result,) = replayed([closed(1, TITLE, BODY), *unrelated(5), linked_to(1)])
    assert result.replayed.hits[0].related
    assert result.replayed.passed_over is None


def test_a_thread_without_a_word_has_no_hits() -> None:
    (result,) = replayed([closed(1, TITLE, BODY), *unrelated(5), thread(50, "?", "")])
    assert (result.replayed.hits, result.candidates) == ((), ())


def test_neither_a_cited_thread_nor_its_original_is_a_hit() -> None:
    threads = [closed(1, TITLE, BODY), duplicate(2, 1, TITLE, BODY), closed(3, TITLE, BODY), *unrelated(5, 10)]
    (result,) = replayed([*threads, thread(50, TITLE, f"{BODY} Like #2?")])
    assert [hit.id for hit in result.replayed.hits] == [3]


def test_ignored_people_give_no_reasons() -> None:
    """In a replay too, nothing that they wrote is a reason."""
    settings = Settings()
    ignoring = replace(OPTIONS, settings=replace(settings, ignore=replace(settings.ignore, people=("Octocat",))))
    threads = [closed(1, "Login loops at night", BODY, author="octocat"), *unrelated(5), thread(50, TITLE, BODY)]
    (with_octocat,), (without_octocat,) = replayed(threads), replayed(threads, options=ignoring)
    assert "SESSION_PATH_MISMATCH" in str(with_octocat.replayed.hits[0].why)
    assert with_octocat.candidates[0].evidence["same_error"] == 1.0
    assert "SESSION_PATH_MISMATCH" not in str([hit.why for hit in without_octocat.replayed.hits])
    assert all(c.evidence["same_error"] == 0.0 for c in without_octocat.candidates)


def test_a_related_thread_without_a_reason_that_could_be_shown_is_passed_over() -> None:
    """Here since its author is ignored."""
    settings = Settings()
    ignoring = replace(OPTIONS, settings=replace(settings, ignore=replace(settings.ignore, people=("Octocat",))))
    (result,) = replayed([closed(1, "Trouble", BODY, author="octocat"), *unrelated(5), linked_to(1)], options=ignoring)
    assert result.replayed.passed_over is not None
    assert result.replayed.passed_over.reason == NO_REASON
    assert result.replayed.passed_over.similarity is not None


# The comments.


def render_ids(issue: Thread, context: Context) -> str:
    """Stands in for a template: names the threads to show."""
    assert issue.state == "open"
    assert issue.comments == ()
    matches = (*context.seen_before, *context.open_now)
    return " ".join([f"{issue.id}:", *(f"#{match.id}" for match in matches)])


@pytest.mark.slow
def test_the_comment_names_the_shown_hits() -> None:
    with_comments = replace(OPTIONS, render=render_ids)
    replays = replayed([*generated_threads(70), *unrelated(20, 100)], 60, with_comments)
    assert any(result.replayed.markdown for result in replays)
    for result in replays:
        shown = result.replayed.shown
        expected = " ".join([f"{result.replayed.id}:", *(f"#{hit.id}" for hit in shown)]) if shown else ""
        assert result.replayed.markdown == expected


def test_there_are_no_comments_without_a_renderer() -> None:
    assert all(result.replayed.markdown == "" for result in replayed(generated_threads(30), 20))


def test_a_replay_counts_the_threads_that_an_issue_mentions() -> None:
    speaks = replace(OPTIONS.settings, mentions=replace(OPTIONS.settings.mentions, speak="always"))
    with_comments = replace(OPTIONS, render=render_ids, settings=speaks)
    (result,) = replayed([*unrelated(5), thread(50, TITLE, "Like #3 and #4?")], options=with_comments)
    assert (result.replayed.mentions, result.replayed.markdown) == (2, "50:")


# What the shipped ranking must achieve.


@pytest.mark.slow
@pytest.mark.parametrize("body", [LONG, BODY, PLAIN], ids=["long", "usual", "plain"])
def test_the_same_issue_from_years_ago_is_shown_among_unrelated_ones(body: str) -> None:
    issue = thread(100, TITLE, body, 1500, author="hubot")
    (result,) = replayed([closed(1, TITLE, body), *unrelated(70), issue])
    assert result.replayed.hits[0].id == 1
    assert result.candidates[0].features["closed"] > 7, "ln of more than a thousand days"
    assert [hit.id for hit in result.replayed.shown] == [1]


def test_nothing_is_shown_for_an_issue_without_a_similar_one() -> None:
    (result,) = replayed([*unrelated(70), thread(100, TITLE, BODY, 1500)])
    assert result.replayed.shown == ()
    assert result.replayed.created_at == at(1500)
