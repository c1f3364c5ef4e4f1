"""The digest for maintainers: what each section lists and what not, in which order, and how much."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.cluster import Cluster, ClusterLink, ClusterLinks, ClusterMember
from bot.domain.hidden_people import HiddenPeople
from bot.domain.thread import Kind, RepositoryAddress, Thread, Tombstone
from bot.pipeline.digest import digest_source
from bot.questions.addresses import message_url
from bot.questions.digest import (
    COUNTED_WEEKS,
    DECIDED,
    DUPLICATES,
    MANY_REPORTS,
    POSSIBLY_BACK,
    UNDOCUMENTED,
    UNRELEASED,
    DigestItem,
    DigestRequest,
    DigestSection,
    SectionName,
    count_by_week,
    maintainer_report,
)
from bot.questions.digest_views import report_items, report_row, summary_sentence
from bot.settings.schema import Settings
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
    create_memory,
    issue,
    message,
    report,
    source,
    without_duplicate_mark,
)
from tests.questions.digest_samples import (
    DECIDED as DECISION,
)


def section(folder: Path, name: SectionName, *threads: Thread, **options: Any) -> DigestSection:
    """Return a section of the sample's digest; these threads replace those of the sample or are added."""
    clusters, settings, request = (
        options.pop("clusters", CLUSTERS),
        options.pop("settings", None),
        options.pop("request", None),
    )
    memory = create_memory(folder / "store", (*THREADS, *threads), **options)
    digest = maintainer_report(source(memory, clusters, settings, request))
    return next(part for part in digest.sections if part.name == name)


def ids(part: DigestSection) -> list[object]:
    return [item.card.id for item in part.items]


def only_item(part: DigestSection) -> DigestItem:
    (item,) = part.items
    return item


# Possibly back


def test_a_report_on_a_version_with_the_fix_is_listed_with_the_fixed_issue_quoted(tmp_path: Path) -> None:
    item = only_item(section(tmp_path, POSSIBLY_BACK))
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
    assert ids(section(tmp_path, POSSIBLY_BACK, other)) == []


def test_a_report_closed_as_a_duplicate_may_still_be_back(tmp_path: Path) -> None:
    assert ids(section(tmp_path, POSSIBLY_BACK, closed(BACK_AGAIN, 2, "Duplicate of #48."))) == [90]


@pytest.mark.parametrize(("day", "expected"), [("2026-11-01", [90]), ("2026-05-08", []), ("2026-05-05", [])])
def test_a_nightly_is_compared_with_the_day_of_the_fix(tmp_path: Path, day: str, expected: list[int]) -> None:
    """The fix was merged on 2026-05-08; a later fix, which the nightly lacks, changes nothing."""
    nightly = replace(BACK_AGAIN, body=f"Linkbarn nightly {day}\n\n{LOGIN}")
    later = replace(FIX, id=70, ref="#71", merged_at=ago(3), released_at=ago(2))
    assert ids(section(tmp_path, POSSIBLY_BACK, nightly, fixes=(later, FIX))) == expected


@pytest.mark.parametrize(("on", "about"), [(90, 48), (48, 90)])
def test_a_pair_that_people_marked_as_wrong_is_not_possibly_back(tmp_path: Path, on: int, about: int) -> None:
    wrong = Request(on, 7_500, "wrong", "octocat", ago(1), (about,), state="done")
    assert ids(section(tmp_path, POSSIBLY_BACK, requests=(wrong,))) == []


def test_a_report_is_not_possibly_back_before_the_fix_is_released(tmp_path: Path) -> None:
    silent = closed(FIXED, 200, "Fixed by #50.")
    fix = replace(FIX, release=None, released_at=None, unreleased=True)
    assert ids(section(tmp_path, POSSIBLY_BACK, silent, fixes=(fix,))) == []


# Many reports of one thing


def test_a_cluster_is_listed_with_its_size_newest_reports_and_reports_by_week(tmp_path: Path) -> None:
    first, second = section(tmp_path, MANY_REPORTS).items
    assert (first.card.id, second.card.id) == (60, 40)
    assert first.facts == ("10 reports by 10 people", "6 of them in this period", "since 2026-07-28")
    assert [evidence.card.id for evidence in first.evidence] == [93, 89, 87, 86, 84, 83]
    assert (first.left, first.at) == (3, ago(1))
    assert (sum(first.weeks), first.weeks[-1], len(first.weeks)) == (10, 1, COUNTED_WEEKS)


