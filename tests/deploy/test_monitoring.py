"""Alert rules and dashboard use all metrics that the server exports, and no others; each query finds something."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bot.github.budget import Rate
from bot.github.errors import CORE, GRAPHQL
from bot.server.metrics import DELIVERIES, ReceiveHistogram, render
from bot.server.model import State
from bot.server.organisation_changes import OrganisationChanges
from bot.server.organisation_guard import SEARCHES
from bot.server.scope import EVERYTHING
from tests.docs.pages import ROOT, anchors, blocks
from tests.server.gallery import NOW, a_day
from tools.address import address

ALERTS = ROOT / "deploy/alerts.yml"
CASES = ROOT / "tests/deploy/alerts_test.yml"
PAGE = "docs/self-hosting.md"
LEFT_OUT = {"precedent_turns_total": "the former name of precedent_runs_total"}
"""A metric that is exported, but in no alert and no panel → why."""

OF_PROMETHEUS = {"job", "instance", "le"}
"""Labels that Prometheus adds, or that every histogram has."""

SELECTOR = re.compile(r"(precedent_\w+)(\{[^}]*\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")


def exported() -> list[Metric]:
    """Everything that the page of metrics can have, from an inbox in SQLite."""
    ledger, answered = a_day(), ReceiveHistogram()
    answered.observe(0.02)
    for result in ("stored", "refused 403", "refused 503"):
        ledger.count_up({(DELIVERIES, ("issues", result)): 5})
    for result in ("found", "failed"):
        ledger.count_up({(SEARCHES, (result,)): 5})
    OrganisationChanges(ledger.database, ledger.queue, ledger.now).align("/srv/index", EVERYTHING)
    end = datetime.fromtimestamp(NOW / 1000 + 1800, UTC)
    ledger.budgets().store(17, {CORE: Rate(4_000, 5_000, end), GRAPHQL: Rate(4_500, 5_000, end)})
    return list(text_string_to_metric_families(render(ledger, answered, NOW).decode()))


def samples() -> list[Sample]:
    return [sample for family in exported() for sample in family.samples]


def labels() -> dict[str, set[str]]:
    """Name of a metric → the names of its labels."""
    found: dict[str, set[str]] = {}
    for sample in samples():
        found.setdefault(sample.name, set()).update(sample.labels)
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy/dashboard.json").read_text(encoding="utf-8"))
    return found


def targets() -> Iterator[tuple[str, dict[str, Any]]]:
    """The title of each panel, and what it asks."""
    for panel in dashboard()["panels"]:
        yield from ((panel["title"], target) for target in panel["targets"])


def queries() -> dict[str, str]:
    """Where it stands → a query, or the series of a unit test."""
    found = {f"alert {rule['alert']}": rule["expr"] for rule in rules()}
    found |= {f"panel {title}, {target['refId']}": target["expr"] for title, target in targets()}
    found |= {f"variable {each['name']}": each["definition"] for each in variables() if each["type"] == "query"}
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text(encoding="utf-8"))
    found["chart"] = values["autoscaling"]["query"]
    cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
    found |= {
        f"test {case['name']}, {place}": each["series"]
        for case in cases
        for place, each in enumerate(case["input_series"])
    }
    return found


def variables() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dashboard()["templating"]["list"]
    return found


def test_every_metric_and_label_that_is_asked_for_is_exported() -> None:
    known = labels()
    for place, query in queries().items():
        used = SELECTOR.findall(query)
        assert used, place
        for name, matchers in used:
            assert name in known, f"{place}: {name}"
            asked = {label for label, _ in MATCHER.findall(matchers)}
            assert asked <= known[name] | OF_PROMETHEUS, f"{place}: {name} has {known[name]}, not {asked}"
        grouped = {label.strip() for labels in GROUPING.findall(query) for label in labels.split(",")}
        assert grouped <= set().union(*(known[name] for name, _ in used)) | OF_PROMETHEUS, f"{place}: {grouped}"


def test_every_state_that_is_asked_for_exists() -> None:
    asked = [value for query in queries().values() for label, value in MATCHER.findall(query) if label == "state"]
    assert {state for value in asked for state in value.split("|")} - set(get_args(State)) == set()


def test_every_metric_that_is_exported_is_used_or_left_out_with_a_reason() -> None:
    used = {re.sub(r"_(bucket|sum|count)$", "", name) for query in queries_of_operators() for name, _ in query}
    has = {f"{each.name}_total" if each.type == "counter" else each.name for each in exported()}
    assert has - used == set(LEFT_OUT)


def queries_of_operators() -> list[list[tuple[str, str]]]:
    """Without those of unit tests and variables."""
    return [SELECTOR.findall(query) for place, query in queries().items() if place.startswith(("alert", "panel"))]


# -- alerts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_where_the_remedy_stands(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"[1-9]\d*m", rule["for"])
    assert rule["labels"]["severity"] in ("critical", "warning")
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    link, _, heading = notes["runbook_url"].partition("#")
    assert link == f"https://github.com/{address()}/blob/main/{PAGE}"
    assert heading in anchors(ROOT / PAGE)


def test_every_alert_is_tried_when_it_fires_and_when_not() -> None:
    tried: dict[str, set[bool]] = {}
    for case in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]:
        for each in case["alert_rule_test"]:
            tried.setdefault(each["alertname"], set()).add(bool(each["exp_alerts"]))
    assert tried == {rule["alert"]: {True, False} for rule in rules()}


def promtool(*words: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not here: it is in Debian's package prometheus")
    done = subprocess.run(["promtool", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should() -> None:
    promtool("test", "rules", str(CASES))


def test_prometheus_takes_what_the_page_shows(tmp_path: Path) -> None:
    shown = [yaml.safe_load(body) for body in blocks(PAGE, "yaml") if "scrape_configs:" in body]
    assert len(shown) == 2
    (tmp_path / "precedent-alerts.yml").write_bytes(ALERTS.read_bytes())
    (tmp_path / "precedent-password").write_text("open sesame, please", encoding="utf-8")
    for config in shown:
        for each in config["scrape_configs"]:
            each.pop("kubernetes_sd_configs", None)  # Debian leaves it out of its Prometheus
            each["basic_auth"]["password_file"] = f"{tmp_path}/{Path(each['basic_auth']['password_file']).name}"
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        promtool("check", "config", str(tmp_path / "prometheus.yml"))


# -- the dashboard -------------------------------------------------------------------------------------------------


def test_the_data_source_is_a_variable_everywhere() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert [each["name"] for each in variables() if each["type"] == "datasource"] == ["datasource"]
    assert all(each["datasource"] == chosen for each in variables() if each["type"] == "query")
    for panel in dashboard()["panels"]:
        assert panel["datasource"] == chosen, panel["title"]
        assert all(target["datasource"] == chosen for target in panel["targets"]), panel["title"]


def test_every_query_is_of_the_chosen_jobs() -> None:
    for title, target in targets():
        assert all('job=~"$job"' in matchers for _, matchers in SELECTOR.findall(target["expr"])), title


def test_a_legend_names_a_label_that_its_query_keeps() -> None:
    for title, target in targets():
        kept = {label.strip() for labels in GROUPING.findall(target["expr"]) for label in labels.split(",")}
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) == kept - {"le"}, title


def test_every_panel_says_what_it_shows_in_a_place_of_its_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["description"].endswith(".") for panel in panels)
    taken = set()
    for place in (panel["gridPos"] for panel in panels):
        assert place["x"] + place["w"] <= 24
        columns, lines = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = set(itertools.product(columns, lines))
        assert not taken & cells, place
        taken |= cells


def growing(samples: list[Sample]) -> list[dict[str, str]]:
    """Half an hour of the samples, as promtool takes it: counters grow, gauges stay."""
    found = []
    for sample in samples:
        labels = ",".join(f'{name}="{value}"' for name, value in {**sample.labels, "job": "bot"}.items())
        grows = re.search(r"_(total|bucket|sum|count)$", sample.name)
        values = f"{sample.value}{'+1' if grows else '+0'}x30"
        found.append({"series": f"{sample.name}{{{labels}}}", "values": values})
    return found


def test_every_query_finds_something_in_what_a_server_exports(tmp_path: Path) -> None:
    """Each becomes an alert that fires if there is a number, which promtool can tell."""
    asked = [target["expr"].replace("$__rate_interval", "5m").replace("$job", ".+") for _, target in targets()]
    names = [f"query{place}" for place in range(len(asked))]
    made = [{"alert": name, "expr": f"count({query} >= 0) > 0"} for name, query in zip(names, asked, strict=True)]
    fires = [{"eval_time": "20m", "alertname": name, "exp_alerts": [{"exp_labels": {}}]} for name in names]
    case = {"interval": "1m", "input_series": growing(samples()), "alert_rule_test": fires}
    rules, tests = tmp_path / "rules.yml", tmp_path / "tests.yml"
    rules.write_text(json.dumps({"groups": [{"name": "queries", "rules": made}]}), encoding="utf-8")
    tests.write_text(json.dumps({"rule_files": [str(rules)], "tests": [case]}), encoding="utf-8")
    promtool("test", "rules", str(tests))
