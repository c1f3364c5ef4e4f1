"""Stories of the commands that look at the work at hand, in real checkouts of the sample's project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.checkouts import git
from tests.cli.program_result import Run

pytestmark = pytest.mark.usefixtures("outside_any_checkout")


class Project:
    """A checkout of the sample's project, as the working folder; everything on its main branch is pushed at first."""

    def __init__(self, folder: Path, call: Run, store: Path) -> None:
        self.folder, self._call, self.store = folder / "linkbarn", call, store
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "upstream.git")
        git(folder, "clone", "--quiet", "upstream.git", "linkbarn")
        self.commit("Begin", "linkbarn/auth/__init__.py", "linkbarn/store/__init__.py")
        self.push()

    def commit(self, message: str, *files: str) -> None:
        self.write(*files)
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--allow-empty", "-m", message)

    def write(self, *files: str) -> None:
        for file in files:
            path = self.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{path.read_text() if path.exists() else ''}more\n")

    def push(self) -> None:
        git(self.folder, "push", "--quiet", "--set-upstream", "origin", "HEAD")

    def ask(self, *command: str) -> Any:
        result = self._call(*command, "--store", self.store, "--json")
        assert result.code == 0
        return result.data

    def reasons(self, command: str, section: str) -> list[tuple[object, list[str]]]:
        return [(row["id"], row["why"]) for row in self.ask(command)[section]]


