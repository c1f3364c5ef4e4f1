"""Secrets that change while the server runs: the new ones count, broken ones do not, and none is in the log."""

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
from bot.server.secret_files import EVERY, SecretFiles
from tests.github.keys import key_pair
from tests.server import client
from tests.server.stage import APP, SECRET, ServerStage, until

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
class Watched:
    """Options from files in a folder; ``used`` are those that came later, and ``log`` what was said."""

    folder: Path
    log: io.StringIO
    used: list[ServerOptions] = field(default_factory=list)
    files: SecretFiles = field(init=False)

    def __post_init__(self) -> None:
        for name, text in FILES.items():
            self.file(name).write_text(f"{text}\n", encoding="utf-8")
        self.begin()

    def begin(self, **given: Any) -> SecretFiles:
        options = read_options(self.environ())
        write_logs("json", options.hidden, self.log)
        self.files = SecretFiles(options, self.environ(), self.use, **given)
        return self.files

    def environ(self) -> dict[str, str]:
        files = {f"{variable(name)}_FILE": str(self.file(name)) for name in FILES}
        return files | {"PRECEDENT_APP_ID": str(APP)}

    def file(self, name: str) -> Path:
        return self.folder / name

    def use(self, new: ServerOptions) -> None:
        App(APP, new.private_key).close()
        self.used.append(new)

    def settle(self) -> None:
        """As many looks as a change needs to be used, and one more."""
        for _ in range(3):
            self.files.reload_changed()

    def lines(self) -> list[str]:
        return [json.loads(line)["message"] for line in self.log.getvalue().splitlines()]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    root, ours = logging.getLogger(), logging.getLogger("bot")
    before = (list(root.handlers), root.level, ours.level)
    made = Watched(tmp_path, io.StringIO())
    made.settle()
    yield made
    logging.captureWarnings(capture=False)
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def test_files_that_do_not_change_are_left_alone(watched: Watched) -> None:
    assert (watched.used, watched.lines()) == ([], [])


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
def test_a_new_value_is_used_alone_and_in_no_line_of_the_log(watched: Watched, name: str, value: str) -> None:
    watched.file(name).write_text(f"{value}\n", encoding="utf-8")
    watched.settle()
    (new,) = watched.used
    assert {each: getattr(new, each) for each in FILES} == FILES | {name: value.strip()}
    assert watched.lines() == [f"{watched.file(name)} was read again"]
    for text in (value.strip(), FILES[name]):
        logging.getLogger("bot").info("it is %s", text.split("\n")[-2 if "\n" in text else 0])
    assert watched.lines()[1:] == [f"it is {HIDDEN}"] * 2


def test_all_that_changed_so_far_is_used_together(watched: Watched) -> None:
    watched.file("webhook_secret_old").write_text(FIRST, encoding="utf-8")
    watched.settle()
    watched.file("webhook_secret").write_text(THIRD, encoding="utf-8")
    watched.settle()
    assert watched.used[-1].secrets == (THIRD.encode(), FIRST.encode())
    assert len(watched.used) == 2


def test_a_file_that_is_being_written_is_read_at_the_next_look(watched: Watched) -> None:
    watched.file("webhook_secret").write_text(THIRD[:-1], encoding="utf-8")
    watched.files.reload_changed()
    watched.file("webhook_secret").write_text(THIRD, encoding="utf-8")
    watched.files.reload_changed()
    assert watched.used == []
    watched.files.reload_changed()
    assert [new.webhook_secret for new in watched.used] == [THIRD]


