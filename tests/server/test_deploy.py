"""What is deployed agrees with the code: the App's manifest, the compose file, the unit; and the image runs by them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from bot.github.app import EVENTS, OPTIONAL, PERMISSIONS
from bot.server.options import ServerOptions, is_secret, variable
from bot.server.webhook import OF_INSTALLATION, OF_REPOSITORY
from bot.settings.schema import rules
from tests.container.engine import Engine
from tests.server.contained import IMAGE, Contained, service
from tests.server.stage import SLUG

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
    assert manifest["default_permissions"] == PERMISSIONS | dict.fromkeys(OPTIONAL, "read")


def test_the_app_hears_of_what_the_server_receives_and_nothing_else(manifest: dict[str, Any]) -> None:
    heard = {*EVENTS, "discussion", "discussion_comment"}
    assert set(manifest["default_events"]) == heard == (OF_REPOSITORY | OF_INSTALLATION) - TOLD_ANYWAY


def test_nobody_else_can_install_the_app(manifest: dict[str, Any]) -> None:
    assert manifest["public"] is False


def test_the_address_in_the_documentation_fills_in_what_the_manifest_says(manifest: dict[str, Any]) -> None:
    (address,) = re.findall(r"^https://github.com/settings/apps/new\?\S+$", text("docs/self-hosting.md"), re.MULTILINE)
    pairs = parse_qsl(urlsplit(address).query)
    given = dict(pairs)
    assert [value for name, value in pairs if name == "events[]"] == manifest["default_events"]
    assert {name: given[name] for name in PERMISSIONS | OPTIONAL} == manifest["default_permissions"]
    assert given["webhook_url"] == manifest["hook_attributes"]["url"]
    assert (given["name"], given["url"], given["public"]) == (manifest["name"], manifest["url"], "false")
    assert "secret" not in address


@pytest.mark.parametrize("path", ["deploy/compose.yml", "deploy/precedent.service", "deploy/env.example"])
def test_every_variable_that_is_set_is_an_option(path: str) -> None:
    known = {variable(name) for name in rules(ServerOptions)}
    known |= {f"{variable(name)}_FILE" for name in rules(ServerOptions) if is_secret(name)}
    assert options_of(text(path)) <= known


def test_the_containers_can_do_little(manifest: dict[str, Any]) -> None:
    services = yaml.safe_load(text("deploy/compose.yml"))["services"]
    for name in ("bot", "worker"):
        assert services[name]["read_only"] is True
        assert services[name]["user"] == "10001:10001"
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["build"]["args"] == {"SERVER": "1", "TRACES": "${TRACES:-0}", "ORG": "${ORG:-0}"}
        secrets = {value.rpartition("/")[2] for value in services[name]["environment"].values() if "/secrets/" in value}
        assert secrets == set(services[name]["secrets"])
    assert services["bot"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in services["db"]


@pytest.mark.parametrize(
    "given", [[], ["SERVER"], ["SERVER", "TRACES"], ["SERVER", "ORG"], ["SERVER", "TRACES", "ORG"]]
)
def test_make_builds_the_images_that_the_compose_file_builds(given: list[str]) -> None:
    assert set(given) <= set(service("bot")["build"]["args"])
    make = ["make", "--dry-run", "image", "SEMANTIC=0", *(f"{name}=1" for name in given)]
    told = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"--build-arg (\S+)", told) == [f"{name}=1" for name in given]


def test_the_upgrade_of_the_documentation_takes_a_compose_file_that_was_changed_as_it_says(tmp_path: Path) -> None:
    (pull,) = re.findall(r"`git (pull [^`]+)`", text("docs/self-hosting.md"))
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"

    def git(folder: Path, *words: str) -> None:
        who = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.com")
        subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)

    (theirs / "deploy").mkdir(parents=True)
    file = theirs / "deploy/compose.yml"
    file.write_text(text("deploy/compose.yml"), encoding="utf-8")
    git(theirs, "init")
    git(theirs, "add", ".")
    git(theirs, "commit", "--message", "one")
    git(tmp_path, "clone", str(theirs), str(ours))
    file.write_text(file.read_text(encoding="utf-8").replace("pids_limit: 1024", "pids_limit: 2048"), encoding="utf-8")
    git(theirs, "commit", "--all", "--message", "another")
    mine = ours / "deploy/compose.yml"
    changed, many = re.subn(r"#(.*webhook.secret.old)", r"\1", mine.read_text(encoding="utf-8"), flags=re.IGNORECASE)
    assert many == 4
    mine.write_text(changed, encoding="utf-8")
    git(ours, *pull.split())
    assert mine.read_text(encoding="utf-8") == changed.replace("pids_limit: 1024", "pids_limit: 2048")


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


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program and a folder that are there."""
    made = tmp_path / "precedent.service"
    changed = text("deploy/precedent.service").replace("WorkingDirectory=/opt/precedent\n", "")
    made.write_text(changed.replace("/opt/precedent/.venv/bin/python -m bot serve", "/bin/true"), encoding="utf-8")
    return made


