"""Random organisations in which nothing may leak: repositories change while answers are written and events go astray.

``python -m tests.organisation_worlds --worlds 10000``. Scope, tables, events and search are the real ones; GitHub and
the pipeline are the smallest that behave like them.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from bot.domain.answer import Context, Match, OrganisationKey, OrganisationMatch
from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.github.app import InstallationInfo, InstallationToken, ListedRepository
from bot.github.errors import ForgeError, Gone, NotInstalled, Suspended, Unreachable
from bot.github.events import ORGANISATION, Event
from bot.github.foreign_thread import ForeignRepository, ForeignThread
from bot.server.installation_events import PLACES, InstallationEvents
from bot.server.installations import TokenCache
from bot.server.model import Arrival, Delivery, Grant, RepositoryKey
from bot.server.options import ServerOptions
from bot.server.organisation_register import OrganisationRegister
from bot.server.organisation_search import CheckedSearch
from bot.server.resync import Resync
from bot.server.retry_policy import judge
from bot.settings.schema import OrganisationSettings, Settings
from tests.server.queues import FileInbox

APP, INSTALLATION = 9, 7
REPOSITORIES = (1, 2, 3, 4)
THREADS = (11, 12)
"""The threads of each repository, which its comments are on and which others show."""

BEGAN = datetime(2025, 1, 1, tzinfo=UTC)
ENDED = datetime(2025, 2, 1, tzinfo=UTC)
PATTERNS = ((), ("org/*",), ("org/r1", "org/r4"), ("org/r2", "org/r3", "other/*"))
"""What the settings of a repository share with."""

ROUNDS = 30
MOST = 1_000_000
"""Tries of a delivery."""

STEPS = (
    *(
        "visibility",
        "visibility",
        "shares",
        "shares",
        "delete",
        "transfer",
        "remove",
        "add",
        "suspend",
        "return",
        "thread",
        "forget",
        "uninstall",
    ),
    *("ask", "ask", "ask", "race", "race", "work", "work", "daily", "deliver", "deliver", "repeat", "lose", "wait"),
    *("trouble", "crash"),
)
Step = tuple[str, int, int, int]


@dataclass
class TrueRepository:
    """A repository as it is on GitHub. ``threads``: whether each is there, and closed."""

    number: int
    visibility: Visibility = Visibility.PUBLIC
    shares: tuple[str, ...] = ()
    owner: str = "org"
    is_installed: bool = True
    is_deleted: bool = False
    threads: dict[int, str] = field(default_factory=lambda: dict.fromkeys(THREADS, "closed"))

    @property
    def name(self) -> str:
        return f"{self.owner}/r{self.number}"

    @property
    def readers(self) -> frozenset[str]:
        """The people who may read it: everybody, the members, or a team of them."""
        teams = [f"team {number}" for number in REPOSITORIES]
        people = {Visibility.PUBLIC: ["the public", "members", *teams], Visibility.INTERNAL: ["members", *teams]}
        return frozenset(people.get(self.visibility, [f"team {self.number}"]))


class Forge:
    """GitHub, as an App and with tokens of single repositories."""

    def __init__(self) -> None:
        kinds = (Visibility.PUBLIC, Visibility.INTERNAL, Visibility.PRIVATE, Visibility.PRIVATE)
        self.repositories = {
            number: TrueRepository(number, kind, PATTERNS[kind is Visibility.PRIVATE])
            for number, kind in zip(REPOSITORIES, kinds, strict=True)
        }
        self.is_suspended = self.is_down = self.is_uninstalled = False
        self.now = 1_000_000_000_000

    def sees(self, number: int) -> bool:
        one = self.repositories[number]
        is_ours = one.is_installed and not one.is_deleted and one.owner == "org"
        return is_ours and not self.is_suspended and not self.is_uninstalled

    def create_token(self, installation: int, number: int) -> InstallationToken:
        if self.is_down:
            raise Unreachable("down")
        if self.is_suspended and not self.is_uninstalled:
            raise Suspended("suspended")
        if not self.sees(number):
            raise NotInstalled("gone")
        one = self.repositories[number]
        private = one.visibility is not Visibility.PUBLIC
        return InstallationToken("token", self.now + 3_600_000, one.name, private, one.visibility)

    def installations(self) -> list[InstallationInfo]:
        return [] if self.is_uninstalled else [InstallationInfo(INSTALLATION, "org", self.is_suspended)]

    def repositories_of(self, _: int) -> list[ListedRepository]:
        return [
            ListedRepository(each.number, each.name, each.visibility is not Visibility.PUBLIC, each.visibility)
            for each in self.repositories.values()
            if self.sees(each.number)
        ]


class _Listing:
    """What a resync asks of the App."""

    def __init__(self, forge: Forge) -> None:
        self.installations, self.repositories = forge.installations, forge.repositories_of


@dataclass
class World:
    """An organisation with our server. ``shown``: what stands in the comment on a thread of a repository.

    ``settings_read`` are the patterns that the last run of each repository read.
    """

    inbox: FileInbox
    forge: Forge = field(default_factory=Forge)
    shown: dict[tuple[int, int], tuple[OrganisationKey, ...]] = field(default_factory=dict)
    settings_read: dict[int, tuple[str, ...]] = field(default_factory=dict)
    threads_read: dict[int, dict[int, str]] = field(default_factory=dict)
    forgotten: set[OrganisationKey] = field(default_factory=set)
    indexed: set[OrganisationKey] = field(default_factory=set)
    events: list[Arrival] = field(default_factory=list)
    sent: list[Arrival] = field(default_factory=list)
    has_lost: bool = False
    dies: bool = False
    interruption: Callable[[], None] | None = None
    reads: int = 0
    asked: dict[int, tuple[frozenset[str], bool]] = field(default_factory=dict)
    answers: int = 0
    names: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.inbox.now = lambda: self.forge.now
        self.tokens = TokenCache(self.forge)  # type: ignore[arg-type]
        self.register = OrganisationRegister(self.inbox)
        for number in REPOSITORIES:
            self.run(number)

    # -- what people do --------------------------------------------------------------------------------------------

    def step(self, name: str, first: int, second: int, third: int) -> None:
        """One step; the numbers choose among what is there."""
        number = REPOSITORIES[first % len(REPOSITORIES)]
        one, self.dies = self.forge.repositories[number], name == "crash"
        match name:
            case "visibility":
                self.set_visibility(number, list(Visibility)[second % 3])
            case "shares":
                one.shares = PATTERNS[second % len(PATTERNS)]
                self.tell(number, Event("push"))
            case "delete":
                one.is_deleted = second % 3 == 0 or one.is_deleted
                self.tell_all("repository", "deleted", repository=number)  # also one that is not true (any more)
            case "transfer":
                one.owner = ("other", "org")[second % 2]
                self.tell_all("repository", "transferred", repository=number) if second % 2 else None
            case "remove" | "add":
                one.is_installed = name == "add"
                action = "added" if one.is_installed else "removed"
                self.tell_all("installation_repositories", action, **{action: number})
            case "suspend" | "return":
                self.forge.is_suspended = name == "suspend"
                self.tell_all("installation", "suspend" if name == "suspend" else "unsuspend")
            case "uninstall" if second == third == 0:  # for good: an App that comes back has another number
                self.forge.is_uninstalled = True
                self.tell_all("installation", "deleted")
            case "thread":
                one.threads[THREADS[second % 2]] = ("gone", "open", "closed")[third % 3]
                self.tell(number, Event("issues", "edited", THREADS[second % 2]))
            case "forget":  # GitHub has it for ever
                self.forgotten.add(OrganisationKey(number, THREADS[second % 2]))
                self.tell(number, Event("issue_comment", "created", THREADS[second % 2]))
            case "ask" | "crash":
                self.run(number, THREADS[second % 2])
            case "race":
                self.race(number, second, third)
            case _:
                self.serve(name, number, second)

    def serve(self, name: str, number: int, second: int) -> None:
        """What happens to events, and work."""
        place = second % len(self.events) if self.events else 0
        match name:
            case "work":
                self.work(number if second % 2 else 0)
            case "daily":
                self.run(number)
            case "deliver" if self.events:
                self.deliver(self.events.pop(place))
            case "repeat" if self.sent:
                self.deliver(self.sent[second % len(self.sent)], again=True)
            case "lose" if self.events:
                self.events.pop(place)
                self.has_lost = True
            case "wait":
                self.forge.now += (60_000, 3_000_000)[second % 2]
            case "trouble":
                self.forge.is_down = second % 3 == 0

    def set_visibility(self, number: int, visibility: Visibility) -> None:
        one = self.forge.repositories[number]
        one.visibility = visibility
        action = {Visibility.PUBLIC: "publicized", Visibility.PRIVATE: "privatized"}.get(visibility, "edited")
        self.tell_all("repository", action, repository=number)

    def race(self, number: int, second: int, third: int) -> None:
        """An answer, and a change of another repository or this one while it is worked out, whose event is handled."""
        changed, left = REPOSITORIES[third % len(REPOSITORIES)], [third % 3]

        def interrupt() -> None:
            left[0] -= 1
            if left[0] < 0:
                self.interruption = None
                self.set_visibility(changed, list(Visibility)[(second + third) % 3])
                self.deliver(self.events.pop())
                self.work(0)

        self.interruption = interrupt
        self.run(number, THREADS[second % 2])
        self.interruption = None

    # -- events ----------------------------------------------------------------------------------------------------

    def tell(self, number: int, event: Event) -> None:
        self.events.append(Arrival("", RepositoryKey(INSTALLATION, number), event))

    def tell_all(self, name: str, action: str, **extra: int) -> None:
        named = tuple((key, str(value)) for key, value in extra.items())
        self.events.append(Arrival("", RepositoryKey(INSTALLATION, 0), Event(name, action), extra=named))

    def deliver(self, arrival: Arrival, *, again: bool = False) -> None:
        """The event arrives; GitHub gives a repeated one the same id only if it is repeated as it was."""
        if not again:
            self.sent.append(arrival)
        told = Arrival(f"{APP}:{next(self.names)}", arrival.repository, arrival.event, extra=arrival.extra)
        self.inbox.put([told])

    # -- our server ------------------------------------------------------------------------------------------------

    def work(self, number: int) -> None:
        """Work on what waits for a repository, 0 for the installation."""
        key = RepositoryKey(INSTALLATION, number)
        for delivery in reversed(self.inbox.deliveries(state="waiting", repository=key, limit=1_000)):
            if number:
                is_own = delivery.event.name == ORGANISATION
                error = self.run(number, delivery.event.number if is_own else None, is_own=is_own)
            else:
                error = self.apply(delivery)
            if isinstance(error, WorldError) and judge(error, delivery, self.forge.now, MOST).state == "waiting":
                return
            with self.inbox.database.transaction() as settling:
                settling.change("update deliveries set state = 'done' where seq = :seq", seq=delivery.seq)

    def apply(self, delivery: Delivery) -> WorldError | None:
        events = InstallationEvents(self.inbox, self.tokens, lambda _: None, self.forge.now)
        try:
            events.apply(delivery)
        except WorldError as error:
            return error
        return None

    def run(self, number: int, thread: int | None = None, *, is_own: bool = False) -> WorldError | None:
        """One run of a repository, with an answer on a thread; the error that ended it."""
        self.forge.now += 1  # a token that was asked for in this run is younger than the run, any other older
        key, began = RepositoryKey(INSTALLATION, number), self.forge.now
        try:
            grant = self.tokens.grant(key, began)
            if not self.forge.sees(number):  # its token is worth nothing any more: the run meets that at once
                self.tokens.forget(key)
                grant = self.tokens.grant(key, began)
        except NotInstalled as error:
            if not isinstance(error, Suspended):
                InstallationEvents(self.inbox, self.tokens, lambda _: None, began).remove(key, "gone")
            return error
        except ForgeError as error:
            return error
        visibility = grant.visibility if grant.asked_at >= began else None
        self.register.store_repository(key, grant.name, private=grant.private, visibility=visibility)
        one = self.forge.repositories[number]
        self.settings_read[number] = one.shares
        self.register.store_shares(key, one.shares)
        before = self.threads_read.get(number, {})
        self.threads_read[number] = dict(one.threads)
        self.register.note_changed(key, [each for each, now in one.threads.items() if before.get(each, now) != now])
        gone = {each for each in self.forgotten - self.indexed if each.repository == number}
        self.indexed |= gone
        self.register.note_changed(key, [each.thread for each in gone], [each.thread for each in gone])
        return None if thread is None else self.answer(key, thread, is_own=is_own)

    def answer(self, key: RepositoryKey, thread: int, *, is_own: bool) -> WorldError | None:
        kept = self.shown.get((key.number, thread), ())
        if is_own and not kept:
            return None
        organisation = OrganisationSettings(results=2, share_with=self.settings_read[key.number])
        settings = Settings(organisation=organisation)
        self.asked.clear()
        now, register = self.forge.now, self.register
        search = CheckedSearch(key, settings, register, self.tokens, now, self.rank, self.read)
        asked = Thread(thread, Kind.ISSUE, "Which store?", "", "octocat", BEGAN, BEGAN)
        try:
            found = search.find(asked, Context(), kept)
        except ForgeError as error:
            return error
        self.check(key.number, found)
        if self.dies:
            self.dies = False
            return Unreachable("nothing was written; the delivery is worked on again")
        self.shown[key.number, thread] = tuple(one.key for one in found)
        return None

    def rank(
        self, thread: Thread, context: Context, scope: Collection[int], kept: Collection[OrganisationKey], _: Settings
    ) -> Sequence[OrganisationMatch]:
        """An index that knows all that ever was and is not forgotten, of which the thread's day chooses."""
        every = [OrganisationKey(number, one) for number in REPOSITORIES for one in THREADS]
        keys = [key for key in every if key not in self.indexed]
        turn = self.answers % max(1, len(keys))
        self.answers += 1
        return [
            OrganisationMatch(each, f"org/r{each.repository}", Match(each.thread, "Old", 0.9, "closed", BEGAN))
            for each in [*kept, *(key for key in keys[turn:] + keys[:turn] if key not in kept)]
        ]

    def read(self, grant: Grant, number: int, kind: Kind) -> ForeignRepository:
        """As a token of the repository sees it: one that went elsewhere, only if everybody does."""
        if self.interruption:
            self.interruption()
        self.reads += 1
        one = self.forge.repositories[grant.repository.number]
        if self.forge.is_down:
            raise Unreachable("down")
        if one.is_deleted or not (self.forge.sees(one.number) or one.visibility is Visibility.PUBLIC):
            raise Gone("out of sight", certain=False)
        state = one.threads.get(number, "gone")
        found = (
            None if state == "gone" else ForeignThread("Old", state, BEGAN, None, None if state == "open" else ENDED)
        )
        self.asked[one.number] = one.readers, one.owner == "org"
        return ForeignRepository(one.number, one.name, one.visibility, found)

    # -- what must hold --------------------------------------------------------------------------------------------

    def check(self, reader: int, found: Sequence[OrganisationMatch]) -> None:
        """Everything that is shown was visible when GitHub was asked."""
        assert len(found) <= 2
        for one in found:
            other = one.key.repository
            assert other != reader, "it shows itself"
            assert other in self.asked, "GitHub was not asked"
            assert self.asked[other][1], "it went to another account"
            assert self.may_show(reader, other, self.asked[reader][0], self.asked[other][0]), (
                f"r{reader} shows r{other}"
            )

    def may_show(self, reader: int, other: int, here: frozenset[str], there: frozenset[str]) -> bool:
        """Whether all readers here may read there, or both agree, where not everybody reads."""
        names = {number: f"org/r{number}" for number in REPOSITORIES}
        agrees = _named(names[other], self.settings_read[reader]) and _named(names[reader], self.settings_read[other])
        return here <= there or (agrees and "the public" not in here)

    def settle(self) -> None:
        """Everything that was sent arrives and is worked on; what was lost is found by the daily list of repositories
        and the daily look at each."""
        self.forge.is_down = False
        if self.forge.is_suspended:
            self.step("return", 0, 0, 0)
        for event in self.events:
            self.deliver(event)
        self.events.clear()
        if self.has_lost:
            self.resync()
        for number in REPOSITORIES:
            self.run(number)
        for _ in range(ROUNDS):
            if not self.inbox.deliveries(state="waiting", limit=1):
                break
            for number in (0, *REPOSITORIES):
                self.work(number)
        assert not self.inbox.deliveries(state="waiting", limit=1), "it comes to no end"
        for (reader, _), keys in self.shown.items():
            for key in keys if self.forge.sees(reader) else ():
                other = self.forge.repositories[key.repository]
                here, there = self.forge.repositories[reader].readers, other.readers
                assert self.forge.sees(key.repository), f"r{key.repository} is gone, and r{reader} still shows it"
                assert self.may_show(reader, key.repository, here, there), f"r{reader} still shows r{key.repository}"
                assert key not in self.forgotten, f"r{reader} still shows what r{key.repository} has forgotten"
                assert other.threads[key.thread] != "gone", f"r{reader} still shows a thread that is gone"

    def resync(self) -> None:
        self.inbox.heartbeat(PLACES, {"day": 0})
        api: Any = _Listing(self.forge)
        found = Resync(api, self.inbox, ServerOptions(app_id=APP), self.tokens, lambda _: None)
        found._list_repositories(self.forge.now)


