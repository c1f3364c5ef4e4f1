"""Secrets that change while the server runs: new ones take effect, broken ones do not, and none is logged."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.errors import UserError
from bot.github.app import App
from bot.server.log import HIDDEN, write_logs
from bot.server.options import ServerOptions, read_options, variable
from bot.server.secret_files import CHECK_INTERVAL, SecretFiles
from tests.github.keys import key_pair
from tests.server import client
from tests.server.server_process import APP, SECRET, ServerStage, until

FIRST, SECOND, THIRD = SECRET, "Sesame, now with more seeds", "Poppy, which is the third"
PASSWORD, OPERATOR = "open sesame, please", "close sesame, please"
DATABASE = "postgresql://bot:a-password@db/precedent"
FILES = {
    "private_key": key_pair()[0].strip(),
    "webhook_secret": FIRST,
    "webhook_secret_old": SECOND,
    "status_password": PASSWORD,
    "operator_password": OPERATOR,
    "database_url": DATABASE,
}


@dataclass
class WatchedFiles:
    """Options from files in a folder; ``used`` has the options of each reload, ``log`` the lines of the log."""

    folder: Path
    log: io.StringIO
    used: list[ServerOptions] = field(default_factory=list)
    files: SecretFiles = field(init=False)

    def __post_init__(self) -> None:
        for name, text in FILES.items():
            self.file(name).write_text(f"{text}\n", encoding="utf-8")
        self.begin()

    def begin(self, **settings: Any) -> SecretFiles:
        options = read_options(self.environ())
        write_logs("json", options.hidden, self.log)
        self.files = SecretFiles(options, self.environ(), self.use, **settings)
        return self.files

    def environ(self) -> dict[str, str]:
        files = {f"{variable(name)}_FILE": str(self.file(name)) for name in FILES}
        return files | {"PRECEDENT_APP_ID": str(APP)}

    def file(self, name: str) -> Path:
        return self.folder / name

    def use(self, new: ServerOptions) -> None:
        App(APP, new.private_key).close()
        self.used.append(new)

    def check_until_settled(self) -> None:
        """Check as often as a change needs to take effect, and once more."""
        for _ in range(3):
            self.files.reload_changed()

    def lines(self) -> list[str]:
        return [json.loads(line)["message"] for line in self.log.getvalue().splitlines()]


@pytest.fixture
def watched_files(tmp_path: Path, own_log: None) -> WatchedFiles:
    files = WatchedFiles(tmp_path, io.StringIO())
    files.check_until_settled()
    return files


def test_unchanged_files_are_not_read_again(watched_files: WatchedFiles) -> None:
    assert (watched_files.used, watched_files.lines()) == ([], [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("private_key", key_pair("another")[0]),
        ("webhook_secret", THIRD),
        ("webhook_secret_old", THIRD),
        ("status_password", THIRD),
        ("operator_password", THIRD),
    ],
)
def test_a_new_value_takes_effect_and_is_hidden_in_the_log(watched_files: WatchedFiles, name: str, value: str) -> None:
    watched_files.file(name).write_text(f"{value}\n", encoding="utf-8")
    watched_files.check_until_settled()
    (new,) = watched_files.used
    assert {each: getattr(new, each) for each in FILES} == FILES | {name: value.strip()}
    assert watched_files.lines() == [f"{watched_files.file(name)} was read again"]
    for text in (value.strip(), FILES[name]):
        logging.getLogger("bot").info("it is %s", text.split("\n")[-2 if "\n" in text else 0])
    assert watched_files.lines()[1:] == [f"it is {HIDDEN}"] * 2


def test_changes_of_several_files_take_effect_together(watched_files: WatchedFiles) -> None:
    watched_files.file("webhook_secret_old").write_text(FIRST, encoding="utf-8")
    watched_files.check_until_settled()
    watched_files.file("webhook_secret").write_text(THIRD, encoding="utf-8")
    watched_files.check_until_settled()
    assert watched_files.used[-1].secrets == (THIRD.encode(), FIRST.encode())
    assert len(watched_files.used) == 2


def test_a_file_that_is_still_being_written_is_read_at_the_next_check(watched_files: WatchedFiles) -> None:
    watched_files.file("webhook_secret").write_text(THIRD[:-1], encoding="utf-8")
    watched_files.files.reload_changed()
    watched_files.file("webhook_secret").write_text(THIRD, encoding="utf-8")
    watched_files.files.reload_changed()
    assert watched_files.used == []
    watched_files.files.reload_changed()
    assert [new.webhook_secret for new in watched_files.used] == [THIRD]


def test_a_change_that_keeps_size_and_time_is_noticed(watched_files: WatchedFiles) -> None:
    file = watched_files.file("webhook_secret")
    before = file.stat()
    file.write_text(FIRST[::-1] + "\n", encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    watched_files.check_until_settled()
    assert [new.webhook_secret for new in watched_files.used] == [FIRST[::-1]]


def test_a_kubernetes_swap_of_linked_folders_is_noticed(watched_files: WatchedFiles) -> None:
    """https://kubernetes.io/docs/concepts/storage/volumes/#secret: ..data links to the current folder."""
    file = watched_files.file("webhook_secret")
    for name, text in (("first", FIRST), ("second", THIRD)):
        (watched_files.folder / name).mkdir()
        (watched_files.folder / name / "webhook_secret").write_text(text, encoding="utf-8")
    (watched_files.folder / "..data").symlink_to("first")
    file.unlink()
    file.symlink_to("..data/webhook_secret")
    watched_files.check_until_settled()
    (watched_files.folder / "..new").symlink_to("second")
    (watched_files.folder / "..new").rename(watched_files.folder / "..data")
    watched_files.check_until_settled()
    assert [new.webhook_secret for new in watched_files.used] == [THIRD]


