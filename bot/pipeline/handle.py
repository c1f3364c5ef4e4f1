"""Handles one event from start to finish. Read this first.

event → what changed → memory → the drafts → memory is pushed → the posts
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from bot.domain.changes import Changes
from bot.domain.post import Post, PostKey, replied_to
from bot.github.events import Event
from bot.pipeline.clusters import Clusters
from bot.pipeline.commands import Commands
from bot.pipeline.comments import Comments
from bot.pipeline.discussions import look_at_discussions
from bot.pipeline.documents import Documents
from bot.pipeline.draft import Draft
from bot.pipeline.feedback import Votes
from bot.pipeline.fetch import fetch_changes
from bot.pipeline.forgetting import Forgetting
from bot.pipeline.learn import Learning
from bot.pipeline.notices import Notices
from bot.pipeline.promises import promised_post, settled_post
from bot.pipeline.reconcile import CommentResult, reconcile
from bot.pipeline.renewals import Renewals
from bot.pipeline.room import House, Room, Settlement
from bot.pipeline.tools import Tools

ROOMS: tuple[type[Room], ...] = (
    Votes,
    Documents,
    Learning,
    Clusters,
    Forgetting,
    Commands,
    Comments,
    Renewals,
    Notices,
)
"""The features, in the order of their turns. What a room learns, those after it know."""


class Handled(NamedTuple):
    """For each post that was due, what was written or why nothing was; and the first error of a room that failed, while
    the others went on."""

    results: list[CommentResult]
    error: Exception | None = None

    def raise_error(self) -> None:
        if self.error:
            raise self.error


def handle_event(event: Event, run: Tools) -> Handled:
    """Handle one event. Raises what no later step could do without (see `Room`)."""
    run.on_stage("look")
    facts = fetch_changes(event, run)
    look_at_discussions(facts, run)
    run.on_stage("remember")
    run.memory.stage(facts.changes)
    house = House([room(facts, run) for room in ROOMS])
    house.each(lambda room: room.look())
    run.on_stage("plan")
    house.each(lambda room: facts.drafts.extend(room.plan()))
    drafts = [run.permit.restrict(draft) for draft in facts.drafts]
    promised = promise(drafts, run)
    run.memory.stage(Changes(posts=tuple(promised.values())))
    run.on_stage("push")
    run.memory.commit(_commit_message(event))
    if facts.is_first and run.memory.issues:
        _note_first_run(run)
    run.on_stage("say")
    settlements = [carry_out(draft, promised.get(draft.key), run) for draft in still_ours(drafts, run)]
    house.each(lambda room: room.settle(settlements), is_stored=True)
    if posts := _settled_posts(settlements, run.now):
        run.memory.stage(Changes(posts=posts))
    if run.memory.has_staged:
        run.memory.commit("Keep what became of the comments")
    return Handled([settlement.result for settlement in settlements], house.error)


def promise(drafts: Iterable[Draft], run: Tools) -> dict[PostKey, Post]:
    """The posts to store before anything is written."""
    since = run.current_time()
    posts = ((draft.key, promised_post(draft, run.now, run.permit, since)) for draft in drafts)
    return {key: post for key, post in posts if post}


def carry_out(draft: Draft, promised: Post | None, run: Tools) -> Settlement:
    return Settlement(draft, promised, reconcile(draft, run, promised))


def still_ours(drafts: Iterable[Draft], run: Tools) -> list[Draft]:
    """The drafts after the push. If two runs promised the same at once, only one of them posts it; if a thread was
    forgotten meanwhile, a later run plans again, as any draft may show it. Comments come first."""
    memory, kept = run.memory, list[Draft]()
    for draft in drafts:
        is_taken = draft.key in memory.taken or replied_to(draft.slot) in memory.taken_requests
        if not (memory.is_outdated or is_taken):
            kept.append(draft)
        elif draft.key.is_comment:
            kept.append(replace(draft, waits="another run that began meanwhile answers it", fault=None))
    return sorted(kept, key=lambda draft: not draft.key.is_comment)


def _settled_posts(settlements: Iterable[Settlement], now: datetime) -> tuple[Post, ...]:
    posts = (settled_post(draft, promised, result, now) for draft, promised, result in settlements if promised)
    return tuple(filter(None, posts))


def _note_first_run(run: Tools) -> None:
    number = run.memory.state.manifest.threads
    read = "1 issue, pull request or page" if number == 1 else f"{number:,} issues, pull requests and pages"
    are = "would be" if run.is_dry else "is now" if number == 1 else "are now"
    run.note(
        "There was no memory to continue from, so the history was read from its beginning: "
        f"{read} {are} on the branch {run.settings.branch}."
    )


def _commit_message(event: Event) -> str:
    what = f"{event.name} {event.action}".strip()
    return f"Remember {what} of {event.number}" if event.number else f"Remember {what}"
