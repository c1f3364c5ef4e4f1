"""`precedent init` shows what it would write and why, writes that and nothing else, and what it writes works."""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.cli.commands import init as init_command
from bot.cli.commands.init import WORKFLOW_PATH, WorkflowChoice, workflow_text
from bot.comment.clean_text import visible_text
from bot.settings.yaml_file import CONFIG_PATH, load_settings
from tests.acceptance.stage import BOT, REPOSITORY, Stage, summary
from tests.cli.checkouts import git
from tests.cli.program_result import Run
from tools.address import UNKNOWN, address

COMMIT = "1f0c2d9e8b7a6f5e4d3c2b1a09f8e7d6c5b4a392"
PINNED = f"octo-org/precedent@{COMMIT}"
TAGGED = "octo-org/precedent@v1"
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
REVERSED = "\u202e"
IS_UNKNOWN = address() == UNKNOWN
NEXT = f"Next: run the same command with --write{' --action OWNER/precedent@COMMIT' if IS_UNKNOWN else ''}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An empty checkout of a repository on github.com, with a password in the address of its remote."""
    top = tmp_path / "checkout"
    git(tmp_path, "init", "-q", "-b", "main", str(top))
    git(top, "remote", "add", "origin", "https://octocat:hunter2secret@github.com/octo-org/hello-world.git")
    return top


def set_default_branch(top: Path, name: str = "main") -> None:
    git(top, "symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{name}")


def files_in(top: Path) -> dict[str, bytes]:
    """Everything in the checkout but git's own folder."""
    return {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in top.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(top).parts
    }


def parse_yaml(text: str) -> dict[Any, Any]:
    document: dict[Any, Any] = yaml.safe_load(text)
    return document


def write_file(top: Path, path: str, text: str) -> Path:
    file = top / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


# -- preview -------------------------------------------------------------------------------------------------------


def test_without_write_it_shows_everything_and_writes_nothing(checkout: Path, call: Run) -> None:
    set_default_branch(checkout)
    before = git(checkout, "status", "--porcelain", "--ignored")
    result = call("init", checkout)
    assert (result.code, result.err) == (0, "")
    assert files_in(checkout) == {}
    assert git(checkout, "status", "--porcelain", "--ignored") == before
    parts = [
        f"would write {path}:\n\n{text}\n"
        for path, text in ((WORKFLOW_PATH, workflow_text()), (CONFIG_PATH, init_command.settings_text()))
    ]
    assert result.out == "".join(parts) + f"{NEXT}\n"
    assert "hunter2secret" not in result.out


def test_the_json_has_everything_that_the_text_shows(checkout: Path, call: Run) -> None:
    preview = call("init", checkout, "--json").data
    assert [(file["path"], file["state"]) for file in preview["files"]] == [
        (WORKFLOW_PATH, "new"),
        (CONFIG_PATH, "new"),
    ]
    assert preview["files"][0]["content"] == workflow_text()
    assert (preview["written"], preview["refused"], preview["memory_branch"], preview["mode"]) == (
        False,
        "",
        "precedent",
        "summary",
    )
    assert (preview["repository"], preview["server"], preview["default_branch"]) == (
        REPOSITORY,
        "https://github.com",
        "main",
    )
    assert preview["next"] == [NEXT]
    data = call("init", checkout, "--json", "--write", "--action", PINNED).data
    assert (data["written"], data["action"]) == (True, PINNED)
    assert {file["path"]: file["content"].encode() for file in data["files"]} == files_in(checkout)


def test_a_placeholder_is_never_written(checkout: Path, call: Run) -> None:
    without_action = ((), ("--force",)) if IS_UNKNOWN else ()
    for options in (("--action", "OWNER/precedent@v1"), *without_action):
        result = call("init", checkout, "--write", *options)
        assert result.code == 2
        assert "--action OWNER/precedent@COMMIT" in result.err
        assert files_in(checkout) == {}


def test_an_invalid_option_exits_with_2_and_writes_nothing(checkout: Path, call: Run) -> None:
    for options in (("--action", "x/y"), ("--mode", "off"), ("--branch", "a..b"), ("--branch", "x: y")):
        assert call("init", checkout, "--write", "--action", PINNED, *options).code == 2
    assert "main is the default branch" in call("init", checkout, "--write", "--action", PINNED, "--branch", "main").err
    assert files_in(checkout) == {}