BROKEN: list[tuple[str, bytes | None, str]] = [
    ("webhook_secret", b"", "PRECEDENT_WEBHOOK_SECRET_FILE is empty: write the value into it"),
    (
        "webhook_secret",
        b"Sesame",
        "PRECEDENT_WEBHOOK_SECRET is shorter than 16 characters: generate a longer random one",
    ),
    ("webhook_secret_old", None, "PRECEDENT_WEBHOOK_SECRET_OLD_FILE does not name a regular file"),
    ("status_password", b"Sesame \xff\xfe", "PRECEDENT_STATUS_PASSWORD_FILE cannot be read: it is not UTF-8 text"),
    ("operator_password", b"Sesame" * 9999, "PRECEDENT_OPERATOR_PASSWORD is longer than 16,384 characters"),
    (
        "private_key",
        b"-----BEGIN Sesame",
        "PRECEDENT_PRIVATE_KEY is not a private key in PEM format: use the file from GitHub unchanged",
    ),
    (
        "private_key",
        b"-----BEGIN RSA PRIVATE KEY-----\n" + b"Sesame" * 99 + b"\n-----END RSA PRIVATE KEY-----\n",
        "the App's private key is not an RSA key in PEM format: use the file that GitHub generated",
    ),
]


@pytest.mark.parametrize(("name", "content", "reason"), BROKEN)
def test_a_broken_value_is_refused_once_and_the_previous_one_stays(
    watched_files: WatchedFiles, name: str, content: bytes | None, reason: str
) -> None:
    file = watched_files.file(name)
    file.unlink() if content is None else file.write_bytes(content)
    watched_files.check_until_settled()
    assert watched_files.used == []
    assert watched_files.lines() == [f"{file} is not used; the previous value stays in use: {reason}"]
    assert "Sesame" not in watched_files.log.getvalue()
    watched_files.file("status_password").write_text(THIRD, encoding="utf-8")
    watched_files.check_until_settled()
    assert {each: getattr(watched_files.used[-1], each) for each in FILES} == FILES | {"status_password": THIRD}


def test_a_pipe_in_place_of_a_file_does_not_block(watched_files: WatchedFiles) -> None:
    watched_files.file("webhook_secret").unlink()
    os.mkfifo(watched_files.file("webhook_secret"))
    watched_files.check_until_settled()
    assert "does not name a regular file" in watched_files.lines()[0]


def test_a_new_database_url_takes_effect_at_the_next_start(watched_files: WatchedFiles) -> None:
    watched_files.file("database_url").write_text(DATABASE.replace("a-password", "another-one"), encoding="utf-8")
    watched_files.check_until_settled()
    assert watched_files.used == []
    assert watched_files.lines() == [f"{watched_files.file('database_url')} has changed: restart the server to use it"]
    logging.getLogger("bot").info("it is another-one")
    assert watched_files.lines()[1:] == [f"it is {HIDDEN}"]


def test_only_the_parent_of_a_worker_logs_refused_values(watched_files: WatchedFiles) -> None:
    watched_files.begin(warns=False)
    watched_files.file("private_key").write_text("Sesame", encoding="utf-8")
    watched_files.check_until_settled()
    assert watched_files.lines() == []


def test_sighup_reads_all_files_at_once(watched_files: WatchedFiles) -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        watched_files.begin(every=3600)
        watched_files.file("status_password").write_text(SECOND, encoding="utf-8")
        watched_files.files.watch()
        until(lambda: watched_files.used)
        watched_files.file("status_password").write_text(THIRD, encoding="utf-8")
        signal.raise_signal(signal.SIGHUP)
        until(lambda: len(watched_files.used) == 2)
        assert [new.status_password for new in watched_files.used] == [SECOND, THIRD]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_password_for_both_roles_is_refused_at_the_start(watched_files: WatchedFiles) -> None:
    watched_files.file("operator_password").write_text(PASSWORD, encoding="utf-8")
    with pytest.raises(UserError, match="PRECEDENT_OPERATOR_PASSWORD must differ from PRECEDENT_STATUS_PASSWORD"):
        read_options(watched_files.environ())


