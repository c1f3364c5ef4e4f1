"""The workflow and the settings that `precedent init` writes are what the pages show, and nobody has to mend them."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cli.checks import github as checkup
from bot.cli.commands import init as written
from bot.cli.commands.init import WORKFLOW, WorkflowChoice, is_action, workflow_text
from bot.errors import UserError
from bot.settings.schema import Settings, describe
from bot.settings.yaml_file import load_settings
from tests.cli.test_init import PINNED, TAGGED, parsed, put
from tests.examples import examples
from tools.settings_docs import with_workflow

ROOT = Path(__file__).resolve().parents[2]
CHECKS = ROOT / ".venv-checks" / "bin"
IMAGE = f"docker://mirror.example.com/octo-org/precedent@sha256:{'0' * 64}"
CHOICES = [
    WorkflowChoice(*each)
    for each in itertools.product((PINNED, TAGGED, IMAGE), ("summary", "comment"), ("main", "rel/1+x"), (True, False))
]


def test_the_readme_shows_the_workflow_that_it_writes() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert workflow_text() in readme, "run `make docs`"
    assert with_workflow(readme) == readme, "run `make docs`"
    assert with_workflow(readme.replace("issues: write", "issues: all")) == readme


def test_the_settings_are_the_defaults_with_and_without_the_comment_signs() -> None:
    text = written.settings_text()
    assert load_settings(text) == Settings()
    assert not re.search(r"^[^#\n]", text, re.MULTILINE)
    bare = re.sub(r"^#(?! )|^#(?=  )", "", text, flags=re.MULTILINE)
    shown = {
        f"{section}.{name}" if isinstance(value, dict) else section: given
        for section, value in parsed(bare).items()
        for name, given in (value.items() if isinstance(value, dict) else [("", value)])
    }
    defaults = {each.path: each.default for each in describe() if each.default is not None}
    assert {name: tuple(value) if isinstance(value, list) else value for name, value in shown.items()} == {
        name: defaults[name] for name in shown
    }
    assert len(shown) >= 10
    assert load_settings(bare) == Settings()
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_doctor_finds_nothing_wrong_with_any_of_them(choice: WorkflowChoice) -> None:
    text = workflow_text(choice)
    steps, wrong = checkup.find_workflows({WORKFLOW: text.encode()}, is_ours=False)
    found = [*wrong, *checkup.check_workflow(steps, comments=choice.mode == "comment")]
    assert [each.says for each in found if each.level != "ok"] == []


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_a_workflow_has_the_permissions_and_events_of_the_readme_and_no_other(choice: WorkflowChoice) -> None:
    text = workflow_text(choice)
    told = parsed(text)
    (job,) = told["jobs"].values()
    assert job["permissions"] == {"contents": "write", "issues": "write", "discussions": "read"}
    assert told["permissions"] == {}
    assert "queue" not in told["concurrency"]  # which a company's server does not know
    given = job["steps"][0].get("with", {})
    assert given.get("mode") == ("summary" if choice.mode == "summary" else None)
    assert ("token" in given) is choice.action.startswith("docker://")
    assert "run" in given
    assert list(told[True]) == [
        *("issues", "issue_comment", "discussion", "discussion_comment"),
        *("gollum", "push", "release", "schedule", "workflow_dispatch"),
    ]  # nothing else starts it
    assert (job["runs-on"] == "ubuntu-latest") is choice.hosted


@pytest.mark.slow
@pytest.mark.skipif(not (CHECKS / "zizmor").exists(), reason="the linters are not here: make lint")
def test_linters_pass_all_of_them(tmp_path: Path) -> None:
    folder = tmp_path / ".github/workflows"
    for number, choice in enumerate(CHOICES):
        put(tmp_path, f".github/workflows/{number}.yml", workflow_text(choice))
    schema = (CHECKS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *sorted(folder.iterdir()))
    done = subprocess.run(schema, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    zizmor = (CHECKS / "zizmor", "--offline", "--persona", "pedantic", "--quiet", "--format", "json", tmp_path)
    found = json.loads(subprocess.run(zizmor, capture_output=True, text=True, check=False).stdout)
    tagged = sum(choice.action == TAGGED for choice in CHOICES)
    said = [each["ident"] for each in found if not each["ignored"]]
    assert said == ["unpinned-uses"] * tagged  # a tag can be moved


NAMES = st.text(st.characters(exclude_characters=" ~^:?*[\\\x7f", exclude_categories=("Cc", "Cs")), min_size=1)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(
    NAMES.filter(str.isprintable)
    | st.sampled_from(["true", "on", "1.0", "a: b", "'", '"]', "!x", "${{ x }}", "a#b", "rel/1+x", "a]"])
)
def test_a_default_branch_of_any_name_is_one_pattern_that_means_it(name: str) -> None:
    text = workflow_text(WorkflowChoice(main=name))
    (pattern,) = parsed(text)[True]["push"]["branches"]
    assert re.sub(r"\\(.)", r"\1", pattern) == name
    assert not re.search(r"(?<!\\)[*?+\[\]!]", pattern)
    plain = workflow_text().splitlines()
    assert [at for at, line in enumerate(text.splitlines()) if line != plain[at]] in ([], [13])
    assert len(text.splitlines()) == len(plain)


@pytest.mark.parametrize("name", ["a\u202eb", "a\u0085b", "a\u2028b", "a\nb", "a\udc80"])
def test_a_default_branch_with_what_nobody_sees_is_not_written(name: str) -> None:
    with pytest.raises(UserError, match="contains invisible characters"):
        workflow_text(WorkflowChoice(main=name))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (PINNED, True),
        (TAGGED, True),
        (IMAGE, True),
        ("octo-org/precedent@release/1", True),
        ("octo-org/precedent", False),
        ("octo-org/other@v1", False),
        ("octo-org/precedent@", False),
        ("octo-org/precedent@../x", False),
        ("octo-org/precedent@v1 # x", False),
        ("octo-org/precedent@v1\nrun: x", False),
        ("docker://precedent", False),
        ("./", False),
    ],
)
def test_what_the_step_uses_can_do_nothing_to_the_file(text: str, is_one: bool) -> None:
    assert is_action(text) is is_one
    if is_one:
        steps, _ = checkup.find_workflows(
            {WORKFLOW: workflow_text(WorkflowChoice(action=text)).encode()}, is_ours=False
        )
        assert [step.uses for step in steps] == [text]
