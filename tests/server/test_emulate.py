"""The server against a GitHub emulator that somebody else wrote, and how that differs from GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.github.app import App
from bot.github.errors import Gone
from tests.fakes.httpd import Listener
from tests.fakes.service import SentReply
from tests.github.keys import key_pair
from tests.server.emulator import INSTALLATION, VERSION, EmulatedStage, EmulatorProcess, missing
from tests.server.server_process import APP, REPOSITORY, ROOT, SECRET, until

WHY_NOT = missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it is here")]

REPO = f"/repos/{REPOSITORY}"
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


class EmulatorObserver:
    """An emulator with an issue and a comment, whose deliveries are recorded."""

    def __init__(self, folder: Path) -> None:
        self.deliveries: list[dict[str, str]] = []
        self.webhook_listener = Listener(self._record)
        self.emulated = EmulatorProcess(folder, self.webhook_listener.url)
        self.emulated.fetch_json("POST", f"{REPO}/issues", "monalisa", {"title": "Session store", "body": "Where?"})
        self.emulated.fetch_json("POST", f"{REPO}/issues/1/comments", "octocat", {"body": DECISION})
        with App(APP, key_pair()[0], self.emulated.url) as app:
            self.token = app.create_token(INSTALLATION, self.emulated.fetch_json("GET", REPO)["id"]).token
            with pytest.raises(Gone):
                list(app.repositories(INSTALLATION))

    def _record(self, _method: str, _path: str, headers: dict[str, str], _body: bytes) -> SentReply:
        self.deliveries.append(headers)
        return SentReply(202, {}, b"")

    def status(self, method: str, path: str, data: object = None) -> int:
        return self.emulated.ask(method, path, self.token, data).status

    def stop(self) -> None:
        self.emulated.stop()
        self.webhook_listener.stop()


@pytest.fixture(scope="module")
def observer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorObserver]:
    emulator = EmulatorObserver(tmp_path_factory.mktemp("emulate"))
    until(lambda: len(emulator.deliveries) == 2)
    yield emulator
    emulator.stop()


def timeline_kinds(observer: EmulatorObserver) -> set[str]:
    return {item["event"] for item in observer.emulated.fetch_json("GET", f"{REPO}/issues/1/timeline", observer.token)}


DIFFERENCES: dict[str, Callable[[EmulatorObserver], bool]] = {
    "The name of a delivery": lambda it: all(one["X-Github-Delivery"].isdigit() for one in it.deliveries),
    "Comments of a whole repository": lambda it: it.status("GET", f"{REPO}/issues/comments") == 404,
    "Comments in a timeline": lambda it: "commented" not in timeline_kinds(it) and "opened" in timeline_kinds(it),
    "GraphQL": lambda it: it.status("POST", "/graphql", {"query": "{viewer{login}}"}) == 404,
    "Reactions": lambda it: it.status("POST", f"{REPO}/issues/comments/1/reactions", {"content": "eyes"}) == 404,
    "Deliveries of the App": lambda it: it.status("GET", "/app/hook/deliveries") == 404,
    "Repositories of an installation": lambda it: it.status("GET", "/installation/repositories") == 404,
    "An invalid token": lambda it: it.emulated.ask("GET", f"{REPO}/issues", "ghs_unheard-of").status == 200,
    "Times": lambda it: "." in it.emulated.fetch_json("GET", f"{REPO}/issues/1")["created_at"],
    "ETag": lambda it: "Etag" not in it.emulated.ask("GET", REPO, it.token).headers,
    "Git": lambda it: it.status("GET", f"/{REPOSITORY}.git/info/refs?service=git-upload-pack") == 404,
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_emulator_still_differs_from_github_in(name: str, observer: EmulatorObserver) -> None:
    assert DIFFERENCES[name](observer)


def test_the_documentation_lists_the_differences() -> None:
    page = (ROOT / "docs" / "emulate.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([^|]+?) \|", page, re.MULTILINE)[2:] == list(DIFFERENCES)
    assert f"`emulate@{VERSION}`" in page


def test_the_emulator_signs_the_exact_bytes_of_the_body(tmp_path: Path) -> None:
    """The bridge passes bodies unchanged; a server with another secret refuses every one."""
    emulated = EmulatedStage(tmp_path)
    try:
        (tmp_path / "webhook-secret").write_text(SECRET[::-1], encoding="utf-8")
        emulated.start(workers=0)
        emulated.open_issue("monalisa", "Session store", json.dumps("ä \u2028 </script>"))
        until(lambda: emulated.bridge.answers, 30)
        assert emulated.bridge.answers == [("issues", 403)]
        assert emulated.stop()[0] == 0
        (tmp_path / "webhook-secret").write_text(SECRET, encoding="utf-8")
        emulated.start(workers=0)
        emulated.open_issue("monalisa", "Session store", json.dumps("ä \u2028 </script>"))
        until(lambda: len(emulated.bridge.answers) == 2, 30)
        assert emulated.bridge.answers[1:] == [("issues", 202)]
    finally:
        emulated.close()
