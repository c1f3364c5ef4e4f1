"""`precedent serve --check`, what prevents the server from starting, and the documented commands."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.errors import UserError, WorldError
from bot.github.app import EVENTS, OPTIONAL_PERMISSIONS, PERMISSIONS, AppInfo
from bot.github.errors import Unauthorised, Unreachable
from bot.server import secret_files as password
from bot.server.options import Misconfigured, ServerOptions
from bot.server.processes import RESYNC_DELAY, RESYNC_TASK
from bot.server.startup_check import (
    RECOMMENDED_FREE_BYTES,
    OutsideChecks,
    StartupProblem,
    check_text_model,
    examine,
    filesystem,
    raise_problems,
)
from bot.server.storage.branches import MIN_FREE_BYTES
from tests.github.keys import key_pair
from tests.server.client import auth_headers, request_once
from tests.server.server_process import APP, ROOT, SLUG, ServerStage

HEALTHY = AppInfo(APP, SLUG, f"{SLUG}[bot]", EVENTS, PERMISSIONS | OPTIONAL_PERMISSIONS)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ServerStage]:
    server_stage = ServerStage(tmp_path)
    yield server_stage
    server_stage.close()
    assert server_stage.github.violations == []


def signs(text: str) -> dict[str, str]:
    """Return the sign of each check; the worst one if it has several lines."""
    worst: dict[str, str] = {}
    for line in text.splitlines():
        sign, name, *_ = line.split()
        worst[name] = sign if worst.get(name, "+") == "+" else worst[name]
    return worst


def findings(folder: Path, outside: OutsideChecks, **options: object) -> dict[str, StartupProblem]:
    server_options = replace(ServerOptions(app_id=APP, data=folder), **options)  # type: ignore[arg-type]
    return {each.name: each for each in examine(server_options, outside) if each.level not in ("ok", "note")}


def outside(
    info: AppInfo | Exception = HEALTHY,
    prepare: Exception | None = None,
    bind: Exception | None = None,
) -> OutsideChecks:
    def app_info() -> AppInfo:
        if isinstance(info, Exception):
            raise info
        return info

    def raise_error(error: Exception | None) -> None:
        if error:
            raise error

    return OutsideChecks(lambda: raise_error(prepare), app_info, lambda: raise_error(bind))


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "proxies", "starts"),
    [("::1", (), True), ("0.0.0.0", (), False), ("::", (), False), ("0.0.0.0", ("10.0.0.0/8",), True)],
)
def test_a_server_that_may_be_reached_without_a_proxy_does_not_start(
    tmp_path: Path, host: str, proxies: tuple[str, ...], starts: bool
) -> None:
    found = findings(tmp_path, outside(), host=host, trusted_proxies=proxies)
    line = f"{host} may be reached without a proxy: listen on 127.0.0.1, or name the HTTPS proxies in front in"
    assert found.get("port") == (
        None if starts else StartupProblem("port", "wrong", f"{line} PRECEDENT_TRUSTED_PROXIES")
    )


@pytest.mark.slow
def test_a_check_without_problems_succeeds(stage: ServerStage) -> None:
    result = stage.run("serve", "--check")
    assert (result.returncode, result.stderr) == (0, "")
    assert {name for name, sign in signs(result.stdout).items() if sign == "-"} >= {"discussions", "pull"}
    assert set(signs(result.stdout).values()) == {"+", "-"}
    assert signs(result.stdout).keys() == {
        "git",
        "data",
        "disk",
        "database",
        "app",
        "discussions",
        "pull",
        "clock",
        "text",
        "port",
    }
    worker = stage.run("worker", "--check")
    assert (worker.returncode, signs(worker.stdout).keys()) == (0, signs(result.stdout).keys() - {"port"})
    assert f"{SLUG}[bot]" in result.stdout
    assert not password.password_file(stage.data).exists()


@pytest.mark.slow
def test_all_problems_are_reported_at_once(stage: ServerStage) -> None:
    (stage.folder / "private-key").write_text(key_pair("another")[0], encoding="utf-8")
    with socket.create_server(("127.0.0.1", stage.port)):
        result = stage.run("serve", "--check", DATA="/proc/nowhere")
    assert result.returncode == 2
    assert {name for name, sign in signs(result.stdout).items() if sign == "x"} == {"data", "database", "app", "port"}
    assert key_pair("another")[0][100:140] not in result.stdout + result.stderr


@pytest.mark.slow
def test_the_server_starts_while_github_is_down_but_not_while_its_port_is_taken(stage: ServerStage) -> None:
    checked = stage.run("serve", "--check", API_URL="http://127.0.0.1:9")
    assert (checked.returncode, signs(checked.stdout)["app"]) == (0, "!")
    with socket.create_server(("127.0.0.1", stage.port)):
        started = stage.run("serve")
    assert started.returncode == 1, "whoever has it may end"
    (line,) = map(json.loads, started.stderr.splitlines())
    assert line["message"].startswith(f"the server stops: port: cannot listen on 127.0.0.1:{stage.port}")


@pytest.mark.parametrize(("in_place", "sign"), [(True, "ok"), (False, "note")])
def test_the_check_says_whether_there_is_a_text_model(in_place: bool, sign: str, tmp_path: Path) -> None:
    if in_place:
        (tmp_path / "model.safetensors").touch()
    assert check_text_model(tmp_path).level == sign


@pytest.mark.slow
@pytest.mark.parametrize("library", ["githubkit", "sqlalchemy", "uvicorn"])
def test_a_missing_library_is_reported_with_the_way_to_install_it(stage: ServerStage, library: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None; from bot.cli.main import main; sys.exit(main(['serve']))"
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=stage.code, env=stage.environ(), capture_output=True, text=True, check=False)
    message = f"precedent serve: {library} is missing: install the packages in requirements-server.lock\n"
    assert (result.returncode, result.stderr) == (2, message)


# -- single checks -------------------------------------------------------------------------------------------------


def test_there_are_no_problems_when_all_is_well(tmp_path: Path) -> None:
    assert findings(tmp_path / "new" / "folder", outside()) == {}
    assert list((tmp_path / "new" / "folder").iterdir()) == []


@pytest.mark.parametrize(
    ("info", "name", "level", "line"),
    [
        (Unauthorised("GitHub does not know the App"), "app", "wrong", "GitHub does not know the App"),
        (UserError("no RSA key"), "app", "wrong", "no RSA key"),
        (Unreachable("GitHub did not answer"), "app", "warning", "GitHub did not answer"),
        (replace(HEALTHY, id=5), "app", "wrong", f"the key belongs to App 5, not to {APP}"),
        (replace(HEALTHY, ahead=-45.2), "clock", "away", "45 s from GitHub's: correct it"),
        (
            replace(HEALTHY, permissions={**PERMISSIONS, "issues": "read"}),
            "permissions",
            "warning",
            "the App has issues: read; set it to write on its page",
        ),
        (
            replace(HEALTHY, events=tuple(event for event in EVENTS if event not in ("push", "issues"))),
            "events",
            "warning",
            "the App is not subscribed to issues, push: subscribe on its page",
        ),
    ],
)
def test_problems_of_the_app_are_reported(
    info: AppInfo | Exception, name: str, level: str, line: str, tmp_path: Path
) -> None:
    assert findings(tmp_path, outside(info)) == {name: StartupProblem(name, level, line)}  # type: ignore[arg-type]


UNREAD_PULLS = "the App has pull_requests: none, so it cannot read pull requests of private repositories"


@pytest.mark.parametrize(
    ("permissions", "name", "endings"),
    [
        ({"discussions": "none"}, "discussions", ["neither remember nor answer discussions"]),
        ({"discussions": "read"}, "discussions", ["not answer them"]),
        ({"discussions": "write"}, "discussions", []),
        ({}, "pull requests", [UNREAD_PULLS]),
        (OPTIONAL_PERMISSIONS, "pull requests", []),
        (OPTIONAL_PERMISSIONS | {"metadata": "admin"}, "permissions", []),
    ],
)
def test_the_check_reports_what_the_permissions_allow(
    permissions: dict[str, str], name: str, endings: list[str], tmp_path: Path
) -> None:
    info = replace(HEALTHY, permissions={**PERMISSIONS, **permissions})
    options = ServerOptions(app_id=APP, data=tmp_path)
    lines = [each.line for each in examine(options, outside(info)) if each.name == name]
    assert [line.endswith(ending) for line, ending in zip(lines, endings, strict=True)] == [True] * len(endings)


@pytest.mark.parametrize(
    ("error", "level"), [(WorldError("refused"), "away"), (UserError("a newer release made it"), "wrong")]
)
def test_a_database_problem_is_temporary_or_a_mistake_of_the_operator(
    error: Exception, level: str, tmp_path: Path
) -> None:
    assert findings(tmp_path, outside(prepare=error))["database"].level == level


@pytest.mark.parametrize("ahead", [0.0, 3600.0, -3600.0])
def test_a_key_refused_while_the_clock_is_wrong_may_be_accepted_later(ahead: float, tmp_path: Path) -> None:
    refused = Unauthorised("GitHub does not know the App")
    refused.ahead = ahead
    problems = findings(tmp_path, outside(refused))
    levels = {name: each.level for name, each in problems.items()}
    assert levels == ({"app": "away", "clock": "away"} if ahead else {"app": "wrong"})


@pytest.mark.parametrize(
    ("reason", "level"), [(errno.EADDRINUSE, "away"), (errno.EADDRNOTAVAIL, "wrong"), (errno.EACCES, "wrong")]
)
def test_a_port_that_is_in_use_may_be_free_later(reason: int, level: str, tmp_path: Path) -> None:
    error = UserError("cannot listen on it")
    error.__cause__ = OSError(reason, "")
    assert findings(tmp_path, outside(bind=error))["port"].level == level


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (RECOMMENDED_FREE_BYTES, None),
        (RECOMMENDED_FREE_BYTES - 1, "warning"),
        (MIN_FREE_BYTES, "warning"),
        (MIN_FREE_BYTES - 1, "wrong"),
    ],
)
def test_a_server_that_could_keep_running_can_start(
    free: int, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    problem = findings(tmp_path, outside()).get("disk")
    assert (problem and problem.level) == expected


@pytest.mark.parametrize("fault", [None, WorldError("no route to host")])
def test_an_index_that_does_not_answer_does_not_prevent_a_start(fault: WorldError | None, tmp_path: Path) -> None:
    def query() -> None:
        if fault:
            raise fault

    problems = findings(tmp_path, replace(outside(), ask_index=query), organisation=str(tmp_path / "index"))
    assert {name: each.level for name, each in problems.items()} == ({"organisation": "warning"} if fault else {})
    assert (tmp_path / "index").is_dir()


def test_an_index_that_is_not_writable_is_refused(tmp_path: Path) -> None:
    problems = findings(tmp_path, replace(outside(), ask_index=lambda: None), organisation="/proc/nowhere")
    assert problems["organisation"].level == "wrong"
    assert "/proc/nowhere is not writable" in problems["organisation"].line


def test_the_innermost_mount_decides_the_kind_of_file_system(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "40 22 0:50 / /srv rw,relatime - nfs4 files:/srv rw\n"
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "39 22 8:3 / /home rw,relatime - ext3 /dev/sdc1 rw\n"
        "42 39 8:4 / /home rw,relatime - btrfs /dev/sdd1 rw\n"
        "41 40 8:2 / /srv/with\\040space rw,relatime - xfs /dev/sdb1 rw\n",
        encoding="utf-8",
    )
    assert filesystem(Path("/var/lib/precedent"), mounts) == "ext4"
    assert filesystem(Path("/srv/precedent"), mounts) == "nfs4"
    assert filesystem(Path("/home/octocat"), mounts) == "btrfs", "the last one that was put there"
    assert filesystem(Path("/srv/with space/data"), mounts) == "xfs"
    assert filesystem(Path("/srv"), tmp_path / "none") == ""


def test_mistakes_take_precedence_over_temporary_problems() -> None:
    wrong, away, warning = (
        StartupProblem("a", "wrong", "x"),
        StartupProblem("b", "away", "y"),
        StartupProblem("c", "warning", "z"),
    )
    with pytest.raises(Misconfigured) as caught:
        raise_problems([away, wrong, warning])
    assert caught.value.faults == ("b: y", "a: x")
    with pytest.raises(WorldError, match="b: y"):
        raise_problems([away, warning])
    raise_problems([warning])


# -- the password of the status page -------------------------------------------------------------------------------


def test_the_password_is_generated_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    assert password.stored_password(tmp_path) == ""
    generated = password.new_password(tmp_path)
    assert len(base64.urlsafe_b64decode(generated)) * 8 >= 128
    assert password.password_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert password.stored_password(tmp_path) == generated
    with pytest.raises(WorldError, match="cannot be created"):
        password.new_password(tmp_path)
    assert password.stored_password(tmp_path) == generated


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "holds fewer than 12 characters"),
        (b"hunter2\n", "holds fewer than 12 characters"),
        (b"\xff" * 20, "is not UTF-8 text"),
        (b"x" * 20_000, "is longer than 16,384 characters"),
    ],
)
def test_a_file_without_a_password_is_refused_with_the_remedy(content: bytes, fault: str, tmp_path: Path) -> None:
    file = password.password_file(tmp_path)
    file.write_bytes(content)
    problem = findings(tmp_path, outside())["status page"]
    assert problem == StartupProblem("status page", "wrong", f"{file} {fault}: {password.REMEDY}")
    assert findings(tmp_path, outside(), status_password="another, which is given") == {}


@pytest.mark.parametrize("kind", ["link", "link to nothing", "folder", "pipe"])
def test_a_planted_password_file_is_not_followed(kind: str, tmp_path: Path) -> None:
    file, elsewhere = password.password_file(tmp_path), tmp_path / "elsewhere"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(elsewhere)
    if kind == "link":
        elsewhere.write_text("a password that others know", encoding="ascii")
    with pytest.raises(UserError, match=re.escape(password.REMEDY)):
        password.stored_password(tmp_path)
    with pytest.raises(WorldError):
        password.new_password(tmp_path)
    assert elsewhere.exists() == (kind == "link")


@pytest.mark.slow
def test_the_server_keeps_its_password_over_a_restart_and_logs_only_its_location(stage: ServerStage) -> None:
    stage.start(workers=0)
    file = password.password_file(stage.data)
    generated = file.read_text(encoding="ascii")
    assert file.stat().st_mode & 0o777 == 0o600
    assert stage.get("/")[0] == stage.get("/metrics")[0] == 200
    assert page_status(stage) == 401
    stage.stop()
    stage.start(workers=0)
    assert file.read_text(encoding="ascii") == generated
    assert stage.get("/")[0] == 200
    stage.stop()
    assert generated.strip() not in stage.log_text()
    messages = [line["message"] for line in stage.lines()]
    assert messages.count(f"the password of the status page is in {file}") == 2


@pytest.mark.slow
def test_a_resync_is_due_soon_after_a_start(stage: ServerStage) -> None:
    stage.data.mkdir()
    with stage.inbox() as inbox:
        inbox.database.make_tables()
        inbox.queue.ensure([RESYNC_TASK])
        lease = inbox.queue.claim("earlier")
        assert lease is not None
        inbox.give_back(lease, 3600)
        stage.start(workers=0)
        row = inbox.database.row("select due from queue where key = :key", key=RESYNC_TASK)
        assert row is not None
        assert row["due"] <= inbox.now() + RESYNC_DELAY
        stage.stop()


@pytest.mark.slow
def test_a_password_from_the_options_is_the_only_one(stage: ServerStage) -> None:
    stage.settings["STATUS_PASSWORD"] = "open sesame, please"
    stage.start(workers=0)
    assert not password.password_file(stage.data).exists()
    assert (page_status(stage), page_status(stage, "precedent:open sesame, please")) == (401, 200)
    stage.stop()
    assert "sesame" not in stage.log_text()


@pytest.mark.slow
def test_a_planted_link_prevents_the_server_from_starting(stage: ServerStage) -> None:
    stage.data.mkdir()
    password.password_file(stage.data).symlink_to(stage.folder / "webhook-secret")
    result = stage.run("serve")
    assert result.returncode == 2
    assert "status-password cannot be read (it is a link): remove it" in result.stderr


def page_status(stage: ServerStage, credentials: str = "") -> int:
    """Return the status of the page for a request to the bare address, such as a proxy on this machine sends."""
    headers = auth_headers(credentials) if credentials else {}
    headers |= {"Host": f"127.0.0.1:{stage.port}"}
    return asyncio.run(request_once(stage.port, "GET", "/", headers)).status


# -- signals -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_signal_during_a_wait_stops_the_server_without_a_deadlock() -> None:
    program = """
