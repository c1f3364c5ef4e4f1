"""`precedent serve --check`, what keeps the server from starting, and the commands of the documentation."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import UserError, WorldError
from bot.github.app import EVENTS, PERMISSIONS
from bot.github.errors import Unauthorised, Unreachable
from bot.github.installed import AppInfo
from bot.server.options import Misconfigured, Options
from bot.server.startup import Finding, Outside, examine, filesystem, refuse
from tests.github.keys import key_pair
from tests.server.stage import APP, ROOT, SLUG, ServerStage

WELL = AppInfo(APP, SLUG, f"{SLUG}[bot]", EVENTS, PERMISSIONS)


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


def findings(folder: Path, outside: Outside, **options: object) -> dict[str, Finding]:
    given = replace(Options(app_id=APP, data=folder), **options)  # type: ignore[arg-type]
    return {each.name: each for each in examine(given, outside) if each.level != "ok"}


def outside(
    info: AppInfo | Exception = WELL, prepare: Exception | None = None, bind: Exception | None = None
) -> Outside:
    def about() -> AppInfo:
        if isinstance(info, Exception):
            raise info
        return info

    def rise(error: Exception | None) -> None:
        if error:
            raise error

    return Outside(lambda: rise(prepare), about, lambda: rise(bind))


# -- by hand -------------------------------------------------------------------------------------------------------


def test_the_check_of_what_is_well_says_so_and_ends(stage: ServerStage) -> None:
    done = stage.run("serve", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(signs(done.stdout).values()) == {"+"}
    assert signs(done.stdout).keys() == {"git", "data", "disk", "database", "app", "clock", "port"}
    assert f"{SLUG}[bot]" in done.stdout


def test_a_check_without_any_option_names_all_that_are_needed(stage: ServerStage) -> None:
    done = stage.run("serve", "--check", APP_ID="", PRIVATE_KEY_FILE="", WEBHOOK_SECRET_FILE="")
    assert done.returncode == 2
    assert re.findall(r"PRECEDENT_\w+(?= is missing)", done.stderr) == [
        "PRECEDENT_APP_ID",
        "PRECEDENT_PRIVATE_KEY",
        "PRECEDENT_WEBHOOK_SECRET",
    ]


def test_several_things_that_are_wrong_are_said_at_once(stage: ServerStage) -> None:
    (stage.folder / "private-key").write_text(key_pair("another")[0], encoding="utf-8")
    with socket.create_server(("127.0.0.1", stage.port)):
        done = stage.run("serve", "--check", DATA="/proc/nowhere")
    assert done.returncode == 2
    assert {name for name, sign in signs(done.stdout).items() if sign == "x"} == {"data", "database", "app", "port"}
    assert key_pair("another")[0][100:140] not in done.stdout + done.stderr


def test_the_server_starts_with_github_away_and_not_with_the_port_taken(stage: ServerStage) -> None:
    done = stage.run("serve", "--check", API_URL="http://127.0.0.1:9")
    assert (done.returncode, signs(done.stdout)["app"]) == (0, "!")
    with socket.create_server(("127.0.0.1", stage.port)):
        started = stage.run("serve")
    assert started.returncode == 2
    assert f"port: cannot listen on 127.0.0.1:{stage.port}" in started.stderr


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
        (replace(WELL, id=5), "app", "wrong", f"the key is that of App 5, not of {APP}"),
        (replace(WELL, ahead=-45.2), "clock", "wrong", "45 s from GitHub's: set it right"),
        (
            replace(WELL, permissions={**PERMISSIONS, "issues": "read"}),
            "permissions",
            "warning",
            "the App has issues: read: give it write on its page",
        ),
        (
            replace(WELL, events=tuple(event for event in EVENTS if event not in ("push", "issues"))),
            "events",
            "warning",
            "the App does not hear of issues, push: subscribe on its page",
        ),
    ],
)
def test_what_github_says_of_the_app(
    info: AppInfo | Exception, name: str, level: str, said: str, tmp_path: Path
) -> None:
    assert findings(tmp_path, outside(info)) == {name: Finding(name, level, said)}  # type: ignore[arg-type]


def test_more_rights_than_needed_are_not_found_fault_with(tmp_path: Path) -> None:
    assert findings(tmp_path, outside(replace(WELL, permissions={**PERMISSIONS, "metadata": "admin"}))) == {}


@pytest.mark.parametrize(
    ("error", "level"), [(WorldError("refused"), "away"), (UserError("a newer release made it"), "wrong")]
)
def test_a_database_that_cannot_be_used_is_the_worlds_or_the_operators(
    error: Exception, level: str, tmp_path: Path
) -> None:
    assert findings(tmp_path, outside(prepare=error))["database"].level == level


def test_a_page_that_others_could_reach_needs_a_password(tmp_path: Path) -> None:
    found = findings(tmp_path, outside(), host="0.0.0.0")
    assert found["status page"].level == "warning"
    assert findings(tmp_path, outside(), host="0.0.0.0", status_password="long enough") == {}


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
    wrong, away, warning = (Finding("a", "wrong", "x"), Finding("b", "away", "y"), Finding("c", "warning", "z"))
    with pytest.raises(Misconfigured) as met:
        refuse([away, wrong, warning])
    assert met.value.faults == ("b: y", "a: x")
    with pytest.raises(WorldError, match="b: y"):
        refuse([away, warning])
    refuse([warning])


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
