"""Alert rules and dashboard use all metrics that the server exports, and no others; each query finds data."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bot.github.budget import Rate
from bot.github.errors import CORE, GRAPHQL
from bot.server.model import ALL_REPOSITORIES, State
from bot.server.organisation.guard import SEARCHES_METRIC
from bot.server.pages.metrics import ReceiveHistogram, render
from bot.server.storage.counters import DELIVERIES_METRIC
from tests.docs.pages import ROOT, anchors, blocks
from tests.server.sample_inbox import NOW, sample_inbox
from tools.address import address

ALERTS = ROOT / "deploy/alerts.yml"
CASES = ROOT / "tests/deploy/alerts_test.yml"
PAGE = "docs/self-hosting.md"
PROMETHEUS_LABELS = {"job", "instance", "le"}
"""Labels that Prometheus adds or that every histogram has."""

SELECTOR = re.compile(r"(precedent_\w+)(\{[^}]*\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")


@cache
def exported_metrics() -> list[Metric]:
    """Everything that the metrics page can contain, from an inbox in SQLite."""
    inbox, histogram = sample_inbox(), ReceiveHistogram()
    histogram.observe(0.02)
    for result in ("stored", "refused 403", "refused 503"):
        inbox.counters.add({(DELIVERIES_METRIC, ("issues", result)): 5})
    for result in ("found", "failed"):
        inbox.counters.add({(SEARCHES_METRIC, (result,)): 5})
    inbox.changes.align("/srv/index", ALL_REPOSITORIES)
    end = datetime.fromtimestamp(NOW / 1000 + 1800, UTC)
    inbox.limits.store(17, {CORE: Rate(4_000, 5_000, end), GRAPHQL: Rate(4_500, 5_000, end)})
    return list(text_string_to_metric_families(render(inbox, histogram, NOW).decode()))


def samples() -> list[Sample]:
    return [sample for family in exported_metrics() for sample in family.samples]


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    group_rules: list[dict[str, Any]] = group["rules"]
    return group_rules


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "deploy/dashboard.json").read_text(encoding="utf-8"))
    return content


def targets() -> Iterator[tuple[str, dict[str, Any]]]:
    """The title of each panel, and its query."""
    for panel in dashboard()["panels"]:
        yield from ((panel["title"], target) for target in panel["targets"])


def queries() -> dict[str, str]:
    """Where it is used → a query, or the series of a unit test."""
    by_source = {f"alert {rule['alert']}": rule["expr"] for rule in rules()}
    by_source |= {f"panel {title}, {target['refId']}": target["expr"] for title, target in targets()}
    by_source |= {f"variable {each['name']}": each["definition"] for each in variables() if each["type"] == "query"}
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text(encoding="utf-8"))
    by_source["chart"] = values["autoscaling"]["query"]
    cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
    by_source |= {
        f"test {case['name']}, {index}": each["series"]
        for case in cases
        for index, each in enumerate(case["input_series"])
    }
    return by_source


def variables() -> list[dict[str, Any]]:
    definitions: list[dict[str, Any]] = dashboard()["templating"]["list"]
    return definitions


def test_every_metric_label_and_state_in_a_query_is_exported() -> None:
    exported: dict[str, set[str]] = {}
    for sample in samples():
        exported.setdefault(sample.name, set()).update(sample.labels)
    for source, query in queries().items():
        used = SELECTOR.findall(query)
        assert used, source
        for name, matchers in used:
            assert name in exported, f"{source}: {name}"
            for label, value in MATCHER.findall(matchers):
                assert label in exported[name] | PROMETHEUS_LABELS, f"{source}: {name} has no {label}"
                assert label != "state" or set(value.split("|")) <= set(get_args(State)), f"{source}: {value}"
        grouped = {label.strip() for label_list in GROUPING.findall(query) for label in label_list.split(",")}
        assert grouped <= set().union(*(exported[name] for name, _ in used)) | PROMETHEUS_LABELS, f"{source}: {grouped}"


def test_every_exported_metric_is_in_an_alert_or_a_panel() -> None:
    of_operators = [query for source, query in queries().items() if source.startswith(("alert", "panel"))]
    used = {re.sub(r"_(bucket|sum|count)$", "", name) for query in of_operators for name, _ in SELECTOR.findall(query)}
    exported = {f"{each.name}_total" if each.type == "counter" else each.name for each in exported_metrics()}
    assert exported - used == set()


# -- alerts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_every_alert_has_a_severity_and_links_to_its_remedy(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"[1-9]\d*m", rule["for"])
    assert rule["labels"]["severity"] in ("critical", "warning")
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    link, _, heading = notes["runbook_url"].partition("#")
    assert link == f"https://github.com/{address()}/blob/main/{PAGE}"
    assert heading in anchors(ROOT / PAGE)


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    outcomes: dict[str, set[bool]] = {}
    for case in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]:
        for each in case["alert_rule_test"]:
            outcomes.setdefault(each["alertname"], set()).add(bool(each["exp_alerts"]))
    assert outcomes == {rule["alert"]: {True, False} for rule in rules()}


def promtool(*words: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not here: it is in Debian's package prometheus")
    result = subprocess.run(["promtool", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_each_alert_fires_when_it_should() -> None:
    promtool("test", "rules", str(CASES))


def test_prometheus_accepts_the_configuration_in_the_documentation(tmp_path: Path) -> None:
    configs = [yaml.safe_load(body) for body in blocks(PAGE, "yaml") if "scrape_configs:" in body]
    assert len(configs) == 2
    (tmp_path / "precedent-alerts.yml").write_bytes(ALERTS.read_bytes())
    (tmp_path / "precedent-password").write_text("open sesame, please", encoding="utf-8")
    for config in configs:
        for each in config["scrape_configs"]:
            each.pop("kubernetes_sd_configs", None)  # Debian leaves it out of its Prometheus
            each["basic_auth"]["password_file"] = f"{tmp_path}/{Path(each['basic_auth']['password_file']).name}"
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        promtool("check", "config", str(tmp_path / "prometheus.yml"))


# -- the dashboard -------------------------------------------------------------------------------------------------


def test_every_panel_is_described_overlaps_no_other_and_shows_the_chosen_jobs_of_the_chosen_source() -> None:
    data_source = {"type": "prometheus", "uid": "${datasource}"}
    assert [each["name"] for each in variables() if each["type"] == "datasource"] == ["datasource"]
    assert all(each["datasource"] == data_source for each in variables() if each["type"] == "query")
    panels, taken = dashboard()["panels"], set()
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert [each["datasource"] for each in (panel, *panel["targets"]) if each["datasource"] != data_source] == []
        area = panel["gridPos"]
        assert area["x"] + area["w"] <= 24
        columns, lines = range(area["x"], area["x"] + area["w"]), range(area["y"], area["y"] + area["h"])
        cells = set(itertools.product(columns, lines))
        assert not taken & cells, area
        taken |= cells
    for title, target in targets():
        assert all('job=~"$job"' in matchers for _, matchers in SELECTOR.findall(target["expr"])), title
        kept_labels = {label.strip() for labels in GROUPING.findall(target["expr"]) for label in labels.split(",")}
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) == kept_labels - {"le"}, title


def growing_series(samples: list[Sample]) -> list[dict[str, str]]:
    """Half an hour of the samples, as promtool expects them: counters grow, gauges stay."""
    series = []
    for sample in samples:
        label_text = ",".join(f'{name}="{value}"' for name, value in {**sample.labels, "job": "bot"}.items())
        grows = re.search(r"_(total|bucket|sum|count)$", sample.name)
        values = f"{sample.value}{'+1' if grows else '+0'}x30"
        series.append({"series": f"{sample.name}{{{label_text}}}", "values": values})
    return series


def test_every_query_finds_data_in_what_a_server_exports(tmp_path: Path) -> None:
    """Each query becomes an alert that fires if it returns a number, which promtool can check."""
    expressions = [target["expr"].replace("$__rate_interval", "5m").replace("$job", ".+") for _, target in targets()]
    names = [f"query{index}" for index in range(len(expressions))]
    alert_rules = [
        {"alert": name, "expr": f"count({query} >= 0) > 0"} for name, query in zip(names, expressions, strict=True)
    ]
    fires = [{"eval_time": "20m", "alertname": name, "exp_alerts": [{"exp_labels": {}}]} for name in names]
    case = {"interval": "1m", "input_series": growing_series(samples()), "alert_rule_test": fires}
    rules, tests = tmp_path / "rules.yml", tmp_path / "tests.yml"
    rules.write_text(json.dumps({"groups": [{"name": "queries", "rules": alert_rules}]}), encoding="utf-8")
    tests.write_text(json.dumps({"rule_files": [str(rules)], "tests": [case]}), encoding="utf-8")
    promtool("test", "rules", str(tests))
