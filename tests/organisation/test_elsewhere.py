"""What is shown of other repositories: sure, for a reason, older, surer than one's own, and nothing of strangers."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import pytest

from bot.domain.answer import Context, Match, OrganisationKey, OrganisationMatch
from bot.domain.thread import Thread
from bot.index.bm25f import text_impacts
from bot.index.document import bare_document
from bot.index.impacts import LEVELS
from bot.organisation.documents import MemorySource, organisation_thread
from bot.ranking.weights import shipped_elsewhere
from bot.reading.analyzer import terms
from bot.reading.digest import digest
from bot.recall.elsewhere import elsewhere_to_show, find_elsewhere, rank_elsewhere
from bot.settings.schema import Settings
from tests.fakes.candidates import RememberedCandidates
from tests.recall.samples import at, closed, duplicate, said, thread
from tests.recall.test_similar import BODY, FILLER, TITLE

SDK, APP = 7, 8
ASKED = thread(500, TITLE, BODY)
FIXED = closed(1, TITLE, BODY, role="MEMBER", comments=(said("Fixed in #9.", 1.2, "hubot", "MEMBER"),))
STILL_OPEN = thread(2, TITLE, BODY, role="MEMBER")

Told = Iterable[tuple[int, Thread]]


def index(told: Told) -> RememberedCandidates:
    """An organisation of these threads, and of others about something else."""
    filler = [(SDK, replace(one, role="MEMBER")) for one in FILLER]
    return RememberedCandidates(
        organisation_thread(one, MemorySource(repository, f"octo-org/{repository}", 1), digest(one).outcome)
        for repository, one in (*told, *filler)
    )


def found(
    *told: tuple[int, Thread],
    asked: Thread = ASKED,
    scope: Iterable[int] = (SDK, APP),
    before: datetime | None = None,
    kept: Iterable[OrganisationKey] = (),
    settings: Settings | None = None,
) -> list[OrganisationMatch]:
    return find_elsewhere(asked, index(told), set(scope), before, settings or Settings(), set(kept))


def keys(matches: Iterable[OrganisationMatch]) -> list[tuple[int, int | str]]:
    return [(one.key.repository, one.key.thread) for one in matches]


def floor(least: float) -> Settings:
    return replace(Settings(), troubleshooting=replace(Settings().troubleshooting, similarity_threshold=least))


def test_a_thread_of_another_repository_is_found_with_its_ending_and_a_reason() -> None:
    (one,) = found((SDK, FIXED))
    assert (one.key, one.repository) == (OrganisationKey(SDK, 1), "octo-org/7")
    assert (one.match.id, one.match.title, one.match.state) == (1, TITLE, "closed")
    assert one.match.closed_at == FIXED.closed_at
    assert one.match.outcome == digest(FIXED).outcome
    assert one.match.similarity >= 0.65
    assert any("SESSION_PATH_MISMATCH" in reason or "auth/cookie.py" in reason for reason in one.match.why)


def test_equal_numbers_of_two_repositories_are_two_threads() -> None:
    assert set(keys(found((SDK, FIXED), (APP, FIXED)))) == {(SDK, 1), (APP, 1)}


def test_nothing_outside_of_the_scope_is_found() -> None:
    assert keys(found((SDK, FIXED), (APP, FIXED), scope=[APP])) == [(APP, 1)]
    assert found((SDK, FIXED), scope=[]) == []


def test_what_is_not_alike_is_not_shown() -> None:
    assert found() == []
    other = thread(3, "Dark mode for the settings", "The page is bright at night.", role="MEMBER")
    assert found((SDK, other)) == []


@pytest.mark.parametrize("title", ["", "???"])
def test_nothing_is_like_a_thread_without_a_word_in_its_title(title: str) -> None:
    assert found((SDK, FIXED), asked=replace(ASKED, title=title)) == []


def test_only_older_threads_count_in_their_state_at_the_moment() -> None:
    later = closed(3, TITLE, BODY, role="MEMBER", days=501)
    assert found((SDK, later)) == []
    (one,) = found((SDK, FIXED), before=at(1.1))
    assert (one.match.state, one.match.closed_at, one.match.outcome.kind.is_known) == ("open", None, False)


def test_what_is_shown_already_may_be_less_alike() -> None:
    assert found((SDK, FIXED), settings=floor(1.0)) == []
    kept = OrganisationKey(SDK, 1)
    assert keys(found((SDK, FIXED), settings=floor(1.0), kept=[kept])) == [(SDK, 1)]


def test_a_duplicate_counts_for_its_original_in_the_same_repository() -> None:
    copy = replace(duplicate(4, 1, TITLE, BODY), role="MEMBER")
    assert keys(found((SDK, FIXED), (SDK, copy))) == [(SDK, 1)]
    assert set(keys(found((SDK, copy), (APP, FIXED)))) == {(SDK, 4), (APP, 1)}


def test_the_next_report_of_a_series_is_no_answer() -> None:
    report = thread(3, "Report of week 41", BODY, author="octobot", role="MEMBER")
    asked = replace(ASKED, title="Report of week 42", author="octobot")
    assert found((SDK, report), asked=asked) == []
    assert found((SDK, replace(report, author="mona")), asked=asked) != []


def test_a_flood_by_a_stranger_is_not_found_and_displaces_nothing() -> None:
    flood = [(SDK, closed(n, TITLE, BODY, author="mona", closed_by="mona")) for n in range(10, 260)]
    assert keys(found(*flood, (APP, FIXED))) == [(APP, 1)]


def test_texts_of_strangers_change_no_query_and_break_nothing() -> None:
    hostile = "') OR 1=1 -- \x00 \ud800 ` * [x](y) " + "a" * 5_000 + ' NEAR AND OR NOT "unfinished'
    one = closed(3, hostile[:250], hostile, role="MEMBER")
    assert isinstance(found((SDK, one), asked=replace(ASKED, title=hostile[:250], body=hostile)), list)


@pytest.mark.parametrize("word", ["loops", "cookie", "proxy"])
def test_a_score_is_that_of_a_repositorys_own_index(word: str) -> None:
    asked = replace(ASKED, title=word, body="")
    found = rank_elsewhere(asked, index([(SDK, FIXED)]), {SDK}, None, shipped_elsewhere()).ranked.candidates
    (hit,) = (one.hit for one in found if one.entry.id == f"{SDK}#1")
    assert hit.share == pytest.approx(LEVELS[text_impacts(bare_document(FIXED))[terms(word)[0]]], rel=0.1)


def next_to(
    context: Context, *told: tuple[int, Thread], kept: Iterable[OrganisationKey] = ()
) -> list[tuple[int, int | str]]:
    return keys(elsewhere_to_show(index(told), ASKED, context, {SDK, APP}, set(kept), Settings()))


def own(similarity: float) -> Context:
    return Context(seen_before=(Match(5, TITLE, similarity, "closed", at(5)),))


def test_closed_ones_that_tell_how_they_ended_come_first() -> None:
    silent = closed(3, TITLE, BODY, role="MEMBER")
    told = (SDK, FIXED), (APP, STILL_OPEN), (APP, silent)
    assert next_to(Context(), *told) == [(SDK, 1), (APP, 3), (APP, 2)]


def test_nothing_is_shown_that_is_not_surer_than_ones_own() -> None:
    assert next_to(own(0.65), (SDK, FIXED)) == [(SDK, 1)]
    assert next_to(own(1.0), (SDK, FIXED)) == []
    kept = OrganisationKey(SDK, 1)
    assert next_to(own(1.0), (SDK, FIXED), kept=[kept]) == [(SDK, 1)]


def test_what_the_thread_points_at_itself_is_not_shown_again() -> None:
    assert next_to(Context(elsewhere=("Octo-Org/7#1",)), (SDK, FIXED)) == []


def test_what_is_shown_already_comes_first() -> None:
    kept = OrganisationKey(APP, 2)
    assert next_to(Context(), (SDK, FIXED), (APP, STILL_OPEN), kept=[kept])[0] == (APP, 2)
