"""The server at a GitHub that somebody else wrote: what it says there, and in what that one is not GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.github.app import App
from bot.github.errors import Gone
from tests.fakes.httpd import Listener
from tests.fakes.service import Sent
from tests.github.keys import key_pair
from tests.server.emulator import INSTALLATION, VERSION, Emulated, EmulatedStage, missing
from tests.server.stage import APP, REPOSITORY, ROOT, SECRET, until

WHY_NOT = missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it is here")]

REPO = f"/repos/{REPOSITORY}"
DECISION = "We decided to use PostgreSQL for the session store: Redis lost every session on a restart."


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[EmulatedStage]:
    """Issue 1 has decided for a database, before the server runs."""
    made = EmulatedStage(tmp_path)
    made.opened("monalisa", "Session store", "Where should sessions live?")
    made.commented(1, "octocat", DECISION)
    made.closed(1, "octocat")
    until(lambda: len(made.bridge.answers) == 3)
    made.bridge.answers.clear()
    made.start()
    yield made
    made.close()


def test_signed_deliveries_become_comments_as_at_github(stage: EmulatedStage) -> None:
    number = stage.opened("monalisa", "Which database", "What database did we choose in #1?")
    until(lambda: stage.ours(number), 120, stage.told)
    (comment,) = stage.ours(number)
    assert "**Mentioned here**" in comment["body"]
    assert DECISION in comment["body"]
    until(lambda: len(stage.bridge.answers) == 2, 30)
    assert stage.bridge.answers == [("issues", 202), ("issue_comment", 202)]
    stage.settle()
    (row,) = stage.rows()
    assert (row.state, row.said, row.event.number) == ("done", "created", number)  # its own comment was dropped
    assert row.url == comment["html_url"]

    other = stage.opened("hubot", "Zyx", "Wvu tsr qpo.")
    stage.commented(other, "octocat", "/precedent search session store")
    until(lambda: stage.ours(other), 120, stage.told)
    assert "Session store" in stage.ours(other)[0]["body"]
    assert ("POST", 404) in {(verb, status) for verb, path, status in stage.bridge.asked if path.endswith("/reactions")}
    stage.settle()
    assert [row.state for row in stage.rows()] == ["done"] * 3
    assert stage.ours(number) == [comment]


def test_what_was_said_is_changed_when_the_issue_is(stage: EmulatedStage) -> None:
    stage.opened("hubot", "Dark mode for the printer", "At night it glares.")
    number = stage.opened("monalisa", "Which database", "What database did we choose in #1?")
    until(lambda: stage.ours(number), 120, stage.told)
    (before,) = stage.ours(number)
    stage.commented(number, "hubot", "Is that not like #2?")
    until(lambda: stage.ours(number)[0]["body"] != before["body"], 180, stage.told)
    (after,) = stage.ours(number)
    assert after["id"] == before["id"]
    assert "Dark mode for the printer" in after["body"]


class Heard:
    """An emulator with one issue and a comment on it, whose deliveries are kept."""

    def __init__(self, folder: Path) -> None:
        self.deliveries: list[dict[str, str]] = []
        self.ear = Listener(self._hear)
        self.emulated = Emulated(folder, self.ear.url)
        self.emulated.told("POST", f"{REPO}/issues", "monalisa", {"title": "Session store", "body": "Where?"})
        self.emulated.told("POST", f"{REPO}/issues/1/comments", "octocat", {"body": DECISION})
        with App(APP, key_pair()[0], self.emulated.url) as app:
            self.token = app.create_token(INSTALLATION, self.emulated.told("GET", REPO)["id"]).token
            with pytest.raises(Gone):
                list(app.repositories(INSTALLATION))

    def _hear(self, _method: str, _path: str, headers: dict[str, str], _body: bytes) -> Sent:
        self.deliveries.append(headers)
        return Sent(202, {}, b"")

    def status(self, method: str, path: str, data: object = None) -> int:
        return self.emulated.ask(method, path, self.token, data).status

    def stop(self) -> None:
        self.emulated.stop()
        self.ear.stop()


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heard]:
    made = Heard(tmp_path_factory.mktemp("emulate"))
    until(lambda: len(made.deliveries) == 2)
    yield made
    made.stop()


def kinds(heard: Heard) -> set[str]:
    return {item["event"] for item in heard.emulated.told("GET", f"{REPO}/issues/1/timeline", heard.token)}


DIFFERENCES: dict[str, Callable[[Heard], bool]] = {
    "The name of a delivery": lambda it: all(one["X-Github-Delivery"].isdigit() for one in it.deliveries),
    "Comments of a whole repository": lambda it: it.status("GET", f"{REPO}/issues/comments") == 404,
    "Comments in a timeline": lambda it: "commented" not in kinds(it) and "opened" in kinds(it),
    "GraphQL": lambda it: it.status("POST", "/graphql", {"query": "{viewer{login}}"}) == 404,
    "Reactions": lambda it: it.status("POST", f"{REPO}/issues/comments/1/reactions", {"content": "eyes"}) == 404,
    "Deliveries of the App": lambda it: it.status("GET", "/app/hook/deliveries") == 404,
    "Repositories of an installation": lambda it: it.status("GET", "/installation/repositories") == 404,
    "An invalid token": lambda it: it.emulated.ask("GET", f"{REPO}/issues", "ghs_unheard-of").status == 200,
    "Times": lambda it: "." in it.emulated.told("GET", f"{REPO}/issues/1")["created_at"],
    "ETag": lambda it: "Etag" not in it.emulated.ask("GET", REPO, it.token).headers,
    "Git": lambda it: it.status("GET", f"/{REPOSITORY}.git/info/refs?service=git-upload-pack") == 404,
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_it_still_differs_from_github_in(name: str, heard: Heard) -> None:
    assert DIFFERENCES[name](heard)


def test_the_documentation_lists_what_differs() -> None:
    page = (ROOT / "docs" / "emulate.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([^|]+?) \|", page, re.MULTILINE)[2:] == list(DIFFERENCES)
    assert f"`emulate@{VERSION}`" in page


def test_its_signature_is_that_of_the_very_bytes(tmp_path: Path) -> None:
    """The bridge passes them on as they are; with another secret at the server every one is refused."""
    made = EmulatedStage(tmp_path)
    try:
        (tmp_path / "webhook-secret").write_text(SECRET[::-1], encoding="utf-8")
        made.start(workers=0)
        made.opened("monalisa", "Session store", json.dumps("ä \u2028 </script>"))
        until(lambda: made.bridge.answers, 30)
        assert made.bridge.answers == [("issues", 403)]
        assert made.stop()[0] == 0
        (tmp_path / "webhook-secret").write_text(SECRET, encoding="utf-8")
        made.start(workers=0)
        made.opened("monalisa", "Session store", json.dumps("ä \u2028 </script>"))
        until(lambda: len(made.bridge.answers) == 2, 30)
        assert made.bridge.answers[1:] == [("issues", 202)]
    finally:
        made.close()
