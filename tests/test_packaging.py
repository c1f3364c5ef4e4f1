"""Everything around the code: versions, locks, image and workflows agree, and grant no more than they should."""

import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import bot

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted(ROOT.glob("requirements*.lock"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
ACTION_AT_COMMIT = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def canonical_name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]).lower()


def pinned_versions(lock: Path) -> dict[str, str]:
    pins = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([\w.+!-]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonical_name(name): version for name, version in pins}


def steps(workflow: Path) -> list[tuple[str, dict[str, Any]]]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [(name, step) for name, job in jobs.items() for step in job["steps"]]


def test_the_version_is_defined_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "bot/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", bot.__version__)
    release = text(".github/workflows/release.yml")
    assert '--tag "$IMAGE:${TAG#v}"' in release
    assert 'tools.release check --version "$VERSION"' in release
    assert f'\n__version__ = "{bot.__version__}"\n' in text("bot/__init__.py")


def test_the_console_script_calls_main() -> None:
    assert PROJECT["project"]["scripts"] == {"precedent": "bot.__main__:main"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_pins_everything_with_hashes_and_names_no_host(lock: Path) -> None:
    content = lock.read_text(encoding="utf-8")
    assert "://" not in content
    assert "--index" not in content
    for block in re.split(r"\n(?=\S)", content):
        assert block.startswith("#") or re.match(
            r"\S+(, \w+\])?==\S+.*\\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n?)+", block
        ), block[:80]


def test_the_image_has_the_dependencies_and_no_tools() -> None:
    names = {canonical_name(each) for each in PROJECT["project"]["dependencies"]}
    runtime = pinned_versions(ROOT / "requirements.lock")
    assert names <= set(runtime)
    assert not {"pytest", "mypy", "ruff", "hypothesis", "pip", "setuptools", "hatchling"} & set(runtime)
    assert runtime["whoosh"] == "2.7.4"


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-server.lock", "requirements-traces.lock", "requirements-org.lock"]
)
def test_tests_run_with_the_versions_of_the_image(lock: str) -> None:
    development = pinned_versions(ROOT / "requirements-dev.lock")
    runtime = pinned_versions(ROOT / lock)
    assert {name: development.get(name) for name in runtime} == runtime


def test_only_the_server_image_has_the_server_dependencies() -> None:
    extra = {canonical_name(each) for each in PROJECT["project"]["optional-dependencies"]["server"]}
    server = pinned_versions(ROOT / "requirements-server.lock")
    assert extra <= set(server)
    assert server["hishel"].startswith("1.")
    assert not extra & set(pinned_versions(ROOT / "requirements.lock"))


def test_tracing_libraries_are_only_in_the_server_image_with_traces() -> None:
    extra = {canonical_name(each) for each in PROJECT["project"]["optional-dependencies"]["traces"]}
    server, traces = (pinned_versions(ROOT / f"requirements-{name}.lock") for name in ("server", "traces"))
    assert extra <= set(traces)
    assert server.items() <= traces.items()
    assert not [name for name in server if name.startswith("opentelemetry")]


def test_lancedb_is_only_in_the_image_for_organisation_search() -> None:
    """It takes 470 MB, so plain `precedent`, the Action's image and the server's image come without it."""
    extra = {canonical_name(each) for each in PROJECT["project"]["optional-dependencies"]["org"]}
    assert extra == {"lancedb"}
    assert not extra & {canonical_name(each) for each in PROJECT["project"]["dependencies"]}
    names = ("server", "traces", "semantic", "org")
    locks = {name: pinned_versions(ROOT / f"requirements-{name}.lock") for name in names} | {
        "": pinned_versions(ROOT / "requirements.lock")
    }
    assert [name for name, lock in locks.items() if {"lancedb", "pyarrow"} & set(lock)] == ["org"]
    assert locks["traces"].items() <= locks["org"].items()


