"""Keeps posts true: when a run learns that a thread in one of them changed, it works the post out again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.domain.answer import Silent, has_false_quotes
from bot.domain.changes import Changes
from bot.domain.post import Post, PostKey, Renewal, replied_to
from bot.domain.thread import Thread, ThreadId
from bot.github.errors import ForgeError
from bot.github.events import Event
from bot.github.fixes import due_fixes
from bot.memory.shards import FIXES
from bot.pipeline.commands import SEARCH_REQUESTS, plan_search, reply_draft
from bot.pipeline.comments import draft_again
from bot.pipeline.draft import Draft
from bot.pipeline.promises import written_post
from bot.pipeline.reconcile import find_own
from bot.pipeline.requests import request_of
from bot.pipeline.room import Room, Settlement
from bot.pipeline.tools import Facts, Tools, is_in_progress

MAX_RELEASES = 4
"""Fixes whose release one run looks up again, the least recently checked first."""

MAX_RENEWALS = 10
"""Posts that one run works out again, besides those the event names. Later runs take the others."""

REPLY_CHANGED = "the reply shows an issue that changed"


class Renewals(Room):
    """The posts to compose again. ``owed`` are the renewals of each; ``done`` those that need no change, because the
    post is still true or gone; those ``put_off`` wait for a run that may post."""

    def __init__(self, facts: Facts, run: Tools) -> None:
        super().__init__(facts, run)
        self.owed: dict[PostKey, list[Renewal]] = {}
        self.done: list[Renewal] = []
        self.put_off: list[Renewal] = []

    def plan(self) -> list[Draft]:
        """Work out again the posts that are owed a renewal, besides those with a draft anyway: first those on the
        event's own threads, then those with the oldest change.

        A run that may not post only removes what may no longer be shown, and only from comments that show other
        repositories. Posts that the event does not name are checked only in a run that nobody waits for, as they stay
        owed.
        """
        run, event = self.run, self.facts.event
        look_for_releases(event, run)
        queue_renewals(event, run)
        named = [Renewal(number, "", number, run.now) for number in event.numbers]  # memory may have had no room
        may_renew = run.permit.takes_out and not self.facts.limit
        for renewal in (*run.memory.state.manifest.renewals_due, *named) if may_renew else ():
            self.owed.setdefault(renewal.post_key, []).append(renewal)
        own = self.owed.keys() & {PostKey(number) for number in (event.number, *event.numbers) if number}
        if not run.permit.is_full:
            self._keep_with_others(self.owed.keys() if run.checks_others or event.is_maintenance else own)
        covered = {draft.key: draft for draft in self.facts.drafts if covers(draft, run)}
        keys = sorted((key for key in self.owed if key not in covered), key=lambda key: key not in own)
        del keys[MAX_RENEWALS + len(own) :]
        if keys:
            run.memory.state.prefetch(dict.fromkeys(key.thread for key in keys))
        renewed = [draft for key in keys if (draft := self._renew(key))]
        for key in (key for key in self.owed.keys() & covered.keys() if covered[key].is_idle):
            self.done += self.owed[key]
        run.memory.stage(Changes(renewals_done=tuple(self.done)))
        return renewed

    def _keep_with_others(self, keys: Iterable[PostKey]) -> None:
        wanted = set(keys)
        threads = self.run.memory.state.posts({key.thread for key in wanted})
        others = {post.key for thread in threads.values() for post in thread.posts if post.others}
        self.owed = {key: owed for key, owed in self.owed.items() if key in wanted and key in others}

    def _renew(self, key: PostKey) -> Draft | None:
        run, memory = self.run, self.run.memory
        thread, post = (
            memory.whole_records([key.thread]).get(key.thread),
            memory.state.posts_on(key.thread).post(key.slot),
        )
        draft: Draft | None = None
        if post and isinstance(thread, Thread) and key.is_comment:
            draft = draft_again(thread, frozenset(renewal.about for renewal in self.owed[key]), self.facts, run)
        elif post and isinstance(thread, Thread):
            if _is_reply_in_progress(post, thread, run):
                return None
            draft = redraft_reply(thread, post, run)
        if draft is None:
            self.done += self.owed[key]
        elif not (run.permit.is_full or draft.takes_out or draft.waits):
            self.put_off += self.owed[key]
            return None
        return draft

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Store which renewals are done. One that failed or was put off is still owed; if there are more than one run
        works out, the others come first."""
        done, undone, posts = list[Renewal](), [*self.put_off], list[Post]()
        for draft, promised, result in settlements:
            owed = self.owed.get(draft.key, []) if covers(draft, self.run) else []
            undone += owed if result.error and not result.is_refused else []
            done += [] if result.is_undone else owed
            if owed and promised and not draft.renews:
                posts += filter(None, [written_post(draft, promised, result)])
        late = tuple(replace(renewal, at=self.run.now) for renewal in undone) if len(self.owed) > MAX_RENEWALS else ()
        if done or late:
            self.run.memory.stage(Changes(posts=tuple(posts), renewals_due=late, renewals_done=tuple(done)))


