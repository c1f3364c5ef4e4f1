"""Notifies the people who reported a problem, once, of the release that has the fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bot.comment.marker import notice_mark
from bot.comment.outcome_text import ReleaseFacts
from bot.domain.change_state import number_of
from bot.domain.changes import NOTICES_OFF, Changes, ReleaseNotice, is_off
from bot.domain.thread import GHOST, MAINTAINER_ROLES, Kind, Thread, ThreadId
from bot.github.client import Json
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, Unauthorised
from bot.github.events import Event
from bot.github.fixes import Release, was_reverted
from bot.github.threads import OwnComment, own_comment
from bot.github.updates import comments_of
from bot.index.document import vouchings
from bot.pipeline.eligibility import reason_to_pass
from bot.pipeline.outbox import create_once, was_deleted
from bot.pipeline.publish import CommentResult, with_write_error
from bot.pipeline.release_fixes import LOOKBACK, ReleasedFix, find_released, in_turns, project_releases, release_page
from bot.pipeline.run_context import RunContext, RunState, is_in_progress
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


@dataclass(frozen=True, slots=True)
class NoticePlan:
    """A release notice as memory keeps it, for a thread. ``text`` is empty if none is posted."""

    thread: Thread
    notice: ReleaseNotice
    text: str = ""


def plan_notices(event: Event, state: RunState, run: RunContext) -> list[NoticePlan]:
    """Plan the notices of this run, and stage them: they are stored before they are posted.

    The run that first sees the setting only records the time: nobody is notified of earlier releases.
    """
    manifest, settings = run.memory.state.manifest, run.settings
    until = manifest.told_until
    is_on = settings.mode == "comment" and settings.releases.notify == "comment"
    if run.muted or (until is None and not is_on):
        return []
    if until is None or not is_on:
        run.memory.stage(Changes(told_until=run.now if is_on else NOTICES_OFF))
        return []
    if state.limit or not (event.is_maintenance or event.name == "release"):
        return []
    releases, since = project_releases(run), manifest.releases_told_from(MAX_RELEASE_AGE, run.now)
    new = {release.tag: release for release in releases if release.at and release.at > since}
    if not new:
        return []
    newest = max(release.at for release in new.values() if release.at)
    full = (release.at for release in releases if release.at and release.tag not in new and not release.is_early)
    planning = _Planning(run, new, max([*full, newest - LOOKBACK]))
    plans = _mark_started(planning.plans(), run)
    run.memory.stage(Changes(notices=tuple(plan.notice for plan in plans)))
    if planning.is_all and not plans:
        run.memory.stage(Changes(told_until=newest))
    elif plans or planning.is_limited:
        run.memory.stage(Changes(told_from=since))
    return plans


def _mark_started(plans: Iterable[NoticePlan], run: RunContext) -> list[NoticePlan]:
    """The plans with the time from which other runs leave them to this one, taken just before they are stored."""
    since = run.current_time()
    return [replace(plan, notice=replace(plan.notice, trying_since=since)) if plan.text else plan for plan in plans]


_Outstanding = tuple[Thread, ReleaseNotice, ReleasedFix]


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

    run: RunContext
    new: Mapping[str, Release]
    since: datetime
    is_all: bool = True
    is_limited: bool = False
    _told: Counter[tuple[str, str]] = field(default_factory=Counter)
    _reverted: dict[ThreadId, bool] = field(default_factory=dict)

    def plans(self) -> list[NoticePlan]:
        plans: list[NoticePlan] = []
        more = failed = 0
        outstanding = sorted(self._outstanding(), key=_posting_order)  # which counts what everybody was told
        for thread, notice, fix in in_turns(outstanding, _account, self._told, MAX_FOR_ACCOUNT):
            is_new = notice.trying_since is None
            if len(plans) >= MAX_POSTED or failed >= MAX_FAILED or (is_new and not self._may_notify(more)):
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
            more += bool(plan.text) and is_new
        return plans

    def _may_notify(self, more: int) -> bool:
        promised = self.run.memory.state.manifest.promised_within_day(self.run.now)
        return promised + more < max(1, self.run.settings.comment.daily_limit // DAILY_LIMIT_DIVISOR)

    def _outstanding(self) -> Iterator[_Outstanding]:
        """The notices still to be posted, on threads that may get one."""
        run, candidates = self.run, self._candidates()
        keys = dict.fromkeys(notice.id for notice, _ in candidates)
        run.memory.state.prefetch(keys)
        records, linked = run.memory.whole_records(keys), run.memory.state.thread_comments(keys)
        for possible, fix in candidates:
            thread = records.get(possible.id)
            notices = linked[possible.id].notices if possible.id in linked else ()
            same = next((one for one in notices if one.ref == possible.ref), None)
            if not isinstance(thread, Thread):
                continue
            if same and is_in_progress(same.trying_since, run.now):
                self.is_all = False
            elif same is None or same.state == "pending":
                if (same or not _is_informed(thread, notices)) and self._may_get(possible, thread):
                    yield thread, same or possible, fix
                continue
            self._told[thread.author.casefold(), fix.release] += same.state != "silent"

    def _candidates(self) -> list[tuple[ReleaseNotice, ReleasedFix]]:
        """A notice for each thread that a new release fixes, posted already or not."""
        released = find_released(self.new, self.since, self.run)
        self.is_all = released.is_all
        self.is_limited = not released.is_all and not self.run.fixes.fault
        return [
            (notice, fix)
            for fix in released.fixes
            for notice in self._possible_notices(fix, released.duplicates.get(fix.id, []))
        ]

    def _may_get(self, notice: ReleaseNotice, thread: Thread) -> bool:
        """Whether the thread may get this notice: nobody gets one for their own claim that a thread is a duplicate."""
        return may_be_notified(thread, self.run) and (notice.original is None or any(vouchings(thread)))

    def _possible_notices(self, fix: ReleasedFix, duplicates: list[ThreadId]) -> Iterator[ReleaseNotice]:
        """The notices on a fixed thread and its duplicates. If a person named the release after it was published, the
        thread itself needs none."""
        published = self.new[fix.release].at
        if fix.stated_at is None or published is None or fix.stated_at < published:
            yield ReleaseNotice(fix.id, fix.ref, fix.release, self.run.now)
        for key in duplicates:
            yield ReleaseNotice(key, fix.ref, fix.release, self.run.now, original=fix.id)

    def _plan(self, thread: Thread, notice: ReleaseNotice, fix: ReleasedFix) -> NoticePlan:
        """The notice, unless it exists already, a person deleted it, or the fix was reverted. Raises ForgeError."""
        try:
            timeline = self.run.forge.timeline(int(thread.id))
        except Gone as error:
            if error.certain:
                return NoticePlan(thread, settle_notice(notice, "silent"))
            raise
        if own := _find_notice(comments_of(timeline), notice, self.run):
            return NoticePlan(thread, settle_notice(notice, "said", own))
        if notice.trying_since and was_deleted(timeline, notice.at):
            return NoticePlan(thread, settle_notice(notice, "removed"))
        if self._is_reverted(fix, timeline if fix.id == thread.id else None):
            return NoticePlan(thread, settle_notice(notice, "silent"))
        rendered = self.run.renderer.for_thread(thread).notice(
            _release_facts(notice, self.run), notice=notice_mark(notice.ref), now=self.run.now
        )
        if rendered.problem:
            self.run.note(rendered.problem)
        return NoticePlan(thread, notice, rendered.text)

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


def may_be_notified(thread: Thread, run: RunContext) -> bool:
    """Whether a release notice may be posted on this thread: a closed issue by somebody outside the project who did not
    ask to be left alone."""
    is_issue = thread.kind is Kind.ISSUE and thread.is_closed and isinstance(thread.id, int)
    is_outsider = thread.author != GHOST and bool(thread.role) and thread.role not in MAINTAINER_ROLES
    if not (is_issue and is_outsider) or reason_to_pass(replace(thread, state="open"), run.settings):
        return False
    return not is_off(run.memory.requests([thread.id]).get(thread.id, ()))


def _is_informed(thread: Thread, notices: tuple[ReleaseNotice, ...]) -> bool:
    """Whether the reporter was notified of a fix since the thread was last reopened."""
    reopened = thread.flips[1::2]
    return any(notice.state != "silent" and (not reopened or notice.at > reopened[-1]) for notice in notices)


def _release_facts(notice: ReleaseNotice, run: RunContext) -> ReleaseFacts:
    page, version = release_page(notice.release, run), read_version(notice.release)
    is_early = version is not None and version.is_early
    if page is None:
        return ReleaseFacts(notice.release, is_early, notice.original)
    is_early = is_early or PRE_RELEASE_LABEL in page.labels
    return ReleaseFacts(notice.release, is_early, notice.original, upgrade_note(page.body))


def _find_notice(comments: Iterable[Mapping[str, Any]], notice: ReleaseNotice, run: RunContext) -> OwnComment | None:
    mark = notice_mark(notice.ref)
    return next((own_comment(comment) for comment in comments if run.own.notice_key(comment) == mark), None)


def settle_notice(notice: ReleaseNotice, state: str, own: OwnComment | None = None) -> ReleaseNotice:
    return replace(notice, state=state, comment_id=own.id if own else None, trying_since=None)


def publish_notices(plans: list[NoticePlan], run: RunContext) -> list[CommentResult]:
    """Post the notices, once memory is pushed, and store the outcome. A failed one is left to a later run."""
    to_post = [plan for plan in plans if plan.text and plan.notice.notice_key not in run.memory.taken_notices]
    results = [_publish(plan, run) for plan in to_post]
    settled = []
    for plan, result in zip(to_post, results, strict=True):
        if result.is_refused or result.comment:
            settled.append(settle_notice(plan.notice, "said" if result.comment else "silent", result.comment))
    if settled:
        run.memory.stage(Changes(notices=tuple(settled)))
        run.memory.commit("Keep which reporters were notified of a release")
    return results


def _publish(plan: NoticePlan, run: RunContext) -> CommentResult:
    number = plan.thread.id
    assert isinstance(number, int)  # see `may_be_notified`
    result = CommentResult(number, plan.thread.title, "silent", FIX_RELEASED, text=plan.text)
    try:
        return replace(result, action="created", comment=_write(number, plan, run))
    except Gone as error:
        return replace(result, reason=str(error), is_refused=error.certain)
    except ForgeError as error:
        return with_write_error(result, error)


def _write(number: int, plan: NoticePlan, run: RunContext) -> OwnComment:
    """Post the notice once; look for it first if another run may have taken this one for dead."""

    def find() -> OwnComment | None:
        return _find_notice(run.forge.comments(number), plan.notice, run)

    is_late = not is_in_progress(plan.notice.trying_since, run.current_time())
    return (find() if is_late else None) or create_once(number, plan.text, run.forge, find)
