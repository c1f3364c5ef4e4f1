"""The search terms in the name of a branch and in the messages of its commits."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.domain.card import Worktree
from bot.questions.worktree_query import MAX_FILES, WorktreeQuery, ticket_numbers, worktree_query
from tests.examples import examples


def test_ticket_numbers_are_read_from_branch_names() -> None:
    expected = {
        "fix/42-session-timeout": (42,),
        "42-session-timeout": (42,),
        "42": (42,),
        "octocat/42_timeout": (42,),
        "gh-42": (42,),
        "GH-42-timeout": (42,),
        "issue-42": (42,),
        "issues/42": (42,),
        "issue_42.timeout": (42,),
        "fix-42-and-#43": (42, 43),
        "fix-#42": (42,),
        "session-issue-42": (42,),
        "fix/2024-session": (2024,),
        "pull/7/head": (7,),
    }
    assert {branch: ticket_numbers(branch) for branch in expected} == expected


def test_versions_dates_and_other_numbers_are_not_ticket_numbers() -> None:
    cases = ["release-2.3", "release/2", "v2", "2.x", "2.3.1", "python-3", "utf-8", "sha-256", "2fa-login", "fix/0042"]
    cases += ["2026-11-22", "octocat/2026-11-22-notes", "2026-roadmap", "2026/11/notes", "ABC-123-timeout"]
    cases += ["fix/99999999999", "session-timeout", ""]
    assert [branch for branch in cases if ticket_numbers(branch) != ()] == []


def test_the_words_of_a_branch_are_its_name_without_prefix_and_number() -> None:
    assert set(worktree_query(Worktree(branch="fix/42-session_timeout.login")).distinctive) == {
        "session",
        "timeout",
        "login",
    }


def test_a_branch_of_generic_words_gives_no_distinctive_terms() -> None:
    cases = ["wip", "fix/update-test", "feature/new-changes", "test-merge", "patch-1", ""]
    assert [branch for branch in cases if worktree_query(Worktree(branch=branch)).distinctive] == []


def test_the_first_part_of_a_branch_counts_little_as_it_may_be_a_persons_name() -> None:
    distinctive = worktree_query(Worktree(branch="monalisa/session-timeout")).distinctive
    assert distinctive["monalisa"] < distinctive["session"] / 2


def test_the_name_of_the_project_is_not_a_distinctive_term() -> None:
    query = worktree_query(Worktree(branch="linkbarn-python-login", project="linkbarn", language="python"))
    assert set(query.distinctive) == {"login"}
    assert query.weights["linkbarn"] < query.weights["login"] / 10


def test_three_commit_messages_are_used_with_the_issues_they_name() -> None:
    messages = (
        "fix(auth): expire cookies\n\nFixes #48, see octo-org/other#9",
        "Walk nested lists",
        "Snapshots",
        "Feeds",
    )
    query = worktree_query(Worktree(branch="wip", messages=messages, is_own=True))
    assert query.mentioned == (48,)
    assert {"expir", "cooki", "nest", "snapshot"} <= query.weights.keys()
    assert not {"feed", "auth"} & query.weights.keys()


def test_commits_from_before_the_branch_count_little_and_name_no_issues() -> None:
    messages, recent = ("Expire cookies, fixes #48",), ("auth/cookie.py",)
    own = worktree_query(Worktree(branch="wip", messages=messages, recent=recent, is_own=True))
    others = worktree_query(Worktree(branch="wip", messages=messages, recent=recent))
    assert (own.mentioned, own.files) == ((48,), recent)
    assert (others.mentioned, others.files) == ((), ())
    assert others.weights["cooki"] < own.weights["cooki"]


def test_changed_files_come_before_files_of_the_last_commits() -> None:
    query = worktree_query(Worktree(modified=("a",), staged=("b", "a"), recent=("c", "b"), is_own=True))
    assert query.files == ("a", "b", "c")


def test_an_empty_checkout_gives_an_empty_query() -> None:
    assert worktree_query(Worktree()) == WorktreeQuery(text=" ; ".join([""]))


def test_the_used_signals_are_listed() -> None:
    checkout = Worktree(
        "fix/42-login", ("One", "Two"), ("a",), (), ("b",), is_own=True, project="linkbarn", language="python"
    )
    assert worktree_query(checkout).used == (
        "branch fix/42-login",
        "2 commit messages",
        "1 modified file",
        "1 file of the last commits",
        "project linkbarn (python)",
    )


@settings(max_examples=examples(200), deadline=None)
@given(
    st.text(max_size=400) | st.from_regex(r"(fix/|gh-|issue-|#)?[0-9]{1,12}(-[a-z]+)?", fullmatch=True),
    st.lists(st.text(max_size=300), max_size=6),
    st.lists(st.text(max_size=50), max_size=300),
)
@example("¹", [], [])  # a digit, but not a number
@example("fix/²", [], [])
def test_any_names_give_a_bounded_query(branch: str, messages: list[str], paths: list[str]) -> None:
    query = worktree_query(Worktree(branch=branch, messages=tuple(messages), modified=tuple(paths), is_own=True))
    assert all(weight > 0 for weight in query.weights.values())
    assert len(query.weights) <= 50
    assert len(query.files) <= MAX_FILES
    assert all(0 < number < 10**9 for number in query.tickets)
