"""What the doctor says of a workflow is true of that workflow, and its remedy works there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bot.doors.checkup import settings, workflow
from bot.doors.checkup.finding import Finding
from bot.doors.checkup.judge import judge
from bot.doors.checkup.place import Place
from bot.doors.checkup.workflow import Step
from bot.doors.gathering import Wanted, gather
from tests.doors.clinic import NOW, PATH, REPOSITORY, WORKFLOW, Clinic

README = Path(__file__).resolve().parents[2] / "README.md"
RUN = "          run: ${{ inputs.run }}\n"
FORM = """    inputs:
      run:
        type: choice
        options: [catch-up, rebuild, answer, forget, backtest]
"""


def found_in(text: str) -> list[Finding]:
    """What the checks of the workflow and of the mode find where the settings are the defaults."""
    [step] = steps_of(text)
    mode = settings.read_config(f"mode: {workflow.overriding([step], 'mode') or 'comment'}".encode(), "x")[0]
    return [
        *settings.useless(mode, Place(REPOSITORY), ".github/precedent.yml", [step]),
        *workflow.checks([step], comments=True),
    ]


def steps_of(text: str) -> list[Step]:
    return workflow.find({PATH: text.encode()}, is_ours=False)[0]


def told(check: str, text: str) -> list[tuple[str, str, str]]:
    return [(each.level, each.says, each.remedy) for each in found_in(text) if each.check == check]


def readme_workflow() -> str:
    found = re.search(r"^```yaml\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


# A run that only tries


@pytest.mark.parametrize("value", ["true", "'true'", "TRUE"])
def test_a_dry_run_for_every_event_is_a_warning_and_nobody_says_that_all_is_well(value: str) -> None:
    text = WORKFLOW + f"          dry-run: {value}\n"
    remedy = f"take `dry-run: true` out of `with:` in {PATH}"
    says = "dry-run is true for every event: nothing is remembered or said"
    assert told("inputs", text) == [("warning", says, remedy)]
    assert told("mode", text) == []
    assert told("workflow", text) == []


@pytest.mark.parametrize("value", ["false", "${{ inputs.dry-run }}", "${{ github.event_name == 'push' }}", "''"])
def test_a_dry_run_that_somebody_asks_for_is_no_problem(value: str) -> None:
    text = WORKFLOW + f"          dry-run: {value}\n"
    assert told("inputs", text) == []
    assert told("mode", text)[0][0] == "ok"
    assert told("workflow", text)[0][0] == "ok"


def test_a_dry_run_under_a_condition_is_not_for_every_event() -> None:
    text = WORKFLOW + "          dry-run: true\n        if: github.event_name == 'workflow_dispatch'\n"
    assert told("inputs", text) == []


# Where the mode comes from


def test_a_mode_of_the_workflow_is_taken_out_of_the_workflow() -> None:
    remedy = f"take `mode: summary` out of `with:` in {PATH}"
    assert [each[2] for each in told("mode", readme_workflow())] == [remedy]


@pytest.mark.slow
def test_each_setting_is_changed_where_it_comes_from(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    config = ".github/precedent.yml"
    for given, expected in (
        ({PATH: WORKFLOW, config: "mode: summary\nbranch: main"}, (f"set `mode` in {config}", f"in {config}")),
        ({PATH: WORKFLOW + "          mode: 'off'\n          branch: main\n"}, (f"in {PATH}", f"`with:` in {PATH}")),
    ):
        clinic.put(given)
        remedies = {each.check: each.remedy for each in clinic.examine() if each.check in ("mode", "protection")}
        assert (expected[0] in remedies["mode"], expected[1] in remedies["protection"]) == (True, True), remedies
    clinic.close()


# What can be done by hand


def test_a_form_without_a_choice_is_told_and_nobody_says_that_all_is_well() -> None:
    for text in (
        WORKFLOW.replace(FORM, ""),
        WORKFLOW.replace(FORM, "    inputs: {issue: {type: string}}\n"),
        WORKFLOW.replace(FORM, "").replace(RUN, "          mode: comment\n"),
    ):
        assert text != WORKFLOW
        [(level, says, remedy)] = told("events", text)
        assert (level, says) == ("note", f"Run workflow offers no `run` in {PATH}: no rebuild, no backtest")
        assert "add the `inputs` of the README" in remedy
        assert told("workflow", text) == []


def test_a_choice_that_is_not_handed_on_is_told() -> None:
    [(level, _, remedy)] = told("events", WORKFLOW.replace(RUN, "          mode: comment\n"))
    assert (level, remedy) == ("note", f"add `run: ${{{{ inputs.run }}}}` under `with:` in {PATH}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("inputs.run", "github.event.inputs.run"),
        ("inputs.run }}", "inputs.run || 'catch-up' }}"),
        ("${{ inputs.run }}", "rebuild"),
    ],
)
def test_a_form_that_offers_what_the_step_asks_for_is_fine(old: str, new: str) -> None:
    text = WORKFLOW.replace(old, new)
    assert text != WORKFLOW
    assert told("events", text) == []
    assert told("workflow", text)[0][0] == "ok"


def test_a_form_may_call_the_choice_what_it_likes() -> None:
    assert told("events", WORKFLOW.replace("      run:\n", "      task:\n").replace("inputs.run", "inputs.task")) == []


# Where the Action comes from


@pytest.mark.parametrize("uses", ["OWNER/precedent@v1", "docker://ghcr.io/OWNER/precedent:v1"])
def test_the_placeholder_of_the_readme_is_an_error(uses: str) -> None:
    [(level, says, remedy)] = told("version", re.sub(r"uses: .*", f"uses: {uses}", WORKFLOW))
    assert (level, "OWNER is the README's placeholder" in says) == ("error", True)
    assert remedy == "put the account there that you use it from"


@pytest.mark.parametrize("uses", ["co-OWNER/precedent@v1", "owner/precedent@v1"])
def test_an_account_is_no_placeholder(uses: str) -> None:
    assert [each[0] for each in told("version", re.sub(r"uses: .*", f"uses: {uses}", WORKFLOW))] == ["note"]


# Where it was looked


def test_without_a_workflow_it_says_where_it_looked() -> None:
    [there] = workflow.checks([], comments=True)
    [here] = workflow.checks([], comments=True, is_checkout=True)
    assert (there.level, "on the default branch uses" in there.says) == ("error", True)
    assert (here.level, "of this checkout uses" in here.says, "default branch" in here.says) == ("warning", True, False)


@pytest.mark.slow
def test_a_checkout_without_a_workflow_is_no_statement_on_the_default_branch(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    place = Place(REPOSITORY, "http://127.0.0.1:9", "http://127.0.0.1:9/api/v3")
    findings = judge(gather(Wanted(place, checkout=tmp_path, offline=True), NOW))
    [finding] = [each for each in findings if each.check == "workflow"]
    assert (finding.level, "of this checkout" in finding.says) == ("warning", True)
