"""The search terms in the name of a branch and in the messages of its commits."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.domain.card import Worktree, WorktreeCommit
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
    query = worktree_query(Worktree(branch="wip", commits=tuple(map(WorktreeCommit, messages)), is_own=True))
    assert query.mentioned == {48: 1.0}
    assert {"expir", "cooki", "nest", "snapshot"} <= query.weights.keys()
    assert not {"feed", "auth"} & query.weights.keys()


def test_commits_from_before_the_branch_count_little_and_name_no_issues() -> None:
    commits = (WorktreeCommit("Expire cookies, fixes #48", ("auth/cookie.py",)),)
    own = worktree_query(Worktree(branch="wip", commits=commits, is_own=True))
    others = worktree_query(Worktree(branch="wip", commits=commits))
    assert (own.mentioned, own.files) == ({48: 1.0}, {"auth/cookie.py": 1.0})
    assert (others.mentioned, others.files) == ({}, {})
    assert others.weights["cooki"] < own.weights["cooki"]


def trunk(*commits: WorktreeCommit) -> WorktreeQuery:
    return worktree_query(Worktree(commits=commits, is_clean_trunk=True, project="linkbarn"))


def test_on_a_clean_trunk_older_commits_count_less() -> None:
    query = trunk(
        WorktreeCommit("Expire cookies (#48)", ("auth/cookie.py",)),
        WorktreeCommit("Walk nested lists (#30)", ("auth/cookie.py", "import/lists.py")),
        WorktreeCommit("Expire snapshots, see #48"),
    )
    assert query.mentioned == {48: 1.0, 30: 0.75}
    assert query.files == {"auth/cookie.py": 1.0, "import/lists.py": 0.75}
    assert query.weights["cooki"] > query.weights["nest"] > query.weights["snapshot"]
    assert query.weights["cooki"] == query.weights["expir"]


def test_on_a_clean_trunk_each_subject_of_three_words_is_evidence() -> None:
    query = trunk(WorktreeCommit("feat: walk nested bookmark lists of linkbarn"), WorktreeCommit("Expire cookies"))
    assert [set(each.weights) for each in query.evidence] == [{"walk", "nest", "bookmark", "list"}]


UPKEEP = (
    *("Bump version to 2.4.0", "Release 2.4.0", "v2.4.0", "Version 2.4.0-rc.1", "chore(release): 2.4.0"),
    *("Release linkbarn 2.4.0", "Set version to 2.5.0-SNAPSHOT", "Post-release version bump", "Tag release"),
    *("Back to development: 2.5.0", "[maven-release-plugin] prepare for next development iteration"),
    *("Bump requests from 2.31.0 to 2.32.0", "chore(deps): bump actions/checkout from 3 to 4", "Upgrade dependencies"),
    *("Bump the npm-deps group with 3 updates", "Update dependency pytest to v8", "Update Cargo.lock"),
    *("[pre-commit.ci] pre-commit autoupdate", "ci: run tests on Python 3.13", "Fix CI", "Fix flaky tests"),
    *("Update CHANGELOG.md", "Add release notes", "Fix typos in comments", "docs: spelling", "Update README"),
    *("Fix lint", "style: cargo fmt", "Reformat with ruff", "Remove trailing whitespace", "Update copyright year"),
)


@pytest.mark.parametrize("subject", UPKEEP)
def test_upkeep_on_a_clean_trunk_says_nothing(subject: str) -> None:
    query = trunk(WorktreeCommit(f"{subject} (#48)\n\nSee #49", ("linkbarn/version.py",)))
    assert query == trunk()


@pytest.mark.parametrize(
    "subject",
    [
        *("Release the lock before waiting", "Prepare statements once", "Fix version check when the file is missing"),
        *("Bump the timeout of the first request", "Upgrade the database schema", "Fix", "Expire sessions"),
        *("Set the cookie path from the base URL", "Style the login page", "升级数据库版本"),
    ],
)
def test_work_on_a_clean_trunk_is_not_taken_for_upkeep(subject: str) -> None:
    assert trunk(WorktreeCommit(f"{subject} (#48)", ("a.py",))).mentioned == {48: 1.0}


def test_upkeep_counts_on_a_branch() -> None:
    commits = (WorktreeCommit("Bump version (#48)", ("linkbarn/version.py",)),)
    query = worktree_query(Worktree(branch="wip", commits=commits, is_own=True))
    assert (query.mentioned, [*query.files]) == ({48: 1.0}, ["linkbarn/version.py"])


def test_the_files_of_a_change_everywhere_say_nothing_on_a_clean_trunk() -> None:
    many = tuple(f"linkbarn/part{number}.py" for number in range(21))
    assert trunk(WorktreeCommit("Name things (#48)", many)).files == {}
    assert len(trunk(WorktreeCommit("Name things (#48)", many[:20])).files) == 20


def test_a_colon_inside_a_subject_does_not_end_the_type_of_the_commit() -> None:
    commits = (WorktreeCommit("Repair login: expire cookies"),)
    assert {"login", "expir"} <= worktree_query(Worktree(branch="wip", commits=commits, is_own=True)).weights.keys()


def test_changed_files_come_before_files_of_the_last_commits() -> None:
    commits = (WorktreeCommit("Begin", ("c", "b")),)
    query = worktree_query(Worktree(commits=commits, modified=("a",), staged=("b", "a"), is_own=True))
    assert list(query.files) == ["a", "b", "c"]


def test_an_empty_checkout_gives_an_empty_query() -> None:
    assert worktree_query(Worktree()) == WorktreeQuery()


def test_the_used_signals_are_listed() -> None:
    commits = (WorktreeCommit("One", ("b",)), WorktreeCommit("Two"))
    checkout = Worktree("fix/42-login", commits, ("a",), is_own=True, project="linkbarn", language="python")
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
    st.booleans(),
)
@example("¹", [], [], True)  # a digit, but not a number
@example("fix/²", [], [], True)
def test_any_names_give_a_bounded_query(branch: str, messages: list[str], paths: list[str], is_own: bool) -> None:
    commits = tuple(map(WorktreeCommit, messages))
    query = worktree_query(
        Worktree(branch=branch, commits=commits, modified=tuple(paths), is_own=is_own, is_clean_trunk=not is_own)
    )
    assert all(weight > 0 for weight in query.weights.values())
    assert len(query.weights) <= 50
    assert len(query.files) <= MAX_FILES
    assert all(0 < number < 10**9 for number in query.tickets)
