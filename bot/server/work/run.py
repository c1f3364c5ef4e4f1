"""One run in a repository: token, settings, clone → each event → results."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from bot.domain.kinds import Kind
from bot.domain.post import COMMENT
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
from bot.github.events import CATCH_UP_EVENT, ORGANISATION_EVENT
from bot.github.foreign_thread import ForeignRepository, read_repository
from bot.github.history import LimitedHistory
from bot.github.threads import OwnCommentRule
from bot.memory.memory import Memory
from bot.pipeline.backfill import HistoryRead
from bot.pipeline.comments import OTHER_RUN_POSTING, RUN_LIMIT_REACHED
from bot.pipeline.digest import digest_of_memory
from bot.pipeline.discussions import read_discussions
from bot.pipeline.draft import NOT_VISIBLE
from bot.pipeline.handle import handle_event
from bot.pipeline.rebuild import continue_rebuild
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.setup import (
    INVALID_SETTINGS,
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
from bot.server.dependencies import RunDependencies, repository_site
from bot.server.log import Bug, catch_error
from bot.server.model import (
    Delivery,
    Grant,
    PendingWork,
    RepositoryRow,
    Result,
    RunReport,
    ServerStopping,
)
from bot.server.organisation.register import OrganisationRegister
from bot.server.organisation.search import CheckedSearch
from bot.server.run_log import RunLog
from bot.server.scope import EXCLUDED
from bot.server.spans import mark_error
from bot.server.storage.budgets import Budgets
from bot.server.storage.digests import Digests
from bot.server.storage.installations import Installations
from bot.server.storage.outbox import people_digest
from bot.server.work.follow_up import PROMISE_DELAY, Progress, is_history_limit, plan_next
from bot.server.work.installation_events import InstallationEvents
from bot.server.work.policy import COMMENT_EVENT, DeliveryGroup, RepositoryMoved, coalesce, judge, limit_end
from bot.server.work.pushes import PacedStore
from bot.server.work.results import earlier_result, matches, nearest, result_for
from bot.settings.yaml_file import CONFIG_PATH

DIGEST_PERIOD = timedelta(days=30)
"""How far the digest of a repository looks back."""

EVENT_PROCESSED = "the event was processed"
NOTHING_DUE = "nothing was due"
HANDLED_TOGETHER = "it was handled together with a later delivery"
SERVER_STOPPED = "the server stopped: the next one continues"
_REMOTE_ERRORS = (AuthFailed, RemoteRefused, RemoteUnreachable)
_RENAME_ERRORS = (Gone, NotPermitted, Unauthorised, AuthFailed, RemoteRefused)
"""Errors that a renamed repository may cause, among other things."""


@dataclass(slots=True)
class RepositoryRun:
    """One run in a repository. ``results`` and ``failed`` are by delivery, ``comment_results`` by thread.

    ``name`` is the name of the repository when the run began.
    """

    work: PendingWork
    dependencies: RunDependencies
    run_log: RunLog = field(default_factory=RunLog)
    results: dict[int, Result] = field(default_factory=dict)
    failed: dict[int, PrecedentError] = field(default_factory=dict)
    comment_results: dict[object, CommentResult] = field(default_factory=dict)
    name: str = ""
    store: PacedStore | None = None
    budget: RequestBudget = field(default_factory=RequestBudget)
    report: RunReport = field(default_factory=lambda: RunReport(is_unread=None))
    history: HistoryRead | None = None
    """The last reading of history in this run."""

    other_reads: int = 0
    """Requests that checked what other repositories show."""

    people: str | None = None
    """As in `RunReport`."""

    known_limit: RateLimited | None = None
    """Why this run does not fetch history: a limit that another run met."""

    def make(self) -> tuple[list[Result], RunReport]:
        """Do the whole run. Expected errors and bugs become results instead of being raised."""
        error = catch_error(self._execute)
        if error:
            self._apply_error(error)
            self._judge((each for each in self.work.deliveries if each.seq not in self.results), error)
        for each in self.run_log.met:
            if isinstance(each, RateLimited):
                self._apply_error(each)
        self._recheck_moved()
        self.run_log.on_stage("")
        used = self.run_log.used
        report = replace(
            self.report,
            stages=tuple((name, round(seconds, 3)) for name, seconds in self.run_log.seconds.items()),
            pushes=tuple(self.store.pushes) if self.store else (),
            reads=used.reads + used.graphql + self.other_reads,
            writes=used.writes,
            notes=tuple(self.run_log.notes),
            rates=self.budget.rates,
            changed=frozenset(self.store.changed) if self.store else frozenset(),
            people=self.people,
        )
        return list(self.results.values()), report

    def _execute(self) -> None:
        repository, run = self.work.repository, self.dependencies
        self.run_log.on_stage("token")
        row = Installations(run.inbox.database, run.inbox.now).repository(repository)
        self.budget = Budgets(run.inbox.database, run.inbox.now).for_run(repository.installation)
        grant = run.tokens.grant(repository, run.now())
        self.name = grant.name
        register = OrganisationRegister(run.inbox)
        visibility = grant.visibility if grant.asked_at >= self.work.began_at else None
        register.store_repository(repository, grant.name, private=grant.private, visibility=visibility)
        scope = run.options.scope
        if not scope.includes(grant.name):
            self.results = {each.seq: Result(each.seq, "dropped", EXCLUDED) for each in self.work.deliveries}
            return
        site = repository_site(grant, run)
        self.run_log.on_stage("settings")
        config = self._read_settings(site, register)
        if scope.observes(grant.name) and config.settings.mode != "off":
            config = replace(config, settings=replace(config.settings, mode="summary"))
        settings = config.settings
        shares = None if config.muted else settings.organisation.share_with
        register.store_settings(repository, shares, settings.ignore.people)
        self.people = people_digest(config.settings.ignore.people)
        config = replace(config, embedder=embedder(config.settings, site, self.run_log))
        self.run_log.on_stage("clone")
        with run.clones.borrow(repository) as keep:
            self.store = PacedStore(branch_store(site, config, keep), run.pace, row.pushes, run.stop)
            now = datetime.fromtimestamp(run.now() / 1000, UTC)
            with build_tools(site, config, self.store, now, self.run_log, self.budget) as built:
                bot = replace(
                    self._without_history(built),
                    on_stage=self.run_log.on_stage,
                    on_history=self._on_history,
                    reading_seconds=run.reading_seconds,
                    organisation=self._organisation_search(built),
                    checks_others=row.is_unread,  # the database does not know what they show
                )
                self._handle_all(bot, site, config, row)

    def _read_settings(self, site: RepositorySite, register: OrganisationRegister) -> RepositorySettings:
        """The settings. A repository whose files exist but cannot be read shares nothing, as nobody knows with whom."""
        fetched = None
        try:
            fetched = fetch_settings(site, CONFIG_PATH)
            return read_settings(site, fetched, self.run_log)
        except StoreError as error:
            if fetched or isinstance(error, UnreadableFile):
                register.store_settings(self.work.repository, None)
            raise

    def _organisation_search(self, bot: Tools) -> CheckedSearch | None:
        run, repository, settings = self.dependencies, self.work.repository, bot.settings
        if run.ranking is None or not settings.organisation.results:
            return None
        rank, register = run.ranking(repository.installation), OrganisationRegister(run.inbox)
        now, scope = run.now(), run.options.scope
        read = partial(self._read_other, bot.own)
        return CheckedSearch(repository, settings, register, run.tokens, now, rank, read, scope)

    def _read_other(self, own: OwnCommentRule, grant: Grant, number: int, kind: Kind) -> ForeignRepository:
        api = GitHubClient(self.dependencies.options.api_url, grant.token, grant.name, budget=self.budget)
        try:
            return read_repository(api, grant.name, own, number, kind)
        finally:
            self.other_reads += api.queries

    def _on_history(self, read: HistoryRead) -> None:
        self.history = read

    def _without_history(self, bot: Tools) -> Tools:
        """The tools, without history while a limit on it is known to last."""
        until = Installations(self.dependencies.inbox.database, self.dependencies.inbox.now).paused_until(
            self.work.repository.installation, HISTORY_LIMITS
        )
        if until <= self.dependencies.now():
            return bot
        limit_ends = datetime.fromtimestamp(until / 1000, UTC)
        message = f"the reading of history continues at {limit_ends:%H:%M} UTC, when GitHub's limit resets"
        self.known_limit = RateLimited(message, CONTINUE_REMEDY, until=limit_ends, resource=HISTORY)
        return replace(bot, history=LimitedHistory(self.known_limit))

    def _recheck_moved(self) -> None:
        """Retry at once what failed because the repository moved; drop one where the App is no longer installed."""
        failed = [each for each in self.work.deliveries if isinstance(self.failed.get(each.seq), _RENAME_ERRORS)]
        if failed and self.name and isinstance(error := catch_error(self._check_name), (RepositoryMoved, NotInstalled)):
            self._apply_error(error)
            self._judge(failed, error)

    def _check_name(self) -> None:
        """Ask for the repository's current name. Raises RepositoryMoved for another name, NotInstalled, ForgeError."""
        repository, tokens = self.work.repository, self.dependencies.tokens
        tokens.forget(repository)
        if tokens.grant(repository, self.dependencies.now()).name != self.name:
            raise RepositoryMoved("the repository was renamed: it is checked again")

    def _handle_all(self, bot: Tools, site: RepositorySite, config: RepositorySettings, row: RepositoryRow) -> None:
        memory = bot.memory
        assert self.store
        for group in coalesce(self.work.deliveries):
            if self.dependencies.stop.is_set():
                raise ServerStopping(SERVER_STOPPED)
            if self._is_done_already(group):
                self._record_outcome(group, self.comment_results.get(group.number), EVENT_PROCESSED)
                continue
            memory = open_repository_memory(site, config, self.store)
            memory.time_limit = bot.memory.time_limit
            with self._noting(memory):
                self._handle(group, replace(bot, memory=memory), site)
        with self._noting(memory):
            self._read_on(memory, bot, row)

    @contextmanager
    def _noting(self, memory: Memory) -> Iterator[None]:
        """A block after which the notes of the memory are in the report, even if it fails."""
        try:
            yield
        finally:
            for line in memory.notes:
                self.run_log.note(line)

    def _read_on(self, memory: Memory, bot: Tools, row: RepositoryRow) -> None:
        """Continue what nobody waits for: the history, discussions, and the digest if it is due."""
        self.run_log.on_stage("read on")
        self.report = plan_next(self._progress(memory, bot, row), made_progress=False)  # valid if the next step fails
        if before := memory.state.manifest.reading:
            continue_rebuild(
                replace(bot, memory=memory),
                unattended=all(each.event.is_background for each in self.work.deliveries),
            )
            self.report = plan_next(
                self._progress(memory, bot, row), made_progress=memory.state.manifest.reading != before
            )
        events = [each.event for each in self.work.deliveries]
        event = next((each for each in events if each.is_of_discussion), events[0])
        read_discussions(event, replace(bot, memory=memory))
        if all(each.is_maintenance for each in events) and not self.run_log.met:
            self._make_digest(bot, memory)

    def _progress(self, memory: Memory, bot: Tools, row: RepositoryRow) -> Progress:
        return Progress(
            memory,
            bot,
            row,
            self.work.deliveries,
            self.results,
            self.comment_results,
            self.run_log.met,
            self.history,
            self.dependencies.now(),
        )

    def _make_digest(self, bot: Tools, memory: Memory) -> None:
        """Make the digest again if it is due, in a run that nobody waits for."""
        repository = self.work.repository
        digests = Digests(self.dependencies.inbox.database, self.dependencies.inbox.now)
        if digests.is_due(repository) and not memory.state.manifest.reading:
            self.run_log.on_stage("digest")
            request = DigestRequest(bot.now - DIGEST_PERIOD, bot.now)
            digests.store(repository, digest_of_memory(memory, bot.settings, bot.address, request))

    def _is_done_already(self, group: DeliveryGroup) -> bool:
        """Whether an earlier event of this run already did the work for this one."""
        if group.event.name == CATCH_UP_EVENT:
            return any(each.state == "done" for each in self.results.values())
        earlier = self.comment_results.get(group.number)
        asks_again = group.event.name in (COMMENT_EVENT, ORGANISATION_EVENT) or group.event.forgets
        return bool(earlier and not earlier.error) and not asks_again

    def _handle(self, group: DeliveryGroup, bot: Tools, site: RepositorySite) -> None:
        """Handle one event. Errors of this event alone are judged here; all others end the run."""
        met_before, results = len(self.run_log.met), list[CommentResult]()

        def handle() -> None:
            handled = handle_event(group.event, bot)
            results.extend(handled.results)
            handled.raise_error()

        error = catch_error(handle)
        renewed = [result for result in results if result.renews]
        for result in renewed:
            self.run_log.note(f"Issue {result.id}: {result.action} ({result.reason})")
        results = [result for result in results if not result.renews]
        for result in results:
            earlier = self.comment_results.get(result.id)
            if earlier is None or not earlier.spoke:
                self.comment_results[result.id] = result
        own = result_for(results, group.number)
        if error and not isinstance(error, Bug):
            raise error
        group = self._judge_undone(group, renewed)
        if not group.deliveries:
            return
        if own and own.error and not own.is_refused:
            error = own.error
        elif (not own or own.is_owed) and not error:
            error = next((each for each in self.run_log.met[met_before:] if not is_history_limit(each)), None)
        if error:
            self._apply_error(error)
            self._judge(group.deliveries, error)
        elif own or not group.event.may_be_answered:
            self._record_outcome(group, own, self._silence_reason(bot))
        else:
            self._record_outcome(group, earlier_result(bot.memory, group.number, site), self._silence_reason(bot))

    def _judge_undone(self, group: DeliveryGroup, renewed: Iterable[CommentResult]) -> DeliveryGroup:
        """Judge the deliveries whose comments still show what must be withdrawn. Returns the group without them."""
        undone = {each.id: each for each in renewed if each.is_undone and each.slot == COMMENT}
        for number in undone.keys() & group.event.numbers:
            error = undone[number].error or WorldError(undone[number].reason)
            self._apply_error(error)
            self._judge((each for each in group.deliveries if each.event.number == number), error)
            group = replace(group, deliveries=tuple(each for each in group.deliveries if each.event.number != number))
        return group

    def _silence_reason(self, bot: Tools) -> str:
        return self.run_log.failed[0] if bot.muted and self.run_log.failed else NOTHING_DUE

    def _record_outcome(self, group: DeliveryGroup, own: CommentResult | None, default: str) -> None:
        """Store the outcome under the last delivery that led to it. If another run is working on it, look again later,
        as that run may have been killed."""
        *others, last = group.deliveries
        for each in others:
            self.results[each.seq] = Result(each.seq, "done", HANDLED_TOGETHER)
        if own and own.is_owed and own.reason in (OTHER_RUN_POSTING, RUN_LIMIT_REACHED):
            later = self.dependencies.now() + (PROMISE_DELAY if own.reason == OTHER_RUN_POSTING else 0)
            result = Result(last.seq, "waiting", own.reason, later, counts=False)
        elif own:
            url = own.comment.url if own.comment else ""
            reason = default if own.is_owed and own.reason == INVALID_SETTINGS else own.reason
            shown, near = matches(own), nearest(own)
            result = Result(last.seq, "done", reason, said=own.action, url=url, matches=shown, nearest=near)
            if own.is_owed and own.reason.startswith(NOT_VISIBLE):
                self.failed[last.seq] = Gone(own.reason, certain=False)
        else:
            result = Result(last.seq, "done", default, said="silent")
        self.results[last.seq] = result

    def _judge(self, deliveries: Iterable[Delivery], error: PrecedentError) -> None:
        now, most = self.dependencies.now(), self.dependencies.options.attempts
        for each in deliveries:
            self.failed[each.seq] = error
            self.results[each.seq] = judge(error, each, now, most, random.uniform(0.5, 1.5))

    def _apply_error(self, error: PrecedentError) -> None:
        """Apply what an error means beyond the delivery that met it."""
        repository, run = self.work.repository, self.dependencies
        mark_error(error)
        self.run_log.note(str(error))
        if isinstance(error, NotInstalled) and not isinstance(error, Suspended):
            InstallationEvents(run.inbox, run.tokens, run.clones.forget, run.now()).remove(repository, str(error))
        elif isinstance(error, (Unauthorised, AuthFailed)):
            run.tokens.forget(repository)
        elif isinstance(error, RateLimited) and error is not self.known_limit:
            Installations(run.inbox.database, run.inbox.now).pause(
                repository.installation, error.resource, limit_end(error, run.now())
            )
        elif isinstance(error, DiskFault):
            run.disk.note_fault(error)
        elif isinstance(error, GitError) and not isinstance(error, _REMOTE_ERRORS):
            run.clones.forget(repository)