def analyzed(*words: str) -> tuple[int, str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not here")
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_unit_is_one(unit: Path) -> None:
    assert analyzed("verify", str(unit)) == (0, "")


def test_the_unit_lets_the_server_do_little(unit: Path) -> None:
    """In tenths, by systemd's own measure: 100 is a service that may do everything."""
    assert analyzed("security", "--offline=true", "--threshold=20", str(unit))[0] == 0


def test_the_commands_of_the_documentation_run_what_the_unit_runs() -> None:
    (folder,) = re.findall(r"^WorkingDirectory=(\S+)$", text("deploy/precedent.service"), re.MULTILINE)
    page = text("docs/self-hosting.md")
    assert f"git -C {folder} pull --ff-only" in page
    assert f"ExecStart={folder}/.venv/bin/python -m bot serve\n" in text("deploy/precedent.service")
    assert f"{folder}/.venv/bin/python -m pip install" in page
    assert "\n.venv/bin/python -m bot serve\n" in page


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    given = service("bot")["build"]["args"]  # "${TRACES:-0}" is what compose makes of an empty environment
    default = re.compile(r"[$][{][A-Z]+:-(.*)[}]")
    arguments = [f"{name}={default.sub(lambda found: found[1], str(value))}" for name, value in given.items()]
    built = Engine(tmp_path_factory.mktemp("engine"), IMAGE, arguments)
    built.build()
    return built


@pytest.fixture
def contained(engine: Engine, tmp_path: Path, postgres_url: str) -> Iterator[Contained]:
    made = Contained(tmp_path, engine, postgres_url)
    yield made
    made.close()
    assert made.github.violations == []


@pytest.mark.container
def test_the_image_has_the_server_and_no_more_than_the_lock_says(engine: Engine) -> None:
    assert engine.run("serve", "--help", options=["--network", "none", "--read-only"]).code == 0
    asked = (
        "import importlib.metadata as m; print(*sorted(f'{d.name.lower()}=={d.version}' for d in m.distributions()))"
    )
    found = engine.shell(f'/opt/precedent/bin/python -I -c "{asked}"').split()
    lines = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)(.*)", text("requirements-server.lock"), re.MULTILINE)
    locked = {f"{name.lower()}=={version}" for name, version, rest in lines}
    always = {f"{name.lower()}=={version}" for name, version, rest in lines if ";" not in rest}
    assert always <= {each.replace("_", "-") for each in found} <= locked


@pytest.mark.container
def test_what_is_missing_is_said_at_once_and_ends_the_container_with_2(engine: Engine) -> None:
    ended = engine.run("serve", options=["--network", "none", "--user=10001:10001", "--read-only"])
    assert ended.code == 2
    for name in ("PRECEDENT_APP_ID", "PRECEDENT_PRIVATE_KEY", "PRECEDENT_WEBHOOK_SECRET"):
        assert name in ended.said
    assert "Traceback" not in ended.said


@pytest.mark.container
@pytest.mark.postgres
def test_by_the_compose_file_a_delivery_becomes_a_comment(contained: Contained) -> None:
    github = contained.github
    first = github.open_issue("hubot", "Session lost behind a proxy", "The cookie is dropped by the proxy.")
    github.close(first, "hubot")
    contained.start()
    number = github.open_issue("octocat", "Login loops after the upgrade", f"It looks like #{first}, since 2.3.0.")
    assert contained.deliver("issues", "opened", number) == 202
    contained.settle(180)
    (comment,) = github.comments_by(f"{SLUG}[bot]", number)
    assert "Session lost behind a proxy" in comment.body
    assert contained.is_healthy()
    assert contained.get("/")[0] == 401
    asked = contained.inside("/bin/sh", "-c", "id -u && stat -c %u /data/clones && ! touch /opt/x 2>/dev/null")
    assert (asked.code, asked.said.split()) == (0, ["10001", "10001"])
    code, seconds = contained.halted()
    assert (code, seconds < 10) == (0, True)
    assert all(secret not in contained.told() for secret in contained.secrets.values())