def test_the_licence_is_apache_in_full() -> None:
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_the_image_starts_the_same_way_everywhere() -> None:
    instructions = [line.split(maxsplit=1) for line in text("Dockerfile").splitlines() if re.match(r"[A-Z]+ ", line)]
    names = [name for name, _ in instructions]
    assert not {"USER", "WORKDIR", "ADD", "ENV"} & set(names)
    entry = json.loads(next(rest for name, rest in instructions if name == "ENTRYPOINT"))
    assert entry[0].startswith("/")
    assert "-I" in entry
    stages = [rest.split(" AS ") for name, rest in instructions if name == "FROM"]
    assert {base for base, *_ in stages} - {name for _, *names in stages for name in names} == {
        "python:3.13-slim",
        "scratch",
    }
    assert stages[-1] == ["scratch"]
    assert "--require-hashes" in text("Dockerfile")


def test_every_lock_that_the_image_can_use_is_in_the_build_context() -> None:
    chosen = set(re.findall(r"ln -s (requirements[\w-]*\.lock)", text("Dockerfile")))
    names = ("", "-semantic", "-server", "-traces", "-org")
    assert chosen == {f"requirements{name}.lock" for name in names}
    assert chosen == set(re.findall(r"^!(requirements\S*)$", text(".dockerignore"), re.MULTILINE))


def test_the_action_builds_this_dockerfile() -> None:
    runs = yaml.safe_load(text("action.yml"))["runs"]
    assert runs == {"using": "docker", "image": "Dockerfile"}
    assert "\n  image: Dockerfile\n" in text("action.yml"), "the release replaces this very line"


def test_the_outputs_of_the_action_are_those_of_the_specification() -> None:
    outputs = yaml.safe_load(text("action.yml"))["outputs"]
    assert list(outputs) == ["matches", "context", "comment-id", "comment-url", "spoke", "would-speak", "reason"]
    assert all(set(output) == {"description"} for output in outputs.values())


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_grants_nothing_at_the_top_and_pins_every_action(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text(encoding="utf-8"))["permissions"] == {}
    for job, step in steps(workflow):
        used = step.get("uses", "./")
        assert used == "./" or ACTION_AT_COMMIT.fullmatch(used), (job, used)
        assert "${{" not in step.get("run", ""), (job, step)
        if used.startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_all_workflows_pin_an_action_to_the_same_commit() -> None:
    commits: dict[str, set[str]] = {}
    for workflow in WORKFLOWS:
        for _, step in steps(workflow):
            name, _, commit = step.get("uses", "").partition("@")
            commits.setdefault(name, set()).add(commit)
    assert {name: sorted(versions) for name, versions in commits.items() if len(versions) > 1} == {}


def test_the_bot_asks_for_the_permissions_that_it_needs() -> None:
    workflow = yaml.safe_load(text(".github/workflows/precedent.yml"))
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "write", "issues": "write", "discussions": "read"}
    assert workflow["concurrency"] == {"group": "precedent", "cancel-in-progress": False, "queue": "max"}


def test_the_nightly_run_tries_the_cases_that_a_change_skips() -> None:
    nightly = yaml.safe_load(text(".github/workflows/nightly.yml"))
    assert nightly[True]["schedule"]
    assert ".ci/run --whole" in [step.get("run") for job in nightly["jobs"].values() for step in job["steps"]]
    skipped_lines = re.findall(r"^.*\$\{?whole.*$", text(".ci/run"), re.MULTILINE)
    assert [line for line in skipped_lines if line.startswith("export PRECEDENT_THOROUGH=$whole ")]
    assert [line for line in skipped_lines if "--histories 2000" in line]


def test_every_target_of_the_makefile_is_explained() -> None:
    makefile = text("Makefile")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    explained = re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
    assert set(phony.split()) == set(explained)
    assert set(explained) >= {"demo", "test", "test-all", "lint", "bench", "image", "lock", "clean", "help"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
@pytest.mark.parametrize("target", ["test", "demo"])
def test_an_older_python_is_refused_in_one_line(target: str, tmp_path: Path) -> None:
    older = tmp_path / "python3.9"
    older.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2"\n[ "$1" = -V ]\n', encoding="utf-8")
    older.chmod(0o755)
    done = subprocess.run(
        ["make", "--silent", target, f"PYTHON={older}", f"VENV={tmp_path}/venv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        f"make needs Python 3.11 or newer: {older} is Python 3.9.2; try: make PYTHON=python3.12"
    )


def test_continuous_integration_runs_the_documented_command() -> None:
    assert re.search(r"^make test$", text(".ci/run"), re.MULTILINE)
    assert "make test" in text("CONTRIBUTING.md")
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
