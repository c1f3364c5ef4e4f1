"""Everything around the code: versions, locks, image and workflows agree."""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import bot

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = {path.stem.partition("-")[2]: path.read_text(encoding="utf-8") for path in ROOT.glob("requirements*.lock")}
"""The locks of the image: "" for the Action's, and one for each extra; "dev" and "checks" are for work on it."""


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def canonical_names(requirements: list[str]) -> set[str]:
    return {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", each, maxsplit=1)[0]).lower() for each in requirements}


def pinned_versions(lock: str) -> dict[str, str]:
    pins = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([\w.+!-]+)", LOCKS[lock], re.MULTILINE)
    return {canonical_names([name]).pop(): version for name, version in pins}


def test_the_version_is_defined_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "bot/__init__.py"
    assert f'\n__version__ = "{bot.__version__}"\n' in text("bot/__init__.py")
    assert re.fullmatch(r"\d+\.\d+\.\d+", bot.__version__)


def test_no_lock_names_a_host() -> None:
    assert [name for name, lock in LOCKS.items() if "://" in lock or "--index" in lock] == []


def test_the_image_has_the_dependencies_and_no_tools() -> None:
    runtime = pinned_versions("")
    optional = PROJECT["project"]["optional-dependencies"]
    assert canonical_names([*PROJECT["project"]["dependencies"], *optional["semantic"]]) <= set(runtime)
    assert not {"pytest", "mypy", "ruff", "hypothesis", "pip", "setuptools", "hatchling"} & set(runtime)
    assert runtime["whoosh"] == "2.7.4"


@pytest.mark.parametrize(
    ("extra", "base", "apart"),
    [
        ("server", "", "githubkit|sqlalchemy"),
        ("org", "server", "lancedb|pyarrow"),  # they take 470 MB
    ],
)
def test_the_libraries_of_an_extra_are_in_its_image_and_in_none_below_it(extra: str, base: str, apart: str) -> None:
    libraries, pinned = canonical_names(PROJECT["project"]["optional-dependencies"][extra]), pinned_versions(extra)
    assert libraries <= set(pinned)
    assert not libraries & canonical_names(PROJECT["project"]["dependencies"])
    for below in {"", base}:
        assert not libraries & set(pinned_versions(below))
        assert not [name for name in pinned_versions(below) if re.match(apart, name)]
    assert pinned_versions(base).items() <= pinned.items()


@pytest.mark.parametrize("lock", sorted(set(LOCKS) - {"dev", "checks"}))
def test_tests_run_with_the_versions_of_the_image(lock: str) -> None:
    assert pinned_versions(lock).items() <= pinned_versions("dev").items()


def test_the_licence_is_apache_in_full() -> None:
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_every_lock_that_the_image_can_use_is_in_the_build_context() -> None:
    chosen = set(re.findall(r"ln -s (requirements[\w-]*\.lock)", text("Dockerfile")))
    names = ("", "-server", "-org")
    assert chosen == {f"requirements{name}.lock" for name in names}
    assert chosen == set(re.findall(r"^!(requirements\S*)$", text(".dockerignore"), re.MULTILINE))


def test_all_workflows_pin_an_action_to_the_same_commit() -> None:
    commits: dict[str, set[str]] = {}
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        for name, commit in re.findall(r"uses: (\S+)@([0-9a-f]{40})", workflow.read_text(encoding="utf-8")):
            commits.setdefault(name, set()).add(commit)
    assert commits
    assert {name: sorted(versions) for name, versions in commits.items() if len(versions) > 1} == {}


def test_the_nightly_run_tries_the_cases_that_a_change_skips() -> None:
    nightly = yaml.safe_load(text(".github/workflows/nightly.yml"))
    assert nightly[True]["schedule"]
    assert ".ci/run --whole" in [step.get("run") for job in nightly["jobs"].values() for step in job["steps"]]
    skipped_lines = re.findall(r"^.*\$\{?whole.*$", text(".ci/run"), re.MULTILINE)
    assert [line for line in skipped_lines if line.startswith("export PRECEDENT_THOROUGH=$whole ")]
    assert [line for line in skipped_lines if "--histories 2000" in line]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
def test_an_environment_that_is_only_linked_is_never_emptied(tmp_path: Path) -> None:
    shared, linked = tmp_path / "shared", tmp_path / "linked"
    shared.mkdir()
    (shared / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    linked.symlink_to(shared)
    command = ["make", "--silent", "test", f"PYTHON={sys.executable}", f"VENV={linked}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{linked} is a link, and making it would empty the folder")
    assert [path.name for path in shared.iterdir()] == ["pyvenv.cfg"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
def test_an_older_python_is_refused_in_one_line(tmp_path: Path) -> None:
    older = tmp_path / "python3.9"
    older.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2"\n[ "$1" = -V ]\n', encoding="utf-8")
    older.chmod(0o755)
    command = ["make", "--silent", "test", f"PYTHON={older}", f"VENV={tmp_path}/venv"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        f"make needs Python 3.11 or newer: {older} is Python 3.9.2; try: make PYTHON=python3.12"
    )
