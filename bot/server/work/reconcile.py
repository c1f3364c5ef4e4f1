"""Handles the waiting deliveries of one repository, whose key the worker has leased. Read this first.

lease → what is due → token, settings, clone → each event → results, and the end of the lease
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from bot.domain.kinds import Kind
from bot.errors import PrecedentError, StoreError, UnreadableFile, WorldError
from bot.files import DiskFault
from bot.git.errors import AuthFailed, GitError, RemoteRefused, RemoteUnreachable
from bot.github.budget import RequestBudget
from bot.github.client import GitHubClient
from bot.github.errors import (
    CONTINUE_REMEDY,
    HISTORY,
    HISTORY_LIMITS,
    Gone,
    NotInstalled,
    NotPermitted,
    RateLimited,
    Suspended,
    Unauthorised,
)
from bot.github.events import CATCH_UP_EVENT
from bot.github.foreign_thread import ForeignRepository, read_repository
from bot.github.history import LimitedHistory
from bot.memory.memory import Memory
from bot.pipeline.backfill import HistoryRead
from bot.pipeline.digest import digest_of_memory
from bot.pipeline.discussions import read_discussions
from bot.pipeline.handle import handle_event
from bot.pipeline.outlook import outlook
from bot.pipeline.rebuild import continue_rebuild
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.setup import (
    RepositorySettings,
    branch_store,
    build_tools,
    embedder,
    open_repository_memory,
    read_settings,
)
from bot.pipeline.site import RepositorySite, fetch_settings
from bot.pipeline.tools import Tools
from bot.questions.digest import DigestRequest
from bot.server.dependencies import RunDependencies, RunLog, repository_site
from bot.server.log import Bug, catch_error, log_fields, run_guarded
from bot.server.model import (
    EXCLUDED,
    Delivery,
    Grant,
    Instant,
    Lease,
    PendingWork,
    RepositoryKey,
    RepositoryRow,
    Result,
    RunReport,
    ServerStopping,
    delivery_fields,
)
from bot.server.organisation.indexer import index_changes
from bot.server.organisation.register import OrganisationRegister
from bot.server.organisation.search import CheckedSearch
from bot.server.storage.branches import PacedStore
from bot.server.storage.github_access import limit_end
from bot.server.storage.outbox import installation_of
from bot.server.work.installation_events import InstallationEvents
from bot.server.work.policy import (
    DeliveryGroup,
    Outcomes,
    RepositoryMoved,
    RunEnd,
    coalesce,
    earlier_result,
    fault_of,
    judge_all,
    plan_next,
    undone_renewals,
    without,
)
from bot.settings.yaml_file import CONFIG_PATH

RETRY_SECONDS = 15.0
"""Seconds until the next try for a repository whose run could not be started or stored."""

STORE_PAUSES = (0.2, 1.0, *(5.0,) * 120)
"""Seconds between tries to store a run's results, so that it is not repeated: ten minutes in all."""

DRAIN_PAUSE = 1.0
"""Seconds between two tries while the process drains."""

DIGEST_PERIOD = timedelta(days=30)
"""How far the digest of a repository looks back."""

NOTHING_DUE = "nothing was due"
_REMOTE_ERRORS = (AuthFailed, RemoteRefused, RemoteUnreachable)
_RENAME_ERRORS = (Gone, NotPermitted, Unauthorised, AuthFailed, RemoteRefused)
"""Errors that a renamed repository may cause, among other things."""

log = logging.getLogger(__name__)


def reconcile(lease: Lease, run: RunDependencies) -> None:
    """Do the work of a leased key: a run of a repository, or the changes for an organisation's index.

    Never raises: nobody handles a run that failed.
    """
    began = time.monotonic()
    work = index_changes if installation_of(lease.key) else _reconcile
    if line := run_guarded(lambda: work(lease, run)):
        details = {"repository": lease.key, "run": lease.id, "seconds": round(time.monotonic() - began, 2)}
        log.error("a run could not be started, or its results could not be stored: %s", line, extra=details)
        if line := run_guarded(lambda: run.inbox.give_back(lease, RETRY_SECONDS)):
            log.error("its lease could not be released; it will expire: %s", line, extra=details)


