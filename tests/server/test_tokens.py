"""A token of the App is in memory and in what git is given for one request, and nowhere else."""

from __future__ import annotations

import base64
import logging
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.github.keys import key_pair
from tests.server.places import APP
from tests.server.queues import Queue
from tests.server.town import Town

SECRET = "the secret of all deliveries"
WRAPPER = """#!/bin/sh
printf '%s\\0' "$@" >"{place}/$$.words"
env -0 >"{place}/$$.environment"
exec {git} "$@"
"""
REPOSITORY = re.compile(r"[1-9][0-9]*-[0-9]+")


def spied_upon(folder: Path) -> Path:
    """A folder with a git that writes down what it is given, below the folder ``told`` in it."""
    (folder / "told").mkdir(parents=True)
    script = folder / "git"
    script.write_text(WRAPPER.format(place=folder / "told", git=shutil.which("git")), encoding="utf-8")
    script.chmod(0o755)
    return folder


def tokens_of(town: Town) -> list[str]:
    return [text for text in town.github.world.tokens if text.startswith(f"ghs_{APP}_")]


def forms(tokens: list[str]) -> list[bytes]:
    """A token as it is, and as basic authentication has it."""
    basic = [base64.b64encode(f"x-access-token:{each}".encode()) for each in tokens]
    return [*(each.encode() for each in tokens), *basic]


def kept(folder: Path, queue: Queue) -> bytes:
    """Everything in the queue's database and in a folder."""
    files = [file for place in (folder, queue.folder) for file in place.rglob("*") if file.is_file()]
    dump = b""
    if queue.url.startswith("postgresql"):
        from bot.server.database import Database

        database = Database(queue.url)
        with database.transaction() as asking:
            tables = asking.rows("select schemaname as place, tablename as name from pg_tables where schemaname in"
                                 " ('public', 'precedent')")  # fmt: skip
            dump = repr([asking.rows(f'select * from "{each["place"]}"."{each["name"]}"') for each in tables]).encode()
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
    spies = spied_upon(tmp_path_factory.mktemp("spies"))  # outside of the folders that are searched
    town = Town(tmp_path / "town", queue.inbox)
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    number = town.ask(project)
    monkeypatch.setenv("PATH", f"{spies}:{os.environ['PATH']}")
    monkeypatch.setenv("PRECEDENT_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("PRECEDENT_PRIVATE_KEY", key_pair()[0])
    town.run(town.repository(project))
    monkeypatch.undo()
    assert len(town.comments(project, number)) == 1
    tokens = tokens_of(town)
    assert len(tokens) == 1
    everything = kept(town.clones, queue) + caplog.text.encode()
    assert b"octo-org/app" in everything, "the search would find what is there"
    words = b"".join(file.read_bytes() for file in (spies / "told").glob("*.words"))
    assert b"fetch" in words
    for form in forms(tokens):
        assert form not in everything
        assert form not in words
    for file in (spies / "told").glob("*.environment"):
        variables = dict(each.split("=", 1) for each in file.read_text(encoding="utf-8").split("\0") if "=" in each)
        if "GIT_CONFIG_COUNT" in variables:  # the others serve the requests
            told = {name for name, value in variables.items() if any(form.decode() in value for form in forms(tokens))}
            assert all(name.startswith("GIT_CONFIG_VALUE_") for name in told)
            assert not [value for value in variables.values() if SECRET in value or "PRIVATE KEY" in value]
    town.close()


@pytest.mark.slow
def test_keys_clones_and_locks_bear_numbers_and_no_names(tmp_path: Path, queue: Queue) -> None:
    town = Town(tmp_path / "town", queue.inbox)
    for name in ("octo-org/app", "octocat/app"):
        project = town.project(name, "PostgreSQL")
        town.github.tenants.install(name.partition("/")[0], [name])
        town.ask(project)
    keys = queue.keys()
    assert all(REPOSITORY.fullmatch(key) for key in keys)
    assert len(keys) == 2
    town.settle()
    names = {place.name.removesuffix(".lock") for place in town.clones.iterdir()}
    assert len(names) == 2
    assert all(REPOSITORY.fullmatch(name) for name in names)
    town.close()
