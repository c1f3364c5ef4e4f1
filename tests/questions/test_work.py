"""What there is to know about a branch and about files, on made-up cards and on the sample project."""

import json
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.card import Card, Ending, Ruling, Worktree, WorktreeCommit
from bot.domain.kinds import Kind
from bot.domain.thread_json import thread_from_archive
from bot.questions.requests import WorkRequest
from bot.questions.views import decision_item
from bot.questions.work import WORK_LIMIT, WorkAnswer, find_for_work
from tests.examples import examples
from tests.questions.in_memory_cards import NOW, InMemoryCards, card

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "history.jsonl"


def ruling(text: str, days: float) -> Ruling:
    return Ruling(text, "octocat", "OWNER", NOW - timedelta(days=days))


@cache
def sample() -> InMemoryCards:
    return InMemoryCards.of(
        [thread_from_archive(json.loads(line)) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    )


def related(files: Sequence[str], cards: InMemoryCards) -> WorkAnswer:
    return find_for_work(WorkRequest(Worktree(), NOW, files=tuple(files)), cards)


def test_a_branch_of_the_sample_leads_to_its_ticket_decisions_and_open_tasks() -> None:
    checkout = Worktree(branch="fix/42-session-timeout", modified=("linkbarn/store/session.py",), project="linkbarn")
    work = find_for_work(WorkRequest(checkout, NOW), sample())
    assert [(item.card.id, item.why[0]) for item in work.threads] == [
        (26, "the branch names #42, a duplicate"),
        (17, "touches linkbarn/store/session.py"),
        (14, "touches linkbarn/store/session.py"),
    ]
    assert [(item.card.id, item.card.decisions[0].text[:34], item.why[0]) for item in work.decisions] == [
        (14, "We decided to go with PostgreSQL; ", "touches linkbarn/store/session.py; decided on 2025-07-22")
    ]
    assert (51, ("its title has session",)) in [(item.card.id, item.why) for item in work.tasks]
    assert all(item.card.state == "open" and item.card.kind == "issue" for item in work.tasks)
    assert [item.card.id for item in work.recent] == [61, 48, 28]
    assert work.used == ("branch fix/42-session-timeout", "1 modified file", "project linkbarn")


def test_the_branchs_own_ticket_is_a_task_while_it_is_open() -> None:
    work = find_for_work(WorkRequest(Worktree(branch="fix/51-session-proxy"), NOW), sample())
    assert work.tasks[0].card.id == 51
    assert work.tasks[0].why[0] == "the branch names #51"


def test_an_open_issue_linked_to_a_related_thread_is_a_task() -> None:
    work = find_for_work(
        WorkRequest(Worktree(branch="wip", commits=(WorktreeCommit("Expire cookies, see #48"),), is_own=True), NOW),
        sample(),
    )
    assert (51, ("names #48",)) in [(item.card.id, item.why) for item in work.tasks]


ANY_TASK = ("open in this project; none is near this work",)


def test_without_signals_the_open_tasks_and_newest_decisions_of_the_project_are_listed() -> None:
    work = find_for_work(WorkRequest(Worktree(), NOW), sample())
    assert (work.threads, work.decisions, work.pulls) == ((), (), ())
    newest = sample().newest(WORK_LIMIT, lambda card: card.kind == "issue" and card.state == "open")
    assert [(item.card, item.why) for item in work.tasks] == [(card, ANY_TASK) for card in newest]
    assert len(work.recent) == WORK_LIMIT
    assert not work.is_relevant, "they may be about anything"


def test_tasks_of_the_project_are_left_out_if_one_is_near_the_work() -> None:
    cards = [card(1, "Login loop", state="open"), *(card(key, "Printer", state="open") for key in range(2, 9))]
    work = find_for_work(WorkRequest(Worktree(branch="fix/1-login"), NOW), InMemoryCards(cards))
    assert [item.card.id for item in work.tasks] == [1]
    assert work.is_relevant


def test_pull_requests_for_tasks_of_the_project_are_not_listed() -> None:
    cards = [card(12, "Login loop", state="open"), pull(20, references=(12,), closes=(12,))]
    work = find_for_work(WorkRequest(Worktree(branch="wip"), NOW), InMemoryCards(cards))
    assert ([item.card.id for item in work.tasks], work.pulls) == ([12], ())


def test_an_empty_memory_gives_empty_sections() -> None:
    work = find_for_work(WorkRequest(Worktree(branch="fix/1-login", modified=("a.py",)), NOW), InMemoryCards([]))
    assert (work.threads, work.decisions, work.tasks, work.pulls, work.recent) == ((), (), (), (), ())
    assert related(["a.py"], InMemoryCards([])) == WorkAnswer()


def test_decisions_about_files_are_not_repeated_as_recent() -> None:
    first = card(1, files=("auth/cookie.py",), decisions=(ruling("We decided on A.", 1),))
    request = WorkRequest(Worktree(modified=("auth/cookie.py",)), NOW)
    work = find_for_work(request, InMemoryCards([first, card(2, decisions=(ruling("We chose B.", 2),))]))
    assert [each.card.id for each in work.decisions] == [1]
    assert [each.card.id for each in work.recent] == [2]


def test_the_newest_decision_of_a_thread_is_shown_with_its_age() -> None:
    rulings = (ruling("New.", 1.5), ruling("Old.", 9), Ruling("Undated.", "octocat", "OWNER", None))
    answer = related(["a.py"], InMemoryCards([card(1, files=("a.py",), decisions=rulings)]))
    assert [(item.card.decisions[0].text, item.why[0]) for item in answer.decisions] == [
        ("New.", "touches a.py; decided 1 day ago")
    ]


def test_a_valid_decision_is_shown_before_a_newer_superseded_one() -> None:
    valid, superseded = ruling("Old.", 9), ruling("New.", 1)._replace(superseded_by="#51")
    for rulings, expected in (((valid, superseded), "“Old.”"), ((superseded,), "“New.”; superseded by #51")):
        answer = related(["a.py"], InMemoryCards([card(1, files=("a.py",), decisions=rulings)]))
        (line,) = (decision_item(item, "").decision for item in answer.decisions)
        assert line.partition(": ")[2] == expected
        assert line.startswith("octocat (maintainer), 20"), "who, in what role, and when"


def test_threads_about_files_are_listed_with_the_most_files_first() -> None:
    answer = related(["linkbarn/auth/cookie.py", "linkbarn/web/urls.py", "store/session.py"], sample())
    assert answer.threads[0].card.id == 50
    assert answer.threads[0].why == ("touches linkbarn/auth/cookie.py, linkbarn/web/urls.py",)
    assert {14, 17, 32, 48, 59} == {item.card.id for item in answer.threads[1:]}
    assert [item.card.id for item in answer.decisions] == [48, 14]


def test_a_requested_file_counts_even_if_many_threads_name_it() -> None:
    answer = related(["README.md"], InMemoryCards([card(key, files=("README.md",)) for key in range(1, 30)]))
    assert len(answer.threads) == 10


def test_a_file_that_many_threads_name_keeps_its_newest_decisions() -> None:
    many = [card(key, files=("src/app.py",), decisions=(ruling("We decided.", key),)) for key in range(1, 30)]
    work = find_for_work(WorkRequest(Worktree(modified=("src/app.py",)), NOW), InMemoryCards(many))
    assert [(item.card.id, item.why[0]) for item in work.decisions] == [
        (1, "touches src/app.py; decided 1 day ago"),
        (2, "touches src/app.py; decided 2 days ago"),
        (3, "touches src/app.py; decided 3 days ago"),
    ]
    assert work.threads == (), "it does not tell these threads apart"


def test_among_many_decisions_about_a_file_the_most_specific_come_first() -> None:
    def decided(key: int, text: str = "We decided.", **fields: Any) -> Card:
        return card(key, **{"files": ("app.py",), "decisions": (ruling(text, key),)} | fields)

    superseded = (ruling("app.py is gone.", 3)._replace(superseded_by="#5"),)
    cards = [
        *(decided(key) for key in range(10, 30)),
        decided(31, files=("src/app.py",)),
        decided(32, "We keep app.py in one piece."),
        decided(33, title="Split app.py"),
        decided(40, files=("app.py", "src/rare.py")),
        decided(3, files=("src/app.py",), decisions=superseded),
    ]
    work = related(["src/app.py", "src/rare.py"], InMemoryCards(cards))
    assert [item.card.id for item in work.decisions] == [40, 32, 33, 31, *range(10, 16)]
    checkout = Worktree(modified=("src/app.py", "src/rare.py"))
    assert [item.card.id for item in find_for_work(WorkRequest(checkout, NOW), InMemoryCards(cards)).decisions] == [
        40, 32, 33
    ]  # fmt: skip


def test_a_common_name_in_another_folder_has_no_decisions_about_a_changed_file() -> None:
    cards = [card(1, files=("README.md",), decisions=(ruling("We decided.", 1),))]
    assert find_for_work(WorkRequest(Worktree(modified=("docs/README.md",)), NOW), InMemoryCards(cards)).decisions == ()


def test_open_pull_requests_on_a_file_that_many_threads_name_are_not_listed() -> None:
    cards = [pull(key, files=("src/app.py",)) for key in range(1, 30)]
    assert find_for_work(WorkRequest(Worktree(modified=("src/app.py",)), NOW), InMemoryCards(cards)).pulls == ()


def pull(key: int, **fields: Any) -> Card:
    return card(key, f"Change {key}", kind=Kind.PULL, **({"state": "open"} | fields))


def test_open_pull_requests_on_the_issues_and_files_are_listed_with_reasons() -> None:
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
    expected = [(20, ("says that it closes #12",)), (21, ("touches auth/cookie.py",))]
    answer = related(["auth/cookie.py"], InMemoryCards(cards))
    assert [(item.card.id, item.why) for item in answer.pulls] == expected
    work = find_for_work(
        WorkRequest(Worktree(branch="fix/12-login", modified=("auth/cookie.py",)), NOW), InMemoryCards(cards)
    )
    assert [(item.card.id, item.why) for item in work.pulls] == expected
    assert work.is_relevant


def test_an_open_pull_request_on_a_closed_issue_is_not_listed() -> None:
    cards = [card(12, files=("a/b.py",)), pull(20, references=(12,), closes=(12,))]
    assert related(["a/b.py"], InMemoryCards(cards)).pulls == ()


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
def test_each_section_has_at_most_three_threads_and_none_twice(
    values: list[tuple[str, str, tuple[str, ...], int, int | None]], branch: str
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
        for key, (title, state, files, other, days) in enumerate(values, 1)
    ]
    checkout = Worktree(branch=branch, modified=("a/b.py", "c/d.py"))
    work = find_for_work(WorkRequest(checkout, NOW), InMemoryCards(cards))
    assert work == find_for_work(WorkRequest(checkout, NOW), InMemoryCards(reversed(cards)))
    for section in (work.threads, work.decisions, work.tasks, work.pulls, work.recent):
        assert len({item.card.id for item in section}) == len(section) <= WORK_LIMIT
        assert all(item.why for item in section)
    assert all(item.card.state == "open" for item in work.tasks)
