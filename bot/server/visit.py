"""What a turn does in its repository: token → settings → clone → the flow for each event → results."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from bot.config import CONFIG_PATH
from bot.errors import PrecedentError
from bot.flow import handle
from bot.github.client import WRITE_GAP
from bot.github.errors import (
    GOES_ON,
    GRAPHQL,
    OF_HISTORY,
    Gone,
    NotInstalled,
    NotPermitted,
    RateLimited,
    Suspended,
    Unauthorised,
)
from bot.github.events import CALM
from bot.github.history import RestingHistory
from bot.memory.git_errors import AuthFailed, GitError, RemoteRefused, RemoteUnreachable
from bot.memory.memory import Memory
from bot.outfit import MUTED, Chosen, Site, branch_store, choose, embedder, outfit, remembering
from bot.parts import Bot
from bot.plans import BUSY, FULL
from bot.rebuild import go_on
from bot.server.bookkeeping import FOLLOW_UP
from bot.server.clones import Clones
from bot.server.collapse import COMMENT, Group, collapsed
from bot.server.hearing import Hearing
from bot.server.house import House
from bot.server.nouns import Delivery, Grant, Instant, LaneRow, Result, Told, Work
from bot.server.pace import Pace, PacedStore
from bot.server.ports import Ledger, Stopping, Tokens
from bot.server.said import about, matches, nearest, standing
from bot.server.verdicts import Bug, Moved, judge, limit_over
from bot.voice import UNSEEN, Spoken

PROMISED = 125_000
"""Milliseconds after which a promise that was not seen kept may be looked at: `bot.duty.SPEAKING`, and some more."""

LONGEST = 3_600_000
UNAWAITED = CALM | {FOLLOW_UP}
"""Events that nobody waits for: their turn may take the last steps of a rebuild."""

LOOKED = "what happened was looked at"
NOTHING = "nothing was due"
TOGETHER = "it was looked at together with a later delivery"
STOPPED = "the server stopped: the next one goes on"
_REMOTE = (AuthFailed, RemoteRefused, RemoteUnreachable)
_ELSEWHERE = (Gone, NotPermitted, Unauthorised, AuthFailed, RemoteRefused)
"""What one meets under a name that is not the repository's any more, among other things."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where GitHub is, who we are there, and how often a delivery is tried."""

    api_url: str
    server_url: str
    own_login: str
    instance: str
    attempts: int = 8


@dataclass(frozen=True, slots=True)
class Desk:
    """What a turn works with. ``guarded`` calls and returns what went wrong as a line, "" when nothing did.

    ``write_gap``: seconds between two writes to GitHub.
    """

    ledger: Ledger
    tokens: Tokens
    clones: Clones
    pace: Pace
    where: Where
    stop: threading.Event
    now: Callable[[], Instant]
    guarded: Callable[[Callable[[], object]], str]
    write_gap: float = WRITE_GAP


