"""No command runs programs or fetches objects that a foreign checkout names, and all commands use the same remote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.git.checkout import MAX_OUTPUT_BYTES, CheckoutGit, NoAnswer, find_top, read_worktree, tracked_files
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from tests.cli.program_result import Run
from tests.git.test_checkout import commit, git

PROGRAMS = (
    *("core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.editor", "core.pager", "pager.log"),
    *("core.alternateRefsCommand", "credential.helper", "diff.external", "diff.trap.textconv", "diff.trap.command"),
    *("filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "gpg.program", "uploadpack.packObjectsHook"),
    *("filter.With.Dots.clean", "pager.status"),
    *("alias.ls-files", "alias.status", "sequence.editor", "hook.trap.command", "remote.far.receivepack"),
)
HOOKS = ("post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc", "post-checkout")
LINES = (
    {"type": "user", "sessionId": "s9", "timestamp": "2026-11-22T10:00:00Z", "message": {"content": "Go"}},
    {"type": "assistant", "sessionId": "s9", "timestamp": "2026-11-22T10:01:00Z", "message": {"content": "Gone."}},
)


class HostileCheckout(NamedTuple):
    """A checkout at ``top``; the file ``mark`` exists once any program that the checkout names has run."""

    top: Path
    mark: Path

    def check_sprung(self) -> bool:
        has_mark = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return has_mark


@pytest.fixture
def hostile(trapped_checkout: HostileCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostileCheckout:
    """A checkout with a sparse index that lacks the tree ``out``, and a promisor remote with its own program."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "home").mkdir()
    trapped_checkout.mark.unlink(missing_ok=True)
    return HostileCheckout(
        Path(shutil.copytree(trapped_checkout.top, tmp_path / "checkout", symlinks=True)), trapped_checkout.mark
    )


