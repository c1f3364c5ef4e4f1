"""The pages list what the code has: settings, inputs, outputs, tools, metrics, templates, variables."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bot.action.outputs import outputs
from bot.comment.render import Renderer
from bot.comment.template_sandbox import _BLOCK_CHARGE, _LOOP_CHARGE, _LOOP_FIELDS, _Environment
from bot.pipeline.reconcile import CommentResult
from bot.server.model import ALL_REPOSITORIES, State
from bot.server.options import ServerOptions, secret_names, variable
from bot.server.pages import metrics
from bot.server.pages.metrics import ReceiveHistogram
from bot.server.storage.counters import DELIVERIES_METRIC
from bot.settings.schema import INPUTS, OVERRIDES, Inputs, describe, rules
from tests.comment.contexts import CASES, GITHUB, NOW
from tests.docs.environment import read_by
from tests.docs.pages import CODE, PAGES, ROOT, blocks, prose, rows, section, text
from tests.server.sample_inbox import NOW as TODAY
from tests.server.sample_inbox import sample_inbox
from tools.reference_docs import ONE_OF, VARIABLES
from tools.settings_docs import pages

SETTINGS = {each.path: each for each in describe()}
OURS = {"PRECEDENT_TOKEN", "PRECEDENT_ORG"}
"""Variables of the command line; tests/server/test_options.py compares those of the server with their page."""

FOR_TESTS = {"PRECEDENT_THOROUGH", "PRECEDENT_TEST_POSTGRES"}
"""Variables that only the tests read."""

ACTION = yaml.safe_load(text("action.yml"))

# -- settings, inputs, outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_and_variables_that_a_page_names_exist_and_modes_are_allowed(page: Path) -> None:
    sections = {path for path, each in SETTINGS.items() if each.default is None}
    setting, codes = re.compile(rf"(?:{'|'.join(sorted(sections))})\.[a-z_]+"), set(CODE.findall(prose(page)))
    assert {code for code in codes if setting.fullmatch(code)} - set(SETTINGS) == set()
    modes = {code.removeprefix("mode: ") for code in codes if code.startswith("mode: ")}
    assert modes <= {"comment", "summary", "off", "comment | summary | off"}
    known = {f"INPUT_{name.upper()}" for name in INPUTS} | OURS | FOR_TESTS
    known |= {variable(name) for name in rules(ServerOptions)} | {f"{variable(name)}_FILE" for name in secret_names()}
    assert {code for code in codes if re.fullmatch(r"(?:PRECEDENT|INPUT)_[A-Z_-]+[A-Z]", code)} <= known


def test_generated_documentation_is_up_to_date() -> None:
    """Settings and their example, inputs, outputs, parameters of tools, variables, the README's workflow."""
    for page, expected in pages().items():
        current = page.read_text(encoding="utf-8").splitlines()
        differences = list(difflib.unified_diff(current, expected.splitlines(), n=0, lineterm=""))[2:]
        assert differences == [], f"{page.name} differs from the code, run `make docs`: {differences[:6]}"


@pytest.mark.parametrize("name", sorted(ACTION["inputs"]))
def test_an_input_is_declared_as_the_code_has_it(name: str) -> None:
    """Its explanation, choices and default, if the code has them."""
    assert name in INPUTS, f"bot/settings/schema.py has no input {name!r}"
    declared, allowed = ACTION["inputs"][name], ()
    if name in OVERRIDES:
        assert declared["description"].startswith(f"Overrides the setting {OVERRIDES[name]}"), name
        allowed = SETTINGS[OVERRIDES[name]].bounds.split(", ") if name == "mode" else ()
        default = ""
    else:
        rule, default_value = rules(Inputs)[name.replace("-", "_")]
        assert declared["description"].partition(ONE_OF)[0] == rule.explanation, name
        allowed = [choice for choice in rule.choices if choice]
        default = str(default_value).lower() if isinstance(default_value, bool) else str(default_value or "")
    documented = declared["description"].partition(ONE_OF)[2].rstrip(".")
    assert documented == ", ".join(allowed), name
    assert declared["default"] == ("${{ github.token }}" if name == "token" else default), name


def test_the_outputs_of_the_action_are_those_that_are_written() -> None:
    written = re.findall(r"^([a-z-]+)<<", outputs(CommentResult(1, "", "silent", "nothing was due"), ""), re.MULTILINE)
    assert written == list(ACTION["outputs"])


def steps_of_ours(page: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each step of the page's workflows that uses Precedent, and its block."""
    for body in blocks(page, "yaml"):
        waiting = [yaml.safe_load(body)]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict) and re.search(r"/precedent[@:]", str(part.get("uses", ""))):
                yield part, body
            waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def test_workflows_in_pages_use_existing_inputs_and_outputs() -> None:
    steps = used = 0
    for page in PAGES:
        for step, body in steps_of_ours(page):
            steps += 1
            assert set(step.get("with", ())) <= set(ACTION["inputs"]), page.name
            named = re.findall(rf"\bsteps\.{step['id']}\.outputs\.([\w-]+)", body) if "id" in step else []
            used += len(named)
            assert set(named) <= set(ACTION["outputs"]), page.name
    assert steps > 5
    assert used > 3


def test_the_threshold_is_that_of_the_code() -> None:
    threshold = SETTINGS["similar.threshold"].default
    assert f"`similar.threshold` of {threshold} " in text("docs/evaluation.md")
    assert f"similarity of {threshold} (" in text("README.md")


# -- metrics -------------------------------------------------------------------------------------------------------


