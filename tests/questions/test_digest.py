"""The digest for maintainers: what stands in each list, what does not, in which order, and how much of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.cluster import Cluster, ClusterLink, ClusterLinks, ClusterMember
from bot.domain.thread import Kind, RepositoryAddress, Thread, Tombstone
from bot.pipeline.digest import digest_source
from bot.questions.addresses import message_url
from bot.questions.digest import (
    BACK,
    DECIDED,
    DUPLICATES,
    MANY,
    UNDOCUMENTED,
    UNRELEASED,
    WEEKS,
    DigestItem,
    DigestRequest,
    DigestSection,
    SectionName,
    count_by_week,
    maintainer_report,
)
from bot.questions.digest_views import report_items, report_row, summary_sentence
from bot.settings.schema import IgnoreSettings, Settings
from tests.questions.digest_samples import (
    BACK as BACK_AGAIN,
)
from tests.questions.digest_samples import (
    CLUSTERS,
    FIX,
    FIXED,
    HOME,
    IMPORTS,
    LOGIN,
    MOVING,
    NOW,
    PAGE,
    PARKED,
    REPEATED,
    REPO,
    SINCE,
    THREADS,
    WAITING,
    WAITING_FIX,
    ago,
    closed,
    cluster,
    issue,
    remembering,
    report,
    says,
    source,
    unmarked,
)
from tests.questions.digest_samples import (
    DECIDED as DECISION,
)


def section(folder: Path, name: SectionName, *threads: Thread, **given: Any) -> DigestSection:
    """A section of the sample's digest, with these threads in place of the sample's or in addition to them."""
    clusters, settings, asked = given.pop("clusters", CLUSTERS), given.pop("settings", None), given.pop("asked", None)
    memory = remembering(folder / "store", (*THREADS, *threads), **given)
    found = maintainer_report(source(memory, clusters, settings, asked))
    return next(one for one in found.sections if one.name == name)


def ids(found: DigestSection) -> list[object]:
    return [item.card.id for item in found.items]


def the_only(found: DigestSection) -> DigestItem:
    (item,) = found.items
    return item


# Possibly back


def test_a_report_on_a_version_with_the_fix_is_listed_with_the_fixed_issue_and_its_words(tmp_path: Path) -> None:
    item = the_only(section(tmp_path, BACK))
    assert (item.card.id, item.facts) == (90, ("reported on 2.4.1", "#48 was fixed in v2.3.0"))
    (evidence,) = item.evidence
    assert evidence.card.id == 48
    assert "both name `SESSION_COOKIE_CONFLICT` and `lb_session`" in evidence.why
    assert item.quote
    assert (item.quote.thread, item.quote.text) == (48, "Fixed by #50, released in v2.3.0.")


@pytest.mark.parametrize(
    "other",
    [
        replace(BACK_AGAIN, body=f"Linkbarn version: 2.2.1\n\n{LOGIN}"),
        replace(BACK_AGAIN, body=LOGIN),
        replace(BACK_AGAIN, created_at=SINCE - timedelta(minutes=1)),
        closed(BACK_AGAIN, 2, "We will not fix this: the version is too old.", state_reason="not_planned"),
    ],
    ids=["older version", "no version", "before the time", "declined"],
)
def test_other_reports_are_not_possibly_back(tmp_path: Path, other: Thread) -> None:
    assert ids(section(tmp_path, BACK, other)) == []


def test_a_report_closed_as_a_duplicate_may_still_be_back(tmp_path: Path) -> None:
    assert ids(section(tmp_path, BACK, closed(BACK_AGAIN, 2, "Duplicate of #48."))) == [90]


@pytest.mark.parametrize(("day", "found"), [("2026-11-01", [90]), ("2026-05-08", []), ("2026-05-05", [])])
def test_a_nightly_is_compared_with_the_day_of_the_fix(tmp_path: Path, day: str, found: list[int]) -> None:
    """The fix was merged on 2026-05-08; a later fix, which the nightly has not, changes nothing."""
    nightly = replace(BACK_AGAIN, body=f"Linkbarn nightly {day}\n\n{LOGIN}")
    later = replace(FIX, id=70, ref="#71", merged_at=ago(3), released_at=ago(2))
    assert ids(section(tmp_path, BACK, nightly, fixes=(later, FIX))) == found


@pytest.mark.parametrize(("on", "about"), [(90, 48), (48, 90)])
def test_a_pair_that_people_called_wrong_is_not_possibly_back(tmp_path: Path, on: int, about: int) -> None:
    wrong = Request(on, 7_500, "wrong", "octocat", ago(1), (about,), state="done")
    assert ids(section(tmp_path, BACK, requests=(wrong,))) == []


def test_without_a_release_of_the_fix_nothing_is_back(tmp_path: Path) -> None:
    silent = closed(FIXED, 200, "Fixed by #50.")
    fix = replace(FIX, release=None, released_at=None, unreleased=True)
    assert ids(section(tmp_path, BACK, silent, fixes=(fix,))) == []


# Many reports of one thing


def test_a_cluster_is_listed_with_its_size_its_newest_reports_and_its_weeks(tmp_path: Path) -> None:
    first, second = section(tmp_path, MANY).items
    assert (first.card.id, second.card.id) == (60, 40)
    assert first.facts == ("10 reports by 10 people", "6 of them in this period", "since 2026-07-28")
    assert [one.card.id for one in first.evidence] == [93, 89, 87, 86, 84, 83]
    assert (first.left, first.at) == (3, ago(1))
    assert (sum(first.weeks), first.weeks[-1], len(first.weeks)) == (10, 1, WEEKS)


def test_members_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    large = replace(CLUSTERS[0], members=CLUSTERS[0].members[:1] + CLUSTERS[0].members[5:])
    first, _ = section(tmp_path, MANY, clusters=(large, CLUSTERS[1])).items
    assert first.facts == ("10 reports by 10 people", "6 of them in this period", "since 2026-07-28")
    assert (first.left, sum(first.weeks)) == (4, 10)
    asked = replace(CLUSTERS[1], times=(ago(300), *CLUSTERS[1].times))
    item = the_only(section(tmp_path / "asked", UNDOCUMENTED, clusters=(asked,)))
    assert item.facts == ("4 reports by 3 people", "3 of the newest 3 answered")


def test_the_cluster_with_more_people_comes_first(tmp_path: Path) -> None:
    loud = [issue(key, "Again", days=3, author="user-60") for key in range(201, 216)]
    one_person = replace(cluster(*loud), people=1)
    assert ids(section(tmp_path, MANY, *loud, clusters=(one_person, *CLUSTERS))) == [60, 40, 201]


def test_a_cluster_without_a_new_report_is_quiet(tmp_path: Path) -> None:
    asked = DigestRequest(NOW - timedelta(hours=3), NOW)
    assert ids(section(tmp_path, MANY, asked=asked)) == []


def test_a_report_that_is_gone_is_not_shown_and_two_are_not_many(tmp_path: Path) -> None:
    gone = [Tombstone(one.id, NOW) for one in IMPORTS[3:]]
    found = section(tmp_path, MANY, *gone)  # type: ignore[arg-type]
    evidence = {item.card.id: [one.card.id for one in item.evidence] for item in found.items}
    assert evidence[60] == [72, 64]
    gone += [Tombstone(72, NOW)]
    assert ids(section(tmp_path / "two", MANY, *gone)) == [40]  # type: ignore[arg-type]
    assert ids(section(tmp_path / "canonical", MANY, Tombstone(60, NOW))) == [40]  # type: ignore[arg-type]


def test_weeks_end_at_the_moment_of_the_report() -> None:
    week = timedelta(weeks=1)
    moments = [NOW, NOW - week + timedelta(seconds=1), NOW - week, NOW - WEEKS * week, NOW + timedelta(seconds=1)]
    assert count_by_week(moments, NOW) == (*[0] * (WEEKS - 2), 1, 2)


# Fixed, not released


def test_a_merged_fix_without_a_release_is_listed(tmp_path: Path) -> None:
    item = the_only(section(tmp_path, UNRELEASED))
    assert (item.card.id, item.at) == (70, ago(12))
    assert item.facts == ("fixed by #71, merged on 2026-11-13", "looked up on 2026-11-23")
    assert item.quote
    assert item.quote.text == "Fixed in #71, thank you for the report!"


@pytest.mark.parametrize(
    "fix",
    [
        replace(WAITING_FIX, release="v2.5.0", unreleased=False),
        replace(WAITING_FIX, unreleased=False),
        replace(WAITING_FIX, refuted=True),
        replace(WAITING_FIX, commit=None),
    ],
    ids=["released", "not known", "refuted", "not merged"],
)
def test_other_fixes_wait_for_no_release(tmp_path: Path, fix: FixInfo) -> None:
    assert ids(section(tmp_path, UNRELEASED, fixes=(fix,))) == []


def test_a_reopened_issue_waits_for_no_release(tmp_path: Path) -> None:
    reopened = replace(WAITING, state="open", closed_at=None, updated_at=ago(1))
    assert ids(section(tmp_path, UNRELEASED, reopened)) == []


def test_a_fix_tells_how_many_reported_it(tmp_path: Path) -> None:
    twice = cluster(WAITING, REPEATED)
    item = the_only(section(tmp_path, UNRELEASED, clusters=(twice,)))
    assert item.facts[1] == "2 reports by 2 people"


# Decided since


def test_a_decision_is_quoted_with_its_author(tmp_path: Path) -> None:
    item = the_only(section(tmp_path, DECIDED))
    assert (item.card.id, item.facts) == (75, ())
    assert item.quote
    assert (item.quote.author, item.quote.comment_id) == ("octocat", DECISION.comments[0].id)
    assert item.quote.text.startswith("We decided to keep tags in lower case")


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (Kind.PULL, "pull/75#issuecomment-"),
        (Kind.DISCUSSION, "discussions/75#discussioncomment-"),
        (Kind.ISSUE, "issues/75#issuecomment-"),
    ],
)
def test_what_was_said_is_linked_where_it_stands(tmp_path: Path, kind: Kind, address: str) -> None:
    quote = the_only(section(tmp_path, DECIDED, replace(DECISION, kind=kind))).quote
    assert quote
    assert message_url(quote, HOME) == f"{HOME}/{address}{DECISION.comments[0].id}"


@pytest.mark.parametrize("kind", [Kind.ISSUE, Kind.DISCUSSION])
def test_the_words_of_an_ending_are_linked_where_they_stand(tmp_path: Path, kind: Kind) -> None:
    moved = [replace(one, kind=kind) for one in MOVING]
    quote = the_only(section(tmp_path, UNDOCUMENTED, *moved)).quote
    assert quote
    assert quote.kind is kind


def test_a_decision_before_the_time_is_not_listed(tmp_path: Path) -> None:
    assert ids(section(tmp_path, DECIDED, asked=DigestRequest(ago(8), NOW))) == []
    assert ids(section(tmp_path / "new", DECIDED, asked=DigestRequest(ago(10), NOW))) == [75]


def test_a_decision_that_was_taken_back_says_so(tmp_path: Path) -> None:
    later = says("Scratch that, we will not keep tags in lower case.", 4)
    found = section(tmp_path, DECIDED, replace(DECISION, comments=(*DECISION.comments, later), updated_at=ago(4)))
    old = next(one for one in found.items if one.at == DECISION.comments[0].created_at)
    assert old.facts == (f"superseded by #issuecomment-{later.id}",)


def test_people_who_are_ignored_are_not_quoted(tmp_path: Path) -> None:
    settings = Settings(ignore=IgnoreSettings(people=("Octocat", "monalisa")))
    memory = remembering(tmp_path / "store")
    found = maintainer_report(source(memory, settings=settings))
    quotes = [item.quote for one in found.sections for item in one.items if item.quote]
    assert {quote.author.casefold() for quote in quotes} & {"octocat", "monalisa"} == set()
    assert "octocat" in {item.quote.author for one in report(memory).sections for item in one.items if item.quote}


def test_people_who_are_ignored_are_not_quoted_in_what_holds_a_cluster(tmp_path: Path) -> None:
    memory = remembering(tmp_path / "store")
    signs = (ClusterLink(91, "text"), ClusterLink(91, "error", "E42: no such door"))
    memory.stage(Changes(links=(ClusterLinks(93, ago(1), signs),)))

    def reasons(*people: str) -> tuple[str, ...]:
        settings = Settings(ignore=IgnoreSettings(people=people))
        found = digest_source(memory, settings, RepositoryAddress(REPO), DigestRequest(SINCE, NOW))
        return found.clusters[0].members[1].why

    assert reasons() == ("same text as #91", "same error as #91: E42: no such door")
    assert reasons("USER-91") == ("same text as #91", "same error as #91")


# Asked often and not documented


def test_a_question_that_no_page_covers_is_listed_with_an_answer(tmp_path: Path) -> None:
    item = the_only(section(tmp_path, UNDOCUMENTED))
    assert (item.card.id, item.facts) == (40, ("3 reports by 3 people", "3 of them answered"))
    assert item.quote
    assert item.quote.text.startswith("Stop the server, copy linkbarn.db")


def test_a_question_that_a_page_covers_is_not(tmp_path: Path) -> None:
    text = "# Moving\n\nTo move to another machine, copy the database, the attachments and the settings to the new one."
    page = replace(PAGE, id="docs:docs/move.md", title="Another machine", body=text)
    assert ids(section(tmp_path, UNDOCUMENTED, page)) == []


def test_it_is_told_how_much_is_still_to_be_compared(tmp_path: Path) -> None:
    memory = remembering(tmp_path / "store")
    (note,) = maintainer_report(replace(source(memory), uncompared=1_204)).notes
    assert note == (
        "Groups may be missing: 1,204 threads not yet compared with older ones. "
        "The next runs do that; for a store, run precedent learn."
    )


def test_without_pages_it_is_told_that_none_were_looked_up(tmp_path: Path) -> None:
    memory = remembering(tmp_path / "store", [one for one in THREADS if one is not PAGE])
    found = report(memory)
    assert [len(one.items) for one in found.sections if one.name == UNDOCUMENTED] == [0]
    assert found.notes == ("No page is remembered, so answered questions were not looked up.",)


def test_a_question_asked_twice_and_one_that_was_fixed_are_not_listed(tmp_path: Path) -> None:
    assert ids(section(tmp_path, UNDOCUMENTED, clusters=(cluster(*MOVING[1:]),))) == []
    fixed = [closed(one, 7, "Fixed in #71.") for one in MOVING]
    assert ids(section(tmp_path / "fixed", UNDOCUMENTED, *fixed, clusters=(cluster(*fixed),))) == []


def test_questions_too_short_to_be_looked_up_are_not_listed(tmp_path: Path) -> None:
    short = [replace(one, title="Moving", body="How?") for one in MOVING]
    assert ids(section(tmp_path, UNDOCUMENTED, *short)) == []


# Duplicates of something closed


def test_an_open_duplicate_of_a_closed_issue_is_listed_with_who_said_so(tmp_path: Path) -> None:
    item = the_only(section(tmp_path, DUPLICATES))
    assert item.facts == ("said to be a duplicate of #62, which was closed on 2026-07-08",)
    assert item.quote
    assert (item.quote.author, item.quote.text) == ("monalisa", "Duplicate of #62.")
    assert [(one.card.id, one.why) for one in item.evidence] == [(62, ("closed, not planned",))]


@pytest.mark.parametrize(
    "others",
    [
        [replace(PARKED, state="open", closed_at=None, state_reason=None, updated_at=ago(1))],
        [unmarked(REPEATED, 1)],
        [closed(REPEATED, 1, "Duplicate of #62.")],
        [replace(REPEATED, comments=(says("This is not a duplicate of #62.", 3),))],
        [replace(REPEATED, comments=(says("Duplicate of octo-org/other#62.", 3),))],
        [replace(REPEATED, comments=(says("Duplicate of #9999.", 3),))],
    ],
    ids=["open original", "unmarked", "closed", "denied", "elsewhere", "unknown"],
)
def test_other_issues_are_no_duplicates_of_something_closed(tmp_path: Path, others: list[Thread]) -> None:
    assert ids(section(tmp_path, DUPLICATES, *others)) == []


def test_the_end_of_a_chain_counts_and_a_circle_is_none(tmp_path: Path) -> None:
    chained = closed(issue(63, "Print in black", days=149), 145, "Duplicate of #62.", state_reason="duplicate")
    pointing = replace(REPEATED, comments=(says("Duplicate of #63.", 3),))
    item = the_only(section(tmp_path, DUPLICATES, chained, pointing))
    assert [one.card.id for one in item.evidence] == [62]
    circle = closed(PARKED, 140, "Duplicate of #63.", state_reason="duplicate")
    assert ids(section(tmp_path / "circle", DUPLICATES, chained, circle, pointing)) == []


def test_what_strangers_say_comes_last(tmp_path: Path) -> None:
    word = says("Duplicate of #62.", 1, author="stranger", role="NONE")
    stranger = replace(issue(99, "Print on black", days=1), comments=(word,))
    assert ids(section(tmp_path, DUPLICATES, stranger)) == [91, 99]


# The whole report


def test_the_same_memory_gives_the_same_report(tmp_path: Path) -> None:
    first, second = (
        report(remembering(tmp_path / name, order)) for name, order in (("a", THREADS), ("b", THREADS[::-1]))
    )
    assert first == second
    assert report_row(first, HOME) == report_row(second, HOME)


def test_the_first_of_each_section_is_to_be_looked_at_first(tmp_path: Path) -> None:
    found = report(remembering(tmp_path / "store"))
    assert [(name, item.card.id) for name, item in found.highlights] == [(BACK, 90), (MANY, 60), (DUPLICATES, 91)]
    only = found._replace(sections=tuple(one for one in found.sections if one.name == MANY))
    assert [item.card.id for _, item in only.highlights] == [60, 40]


def test_a_section_is_bounded_and_says_how_many_are_left(tmp_path: Path) -> None:
    many = [replace(DECISION, id=key, title=f"Question {key}") for key in range(300, 325)]
    found = section(tmp_path, DECIDED, *many)
    assert (len(found.items), found.total, found.left) == (10, 26, 16)
    memory = remembering(tmp_path / "few", (*THREADS, *many))
    few = maintainer_report(source(memory, asked=DigestRequest(SINCE, NOW, 2)))
    titles = [one.title for one in report_items(few, HOME)]
    assert [len(one.items) for one in few.sections] == [1, 2, 1, 2, 1, 1]
    assert "Decided since: 2 of 26" in titles


def test_an_empty_memory_has_nothing_to_look_at(tmp_path: Path) -> None:
    found = report(remembering(tmp_path / "store", (PAGE,), ()), clusters=())
    assert (found.total, found.highlights) == (0, [])
    days = "From 26 October 2026 to 25 November 2026"
    assert summary_sentence(found) == f"{days}: nothing to look at in 1 thread."


def test_the_sentence_counts_each_kind_of_thing(tmp_path: Path) -> None:
    told = summary_sentence(report(remembering(tmp_path / "store")))
    assert told.startswith(
        "From 26 October 2026 to 25 November 2026: 1 fix may not hold, 2 things were reported again, "
    )
    assert told.endswith("1 answered question is not on any page and 1 open issue repeats a closed one.")


def test_a_thread_that_github_hides_is_nowhere(tmp_path: Path) -> None:
    memory = remembering(tmp_path / "store")
    memory.stage(Changes(unseen=(Tombstone(90, NOW, "unseen"), Tombstone(75, NOW, "unseen"))))
    memory.commit("Hide")
    found = {one.name: ids(one) for one in report(memory.open()).sections}
    assert (found[BACK], found[DECIDED]) == ([], [])


def test_a_cluster_of_unknown_threads_is_left_out(tmp_path: Path) -> None:
    ghosts = tuple(ClusterMember(key, (), ago(2), "x") for key in (900, 901, 902))
    strange = Cluster("c900", 900, ghosts, 3, (ago(2),) * 3, "Unknown")
    assert ids(section(tmp_path, MANY, clusters=(strange,))) == []
