"""What the doctor says of a workflow is true of that workflow, and its remedy works there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bot.cli.checks import github
from bot.cli.checks.collect import DoctorOptions, gather
from bot.cli.checks.github import Step
from bot.cli.checks.result import RepositoryLinks
from bot.cli.commands.doctor import judge
from tests.cli.clinic import NOW, PATH, REPOSITORY, WORKFLOW


def steps_of(text: str) -> list[Step]:
    return github.find_workflows({PATH: text.encode()}, is_ours=False)[0]


def told(check: str, text: str) -> list[tuple[str, str, str]]:
    return [
        (each.level, each.says, each.remedy)
        for each in github.check_workflow(steps_of(text), comments=True)
        if each.check == check
    ]


# A run that only tries


@pytest.mark.parametrize("value", ["true", "'true'", "TRUE"])
def test_a_dry_run_for_every_event_is_a_warning_and_nobody_says_that_all_is_well(value: str) -> None:
    text = WORKFLOW + f"          dry-run: {value}\n"
    remedy = f"remove `dry-run: true` from `with:` in {PATH}"
    says = "dry-run is true for every event: nothing is remembered or said"
    assert told("inputs", text) == [("warning", says, remedy)]
    assert told("workflow", text) == []


@pytest.mark.parametrize("value", ["false", "${{ inputs.dry-run }}", "${{ github.event_name == 'push' }}", "''"])
def test_a_dry_run_that_somebody_asks_for_is_no_problem(value: str) -> None:
    text = WORKFLOW + f"          dry-run: {value}\n"
    assert told("inputs", text) == []
    assert told("workflow", text)[0][0] == "ok"


def test_a_dry_run_under_a_condition_is_not_for_every_event() -> None:
    text = WORKFLOW + "          dry-run: true\n        if: github.event_name == 'workflow_dispatch'\n"
    assert told("inputs", text) == []


# Where the Action comes from


@pytest.mark.parametrize("uses", ["OWNER/precedent@v1", "docker://ghcr.io/OWNER/precedent:v1"])
def test_the_placeholder_of_the_readme_is_an_error(uses: str) -> None:
    [(level, says, remedy)] = told("version", re.sub(r"uses: .*", f"uses: {uses}", WORKFLOW))
    assert (level, "OWNER is the README's placeholder" in says) == ("error", True)
    assert remedy == "replace OWNER with the account that you use it from"


@pytest.mark.parametrize("uses", ["co-OWNER/precedent@v1", "owner/precedent@v1"])
def test_an_account_is_no_placeholder(uses: str) -> None:
    assert [each[0] for each in told("version", re.sub(r"uses: .*", f"uses: {uses}", WORKFLOW))] == []


# Where it was looked


def test_without_a_workflow_it_says_where_it_looked() -> None:
    [there] = github.check_workflow([], comments=True)
    [here] = github.check_workflow([], comments=True, is_checkout=True)
    assert (there.level, "on the default branch uses" in there.says) == ("error", True)
    assert (here.level, "of this checkout uses" in here.says, "default branch" in here.says) == ("warning", True, False)


@pytest.mark.slow
def test_a_checkout_without_a_workflow_is_no_statement_on_the_default_branch(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    place = RepositoryLinks(REPOSITORY, "http://127.0.0.1:9", "http://127.0.0.1:9/api/v3")
    findings = judge(gather(DoctorOptions(place, checkout=tmp_path, offline=True), NOW))
    [finding] = [each for each in findings if each.check == "workflow"]
    assert (finding.level, "of this checkout" in finding.says) == ("warning", True)
