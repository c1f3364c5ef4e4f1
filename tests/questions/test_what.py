"""What there is to know of a branch and of files, on made-up cards and on the sample project."""

import json
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.card import Card, Ending, Ruling, Worktree
from bot.domain.kinds import Kind
from bot.domain.thread_json import thread_from_archive
from bot.questions.related import find_related
from bot.questions.requests import FilesRequest, WorkRequest
from bot.questions.views import decision_item
from bot.questions.what import EACH, find_what
from tests.examples import examples
from tests.questions.shelf import NOW, Shelf, card

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "history.jsonl"


def ruling(text: str, days: float) -> Ruling:
    return Ruling(text, "octocat", "OWNER", NOW - timedelta(days=days))


@cache
def sample() -> Shelf:
    return Shelf.of([thread_from_archive(json.loads(line)) for line in SAMPLE.read_text(encoding="utf-8").splitlines()])


def test_a_branch_of_the_sample_names_its_ticket_its_files_decision_and_what_is_open() -> None:
    checkout = Worktree(branch="fix/42-session-timeout", modified=("linkbarn/store/session.py",), project="linkbarn")
    work = find_what(WorkRequest(checkout, NOW), sample())
    assert [(one.card.id, one.why[0]) for one in work.related] == [
        (26, "the branch names #42, a duplicate"),
        (17, "touches linkbarn/store/session.py"),
        (14, "touches linkbarn/store/session.py"),
    ]
    assert [(one.card.id, one.card.decisions[0].text[:34], one.why[0]) for one in work.decisions] == [
        (14, "We decided to go with PostgreSQL; ", "touches linkbarn/store/session.py; decided on 2025-07-22")
    ]
    assert (51, ("its title has session",)) in [(one.card.id, one.why) for one in work.tasks]
    assert all(one.card.state == "open" and one.card.kind == "issue" for one in work.tasks)
    assert [one.card.id for one in work.recent] == [61, 48, 28]
    assert work.used == ("branch fix/42-session-timeout", "1 modified file", "project linkbarn")


def test_the_branchs_own_ticket_is_a_task_while_it_is_open() -> None:
    work = find_what(WorkRequest(Worktree(branch="fix/51-session-proxy"), NOW), sample())
    assert work.tasks[0].card.id == 51
    assert work.tasks[0].why[0] == "the branch names #51"


def test_what_is_open_and_linked_to_a_related_thread_is_a_task() -> None:
    work = find_what(
        WorkRequest(Worktree(branch="wip", messages=("Expire cookies, see #48",), is_own=True), NOW), sample()
    )
    assert (51, ("names #48",)) in [(one.card.id, one.why) for one in work.tasks]


def test_without_signals_only_recent_decisions_are_told() -> None:
    work = find_what(WorkRequest(Worktree(), NOW), sample())
    assert (work.related, work.decisions, work.tasks) == ((), (), ())
    assert len(work.recent) == EACH


def test_an_empty_memory_has_nothing_to_tell() -> None:
    work = find_what(WorkRequest(Worktree(branch="fix/1-login", modified=("a.py",)), NOW), Shelf([]))
    assert (work.related, work.decisions, work.tasks, work.pulls, work.recent) == ((), (), (), (), ())
    assert find_related(FilesRequest(("a.py",), NOW), Shelf([])) == find_related(FilesRequest((), NOW), sample())


def test_decisions_about_files_are_not_told_again_as_recent() -> None:
    one = card(1, files=("auth/cookie.py",), decisions=(ruling("We decided on A.", 1),))
    request = WorkRequest(Worktree(modified=("auth/cookie.py",)), NOW)
    work = find_what(request, Shelf([one, card(2, decisions=(ruling("We chose B.", 2),))]))
    assert [each.card.id for each in work.decisions] == [1]
    assert [each.card.id for each in work.recent] == [2]


def test_of_a_threads_decisions_the_newest_is_told_and_how_old_it_is() -> None:
    rulings = (ruling("New.", 1.5), ruling("Old.", 9), Ruling("Undated.", "octocat", "OWNER", None))
    found = find_related(FilesRequest(("a.py",), NOW), Shelf([card(1, files=("a.py",), decisions=rulings)]))
    assert [(one.card.decisions[0].text, one.why[0]) for one in found.decisions] == [
        ("New.", "touches a.py; decided 1 day ago")
    ]