# -- writing -------------------------------------------------------------------------------------------------------


def test_it_writes_what_it_showed_and_a_second_run_has_nothing_to_do(checkout: Path, call: Run) -> None:
    subfolder = checkout / "src"
    subfolder.mkdir()
    assert call("init", subfolder, "--write", "--action", PINNED).code == 0
    files = files_in(checkout)
    assert files == {
        WORKFLOW_PATH: workflow_text(WorkflowChoice(PINNED)).encode(),
        CONFIG_PATH: init_command.settings_text().encode(),
    }
    modes = {stat.S_IMODE((checkout / path).stat().st_mode) for path in files}
    assert modes == {0o644}
    times = [(checkout / path).stat().st_mtime_ns for path in files]
    for options in ((), ("--force",), ("--action", PINNED), ("--mode", "summary")):
        result = call("init", checkout, "--write", *options)
        assert (result.code, result.err) == (0, "")
        assert result.out == (
            f"{WORKFLOW_PATH} is already up to date\n{CONFIG_PATH} is already up to date\n"
            f"Next: bring both files to main of {REPOSITORY}, "
            "start the workflow by hand with rebuild, run precedent doctor\n"
        )
    assert [(checkout / path).stat().st_mtime_ns for path in files] == times
    assert files_in(checkout) == files


def test_removing_the_line_of_the_mode_by_hand_is_not_undone(checkout: Path, call: Run) -> None:
    call("init", checkout, "--write", "--action", PINNED)
    file = checkout / WORKFLOW_PATH
    assert "remove this line to let it comment\n" in file.read_text("utf-8")
    file.write_text(workflow_text(WorkflowChoice(PINNED, "comment")), encoding="utf-8")
    assert call("init", checkout, "--write").out.startswith(f"{WORKFLOW_PATH} is already up to date")
    assert call("init", checkout, "--json").data["mode"] == "comment"


@pytest.mark.parametrize("options", [("--mode", "comment"), ("--action", TAGGED)])
def test_a_file_that_differs_is_replaced_only_with_force(checkout: Path, call: Run, options: tuple[str, ...]) -> None:
    call("init", checkout, "--write", "--action", PINNED)
    before = files_in(checkout)
    preview, refusal = call("init", checkout, *options), call("init", checkout, "--write", *options)
    assert (preview.code, refusal.code) == (2, 2)
    assert f"{WORKFLOW_PATH} exists and differs" in preview.out
    assert "replace it with --force" in refusal.err
    assert files_in(checkout) == before
    assert call("init", checkout, "--write", "--force", *options).out.startswith(f"replaced {WORKFLOW_PATH}\n")
    assert files_in(checkout)[WORKFLOW_PATH] != before[WORKFLOW_PATH]
    assert files_in(checkout)[CONFIG_PATH] == before[CONFIG_PATH]


def test_a_conflict_in_one_file_keeps_both_from_being_written(checkout: Path, call: Run) -> None:
    write_file(checkout, WORKFLOW_PATH, "name: Something else\n")
    assert call("init", checkout, "--write", "--action", PINNED).code == 2
    assert files_in(checkout) == {WORKFLOW_PATH: b"name: Something else\n"}


def test_existing_settings_are_kept_and_respected(checkout: Path, call: Run) -> None:
    settings = "mode: off\nbranch: memories\n"
    write_file(checkout, CONFIG_PATH, settings)
    assert call("init", checkout, "--write", "--force", "--action", PINNED, "--mode", "comment").code == 0
    assert files_in(checkout)[CONFIG_PATH] == settings.encode()
    data = call("init", checkout, "--json").data
    assert (data["memory_branch"], data["mode"], data["files"][1]["state"]) == ("memories", "off", "kept")
    assert "names the branch memories" in call("init", checkout, "--branch", "other").err
    write_file(checkout, CONFIG_PATH, "mood: off\n")
    assert call("init", checkout, "--write").err.startswith(f"precedent init: {CONFIG_PATH}:1: unknown setting")


