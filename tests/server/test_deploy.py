"""What is deployed agrees with the code: the App's manifest, the compose file, the unit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from bot.github.app import EVENTS, PERMISSIONS
from bot.server.options import Options, is_secret, variable
from bot.server.receive import HOUSE, TOLD
from bot.settings import rules

ROOT = Path(__file__).resolve().parents[2]
TOLD_ANYWAY = {"installation", "installation_repositories"}
"""Events that every App gets, and none can subscribe to."""


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.fixture
def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text("deploy/app-manifest.json"))
    return found


def options_of(content: str) -> set[str]:
    return set(re.findall(r"PRECEDENT_[A-Z_]+", content))


def test_the_app_asks_for_what_its_tokens_have_and_nothing_more(manifest: dict[str, Any]) -> None:
    assert manifest["default_permissions"] == PERMISSIONS


def test_the_app_hears_of_what_the_server_receives_and_nothing_else(manifest: dict[str, Any]) -> None:
    assert set(manifest["default_events"]) == set(EVENTS) == (TOLD | HOUSE) - TOLD_ANYWAY


def test_nobody_else_can_install_the_app(manifest: dict[str, Any]) -> None:
    assert manifest["public"] is False


def test_the_address_in_the_documentation_fills_in_what_the_manifest_says(manifest: dict[str, Any]) -> None:
    (address,) = re.findall(r"^https://github.com/settings/apps/new\?\S+$", text("docs/self-hosting.md"), re.MULTILINE)
    pairs = parse_qsl(urlsplit(address).query)
    given = dict(pairs)
    assert [value for name, value in pairs if name == "events[]"] == manifest["default_events"]
    assert {name: given[name] for name in PERMISSIONS} == manifest["default_permissions"]
    assert given["webhook_url"] == manifest["hook_attributes"]["url"]
    assert (given["name"], given["url"], given["public"]) == (manifest["name"], manifest["url"], "false")
    assert "secret" not in address


@pytest.mark.parametrize("path", ["deploy/compose.yml", "deploy/precedent.service", "deploy/env.example"])
def test_every_variable_that_is_set_is_an_option(path: str) -> None:
    known = {variable(name) for name in rules(Options)}
    known |= {f"{variable(name)}_FILE" for name in rules(Options) if is_secret(name)}
    assert options_of(text(path)) <= known


def test_the_containers_can_do_little(manifest: dict[str, Any]) -> None:
    services = yaml.safe_load(text("deploy/compose.yml"))["services"]
    for name in ("bot", "worker"):
        assert services[name]["read_only"] is True
        assert services[name]["user"] == "10001:10001"
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["build"]["args"] == {"SERVER": "1"}
        secrets = {value.rpartition("/")[2] for value in services[name]["environment"].values() if "/secrets/" in value}
        assert secrets == set(services[name]["secrets"])
    assert services["bot"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in services["db"]


def test_what_stops_the_server_waits_longer_than_it_drains() -> None:
    compose = yaml.safe_load(text("deploy/compose.yml"))["services"]
    assert compose["bot"]["stop_grace_period"] == "15s"
    assert "\nTimeoutStopSec=15\n" in text("deploy/precedent.service")
    assert "\nKillMode=mixed\n" in text("deploy/precedent.service")


def test_the_files_that_the_documentation_makes_are_those_that_are_mounted() -> None:
    declared = yaml.safe_load(text("deploy/compose.yml"))["secrets"]
    files = {each["file"].removeprefix("./secrets/") for each in declared.values()}
    page = text("docs/self-hosting.md")
    made = {*re.findall(r"> secrets/([\w.-]+)", page), *re.findall(r"~/([\w.-]+)", page)}
    assert files == made


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_the_unit_is_one(tmp_path: Path) -> None:
    unit = tmp_path / "precedent.service"
    changed = text("deploy/precedent.service").replace("WorkingDirectory=/opt/precedent\n", "")
    changed = changed.replace("/opt/precedent/.venv/bin/python -m bot serve", "/bin/true")
    unit.write_text(changed, encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