# -- a running server ----------------------------------------------------------------------------------------------


class RotationStage(ServerStage):
    """A stage whose server also reads the previous secret, and passwords for both roles, from files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name, text in (("old", SECOND), ("password", PASSWORD), ("operator", OPERATOR)):
            (folder / name).write_text(text, encoding="utf-8")
        files = {"WEBHOOK_SECRET_OLD": "old", "STATUS_PASSWORD": "password", "OPERATOR_PASSWORD": "operator"}
        self.settings = {f"{name}_FILE": str(folder / file) for name, file in files.items()} | {
            "STATUS_USER": "octocat"
        }

    def change(self, file: str, text: str) -> None:
        """Replace a file as people do, and wait until the server logs a line about it."""
        before = self.line_count(file)
        (self.folder / "new").write_text(text, encoding="utf-8")
        (self.folder / "new").rename(self.folder / file)
        until(lambda: self.line_count(file) > before, describe=self.log_text)

    def line_count(self, file: str) -> int:
        return sum(f"{self.folder / file} " in line["message"] for line in self.lines())

    def deliver_signed(self, secret: str) -> int:
        """Return the answer to a delivery that is signed with this secret."""
        self.github.hooks.secret = secret
        return self.deliver("issues", "opened", self.github.open_issue("octocat", "Sesame", "Open."))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[RotationStage]:
    rotation_stage = RotationStage(tmp_path)
    yield rotation_stage
    rotation_stage.close()
    assert rotation_stage.github.violations == []


@pytest.mark.slow
def test_the_webhook_secret_is_rotated_without_a_restart_or_a_refused_delivery(stage: RotationStage) -> None:
    stage.start(workers=0)
    assert [stage.deliver_signed(secret) for secret in (FIRST, SECOND, THIRD)] == [202, 202, 403]
    stage.change("old", FIRST)
    stage.change("webhook-secret", THIRD)
    assert [stage.deliver_signed(secret) for secret in (FIRST, SECOND, THIRD)] == [202, 403, 202]
    stage.change("webhook-secret", "short")
    assert [stage.deliver_signed(secret) for secret in (FIRST, "short", THIRD)] == [202, 403, 202]
    stage.change("old", THIRD)
    assert [stage.deliver_signed(secret) for secret in (FIRST, THIRD)] == [403, 202]
    assert stage.process is not None
    assert stage.process.poll() is None
    stage.stop()
    assert [word for word in (FIRST, SECOND, THIRD) if word in stage.log_text()] == []


@pytest.mark.night
@pytest.mark.slow
def test_a_new_private_key_reaches_running_workers(stage: RotationStage) -> None:
    stage.start()
    (worker,) = stage.children()
    stage.wait_for_resync()
    private, public = key_pair("another")
    stage.change("private-key", "-----BEGIN RSA PRIVATE KEY-----")
    time.sleep(2.5 * CHECK_INTERVAL)  # for the worker to see it too
    stage.change("private-key", private)
    until(
        lambda: stage.line_count("private-key") == 3, describe=stage.log_text
    )  # refused; read by the server, and by the worker
    stage.app.public_key = public
    other = stage.github.add_project("octo-org/other")  # its token is requested now
    stage.git.create("octo-org/other")
    stage.app.installations[APP].append(other.repo.id)
    assert stage.deliver("issues", "opened", other.open_issue("octocat", "Crash", "It does."), project=other) == 202
    stage.settle()
    assert {row.state for row in stage.rows()} == {"done"}
    assert stage.children() == [worker]
    os.kill(worker, signal.SIGKILL)
    until(
        lambda: {line["pid"] for line in stage.lines() if line["message"] == "working"} - {worker},
        describe=stage.log_text,
    )
    stage.stop()
    assert stage.log_text().count("the previous value stays in use") == 1
    assert not [line for line in (*key_pair()[0].splitlines(), *private.splitlines())[1:-1] if line in stage.log_text()]


@pytest.mark.slow
def test_the_passwords_of_both_roles_are_rotated_on_a_signal(stage: RotationStage) -> None:
    stage.start(workers=0)
    assert (page_status(stage, "/", PASSWORD), page_status(stage, "/operate", OPERATOR)) == (200, 303)
    assert stage.process is not None
    (stage.folder / "password").write_text(SECOND, encoding="utf-8")
    (stage.folder / "operator").write_text(THIRD, encoding="utf-8")
    stage.process.send_signal(signal.SIGHUP)
    until(lambda: stage.line_count("operator") and stage.line_count("password"), describe=stage.log_text)
    assert (page_status(stage, "/", SECOND), page_status(stage, "/", PASSWORD)) == (200, 401)
    assert (page_status(stage, "/operate", THIRD), page_status(stage, "/operate", OPERATOR)) == (303, 401)


def page_status(stage: ServerStage, path: str, password: str) -> int:
    headers = client.auth_headers(f"octocat:{password}")
    return asyncio.run(client.request_once(stage.port, "GET", path, headers)).status