def test_no_second_workflow_is_written_without_force(checkout: Path, call: Run) -> None:
    write_file(checkout, ".github/workflows/bot.yaml", workflow_text(WorkflowChoice(PINNED)))
    result = call("init", checkout, "--write", "--action", PINNED)
    assert result.code == 2
    assert ".github/workflows/bot.yaml uses Precedent already" in result.err
    assert set(files_in(checkout)) == {".github/workflows/bot.yaml"}
    assert call("init", checkout, "--write", "--action", PINNED, "--force").code == 0


def test_a_workflow_that_only_does_dry_runs_is_no_obstacle(checkout: Path, call: Run) -> None:
    dry_run = workflow_text(WorkflowChoice(PINNED)).replace("${{ inputs.dry-run }}", "true")
    write_file(checkout, ".github/workflows/triage.yml", dry_run)
    assert call("init", checkout, "--write", "--action", PINNED).code == 0


def test_another_memory_branch_is_written_to_the_settings_only(checkout: Path, call: Run) -> None:
    assert call("init", checkout, "--write", "--action", PINNED, "--branch", "bot/memory").code == 0
    assert load_settings((checkout / CONFIG_PATH).read_bytes()).branch == "bot/memory"
    assert "bot/memory" not in (checkout / WORKFLOW_PATH).read_text("utf-8")
    assert call("init", checkout, "--json").data["memory_branch"] == "bot/memory"


# -- repository and server -----------------------------------------------------------------------------------------


def test_the_default_branch_is_the_one_that_git_recorded(checkout: Path, call: Run) -> None:
    set_default_branch(checkout, "trunk")
    result = call("init", checkout)
    assert "    branches: [trunk]" in result.out


def test_only_a_self_hosted_server_gets_self_hosted_runners(checkout: Path, call: Run) -> None:
    git(checkout, "remote", "set-url", "origin", "git@git.example.com:octo-org/hello-world.git")
    result = call("init", checkout)
    assert "    runs-on: [self-hosted, linux, x64] # labels of your runners" in result.out
    git(checkout, "remote", "set-url", "origin", "https://octo.ghe.com/octo-org/hello-world")
    assert "    runs-on: ubuntu-latest" in call("init", checkout).out