def test_members_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    large = replace(CLUSTERS[0], members=CLUSTERS[0].members[:1] + CLUSTERS[0].members[5:])
    first, _ = section(tmp_path, MANY_REPORTS, clusters=(large, CLUSTERS[1])).items
    assert first.facts == ("10 reports by 10 people", "6 of them in this period", "since 2026-07-28")
    assert (first.left, sum(first.weeks)) == (4, 10)
    questions = replace(CLUSTERS[1], times=(ago(300), *CLUSTERS[1].times))
    item = only_item(section(tmp_path / "asked", UNDOCUMENTED, clusters=(questions,)))
    assert item.facts == ("4 reports by 3 people", "3 of the newest 3 answered")


def test_the_cluster_with_more_people_comes_first(tmp_path: Path) -> None:
    loud = [issue(key, "Again", days=3, author="user-60") for key in range(201, 216)]
    one_person = replace(cluster(*loud), people=1)
    assert ids(section(tmp_path, MANY_REPORTS, *loud, clusters=(one_person, *CLUSTERS))) == [60, 40, 201]


def test_a_cluster_without_a_new_report_is_not_listed(tmp_path: Path) -> None:
    request = DigestRequest(NOW - timedelta(hours=3), NOW)
    assert ids(section(tmp_path, MANY_REPORTS, request=request)) == []


def test_deleted_reports_are_not_shown_and_two_reports_are_too_few(tmp_path: Path) -> None:
    gone = [Tombstone(one.id, NOW) for one in IMPORTS[3:]]
    listed = section(tmp_path, MANY_REPORTS, *gone)  # type: ignore[arg-type]
    evidence = {item.card.id: [one.card.id for one in item.evidence] for item in listed.items}
    assert evidence[60] == [72, 64]
    gone += [Tombstone(72, NOW)]
    assert ids(section(tmp_path / "two", MANY_REPORTS, *gone)) == [40]  # type: ignore[arg-type]
    assert ids(section(tmp_path / "canonical", MANY_REPORTS, Tombstone(60, NOW))) == [40]  # type: ignore[arg-type]


def test_weeks_are_counted_back_from_the_time_of_the_report() -> None:
    week = timedelta(weeks=1)
    moments = [
        NOW,
        NOW - week + timedelta(seconds=1),
        NOW - week,
        NOW - COUNTED_WEEKS * week,
        NOW + timedelta(seconds=1),
    ]
    assert count_by_week(moments, NOW) == (*[0] * (COUNTED_WEEKS - 2), 1, 2)


# Fixed, not released


def test_a_merged_fix_without_a_release_is_listed(tmp_path: Path) -> None:
    item = only_item(section(tmp_path, UNRELEASED))
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
def test_other_fixes_are_not_listed_as_unreleased(tmp_path: Path, fix: FixInfo) -> None:
    assert ids(section(tmp_path, UNRELEASED, fixes=(fix,))) == []


def test_a_reopened_issue_is_not_listed_as_unreleased(tmp_path: Path) -> None:
    reopened = replace(WAITING, state="open", closed_at=None, updated_at=ago(1))
    assert ids(section(tmp_path, UNRELEASED, reopened)) == []


def test_a_fix_shows_how_many_people_reported_it(tmp_path: Path) -> None:
    twice = cluster(WAITING, REPEATED)
    item = only_item(section(tmp_path, UNRELEASED, clusters=(twice,)))
    assert item.facts[1] == "2 reports by 2 people"


# Decided since


def test_a_decision_is_quoted_with_its_author(tmp_path: Path) -> None:
    item = only_item(section(tmp_path, DECIDED))
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
def test_a_quoted_decision_links_to_its_comment(tmp_path: Path, kind: Kind, address: str) -> None:
    quote = only_item(section(tmp_path, DECIDED, replace(DECISION, kind=kind))).quote
    assert quote
    assert message_url(quote, HOME) == f"{HOME}/{address}{DECISION.comments[0].id}"


@pytest.mark.parametrize("kind", [Kind.ISSUE, Kind.DISCUSSION])
def test_a_quoted_ending_has_the_kind_of_its_thread(tmp_path: Path, kind: Kind) -> None:
    moved = [replace(one, kind=kind) for one in MOVING]
    quote = only_item(section(tmp_path, UNDOCUMENTED, *moved)).quote
    assert quote
    assert quote.kind is kind


def test_a_decision_before_the_time_is_not_listed(tmp_path: Path) -> None:
    assert ids(section(tmp_path, DECIDED, request=DigestRequest(ago(8), NOW))) == []
    assert ids(section(tmp_path / "new", DECIDED, request=DigestRequest(ago(10), NOW))) == [75]


def test_a_withdrawn_decision_is_marked_as_superseded(tmp_path: Path) -> None:
    later = message("Scratch that, we will not keep tags in lower case.", 4)
    decided = section(tmp_path, DECIDED, replace(DECISION, comments=(*DECISION.comments, later), updated_at=ago(4)))
    old = next(one for one in decided.items if one.at == DECISION.comments[0].created_at)
    assert old.facts == (f"superseded by #issuecomment-{later.id}",)


