"""A token of the App is only in memory and in the environment of git for one request, nowhere else."""

from __future__ import annotations

import base64
import logging
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.github.keys import key_pair
from tests.server.app_environment import APP
from tests.server.harness import ServerHarness
from tests.server.queues import Queue

SECRET = "the secret of all deliveries"
WRAPPER = """#!/bin/sh
printf '%s\\0' "$@" >"{place}/$$.words"
env -0 >"{place}/$$.environment"
exec {git} "$@"
"""
REPOSITORY = re.compile(r"[1-9][0-9]*-[0-9]+")


def create_git_spy(folder: Path) -> Path:
    """Create a git that records its arguments and environment in the folder ``told`` beside it."""
    (folder / "told").mkdir(parents=True)
    script = folder / "git"
    script.write_text(WRAPPER.format(place=folder / "told", git=shutil.which("git")), encoding="utf-8")
    script.chmod(0o755)
    return folder


def encoded_forms(tokens: list[str]) -> list[bytes]:
    """Return tokens as they are, and as in basic authentication."""
    basic = [base64.b64encode(f"x-access-token:{each}".encode()) for each in tokens]
    return [*(each.encode() for each in tokens), *basic]


def stored_data(folder: Path, queue: Queue) -> bytes:
    """Return everything in the queue's database and in a folder."""
    files = [file for root in (folder, queue.folder) for file in root.rglob("*") if file.is_file()]
    dump = b""
    if queue.url.startswith("postgresql"):
        from bot.server.storage.database import Database

        database = Database(queue.url)
        with database.transaction() as reading:
            tables = reading.rows("select schemaname as place, tablename as name from pg_tables where schemaname in"
                                 " ('public', 'precedent')")  # fmt: skip
            dump = repr([reading.rows(f'select * from "{each["place"]}"."{each["name"]}"') for each in tables]).encode()
        database.close()
    return dump + b"".join(file.read_bytes() for file in files)


@pytest.mark.slow
def test_a_token_is_in_no_database_log_file_or_argument(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    queue: Queue,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    git_spy = create_git_spy(tmp_path_factory.mktemp("spies"))  # outside of the folders that are searched
    harness = ServerHarness(tmp_path / "town", queue.inbox)
    project = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    number = harness.ask(project)
    monkeypatch.setenv("PATH", f"{git_spy}:{os.environ['PATH']}")
    monkeypatch.setenv("PRECEDENT_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("PRECEDENT_PRIVATE_KEY", key_pair()[0])
    harness.run(harness.repository(project))
    monkeypatch.undo()
    assert len(harness.comments(project, number)) == 1
    tokens = [text for text in harness.github.world.tokens if text.startswith(f"ghs_{APP}_")]
    assert len(tokens) == 1
    everything = stored_data(harness.clones, queue) + caplog.text.encode()
    assert b"octo-org/app" in everything, "the search would find what is there"
    arguments = b"".join(file.read_bytes() for file in (git_spy / "told").glob("*.words"))
    assert b"fetch" in arguments
    for form in encoded_forms(tokens):
        assert form not in everything
        assert form not in arguments
    for file in (git_spy / "told").glob("*.environment"):
        environment = dict(each.split("=", 1) for each in file.read_text(encoding="utf-8").split("\0") if "=" in each)
        if "GIT_CONFIG_COUNT" in environment:  # the others serve the requests
            names_with_token = {
                name
                for name, value in environment.items()
                if any(form.decode() in value for form in encoded_forms(tokens))
            }
            assert all(name.startswith("GIT_CONFIG_VALUE_") for name in names_with_token)
            assert not [value for value in environment.values() if SECRET in value or "PRIVATE KEY" in value]
    harness.close()


@pytest.mark.slow
def test_keys_clones_and_locks_are_named_by_numbers_only(tmp_path: Path, queue: Queue) -> None:
    harness = ServerHarness(tmp_path / "town", queue.inbox)
    for name in ("octo-org/app", "octocat/app"):
        project = harness.project(name, "PostgreSQL")
        harness.github.tenants.install(name.partition("/")[0], [name])
        harness.ask(project)
    keys = queue.keys()
    assert all(REPOSITORY.fullmatch(key) for key in keys)
    assert len(keys) == 2
    harness.settle()
    names = {path.name.removesuffix(".lock") for path in harness.clones.iterdir()}
    assert len(names) == 2
    assert all(REPOSITORY.fullmatch(name) for name in names)
    harness.close()
