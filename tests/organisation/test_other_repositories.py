"""What is shown of other repositories: certain, with reasons, older, more certain than one's own, no strangers."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import pytest

from bot.domain.answer import Context, Match, OrganisationMatch
from bot.domain.post import OrganisationKey
from bot.domain.thread import Thread
from bot.index.bm25f import text_impacts
from bot.index.document import bare_document
from bot.index.scoring import LEVELS
from bot.organisation.documents import MemorySource, is_vouched_for, organisation_thread
from bot.ranking.weights import shipped_elsewhere
from bot.reading.analyzer import terms
from bot.reading.digest import digest
from bot.recall.other_repositories import elsewhere_to_show, find_elsewhere, rank_elsewhere
from bot.settings.schema import Settings
from tests.fakes.candidates import InMemoryCandidates
from tests.recall.samples import at, closed, duplicate, message, thread
from tests.recall.test_similar import BODY, FILLER, TITLE

SDK, APP = 7, 8
ASKED = thread(500, TITLE, BODY)
FIXED = closed(1, TITLE, BODY, role="MEMBER", comments=(message("Fixed in #9.", 1.2, "hubot", "MEMBER"),))
STILL_OPEN = thread(2, TITLE, BODY, role="MEMBER")

NumberedThreads = Iterable[tuple[int, Thread]]


def build_index(threads: NumberedThreads) -> InMemoryCandidates:
    """Return the index of an organisation with these threads, and others about something else."""
    filler = [(SDK, replace(item, role="MEMBER")) for item in FILLER]
    return InMemoryCandidates(
        organisation_thread(item, MemorySource(repository, f"octo-org/{repository}", 1), digest(item).outcome)
        for repository, item in (*threads, *filler)
        if is_vouched_for(item)
    )


def find(
    *threads: tuple[int, Thread],
    question: Thread = ASKED,
    scope: Iterable[int] = (SDK, APP),
    before: datetime | None = None,
    already_shown: Iterable[OrganisationKey] = (),
    settings: Settings | None = None,
) -> list[OrganisationMatch]:
    return find_elsewhere(
        question, build_index(threads), set(scope), before, settings or Settings(), set(already_shown)
    )


def keys(matches: Iterable[OrganisationMatch]) -> list[tuple[int, int | str]]:
    return [(one.key.repository, one.key.thread) for one in matches]


def with_threshold(threshold: float) -> Settings:
    return replace(Settings(), similar=replace(Settings().similar, threshold=threshold))


def test_a_thread_of_another_repository_is_found_with_its_ending_and_reasons() -> None:
    (result,) = find((SDK, FIXED))
    assert (result.key, result.repository) == (OrganisationKey(SDK, 1), "octo-org/7")
    assert (result.match.id, result.match.title, result.match.state) == (1, TITLE, "closed")
    assert result.match.closed_at == FIXED.closed_at
    assert result.match.outcome == digest(FIXED).outcome
    assert result.match.similarity >= 0.65
    assert any("SESSION_PATH_MISMATCH" in reason or "auth/cookie.py" in reason for reason in result.match.why)


def test_equal_numbers_of_two_repositories_are_two_threads() -> None:
    assert set(keys(find((SDK, FIXED), (APP, FIXED)))) == {(SDK, 1), (APP, 1)}


def test_nothing_outside_the_scope_is_found() -> None:
    assert keys(find((SDK, FIXED), (APP, FIXED), scope=[APP])) == [(APP, 1)]
    assert find((SDK, FIXED), scope=[]) == []


def test_threads_that_are_not_similar_are_not_found() -> None:
    assert find() == []
    other = thread(3, "Dark mode for the settings", "The page is bright at night.", role="MEMBER")
    assert find((SDK, other)) == []


@pytest.mark.parametrize("title", ["", "???"])
def test_a_thread_without_a_word_in_its_title_finds_nothing(title: str) -> None:
    assert find((SDK, FIXED), question=replace(ASKED, title=title)) == []


def test_only_older_threads_are_found_in_their_state_at_the_given_time() -> None:
    later = closed(3, TITLE, BODY, role="MEMBER", days=501)
    assert find((SDK, later)) == []
    (result,) = find((SDK, FIXED), before=at(1.1))
    assert (result.match.state, result.match.closed_at, result.match.outcome.kind.is_known) == ("open", None, False)


def test_a_thread_that_is_already_shown_may_be_less_similar() -> None:
    assert find((SDK, FIXED), settings=with_threshold(1.0)) == []
    already_shown = OrganisationKey(SDK, 1)
    assert keys(find((SDK, FIXED), settings=with_threshold(1.0), already_shown=[already_shown])) == [(SDK, 1)]


def test_a_duplicate_counts_for_its_original_in_the_same_repository() -> None:
    copy = replace(duplicate(4, 1, TITLE, BODY), role="MEMBER")
    assert keys(find((SDK, FIXED), (SDK, copy))) == [(SDK, 1)]
    assert set(keys(find((SDK, copy), (APP, FIXED)))) == {(SDK, 4), (APP, 1)}


def test_another_report_of_a_series_is_not_found() -> None:
    report = thread(3, "Report of week 41", BODY, author="octobot", role="MEMBER")
    question = replace(ASKED, title="Report of week 42", author="octobot")
    assert find((SDK, report), question=question) == []
    assert find((SDK, replace(report, author="mona")), question=question) != []


def test_a_flood_by_a_stranger_is_not_found_and_displaces_nothing() -> None:
    flood = [(SDK, closed(n, TITLE, BODY, author="mona", closed_by="mona")) for n in range(10, 260)]
    assert keys(find(*flood, (APP, FIXED))) == [(APP, 1)]


def test_hostile_text_does_not_break_a_search() -> None:
    hostile = "') OR 1=1 -- \x00 \ud800 ` * [x](y) " + "a" * 5_000 + ' NEAR AND OR NOT "unfinished'
    hostile_thread = closed(3, hostile[:250], hostile, role="MEMBER")
    assert isinstance(find((SDK, hostile_thread), question=replace(ASKED, title=hostile[:250], body=hostile)), list)


@pytest.mark.parametrize("word", ["loops", "cookie", "proxy"])
def test_scores_equal_those_of_a_repositorys_own_index(word: str) -> None:
    question = replace(ASKED, title=word, body="")
    candidates = rank_elsewhere(
        question, build_index([(SDK, FIXED)]), {SDK}, None, shipped_elsewhere()
    ).ranked.candidates
    (hit,) = (candidate.hit for candidate in candidates if candidate.entry.id == f"{SDK}#1")
    assert hit.share == pytest.approx(LEVELS[text_impacts(bare_document(FIXED))[terms(word)[0]]], rel=0.1)


def shown(
    context: Context, *threads: tuple[int, Thread], already_shown: Iterable[OrganisationKey] = ()
) -> list[tuple[int, int | str]]:
    return keys(elsewhere_to_show(build_index(threads), ASKED, context, {SDK, APP}, set(already_shown), Settings()))


def own_match(similarity: float) -> Context:
    return Context(seen_before=(Match(5, TITLE, similarity, "closed", at(5)),))


def test_closed_threads_with_a_known_ending_come_first() -> None:
    silent = closed(3, TITLE, BODY, role="MEMBER")
    threads = (SDK, FIXED), (APP, STILL_OPEN), (APP, silent)
    assert shown(Context(), *threads) == [(SDK, 1), (APP, 3), (APP, 2)]


def test_only_threads_more_certain_than_the_own_match_are_shown() -> None:
    assert shown(own_match(0.65), (SDK, FIXED)) == [(SDK, 1)]
    assert shown(own_match(1.0), (SDK, FIXED)) == []
    already_shown = OrganisationKey(SDK, 1)
    assert shown(own_match(1.0), (SDK, FIXED), already_shown=[already_shown]) == [(SDK, 1)]


def test_a_thread_that_the_question_already_links_to_is_not_shown() -> None:
    assert shown(Context(elsewhere=("Octo-Org/7#1",)), (SDK, FIXED)) == []


def test_threads_that_are_already_shown_come_first() -> None:
    already_shown = OrganisationKey(APP, 2)
    assert shown(Context(), (SDK, FIXED), (APP, STILL_OPEN), already_shown=[already_shown])[0] == (APP, 2)
