"""What the doctor says about a workflow is true, and its remedy works."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bot.cli.checks import github
from bot.cli.checks.collect import DoctorOptions, gather
from bot.cli.checks.result import RepositoryLinks
from bot.cli.commands.doctor import judge
from tests.cli.examined_repository import NOW, REPOSITORY, WORKFLOW, WORKFLOW_PATH


def workflow_findings(check: str, text: str) -> list[tuple[str, str, str]]:
    steps = github.find_workflows({WORKFLOW_PATH: text.encode()}, is_ours=False)[0]
    return [
        (finding.level, finding.says, finding.remedy)
        for finding in github.check_workflow(steps, comments=True)
        if finding.check == check
    ]


# Dry runs


def test_a_dry_run_for_every_event_is_a_warning_and_the_workflow_is_not_ok() -> None:
    for value in ["true", "'true'", "TRUE"]:
        text = WORKFLOW + f"          dry-run: {value}\n"
        remedy = f"remove `dry-run: true` from `with:` in {WORKFLOW_PATH}"
        says = "dry-run is true for every event: nothing is remembered or said"
        assert workflow_findings("inputs", text) == [("warning", says, remedy)], value
        assert workflow_findings("workflow", text) == [], value


def test_a_dry_run_on_request_is_no_problem() -> None:
    values = ["false", "${{ inputs.dry-run }}", "${{ github.event_name == 'push' }}", "''"]
    for value in values:
        text = WORKFLOW + f"          dry-run: {value}\n"
        assert workflow_findings("inputs", text) == [], value
        assert workflow_findings("workflow", text)[0][0] == "ok", value


def test_a_dry_run_under_a_condition_is_not_for_every_event() -> None:
    text = WORKFLOW + "          dry-run: true\n        if: github.event_name == 'workflow_dispatch'\n"
    assert workflow_findings("inputs", text) == []


# Where the Action comes from


def test_the_placeholder_of_the_readme_is_an_error() -> None:
    cases = ["OWNER/precedent@v1", "docker://ghcr.io/OWNER/precedent:v1"]
    for uses in cases:
        [(level, says, remedy)] = workflow_findings("version", re.sub(r"uses: .*", f"uses: {uses}", WORKFLOW))
        assert (level, "OWNER is the README's placeholder" in says) == ("error", True), uses
        assert remedy == "replace OWNER with the account that you use it from", uses


def test_a_similar_account_name_is_no_placeholder() -> None:
    assert [
        uses
        for uses in ["co-OWNER/precedent@v1", "owner/precedent@v1"]
        if [finding[0] for finding in workflow_findings("version", re.sub(r"uses: .*", f"uses: {uses}", WORKFLOW))]
        != []
    ] == []


# Where a workflow was looked for


def test_without_a_workflow_it_says_where_it_looked() -> None:
    [on_branch] = github.check_workflow([], comments=True)
    [in_checkout] = github.check_workflow([], comments=True, is_checkout=True)
    assert (on_branch.level, "on the default branch uses" in on_branch.says) == ("error", True)
    assert (in_checkout.level, "of this checkout uses" in in_checkout.says, "default branch" in in_checkout.says) == (
        "warning",
        True,
        False,
    )


@pytest.mark.slow
def test_a_checkout_without_a_workflow_says_nothing_about_the_default_branch(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    links = RepositoryLinks(REPOSITORY, "http://127.0.0.1:9", "http://127.0.0.1:9/api/v3")
    findings = judge(gather(DoctorOptions(links, checkout=tmp_path, offline=True), NOW))
    [finding] = [check_result for check_result in findings if check_result.check == "workflow"]
    assert (finding.level, "of this checkout" in finding.says) == ("warning", True)


# The next issue

COMMENT, SUMMARY = "gets a comment.", "only shown in the job summary."


@pytest.mark.parametrize(
    ("inputs", "mode", "level", "words"),
    [
        ("", "comment", "ok", f"{COMMENT} (mode: comment, of the settings)"),
        ("mode: summary", "summary", "ok", f"{SUMMARY} (mode: summary, an input in {WORKFLOW_PATH}, which outranks"),
        ("mode: 'off'", "off", "ok", "Precedent only remembers it."),
        ("mode: '${{ vars.MODE }}'", "comment", "note", "its mode is an expression."),
        ("dry-run: true", "comment", "note", "Nothing happens at the next issue"),
    ],
)
def test_the_doctor_says_what_happens_at_the_next_issue(inputs: str, mode: str, level: str, words: str) -> None:
    text = WORKFLOW + (f"          {inputs}\n" if inputs else "")
    steps, _ = github.find_workflows({WORKFLOW_PATH: text.encode()}, is_ours=False)
    [finding] = github.next_issue(mode, steps)
    assert (finding.level, words in finding.says) == (level, True), finding.says
