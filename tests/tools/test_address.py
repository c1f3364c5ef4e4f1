"""The address of the repository is filled in by one command, wherever it is shown."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli.commands.init import shipped_action, workflow_text
from tools.address import ROOT, WORKFLOW, address, files_with_address, fill

SHOWN = re.compile(r"(?:github\.com/|uses: |repos/|--repo |--signer-workflow )([\w-]+/precedent)(?![\w-])")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of every file that shows the address, and of the command that writes it."""
    for path in [*files_with_address(), ROOT / "tools/address.py"]:
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    return tmp_path


def test_every_page_shows_the_address_of_the_workflow() -> None:
    shown = {
        shown_address
        for path in files_with_address()
        for shown_address in SHOWN.findall(path.read_text(encoding="utf-8"))
    }
    assert shown == {address()}
    assert shipped_action() == f"{address()}@v1"


def test_the_readme_shows_the_address_where_it_is_used_and_installed_and_a_page_the_workflow_of_init() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count(address()) == 2
    assert workflow_text() in (ROOT / "docs/workflows.md").read_text(encoding="utf-8")


def test_the_workflow_of_the_readme_has_at_most_sixteen_lines() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.partition("```yaml\n")[2].partition("```")[0].splitlines()) <= 16


def test_one_command_fills_in_the_address_everywhere_and_can_be_repeated(copy: Path) -> None:
    before = {path: path.read_text(encoding="utf-8") for path in files_with_address(copy)}
    for new in ("hubot-org/precedent", "hubot/precedent"):
        command = [sys.executable, "-m", "tools.address", new]
        subprocess.run(command, cwd=copy, check=True)
        for path, text in before.items():
            assert path.read_text(encoding="utf-8") == text.replace(address(), new)
    assert address(copy) == "hubot/precedent"


@pytest.mark.parametrize("wrong", ["precedent", "hubot/other", "hu bot/precedent", "a/precedent\n", "-a/precedent"])
def test_an_address_that_no_workflow_could_use_is_refused(copy: Path, wrong: str) -> None:
    before = (copy / WORKFLOW).read_bytes()
    with pytest.raises(ValueError, match="not the address"):
        fill(wrong, copy)
    assert (copy / WORKFLOW).read_bytes() == before