@pytest.fixture(scope="module")
def trapped_checkout(tmp_path_factory: pytest.TempPathFactory) -> HostileCheckout:
    """The checkout that each test copies."""
    folder = tmp_path_factory.mktemp("trapped")
    top, mark, trap = folder / "checkout", folder / "mark", folder / "trap"
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{mark}'\nexit 1\n")
    trap.chmod(0o755)
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    (top / ".gitattributes").write_text("* filter=trap diff=trap\n*.c filter=With.Dots\n")
    commit(top, "Begin", "in/a.py", "in/c.c", "out/deep/b.py")
    (top / ".git/info/attributes").write_text("in/a.py filter=trap diff=trap\n")
    sign_commit(top)
    git(top, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(top, "sparse-checkout", "set", "in")
    tree = git(top, "rev-parse", "HEAD:out")
    (folder / "missing" / tree[:2]).mkdir(parents=True)
    (top / f".git/objects/{tree[:2]}/{tree[2:]}").rename(folder / "missing" / tree[:2] / tree[2:])
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
    for name in ("in/a.py", "in/c.c"):
        os.utime(top / name, (1, 1))
    return HostileCheckout(top, mark)


def sign_commit(top: Path) -> None:
    """Give the newest commit a signature, which git would check with the program of the settings."""
    signature = "-----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
    text = git(top, "cat-file", "commit", "HEAD").replace("\n\n", f"\ngpgsig {signature}\n\n", 1)
    (top.parent / "signed").write_text(f"{text}\n")
    git(top, "reset", "--soft", git(top, "hash-object", "-t", "commit", "-w", "../signed"))


def transcribe(top: Path) -> None:
    """Write a session about issue 48 into the folder that the index has as a tree."""
    (top / ".github").mkdir()
    (top / ".github/precedent.yml").write_text("sources: {sessions: [out]}\n")
    (top / "out/issues").mkdir(parents=True)
    (top / "out/s9.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    (top / "out/issues/48.json").write_text(json.dumps({"issueNumber": 48, "sessionPath": "out/s9.jsonl"}))


def run_by_hand(top: Path, *arguments: str) -> None:
    subprocess.run(("git", *arguments), cwd=top, capture_output=True, check=False)


def test_the_traps_in_the_checkout_do_spring_for_plain_git(hostile: HostileCheckout) -> None:
    for arguments in (("ls-files", "--", "out/s9.jsonl"), ("status",), ("log", "--name-only"), ("fetch", "far")):
        run_by_hand(hostile.top, *arguments)
        assert hostile.check_sprung(), arguments


def test_reading_a_checkout_runs_none_of_its_programs(hostile: HostileCheckout) -> None:
    shutil.copytree(hostile.mark.parent / "missing", hostile.top / ".git/objects", dirs_exist_ok=True)
    assert [commit.message for commit in read_worktree(hostile.top).commits] == ["Begin"]
    assert not hostile.check_sprung()


COMMANDS = (
    *("context --issue 48 --as-of 2026-11-22T10:05Z", "context --participant octocat", "context --branch"),
    *("search login loop", "search login --kind session", "smart-search", "smart-search login", "what"),
    *("related in/a.py", "show 48", "show s9", "answer 48", "outcomes --ids 48", "doctor"),
)
WITHOUT_STORE = (
    *("search login", "what", "smart-search login", "related in/a.py", "show 48", "context --issue 48"),
    *("doctor --offline", "init", "init --write --action octo-org/precedent@v1", "skill install"),
    *("skill install --dry-run", "try octo-org/hello --offline"),
)
"""These look for the remote."""


@pytest.mark.parametrize(
    "command",
    [
        *(f"{command} --store {{}}" for command in COMMANDS),
        *(pytest.param(command, marks=pytest.mark.slow) for command in WITHOUT_STORE),
    ],
)
def test_no_command_runs_programs_named_by_the_checkout(
    hostile: HostileCheckout, sample_store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(hostile.top / "in")
    result = call(*command.format(sample_store).split())
    assert "Traceback" not in result.err
    assert not hostile.check_sprung()


@pytest.mark.parametrize(
    ("tool", "tool_arguments"),
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
def test_no_tool_runs_programs_named_by_the_checkout(
    hostile: HostileCheckout, sample_store: Path, tool: str, tool_arguments: dict[str, object]
) -> None:
    answer(ToolContext(MemoryOptions(hostile.top, store=sample_store)), tool, tool_arguments)
    assert not hostile.check_sprung()


@pytest.mark.parametrize("name", [".", "../checkout", "evil.git"])
def test_fetching_from_a_remote_inside_the_checkout_runs_none_of_its_programs(
    hostile: HostileCheckout, call: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (hostile.top / "evil.git").symlink_to(hostile.top / ".git")
    refs = hostile.top / ".git/refs/heads"
    (refs / "precedent").write_bytes((refs / "main").read_bytes())
    git(hostile.top, "config", "remote.origin.url", name)
    monkeypatch.chdir(hostile.top)
    hostile.check_sprung()
    call("search", "login", "--refresh")
    assert not hostile.check_sprung()


def test_git_is_refused_if_its_settings_are_too_long_to_check(hostile: HostileCheckout) -> None:
    with (hostile.top / ".git/config").open("a", encoding="ascii") as config:
        config.write("".join(f'[remote "r{n}"]\n\turl = {"x" * 1_000}\n' for n in range(MAX_OUTPUT_BYTES // 1_000 + 1)))
        config.write(f'[filter "late"]\n\tclean = touch {hostile.mark}; cat\n')
    (hostile.top / ".git/info/attributes").write_text("* filter=late\n")
    with pytest.raises(NoAnswer, match="too long"):
        CheckoutGit(hostile.top).run("status")
    assert not hostile.check_sprung()


def test_a_bare_repository_inside_the_checkout_is_ignored(hostile: HostileCheckout) -> None:
    inner = hostile.top / "in/inner"
    git(hostile.top, "init", "--quiet", "--bare", str(inner))
    git(inner, "config", "core.bare", "false")
    git(inner, "config", "core.worktree", str(hostile.top))
    git(inner, "config", "core.fsmonitor", str(hostile.mark.parent / "trap"))
    hostile.check_sprung()
    assert find_top(inner) is None
    assert find_top(inner / "refs") is None
    status = CheckoutGit(inner).run("status")
    assert (status.returncode, hostile.check_sprung()) == (128, False)


def test_git_works_in_the_checkout_even_if_its_settings_name_another_folder(tmp_path: Path) -> None:
    top, other = tmp_path / "checkout", tmp_path / "other"
    for folder in (top, other):
        folder.mkdir()
        (folder / f"{folder.name}.py").touch()
    git(top, "init", "--quiet")
    git(top, "config", "core.worktree", str(other))
    assert CheckoutGit(top).line("rev-parse", "--show-toplevel") == str(top)
    assert CheckoutGit(top).run("status", "--porcelain", "-z").stdout == b"?? checkout.py\0"


def test_a_repository_above_a_broken_checkout_is_not_used_instead(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "remote", "add", "origin", "https://github.com/octocat/above.git")
    (tmp_path / "below/.git").mkdir(parents=True)
    git_below = CheckoutGit(tmp_path / "below")
    assert (git_below.remotes, "not a git repository" in git_below.refusal()) == ({}, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_persons_own_settings_decide_which_foreign_folders_are_safe(
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
def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path, pipe: str) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".git" / pipe).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".git" / pipe)
    try:  # waiting for a writer would never end
        CheckoutGit(tmp_path, 0.3).run("status")
    except NoAnswer as error:
        assert str(error) == "timed out after 0.3 s"  # noqa: PT017 - git does not open all of these pipes


def test_endless_output_of_git_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text('#!/bin/sh\ncase "$*" in *--get-regexp*) exit 1;; esac\nyes >&2 & exec yes\n')
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    output = CheckoutGit(tmp_path, 3).run("status")
    assert (len(output.stdout), output.is_cut, len(output.stderr) < MAX_OUTPUT_BYTES) == (MAX_OUTPUT_BYTES, True, True)


def test_file_names_are_not_read_as_patterns(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "Begin", "a.py", "[b].py")
    names = {name: str(tmp_path / name) for name in ("a.py", "?.py", "[b].py", "*", ":(top)a.py")}
    assert tracked_files(tmp_path, names.values()) == {names["a.py"], names["[b].py"]}
