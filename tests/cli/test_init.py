"""`precedent init` shows what it would write and why, writes that and nothing else, and what it writes works."""

from __future__ import annotations

import itertools
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.cli.commands import init as written
from bot.cli.commands.init import WORKFLOW, WorkflowChoice, workflow_text
from bot.comment.clean_text import clean
from bot.settings.yaml_file import CONFIG_PATH, load_settings
from tests.acceptance.stage import BOT, REPOSITORY, Stage, summary
from tests.cli.clinic import Clinic
from tests.cli.console import Run
from tools.address import UNKNOWN, address

COMMIT = "1f0c2d9e8b7a6f5e4d3c2b1a09f8e7d6c5b4a392"
PINNED = f"octo-org/precedent@{COMMIT}"
TAGGED = "octo-org/precedent@v1"
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
REVERSED = "\u202e"
IS_UNKNOWN = address() == UNKNOWN
NEXT = f"Next: run the same command with --write{' --action OWNER/precedent@COMMIT' if IS_UNKNOWN else ''}"


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.com")
    done = subprocess.run(("git", *identity, *words), cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An empty checkout of a repository on github.com, with a password in the address of its remote."""
    top = tmp_path / "checkout"
    git(tmp_path, "init", "-q", "-b", "main", str(top))
    git(top, "remote", "add", "origin", "https://octocat:hunter2secret@github.com/octo-org/hello-world.git")
    return top


def on_main(top: Path, name: str = "main") -> None:
    git(top, "symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{name}")


def held(top: Path) -> dict[str, bytes]:
    """Everything in the checkout but git's own folder."""
    return {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in top.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(top).parts
    }


def parsed(text: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(text)
    return found


def put(top: Path, path: str, text: str) -> Path:
    file = top / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


# -- a look first --------------------------------------------------------------------------------------------------


def test_without_write_it_shows_everything_and_writes_nothing(checkout: Path, call: Run) -> None:
    on_main(checkout)
    before = git(checkout, "status", "--porcelain", "--ignored")
    done = call("init", checkout)
    assert (done.code, done.err) == (0, "")
    assert held(checkout) == {}
    assert git(checkout, "status", "--porcelain", "--ignored") == before
    parts = [
        f"would write {path}:\n\n{text}\n"
        for path, text in ((WORKFLOW, workflow_text()), (CONFIG_PATH, written.settings_text()))
    ]
    assert done.out == "".join(parts) + f"{NEXT}\n"
    assert "hunter2secret" not in done.out


def test_the_json_has_all_of_it(checkout: Path, call: Run) -> None:
    told = call("init", checkout, "--json").data
    assert [(file["path"], file["state"]) for file in told["files"]] == [(WORKFLOW, "new"), (CONFIG_PATH, "new")]
    assert told["files"][0]["content"] == workflow_text()
    assert (told["written"], told["refused"], told["memory_branch"], told["mode"]) == (
        False,
        "",
        "precedent",
        "summary",
    )
    assert (told["repository"], told["server"], told["default_branch"]) == (REPOSITORY, "https://github.com", "main")
    assert told["next"] == [NEXT]
    done = call("init", checkout, "--json", "--write", "--action", PINNED).data
    assert (done["written"], done["action"]) == (True, PINNED)
    assert {file["path"]: file["content"].encode() for file in done["files"]} == held(checkout)


def test_a_placeholder_is_never_written(checkout: Path, call: Run) -> None:
    unknown = ((), ("--force",)) if IS_UNKNOWN else ()
    for options in (("--action", "OWNER/precedent@v1"), *unknown):
        done = call("init", checkout, "--write", *options)
        assert done.code == 2
        assert "--action OWNER/precedent@COMMIT" in done.err
        assert held(checkout) == {}


def test_a_wrong_option_is_a_mistake_and_writes_nothing(checkout: Path, call: Run) -> None:
    for options in (("--action", "x/y@v1"), ("--mode", "off"), ("--branch", "a..b"), ("--branch", "x: y")):
        assert call("init", checkout, "--write", "--action", PINNED, *options).code == 2
    assert "main is the default branch" in call("init", checkout, "--write", "--action", PINNED, "--branch", "main").err
    assert held(checkout) == {}


# -- writing -------------------------------------------------------------------------------------------------------


def test_what_was_shown_is_written_and_a_second_run_finds_it_so(checkout: Path, call: Run) -> None:
    below = checkout / "src"
    below.mkdir()
    assert call("init", below, "--write", "--action", PINNED).code == 0
    first = held(checkout)
    assert first == {
        WORKFLOW: workflow_text(WorkflowChoice(PINNED)).encode(),
        CONFIG_PATH: written.settings_text().encode(),
    }
    modes = {stat.S_IMODE((checkout / path).stat().st_mode) for path in first}
    assert modes == {0o644}
    stamps = [(checkout / path).stat().st_mtime_ns for path in first]
    for options in ((), ("--force",), ("--action", PINNED), ("--mode", "summary")):
        done = call("init", checkout, "--write", *options)
        assert (done.code, done.err) == (0, "")
        assert done.out == (
            f"{WORKFLOW} is already up to date\n{CONFIG_PATH} is already up to date\n"
            f"Next: bring both files to main of {REPOSITORY}, "
            "start the workflow by hand with rebuild, run precedent doctor\n"
        )
    assert [(checkout / path).stat().st_mtime_ns for path in first] == stamps
    assert held(checkout) == first


def test_who_took_the_line_of_the_mode_out_is_not_undone(checkout: Path, call: Run) -> None:
    call("init", checkout, "--write", "--action", PINNED)
    file = checkout / WORKFLOW
    assert "remove this line to let it comment\n" in file.read_text("utf-8")
    file.write_text(workflow_text(WorkflowChoice(PINNED, "comment")), encoding="utf-8")
    assert call("init", checkout, "--write").out.startswith(f"{WORKFLOW} is already up to date")
    assert call("init", checkout, "--json").data["mode"] == "comment"


@pytest.mark.parametrize("options", [("--mode", "comment"), ("--action", TAGGED)])
def test_what_differs_is_replaced_by_force_alone(checkout: Path, call: Run, options: tuple[str, ...]) -> None:
    call("init", checkout, "--write", "--action", PINNED)
    before = held(checkout)
    shown, kept = call("init", checkout, *options), call("init", checkout, "--write", *options)
    assert (shown.code, kept.code) == (2, 2)
    assert f"{WORKFLOW} exists and differs" in shown.out
    assert "replace it with --force" in kept.err
    assert held(checkout) == before
    assert call("init", checkout, "--write", "--force", *options).out.startswith(f"replaced {WORKFLOW}\n")
    assert held(checkout)[WORKFLOW] != before[WORKFLOW]
    assert held(checkout)[CONFIG_PATH] == before[CONFIG_PATH]


def test_a_conflict_keeps_the_other_file_from_being_written_too(checkout: Path, call: Run) -> None:
    put(checkout, WORKFLOW, "name: Something else\n")
    assert call("init", checkout, "--write", "--action", PINNED).code == 2
    assert held(checkout) == {WORKFLOW: b"name: Something else\n"}


def test_settings_that_are_there_stay_and_count(checkout: Path, call: Run) -> None:
    own = "mode: off\nbranch: memories\n"
    put(checkout, CONFIG_PATH, own)
    assert call("init", checkout, "--write", "--force", "--action", PINNED, "--mode", "comment").code == 0
    assert held(checkout)[CONFIG_PATH] == own.encode()
    shown = call("init", checkout, "--json").data
    assert (shown["memory_branch"], shown["mode"], shown["files"][1]["state"]) == ("memories", "off", "kept")
    assert "names the branch memories" in call("init", checkout, "--branch", "other").err
    put(checkout, CONFIG_PATH, "mood: off\n")
    assert call("init", checkout, "--write").err.startswith(f"precedent init: {CONFIG_PATH}:1: unknown setting")


def test_another_workflow_that_uses_it_is_not_joined_by_a_second(checkout: Path, call: Run) -> None:
    put(checkout, ".github/workflows/bot.yaml", workflow_text(WorkflowChoice(PINNED)))
    done = call("init", checkout, "--write", "--action", PINNED)
    assert done.code == 2
    assert ".github/workflows/bot.yaml uses Precedent already" in done.err
    assert set(held(checkout)) == {".github/workflows/bot.yaml"}
    assert call("init", checkout, "--write", "--action", PINNED, "--force").code == 0


def test_one_that_only_looks_is_no_second(checkout: Path, call: Run) -> None:
    looking = workflow_text(WorkflowChoice(PINNED)).replace("${{ inputs.dry-run }}", "true")
    put(checkout, ".github/workflows/triage.yml", looking)
    assert call("init", checkout, "--write", "--action", PINNED).code == 0


def test_another_branch_for_memory_is_in_the_settings_alone(checkout: Path, call: Run) -> None:
    assert call("init", checkout, "--write", "--action", PINNED, "--branch", "bot/memory").code == 0
    assert load_settings((checkout / CONFIG_PATH).read_bytes()).branch == "bot/memory"
    assert "bot/memory" not in (checkout / WORKFLOW).read_text("utf-8")
    assert call("init", checkout, "--json").data["memory_branch"] == "bot/memory"


# -- where it is ---------------------------------------------------------------------------------------------------


def test_the_default_branch_is_the_one_that_git_noted(checkout: Path, call: Run) -> None:
    on_main(checkout, "trunk")
    done = call("init", checkout)
    assert "    branches: [trunk]" in done.out


def test_a_company_server_gets_what_it_knows(checkout: Path, call: Run) -> None:
    git(checkout, "remote", "set-url", "origin", "git@git.example.com:octo-org/hello-world.git")
    done = call("init", checkout)
    assert "    runs-on: [self-hosted, linux, x64] # labels of your runners" in done.out
    git(checkout, "remote", "set-url", "origin", "https://octo.ghe.com/octo-org/hello-world")
    assert "    runs-on: ubuntu-latest" in call("init", checkout).out


def test_what_a_hook_says_of_another_repository_is_not_heeded(
    checkout: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    told = call("init", checkout, "--json").data
    assert (told["root"], told["repository"]) == (str(checkout), REPOSITORY)


def test_a_worktree_is_a_checkout_of_its_own(checkout: Path, tmp_path: Path, call: Run) -> None:
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(checkout, "worktree", "add", "-q", str(tmp_path / "other"))
    assert call("init", tmp_path / "other", "--write", "--action", PINNED).code == 0
    assert WORKFLOW in held(tmp_path / "other")
    assert held(checkout) == {}


def test_where_there_is_no_checkout_it_says_what_to_do(checkout: Path, tmp_path: Path, call: Run) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    plain = tmp_path / "plain"
    plain.mkdir()
    for folder, said in (
        (tmp_path / "bare.git", "is a bare repository"),
        (plain, "is not in a git checkout"),
        (checkout / ".git", "is not in a git checkout"),
        (tmp_path / "nothing", "is not a folder"),
    ):
        done = call("init", folder, "--write", "--action", PINNED)
        assert (done.code, said in done.err) == (2, True), done.err
        assert len(done.err.splitlines()) == 1


# -- hostile checkouts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [".github", ".github/workflows", WORKFLOW, CONFIG_PATH])
@pytest.mark.parametrize("to", ["outside", "inside", "nowhere"])
def test_nothing_is_written_through_a_link(checkout: Path, tmp_path: Path, call: Run, link: str, to: str) -> None:
    target = {"outside": tmp_path / "outside", "inside": checkout / "there", "nowhere": tmp_path / "nowhere"}[to]
    if to != "nowhere" and "." not in Path(link).name[1:]:
        target.mkdir()
    elif to != "nowhere":
        target.write_text("")
    (checkout / link).parent.mkdir(parents=True, exist_ok=True)
    (checkout / link).symlink_to(target)
    for options in ((), ("--write",), ("--write", "--force")):
        done = call("init", checkout, "--action", PINNED, *options)
        assert done.code == 2
        assert "is a symlink" in done.err
    assert (checkout / link).is_symlink()
    assert not target.exists() or target.is_file() or not list(target.iterdir())
    assert not target.is_file() or target.read_bytes() == b""


def test_what_is_no_file_is_left_alone(checkout: Path, call: Run) -> None:
    (checkout / ".github/workflows").mkdir(parents=True)
    os.mkfifo(checkout / WORKFLOW)
    assert "is not a regular file" in call("init", checkout, "--write", "--action", PINNED, "--force").err
    (checkout / WORKFLOW).unlink()
    (checkout / WORKFLOW).mkdir()
    assert "is not a regular file" in call("init", checkout, "--write", "--action", PINNED, "--force").err
    assert not (checkout / CONFIG_PATH).exists()


def test_nothing_of_a_stranger_reaches_the_terminal_as_it_is(checkout: Path, call: Run) -> None:
    url = f"https://octocat:hunter2secret@git.example.com/octo-org/hello{ESCAPE}{REVERSED}.git"
    git(checkout, "remote", "set-url", "origin", url)
    put(checkout, WORKFLOW, f"name: {ESCAPE}{REVERSED}\r\rx\n")
    put(checkout, f".github/workflows/a{ESCAPE}{REVERSED}.yml", workflow_text(WorkflowChoice(PINNED)))
    put(checkout, f"doc/{ESCAPE}.md", "A")
    for options in ((), ("--json",), ("--force",), ("--write",)):
        done = call("init", checkout, *options)
        assert done.code in (0, 2)
        told = done.out + done.err
        assert told
        assert clean(told) == told
        assert "hunter2secret" not in told


def test_a_branch_of_a_name_that_hides_something_stops_it(checkout: Path, call: Run) -> None:
    on_main(checkout, f"a{REVERSED}b")
    done = call("init", checkout, "--write", "--action", PINNED)
    assert (done.code, clean(done.err) == done.err) == (2, True)
    assert held(checkout) == {}


def test_a_large_file_in_the_way_is_neither_read_whole_nor_shown(checkout: Path, call: Run) -> None:
    put(checkout, WORKFLOW, "# x\n" * 100_000)
    done = call("init", checkout, "--action", PINNED)
    assert done.code == 2
    assert len(done.out) < 10_000


# -- from the first look to the first comment ----------------------------------------------------------------------


def push(top: Path) -> None:
    """Commit what is there, as the last lines of the command say, and push it."""
    git(top, "add", WORKFLOW, CONFIG_PATH)
    git(top, "commit", "-q", "-m", "Precedent remembers the issues")
    git(top, "push", "-q", "origin", "HEAD:main")


def act_as_written(stage: Stage, number: int) -> int:
    """Run the Action on a new issue as the pushed workflow says: its inputs, and a token with the job's rights."""
    (job,) = parsed(git(stage.bare, "show", f"main:{WORKFLOW}"))["jobs"].values()
    permissions = {"metadata": "read", **job["permissions"]}
    token = f"token-{len(stage.git.tokens)}"
    stage.github.add_token(token, BOT, permissions)
    stage.git.tokens[token] = permissions["contents"]
    inputs = {name: "" if "${{" in str(value) else str(value) for name, value in job["steps"][0]["with"].items()}
    stage.github.clock.advance(20)
    return stage.act("issues", "opened", number, inputs={**inputs, "token": token})


@pytest.mark.slow
def test_from_init_by_way_of_the_summary_to_the_first_comment(stage: Stage, tmp_path: Path, call: Run) -> None:
    top = tmp_path / "clone"
    git(tmp_path, "clone", "-q", stage.git.remote(REPOSITORY), str(top))
    assert call("init", top, "--write", "--action", PINNED).code == 0
    push(top)
    first = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    assert act_as_written(stage, first) == 0
    assert stage.comments(first) == []
    assert "Where should sessions live?" in summary(stage)
    assert call("init", top, "--write", "--mode", "comment", "--force").code == 0
    push(top)
    second = stage.github.open_issue("hubot", "Everybody is logged out again", "As in #1, still.")
    assert act_as_written(stage, second) == 0
    (comment,) = stage.comments(second)
    assert "Where should sessions live?" in comment
    assert stage.comments(first) == []
    assert "precedent" in git(stage.bare, "for-each-ref", "--format=%(refname:short)").split()


@pytest.mark.slow
def test_the_doctor_has_nothing_to_mend_in_what_was_pushed(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    checks = {"workflow", "events", "permissions", "concurrency", "inputs", "version", "settings"}
    try:
        for mode, branch in itertools.product(("summary", "comment"), ("precedent", "m/x")):
            clinic.put(
                {WORKFLOW: workflow_text(WorkflowChoice(PINNED, mode)), CONFIG_PATH: written.settings_text(branch)}
            )
            found = [each for each in clinic.examine() if each.check in checks]
            assert [(each.check, each.level) for each in found] == [("settings", "ok"), ("workflow", "ok")]
    finally:
        clinic.close()