def _reconcile(lease: Lease, run: RunDependencies) -> None:
    since = time.monotonic()
    work = run.inbox.begin(lease, run.pace.earliest)
    if work is None:  # nothing is due
        return
    with log_fields(repository=lease.key, run=work.id, **delivery_fields(work.deliveries)):
        log.info("a run begins", extra={"worker": run.inbox.worker, "deliveries": len(work.deliveries)})
        results, report = run_repository(work, run)
        if _store_results(work, results, report, run):
            _log_results(work, results, time.monotonic() - since)
        else:
            log.warning("the results of a run were not stored, as it lost its lease")


def run_repository(work: PendingWork, run: RunDependencies) -> tuple[list[Result], RunReport]:
    """Carry out a run. Returns the result of each delivery and the report; expected errors and bugs become results."""
    if work.repository.number:
        return RepositoryRun(work, run).make()
    events = _installation_events(run, work.began_at)
    try:
        return [Result(each.seq, "done", events.apply(each)) for each in work.deliveries], RunReport()
    except WorldError as error:
        results = judge_all(error, work.deliveries, run.inbox.now(), run.options.attempts)
        return results, RunReport(notes=(str(error),))


def _installation_events(run: RunDependencies, now: Instant) -> InstallationEvents:
    return InstallationEvents(run.inbox, run.tokens, run.clones.forget, now, run.options.scope)


def _store_results(work: PendingWork, results: list[Result], report: RunReport, run: RunDependencies) -> bool:
    """Store the results, with retries, as the run cannot be undone. Returns False if the lease was lost."""
    for pause in STORE_PAUSES:
        try:
            return run.inbox.end(work, results, report)
        except WorldError as error:
            log.warning("the results of a run could not be stored yet: %s", error)
            if run.pace.wait(run.stop, pause):
                time.sleep(DRAIN_PAUSE)
    return run.inbox.end(work, results, report)


def _log_results(work: PendingWork, results: list[Result], seconds: float) -> None:
    deliveries = {each.seq: each for each in work.deliveries}
    for each in results:
        level = logging.WARNING if each.state == "dead" else logging.INFO
        details = {"number": each.seq, "said": each.said, "reason": each.reason, "seconds": round(seconds, 2)}
        with log_fields(**delivery_fields([deliveries[each.seq]])):
            log.log(level, "%s", each.state, extra=details)