def test_ignored_people_are_not_quoted_in_the_digest(tmp_path: Path) -> None:
    memory = create_memory(tmp_path / "store")
    assert "octocat" in {item.quote.author for one in report(memory).sections for item in one.items if item.quote}
    memory.hidden = HiddenPeople(["Octocat", "monalisa"])
    quotes = [item.quote for one in report(memory).sections for item in one.items if item.quote]
    assert {quote.author.casefold() for quote in quotes} & {"octocat", "monalisa"} == set()


def test_ignored_people_are_not_quoted_in_the_reasons_of_a_cluster(tmp_path: Path) -> None:
    memory = create_memory(tmp_path / "store")
    links = (ClusterLink(91, "text"), ClusterLink(91, "error", "E42: no such door"))
    memory.stage(Changes(links=(ClusterLinks(93, ago(1), links),)))

    def reasons(*people: str) -> tuple[str, ...]:
        memory.hidden = HiddenPeople(people)
        digest = digest_source(memory, Settings(), RepositoryAddress(REPO), DigestRequest(SINCE, NOW))
        return digest.clusters[0].members[1].why

    assert reasons() == ("same text as #91", "same error as #91: E42: no such door")
    for author in ("USER-91", "user-93"):
        assert reasons(author) == ("same text as #91", "same error as #91")


# Asked often and not documented


def test_a_question_that_no_page_covers_is_listed_with_an_answer(tmp_path: Path) -> None:
    item = only_item(section(tmp_path, UNDOCUMENTED))
    assert (item.card.id, item.facts) == (40, ("3 reports by 3 people", "3 of them answered"))
    assert item.quote
    assert item.quote.text.startswith("Stop the server, copy linkbarn.db")


def test_a_question_that_a_page_covers_is_not_listed(tmp_path: Path) -> None:
    text = "# Moving\n\nTo move to another machine, copy the database, the attachments and the settings to the new one."
    page = replace(PAGE, id="docs:docs/move.md", title="Another machine", body=text)
    assert ids(section(tmp_path, UNDOCUMENTED, page)) == []


def test_a_note_says_how_many_threads_are_still_to_be_compared(tmp_path: Path) -> None:
    memory = create_memory(tmp_path / "store")
    (note,) = maintainer_report(replace(source(memory), uncompared=1_204)).notes
    assert note == (
        "Groups may be missing: 1,204 threads not yet compared with older ones. "
        "The next runs do that; for a store, run precedent learn."
    )


def test_a_note_says_that_no_pages_were_searched(tmp_path: Path) -> None:
    memory = create_memory(tmp_path / "store", [one for one in THREADS if one is not PAGE])
    digest = report(memory)
    assert [len(one.items) for one in digest.sections if one.name == UNDOCUMENTED] == [0]
    assert digest.notes == ("No page is remembered, so answered questions were not looked up.",)


def test_questions_asked_only_twice_or_fixed_are_not_listed(tmp_path: Path) -> None:
    assert ids(section(tmp_path, UNDOCUMENTED, clusters=(cluster(*MOVING[1:]),))) == []
    fixed = [closed(one, 7, "Fixed in #71.") for one in MOVING]
    assert ids(section(tmp_path / "fixed", UNDOCUMENTED, *fixed, clusters=(cluster(*fixed),))) == []


def test_questions_too_short_for_a_search_are_not_listed(tmp_path: Path) -> None:
    short = [replace(one, title="Moving", body="How?") for one in MOVING]
    assert ids(section(tmp_path, UNDOCUMENTED, *short)) == []


# Duplicates of something closed


def test_an_open_duplicate_of_a_closed_issue_is_listed_with_its_source(tmp_path: Path) -> None:
    item = only_item(section(tmp_path, DUPLICATES))
    assert item.facts == ("said to be a duplicate of #62, which was closed on 2026-07-08",)
    assert item.quote
    assert (item.quote.author, item.quote.text) == ("monalisa", "Duplicate of #62.")
    assert [(one.card.id, one.why) for one in item.evidence] == [(62, ("closed, not planned",))]


@pytest.mark.parametrize(
    "others",
    [
        [replace(PARKED, state="open", closed_at=None, state_reason=None, updated_at=ago(1))],
        [without_duplicate_mark(REPEATED, 1)],
        [closed(REPEATED, 1, "Duplicate of #62.")],
        [replace(REPEATED, comments=(message("This is not a duplicate of #62.", 3),))],
        [replace(REPEATED, comments=(message("Duplicate of octo-org/other#62.", 3),))],
        [replace(REPEATED, comments=(message("Duplicate of #9999.", 3),))],
    ],
    ids=["open original", "unmarked", "closed", "denied", "elsewhere", "unknown"],
)
def test_other_issues_are_not_listed_as_duplicates(tmp_path: Path, others: list[Thread]) -> None:
    assert ids(section(tmp_path, DUPLICATES, *others)) == []


