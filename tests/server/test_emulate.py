"""The server against a GitHub emulator that somebody else wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.emulator import EmulatedStage, missing
from tests.server.server_process import SECRET, until

WHY_NOT = missing()
pytestmark = [pytest.mark.night, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it is here")]

DECISION = "We decided to use PostgreSQL for the session store: Redis lost every session on a restart."


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[EmulatedStage]:
    """A running server; before it starts, issue 1 has decided on a database."""
    emulated = EmulatedStage(tmp_path)
    emulated.open_issue("monalisa", "Session store", "Where should sessions live?")
    emulated.comment(1, "octocat", DECISION)
    emulated.close_issue(1, "octocat")
    until(lambda: len(emulated.bridge.answers) == 3)
    emulated.bridge.answers.clear()
    emulated.start()
    yield emulated
    emulated.close()


def test_signed_deliveries_become_comments_as_on_github(stage: EmulatedStage) -> None:
    number = stage.open_issue("monalisa", "Which database", "What database did we choose in #1?")
    until(lambda: stage.our_comments(number), 120, stage.log_text)
    (comment,) = stage.our_comments(number)
    assert "**Mentioned here**" in comment["body"]
    assert DECISION in comment["body"]
    until(lambda: len(stage.bridge.answers) == 2, 30)
    assert stage.bridge.answers == [("issues", 202), ("issue_comment", 202)]
    stage.settle()
    (row,) = stage.rows()
    assert (row.state, row.said, row.event.number) == ("done", "created", number)  # its own comment was dropped
    assert row.url == comment["html_url"]

    other = stage.open_issue("hubot", "Zyx", "Wvu tsr qpo.")
    stage.comment(other, "octocat", "/precedent search session store")
    until(lambda: stage.our_comments(other), 120, stage.log_text)
    assert "Session store" in stage.our_comments(other)[0]["body"]
    assert ("POST", 404) in {
        (verb, status) for verb, path, status in stage.bridge.requests if path.endswith("/reactions")
    }
    stage.settle()
    assert [row.state for row in stage.rows()] == ["done"] * 3
    assert stage.our_comments(number) == [comment]


def test_our_comment_is_updated_when_the_issue_changes(stage: EmulatedStage) -> None:
    stage.open_issue("hubot", "Dark mode for the printer", "At night it glares.")
    number = stage.open_issue("monalisa", "Which database", "What database did we choose in #1?")
    until(lambda: stage.our_comments(number), 120, stage.log_text)
    (before,) = stage.our_comments(number)
    stage.comment(number, "hubot", "Is that not like #2?")
    until(lambda: stage.our_comments(number)[0]["body"] != before["body"], 180, stage.log_text)
    (after,) = stage.our_comments(number)
    assert after["id"] == before["id"]
    assert "Dark mode for the printer" in after["body"]


def test_the_emulator_signs_the_exact_bytes_of_the_body(tmp_path: Path) -> None:
    """The bridge passes bodies unchanged; a server with another secret refuses every one."""
    emulated = EmulatedStage(tmp_path)
    try:
        (tmp_path / "webhook-secret").write_text(SECRET[::-1], encoding="utf-8")
        emulated.start(workers=0)
        emulated.open_issue("monalisa", "Session store", json.dumps("ä \u2028 </script>"))
        until(lambda: emulated.bridge.answers, 30)
        assert emulated.bridge.answers == [("issues", 403)]
        assert emulated.stop() == 0
        (tmp_path / "webhook-secret").write_text(SECRET, encoding="utf-8")
        emulated.start(workers=0)
        emulated.open_issue("monalisa", "Session store", json.dumps("ä \u2028 </script>"))
        until(lambda: len(emulated.bridge.answers) == 2, 30)
        assert emulated.bridge.answers[1:] == [("issues", 202)]
    finally:
        emulated.close()