@dataclass(slots=True)
class RepositoryRun:
    """One run in a repository, whose ``name`` was this when the run began.

    ``history`` is the last part of a history that it read, ``known_limit`` why it fetches none: a limit that another
    run met.
    """

    work: PendingWork
    dependencies: RunDependencies
    log: RunLog = field(default_factory=RunLog)
    outcomes: Outcomes = field(init=False)
    budget: RequestBudget = field(default_factory=RequestBudget)
    report: RunReport = field(default_factory=lambda: RunReport(is_unread=None))
    store: PacedStore | None = None
    name: str = ""
    history: HistoryRead | None = None
    known_limit: RateLimited | None = None

    def __post_init__(self) -> None:
        run = self.dependencies
        self.outcomes = Outcomes(self.work.deliveries, run.inbox.now, run.options.attempts)

    def make(self) -> tuple[list[Result], RunReport]:
        """Do the whole run. Expected errors and bugs become results instead of being raised."""
        if error := catch_error(self._execute):
            self._fail(self.outcomes.unfinished, error)
        for fault in self.log.met:
            if isinstance(fault, RateLimited):
                self._apply_error(fault)
        self._recheck_moved()
        self.log.on_stage("")
        report = replace(
            self.report,
            stages=tuple((name, round(seconds, 3)) for name, seconds in self.log.seconds.items()),
            pushes=tuple(self.store.pushes) if self.store else (),
            reads=self.log.reads,
            writes=self.log.writes,
            notes=tuple(self.log.notes),
            rates=self.budget.rates,
            changed=frozenset(self.store.changed) if self.store else frozenset(),
        )
        return self.outcomes.results, report

    def _execute(self) -> None:
        repository, run = self.work.repository, self.dependencies
        self.log.on_stage("token")
        row = run.inbox.installations.repository(repository)
        self.budget = run.inbox.limits.for_run(repository.installation)
        grant = run.tokens.grant(repository, run.inbox.now())
        self.name = grant.name
        visibility = grant.visibility if grant.asked_at >= self.work.began_at else None
        OrganisationRegister(run.inbox).store_repository(repository, grant.name, visibility)
        if not run.options.scope.includes(grant.name):
            self.outcomes.store(Result(each.seq, "dropped", EXCLUDED) for each in self.work.deliveries)
            return
        site = repository_site(grant, run)
        self.log.on_stage("settings")
        config = read_run_settings(site, repository, run, self.log)
        self.log.on_stage("clone")
        with run.clones.borrow(repository) as keep:
            self.store = PacedStore(branch_store(site, config, keep), run.pace, row.pushes, run.stop)
            now = datetime.fromtimestamp(run.inbox.now() / 1000, UTC)
            with build_tools(site, config, self.store, now, self.log, self.budget) as built:
                self.known_limit = history_limit(repository.installation, run)
                bot = replace(
                    built,
                    history=LimitedHistory(self.known_limit) if self.known_limit else built.history,
                    on_stage=self.log.on_stage,
                    on_history=self._note_history,
                    reading_seconds=run.reading_seconds,
                    organisation=organisation_search(repository, built, run, self.budget, self.log),
                    checks_others=row.is_unread,  # the database does not know what they show
                )
                self._handle_all(bot, site, config, row)

    def _handle_all(self, bot: Tools, site: RepositorySite, config: RepositorySettings, row: RepositoryRow) -> None:
        memory = bot.memory
        assert self.store
        for group in coalesce(self.work.deliveries):
            if self.dependencies.stop.is_set():
                raise ServerStopping
            if not self.outcomes.is_done(group):
                memory = open_repository_memory(site, config, self.store)
                memory.time_limit = bot.memory.time_limit
                with self._noting(memory):
                    self._handle(group, replace(bot, memory=memory), site)
        with self._noting(memory):
            self._read_on(replace(bot, memory=memory), row)

    def _handle(self, group: DeliveryGroup, bot: Tools, site: RepositorySite) -> None:
        """Handle one event. Errors of this event alone are judged here; all others end the run."""
        met_before, results = len(self.log.met), list[CommentResult]()

        def handle() -> None:
            handled = handle_event(group.event, bot)
            results.extend(handled.results)
            handled.raise_error()

        error = catch_error(handle)
        for result in results:
            if result.renews:
                self.log.note(f"Issue {result.id}: {result.action} ({result.reason})")
        own = self.outcomes.add(results, group.number)
        if error and not isinstance(error, Bug):
            raise error
        undone = undone_renewals(results, group)
        for number, cause in undone.items():
            self._fail((each for each in group.deliveries if each.event.number == number), cause)
        group = without(group, undone)
        if not group.deliveries:
            return
        if fault := fault_of(own, error, self.log.met[met_before:]):
            self._fail(group.deliveries, fault)
            return
        if own is None and group.event.may_be_answered:
            own = earlier_result(bot.memory, group.number, site)
        self.outcomes.record(group, own, self.log.failed[0] if bot.muted and self.log.failed else NOTHING_DUE)

    def _read_on(self, bot: Tools, row: RepositoryRow) -> None:
        """Continue what nobody waits for: the history, discussions, and the digest if it is due."""
        self.log.on_stage("read on")
        events = [each.event for each in self.work.deliveries]
        self._plan_next(bot, row, has_read_on=False)  # valid if the next step fails
        if before := bot.memory.state.manifest.reading:
            continue_rebuild(bot, unattended=all(event.is_background for event in events))
            self._plan_next(bot, row, has_read_on=bot.memory.state.manifest.reading != before)
        read_discussions(next((event for event in events if event.is_of_discussion), events[0]), bot)
        if all(event.is_maintenance for event in events) and not self.log.met:
            self._make_digest(bot)

    def _plan_next(self, bot: Tools, row: RepositoryRow, *, has_read_on: bool) -> None:
        comments, results = self.outcomes.comments, self.outcomes.results
        is_idle = not comments and all(each.event.name == CATCH_UP_EVENT for each in self.work.deliveries)
        left = outlook(bot, comments.values(), self.history)
        self.report = plan_next(
            RunEnd(left, row, results, self.log.met, is_idle, has_read_on), self.dependencies.inbox.now()
        )

    def _note_history(self, read: HistoryRead) -> None:
        self.history = read

    def _make_digest(self, bot: Tools) -> None:
        """Make the digest again if it is due, in a run that nobody waits for."""
        digests = self.dependencies.inbox.digests
        if digests.is_due(self.work.repository) and not bot.memory.state.manifest.reading:
            self.log.on_stage("digest")
            request = DigestRequest(bot.now - DIGEST_PERIOD, bot.now)
            report = digest_of_memory(bot.memory, bot.settings, bot.address, request)
            digests.store(self.work.repository, report)

    @contextmanager
    def _noting(self, memory: Memory) -> Iterator[None]:
        """A block after which the notes of the memory are in the report, even if it fails."""
        try:
            yield
        finally:
            for line in memory.notes:
                self.log.note(line)

    def _fail(self, deliveries: Iterable[Delivery], error: PrecedentError) -> None:
        self._apply_error(error)
        self.outcomes.fail(deliveries, error)

    def _apply_error(self, error: PrecedentError) -> None:
        """Apply what an error means beyond the delivery that met it."""
        repository, run = self.work.repository, self.dependencies
        self.log.note(str(error))
        if isinstance(error, NotInstalled) and not isinstance(error, Suspended):
            _installation_events(run, run.inbox.now()).remove(repository, str(error))
        elif isinstance(error, (Unauthorised, AuthFailed)):
            run.tokens.forget(repository)
        elif isinstance(error, RateLimited) and error is not self.known_limit:
            run.inbox.limits.pause(repository.installation, error.resource, limit_end(error, run.inbox.now()))
        elif isinstance(error, DiskFault):
            run.disk.note_fault(error)
        elif isinstance(error, GitError) and not isinstance(error, _REMOTE_ERRORS):
            run.clones.forget(repository)

    def _recheck_moved(self) -> None:
        """Retry at once what failed because the repository moved; drop one where the App is no longer installed."""
        errors = self.outcomes.errors
        failed = [each for each in self.work.deliveries if isinstance(errors.get(each.seq), _RENAME_ERRORS)]
        if failed and self.name and isinstance(error := catch_error(self._check_name), (RepositoryMoved, NotInstalled)):
            self._fail(failed, error)

    def _check_name(self) -> None:
        """Ask for the repository's current name. Raises RepositoryMoved for another name, NotInstalled, ForgeError."""
        repository, tokens = self.work.repository, self.dependencies.tokens
        tokens.forget(repository)
        if tokens.grant(repository, self.dependencies.inbox.now()).name != self.name:
            raise RepositoryMoved("the repository was renamed: it is checked again")


