"""Runs the commands of the README and other pages, in a clone of this checkout and on a real branch."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from bot.settings.schema import describe
from bot.settings.yaml_file import load_settings
from tests.docs.pages import CODE, PAGES, ROOT, blocks, prose, text, tracked
from tools.address import address

JQ = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not here, which the README's lines are written for")
MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
SETTINGS = {each.path.partition(".")[0] for each in describe()}


def block(page: str, first: str) -> list[str]:
    """The commands of the block that begins with ``first``."""
    (commands,) = (body for body in blocks(page, "", "sh") if body.startswith(first))
    return commands.splitlines()


def run(command: str, folder: Path, program: Path | None = None) -> str:
    """What a command prints in a shell there; it must succeed. ``program`` is a folder put first on PATH."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MAKE", "MFLAGS"))}
    path = os.pathsep.join([*([str(program)] if program else []), os.environ["PATH"]])
    result = subprocess.run(
        ["sh", "-eu", "-c", command],
        cwd=folder,
        env=variables | {"PATH": path, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout[-2_000:]}{result.stderr[-2_000:]}"
    return result.stdout


def write_program(path: Path, python: str, options: str = "") -> None:
    """Write a program that runs Python with these arguments and passes its own on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} {options} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


# -- the two commands ----------------------------------------------------------------------------------------------


def test_the_two_commands_of_the_readme_are_those_that_every_change_must_pass() -> None:
    assert block("README.md", "make demo") == ["make demo", "make test"]
    assert {"make demo", "make test"} <= set(text(".ci/run").splitlines())
    steps = [step.get("run") for job in yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"].values()
             for step in job["steps"]]  # fmt: skip
    assert {"make demo", "make test"} <= set(steps)


@MAKE
@pytest.mark.night
@pytest.mark.slow
def test_the_demo_runs_in_a_fresh_clone(tmp_path: Path) -> None:
    """Uses the packages installed here; CI installs those of the lock files each time, as `make` does."""
    if not (ROOT / ".git").exists():
        pytest.skip("this copy has no history to clone")
    clone = tmp_path / "precedent"
    run(f"git clone --quiet {shlex.quote(str(ROOT))} {clone}", tmp_path)
    write_program(clone / ".venv/bin/python", sys.executable)
    (clone / ".venv/ready").touch()
    assert run(".venv/bin/python -c 'import bot; print(bot.__file__)'", clone).startswith(str(clone))
    shown = run("make demo", clone)
    assert "Seen before" in shown
    assert "Mentioned here" in shown
    assert (clone / ".demo").is_dir()


# -- a memory, read with git and jq --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workspace(sample_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkout, `here`, whose remote has a memory, and with the program `precedent` in `bin`."""
    folder = tmp_path_factory.mktemp("desk")
    write_program(folder / "bin/precedent", sys.executable, f"-c {shlex.quote(PROGRAM)}")
    identity = "-c user.name=hubot -c user.email=hubot@example.com -c commit.gpgsign=false"
    shutil.copytree(sample_store, folder / "memory")
    run("git init --quiet --bare --initial-branch=main server.git", folder)
    (folder / "main/auth").mkdir(parents=True)
    (folder / "main/auth/cookie.py").write_text("PATH = '/'\n", encoding="utf-8")
    for branch, tree in (("precedent", "memory"), ("main", "main")):
        run(f"git init --quiet --initial-branch={branch} . && git add --force .", folder / tree)
        run("git rm -r --cached --quiet --ignore-unmatch .store", folder / tree)  # a branch has no journal
        run(f"git {identity} commit --quiet --message start && git push --quiet ../server.git {branch}", folder / tree)
    run(f"git clone --quiet --single-branch {(folder / 'server.git').as_uri()} here", folder)
    return folder


PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from bot.__main__ import main; sys.exit(main())"


@pytest.mark.slow
@JQ
def test_the_lines_of_git_and_jq_print_a_digest_and_its_decisions(workspace: Path) -> None:
    fetch, show_digest, show_decisions = block("docs/getting-started.md", "git fetch origin precedent")
    run(fetch, workspace / "here")
    digest = json.loads(run(show_digest, workspace / "here"))
    assert (digest["id"], digest["title"]) == (48, "Login loop after the upgrade to 2.2")
    decisions = run(show_decisions, workspace / "here").splitlines()
    assert decisions
    assert all(len(line) > 10 and line != "null" for line in decisions)


def test_the_questions_in_the_readme_are_answered(workspace: Path) -> None:
    what, search, related = block("README.md", "precedent what")
    for command in (what, search, related):
        shown = run(command, workspace / "here", workspace / "bin")
        assert re.search(r"\b\d+\b", shown), command


@pytest.mark.slow
def test_the_memory_is_checked_out_and_replayed_as_the_page_says(workspace: Path) -> None:
    commands = block("docs/command-line.md", "git fetch origin precedent")
    run("\n".join(commands).replace("../memory", "../checked-out"), workspace / "here", workspace / "bin")
    assert (workspace / "checked-out/manifest.json").is_file()


def test_the_memory_is_removed_as_the_readme_says(workspace: Path, tmp_path: Path) -> None:
    (command,) = {code for code in CODE.findall(prose(ROOT / "README.md")) if code.startswith("git push ")}
    server = tmp_path / "server.git"
    shutil.copytree(workspace / "server.git", server)
    run(f"git clone --quiet {server.as_uri()} here", tmp_path)
    assert "precedent" in run("git ls-remote --heads origin", tmp_path / "here")
    run(command, tmp_path / "here")
    assert run("git ls-remote --heads origin", tmp_path / "here").split("\t")[1:] == ["refs/heads/main\n"]


# -- blocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_parses_as_its_language_and_settings_are_valid(page: Path) -> None:
    for body in blocks(page, "sh", "shell", "bash"):
        result = subprocess.run(["sh", "-n"], input=body, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{page.name}: {result.stderr}\n{body}"
    for body in blocks(page, "json"):
        is_one_value = body.count("\n{") == 0
        assert [json.loads(each) for each in ([body] if is_one_value else body.splitlines())]
    for body in blocks(page, "toml"):
        tomllib.loads(body)
    for body in blocks(page, "yaml"):
        content = yaml.safe_load(body)
        assert content is not None, f"{page.name}: {body}"
        if isinstance(content, dict) and set(content) <= SETTINGS:
            load_settings(body, page.name)


def test_every_extra_that_is_named_can_be_installed() -> None:
    """Pages and errors say `pip install '.[mcp]'`."""
    project = tomllib.loads(text("pyproject.toml"))["project"]
    extra_files = {}
    for file in (*PAGES, *(path for path in tracked("bot", "deploy", "Dockerfile") if path.suffix != ".pyc")):
        for extras in re.findall(r"(?:'|\")(?:precedent|\.|\./precedent)\[([\w,-]+)\]", file.read_text("utf-8")):
            extra_files |= dict.fromkeys(extras.split(","), file.name)
    assert {"mcp", "server"} <= set(extra_files)
    assert set(extra_files) <= set(project["optional-dependencies"]), extra_files


def test_nothing_is_installed_by_a_name_that_somebody_else_may_own() -> None:
    """The project is on no package index: `pip install precedent` would install somebody else's program."""
    for file in (*PAGES, *(path for path in tracked("bot", "deploy", "skills", "Dockerfile") if path.suffix != ".pyc")):
        matches = re.findall(r"pip3? install [^`\n]*?(?<![\w./-])precedent\b", file.read_text("utf-8", "replace"))
        assert matches == [], file.name


def test_the_installation_steps_are_the_expected_ones() -> None:
    clone, into, program = block("docs/command-line.md", "git clone ")
    begin = f"git clone https://github.com/{address()} "
    assert clone == f"{begin}&& python3 -m venv p && p/bin/pip install ./precedent"
    assert into == "cd your-repo"
    assert re.fullmatch(r"\.\./p/bin/precedent \w+", program)
