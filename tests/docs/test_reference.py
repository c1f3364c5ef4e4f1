"""What the pages list is what the code has: settings, inputs, outputs, tools, metrics, templates, variables."""

from __future__ import annotations

import ast
import difflib
import json
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
from bot.pipeline.publish import CommentResult
from bot.ranking.weights import MODEL_NAMES
from bot.server import metrics
from bot.server.metrics import ReceiveHistogram
from bot.server.model import State
from bot.server.organisation_changes import OrganisationChanges
from bot.server.scope import EVERYTHING
from bot.settings.schema import INPUTS, OVERRIDES, Inputs, describe, given_inputs, read_inputs, rules
from tests.comment.contexts import CASES, GITHUB, NOW
from tests.docs.environment import read_by
from tests.docs.pages import CODE, PAGES, ROOT, blocks, prose, rows, section, table, text
from tests.server.gallery import NOW as TODAY
from tests.server.gallery import a_day
from tools.reference_docs import ONE_OF, PARAMETERS, VARIABLES, parameters
from tools.settings_docs import WEIGHTS, pages

SETTINGS = {each.path: each for each in describe()}
ACTION = yaml.safe_load(text("action.yml"))

# -- settings, inputs, outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    sections = {path for path, each in SETTINGS.items() if each.default is None}
    shape = re.compile(rf"(?:{'|'.join(sorted(sections))})\.[a-z_]+")
    codes = CODE.findall(prose(page))
    assert [code for code in codes if shape.fullmatch(code) and code not in SETTINGS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_setting_with_a_value_is_one_that_is_allowed(page: Path) -> None:
    codes = CODE.findall(prose(page))
    modes = {code.removeprefix("mode: ") for code in codes if code.startswith("mode: ")}
    assert modes - {"comment | summary | off"} <= {"comment", "summary", "off"}


def test_the_page_of_settings_lists_no_setting_that_is_not_there() -> None:
    listed = table(text("docs/settings.md").partition("## Inputs")[0])
    assert listed == {path for path, each in SETTINGS.items() if each.default is not None}


def test_what_is_written_from_the_code_is_as_the_code_has_it() -> None:
    """Settings and their example, inputs, outputs, parameters of tools, variables, the README's workflow."""
    for page, expected in pages().items():
        there = page.read_text(encoding="utf-8").splitlines()
        differences = list(difflib.unified_diff(there, expected.splitlines(), n=0, lineterm=""))[2:]
        assert differences == [], f"{page.name} differs from the code, run `make docs`: {differences[:6]}"


@pytest.mark.parametrize("name", sorted(ACTION["inputs"]))
def test_an_input_is_declared_as_the_code_has_it(name: str) -> None:
    """Its explanation, what it may be, and its default, where the code has them."""
    assert name in INPUTS, f"bot/settings/schema.py has no input {name!r}"
    declared, allowed = ACTION["inputs"][name], ()
    if name in OVERRIDES:
        assert declared["description"].startswith(f"Overrides the setting {OVERRIDES[name]}"), name
        allowed = SETTINGS[OVERRIDES[name]].bounds.split(", ") if name == "mode" else ()
        default = ""
    else:
        rule, given = rules(Inputs)[name.replace("-", "_")]
        assert declared["description"].partition(ONE_OF)[0] == rule.explanation, name
        allowed = [choice for choice in rule.choices if choice]
        default = str(given).lower() if isinstance(given, bool) else str(given or "")
    told = declared["description"].partition(ONE_OF)[2].rstrip(".")
    assert told == ", ".join(allowed), name
    assert declared["default"] == ("${{ github.token }}" if name == "token" else default), name


def test_every_input_of_the_code_is_declared() -> None:
    assert sorted(ACTION["inputs"]) == sorted(INPUTS)


def test_an_event_that_gives_no_such_input_is_no_dry_run() -> None:
    environ = {"INPUT_DRY-RUN": "", "INPUT_RUN": "", "INPUT_ISSUE": ""}
    assert read_inputs(given_inputs(environ)) == Inputs()
    assert not read_inputs({"dry-run": ""}).dry_run
    assert not read_inputs({"dry-run": "false"}).dry_run
    assert read_inputs({"dry-run": "true"}).dry_run


@pytest.mark.parametrize("part", ["inputs", "outputs"])
def test_the_page_of_settings_explains_all_inputs_and_outputs(part: str) -> None:
    assert table(section("docs/settings.md", f"{part.capitalize()} of the action")) == set(ACTION[part])


def test_the_outputs_of_the_action_are_those_that_are_written() -> None:
    written = re.findall(r"^([a-z-]+)<<", outputs(CommentResult(1, "", "silent", "nothing was due"), ""), re.MULTILINE)
    assert written == list(ACTION["outputs"])


def steps_of_ours(page: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each step of a workflow of the page that uses Precedent, and the block that it is in."""
    for body in blocks(page, "yaml"):
        waiting = [yaml.safe_load(body)]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict) and re.search(r"/precedent[@:]", str(part.get("uses", ""))):
                yield part, body
            waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def test_workflows_of_pages_give_inputs_and_use_outputs_that_there_are() -> None:
    met = used = 0
    for page in PAGES:
        for step, body in steps_of_ours(page):
            met += 1
            assert set(step.get("with", ())) <= set(ACTION["inputs"]), page.name
            named = re.findall(rf"\bsteps\.{step['id']}\.outputs\.([\w-]+)", body) if "id" in step else []
            used += len(named)
            assert set(named) <= set(ACTION["outputs"]), page.name
    assert met > 5
    assert used > 3


# -- the threshold ---------------------------------------------------------------------------------------------------


def test_the_threshold_is_that_of_the_code() -> None:
    threshold = SETTINGS["troubleshooting.similarity_threshold"].default
    assert f"`troubleshooting.similarity_threshold` of {threshold} " in text("docs/evaluation.md")
    assert f"similarity of {threshold} (" in text("README.md")


@pytest.mark.parametrize("part", ["order", "confidence"])
def test_the_weights_are_those_that_are_shipped(part: str) -> None:
    begin, end = f"<!-- {WEIGHTS} -->", f"<!-- /{WEIGHTS} -->"
    tables = text("docs/evaluation.md").partition(begin)[2].partition(end)[0]
    assert tables, f"docs/evaluation.md has no {begin} … {end} for `make docs` to fill"
    told = tables.split("The confidence in a hit:")[part == "confidence"]
    models = json.loads(text("bot/ranking/ranking.json"))
    weights = [models[kind][part] for kind in MODEL_NAMES]
    assert {name.strip("`"): tuple(cells) for name, _, *cells in rows(told)} == {
        name: tuple(f"{model[name]:.2f}".replace("-", "−") if name in model else "–" for model in weights)
        for name in {name for model in weights for name in model}
    }


# -- tools for agents ----------------------------------------------------------------------------------------------


def test_the_parameters_of_the_tools_are_told_as_they_are() -> None:
    told = text("docs/mcp.md").partition(f"<!-- {PARAMETERS} -->")[2].partition(f"<!-- /{PARAMETERS} -->")[0]
    assert rows(told) == rows(parameters()), "docs/mcp.md differs from the tools: run `make docs`"


# -- metrics -------------------------------------------------------------------------------------------------------


def families() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Each metric of a day: its kind, its labels and its help, by the name that the page of metrics has."""
    ledger = a_day()
    ledger.count_up({(metrics.DELIVERIES, ("issues", "stored")): 1, (metrics.SEARCHES, ("found",)): 1})
    OrganisationChanges(ledger.database, ledger.queue, ledger.now).align("/srv/index", EVERYTHING)
    found = {}
    for each in text_string_to_metric_families(metrics.render(ledger, ReceiveHistogram(), TODAY).decode()):
        name = f"{each.name}_total" if each.type == "counter" else each.name
        labels = sorted({label for sample in each.samples for label in sample.labels} - {"le"})
        found[name] = (each.type, tuple(labels), each.documentation)
    return found


def test_every_metric_is_documented_as_it_is_and_no_other() -> None:
    listed = [cells for cells in rows(section("docs/self-hosting.md", "Metrics")) if len(cells) == 4]
    told = {cells[0].strip("`"): (cells[1], tuple(CODE.findall(cells[2])), cells[3]) for cells in listed}
    has = families()
    wrong = {name: has.get(name, "there is none") for name in told.keys() | has if told.get(name) != has.get(name)}
    assert not wrong, f"docs/self-hosting.md, metrics: {wrong}"


def test_a_day_has_every_metric_that_there_can_be() -> None:
    """What is shown only at times must not be missing in the documentation: so every name in the code was met."""
    tree = ast.parse(text("bot/server/metrics.py"))
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    makers = [node for node in made if re.search(r"(?:MetricFamily|_gauge)$", ast.unparse(node.func))]
    literal = {node.args[0].value for node in makers if isinstance(node.args[0], ast.Constant)}
    names = {name if name.startswith("precedent_") else f"precedent_{name}" for name in literal}
    assert names | set(metrics.COUNTERS) | {metrics.STAGES, metrics.RECEIVED} == set(families())


def test_the_values_of_labels_are_told() -> None:
    told = set(CODE.findall(section("docs/self-hosting.md", "Metrics")))
    watched = {name for path in (ROOT / "bot").rglob("*.py")
               for name in re.findall(r'\.on_stage\("(\w+)"\)', path.read_text(encoding="utf-8"))}  # fmt: skip
    assert watched
    assert watched | set(get_args(State)) <= told
    assert {"stored", "repeated", "dropped", "refused", "done", "again", "other"} <= told


# -- templates -----------------------------------------------------------------------------------------------------

KINDS = {"list of text": list, "lists of items": list, "text": str}
"""How the kind of a value is told, the longer words first."""


def seen() -> Mapping[str, Any]:
    """What a template of a comment is given when every section has something."""
    renderer = Renderer(links=GITHUB)
    return next(renderer._views(CASES["all_sections"][0], renderer.words, NOW, 9, dict.fromkeys(frame(), "")))


def frame() -> set[str]:
    """What comments and replies are given beside the sections."""
    tree = ast.parse(text("bot/comment/render.py"))
    made = [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "frame"]  # fmt: skip
    keys = [key for value in made if isinstance(value, ast.Dict) for key in value.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant)}


def listed(head: str) -> list[list[str]]:
    """The rows of the table of docs/templates.md that begins so."""
    return rows(text("docs/templates.md").partition(f"| {head} | ")[2].partition("\n\n")[0])


def test_what_templates_are_given_is_documented_and_nothing_else() -> None:
    told = {name: cells[1] for cells in listed("name") for name in CODE.findall(cells[0])}
    given = seen()
    assert set(told) == set(given), "docs/templates.md, what a template sees"
    kinds = {name: next(kind for words, kind in KINDS.items() if words in says) for name, says in told.items()
             if name != "words"}  # fmt: skip
    assert {name: type(value) for name, value in given.items() if name != "words"} == kinds


def test_what_an_item_has_is_documented_and_nothing_else() -> None:
    told = {name for cells in listed("of an item") for name in CODE.findall(cells[0])}
    view = seen()
    for name in ("mentioned", "seen_before", "open_now", "pages"):
        for item in view[name]:
            assert set(item) == told, f"docs/templates.md, of an item of {name}"


def test_the_words_of_templates_are_documented_and_no_others() -> None:
    (says,) = (cells[1] for cells in listed("name") if cells[0] == "`words`")
    assert set(CODE.findall(says)) == set(seen()["words"]), "docs/templates.md, words"


def test_filters_and_tests_of_templates_are_documented_and_no_others() -> None:
    told = section("docs/templates.md", "What a template can do").strip().partition("\n\n")[0]
    filters, _, rest = told.partition("the filters ")[2].partition("the tests ")
    tests, _, loops = rest.partition("in a loop ")
    has = _Environment({})
    assert set(CODE.findall(filters)) == set(has.filters) - {_LOOP_CHARGE, _BLOCK_CHARGE}
    assert set(CODE.findall(tests)) == set(has.tests)
    assert {name.removeprefix("loop.") for name in CODE.findall(loops)} == _LOOP_FIELDS


# -- the environment -----------------------------------------------------------------------------------------------

OURS = {"PRECEDENT_TOKEN", "PRECEDENT_ORG"}
"""Of the command line; the server has its own page."""

BY_LIBRARIES = {"REQUESTS_CA_BUNDLE"}
"""Read by the library that speaks to GitHub (tests/test_company_server.py), and by no line of ours."""


def test_every_variable_that_is_read_is_documented_and_no_other() -> None:
    read = set[str]().union(*(read_by(path) for path in (ROOT / "bot").rglob("*.py")))
    told = {name for names, _, _ in VARIABLES for name in names}
    assert told == {name for name in read if not name.startswith("PRECEDENT_") or name in OURS} | {
        *BY_LIBRARIES, "INPUT_…",
    }  # fmt: skip
    assert table(section("docs/settings.md", "Variables of the environment")) == told, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_that_pages_name_are_read(page: Path) -> None:
    shape = re.compile(r"(?:PRECEDENT|INPUT)_[A-Z_-]+[A-Z]")
    known = {f"INPUT_{name.upper()}" for name in INPUTS} | OURS | options()
    named = {code for code in CODE.findall(prose(page)) if shape.fullmatch(code)}
    assert named - known <= FOR_TESTS, page.name


def options() -> set[str]:
    """The variables of the server, which tests/server/test_options.py holds to their page."""
    from bot.server.options import ServerOptions, secret_names, variable

    return {variable(name) for name in rules(ServerOptions)} | {f"{variable(name)}_FILE" for name in secret_names()}


FOR_TESTS = {"PRECEDENT_THOROUGH", "PRECEDENT_TEST_POSTGRES"}
"""Read by the tests alone."""


def test_variables_are_found_however_they_are_read(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        'import os\nos.environ["ONE"], os.environ.get("two"), os.getenv("THREE")\n"FOUR_4" in os.environ\n'
        'for name in ("FIVE_A", "six_proxy"): os.environ.get(name)\nchild = {"SEVEN_B": "1"}\n'
    )
    assert read_by(module) == {"ONE", "two", "THREE", "FOUR_4", "FIVE_A", "SIX_PROXY"}
    module.write_text('TABLE = ("FIVE_A",)\n')
    assert read_by(module) == set()