def read_run_settings(
    site: RepositorySite, repository: RepositoryKey, run: RunDependencies, log: RunLog
) -> RepositorySettings:
    """Read the settings, and store them for other repositories. One whose files exist but cannot be read shares
    nothing, as nobody knows with whom."""
    register, fetched = OrganisationRegister(run.inbox), None
    try:
        fetched = fetch_settings(site, CONFIG_PATH)
        config = read_settings(site, fetched, log)
    except StoreError as error:
        if fetched or isinstance(error, UnreadableFile):
            register.store_settings(repository, None)
        raise
    settings = config.settings
    if run.options.scope.observes(site.repository) and settings.mode != "off":
        settings = replace(settings, mode="summary")
    shares = None if config.muted else settings.organisation.share_with
    register.store_settings(repository, shares, settings.ignore.people)
    return replace(config, settings=settings, embedder=embedder(settings, site, log))


def history_limit(installation: int, run: RunDependencies) -> RateLimited | None:
    """A limit on reading history that another run met and that lasts; None without one."""
    until = run.inbox.limits.paused_until(installation, HISTORY_LIMITS)
    if until <= run.inbox.now():
        return None
    limit_ends = datetime.fromtimestamp(until / 1000, UTC)
    message = f"the reading of history continues at {limit_ends:%H:%M} UTC, when GitHub's limit resets"
    return RateLimited(message, CONTINUE_REMEDY, until=limit_ends, resource=HISTORY)


def organisation_search(
    repository: RepositoryKey, bot: Tools, run: RunDependencies, budget: RequestBudget, log: RunLog
) -> CheckedSearch | None:
    """The search in other repositories; None if there is no index, or nothing of them is to be shown."""
    settings, inbox = bot.settings, run.inbox
    if run.ranking is None or not settings.organisation.results:
        return None

    def read(grant: Grant, number: int, kind: Kind) -> ForeignRepository:
        api = GitHubClient(run.options.api_url, grant.token, grant.name, budget=budget)
        try:
            return read_repository(api, grant.name, bot.own, number, kind)
        finally:
            log.reads += api.queries

    rank, register = run.ranking(repository.installation), OrganisationRegister(inbox)
    return CheckedSearch(repository, settings, register, run.tokens, inbox.now(), rank, read, run.options.scope)