def sample_metrics() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Each metric of the sample day: its kind, labels and help, by the name in the page of metrics."""
    inbox = sample_inbox()
    inbox.counters.add({(DELIVERIES_METRIC, ("issues", "stored")): 1, (metrics.SEARCHES_METRIC, ("found",)): 1})
    inbox.changes.align("/srv/index", ALL_REPOSITORIES)
    families = {}
    for each in text_string_to_metric_families(metrics.render(inbox, ReceiveHistogram(), TODAY).decode()):
        name = f"{each.name}_total" if each.type == "counter" else each.name
        labels = sorted({label for sample in each.samples for label in sample.labels} - {"le"})
        families[name] = (each.type, tuple(labels), each.documentation)
    return families


def test_every_metric_is_documented_correctly_and_no_other() -> None:
    metric_rows = [cells for cells in rows(section("docs/self-hosting.md", "Metrics")) if len(cells) == 4]
    documented = {cells[0].strip("`"): (cells[1], tuple(CODE.findall(cells[2])), cells[3]) for cells in metric_rows}
    existing = sample_metrics()
    differing = {
        name: existing.get(name, "there is none")
        for name in documented.keys() | existing
        if documented.get(name) != existing.get(name)
    }
    assert not differing, f"docs/self-hosting.md, metrics: {differing}"


def test_the_sample_day_has_every_metric() -> None:
    """Metrics that appear only at times must be documented too, so the sample day has every name in the code."""
    tree = ast.parse(text("bot/server/pages/metrics.py"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    metric_calls = [node for node in calls if re.search(r"(?:MetricFamily|_gauge)$", ast.unparse(node.func))]
    literal = {node.args[0].value for node in metric_calls if isinstance(node.args[0], ast.Constant)}
    names = {name if name.startswith("precedent_") else f"precedent_{name}" for name in literal}
    assert names | set(metrics.COUNTERS) | {metrics.STAGES_METRIC, metrics.RECEIVE_METRIC} == set(sample_metrics())


def test_the_values_of_labels_are_documented() -> None:
    documented = set(CODE.findall(section("docs/self-hosting.md", "Metrics")))
    stages = {name for path in (ROOT / "bot").rglob("*.py")
               for name in re.findall(r'\.on_stage\("(\w+)"\)', path.read_text(encoding="utf-8"))}  # fmt: skip
    assert stages
    assert stages | set(get_args(State)) <= documented
    assert {"stored", "repeated", "dropped", "refused", "done", "again", "other"} <= documented


# -- templates -----------------------------------------------------------------------------------------------------

KINDS = {"list of text": list, "lists of items": list, "text": str, "whether": bool}
"""How the page names the type of a value, longer words first."""


def template_values() -> Mapping[str, Any]:
    """The values of a comment's template when no section is empty."""
    renderer = Renderer(links=GITHUB)
    return next(renderer._views(CASES["all_sections"][0], renderer.words, NOW, 9, dict.fromkeys(frame_values(), "")))


def frame_values() -> set[str]:
    """The values of comments and replies apart from the sections."""
    tree = ast.parse(text("bot/comment/render.py"))
    assigned = [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "frame"]  # fmt: skip
    keys = [key for value in assigned if isinstance(value, ast.Dict) for key in value.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant)}


def template_rows(head: str) -> list[list[str]]:
    """The rows of the table in docs/templates.md whose head begins with this word."""
    return rows(text("docs/templates.md").partition(f"| {head} | ")[2].partition("\n\n")[0])


def test_the_values_of_templates_are_documented_and_no_others() -> None:
    documented = {name: cells[1] for cells in template_rows("name") for name in CODE.findall(cells[0])}
    values = template_values()
    assert set(documented) == set(values), "docs/templates.md, what a template sees"
    kinds = {name: next(kind for words, kind in KINDS.items() if words in says) for name, says in documented.items()
             if name != "words"}  # fmt: skip
    assert {name: type(value) for name, value in values.items() if name != "words"} == kinds


def test_the_fields_of_an_item_are_documented_and_no_others() -> None:
    documented = {name for cells in template_rows("of an item") for name in CODE.findall(cells[0])}
    view = template_values()
    for name in ("mentioned", "seen_before", "open_now", "pages"):
        for item in view[name]:
            assert set(item) == documented, f"docs/templates.md, of an item of {name}"


def test_the_words_of_templates_are_documented_and_no_others() -> None:
    (says,) = (cells[1] for cells in template_rows("name") if cells[0] == "`words`")
    assert set(CODE.findall(says)) == set(template_values()["words"]), "docs/templates.md, words"


def test_filters_and_tests_of_templates_are_documented_and_no_others() -> None:
    documented = section("docs/templates.md", "What a template can do").strip().partition("\n\n")[0]
    filters, _, rest = documented.partition("the filters ")[2].partition("the tests ")
    tests, _, loops = rest.partition("in a loop ")
    environment = _Environment({})
    assert set(CODE.findall(filters)) == set(environment.filters) - {_LOOP_CHARGE, _BLOCK_CHARGE}
    assert set(CODE.findall(tests)) == set(environment.tests)
    assert {name.removeprefix("loop.") for name in CODE.findall(loops)} == _LOOP_FIELDS


# -- the environment -----------------------------------------------------------------------------------------------


BY_LIBRARIES = {"REQUESTS_CA_BUNDLE"}
"""Read by the HTTP library (tests/test_company_certificate.py), not by our code."""


def test_every_variable_that_is_read_is_documented_and_no_other() -> None:
    read = set[str]().union(*(read_by(path) for path in (ROOT / "bot").rglob("*.py")))
    documented = {name for names, _, _ in VARIABLES for name in names}
    assert documented == {name for name in read if not name.startswith("PRECEDENT_") or name in OURS} | {
        *BY_LIBRARIES, "INPUT_…",
    }  # fmt: skip
