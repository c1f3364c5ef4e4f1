"""Neither text of people nor secrets get into the queue, the logs, the pages or the list of processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github.keys import key_pair
from tests.server.server_process import REPOSITORY, SECRET, STANDIN, ServerStage

pytestmark = pytest.mark.slow

WORDS = ("Sesame", "Marzipan", "Rhubarb", "monalisa", "hubot", "Zucchini")
"""From titles, texts, comments, accounts and labels."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerStage]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    server_stage = ServerStage(tmp_path, STANDIN, url)
    server_stage.github.repo.private = True
    yield server_stage
    server_stage.close()
    assert server_stage.github.violations == []


def deliver_events(stage: ServerStage) -> None:
    """Deliver a few events."""
    github = stage.github
    number = github.open_issue("monalisa", "Sesame does not open", "With Marzipan it did.", labels=["Zucchini"])
    comment = github.comment(number, "hubot", "Rhubarb opens it.")
    assert stage.deliver("issues", "opened", number) == 202
    assert stage.deliver("issue_comment", "created", number, comment) == 202
    github.close(number, "monalisa")
    assert stage.deliver("issues", "closed", number) == 202
    assert stage.deliver("issues", "labeled", number) == 202


def credentials(stage: ServerStage) -> list[str]:
    key = key_pair()[0]
    tokens = [text for text in stage.github.world.tokens if text.startswith("ghs_")]
    return [SECRET, *key.splitlines()[1:-1], *tokens, "sha256=", "eyJ"]


def matches(texts: dict[str, bytes], words: list[str]) -> list[tuple[str, str]]:
    return [(place, word) for place, text in texts.items() for word in words if word.encode() in text]


def stored_data(stage: ServerStage) -> dict[str, bytes]:
    """Return everything in the server's folder, except for the memories, and in its database."""
    files = (file for file in stage.data.rglob("*") if file.is_file())
    texts = {str(file): file.read_bytes() for file in files if "clones" not in file.parts}
    if stage.database:
        texts["dump"] = subprocess.run(["pg_dump", stage.database], check=True, capture_output=True).stdout
    return texts


def test_no_text_of_people_and_no_secret_is_stored_logged_or_shown(stage: ServerStage) -> None:
    stage.start()
    deliver_events(stage)
    stage.settle()
    responses = {
        path: stage.get(path) for path in ("/", "/deliveries/1", "/metrics", "/healthz", "/readyz", "/status.json")
    }
    assert {status for status, _ in responses.values()} == {200}
    pages = {path: body.encode() for path, (_, body) in responses.items()}
    processes = {}
    for pid in [stage.process.pid if stage.process else 0, *stage.children()]:
        for name in ("cmdline", "environ"):
            processes[f"{name} of {pid}"] = Path(f"/proc/{pid}/{name}").read_bytes()
    stage.stop()
    everything = {**stored_data(stage), **pages, **processes, "log": stage.log_text().encode()}
    assert matches(everything, [*WORDS, *credentials(stage)]) == []
    assert any(REPOSITORY.encode() in text for text in stored_data(stage).values()), (
        "the search would find what is there"
    )
    assert REPOSITORY not in pages["/metrics"].decode()


@pytest.mark.night
def test_a_refused_delivery_leaves_no_text_behind(stage: ServerStage) -> None:
    stage.start(workers=0)
    stage.github.hooks.secret = "of somebody who only guesses"
    number = stage.github.open_issue("monalisa", "Sesame", "Marzipan")
    assert stage.deliver("issues", "opened", number) == 403
    stage.stop()
    assert matches({**stored_data(stage), "log": stage.log_text().encode()}, [*WORDS, "who only guesses"]) == []
    assert stage.rows() == []


@pytest.mark.night
def test_the_data_folder_is_closed_to_other_users(stage: ServerStage) -> None:
    stage.start(workers=0)
    assert stage.data.stat().st_mode & 0o077 == 0