def covers(draft: Draft, run: Tools) -> bool:
    """Whether the draft brings the post up to date. One that waits, or is only shown, does not."""
    return draft.renews or (run.permit.is_full and not draft.is_left)


def queue_renewals(event: Event, run: Tools) -> None:
    """Queue the comments on the event's threads to be worked out again, as another repository changed; or all comments
    that show other repositories, if it is not known what changed there."""
    owed: list[ThreadId] = [*event.numbers]
    if run.checks_others:
        threads = run.memory.state.every_thread_posts()
        owed += [thread.id for thread in threads if any(post.others for post in thread.posts)]
    if owed:
        run.memory.stage(Changes(renewals_due=tuple(Renewal(key, "", key, run.now) for key in owed)))


def look_for_releases(event: Event, run: Tools) -> None:
    """Look again for the release of each fix shown without one: every day, and when a release is published."""
    if run.settings.releases.notify == "off":
        return
    if not run.permit.is_full or not (event.is_maintenance or event.name == "release"):
        return
    fixes = run.memory.state.all_values(FIXES)
    unreleased = {key: fix for key, fix in fixes.items() if fix.commit and not fix.release}
    due = (
        unreleased
        if event.name == "release"
        else due_fixes({key: fix.named for key, fix in unreleased.items()}, unreleased, run.now)
    )
    shown = [unreleased[key] for key, thread in run.memory.state.posts(due).items() if thread.shown_by]
    oldest = sorted(shown, key=lambda fix: fix.looked_at)[:MAX_RELEASES]
    for previous in oldest:
        fix = run.fixes.find(previous.id, previous.named, previous, run.now)
        if fix and not run.fixes.fault:  # one for which GitHub failed stays due, for a notice too
            run.memory.stage(Changes(fixes=(fix,)))


def _is_reply_in_progress(post: Post, thread: Thread, run: Tools) -> bool:
    """Whether another run may be writing or renewing the reply now."""
    if not is_in_progress(post.trying_since, run.now):
        return False
    if post.state != "pending":
        return True
    try:
        return not isinstance(thread.id, int) or find_own(thread.id, run, post.slot) is None
    except ForgeError:
        return True


def redraft_reply(thread: Thread, post: Post, run: Tools) -> Draft | None:
    """Work out the reply to a request again; None if it stays as it is. It never shows a thread it did not show before.

    A reply that needs no search of memory stays as long as the request does.
    """
    key = replied_to(post.slot)
    stored = next(
        (each for each in run.memory.requests([thread.id]).get(thread.id, ()) if each.comment_id == key), None
    )
    if stored is None:
        return None
    is_false = has_false_quotes(post, run.memory.records(post.shows))
    draft = Draft(thread, Silent(""), post.slot, before=post, renews=True, is_false=is_false, why=REPLY_CHANGED)
    request = request_of(thread, stored.comment_id, run)
    if request and stored.name not in SEARCH_REQUESTS:
        return None
    if request and request.name == stored.name:
        again = reply_draft(plan_search(request, run, frozenset(post.shows)), run)
        draft = replace(draft, answer=again.answer, text=again.text, quotes=again.quotes, shows_too=again.shows_too)
    return None if draft.content == post.content and not is_false else draft
