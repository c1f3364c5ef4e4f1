"""One run in a repository: token, settings, clone → each event → results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from bot.errors import PrecedentError
from bot.files import DiskFault
from bot.git.errors import AuthFailed, GitError, RemoteRefused, RemoteUnreachable
from bot.github.budget import RequestBudget
from bot.github.errors import (
    Gone,
    NotInstalled,
    NotPermitted,
    RateLimited,
    Suspended,
    Unauthorised,
)
from bot.github.events import CATCH_UP_EVENT
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
    open_repository_memory,
)
from bot.pipeline.site import RepositorySite
from bot.pipeline.tools import Tools
from bot.questions.digest import DigestRequest
from bot.server.dependencies import RunDependencies, RunLog, repository_site
from bot.server.log import Bug, catch_error
from bot.server.model import EXCLUDED, Delivery, PendingWork, RepositoryRow, Result, RunReport, ServerStopping
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.branches import PacedStore
from bot.server.storage.github_access import limit_end
from bot.server.work.installation_events import InstallationEvents
from bot.server.work.policy import (
    DeliveryGroup,
    Outcomes,
    RepositoryMoved,
    RunEnd,
    coalesce,
    earlier_result,
    fault_of,
    plan_next,
    undone_renewals,
    without,
)
from bot.server.work.run_tools import history_limit, organisation_search, read_run_settings

DIGEST_PERIOD = timedelta(days=30)
"""How far the digest of a repository looks back."""

NOTHING_DUE = "nothing was due"
_REMOTE_ERRORS = (AuthFailed, RemoteRefused, RemoteUnreachable)
_RENAME_ERRORS = (Gone, NotPermitted, Unauthorised, AuthFailed, RemoteRefused)
"""Errors that a renamed repository may cause, among other things."""


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
            InstallationEvents(run.inbox, run.tokens, run.clones.forget, run.inbox.now()).remove(repository, str(error))
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