def test_a_file_of_the_same_size_and_time_is_another_one(watched: Watched) -> None:
    file = watched.file("webhook_secret")
    before = file.stat()
    file.write_text(FIRST[::-1] + "\n", encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    watched.settle()
    assert [new.webhook_secret for new in watched.used] == [FIRST[::-1]]


def test_a_folder_of_links_may_be_swapped_as_kubernetes_does(watched: Watched) -> None:
    """https://kubernetes.io/docs/concepts/storage/volumes/#secret: ..data is a link to the folder of now."""
    file = watched.file("webhook_secret")
    for name, text in (("first", FIRST), ("second", THIRD)):
        (watched.folder / name).mkdir()
        (watched.folder / name / "webhook_secret").write_text(text, encoding="utf-8")
    (watched.folder / "..data").symlink_to("first")
    file.unlink()
    file.symlink_to("..data/webhook_secret")
    watched.settle()
    (watched.folder / "..new").symlink_to("second")
    (watched.folder / "..new").rename(watched.folder / "..data")
    watched.settle()
    assert [new.webhook_secret for new in watched.used] == [THIRD]


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


@pytest.mark.parametrize(("name", "content", "why"), BROKEN)
def test_a_broken_value_is_refused_once_and_the_former_stays(
    watched: Watched, name: str, content: bytes | None, why: str
) -> None:
    file = watched.file(name)
    file.unlink() if content is None else file.write_bytes(content)
    watched.settle()
    assert watched.used == []
    assert watched.lines() == [f"{file} is not used; the previous value stays in use: {why}"]
    assert "Sesame" not in watched.log.getvalue()
    watched.file("status_password").write_text(THIRD, encoding="utf-8")
    watched.settle()
    assert {each: getattr(watched.used[-1], each) for each in FILES} == FILES | {"status_password": THIRD}


def test_a_pipe_in_place_of_a_file_holds_up_nothing(watched: Watched) -> None:
    watched.file("webhook_secret").unlink()
    os.mkfifo(watched.file("webhook_secret"))
    watched.settle()
    assert "does not name a regular file" in watched.lines()[0]


def test_the_address_of_the_database_counts_from_the_next_start(watched: Watched) -> None:
    watched.file("database_url").write_text(DATABASE.replace("a-password", "another-one"), encoding="utf-8")
    watched.settle()
    assert watched.used == []
    assert watched.lines() == [f"{watched.file('database_url')} has changed: restart the server to use it"]
    logging.getLogger("bot").info("it is another-one")
    assert watched.lines()[1:] == [f"it is {HIDDEN}"]


def test_a_worker_leaves_the_lines_about_refused_values_to_the_process_that_started_it(watched: Watched) -> None:
    watched.begin(warns=False)
    watched.file("private_key").write_text("Sesame", encoding="utf-8")
    watched.settle()
    assert watched.lines() == []


def test_sighup_reads_all_files_at_once(watched: Watched) -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        watched.begin(every=3600)
        watched.file("status_password").write_text(SECOND, encoding="utf-8")
        watched.files.watch()
        until(lambda: watched.used)
        watched.file("status_password").write_text(THIRD, encoding="utf-8")
        signal.raise_signal(signal.SIGHUP)
        until(lambda: len(watched.used) == 2)
        assert [new.status_password for new in watched.used] == [SECOND, THIRD]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_password_for_both_roles_is_refused_at_the_start(watched: Watched) -> None:
    watched.file("operator_password").write_text(PASSWORD, encoding="utf-8")
    with pytest.raises(UserError, match="PRECEDENT_OPERATOR_PASSWORD must differ from PRECEDENT_STATUS_PASSWORD"):
        read_options(watched.environ())


# -- a server that runs --------------------------------------------------------------------------------------------


class Rotated(ServerStage):
    """A stage whose server has the former secret, and passwords for both roles, in files too."""

    def __init__(self, folder: Path, module: str = "bot") -> None:
        super().__init__(folder, module)
        for name, text in (("old", SECOND), ("password", PASSWORD), ("operator", OPERATOR)):
            (folder / name).write_text(text, encoding="utf-8")

    def environ(self) -> dict[str, str]:
        files = {"WEBHOOK_SECRET_OLD": "old", "STATUS_PASSWORD": "password", "OPERATOR_PASSWORD": "operator"}
        more = {f"PRECEDENT_{name}_FILE": str(self.folder / file) for name, file in files.items()}
        return super().environ() | more | {"PRECEDENT_STATUS_USER": "octocat"}

    def change(self, file: str, text: str) -> None:
        """Replace a file as people do, and wait until the server says what it makes of it."""
        before = self.said(file)
        (self.folder / "new").write_text(text, encoding="utf-8")
        (self.folder / "new").rename(self.folder / file)
        until(lambda: self.said(file) > before, told=self.told)

    def said(self, file: str) -> int:
        return sum(f"{self.folder / file} " in line["message"] for line in self.lines())

    def delivered(self, secret: str) -> int:
        """The answer to a delivery that is signed with this secret."""
        self.github.hooks.secret = secret
        return self.deliver("issues", "opened", self.github.open_issue("octocat", "Sesame", "Open."))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Rotated]:
    made = Rotated(tmp_path)
    yield made
    made.close()
    assert made.github.violations == []