@pytest.fixture
def project(tmp_path: Path, call: Run, sample_store: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    checkout = Project(tmp_path, call, sample_store)
    monkeypatch.chdir(checkout.folder)
    return checkout


def remember(folder: Path, call: Run, *threads: dict[str, Any]) -> Path:
    """A new memory of these threads, closed issues without words unless they say otherwise."""
    lines = [
        {"title": f"Thread {key}", "body": "", "author": "octocat", "state": "closed", **thread, "id": key}
        | {"created_at": f"2026-01-{key:02}T09:00:00Z"}
        for key, thread in enumerate(threads, 1)
    ]
    file = folder / "threads.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert call("import", file, "--store", folder / "threads").code == 0
    return folder / "threads"


def decision(day: int, text: str) -> dict[str, Any]:
    at = f"2026-02-{day:02}T09:00:00Z"
    return {"author": "hubot", "association": "OWNER", "created_at": at, "body": f"We decided to {text}."}


# -- a clean trunk -------------------------------------------------------------------------------------------------


def test_after_a_pull_a_clean_trunk_shows_what_its_last_commits_were_about(project: Project) -> None:
    project.commit("Keep sessions in PostgreSQL (#14)", "linkbarn/store/session.py")
    project.commit("Read the cookie of the base path first\n\nFixes #48", "linkbarn/auth/cookie.py")
    project.push()
    hits = project.reasons("ss", "hits")
    assert [key for key, _ in hits][:2] == [48, 50]
    assert hits[0][1][:2] == ["a commit names #48", "touches linkbarn/auth/cookie.py"]
    assert 14 in dict(hits)
    assert project.reasons("what", "related") == hits[:3]
    assert [row["id"] for row in project.ask("what")["decisions"]] == [48, 14]


def test_the_newest_commit_comes_first_on_a_clean_trunk(project: Project) -> None:
    for first, second in ((30, 51), (51, 30)):
        project.commit(f"Do it (#{first})")
        project.commit(f"Do it (#{second})")
        assert [key for key, _ in project.reasons("ss", "hits")][:2] == [second, first]


def test_words_of_a_commit_on_a_clean_trunk_find_a_thread_that_nobody_named(project: Project) -> None:
    project.commit("Walk nested lists while importing bookmarks")
    (key, why), *_ = project.reasons("ss", "hits")
    assert key == 20
    assert why[0].startswith("words in common: ")


def test_upkeep_on_a_clean_trunk_brings_up_nothing(project: Project) -> None:
    for message in (
        *("Bump version to 2.4.0 (#48)", "chore(deps): bump requests from 2.31.0 to 2.32.0 (#50)"),
        *("Update CHANGELOG.md (#51)", "Fix typo (#14)", "[pre-commit.ci] pre-commit autoupdate"),
    ):
        project.commit(message, "pyproject.toml", "linkbarn/auth/cookie.py")
    assert project.ask("ss")["hits"] == []
    answer = project.ask("what")
    assert [answer[section] for section in ("related", "decisions", "pulls")] == [[], [], []]


def test_only_five_commits_count_on_a_clean_trunk(project: Project) -> None:
    project.commit("Expire the old one (#48)")
    for number in range(4):
        assert [key for key, _ in project.reasons("ss", "hits")] == [48], number
        project.commit("Bump version")
    assert [key for key, _ in project.reasons("ss", "hits")] == [48]
    project.commit("Bump version")
    assert project.ask("ss")["hits"] == []


def test_a_changed_file_is_the_work_on_a_trunk_whose_commits_are_pushed(project: Project) -> None:
    project.commit("Expire the old one (#48)", "linkbarn/auth/cookie.py")
    project.push()
    project.write("linkbarn/store/session.py")
    assert {key for key, _ in project.reasons("ss", "hits")} == {14, 17}


def test_unpushed_commits_count_beside_a_changed_file(project: Project) -> None:
    project.commit("Expire the old one (#48)")
    project.write("linkbarn/store/session.py")
    assert {key for key, _ in project.reasons("ss", "hits")} == {14, 17, 48}


def test_on_a_branch_only_its_own_commits_count(project: Project) -> None:
    project.commit("Expire the old one (#48)", "linkbarn/auth/cookie.py")
    project.push()
    git(project.folder, "switch", "--quiet", "--create", "work")
    assert project.ask("ss")["hits"] == []
    project.commit("Serve feeds (#51)")
    assert [key for key, _ in project.reasons("ss", "hits")] == [51]


def test_a_detached_head_has_no_work_of_its_own(project: Project) -> None:
    project.commit("Expire the old one (#48)", "linkbarn/auth/cookie.py")
    git(project.folder, "switch", "--quiet", "--detach")
    assert project.ask("ss")["hits"] == []


# -- open tasks ----------------------------------------------------------------------------------------------------


def test_what_shows_open_tasks_of_the_project_only_if_none_is_near(project: Project) -> None:
    tasks = project.reasons("what", "tasks")
    assert len(tasks) == 3
    assert {tuple(why) for _, why in tasks} == {("open in this project; none is near this work",)}
    project.commit("Serve feeds (#51)")
    assert (51, ["a commit names #51"]) in project.reasons("what", "tasks")
    assert all("none is near" not in why[0] for _, why in project.reasons("what", "tasks"))


def test_open_tasks_of_the_project_do_not_count_for_the_exit_code(
    project: Project, call: Run, sample_store: Path
) -> None:
    result = call("what", "--store", sample_store, "--exit-code")
    assert result.code == 1
    assert "\topen in this project; none is near this work" in result.out


# -- decisions about files -----------------------------------------------------------------------------------------


def test_a_file_that_many_threads_name_keeps_its_newest_and_most_specific_decisions(
    project: Project, tmp_path: Path, call: Run
) -> None:
    body = "It happens in `linkbarn/app.py`."
    threads = [{"body": body, "comments": [decision(day, f"keep it as it is for {day} days")]} for day in range(1, 11)]
    threads[3]["comments"] = [decision(4, "split app.py by route")]
    project.store = remember(tmp_path, call, *threads)
    project.write("linkbarn/app.py")
    git(project.folder, "add", "--all")
    decisions = project.ask("what")["decisions"]
    assert [row["id"] for row in decisions] == [4, 10, 9]
    assert decisions[0]["decisions"][0]["text"] == "We decided to split app.py by route."
    assert project.ask("what")["related"] == []
    assert [row["id"] for row in project.ask("related", "linkbarn/app.py")["decisions"]] == [
        4,
        *range(10, 4, -1),
        3,
        2,
        1,
    ]


# -- folders -------------------------------------------------------------------------------------------------------


@pytest.fixture
def files_project(project: Project, tmp_path: Path, call: Run) -> Project:
    """The project with threads about files of two folders, and of folders elsewhere."""
    bodies = (
        "`linkbarn/auth/cookie.py`",
        "`linkbarn/auth/cookie.py` and `linkbarn/auth/token.py`",
        "`/app/linkbarn/auth/token.py`, `auth/ldap/bind.py` and `linkbarn/web/urls.py`",
        "`tests/linkbarn/auth/cookie.py`",
        "`/etc/linkbarn/settings.toml`",
        "`linkbarn/web/urls.py`",
    )
    project.store = remember(tmp_path, call, *({"body": f"It is in {body}."} for body in bodies))
    project.commit("Begin", *(f"linkbarn/{file}" for file in ("auth/cookie.py", "auth/ldap/bind.py", "web/urls.py")))
    (tmp_path / "elsewhere/auth").mkdir(parents=True)
    return project


def related(project: Project, *files: str) -> list[tuple[object, list[str]]]:
    return [(row["id"], row["why"]) for row in project.ask("related", *files)["threads"]]


AUTH_THREADS = [
    (3, ["touches linkbarn/auth/ldap/bind.py, linkbarn/auth/token.py"]),
    (2, ["touches linkbarn/auth/cookie.py, linkbarn/auth/token.py"]),
    (1, ["touches linkbarn/auth/cookie.py"]),
]


@pytest.mark.parametrize(
    ("start", "folder"),
    [
        *((".", "linkbarn/auth/"), (".", "linkbarn/auth"), (".", "./linkbarn//auth/."), (".", "linkbarn/web/../auth")),
        *(("linkbarn", "auth"), ("linkbarn/auth", "."), ("linkbarn/auth", "./"), ("linkbarn/auth/ldap", "..")),
    ],
)
def test_a_folder_of_the_checkout_leads_to_the_threads_that_name_its_files(
    files_project: Project, start: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files_project.folder / start)
    assert related(files_project, folder) == AUTH_THREADS


def test_an_absolute_path_to_a_folder_of_the_checkout_is_that_folder(files_project: Project) -> None:
    assert related(files_project, str(files_project.folder / "linkbarn/auth")) == AUTH_THREADS


@pytest.mark.parametrize(("start", "folder"), [(".", "."), (".", "./"), ("linkbarn", ".."), ("linkbarn", "../")])
def test_the_top_of_the_checkout_has_all_relative_paths(
    files_project: Project, start: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files_project.folder / start)
    assert [key for key, _ in related(files_project, folder)] == [3, 2, 6, 4, 1]


@pytest.mark.parametrize(("folder", "expected"), [("..", []), ("../elsewhere/auth", []), ("/", []), ("/etc/", [5])])
def test_a_folder_outside_the_checkout_has_only_its_own_files(
    files_project: Project, folder: str, expected: list[int]
) -> None:
    assert [key for key, _ in related(files_project, folder)] == expected


def test_a_folder_that_is_not_in_the_checkout_is_read_as_threads_write_it(
    files_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [key for key, _ in related(files_project, "auth/ldap")] == [3]
    assert [key for key, _ in related(files_project, "/app/linkbarn/")] == [3]
    monkeypatch.chdir(tmp_path)
    assert [key for key, _ in related(files_project, "linkbarn/auth/")] == [3, 2, 4, 1]
    assert related(files_project, "") == []


def test_folders_and_files_are_asked_for_together_and_each_file_counts_once(files_project: Project) -> None:
    threads = related(files_project, "linkbarn/auth", "linkbarn/auth/cookie.py", "linkbarn/web", "linkbarn/web")
    assert threads[0] == (
        3,
        ["touches linkbarn/auth/ldap/bind.py, linkbarn/auth/token.py, linkbarn/web/urls.py"],
    )
    assert (1, ["touches linkbarn/auth/cookie.py"]) in threads


def test_a_folder_has_decisions_and_a_reason_names_three_files(project: Project, tmp_path: Path, call: Run) -> None:
    files = ", ".join(f"`linkbarn/auth/{name}.py`" for name in "abcde")
    project.store = remember(tmp_path, call, {"body": files, "comments": [decision(3, "keep them")]})
    project.write("linkbarn/auth/a.py")
    answer = project.ask("related", "linkbarn/auth")
    reason = "touches linkbarn/auth/a.py, linkbarn/auth/b.py, linkbarn/auth/c.py and 2 more"
    assert [row["why"] for row in answer["threads"]] == [[reason]]
    assert [row["why"] for row in answer["decisions"]] == [[f"{reason}; decided on 2026-02-03"]]