def test_git_variables_that_name_another_repository_are_ignored(
    checkout: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    data = call("init", checkout, "--json").data
    assert (data["root"], data["repository"]) == (str(checkout), REPOSITORY)


def test_a_worktree_is_a_checkout_of_its_own(checkout: Path, tmp_path: Path, call: Run) -> None:
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(checkout, "worktree", "add", "-q", str(tmp_path / "other"))
    assert call("init", tmp_path / "other", "--write", "--action", PINNED).code == 0
    assert WORKFLOW_PATH in files_in(tmp_path / "other")
    assert files_in(checkout) == {}


def test_outside_a_checkout_one_line_says_what_is_wrong(checkout: Path, tmp_path: Path, call: Run) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    plain = tmp_path / "plain"
    plain.mkdir()
    for folder, message in (
        (tmp_path / "bare.git", "is a bare repository"),
        (plain, "is not in a git checkout"),
        (checkout / ".git", "is not in a git checkout"),
        (tmp_path / "nothing", "is not a folder"),
    ):
        result = call("init", folder, "--write", "--action", PINNED)
        assert (result.code, message in result.err) == (2, True), result.err
        assert len(result.err.splitlines()) == 1


# -- hostile checkouts ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_written_through_a_link(checkout: Path, tmp_path: Path, call: Run) -> None:
    links = (".github", ".github/workflows", WORKFLOW_PATH, CONFIG_PATH)
    for number, (name, folder) in enumerate(itertools.product(links, (tmp_path, checkout, None))):
        link, target = checkout / name, (folder or tmp_path) / f"target{number}"
        if folder and link.suffix:
            target.write_text("")
        elif folder:
            target.mkdir()
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        for options in ((), ("--write",), ("--write", "--force")):
            result = call("init", checkout, "--action", PINNED, *options)
            assert (result.code, "is a symlink" in result.err) == (2, True), (name, result.err)
        assert link.is_symlink()
        assert not target.exists() or target.is_file() or not list(target.iterdir())
        assert not target.is_file() or target.read_bytes() == b""
        link.unlink()


def test_what_is_not_a_regular_file_is_left_alone(checkout: Path, call: Run) -> None:
    (checkout / ".github/workflows").mkdir(parents=True)
    os.mkfifo(checkout / WORKFLOW_PATH)
    assert "is not a regular file" in call("init", checkout, "--write", "--action", PINNED, "--force").err
    (checkout / WORKFLOW_PATH).unlink()
    (checkout / WORKFLOW_PATH).mkdir()
    assert "is not a regular file" in call("init", checkout, "--write", "--action", PINNED, "--force").err
    assert not (checkout / CONFIG_PATH).exists()


def test_text_by_strangers_is_cleaned_before_it_reaches_the_terminal(checkout: Path, call: Run) -> None:
    url = f"https://octocat:hunter2secret@git.example.com/octo-org/hello{ESCAPE}{REVERSED}.git"
    git(checkout, "remote", "set-url", "origin", url)
    write_file(checkout, WORKFLOW_PATH, f"name: {ESCAPE}{REVERSED}\r\rx\n")
    write_file(checkout, f".github/workflows/a{ESCAPE}{REVERSED}.yml", workflow_text(WorkflowChoice(PINNED)))
    write_file(checkout, f"doc/{ESCAPE}.md", "A")
    for options in ((), ("--json",), ("--force",), ("--write",)):
        result = call("init", checkout, *options)
        assert result.code in (0, 2)
        output = result.out + result.err
        assert output
        assert visible_text(output) == output
        assert "hunter2secret" not in output


def test_a_branch_name_with_hidden_characters_is_refused(checkout: Path, call: Run) -> None:
    set_default_branch(checkout, f"a{REVERSED}b")
    result = call("init", checkout, "--write", "--action", PINNED)
    assert (result.code, visible_text(result.err) == result.err) == (2, True)
    assert files_in(checkout) == {}


def test_a_large_existing_file_is_not_shown_in_full(checkout: Path, call: Run) -> None:
    write_file(checkout, WORKFLOW_PATH, "# x\n" * 100_000)
    result = call("init", checkout, "--action", PINNED)
    assert result.code == 2
    assert len(result.out) < 10_000


# -- from the preview to the first comment -------------------------------------------------------------------------


def push(top: Path) -> None:
    """Commit the written files and push them, as the last lines of the command say."""
    git(top, "add", WORKFLOW_PATH, CONFIG_PATH)
    git(top, "commit", "-q", "-m", "Precedent remembers the issues")
    git(top, "push", "-q", "origin", "HEAD:main")


def run_pushed_workflow(stage: Stage, number: int) -> int:
    """Run the Action on a new issue as the pushed workflow says: its inputs, and a token with the job's permissions."""
    (job,) = parse_yaml(git(stage.bare, "show", f"main:{WORKFLOW_PATH}"))["jobs"].values()
    permissions = {"metadata": "read", **job["permissions"]}
    token = f"token-{len(stage.git.tokens)}"
    stage.github.add_token(token, BOT, permissions)
    stage.git.tokens[token] = permissions["contents"]
    inputs = {name: "" if "${{" in str(value) else str(value) for name, value in job["steps"][0]["with"].items()}
    stage.github.clock.advance(20)
    return stage.act("issues", "opened", number, inputs={**inputs, "token": token})


@pytest.mark.slow
def test_the_workflow_of_init_writes_a_summary_and_then_the_first_comment(
    stage: Stage, tmp_path: Path, call: Run
) -> None:
    top = tmp_path / "clone"
    git(tmp_path, "clone", "-q", stage.git.remote(REPOSITORY), str(top))
    assert call("init", top, "--write", "--action", PINNED).code == 0
    push(top)
    first = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    assert run_pushed_workflow(stage, first) == 0
    assert stage.comments(first) == []
    assert "Where should sessions live?" in summary(stage)
    assert call("init", top, "--write", "--mode", "comment", "--force").code == 0
    push(top)
    second = stage.github.open_issue("hubot", "Everybody is logged out again", "As in #1, still.")
    assert run_pushed_workflow(stage, second) == 0
    (comment,) = stage.comments(second)
    assert "Where should sessions live?" in comment
    assert stage.comments(first) == []
    assert "precedent" in git(stage.bare, "for-each-ref", "--format=%(refname:short)").split()