def test_a_decision_that_stands_is_told_before_a_newer_one_that_was_superseded() -> None:
    standing, superseded = ruling("Old.", 9), ruling("New.", 1)._replace(superseded_by="#51")
    for rulings, told in (((standing, superseded), "Old."), ((superseded,), "superseded by #51: New.")):
        found = find_related(FilesRequest(("a.py",), NOW), Shelf([card(1, files=("a.py",), decisions=rulings)]))
        assert [decision_item(one, "").decision for one in found.decisions] == [told]


def test_related_names_the_threads_of_files_those_with_most_of_them_first() -> None:
    found = find_related(
        FilesRequest(("linkbarn/auth/cookie.py", "linkbarn/web/urls.py", "store/session.py"), NOW), sample()
    )
    assert found.threads[0].card.id == 50
    assert found.threads[0].why == ("touches linkbarn/auth/cookie.py and 1 more",)
    assert {14, 17, 32, 48, 59} == {one.card.id for one in found.threads[1:]}
    assert [one.card.id for one in found.decisions] == [48, 14]


def test_related_takes_a_file_that_everybody_names_since_it_was_asked_for() -> None:
    found = find_related(
        FilesRequest(("README.md",), NOW), Shelf([card(key, files=("README.md",)) for key in range(1, 30)])
    )
    assert len(found.threads) == 10


def pull(key: int, **rest: Any) -> Card:
    return card(key, f"Change {key}", kind=Kind.PULL, **({"state": "open"} | rest))


def test_open_pull_requests_on_the_issues_and_files_are_told_with_the_reason() -> None:
    issue = card(12, "Login loop", state="open", files=("auth/cookie.py",))
    cards = [
        issue,
        pull(20, references=(12,), closes=(12,)),
        pull(21, references=(12, 12), files=("auth/cookie.py",)),
        pull(22, references=(12,), closes=(12,), state="closed"),
        pull(23, references=(12,)),  # it only mentions the issue
        pull(24, references=(13,), closes=(13,)),
        card(13, "Printer", state="closed"),
    ]
    told = [(20, ("says that it closes #12",)), (21, ("touches auth/cookie.py",))]
    found = find_related(FilesRequest(("auth/cookie.py",), NOW), Shelf(cards))
    assert [(one.card.id, one.why) for one in found.pulls] == told
    work = find_what(WorkRequest(Worktree(branch="fix/12-login", modified=("auth/cookie.py",)), NOW), Shelf(cards))
    assert [(one.card.id, one.why) for one in work.pulls] == told
    assert work.is_relevant


def test_an_issue_that_is_closed_has_no_open_pull_request_to_tell() -> None:
    cards = [card(12, files=("a/b.py",)), pull(20, references=(12,), closes=(12,))]
    assert find_related(FilesRequest(("a/b.py",), NOW), Shelf(cards)).pulls == ()


CARDS = st.lists(
    st.builds(
        lambda title, state, files, other, days: (title, state, files, other, days),
        st.sampled_from(["Login loop", "Login timeout", "Import"]),
        st.sampled_from(["open", "closed"]),
        st.lists(st.sampled_from(["a/b.py", "c/d.py"]), max_size=2, unique=True).map(tuple),
        st.integers(1, 15),
        st.one_of(st.none(), st.integers(0, 400)),
    ),
    max_size=15,
)


@settings(max_examples=examples(100), deadline=None)
@given(CARDS, st.sampled_from(["fix/3-login-loop", "login-timeout", "wip", ""]))
def test_each_section_has_three_threads_at_most_and_none_twice(
    made: list[tuple[str, str, tuple[str, ...], int, int | None]], branch: str
) -> None:
    cards: list[Card] = [
        card(
            key,
            title,
            state=state,
            files=files,
            references=(other,),
            ending=Ending(fix=f"#{other}" if other % 3 else ""),
            decisions=() if days is None else (ruling("We decided.", days),),
        )
        for key, (title, state, files, other, days) in enumerate(made, 1)
    ]
    checkout = Worktree(branch=branch, modified=("a/b.py", "c/d.py"))
    work = find_what(WorkRequest(checkout, NOW), Shelf(cards))
    assert work == find_what(WorkRequest(checkout, NOW), Shelf(reversed(cards)))
    for section in (work.related, work.decisions, work.tasks, work.pulls, work.recent):
        assert len({one.card.id for one in section}) == len(section) <= EACH
        assert all(one.why for one in section)
    assert all(one.card.state == "open" for one in work.tasks)
