"""The App's manifest, the compose file and the systemd unit agree with the code, and the image runs with them."""

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

from bot.github.app import EVENTS, OPTIONAL_PERMISSIONS, PERMISSIONS
from bot.server.options import ServerOptions, is_secret, variable
from bot.server.receive.webhook import INSTALLATION_EVENTS, REPOSITORY_EVENTS
from bot.settings.schema import rules
from tests.container.engine import Engine
from tests.server.server_container import IMAGE, ContainerStage, service
from tests.server.server_process import SLUG

ROOT = Path(__file__).resolve().parents[2]
UNITS = ("deploy/precedent.service", "deploy/precedent-worker.service")
ALWAYS_DELIVERED = {"installation", "installation_repositories"}
"""Events that every App receives and none can subscribe to."""


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.fixture
def manifest() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text("deploy/app-manifest.json"))
    return content


def test_the_app_asks_for_the_permissions_of_its_tokens_and_no_more(manifest: dict[str, Any]) -> None:
    assert manifest["default_permissions"] == PERMISSIONS | dict.fromkeys(OPTIONAL_PERMISSIONS, "read")
    assert manifest["public"] is False, "nobody else can install it"


def test_the_app_subscribes_to_the_events_that_the_server_receives_and_no_others(manifest: dict[str, Any]) -> None:
    events = {*EVENTS, "discussion", "discussion_comment"}
    assert set(manifest["default_events"]) == events == (REPOSITORY_EVENTS | INSTALLATION_EVENTS) - ALWAYS_DELIVERED


def test_the_registration_link_in_the_documentation_matches_the_manifest(manifest: dict[str, Any]) -> None:
    (address,) = re.findall(r"^https://github.com/settings/apps/new\?\S+$", text("docs/self-hosting.md"), re.MULTILINE)
    pairs = parse_qsl(urlsplit(address).query)
    parameters = dict(pairs)
    assert [value for name, value in pairs if name == "events[]"] == manifest["default_events"]
    assert {name: parameters[name] for name in PERMISSIONS | OPTIONAL_PERMISSIONS} == manifest["default_permissions"]
    assert parameters["webhook_url"] == manifest["hook_attributes"]["url"]
    assert (parameters["name"], parameters["url"], parameters["public"]) == (manifest["name"], manifest["url"], "false")
    assert "secret" not in address


@pytest.mark.parametrize("path", ["deploy/compose.yml", *UNITS, "deploy/env.example"])
def test_every_variable_in_the_deployment_files_is_an_option(path: str) -> None:
    variables = {variable(name) for name in rules(ServerOptions)}
    variables |= {f"{variable(name)}_FILE" for name in rules(ServerOptions) if is_secret(name)}
    assert set(re.findall(r"PRECEDENT_[A-Z_]+", text(path))) <= variables


@pytest.mark.night
def test_the_containers_have_few_privileges() -> None:
    services = yaml.safe_load(text("deploy/compose.yml"))["services"]
    for name in ("bot", "worker"):
        limits = [services[name][each] for each in ("read_only", "user", "cap_drop")]
        assert limits == [True, "10001:10001", ["ALL"]]
        secrets = {value.rpartition("/")[2] for value in services[name]["environment"].values() if "/secrets/" in value}
        assert secrets == set(services[name]["secrets"])
    assert services["bot"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in services["db"]


@pytest.mark.parametrize(
    "build_arguments",
    [
        [],
        ["MODEL=0"],
        ["SERVER=1"],
        ["SERVER=1", "ORG=1"],
        ["MODEL=0", "SERVER=1", "ORG=1"],
    ],
)
def test_make_and_the_compose_file_build_the_same_images(build_arguments: list[str]) -> None:
    assert {each.partition("=")[0] for each in build_arguments} <= set(service("bot")["build"]["args"])
    make = ["make", "--dry-run", "image", *build_arguments]
    output = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"--build-arg (\S+)", output) == build_arguments


def test_the_documentation_creates_exactly_the_secret_files_that_are_mounted() -> None:
    declared = yaml.safe_load(text("deploy/compose.yml"))["secrets"]
    files = {each["file"].removeprefix("./secrets/") for each in declared.values()}
    page = text("docs/self-hosting.md")
    created = {*re.findall(r"> secrets/([\w.-]+)", page), *re.findall(r"~/([\w.-]+)", page)}
    assert files == created


