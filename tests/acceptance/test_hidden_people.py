"""Nothing of an account that opted out, and no text that controls anything, is in what the bot posts or reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.stage import BOT, Stage, summary, with_memory
from tests.threats.test_every_door import CONTROL
from tests.threats.walked_memory import CANARY, HOSTILE

pytestmark = pytest.mark.slow
HIDDEN, SECRET = "Villain", "xylophone"
SETTINGS = "ignore: {people: [villain]}\nmentions: {speak: always}\nreleases: {notify: comment}\n"
LOOP = "After the upgrade the login form comes back at once:\n\n```\nE42: login cookie refused by linkbarn\n```\n"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    return empty_stage.begin(with_project, with_memory)


def with_project(stage: Stage) -> None:
    github = stage.github
    github.set_permission("octocat", "write")
    github.set_permission(HIDDEN, "write")
    github.add_commit("Begin", "octocat", at="2025-11-01T10:00:00Z")
    github.add_release("v2.2.0", at="2025-11-01T10:00:00Z")
    stage.configure(SETTINGS)


def with_threads(stage: Stage, author: str, words: str) -> None:
    """Issues (1 to 4), a pull request and a release in which ``author`` took part, with these words."""
    github = stage.github
    github.open_issue("monalisa", "Login loops after the upgrade", LOOP, at="2025-12-01T10:00:00Z")
    github.comment(1, author, f"We decided to clear the login cookie. {words}", at="2025-12-02T10:00:00Z")
    github.comment(1, "hubot", "The same here, with the old login cookie.", at="2025-12-02T11:00:00Z")
    github.close(1, author, at="2025-12-03T10:00:00Z")
    github.open_issue(author, "Login form comes back", f"{LOOP}\n{words}", at="2025-12-04T10:00:00Z")
    github.comment(2, "octocat", "Looks like #1, with another login cookie.", at="2025-12-05T10:00:00Z")
    github.open_issue("hubot", "Login cookie refused", f"{LOOP}\nAs in #2.", at="2025-12-06T10:00:00Z")
    github.comment(3, author, f"The login cookie works for me. {words}", at="2025-12-07T10:00:00Z")
    stage.deliver("schedule", after=600)
    pull = github.add_pull(author, "Clear the login cookie", f"Fixes #3. {words}", closes=[3])
    github.merge_pull(pull, author)
    stage.deliver("schedule", after=600)


def published(stage: Stage) -> Iterator[tuple[str, str]]:
    """Run every event that leads to a comment, reply, notice or report; what each said, by its name."""
    number = int(stage.github.open_issue("monalisa", "Login loops again", f"{LOOP}\nAs in #1, #2 and #3."))
    stage.deliver("issues", "opened", number)
    yield "summary of a comment", summary(stage)
    for words in (
        "/precedent search login cookie", "/precedent context #1, #2, #3", "/precedent search author:villain login",
        "What did we decide about the login cookie?", "/precedent help", "/precedent villain",
    ):  # fmt: skip
        comment = stage.github.comment(number, "octocat", words)
        stage.deliver("issue_comment", "created", number, comment)
        yield f"summary of {words}", summary(stage)
        if context := stage.outputs()["context"]:
            yield f"context after {words}", Path(context).read_text(encoding="utf-8")
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0", body="Faster.")
    stage.deliver("release", "published", after=600)
    yield "summary of a release", summary(stage)
    for run in ("digest", "rebuild", "backtest", "answer"):
        inputs = {"issue": str(number)} if run == "answer" else {}
        stage.deliver("workflow_dispatch", after=600, run=run, **inputs)
        yield f"report of {run}", summary(stage)
    for comment in stage.github.comments_by(BOT):
        yield f"comment {comment.id}", str(comment.body)


def test_no_comment_reply_notice_or_report_shows_a_hidden_account(stage: Stage) -> None:
    with_threads(stage, HIDDEN, f"The {SECRET} is to blame.")
    texts = dict(published(stage))
    ours = [text for name, text in texts.items() if name.startswith("comment ")]
    assert len(ours) >= 6
    assert any("v2.3.0" in text for text in ours), "a notice of the release"
    assert {name: text for name, text in texts.items() if SECRET in text.casefold()} == {}
    told = {name: text for name, text in texts.items() if HIDDEN.casefold() in text.casefold()}
    assert all("precedent villain" in text or "author:villain" in text for text in told.values()), told


def test_the_same_words_of_others_are_shown(stage: Stage) -> None:
    with_threads(stage, "octocat", f"The {SECRET} is to blame.")
    assert sum(SECRET in text.casefold() for _, text in published(stage)) >= 4


def test_no_comment_reply_notice_or_report_is_controlled_by_a_stranger(stage: Stage) -> None:
    with_threads(stage, "octocat", HOSTILE)
    texts = dict(published(stage))
    assert any(CANARY.partition(":")[0] in text for text in texts.values())
    assert {name: text for name, text in texts.items() if CONTROL.search(text.replace("\u200b", ""))} == {}