import signal
from bot.server.processes import _stop_on_signals
stop = _stop_on_signals()
with stop._cond:  # as within a wait of the main thread
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
assert stop.wait(20)
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60)


# -- the documentation ---------------------------------------------------------------------------------------------


def documented_commands(heading: str) -> list[str]:
    """Return the commands of the first shell block under a heading of the page."""
    page = (ROOT / "docs/self-hosting.md").read_text(encoding="utf-8")
    sections = re.split(r"^#+ ", page, flags=re.MULTILINE)
    (section,) = (each for each in sections if each.startswith(f"{heading}\n"))
    block = re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block
    return block[1].splitlines()


@pytest.mark.night
def test_the_documented_commands_run_in_a_fresh_clone(stage: ServerStage) -> None:
    clone, home = stage.folder / "clone", stage.folder / "secrets"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    home.mkdir()
    shutil.copy(stage.folder / "private-key", home / "private-key.pem")
    shutil.copy(stage.folder / "webhook-secret", home / "webhook-secret")
    commands = documented_commands("On one machine")
    assert commands[-1] == ".venv/bin/python -m bot serve"
    script = "\n".join(["set -eu", *commands[:-1]]).replace("PRECEDENT_APP_ID=123456", f"PRECEDENT_APP_ID={APP}")
    environ = {name: text for name, text in stage.environ().items() if not name.endswith(("_FILE", "APP_ID"))}
    result = subprocess.run(["sh", "-c", script], cwd=clone, env=environ, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert set(signs(result.stdout).values()) <= {"+", "-"}