def _named(name: str, patterns: Sequence[str]) -> bool:
    return any(name == pattern or pattern == f"{name.split('/', maxsplit=1)[0]}/*" for pattern in patterns)


TABLES = ("deliveries", "queue", "repositories", "installations", "organisation_shown", "heartbeats", "pauses")
WORLDS = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.integers(0, 11), st.integers(0, 11)),
    min_size=20,
    max_size=50,
)


def live(steps: Sequence[Step], inbox: FileInbox) -> World:
    """A world from its beginning to its end, in tables that are emptied first."""
    with inbox.database.transaction() as emptying:
        for table in TABLES:
            emptying.change(f"delete from {table} where 1 = 1" + (" and name <> 'schema'" * (table == "heartbeats")))
    world = World(inbox)
    for step in steps:
        world.step(*step)
    world.settle()
    return world


def explore(worlds: int, *, seen: Callable[[World], object] = lambda _: None) -> None:
    """Live so many random worlds; raises the smallest one that leaks."""
    inbox = FileInbox()

    @profile(
        max_examples=worlds,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(WORLDS)
    def holds(steps: list[Step]) -> None:
        seen(live(steps, inbox))

    holds()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.organisation_worlds")
    parser.add_argument("--worlds", type=int, default=10_000)
    given_ = parser.parse_args()
    answers = shows = 0

    def seen(world: World) -> None:
        nonlocal answers, shows
        answers += world.answers
        shows += sum(map(len, world.shown.values()))

    explore(given_.worlds, seen=seen)
    print(f"{given_.worlds} worlds, {answers} answers, {shows} threads shown at their ends, 0 leaks")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
