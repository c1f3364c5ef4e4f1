"""`precedent serve --check`, what keeps the server from starting, and the commands of the documentation."""

from __future__ import annotations

import asyncio
import base64
import errno
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
from bot.github.app import EVENTS, OPTIONAL, PERMISSIONS, AppInfo
from bot.github.errors import Unauthorised, Unreachable
from bot.server import options as password
from bot.server.health import SPARE
from bot.server.options import Misconfigured, ServerOptions
from bot.server.processes import RESYNC, RESYNC_DELAY
from bot.server.startup_check import SPACE, OutsideChecks, StartupProblem, examine, filesystem, raise_problems
from tests.github.keys import key_pair
from tests.server.client import knowing, once
from tests.server.stage import APP, ROOT, SLUG, ServerStage

WELL = AppInfo(APP, SLUG, f"{SLUG}[bot]", EVENTS, PERMISSIONS | OPTIONAL)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ServerStage]:
    made = ServerStage(tmp_path)
    yield made
    made.close()
    assert made.github.violations == []


def signs(text: str) -> dict[str, str]:
    """What stands before each thing that was looked at; the worst, where there are several lines."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        sign, name, *_ = line.split()
        found[name] = sign if found.get(name, "+") == "+" else found[name]
    return found


def findings(folder: Path, outside: OutsideChecks, **options: object) -> dict[str, StartupProblem]:
    given = replace(ServerOptions(app_id=APP, data=folder), **options)  # type: ignore[arg-type]
    return {each.name: each for each in examine(given, outside) if each.level != "ok"}


def outside(
    info: AppInfo | Exception = WELL,
    prepare: Exception | None = None,
    bind: Exception | None = None,
) -> OutsideChecks:
    def about() -> AppInfo:
        if isinstance(info, Exception):
            raise info
        return info

    def rise(error: Exception | None) -> None:
        if error:
            raise error

    return OutsideChecks(lambda: rise(prepare), about, lambda: rise(bind))


# -- by hand -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_check_of_what_is_well_says_so_and_ends(stage: ServerStage) -> None:
    done = stage.run("serve", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(signs(done.stdout).values()) == {"+"}
    assert signs(done.stdout).keys() == {
        "git",
        "data",
        "disk",
        "database",
        "app",
        "discussions",
        "pull",
        "clock",
        "port",
    }
    assert f"{SLUG}[bot]" in done.stdout
    assert not password.password_file(stage.data).exists()


def test_a_check_without_any_option_names_all_that_are_needed(stage: ServerStage) -> None:
    done = stage.run("serve", "--check", APP_ID="", PRIVATE_KEY_FILE="", WEBHOOK_SECRET_FILE="")
    assert done.returncode == 2
    assert re.findall(r"PRECEDENT_\w+(?= is missing)", done.stderr) == [
        "PRECEDENT_APP_ID",
        "PRECEDENT_PRIVATE_KEY",
        "PRECEDENT_WEBHOOK_SECRET",
    ]


@pytest.mark.slow
def test_several_things_that_are_wrong_are_said_at_once(stage: ServerStage) -> None:
    (stage.folder / "private-key").write_text(key_pair("another")[0], encoding="utf-8")
    with socket.create_server(("127.0.0.1", stage.port)):
        done = stage.run("serve", "--check", DATA="/proc/nowhere")
    assert done.returncode == 2
    assert {name for name, sign in signs(done.stdout).items() if sign == "x"} == {"data", "database", "app", "port"}
    assert key_pair("another")[0][100:140] not in done.stdout + done.stderr


@pytest.mark.slow
def test_the_server_starts_with_github_away_and_not_with_the_port_taken(stage: ServerStage) -> None:
    done = stage.run("serve", "--check", API_URL="http://127.0.0.1:9")
    assert (done.returncode, signs(done.stdout)["app"]) == (0, "!")
    with socket.create_server(("127.0.0.1", stage.port)):
        started = stage.run("serve")
    assert started.returncode == 1, "whoever has it may end"
    assert f"port: cannot listen on 127.0.0.1:{stage.port}" in started.stderr


@pytest.mark.slow
@pytest.mark.parametrize("library", ["githubkit", "sqlalchemy", "uvicorn"])
def test_a_library_that_is_not_installed_is_named_with_what_installs_it(stage: ServerStage, library: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None; from bot.cli.main import main; sys.exit(main(['serve']))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=stage.code, env=stage.environ(), capture_output=True, text=True, check=False)
    told = f"precedent serve: {library} is missing: install the packages in requirements-server.lock\n"
    assert (done.returncode, done.stderr) == (2, told)


# -- one by one ----------------------------------------------------------------------------------------------------


def test_what_is_well_has_nothing_to_mend(tmp_path: Path) -> None:
    assert findings(tmp_path / "new" / "folder", outside()) == {}
    assert list((tmp_path / "new" / "folder").iterdir()) == []


@pytest.mark.parametrize(
    ("info", "name", "level", "said"),
    [
        (Unauthorised("GitHub does not know the App"), "app", "wrong", "GitHub does not know the App"),
        (UserError("no RSA key"), "app", "wrong", "no RSA key"),
        (Unreachable("GitHub did not answer"), "app", "warning", "GitHub did not answer"),
        (replace(WELL, id=5), "app", "wrong", f"the key belongs to App 5, not to {APP}"),
        (replace(WELL, ahead=-45.2), "clock", "away", "45 s from GitHub's: correct it"),
        (
            replace(WELL, permissions={**PERMISSIONS, "issues": "read"}),
            "permissions",
            "warning",
            "the App has issues: read; set it to write on its page",
        ),
        (
            replace(WELL, events=tuple(event for event in EVENTS if event not in ("push", "issues"))),
            "events",
            "warning",
            "the App is not subscribed to issues, push: subscribe on its page",
        ),
    ],
)
def test_what_github_says_of_the_app(
    info: AppInfo | Exception, name: str, level: str, said: str, tmp_path: Path
) -> None:
    assert findings(tmp_path, outside(info)) == {name: StartupProblem(name, level, said)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("level", "can"), [("none", "neither remember nor answer discussions"), ("read", "not answer them"), ("write", "")]
)
def test_what_the_app_can_do_with_discussions_is_told(level: str, can: str, tmp_path: Path) -> None:
    info = replace(WELL, permissions={**PERMISSIONS, "discussions": level})
    given = ServerOptions(app_id=APP, data=tmp_path)
    told = [each.line for each in examine(given, outside(info)) if each.name == "discussions"]
    assert [line.endswith(can) for line in told] == ([True] if can else [])


def test_what_the_app_cannot_see_of_private_pull_requests_is_told(tmp_path: Path) -> None:
    given = ServerOptions(app_id=APP, data=tmp_path)
    blind = replace(WELL, permissions=PERMISSIONS)
    told = [
        [one.line for one in examine(given, outside(info)) if one.name == "pull requests"] for info in (WELL, blind)
    ]
    assert told == [
        [],
        ["the App has pull_requests: none, so it cannot read pull requests of private repositories"],
    ]


def test_more_rights_than_needed_are_not_found_fault_with(tmp_path: Path) -> None:
    assert findings(tmp_path, outside(replace(WELL, permissions={**PERMISSIONS, "metadata": "admin"}))) == {}


@pytest.mark.parametrize(
    ("error", "level"), [(WorldError("refused"), "away"), (UserError("a newer release made it"), "wrong")]
)
def test_a_database_that_cannot_be_used_is_the_worlds_or_the_operators(
    error: Exception, level: str, tmp_path: Path
) -> None:
    assert findings(tmp_path, outside(prepare=error))["database"].level == level


@pytest.mark.parametrize("ahead", [0.0, 3600.0, -3600.0])
def test_a_key_that_is_not_known_by_a_clock_that_is_off_may_be_known_later(ahead: float, tmp_path: Path) -> None:
    refused = Unauthorised("GitHub does not know the App")
    refused.ahead = ahead
    found = findings(tmp_path, outside(refused))
    levels = {name: each.level for name, each in found.items()}
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
    [(SPACE, None), (SPACE - 1, "warning"), (SPARE, "warning"), (SPARE - 1, "wrong")],
)
def test_a_server_that_could_go_on_can_start(
    free: int, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    found = findings(tmp_path, outside()).get("disk")
    assert (found and found.level) == expected


@pytest.mark.parametrize("fault", [None, WorldError("no route to host")])
def test_an_index_that_does_not_answer_keeps_no_server_from_starting(fault: WorldError | None, tmp_path: Path) -> None:
    def ask() -> None:
        if fault:
            raise fault

    found = findings(tmp_path, replace(outside(), ask_index=ask), organisation=str(tmp_path / "index"))
    assert {name: each.level for name, each in found.items()} == ({"organisation": "warning"} if fault else {})
    assert (tmp_path / "index").is_dir()


def test_an_index_where_nobody_may_write_is_refused(tmp_path: Path) -> None:
    found = findings(tmp_path, replace(outside(), ask_index=lambda: None), organisation="/proc/nowhere")
    assert found["organisation"].level == "wrong"
    assert "/proc/nowhere is not writable" in found["organisation"].line


def test_the_kind_of_a_file_system_is_that_of_the_innermost_mount(tmp_path: Path) -> None:
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


def test_what_is_wrong_ends_the_start_before_what_is_away() -> None:
    wrong, away, warning = (
        StartupProblem("a", "wrong", "x"),
        StartupProblem("b", "away", "y"),
        StartupProblem("c", "warning", "z"),
    )
    with pytest.raises(Misconfigured) as met:
        raise_problems([away, wrong, warning])
    assert met.value.faults == ("b: y", "a: x")
    with pytest.raises(WorldError, match="b: y"):
        raise_problems([away, warning])
    raise_problems([warning])


# -- the password of the status page -------------------------------------------------------------------------------


def test_the_password_is_made_once_for_nobody_else_and_known_again(tmp_path: Path) -> None:
    assert password.stored_password(tmp_path) == ""
    found = password.new_password(tmp_path)
    assert len(base64.urlsafe_b64decode(found)) * 8 >= 128
    assert password.password_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert password.stored_password(tmp_path) == found
    with pytest.raises(WorldError, match="cannot be created"):
        password.new_password(tmp_path)
    assert password.stored_password(tmp_path) == found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds fewer than 12 characters"),
        (b"hunter2\n", "holds fewer than 12 characters"),
        (b"\xff" * 20, "is not UTF-8 text"),
        (b"x" * 20_000, "is longer than 16,384 characters"),
    ],
)
def test_a_file_without_a_password_is_refused_with_the_remedy(content: bytes, said: str, tmp_path: Path) -> None:
    file = password.password_file(tmp_path)
    file.write_bytes(content)
    found = findings(tmp_path, outside())["status page"]
    assert found == StartupProblem("status page", "wrong", f"{file} {said}: {password.REMEDY}")
    assert findings(tmp_path, outside(), status_password="another, which is given") == {}


@pytest.mark.parametrize("kind", ["link", "link to nothing", "folder", "pipe"])
def test_what_somebody_else_put_in_its_place_is_not_followed(kind: str, tmp_path: Path) -> None:
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
def test_the_server_keeps_its_password_over_a_restart_and_tells_only_where_it_is(stage: ServerStage) -> None:
    stage.start(workers=0)
    file = password.password_file(stage.data)
    made = file.read_text(encoding="ascii")
    assert file.stat().st_mode & 0o777 == 0o600
    assert stage.get("/")[0] == stage.get("/metrics")[0] == 200
    assert asked(stage) == 401
    stage.stop()
    stage.start(workers=0)
    assert file.read_text(encoding="ascii") == made
    assert stage.get("/")[0] == 200
    stage.stop()
    assert made.strip() not in stage.told()
    said = [line["message"] for line in stage.lines()]
    assert said.count(f"the password of the status page is in {file}") == 2


@pytest.mark.slow
def test_what_was_missed_while_it_was_down_is_looked_for_soon_after_a_start(stage: ServerStage) -> None:
    stage.data.mkdir()
    with stage.inbox() as inbox:
        inbox.database.make_tables()
        inbox.queue.ensure([RESYNC])
        lease = inbox.queue.claim("earlier")
        assert lease is not None
        inbox.give_back(lease, 3600)
        stage.start(workers=0)
        with inbox.database.transaction() as asking:
            row = asking.row("select due from queue where key = :key", key=RESYNC)
        assert row is not None
        assert row["due"] <= inbox.now() + RESYNC_DELAY
        stage.stop()


@pytest.mark.slow
def test_one_that_is_given_is_the_only_one(stage: ServerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    given = stage.environ() | {"PRECEDENT_STATUS_PASSWORD": "open sesame, please"}
    monkeypatch.setattr(stage, "environ", lambda: given)
    stage.start(workers=0)
    assert not password.password_file(stage.data).exists()
    assert (asked(stage), asked(stage, "precedent:open sesame, please")) == (401, 200)
    stage.stop()
    assert "sesame" not in stage.told()


@pytest.mark.slow
def test_a_planted_link_keeps_the_server_from_starting(stage: ServerStage) -> None:
    stage.data.mkdir()
    password.password_file(stage.data).symlink_to(stage.folder / "webhook-secret")
    done = stage.run("serve")
    assert done.returncode == 2
    assert "status-password cannot be read (it is a link): remove it" in done.stderr


def asked(stage: ServerStage, credentials: str = "") -> int:
    """How the status page is answered by the address alone, as a proxy on this machine asks for anybody's sake."""
    headers = knowing(credentials) if credentials else {}
    headers |= {"Host": f"127.0.0.1:{stage.port}"}
    return asyncio.run(once(stage.port, "GET", "/", headers)).status


