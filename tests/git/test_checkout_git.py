"""No command runs or fetches what a stranger's checkout names, and every command goes by the same remote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.git.checkout import MOST_BYTES, CheckoutGit, NoAnswer, find_top, tracked_files
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from tests.cli.console import Run
from tests.git.test_checkout import commit, git

PROGRAMS = (
    *("core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.editor", "core.pager", "pager.log"),
    *("core.alternateRefsCommand", "credential.helper", "diff.external", "diff.trap.textconv", "diff.trap.command"),
    *("filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "gpg.program", "uploadpack.packObjectsHook"),
    *("alias.ls-files", "alias.status", "sequence.editor", "hook.trap.command", "remote.far.receivepack"),
)
HOOKS = ("post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc", "post-checkout")
LINES = (
    {"type": "user", "sessionId": "s9", "timestamp": "2026-11-22T10:00:00Z", "message": {"content": "Go"}},
    {"type": "assistant", "sessionId": "s9", "timestamp": "2026-11-22T10:01:00Z", "message": {"content": "Gone."}},
)


class Hostile(NamedTuple):
    """A checkout at ``top``, and the file that is there once anything that it names was run."""

    top: Path
    mark: Path

    def is_sprung(self) -> bool:
        there = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return there


@pytest.fixture
def hostile(trapped: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    """A checkout with a sparse index that lacks the tree ``out``, and a promisor remote that has its own program."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "home").mkdir()
    trapped.mark.unlink(missing_ok=True)
    return Hostile(Path(shutil.copytree(trapped.top, tmp_path / "checkout", symlinks=True)), trapped.mark)


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    """The checkout that each test has a copy of."""
    folder = tmp_path_factory.mktemp("trapped")
    top, mark, trap = folder / "checkout", folder / "mark", folder / "trap"
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{mark}'\nexit 1\n")
    trap.chmod(0o755)
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    (top / ".gitattributes").write_text("* filter=trap diff=trap\n")
    commit(top, "Begin", "in/a.py", "out/deep/b.py")
    git(top, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(top, "sparse-checkout", "set", "in")
    tree = git(top, "rev-parse", "HEAD:out")
    (top / f".git/objects/{tree[:2]}/{tree[2:]}").unlink()
    transcribe(top)
    settings = {"extensions.partialClone": "far", "remote.far.promisor": "true", "remote.far.url": "/nowhere.git"}
    settings |= {"remote.origin.url": "http://127.0.0.1:9/octo-org/hello.git", "remote.far.uploadpack": f"{trap} far;:"}
    settings |= dict.fromkeys(PROGRAMS, str(trap)) | {"log.showSignature": "true", "filter.trap.required": "true"}
    settings |= {"core.repositoryFormatVersion": "1", "hook.trap.event": "post-index-change"}
    for key, value in settings.items():
        git(top, "config", key, value)
    for hook in HOOKS:
        (top / ".git/hooks" / hook).write_text(trap.read_text())
        (top / ".git/hooks" / hook).chmod(0o755)
    os.utime(top / "in/a.py", (1, 1))
    return Hostile(top, mark)


def transcribe(top: Path) -> None:
    """A session on issue 48, in the folder that the index has as a tree."""
    (top / ".github").mkdir()
    (top / ".github/precedent.yml").write_text("sources: {sessions: [out]}\n")
    (top / "out/issues").mkdir(parents=True)
    (top / "out/s9.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    (top / "out/issues/48.json").write_text(json.dumps({"issueNumber": 48, "sessionPath": "out/s9.jsonl"}))


@pytest.fixture(scope="module")
def store(sample_store: Path) -> Path:
    return sample_store


def run_by_hand(top: Path, *words: str) -> None:
    subprocess.run(("git", *words), cwd=top, capture_output=True, check=False)


def test_the_traps_of_the_checkout_would_spring(hostile: Hostile) -> None:
    for words in (("ls-files", "--", "out/s9.jsonl"), ("status",), ("log", "--name-only"), ("fetch", "far")):
        run_by_hand(hostile.top, *words)
        assert hostile.is_sprung(), words


@pytest.mark.parametrize(
    "command",
    [
        "context --issue 48 --as-of 2026-11-22T10:05Z",
        "context --participant octocat",
        "context --branch",
        "search login loop",
        "search login --kind session",
        "smart-search",
        "smart-search login",
        "what",
        "related in/a.py",
        "show 48",
        "show s9",
        "answer 48",
        "outcomes --ids 48",
        "doctor",
    ],
)
def test_no_command_runs_what_the_checkout_names(
    hostile: Hostile, store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(hostile.top / "in")
    done = call(*command.split(), "--store", store)
    assert "Traceback" not in done.err
    assert not hostile.is_sprung()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *("search login", "what", "smart-search login", "related in/a.py", "show 48", "context --issue 48"),
        *("doctor --offline", "init", "init --write --action octo-org/precedent@v1", "skill install"),
        *("skill install --dry-run", "try octo-org/hello --offline"),
    ],
)
def test_no_command_runs_it_that_looks_for_the_remote(
    hostile: Hostile, call: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(hostile.top)
    done = call(*command.split())
    assert "Traceback" not in done.err
    assert not hostile.is_sprung()


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("issue_context", {"number": 48}),
        ("get_conversation", {"id": 48}),
        ("get_conversation", {"id": "s9"}),
        ("search_memories", {"query": "login"}),
        ("search_memories", {"query": "login", "kind": "session"}),
        ("memory_smart_search", {}),
        ("memory_what", {}),
    ],
)
def test_no_tool_runs_it(hostile: Hostile, store: Path, tool: str, given: dict[str, object]) -> None:
    answer(ToolContext(MemoryOptions(hostile.top, store=store)), tool, given)
    assert not hostile.is_sprung()


