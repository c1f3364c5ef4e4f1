"""The signs of clusters: what people say, and what two texts share that few others have."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.cluster import MAX_LINK_CHARS
from bot.domain.thread import Kind, Thread, TimelineEvent
from bot.memory.memory import Memory
from bot.recall.cluster_links import MAX_ERROR_THREADS, find_links
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, duplicate, message, thread
from tests.recall.test_similar import FILLER

ERROR = "Error: the gearbox jammed while folding sector seven of the southern map near the old harbour"
SHORT = "Error: the gearbox jammed while folding sector seven"
REPORT = thread(1, "Folding the map fails", f"Since the update I cannot fold it.\n\n{ERROR}\n", author="hubot")
AGAIN = thread(
    2, "The map does not fold anymore", f"I wanted to fold the map and got this:\n\n{ERROR}\n", author="mona"
)


def signs(issue: Thread, memory: Memory) -> list[tuple[int | str, str]]:
    return [(link.to, link.sign) for link in find_links(issue, memory).links]


def test_two_reports_of_one_error_are_linked(remember: Remember) -> None:
    memory = remember(REPORT, AGAIN, *FILLER)
    assert signs(AGAIN, memory) == [(1, "alike"), (1, "error")]
    assert find_links(AGAIN, memory).links[1].words == ERROR
    assert signs(REPORT, memory) == []  # older threads are not compared with later ones


def test_later_threads_change_nothing(remember: Remember) -> None:
    before = find_links(AGAIN, remember(REPORT, AGAIN, *FILLER))
    later = [thread(n, AGAIN.title, AGAIN.body, author=f"user-{n}") for n in range(300, 300 + 2 * MAX_ERROR_THREADS)]
    assert find_links(AGAIN, remember(*later)) == before


def test_an_error_that_many_threads_have_is_no_sign(remember: Remember) -> None:
    many = [thread(n, f"Trouble {n}", f"Note {n}\n\n{ERROR}\n", author=f"u{n}") for n in range(10, 50)]
    newest = replace(AGAIN, id=60, created_at=at(60))
    assert (1, "error") in signs(newest, remember(REPORT, newest, *many[:3], *FILLER))
    assert "error" not in [sign for _, sign in signs(newest, remember(*many))]


def test_one_person_does_not_report_twice(remember: Remember) -> None:
    same = replace(AGAIN, author="HUBOT")
    assert signs(same, remember(REPORT, same, *FILLER)) == []


def test_only_issues_have_signs(remember: Remember) -> None:
    pull, talk = (replace(AGAIN, kind=kind) for kind in (Kind.PULL, Kind.DISCUSSION))
    by_bot = replace(AGAIN, is_bot=True)
    memory = remember(REPORT, AGAIN, *FILLER)
    assert signs(pull, memory) == signs(talk, memory) == signs(by_bot, memory) == []


def test_an_issue_is_compared_with_issues_only(remember: Remember) -> None:
    assert signs(AGAIN, remember(replace(REPORT, kind=Kind.DISCUSSION), AGAIN, *FILLER)) == []


@pytest.mark.parametrize(
    ("role", "text", "expected"),
    [
        ("MEMBER", "This is the same issue as #1.", [(1, "said")]),
        ("NONE", "This is the same issue as #1.", [(1, "heard")]),
        ("", "This is the same issue as #1.", [(1, "said")]),
        ("MEMBER", "Duplicate of #1", [(1, "said")]),
        ("MEMBER", "This is not the same issue as #1.", []),
        ("MEMBER", "Is this the same issue as #1?", []),
        ("MEMBER", "Same issue as other/repo#1.", []),
        ("MEMBER", "> Same issue as #1.", []),
        ("MEMBER", "Same issue as #5.", []),
    ],
)
def test_statements_by_people_are_signs(
    remember: Remember, role: str, text: str, expected: list[tuple[int, str]]
) -> None:
    issue = thread(5, "Blue is red", "Everything is red.", comments=(message(text, 6, role=role),))
    assert signs(issue, remember(issue)) == expected


@pytest.mark.parametrize("repo", ["octo-org/hello-world", None])
@pytest.mark.parametrize("words", ["Duplicate of {}", "This is the same issue as {}."])
def test_a_link_to_another_repository_names_no_issue_of_this_one(
    remember: Remember, words: str, repo: str | None
) -> None:
    def linked(address: str, *, closed: bool = False) -> list[int | str]:
        comments = (message(words.format(address), 6, role="MEMBER"),)
        issue = thread(5, "Blue is red", "Everything is red.", comments=comments)
        issue = replace(issue, state="closed", closed_at=at(6)) if closed else issue
        return [link.to for link in find_links(issue, remember(issue), repo).links]

    foreign = "https://github.com/other/repo/issues/1"
    assert linked(foreign) == linked(foreign, closed=True) == []
    assert linked("https://github.com/octo-org/hello-world/issues/1") == ([1] if repo else [])


def test_only_the_strongest_statement_counts(remember: Remember) -> None:
    by_stranger = message("This is the same issue as #1.", 6)
    by_member = message("Yes, the same issue as #1.", 7, "hubot", "MEMBER")
    issue = thread(5, "Blue is red", "", comments=(by_stranger, by_member))
    assert signs(issue, remember(issue)) == [(1, "said")]
    assert signs(duplicate(6, 1, "Green is red"), remember()) == [(1, "duplicate")]


def test_a_duplicate_mark_counts_until_it_is_removed(remember: Remember) -> None:
    mark = TimelineEvent("marked_as_duplicate", at(6), "hubot", source=1)
    unmark = TimelineEvent("unmarked_as_duplicate", at(7), "hubot", source=1)
    by_bot = replace(mark, actor="triage[bot]")
    issue = thread(5, "Blue is red")
    memory = remember(issue)
    assert signs(replace(issue, events=(mark,)), memory) == [(1, "duplicate")]
    assert signs(replace(issue, events=(mark, unmark)), memory) == []
    assert signs(replace(issue, events=(by_bot,)), memory) == []


def test_the_same_text_links_two_reports(remember: Remember) -> None:
    text = "When I press the blue button twice, the window turns over, the cat wakes up and no soup is left at all."
    older = thread(150, "Blue button turns the window", text, author="hubot")
    copy = thread(151, "Blue button turns the window", text, author="mona")
    assert {sign for _, sign in signs(copy, remember(older, copy, *FILLER))} == {"text", "sametitle", "alike"}


def test_shared_words_are_cut_at_the_limit(remember: Remember) -> None:
    error = (
        f"Error: the gearbox jammed {' '.join(f'{first}an{second}' for first in 'bdfgh' for second in 'klmnp')} hard"
    )
    older, newer = (replace(report, body=report.body.replace(ERROR, error)) for report in (REPORT, AGAIN))
    (words,) = (link.words for link in find_links(newer, remember(older, newer, *FILLER)).links if link.words)
    assert len(words) == MAX_LINK_CHARS
    assert words.endswith("…")


def test_a_short_error_links_only_threads_with_similar_titles(remember: Remember) -> None:
    older, newer = (replace(report, body=report.body.replace(ERROR, SHORT)) for report in (REPORT, AGAIN))
    older, newer = (replace(report, id=key, created_at=at(key)) for report, key in ((older, 150), (newer, 151)))
    alike = replace(newer, title=f"{older.title} badly")
    assert signs(newer, remember(older, newer, *FILLER)) == []
    assert [sign for _, sign in signs(alike, remember(alike))] == ["alike", "sametitle", "error"]


@pytest.mark.parametrize(
    ("days", "words", "is_linked"),
    [
        (6, "Fixed by 0123abc.", True),
        (8, "Fixed by 0123abc.", False),
        (8, "Thanks.", False),
        (8, "We will not fix this.", True),
    ],
)
def test_an_issue_closed_long_before_is_not_linked_unless_it_was_declined(
    remember: Remember, days: float, words: str, *, is_linked: bool
) -> None:
    """After a fix the same error has another cause, or is back; an error that nobody will fix is still there."""
    older = closed(150, REPORT.title, REPORT.body, comments=(message(words, 150.1, "hubot", "MEMBER"),))
    assert older.closed_at
    newer = replace(AGAIN, id=170, created_at=older.closed_at + timedelta(days=days))
    assert bool(signs(newer, remember(older, newer, *FILLER))) == is_linked


def test_titles_of_common_words_are_no_sign(remember: Remember) -> None:
    title = "Map window opens blank"
    older = thread(10, title, "Brass lever of the harbour crane squeaks.", author="hubot")
    newer = thread(160, title, "Whenever I pull it, the brass lever of the harbour crane squeaks.", author="mona")
    memory = remember(older, newer, *FILLER)
    assert [sign for _, sign in signs(newer, memory)] == ["alike", "sametitle"]
    many = [thread(n, f"{title} {n}", f"Case {n}", author=f"user-{n}") for n in range(20, 80)]
    assert signs(newer, remember(*many)) == []


def test_a_new_report_of_a_frequent_error_is_near_to_several_others(remember: Remember) -> None:
    """All of them are equally near, so none has to be the nearest."""
    reports = [
        replace(REPORT, id=n, author=f"user-{n}", title=f"Folding the map fails {word}", created_at=at(n))
        for n, word in enumerate(("today", "here", "again", "badly", "too"), 2)
    ]
    newest = replace(AGAIN, id=50, title="Folding the map fails", created_at=at(50))
    memory = remember(REPORT, *reports, newest, *FILLER)
    assert len({to for to, sign in signs(newest, memory) if sign in ("alike", "near")}) >= 3


def test_a_short_error_links_reports_of_the_same_days(remember: Remember) -> None:
    """During an outage everybody words the report differently, and each report is near to many."""
    words = ("rails", "ferry", "crane", "bridge")
    reports = [
        thread(150 + n, f"The {word} stopped", f"No {word} since noon.\n\n{SHORT}\n", 150 + n / 24, author=f"user-{n}")
        for n, word in enumerate(words)
    ]
    memory = remember(*reports, *FILLER)
    links = {(to, sign) for to, sign in signs(reports[-1], memory) if sign in ("error", "samedays")}
    assert {sign for _, sign in links} == {"error", "samedays"}
    assert signs(reports[1], memory) == []  # two reports are not enough