@pytest.mark.slow
def test_the_webhook_secret_is_exchanged_without_a_restart_and_a_refused_delivery(stage: Rotated) -> None:
    stage.start(workers=0)
    assert [stage.delivered(secret) for secret in (FIRST, SECOND, THIRD)] == [202, 202, 403]
    stage.change("old", FIRST)
    stage.change("webhook-secret", THIRD)
    assert [stage.delivered(secret) for secret in (FIRST, SECOND, THIRD)] == [202, 403, 202]
    stage.change("webhook-secret", "short")
    assert [stage.delivered(secret) for secret in (FIRST, "short", THIRD)] == [202, 403, 202]
    stage.change("old", THIRD)
    assert [stage.delivered(secret) for secret in (FIRST, THIRD)] == [403, 202]
    assert stage.process is not None
    assert stage.process.poll() is None
    stage.stop()
    assert [word for word in (FIRST, SECOND, THIRD) if word in stage.told()] == []


@pytest.mark.slow
def test_a_new_key_of_the_app_reaches_the_workers_that_run(stage: Rotated) -> None:
    stage.start()
    (worker,) = stage.children()
    stage.rest()
    private, public = key_pair("another")
    stage.change("private-key", "-----BEGIN RSA PRIVATE KEY-----")
    time.sleep(2.5 * EVERY)  # for the worker to see it too
    stage.change("private-key", private)
    until(lambda: stage.said("private-key") == 3, told=stage.told)  # refused; read by the server, and by the worker
    stage.app.public_key = public
    other = stage.github.add_project("octo-org/other")  # for whose token GitHub is asked now
    stage.git.create("octo-org/other")
    stage.app.installations[APP].append(other.repo.id)
    assert stage.deliver("issues", "opened", other.open_issue("octocat", "Crash", "It does."), project=other) == 202
    stage.settle()
    assert {row.state for row in stage.rows()} == {"done"}
    assert stage.children() == [worker]
    os.kill(worker, signal.SIGKILL)
    until(lambda: {line["pid"] for line in stage.lines() if line["message"] == "working"} - {worker}, told=stage.told)
    stage.stop()
    assert stage.told().count("the previous value stays in use") == 1
    assert not [line for line in (*key_pair()[0].splitlines(), *private.splitlines())[1:-1] if line in stage.told()]


@pytest.mark.slow
def test_the_passwords_of_both_roles_are_exchanged_on_a_signal(stage: Rotated) -> None:
    stage.start(workers=0)
    assert (asked(stage, "/", PASSWORD), asked(stage, "/operate", OPERATOR)) == (200, 303)
    assert stage.process is not None
    (stage.folder / "password").write_text(SECOND, encoding="utf-8")
    (stage.folder / "operator").write_text(THIRD, encoding="utf-8")
    stage.process.send_signal(signal.SIGHUP)
    until(lambda: stage.said("operator") and stage.said("password"), told=stage.told)
    assert (asked(stage, "/", SECOND), asked(stage, "/", PASSWORD)) == (200, 401)
    assert (asked(stage, "/operate", THIRD), asked(stage, "/operate", OPERATOR)) == (303, 401)


def asked(stage: ServerStage, path: str, password: str) -> int:
    headers = client.knowing(f"octocat:{password}")
    return asyncio.run(client.once(stage.port, "GET", path, headers)).status
