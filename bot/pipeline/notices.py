"""Notifies the people who reported a problem, once, of the release that has the fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.comment.outcome_text import ReleaseFacts
from bot.domain.answer import Silent
from bot.domain.change_state import number_of
from bot.domain.changes import NOTICES_OFF, Changes, is_off
from bot.domain.post import Post, notice_slot
from bot.domain.thread import GHOST, MAINTAINER_ROLES, Kind, Thread, ThreadId
from bot.domain.turns import in_turns
from bot.github.client import Json
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, Unauthorised
from bot.github.fixes import Release, was_reverted
from bot.github.threads import OwnComment
from bot.index.document import vouchings
from bot.pipeline.draft import Draft
from bot.pipeline.eligibility import reason_to_pass
from bot.pipeline.promises import deleted_post
from bot.pipeline.reconcile import find_in
from bot.pipeline.release_fixes import LOOKBACK, ReleasedFix, find_released, project_releases, release_page
from bot.pipeline.room import Room
from bot.pipeline.tools import Facts, Tools, is_in_progress
from bot.reading.pages import upgrade_note
from bot.reading.versions import read_version
from bot.sources.pages import PRE_RELEASE_LABEL

MAX_POSTED = 20
"""Notices that one run posts. Later runs post the others."""

MAX_FAILED = 20
"""Issues that one run may fail to read before it stops."""

MAX_RELEASE_AGE = timedelta(days=30)
"""The maximum age of a release when a run first notifies people of it."""

MAX_FOR_ACCOUNT = 2
"""Notices of one release that an account gets, for its first reports: nobody keeps other reporters waiting."""

DAILY_LIMIT_DIVISOR = 2
"""Notices use at most the daily limit divided by this; the rest is left to answers."""

FIX_RELEASED = "its fix is released"
NOTICES_POSTPONED = (
    "Some reporters are not notified yet, because of the limits for one run and one day; the next runs continue."
)


class Notices(Room):
    """The notices to the people who reported a problem."""

    def plan(self) -> list[Draft]:
        return plan_notices(self.facts, self.run)


def plan_notices(facts: Facts, run: Tools) -> list[Draft]:
    """Plan the notices of this run, and stage those that are settled without one.

    The run that first sees the setting only records the time: nobody is notified of earlier releases.
    """
    manifest, settings, event = run.memory.state.manifest, run.settings, facts.event
    until = manifest.notified_until
    is_on = run.permit.writes and settings.releases.notify == "comment"
    if run.permit.waits or (until is None and not is_on):
        return []
    if until is None or not is_on:
        run.memory.stage(Changes(notified_until=run.now if is_on else NOTICES_OFF))
        return []
    if facts.limit or not (event.is_maintenance or event.name == "release"):
        return []
    releases, since = project_releases(run), manifest.releases_told_from(MAX_RELEASE_AGE, run.now)
    new = {release.tag: release for release in releases if release.at and release.at > since}
    if not new:
        return []
    newest = max(release.at for release in new.values() if release.at)
    full = (release.at for release in releases if release.at and release.tag not in new and not release.is_early)
    planning = _Planning(run, facts, new, max([*full, newest - LOOKBACK]))
    plans = planning.plans()
    run.memory.stage(Changes(posts=tuple(plan for plan in plans if isinstance(plan, Post))))
    if planning.is_all and not plans:
        run.memory.stage(Changes(notified_until=newest))
    elif plans or planning.is_limited:
        run.memory.stage(Changes(notifying_from=since))
    return [plan for plan in plans if isinstance(plan, Draft)]


_Outstanding = tuple[Thread, Post, ReleasedFix]


def _account(item: _Outstanding) -> tuple[str, str]:
    """Who gets a notice, and of which release (by tag)."""
    return item[0].author.casefold(), item[1].release


def _posting_order(item: _Outstanding) -> tuple[bool, datetime, str]:
    """The promised ones first, then the oldest report."""
    thread, notice, _ = item
    return notice.trying_since is None, thread.created_at, str(thread.id)


@dataclass(slots=True)
class _Planning:
    """Plans the notices of one run: about the ``new`` releases (by tag), for threads that were closed ``since``.

    ``is_all``: nothing is left for a later run. ``is_limited``: something is, because of the limits of one run or day.
    """

    run: Tools
    facts: Facts
    new: Mapping[str, Release]
    since: datetime
    is_all: bool = True
    is_limited: bool = False
    _told: Counter[tuple[str, str]] = field(default_factory=Counter)
    _reverted: dict[ThreadId, bool] = field(default_factory=dict)

    def plans(self) -> list[Draft | Post]:
        """The notices to post, and those that are settled without that."""
        plans: list[Draft | Post] = []
        failed = 0
        outstanding = sorted(self._outstanding(), key=_posting_order)  # which counts what everybody was told
        for thread, notice, fix in in_turns(outstanding, _account, self._told, MAX_FOR_ACCOUNT):
            is_new = notice.trying_since is None
            if len(plans) >= MAX_POSTED or failed >= MAX_FAILED or (is_new and not self._may_notify()):
                self.is_all, self.is_limited = False, failed < MAX_FAILED
                self.run.note(NOTICES_POSTPONED)
                break
            try:
                plan = self._plan(thread, notice, fix)
            except Gone:  # it may come back; if it stays hidden, memory learns that elsewhere
                self.is_all = False
                failed += 1
                continue
            except ForgeError as error:
                self.is_all = False
                self.run.report_fault(error)
                failed += 1
                if isinstance(error, RateLimited | Unauthorised | NotPermitted):
                    break
                continue
            plans.append(plan)
            if isinstance(plan, Draft) and is_new:
                self.facts.take_new_post()
        return plans

    def _may_notify(self) -> bool:
        limit = self.run.settings.comment.daily_limit
        return self.facts.new_posts_left > limit - max(1, limit // DAILY_LIMIT_DIVISOR)

    def _outstanding(self) -> Iterator[_Outstanding]:
        """The notices still to be posted, on threads that may get one."""
        run, candidates = self.run, self._candidates()
        keys = dict.fromkeys(notice.id for notice, _ in candidates)
        run.memory.state.prefetch(keys)
        records, posts = run.memory.whole_records(keys), run.memory.state.posts(keys)
        for possible, fix in candidates:
            thread = records.get(possible.id)
            notices = list(posts[possible.id].notices()) if possible.id in posts else []
            same = next((notice for notice in notices if notice.slot == possible.slot), None)
            if not isinstance(thread, Thread):
                continue
            if same and is_in_progress(same.trying_since, run.now):
                self.is_all = False
            elif same is None or same.state == "pending":
                if (same or not _is_informed(thread, notices)) and self._may_get(possible, thread):
                    yield thread, same or possible, fix
                continue
            self._told[thread.author.casefold(), fix.release] += same.state != "silent"

    def _candidates(self) -> list[tuple[Post, ReleasedFix]]:
        """A notice for each thread that a new release fixes, posted already or not."""
        released = find_released(self.new, self.since, self.run)
        self.is_all = released.is_all
        self.is_limited = not released.is_all and not self.run.fixes.fault
        return [
            (notice, fix)
            for fix in released.fixes
            for notice in self._possible_notices(fix, released.duplicates.get(fix.id, []))
        ]

    def _may_get(self, notice: Post, thread: Thread) -> bool:
        """Whether the thread may get this notice: nobody gets one for their own claim that a thread is a duplicate."""
        return may_be_notified(thread, self.run) and (not notice.shows or any(vouchings(thread)))

    def _possible_notices(self, fix: ReleasedFix, duplicates: list[ThreadId]) -> Iterator[Post]:
        """The notices on a fixed thread and its duplicates. If a person named the release after it was published, the
        thread itself needs none."""
        published = self.new[fix.release].at
        if fix.stated_at is None or published is None or fix.stated_at < published:
            yield possible_notice(fix.id, fix, self.run.now)
        for key in duplicates:
            yield replace(possible_notice(key, fix, self.run.now), shows=(fix.id,))

    def _plan(self, thread: Thread, notice: Post, fix: ReleasedFix) -> Draft | Post:
        """The notice; or, if it exists, was deleted or its fix reverted, how it is settled. Raises ForgeError."""
        try:
            timeline = self.run.forge.timeline(int(thread.id))
        except Gone as error:
            if error.certain:
                return settle_notice(notice, "silent")
            raise
        own, is_deleted = find_in(timeline, notice.slot, self.run.own, notice.at if notice.trying_since else None)
        if own:
            return settle_notice(notice, "said", own)
        if is_deleted:
            return deleted_post(notice)
        if self._is_reverted(fix, timeline if fix.id == thread.id else None):
            return settle_notice(notice, "silent")
        rendered = self.run.renderer.for_thread(thread).notice(
            _release_facts(notice, self.run), slot=notice.slot, now=self.run.now
        )
        if rendered.problem:
            self.run.note(rendered.problem)
        return Draft(
            thread,
            Silent(FIX_RELEASED),
            notice.slot,
            rendered.text,
            before=notice,
            shows_too=notice.shows,
        )

    def _is_reverted(self, fix: ReleasedFix, timeline: list[Json] | None) -> bool:
        since = fix.known.merged_at if fix.known else fix.stated_at
        if since is None:
            return False
        if fix.id not in self._reverted:
            number, commits = number_of(fix.ref), f"/repos/{self.run.address.repo}/commits"
            items = self.run.forge.timeline(int(fix.id)) if timeline is None else timeline
            items = [*items, *(self._pull_timeline(number) if number else ())]
            self._reverted[fix.id] = was_reverted(items, since, self.run.forge, commits)
        return self._reverted[fix.id]

    def _pull_timeline(self, number: int) -> list[Json]:
        try:
            return self.run.forge.timeline(number)
        except (Gone, NotPermitted):
            return []


def may_be_notified(thread: Thread, run: Tools) -> bool:
    """Whether a release notice may be posted on this thread: a closed issue by somebody outside the project who did not
    ask to be left alone."""
    is_issue = thread.kind is Kind.ISSUE and thread.is_closed and isinstance(thread.id, int)
    is_outsider = thread.author != GHOST and bool(thread.role) and thread.role not in MAINTAINER_ROLES
    if not (is_issue and is_outsider) or reason_to_pass(replace(thread, state="open"), run.settings):
        return False
    return not is_off(run.memory.requests([thread.id]).get(thread.id, ()))


def possible_notice(key: ThreadId, fix: ReleasedFix, now: datetime) -> Post:
    """The notice on a thread that a release has this fix, before it is promised."""
    return Post(key, "pending", now, notice_slot(fix.ref), release=fix.release)


def _is_informed(thread: Thread, notices: Iterable[Post]) -> bool:
    """Whether the reporter was notified of a fix since the thread was last reopened."""
    reopened = thread.state_changes[1::2]
    return any(notice.state != "silent" and (not reopened or notice.at > reopened[-1]) for notice in notices)


def _release_facts(notice: Post, run: Tools) -> ReleaseFacts:
    page, version = release_page(notice.release, run), read_version(notice.release)
    is_early = version is not None and version.is_early
    if page is None:
        return ReleaseFacts(notice.release, is_early, next(iter(notice.shows), None))
    is_early = is_early or PRE_RELEASE_LABEL in page.labels
    return ReleaseFacts(notice.release, is_early, next(iter(notice.shows), None), upgrade_note(page.body))


def settle_notice(notice: Post, state: str, own: OwnComment | None = None) -> Post:
    return replace(notice, state=state, comment_id=own.id if own else None, trying_since=None)
