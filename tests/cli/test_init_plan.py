"""The workflow and settings that `precedent init` writes match the docs and need no repair."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cli.checks import github as workflow_checks
from bot.cli.commands import init as init_command
from bot.cli.commands.init import WORKFLOW_PATH, WorkflowChoice, is_action, workflow_text
from bot.errors import UserError
from bot.settings.schema import Settings, describe
from bot.settings.yaml_file import load_settings
from tests.cli.test_init import PINNED, TAGGED, parse_yaml, write_file
from tests.examples import examples

ROOT = Path(__file__).resolve().parents[2]
CHECKS = ROOT / ".venv-checks" / "bin"
IMAGE = f"docker://mirror.example.com/octo-org/precedent@sha256:{'0' * 64}"
CHOICES = [
    WorkflowChoice(*each)
    for each in itertools.product((PINNED, TAGGED, IMAGE), ("summary", "comment"), ("main", "rel/1+x"), (True, False))
]


def test_the_settings_are_the_defaults_with_and_without_the_comment_signs() -> None:
    text = init_command.settings_text()
    assert load_settings(text) == Settings()
    assert not re.search(r"^[^#\n]", text, re.MULTILINE)
    uncommented = re.sub(r"^#(?! )|^#(?=  )", "", text, flags=re.MULTILINE)
    written = {
        f"{section}.{name}" if isinstance(value, dict) else section: setting
        for section, value in parse_yaml(uncommented).items()
        for name, setting in (value.items() if isinstance(value, dict) else [("", value)])
    }
    defaults = {description.path: description.default for description in describe() if description.default is not None}
    assert {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()} == {
        name: defaults[name] for name in written
    }
    assert len(written) >= 10
    assert load_settings(uncommented) == Settings()
    assert len(text.splitlines()) < 40


def test_the_doctor_finds_nothing_wrong_with_any_workflow_of_init() -> None:
    for choice in CHOICES:
        text = workflow_text(choice)
        steps, file_findings = workflow_checks.find_workflows({WORKFLOW_PATH: text.encode()}, is_ours=False)
        findings = [*file_findings, *workflow_checks.check_workflow(steps, comments=choice.mode == "comment")]
        assert [finding.says for finding in findings if finding.level != "ok"] == [], choice


def test_a_workflow_has_exactly_the_expected_permissions_and_events() -> None:
    for choice in CHOICES:
        text = workflow_text(choice)
        workflow = parse_yaml(text)
        (job,) = workflow["jobs"].values()
        assert job["permissions"] == {"contents": "write", "issues": "write", "discussions": "read"}, choice
        assert workflow["permissions"] == {}, choice
        assert "queue" not in workflow["concurrency"], choice  # a company's server does not know it
        inputs = job["steps"][0].get("with", {})
        assert inputs.get("mode") == ("summary" if choice.mode == "summary" else None), choice
        assert ("token" in inputs) is choice.action.startswith("docker://"), choice
        assert "run" in inputs, choice
        assert list(workflow[True]) == [
            *("issues", "issue_comment", "discussion", "discussion_comment"),
            *("gollum", "push", "release", "schedule", "workflow_dispatch"),
        ], choice  # nothing else starts it
        assert (job["runs-on"] == "ubuntu-latest") is choice.hosted, choice
        assert len(job["steps"]) == (2 if choice.hosted else 1), choice  # a company's server refuses the upload


def test_a_workflow_keeps_the_report_that_its_run_names_and_gives_the_upload_no_token() -> None:
    for choice in CHOICES:
        (job,) = parse_yaml(workflow_text(choice))["jobs"].values()
        action, *uploads = job["steps"]
        for upload in uploads:
            report = f"steps.{action['id']}.outputs.report"
            assert upload["if"] == f"{report} != ''", choice
            assert upload["with"] == {
                "name": "backtest", "path": f"${{{{ {report} }}}}", "include-hidden-files": True,
            }, choice  # fmt: skip
            assert re.fullmatch(r"actions/upload-artifact@[0-9a-f]{40}", upload["uses"]), choice


@pytest.mark.slow
@pytest.mark.skipif(not (CHECKS / "zizmor").exists(), reason="the linters are not here: make lint")
def test_linters_accept_every_workflow_of_init(tmp_path: Path) -> None:
    folder = tmp_path / ".github/workflows"
    for number, choice in enumerate(CHOICES):
        write_file(tmp_path, f".github/workflows/{number}.yml", workflow_text(choice))
    schema = (CHECKS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *sorted(folder.iterdir()))
    process = subprocess.run(schema, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    zizmor = (CHECKS / "zizmor", "--offline", "--persona", "pedantic", "--quiet", "--format", "json", tmp_path)
    findings = json.loads(subprocess.run(zizmor, capture_output=True, text=True, check=False).stdout)
    tagged = sum(choice.action == TAGGED for choice in CHOICES)
    rules = [finding["ident"] for finding in findings if not finding["ignored"]]
    assert rules == ["unpinned-uses"] * tagged  # because a tag can be moved


NAMES = st.text(st.characters(exclude_characters=" ~^:?*[\\\x7f", exclude_categories=("Cc", "Cs")), min_size=1)


@pytest.mark.night
@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(
    NAMES.filter(str.isprintable)
    | st.sampled_from(["true", "on", "1.0", "a: b", "'", '"]', "!x", "${{ x }}", "a#b", "rel/1+x", "a]"])
)
def test_any_name_of_a_default_branch_becomes_one_pattern_that_matches_it(name: str) -> None:
    text = workflow_text(WorkflowChoice(main=name))
    (pattern,) = parse_yaml(text)[True]["push"]["branches"]
    assert re.sub(r"\\(.)", r"\1", pattern) == name
    assert not re.search(r"(?<!\\)[*?+\[\]!]", pattern)
    plain = workflow_text().splitlines()
    assert [index for index, line in enumerate(text.splitlines()) if line != plain[index]] in ([], [13])
    assert len(text.splitlines()) == len(plain)


def test_a_default_branch_with_invisible_characters_is_refused() -> None:
    for name in ["a\u202eb", "a\u0085b", "a\u2028b", "a\nb", "a\udc80"]:
        with pytest.raises(UserError, match="contains invisible characters"):
            workflow_text(WorkflowChoice(main=name))


def test_the_name_of_the_action_cannot_change_the_rest_of_the_workflow() -> None:
    cases = [
        (PINNED, True),
        (TAGGED, True),
        (IMAGE, True),
        ("octo-org/precedent@release/1", True),
        ("octo-org/precedent", False),
        ("octo-org/other@v1", True),
        ("octo-org/precedent@", False),
        ("octo-org/precedent@../x", False),
        ("octo-org/precedent@v1 # x", False),
        ("octo-org/precedent@v1\nrun: x", False),
        ("docker://precedent", False),
        ("./", False),
    ]
    for text, is_valid in cases:
        assert is_action(text) is is_valid, text
        if is_valid:
            steps, _ = workflow_checks.find_workflows(
                {WORKFLOW_PATH: workflow_text(WorkflowChoice(action=text)).encode()}, is_ours=False
            )
            assert [step.uses for step in steps] == [text], text