def test_a_chain_of_duplicates_leads_to_its_end_and_a_circle_is_ignored(tmp_path: Path) -> None:
    chained = closed(issue(63, "Print in black", days=149), 145, "Duplicate of #62.", state_reason="duplicate")
    pointing = replace(REPEATED, comments=(message("Duplicate of #63.", 3),))
    item = only_item(section(tmp_path, DUPLICATES, chained, pointing))
    assert [one.card.id for one in item.evidence] == [62]
    circle = closed(PARKED, 140, "Duplicate of #63.", state_reason="duplicate")
    assert ids(section(tmp_path / "circle", DUPLICATES, chained, circle, pointing)) == []


def test_duplicates_marked_by_strangers_come_last(tmp_path: Path) -> None:
    comment = message("Duplicate of #62.", 1, author="stranger", role="NONE")
    stranger = replace(issue(99, "Print on black", days=1), comments=(comment,))
    assert ids(section(tmp_path, DUPLICATES, stranger)) == [91, 99]


# The whole report


def test_the_same_memory_gives_the_same_report(tmp_path: Path) -> None:
    first, second = (
        report(create_memory(tmp_path / name, order)) for name, order in (("a", THREADS), ("b", THREADS[::-1]))
    )
    assert first == second
    assert report_row(first, HOME) == report_row(second, HOME)


def test_highlights_take_the_first_item_of_each_section_before_any_second_one(tmp_path: Path) -> None:
    digest = report(create_memory(tmp_path / "store"))
    assert [(name, item.card.id) for name, item in digest.highlights] == [
        (POSSIBLY_BACK, 90),
        (MANY_REPORTS, 60),
        (DUPLICATES, 91),
    ]
    only = digest._replace(sections=tuple(one for one in digest.sections if one.name == MANY_REPORTS))
    assert [item.card.id for _, item in only.highlights] == [60, 40]


@pytest.mark.slow
def test_a_section_is_bounded_and_says_how_many_are_left(tmp_path: Path) -> None:
    many = [replace(DECISION, id=key, title=f"Question {key}") for key in range(300, 325)]
    decided = section(tmp_path, DECIDED, *many)
    assert (len(decided.items), decided.total, decided.left) == (10, 26, 16)
    memory = create_memory(tmp_path / "few", (*THREADS, *many))
    few = maintainer_report(source(memory, request=DigestRequest(SINCE, NOW, 2)))
    titles = [one.title for one in report_items(few, HOME)]
    assert [len(one.items) for one in few.sections] == [1, 2, 1, 2, 1, 1]
    assert "Decided since: 2 of 26" in titles


def test_the_digest_of_an_empty_memory_is_empty(tmp_path: Path) -> None:
    digest = report(create_memory(tmp_path / "store", (PAGE,), ()), clusters=())
    assert (digest.total, digest.highlights) == (0, [])
    days = "From 26 October 2026 to 25 November 2026"
    assert summary_sentence(digest) == f"{days}: nothing to look at in 1 thread."


def test_the_summary_counts_the_items_of_each_kind(tmp_path: Path) -> None:
    summary = summary_sentence(report(create_memory(tmp_path / "store")))
    assert summary.startswith(
        "From 26 October 2026 to 25 November 2026: 1 fix may not hold, 2 things were reported again, "
    )
    assert summary.endswith("1 answered question is not on any page and 1 open issue repeats a closed one.")


def test_a_hidden_thread_appears_in_no_section(tmp_path: Path) -> None:
    memory = create_memory(tmp_path / "store")
    memory.stage(Changes(hidden_by_github=(Tombstone(90, NOW, "unseen"), Tombstone(75, NOW, "unseen"))))
    memory.commit("Hide")
    ids_by_section = {one.name: ids(one) for one in report(memory.open()).sections}
    assert (ids_by_section[POSSIBLY_BACK], ids_by_section[DECIDED]) == ([], [])


def test_a_cluster_of_unknown_threads_is_left_out(tmp_path: Path) -> None:
    ghosts = tuple(ClusterMember(key, (), ago(2), "x") for key in (900, 901, 902))
    unknown = Cluster("c900", 900, ghosts, 3, (ago(2),) * 3, "Unknown")
    assert ids(section(tmp_path, MANY_REPORTS, clusters=(unknown,))) == []