@dataclass(slots=True)
class Visit:
    """One turn in a repository. ``results`` are by delivery, and ``failed`` why there is none that is good.

    ``spoken`` is what was said, by thread; ``name`` what the repository was called as the turn began.
    """

    work: Work
    desk: Desk
    hearing: Hearing = field(default_factory=Hearing)
    results: dict[int, Result] = field(default_factory=dict)
    failed: dict[int, PrecedentError] = field(default_factory=dict)
    spoken: dict[object, Spoken] = field(default_factory=dict)
    name: str = ""
    store: PacedStore | None = None
    told: Told = field(default_factory=Told)
    known_limit: RateLimited | None = None
    """Why history is not asked for in this turn, as another one was told."""

    def make(self) -> tuple[list[Result], Told]:
        """Do all there is to do; never raises what is to be expected, nor a bug."""
        error = self._caught(self._go)
        if error:
            self._aftermath(error)
            self._judge((each for each in self.work.deliveries if each.seq not in self.results), error)
        for each in self.hearing.met:
            if isinstance(each, RateLimited):
                self._aftermath(each)
        self._look_twice()
        self.hearing.watch("")
        used = self.hearing.used
        told = replace(
            self.told,
            stages=tuple((name, round(seconds, 3)) for name, seconds in self.hearing.seconds.items()),
            pushes=tuple(self.store.pushes) if self.store else (),
            reads=used.reads + used.graphql,
            writes=used.writes,
            rate_left=used.left,
            notes=tuple(self.hearing.notes),
        )
        return list(self.results.values()), told

    def _go(self) -> None:
        lane, desk = self.work.lane, self.desk
        self.hearing.watch("token")
        row = desk.ledger.register().lane(lane)
        grant = desk.tokens.grant(lane, desk.now())
        self.name = grant.name
        desk.ledger.register().seen(lane, grant.name, private=grant.private)
        site = self._site(grant)
        self.hearing.watch("settings")
        chosen = choose(site, CONFIG_PATH, self.hearing)
        chosen = replace(chosen, embedder=embedder(chosen.settings, site, self.hearing))
        self.hearing.watch("clone")
        with desk.clones.borrowed(lane) as keep:
            self.store = desk.pace.store(branch_store(site, chosen.settings, keep), row.pushes, desk.stop)
            now = datetime.fromtimestamp(desk.now() / 1000, UTC)
            with outfit(site, chosen, self.store, now, self.hearing) as bot:
                self._work_on(replace(self._resting(bot), watch=self.hearing.watch), site, chosen, row)

    def _resting(self, bot: Bot) -> Bot:
        """One that reads no history while a limit of that is known not to be over."""
        until = self.desk.ledger.register().paused_until(self.work.lane.installation, OF_HISTORY)
        if until <= self.desk.now():
            return bot
        over = datetime.fromtimestamp(until / 1000, UTC)
        told = f"GitHub's limit of GraphQL is reached until {over:%H:%M} UTC"
        self.known_limit = RateLimited(told, GOES_ON, until=over, resource=GRAPHQL)
        return replace(bot, history=RestingHistory(self.known_limit))

    def _look_twice(self) -> None:
        """What failed as the repository went elsewhere is tried again at once; one that is ours no more is let go."""
        doubtful = [each for each in self.work.deliveries if isinstance(self.failed.get(each.seq), _ELSEWHERE)]
        if doubtful and self.name and isinstance(error := self._caught(self._go_back), (Moved, NotInstalled)):
            self._aftermath(error)
            self._judge(doubtful, error)

    def _go_back(self) -> None:
        """Ask what the repository is called by now. Raises Moved for another name, NotInstalled, ForgeError."""
        lane, tokens = self.work.lane, self.desk.tokens
        tokens.forget(lane)
        if tokens.grant(lane, self.desk.now()).name != self.name:
            raise Moved("the repository got another name: it is looked at again")

    def _site(self, grant: Grant) -> Site:
        where, folder = self.desk.where, self.desk.clones.empty
        return Site(
            repository=grant.name,
            token=grant.token,
            api_url=where.api_url,
            server_url=where.server_url,
            own_login=where.own_login,
            instance=where.instance,
            workspace=folder,
            write_gap=self.desk.write_gap,
        )

    def _work_on(self, bot: Bot, site: Site, chosen: Chosen, row: LaneRow) -> None:
        memory = bot.memory
        assert self.store
        for group in collapsed(self.work.deliveries):
            if self.desk.stop.is_set():
                raise Stopping(STOPPED)
            if self._is_done_already(group):
                self._settle(group, self.spoken.get(group.number), LOOKED)
                continue
            memory = remembering(site, chosen, self.store)
            self._handle(group, replace(bot, memory=memory), site)
            for line in memory.notes:
                self.hearing.note(line)
        self.hearing.watch("read on")
        self.told = self._outlook(memory, bot, row, reads_on=False)  # which holds where the next step goes wrong
        if before := memory.reading:
            go_on(replace(bot, memory=memory), calm=all(each.event.name in UNAWAITED for each in self.work.deliveries))
            self.told = self._outlook(memory, bot, row, reads_on=memory.reading != before)

    def _is_done_already(self, group: Group) -> bool:
        """Whether the look around for an earlier event of this turn did what there is to do."""
        if group.event.name == FOLLOW_UP:
            return any(each.state == "done" for each in self.results.values())
        known = self.spoken.get(group.number)
        return bool(known and not known.error) and group.event.name != COMMENT and not group.event.forgets

    def _handle(self, group: Group, bot: Bot, site: Site) -> None:
        """One event. What went wrong about it alone is judged here, all else ends the turn."""
        heard, told = len(self.hearing.met), list[Spoken]()
        error = self._caught(lambda: told.extend(handle(group.event, bot)))
        for spoken in told:
            if spoken.renews:
                self.hearing.note(f"Issue {spoken.id}: {spoken.action} ({spoken.reason})")
        told = [spoken for spoken in told if not spoken.renews]
        for spoken in told:
            known = self.spoken.get(spoken.id)
            if known is None or not known.spoke:
                self.spoken[spoken.id] = spoken
        own = about(told, group.number)
        if error and not isinstance(error, Bug):
            raise error
        if own and own.error and not own.is_refused:
            error = own.error
        elif (not own or own.is_owed) and not error:
            error = next(iter(self.hearing.met[heard:]), None)
        if error:
            self._aftermath(error)
            self._judge(group.deliveries, error)
        elif own or not group.event.may_be_answered:
            self._settle(group, own, self._why(bot))
        else:
            self._settle(group, standing(bot.memory, group.number, site), self._why(bot))

    def _why(self, bot: Bot) -> str:
        return self.hearing.failed[0] if bot.muted and self.hearing.failed else NOTHING

    def _settle(self, group: Group, own: Spoken | None, otherwise: str) -> None:
        """Write down what was said, of the last delivery that led to it.

        What another run is at is looked at again, as that one may have been killed.
        """
        *others, last = group.deliveries
        for each in others:
            self.results[each.seq] = Result(each.seq, "done", TOGETHER)
        if own and own.is_owed and own.reason in (BUSY, FULL):
            later = self.desk.now() + (PROMISED if own.reason == BUSY else 0)
            result = Result(last.seq, "waiting", own.reason, later, counts=False)
        elif own:
            url = own.comment.url if own.comment else ""
            reason = otherwise if own.is_owed and own.reason == MUTED else own.reason
            shown, near = matches(own), nearest(own)
            result = Result(last.seq, "done", reason, said=own.action, url=url, matches=shown, nearest=near)
            if own.is_owed and own.reason.startswith(UNSEEN):
                self.failed[last.seq] = Gone(own.reason, certain=False)
        else:
            result = Result(last.seq, "done", otherwise, said="silent")
        self.results[last.seq] = result

    def _judge(self, deliveries: Iterable[Delivery], error: PrecedentError) -> None:
        now, most = self.desk.now(), self.desk.where.attempts
        for each in deliveries:
            self.failed[each.seq] = error
            self.results[each.seq] = judge(error, each, now, most, random.uniform(0.5, 1.5))

    def _aftermath(self, error: PrecedentError) -> None:
        """What an error means for others than the delivery that met it."""
        lane, desk = self.work.lane, self.desk
        self.hearing.note(str(error))
        if isinstance(error, NotInstalled) and not isinstance(error, Suspended):
            House(desk.ledger, desk.tokens, desk.clones.forget, desk.now()).loses(lane, str(error))
        elif isinstance(error, (Unauthorised, AuthFailed)):
            desk.tokens.forget(lane)
        elif isinstance(error, RateLimited) and error is not self.known_limit:
            desk.ledger.register().pause(lane.installation, error.resource, limit_over(error, desk.now()))
        elif isinstance(error, GitError) and not isinstance(error, _REMOTE):
            desk.clones.forget(lane)

    def _outlook(self, memory: Memory, bot: Bot, row: LaneRow, *, reads_on: bool) -> Told:
        """How far memory has read, and when somebody has to look again although nothing happens.

        ``reads_on``: a rebuild that is not at its end came further in this turn, which the next one follows at once.
        """
        cursor = round(memory.cursor.timestamp() * 1000) if memory.cursor else 0
        now = self.desk.now()
        if any(each.state == "waiting" for each in self.results.values()):
            return Told(cursor=cursor)
        limits = [each for each in self.hearing.met if isinstance(each, RateLimited) and each.resource in OF_HISTORY]
        if limits:
            return Told(cursor=cursor, again_at=max(limit_over(each, now) for each in limits))
        is_reading = memory.reading is not None and not bot.forge.troubles
        if is_reading and reads_on:
            return Told(cursor=cursor, again_at=now)
        owed = self._owed(memory, bot)
        if not (is_reading or owed):
            return Told(cursor=cursor)
        is_idle = not self.spoken and all(each.event.name == FOLLOW_UP for each in self.work.deliveries)
        backoff = min(LONGEST, 2 * row.backoff) if is_idle and row.backoff else PROMISED
        soonest = min((free for free in owed if free > now), default=now + backoff)
        return Told(cursor=cursor, again_at=min(soonest, now + backoff), backoff=backoff)

    def _owed(self, memory: Memory, bot: Bot) -> list[Instant]:
        """For each promise that is left and that this turn did not keep: since when it may be looked at."""
        oldest = bot.now - bot.within
        kept = {key for key, spoken in self.spoken.items() if not spoken.is_owed and not spoken.error}
        promised = memory.said([key for key in memory.pending if key not in kept]).values()
        left = [said.trying_since for said in promised if said.at > oldest]
        wishes = (wish for wish in memory.recent_wishes(oldest) if wish.state == "pending" and wish.id not in kept)
        left += [wish.trying_since for wish in wishes]
        left += [None for _ in memory.owed[:1] if bot.settings.mode == "comment"]
        return [round(1000 * since.timestamp()) + PROMISED if since else 0 for since in left]

    def _caught(self, call: Callable[[], object]) -> PrecedentError | None:
        """What went wrong, if anything did; what nobody expected as a `Bug`."""
        met: list[PrecedentError] = []

        def tried() -> None:
            try:
                call()
            except PrecedentError as error:
                met.append(error)

        line = self.desk.guarded(tried)
        return met[0] if met else Bug(line) if line else None
