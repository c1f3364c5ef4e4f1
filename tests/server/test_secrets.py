"""What people write and what opens doors is nowhere: not in the queue, the logs, the pages, the list of processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github.keys import key_pair
from tests.server.stage import REPOSITORY, SECRET, STANDIN, ServerStage

pytestmark = pytest.mark.slow

WORDS = ("Sesame", "Marzipan", "Rhubarb", "monalisa", "hubot", "Zucchini")
"""Of titles, texts, comments, accounts and labels."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerStage]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    made = ServerStage(tmp_path, STANDIN, url)
    made.github.repo.private = True
    yield made
    made.close()
    assert made.github.violations == []


def told(stage: ServerStage) -> None:
    """A few things happen, of which the server hears."""
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


def found(texts: dict[str, bytes], words: list[str]) -> list[tuple[str, str]]:
    return [(where, word) for where, text in texts.items() for word in words if word.encode() in text]


def kept(stage: ServerStage) -> dict[str, bytes]:
    """Everything that lies in the server's folder, but for the memories, and in its database."""
    files = (file for file in stage.data.rglob("*") if file.is_file())
    texts = {str(file): file.read_bytes() for file in files if "clones" not in file.parts}
    if stage.database:
        texts["dump"] = subprocess.run(["pg_dump", stage.database], check=True, capture_output=True).stdout
    return texts


def test_nothing_that_people_wrote_and_no_secret_is_anywhere(stage: ServerStage) -> None:
    stage.start()
    told(stage)
    stage.settle()
    shown = {
        path: stage.get(path) for path in ("/", "/deliveries/1", "/metrics", "/healthz", "/readyz", "/status.json")
    }
    assert {status for status, _ in shown.values()} == {200}
    pages = {path: body.encode() for path, (_, body) in shown.items()}
    processes = {}
    for pid in [stage.process.pid if stage.process else 0, *stage.children()]:
        for name in ("cmdline", "environ"):
            processes[f"{name} of {pid}"] = Path(f"/proc/{pid}/{name}").read_bytes()
    stage.stop()
    everything = {**kept(stage), **pages, **processes, "log": stage.told().encode()}
    assert found(everything, [*WORDS, *credentials(stage)]) == []
    assert any(REPOSITORY.encode() in text for text in kept(stage).values()), "the search would find what is there"
    assert REPOSITORY not in pages["/metrics"].decode()


def test_a_delivery_that_is_refused_leaves_no_word_of_it(stage: ServerStage) -> None:
    stage.start(workers=0)
    stage.github.hooks.secret = "of somebody who only guesses"
    number = stage.github.open_issue("monalisa", "Sesame", "Marzipan")
    assert stage.deliver("issues", "opened", number) == 403
    stage.stop()
    assert found({**kept(stage), "log": stage.told().encode()}, [*WORDS, "who only guesses"]) == []
    assert stage.rows() == []


def test_the_folder_is_closed_to_others(stage: ServerStage) -> None:
    stage.start(workers=0)
    assert stage.data.stat().st_mode & 0o077 == 0