def test_the_units_differ_only_in_what_they_run_and_read() -> None:
    """Each limit and each restriction of the server is one of a worker, too."""
    own = re.compile(r"#|Description|After|ExecStart|Environment|LoadCredential|StateDirectory=|$")
    server, worker = ([line for line in text(path).splitlines() if not own.match(line)] for path in UNITS)
    assert server == worker
    assert "LimitNOFILE=65536" in worker


@pytest.mark.night
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("path", UNITS)
def test_a_unit_is_valid_and_gives_its_process_few_privileges(path: str, tmp_path: Path) -> None:
    """With a program and a folder that exist here; by systemd's own measure, where 10 is a service that may do all."""
    unit = tmp_path / "precedent.service"
    content = text(path).replace("WorkingDirectory=/opt/precedent\n", "")
    program = re.sub("/opt/precedent/.venv/bin/python -m bot (serve|worker)", "/bin/true", content)
    unit.write_text(program, encoding="utf-8")
    for words in (("verify",), ("security", "--offline=true", "--threshold=20")):
        result = subprocess.run(["systemd-analyze", *words, str(unit)], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    defaults = service("bot")["build"]["args"]  # "${ORG:-0}" is what compose makes of an empty environment
    default = re.compile(r"[$][{][A-Z]+:-(.*)[}]")
    arguments = [f"{name}={default.sub(lambda match: match[1], str(value))}" for name, value in defaults.items()]
    server_engine = Engine(tmp_path_factory.mktemp("engine"), IMAGE, arguments)
    server_engine.build()
    return server_engine


@pytest.fixture
def contained(engine: Engine, tmp_path: Path, postgres_url: str) -> Iterator[ContainerStage]:
    server = ContainerStage(tmp_path, engine, postgres_url)
    yield server
    server.close()
    assert server.github.violations == []


@pytest.mark.container
def test_the_image_contains_the_server_and_only_locked_packages(engine: Engine) -> None:
    assert engine.run("serve", "--help", options=["--network", "none", "--read-only"]).code == 0
    script = (
        "import importlib.metadata as m; print(*sorted(f'{d.name.lower()}=={d.version}' for d in m.distributions()))"
    )
    installed = engine.shell(f'/opt/precedent/bin/python -I -c "{script}"').split()
    lines = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)(.*)", text("requirements-server.lock"), re.MULTILINE)
    locked = {f"{name.lower()}=={version}" for name, version, rest in lines}
    always = {f"{name.lower()}=={version}" for name, version, rest in lines if ";" not in rest}
    assert always <= {each.replace("_", "-") for each in installed} <= locked


@pytest.mark.container
def test_missing_options_end_the_container_at_once_with_exit_code_2(engine: Engine) -> None:
    result = engine.run("serve", options=["--network", "none", "--user=10001:10001", "--read-only"])
    assert result.code == 2
    for name in ("PRECEDENT_APP_ID", "PRECEDENT_PRIVATE_KEY", "PRECEDENT_WEBHOOK_SECRET"):
        assert name in result.output
    assert "Traceback" not in result.output


@pytest.mark.container
@pytest.mark.postgres
def test_a_delivery_becomes_a_comment_when_run_by_the_compose_file(contained: ContainerStage) -> None:
    github = contained.github
    github.set_permission("hubot", "write")
    first = github.open_issue("hubot", "Session lost behind a proxy", "The cookie is dropped by the proxy.")
    github.comment(first, "hubot", "Fixed in 2.3.1, please upgrade.")
    github.close(first, "hubot")
    contained.start()
    number = github.open_issue("octocat", "Login loops after the upgrade", f"It looks like #{first}, since 2.3.0.")
    assert contained.deliver("issues", "opened", number) == 202
    contained.settle(180)
    (comment,) = github.comments_by(f"{SLUG}[bot]", number)
    assert "Session lost behind a proxy" in comment.body
    assert contained.is_healthy()
    assert contained.get("/")[0] == 401
    check = contained.run_inside("/bin/sh", "-c", "id -u && stat -c %u /data/clones && ! touch /opt/x 2>/dev/null")
    assert (check.code, check.output.split()) == (0, ["10001", "10001"])
    assert contained.stop_gracefully() == 0
    assert all(secret not in contained.log_text() for secret in contained.secrets.values())
