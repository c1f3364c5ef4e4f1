"""A repository where people ask the bot, over a fake GitHub and a real memory, run after run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from bot.comment.links import CommentLinks
from bot.comment.marker import marker
from bot.comment.render import Renderer
from bot.domain.changes import Request
from bot.domain.thread import RepositoryAddress
from bot.github.client import GitHubClient
from bot.github.discussion_comments import DiscussionComments
from bot.github.discussions import DiscussionReader
from bot.github.events import Event
from bot.github.fixes import FixFinder
from bot.github.history import GraphQLHistory
from bot.github.threads import OwnCommentRule
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.backfill import Clock, Deadline, backfill
from bot.pipeline.handle import handle_event
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.requests import unread_requests
from bot.pipeline.tools import Tools
from bot.settings.schema import Settings
from tests.fakes.github import FakeGitHub

REPO = "octocat/hello-world"
BOT = "github-actions[bot]"
DECISION = "We decided to go with PostgreSQL for the session store."
RENDERER = Renderer(links=CommentLinks(repo=REPO))
LATER = 180
"""Seconds after which other runs no longer wait for a run that promised a reply."""


def tools_for(github: FakeGitHub, memory: Memory, **choices: object) -> Tools:
    """What a run on this fake GitHub uses, at its time and with the settings as shipped; ``choices`` replace parts."""
    repo, own = github.repo.full_name, OwnCommentRule(BOT, marker())
    forge = GitHubClient(github.url, github.token, repo, write_gap=0)
    history = GraphQLHistory(repo, own, forge)
    tools = Tools(
        memory=memory,
        forge=forge,
        history=history,
        own=own,
        settings=Settings(),
        renderer=Renderer(links=CommentLinks(repo=repo)),
        address=RepositoryAddress(repo),
        fixes=FixFinder(forge, repo),
        discussions=DiscussionReader(history, own),
        discussion_comments=DiscussionComments(forge, repo),
        pages=(),
        started=datetime.fromisoformat(github.clock.now),
        clock=Clock(lambda: 0.0, lambda _: None, lambda _: None),
        began=0.0,
        note=lambda _: None,
    )
    return replace(tools, **choices)


class Killed(BaseException):
    """The run ends here, as if its process were killed."""


@dataclass
class SampleRepository:
    """A repository where people ask on issue 3; issue 1 decides for a database, issue 2 is about printers.

    ``copy_of`` is the folder of a sample repository whose memory this one begins with, ``results`` are those of the
    last run.
    """

    github: FakeGitHub
    folder: Path
    copy_of: Path | None = None
    settings: Settings = field(default_factory=Settings)
    renderer: Renderer = RENDERER
    muted: str = ""
    notes: list[str] = field(default_factory=list)
    results: list[CommentResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        forge = self.github
        forge.set_permission("hubot", "write")
        forge.open_issue("octocat", "Session store", "Where should sessions live?", at="2025-07-01T10:00:00Z")
        forge.comment(1, "hubot", DECISION, at="2025-07-02T10:00:00Z")
        forge.close(1, "hubot", at="2025-07-03T10:00:00Z")
        forge.open_issue("octocat", "Printer prints nothing", "It is out of ink.", at="2025-08-01T10:00:00Z")
        forge.close(2, "hubot", "not_planned", at="2025-08-02T10:00:00Z")
        forge.open_issue("monalisa", "Zyx", "Wvu tsr qpo.", at="2026-01-05T11:00:00Z")
        if self.copy_of:
            shutil.copytree(self.copy_of, self.folder, dirs_exist_ok=True)
        else:
            self.run(Event("issues", "opened", 3))

    def tools(self, memory: Memory) -> Tools:
        """What a run over this memory uses."""
        memory.hidden = self.settings.ignore.hidden
        choices = {"settings": self.settings, "renderer": self.renderer, "muted": self.muted}
        return tools_for(self.github, memory, note=self.notes.append, **choices)

    def memory(self) -> Memory:
        return Memory(FolderStore(self.folder / "store"))

    def run(self, event: Event, dies: str = "", meanwhile: Callable[[], object] = lambda: None) -> list[CommentResult]:
        """Handle an event. The run may die before its ``push`` to memory or before it writes (``say``); another may
        begin ``meanwhile``, before the push."""

        def on_stage(stage: str) -> None:
            if stage == dies:
                raise Killed
            if stage == "push":
                meanwhile()

        memory = self.memory()
        try:
            handled = handle_event(event, replace(self.tools(memory), on_stage=on_stage))
            handled.raise_error()
            self.results = handled.results
        except Killed:
            self.results = []
        finally:
            memory.close()
        return self.results

    def say(self, text: str, by: str = "monalisa", on: int = 3, **options: str) -> int:
        """Post a comment, and some seconds later run for its event."""
        comment_id = self.github.comment(on, by, text)
        self.github.clock.advance(20)
        self.run(Event("issue_comment", "created", on, comment_id=comment_id, comment_author=by), **options)
        return comment_id

    def read_history(self) -> None:
        """Read the whole history again, like a run that somebody starts by hand."""
        memory = self.memory().open()
        run = self.tools(memory)
        backfill(
            memory,
            run.history,
            Deadline(run.clock, run.now, max_age=run.max_age),
            None,
            partial(unread_requests, run=run),
        )
        memory.close()

    def later(self, seconds: int = LATER) -> list[CommentResult]:
        """Run on a schedule some time later."""
        self.github.clock.advance(seconds)
        return self.run(Event("schedule"))

    def replies(self, to: int | None = None) -> list[str]:
        """The texts of our replies, or of those to a comment (or, for a question in an issue's text, to the issue)."""
        texts = [str(comment.body) for comment in self.github.comments_by(BOT)]
        wanted = "reply=" if to is None else f"reply={to} "
        return [text for text in texts if wanted in text.partition("\n")[0]]

    def reactions(self, comment: int) -> list[str]:
        return [reaction.content for reaction in self.github.comment_by_id(comment).reactions]

    def requests(self, on: int = 3) -> tuple[Request, ...]:
        memory = self.memory().open()
        try:
            return memory.requests([on]).get(on, ())
        finally:
            memory.close()