# -- signals -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_signal_while_the_event_is_being_waited_for_stops_the_server_and_holds_up_nobody() -> None:
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


# -- as documented -------------------------------------------------------------------------------------------------


def documented(heading: str) -> list[str]:
    """The commands of the first block in shell under a heading of the page."""
    page = (ROOT / "docs/self-hosting.md").read_text(encoding="utf-8")
    part = re.split(r"^#+ ", page, flags=re.MULTILINE)
    (section,) = (each for each in part if each.startswith(f"{heading}\n"))
    block = re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block
    return block[1].splitlines()


@pytest.mark.slow
def test_a_fresh_clone_runs_by_the_documented_commands(stage: ServerStage) -> None:
    clone, home = stage.folder / "clone", stage.folder / "secrets"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    home.mkdir()
    shutil.copy(stage.folder / "private-key", home / "private-key.pem")
    shutil.copy(stage.folder / "webhook-secret", home / "webhook-secret")
    commands = documented("On one machine")
    assert commands[-1] == ".venv/bin/python -m bot serve"
    script = "\n".join(["set -eu", *commands[:-1]]).replace("PRECEDENT_APP_ID=123456", f"PRECEDENT_APP_ID={APP}")
    environ = {name: text for name, text in stage.environ().items() if not name.endswith(("_FILE", "APP_ID"))}
    done = subprocess.run(["sh", "-c", script], cwd=clone, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(signs(done.stdout).values()) == {"+"}
