"""Where code comes from: everything is pinned, and no workflow, ours or shown on a page, expands a stranger's text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.address import address
from tools.snippets import ROOT, main, workflows

OWN = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")}
SHOWN = workflows()
EVERY = OWN | SHOWN
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
EXPANDED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
STRANGERS = re.compile(r"github\.(event|head_ref|actor|triggering_actor)|steps\.precedent|inputs\.", re.ASCII)
LOCKS = sorted(ROOT.glob("requirements*.lock"))


@cache
def workflow(name: str) -> dict[Any, Any]:
    return yaml.safe_load(EVERY[name])


def jobs(name: str) -> list[dict[str, Any]]:
    return list(workflow(name)["jobs"].values())


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in jobs(name) for step in job.get("steps", ())]


def test_the_pages_show_workflows() -> None:
    assert len(SHOWN) >= 3
    assert any(name.startswith("README") for name in SHOWN)


@pytest.mark.parametrize("name", EVERY)
def test_no_script_expands_anything_that_somebody_else_may_choose(name: str) -> None:
    for step in steps(name):
        for part in (step.get("run", ""), step.get("with", {}).get("script", "")):
            assert not [expression for expression in EXPANDED.findall(part) if STRANGERS.search(expression)]


def test_the_action_takes_the_event_only_from_its_file() -> None:
    assert [expression.strip() for expression in EXPANDED.findall(ACTION)] == ["github.token"]
    assert "github.event" not in DOCKERFILE


@pytest.mark.parametrize("name", EVERY)
def test_permissions_are_none_at_the_top_and_named_for_each_job(name: str) -> None:
    assert workflow(name)["permissions"] == {}
    assert all("permissions" in job for job in jobs(name))


@pytest.mark.parametrize("name", EVERY)
def test_third_party_actions_are_pinned_to_a_commit(name: str) -> None:
    used = [step["uses"] for step in steps(name) if "uses" in step]
    ours = r"\./" if name in OWN else address() + r"@v1|docker://[\w./-]+@sha256:[0-9a-f]{64}"
    assert used or name in SHOWN
    assert [each for each in used if not re.fullmatch(rf"{ours}|[\w./-]+@[0-9a-f]{{40}}", each)] == []


@pytest.mark.parametrize("name", EVERY)
def test_no_workflow_uses_a_cache_that_another_run_could_fill(name: str) -> None:
    used = [f"{step.get('uses', '')} {step.get('with', {}).get('cache', '')}".strip() for step in steps(name)]
    assert [each for each in used if "cache" in each] == []
    assert [each for each in used if each.startswith("actions/setup-python") and each.count(" ")] == []
    assert "type=gha" not in EVERY[name]


@pytest.mark.parametrize("name", EVERY)
def test_no_workflow_runs_a_strangers_commit_with_rights(name: str) -> None:
    triggers = workflow(name).get(True) or {}
    assert {"pull_request_target", "workflow_run"}.isdisjoint(triggers)
    for step in steps(name):
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False
            # A release checks out the tag that it has just made.
            assert step["with"].get("ref") in (
                None,
                *["refs/tags/${{ needs.check.outputs.tag }}"] * (name == "release.yml"),
            )


def test_the_image_is_built_from_hashes() -> None:
    (install,) = re.findall(r"pip --python \S+ install (.*?)(?:\n[A-Z]|\Z)", DOCKERFILE, re.DOTALL)
    for option in ("--require-hashes", "--no-deps", "--only-binary :all:", "-r /build/chosen.lock"):
        assert option in install
    assert "--index-url" not in DOCKERFILE
    assert re.findall(r"^ADD |curl |wget ", DOCKERFILE, re.MULTILINE) == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_line_of_a_lock_has_a_version_and_a_hash(lock: Path) -> None:
    rows = lock.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    packages = [row for row in rows if row and not row.startswith(("#", " ", "\t"))]
    assert packages
    shape = re.compile(r"[A-Za-z0-9._-]+(?:\[[a-z, -]+\])?==\S+ +.*--hash=sha256:[0-9a-f]{64}")
    assert [row for row in packages if not shape.match(row)] == []


def test_the_image_is_based_on_the_official_python_image_and_copies_only_named_files() -> None:
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", DOCKERFILE, re.MULTILINE)
    assert {base for base, _ in stages} == {"python:3.13-slim", "system", "scratch"}
    assert ("python:3.13-slim", "system") in stages
    assert stages[-1] == ("scratch", "")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", re.sub(r"\s*\\\n\s*", " ", DOCKERFILE), re.MULTILINE)
    tools = "tools/image_sbom.py tools/image_trim.py tools/image_root.py"
    model = "tools/minilm.py"
    assert copied == [f"requirements*.lock {tools}", model, "bot", "templates", "LICENSE"]


def test_a_release_names_the_image_by_its_digest() -> None:
    release = OWN["release.yml"]
    assert re.search(r"tools\.release tag .*--image \"\$IMAGE\" --digest \"\$DIGEST\"", release)
    assert any(step.get("uses", "").startswith("actions/attest-build-provenance@") for step in steps("release.yml"))
    (build,) = (
        step["with"] for step in steps("release.yml") if step.get("uses", "").startswith("docker/build-push-action@")
    )
    assert build["sbom"] is True
    assert build["provenance"] == "mode=max"


def test_the_workflows_of_the_pages_are_written_where_the_checkers_look(tmp_path: Path) -> None:
    main(tmp_path)
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / ".github/workflows").glob("*.yml")}
    assert written == SHOWN
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "tools.snippets build/snippets" in makefile
    assert re.search(r"zizmor .*build/snippets", makefile)