@pytest.mark.parametrize("name", [".", "../checkout", "evil.git"])
def test_a_remote_inside_the_checkout_is_fetched_from_without_running_its_programs(
    hostile: Hostile, call: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (hostile.top / "evil.git").symlink_to(hostile.top / ".git")
    refs = hostile.top / ".git/refs/heads"
    (refs / "precedent").write_bytes((refs / "main").read_bytes())
    git(hostile.top, "config", "remote.origin.url", name)
    monkeypatch.chdir(hostile.top)
    hostile.is_sprung()
    call("search", "login", "--refresh")
    assert not hostile.is_sprung()


def test_settings_that_are_too_long_to_be_read_hide_no_filter(hostile: Hostile) -> None:
    with (hostile.top / ".git/config").open("a", encoding="ascii") as config:
        config.write("".join(f'[remote "r{n}"]\n\turl = {"x" * 1_000}\n' for n in range(MOST_BYTES // 1_000 + 1)))
        config.write(f'[filter "late"]\n\tclean = touch {hostile.mark}; cat\n')
    (hostile.top / ".git/info/attributes").write_text("* filter=late\n")
    with pytest.raises(NoAnswer, match="too long"):
        CheckoutGit(hostile.top).run("status")
    assert not hostile.is_sprung()


def test_a_repository_inside_the_checkout_is_none(hostile: Hostile) -> None:
    inner = hostile.top / "in/inner"
    git(hostile.top, "init", "--quiet", "--bare", str(inner))
    git(inner, "config", "core.bare", "false")
    git(inner, "config", "core.worktree", str(hostile.top))
    git(inner, "config", "core.fsmonitor", str(hostile.mark.parent / "trap"))
    hostile.is_sprung()
    assert find_top(inner) is None
    assert find_top(inner / "refs") is None
    answered = CheckoutGit(inner).run("status")
    assert (answered.returncode, hostile.is_sprung()) == (128, False)


def test_git_works_in_the_checkout_itself_whatever_folder_its_settings_name(tmp_path: Path) -> None:
    top, other = tmp_path / "checkout", tmp_path / "other"
    for folder in (top, other):
        folder.mkdir()
        (folder / f"{folder.name}.py").touch()
    git(top, "init", "--quiet")
    git(top, "config", "core.worktree", str(other))
    assert CheckoutGit(top).line("rev-parse", "--show-toplevel") == str(top)
    assert CheckoutGit(top).run("status", "--porcelain", "-z").stdout == b"?? checkout.py\0"


def test_a_repository_above_the_checkout_is_not_taken_for_a_broken_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "remote", "add", "origin", "https://github.com/octocat/above.git")
    (tmp_path / "below/.git").mkdir(parents=True)
    git_below = CheckoutGit(tmp_path / "below")
    assert (git_below.remotes, "not a git repository" in git_below.refusal()) == ({}, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_persons_own_settings_say_which_folders_of_others_are_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    top = tmp_path / "checkout"
    top.mkdir()
    git(top, "init", "--quiet")
    git(top, "remote", "add", "origin", "https://github.com/octocat/hello.git")
    for path in (top, top / ".git"):
        os.chown(path, 12_345, 12_345)
    assert (CheckoutGit(top).remotes, "safe.directory" in CheckoutGit(top).refusal()) == ({}, True)
    (tmp_path / ".gitconfig").write_text(f"[safe]\n\tdirectory = {top}\n")
    assert (list(CheckoutGit(top).remotes), CheckoutGit(top).refusal()) == (["origin"], "")


@pytest.mark.parametrize("pipe", ["config", "HEAD", "index", "info/exclude"])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path, pipe: str) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".git" / pipe).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".git" / pipe)
    began = time.monotonic()
    try:
        CheckoutGit(tmp_path, 0.3).run("status")
    except NoAnswer as error:
        assert str(error) == "timed out after 0.3 s"  # noqa: PT017 - some pipes git itself does not open
    assert time.monotonic() - began < 3


def test_a_program_that_prints_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text('#!/bin/sh\ncase "$*" in *--get-regexp*) exit 1;; esac\nyes >&2 & exec yes\n')
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    printed = CheckoutGit(tmp_path, 3).run("status")
    assert (len(printed.stdout), printed.is_cut, len(printed.stderr) < MOST_BYTES) == (MOST_BYTES, True, True)


def test_a_name_is_no_pattern(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "Begin", "a.py", "[b].py")
    names = {name: str(tmp_path / name) for name in ("a.py", "?.py", "[b].py", "*", ":(top)a.py")}
    assert tracked_files(tmp_path, names.values()) == {names["a.py"], names["[b].py"]}
