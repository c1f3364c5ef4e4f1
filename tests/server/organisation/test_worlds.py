"""Random organisations in which nothing may leak: repositories change while answers are written, and events get lost.

Scope, tables, events and search are the real ones; GitHub and the pipeline are minimal fakes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from bot.domain.answer import Context, Match, OrganisationMatch
from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.domain.post import OrganisationKey
from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.github.app import InstallationInfo, InstallationToken, ListedRepository
from bot.github.errors import ForgeError, Gone, NotInstalled, Suspended, Unreachable
from bot.github.events import ORGANISATION_EVENT, Event
from bot.github.foreign_thread import ForeignRepository
from bot.server.model import Delivery, Grant, RepositoryKey
from bot.server.organisation.register import OrganisationRegister
from bot.server.organisation.search import CheckedSearch
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.github_access import TokenCache
from bot.server.work.installation_events import INSTALLATIONS_HEARTBEAT, InstallationEvents, list_installations
from bot.server.work.policy import judge
from bot.settings.schema import OrganisationSettings, Settings
from tests.examples import examples
from tests.server.queues import FileInbox

APP, INSTALLATION = 9, 7
REPOSITORIES = (1, 2, 3, 4)
THREADS = (11, 12)
"""The threads of each repository: it comments on them, and other repositories show them."""

CREATED_AT = datetime(2025, 1, 1, tzinfo=UTC)
CLOSED_AT = datetime(2025, 2, 1, tzinfo=UTC)
NAMES = ("r1", "r2", "r3", "r4", "r5", "r6")
"""Names that repositories may have; the first ones are theirs at the beginning."""

PATTERNS = ((), ("org/*",), ("org/r1", "org/r4", "org/r5"), ("org/r2", "org/r3", "other/*", "org/R6"))
"""With whom the settings of a repository share its threads."""

ROUNDS = 30
MAX_WAITING = 300
"""Most deliveries that wait at once at the end of a world."""

MAX_TRIES = 1_000_000
"""Tries of a delivery."""

STEPS = (
    *("visibility", "visibility", "shares", "shares", "delete", "transfer", "remove", "add", "suspend", "return"),
    *("thread", "forget", "uninstall", "ask", "ask", "ask", "race", "race", "work", "work", "daily", "deliver"),
    *("deliver", "repeat", "lose", "wait", "trouble", "crash", "rename", "rename", "squat", "break"),
)
Step = tuple[str, int, int, int]


@dataclass
class TrueRepository:
    """A repository as it is on GitHub. ``threads``: number → open, closed or gone. ``is_broken``: its settings are."""

    number: int
    visibility: Visibility = Visibility.PUBLIC
    shares: tuple[str, ...] = ()
    owner: str = "org"
    is_installed: bool = True
    is_deleted: bool = False
    is_broken: bool = False
    short: str = ""
    threads: dict[int, str] = field(default_factory=lambda: dict.fromkeys(THREADS, "closed"))

    @property
    def name(self) -> str:
        return f"{self.owner}/{self.short or f'r{self.number}'}"

    @property
    def readers(self) -> frozenset[str]:
        """The people who may read it: everybody, the members, or a team."""
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
        self.refused: set[int] = set()
        self.now = 1_000_000_000_000

    def rename(self, number: int, short: str) -> bool:
        """Give a repository another name, if that is free."""
        repo = self.repositories[number]
        if any(f"{repo.owner}/{short}" == each.name and not each.is_deleted for each in self.repositories.values()):
            return False
        repo.short = short
        return True

    def sees(self, number: int) -> bool:
        repo = self.repositories[number]
        is_ours = repo.is_installed and not repo.is_deleted and repo.owner == "org"
        return is_ours and not self.is_suspended and not self.is_uninstalled

    def create_token(self, installation: int, number: int) -> InstallationToken:
        if self.is_down:
            raise Unreachable("down")
        if self.is_suspended and not self.is_uninstalled:
            raise Suspended("suspended")
        if not self.sees(number):
            self.refused.add(number)
            raise NotInstalled("gone")
        repo = self.repositories[number]
        return InstallationToken("token", self.now + 3_600_000, repo.name, repo.visibility)

    def installation(self, number: int) -> InstallationInfo:
        if self.is_down:
            raise Unreachable("down")
        if self.is_uninstalled:
            raise NotInstalled("gone")
        return InstallationInfo(number, "org", self.is_suspended)

    def installations(self) -> list[InstallationInfo]:
        return [] if self.is_uninstalled else [InstallationInfo(INSTALLATION, "org", self.is_suspended)]

    def repositories_of(self, _: int) -> list[ListedRepository]:
        return [
            ListedRepository(each.number, each.name, each.visibility)
            for each in self.repositories.values()
            if self.sees(each.number)
        ]


class _Listing:
    """The part of the App's API that a resync uses."""

    def __init__(self, forge: Forge) -> None:
        self.installations, self.repositories = forge.installations, forge.repositories_of


@dataclass
class World:
    """An organisation with our server. ``shown``: (repository, thread) → what our comment on it shows.

    ``settings_read``: the patterns that the last run of each repository read. ``holders``: the repositories that the
    server has ever known under a name; ``meant``: those among them when a repository's settings first had that name, or
    the first ones since. The last repository is unknown to the server until its first run.
    """

    inbox: FileInbox
    forge: Forge = field(default_factory=Forge)
    shown: dict[tuple[int, int], tuple[OrganisationKey, ...]] = field(default_factory=dict)
    settings_read: dict[int, tuple[str, ...]] = field(default_factory=dict)
    meant: dict[int, dict[str, set[int]]] = field(default_factory=dict)
    holders: dict[str, set[int]] = field(default_factory=dict)
    threads_read: dict[int, dict[int, str]] = field(default_factory=dict)
    forgotten: set[OrganisationKey] = field(default_factory=set)
    indexed: set[OrganisationKey] = field(default_factory=set)
    events: list[Delivery] = field(default_factory=list)
    sent: list[Delivery] = field(default_factory=list)
    has_lost: bool = False
    crashes: bool = False
    interruption: Callable[[], None] | None = None
    reads: int = 0
    fetched: dict[int, tuple[frozenset[str], bool]] = field(default_factory=dict)
    answers: int = 0
    delivery_ids: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.inbox.now = lambda: self.forge.now
        self.tokens = TokenCache(self.forge)  # type: ignore[arg-type]
        self.register = OrganisationRegister(self.inbox)
        for number in REPOSITORIES[:-1]:
            self.run(number)

    # -- what people do --------------------------------------------------------------------------------------------

    def step(self, name: str, first: int, second: int, third: int) -> None:
        """Perform one step; the numbers choose among what exists."""
        number = REPOSITORIES[first % len(REPOSITORIES)]
        repo, self.crashes = self.forge.repositories[number], name == "crash"
        self.note_names()
        match name:
            case "visibility":
                self.set_visibility(number, list(Visibility)[second % 3])
            case "shares" | "break":
                repo.is_broken = name == "break" and not repo.is_broken
                repo.shares = PATTERNS[second % len(PATTERNS)] if name == "shares" else repo.shares
                self.send_event(number, Event("push"))
            case "delete":
                repo.is_deleted = second % 3 == 0 or repo.is_deleted
                # Sent even if it is not (or no longer) deleted.
                self.send_app_event("repository", "deleted", repository=number)
            case "transfer":
                repo.owner = ("other", "org")[second % 2]
                self.send_app_event("repository", "transferred", repository=number) if second % 2 else None
            case "remove" | "add":
                repo.is_installed = name == "add"
                action = "added" if repo.is_installed else "removed"
                self.send_app_event("installation_repositories", action, **{action: number})
            case "suspend" | "return":
                self.forge.is_suspended = name == "suspend"
                self.send_app_event("installation", "suspend" if name == "suspend" else "unsuspend")
            case "uninstall" if second == third == 0:  # for good: a new installation gets another number
                self.forge.is_uninstalled = True
                self.send_app_event("installation", "deleted")
            case "thread":
                repo.threads[THREADS[second % 2]] = ("gone", "open", "closed")[third % 3]
                self.send_event(number, Event("issues", "edited", THREADS[second % 2]))
            case "forget":  # GitHub keeps the command for ever
                self.forgotten.add(OrganisationKey(number, THREADS[second % 2]))
                self.send_event(number, Event("issue_comment", "created", THREADS[second % 2]))
            case "ask" | "crash":
                self.run(number, THREADS[second % 2])
            case "race":
                self.race(number, second, third)
            case _:
                self.handle_step(name, number, second)

    def handle_step(self, name: str, number: int, second: int) -> None:
        """Perform a step that concerns names, events or the server's work."""
        index = second % len(self.events) if self.events else 0
        match name:
            case "rename" | "squat":
                self.rename(number, second, is_former=name == "squat")
            case "work":
                self.work(number if second % 2 else 0)
            case "daily":
                self.run(number)
            case "deliver" if self.events:
                self.deliver(self.events.pop(index))
            case "repeat" if self.sent:
                self.deliver(self.sent[second % len(self.sent)], again=True)
            case "lose" if self.events:
                self.events.pop(index)
                self.has_lost = True
            case "wait":
                self.forge.now += (60_000, 3_000_000)[second % 2]
            case "trouble":
                self.forge.is_down = second % 3 == 0

    def rename(self, number: int, second: int, *, is_former: bool) -> None:
        """Rename a repository, to a name that another one had, if ``is_former``."""
        former = sorted(each.partition("/")[2] for each in self.holders if each.startswith("org/"))
        names = former if is_former else NAMES
        if names and self.forge.rename(number, names[second % len(names)]):
            self.send_app_event("repository", "renamed", repository=number)

    def note_names(self) -> None:
        """Note under which names the server knows the repositories now."""
        rows = self.inbox.database.rows("select key, name from repositories where name <> ''")
        new: dict[str, set[int]] = {}
        for row in rows:
            new.setdefault(row["name"].lower(), set()).add(RepositoryKey.of(row["key"]).number)
        for name, numbers in new.items():
            self.holders.setdefault(name, set()).update(numbers)
            for meant in self.meant.values():
                if meant.get(name) == set():
                    meant[name] |= numbers

    def set_visibility(self, number: int, visibility: Visibility) -> None:
        repo = self.forge.repositories[number]
        repo.visibility = visibility
        action = {Visibility.PUBLIC: "publicized", Visibility.PRIVATE: "privatized"}.get(visibility, "edited")
        self.send_app_event("repository", action, repository=number)

    def race(self, number: int, second: int, third: int) -> None:
        """Answer, while the visibility of a repository changes and the event about it is handled."""
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

    def send_event(self, number: int, event: Event) -> None:
        self.events.append(Delivery("", RepositoryKey(INSTALLATION, number), event))

    def send_app_event(self, name: str, action: str, **extra: int) -> None:
        fields = tuple((key, str(value)) for key, value in extra.items())
        self.events.append(Delivery("", RepositoryKey(INSTALLATION, 0), Event(name, action), extra=fields))

    def deliver(self, arrival: Delivery, *, again: bool = False) -> None:
        """The event arrives; a repeated one gets a new id, as GitHub reuses an id only for a redelivery."""
        if not again:
            self.sent.append(arrival)
        received = Delivery(f"{APP}:{next(self.delivery_ids)}", arrival.repository, arrival.event, extra=arrival.extra)
        self.inbox.put([received])

    # -- our server ------------------------------------------------------------------------------------------------

    def work(self, number: int) -> None:
        """Work on the deliveries that wait for a repository, or for the installation if it is 0."""
        key = RepositoryKey(INSTALLATION, number)
        for delivery in reversed(self.inbox.deliveries(DeliveryFilter(state="waiting", repository=key), limit=1_000)):
            if number:
                is_own = delivery.event.name == ORGANISATION_EVENT
                error = self.run(number, delivery.event.number if is_own else None, is_own=is_own)
            else:
                error = self.apply(delivery)
            if isinstance(error, WorldError) and judge(error, delivery, self.forge.now, MAX_TRIES).state == "waiting":
                return
            self.inbox.database.change("update deliveries set state = 'done' where seq = :seq", seq=delivery.seq)

    def apply(self, delivery: Delivery) -> WorldError | None:
        events = InstallationEvents(self.inbox, self.tokens, lambda _: None, self.forge.now)
        try:
            events.apply(delivery)
        except WorldError as error:
            return error
        return None

    def run(self, number: int, thread: int | None = None, *, is_own: bool = False) -> WorldError | None:
        """One run of a repository, with an answer on a thread if given; returns the error that ended it."""
        self.forge.now += 1  # a token created in this run is newer than its start, any other is older
        key, started = RepositoryKey(INSTALLATION, number), self.forge.now
        try:
            grant = self.tokens.grant(key, started)
            if not self.forge.sees(number):  # its token is no longer valid: the run finds out at once
                self.tokens.forget(key)
                grant = self.tokens.grant(key, started)
        except NotInstalled as error:
            if not isinstance(error, Suspended):
                InstallationEvents(self.inbox, self.tokens, lambda _: None, started).remove(key, "gone")
            return error
        except ForgeError as error:
            return error
        visibility = grant.visibility if grant.asked_at >= started else None
        self.register.store_repository(key, grant.name, visibility)
        repo = self.forge.repositories[number]
        self.settings_read[number] = () if repo.is_broken else repo.shares
        self.note_names()
        if not repo.is_broken:
            known, names = self.meant.get(number, {}), [each.lower() for each in repo.shares]
            self.meant[number] = {each: known.get(each) or {*self.holders.get(each, ())} for each in names}
        self.register.store_settings(key, None if repo.is_broken else repo.shares)
        before = self.threads_read.get(number, {})
        self.threads_read[number] = dict(repo.threads)
        self.register.note_changed(key, [each for each, now in repo.threads.items() if before.get(each, now) != now])
        gone = {each for each in self.forgotten - self.indexed if each.repository == number}
        self.indexed |= gone
        self.register.note_changed(key, [each.thread for each in gone], [each.thread for each in gone])
        return None if thread is None else self.answer(key, thread, is_own=is_own)

    def answer(self, key: RepositoryKey, thread: int, *, is_own: bool) -> WorldError | None:
        previous = self.shown.get((key.number, thread), ())
        if is_own and not previous:
            return None
        organisation = OrganisationSettings(results=2, share_with=self.settings_read[key.number])
        settings = Settings(organisation=organisation)
        self.fetched.clear()
        self.forge.refused.clear()
        now, register = self.forge.now, self.register
        search = CheckedSearch(key, settings, register, self.tokens, now, self.rank, self.read)
        question = Thread(thread, "Which store?", "", "octocat", CREATED_AT)
        try:
            matches = search.find(question, Context(), previous)
        except ForgeError as error:
            return error
        self.check(key.number, matches)
        self.check_gone(self.forge.refused - {key.number})
        if self.crashes:
            self.crashes = False
            return Unreachable("nothing was written; the delivery is worked on again")
        self.shown[key.number, thread] = tuple(match.key for match in matches)
        return None

    def rank(
        self, thread: Thread, context: Context, scope: Collection[int], shown: Collection[OrganisationKey], _: Settings
    ) -> Sequence[OrganisationMatch]:
        """An index of every thread that was not forgotten; each answer starts at another place in it."""
        every = [OrganisationKey(number, each) for number in REPOSITORIES for each in THREADS]
        keys = [key for key in every if key not in self.indexed]
        turn = self.answers % max(1, len(keys))
        self.answers += 1
        return [
            OrganisationMatch(each, f"org/r{each.repository}", Match(each.thread, "Old", 0.9, "closed", CREATED_AT))
            for each in [*shown, *(key for key in keys[turn:] + keys[:turn] if key not in shown)]
        ]

    def read(self, grant: Grant, number: int, kind: Kind) -> ForeignRepository:
        """A thread as a token of its repository sees it; in a transferred repository only if it is public."""
        if self.interruption:
            self.interruption()
        self.reads += 1
        repo = self.forge.repositories[grant.repository.number]
        if self.forge.is_down:
            raise Unreachable("down")
        if repo.is_deleted or not (self.forge.sees(repo.number) or repo.visibility is Visibility.PUBLIC):
            raise Gone("out of sight", certain=False)
        state = repo.threads.get(number, "gone")
        thread = Thread(number, "Old", "", "octocat", CREATED_AT, kind)
        if state == "closed":
            thread = replace(thread, state=state, closed_at=CLOSED_AT)
        self.fetched[repo.number] = repo.readers, repo.owner == "org"
        return ForeignRepository(repo.number, repo.name, repo.visibility, None if state == "gone" else thread)

    # -- what must hold --------------------------------------------------------------------------------------------

    def check(self, reader: int, matches: Sequence[OrganisationMatch]) -> None:
        """Everything shown was visible when it was fetched from GitHub."""
        assert len(matches) <= 2
        for match in matches:
            other = match.key.repository
            assert other != reader, "it shows itself"
            assert other in self.fetched, "GitHub was not asked"
            assert self.fetched[other][1], "it went to another account"
            assert self.may_show(reader, other, self.fetched[reader][0], self.fetched[other][0]), (
                f"r{reader} shows r{other}"
            )

    def check_gone(self, gone: Collection[int]) -> None:
        """Once it is noticed that these are gone, each comment that shows one of them waits to be renewed."""
        sql = (
            "select s.repository, s.thread from organisation_shown s join repositories r on r.key = s.repository"
            " where r.state <> 'gone' and s.other_repository = :number"
        )
        waiting = {
            (each.repository.text, each.event.number)
            for each in self.inbox.deliveries(DeliveryFilter(state="waiting"), limit=1_000)
        }
        for number in gone:
            shown = {(row["repository"], int(row["thread"])) for row in self.inbox.database.rows(sql, number=number)}
            assert shown <= waiting, f"r{number} is gone, and {shown - waiting} are not checked"

    def may_show(self, reader: int, other: int, here: frozenset[str], there: frozenset[str]) -> bool:
        """Whether everybody who reads here may read there, or both share with each other and here is not public."""
        agrees = self.is_named(other, reader) and self.is_named(reader, other)
        return here <= there or (agrees and "the public" not in here)

    def is_named(self, number: int, by: int) -> bool:
        """Whether the settings of another repository name this one: by its owner, or by a name that was its own."""
        repo, patterns = self.forge.repositories[number], self.settings_read[by]
        name = repo.name.lower()
        return f"{repo.owner}/*" in patterns or (
            name in [each.lower() for each in patterns] and number in (self.meant[by][name] or {number})
        )

    def settle(self) -> None:
        """All sent events arrive and are handled; the daily list of repositories and the daily run of each make up for
        lost ones. Then nothing may be shown that must not be."""
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
            waiting = self.inbox.deliveries(DeliveryFilter(state="waiting"), limit=MAX_WAITING + 1)
            if not waiting:
                break
            assert len(waiting) <= MAX_WAITING, "checks bring up more checks"
            for number in (0, *REPOSITORIES):
                self.work(number)
        assert not self.inbox.deliveries(DeliveryFilter(state="waiting"), limit=1), "it comes to no end"
        for (reader, _), keys in self.shown.items():
            for key in keys if self.forge.sees(reader) else ():
                other = self.forge.repositories[key.repository]
                here, there = self.forge.repositories[reader].readers, other.readers
                assert self.forge.sees(key.repository), f"r{key.repository} is gone, and r{reader} still shows it"
                assert self.may_show(reader, key.repository, here, there), f"r{reader} still shows r{key.repository}"
                assert key not in self.forgotten, f"r{reader} still shows what r{key.repository} has forgotten"
                assert other.threads[key.thread] != "gone", f"r{reader} still shows a thread that is gone"

    def resync(self) -> None:
        self.inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, {"day": 0})
        api: Any = _Listing(self.forge)
        events = InstallationEvents(self.inbox, self.tokens, lambda _: None, self.forge.now)
        list_installations(api, APP, events)


TABLES = ("deliveries", "queue", "repositories", "installations", "organisation_shown", "heartbeats", "pauses")
WORLDS = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.integers(0, 11), st.integers(0, 11)),
    min_size=20,
    max_size=50,
)


def play_world(steps: Sequence[Step], inbox: FileInbox) -> None:
    """Play a world from beginning to end, in tables that are emptied first."""
    with inbox.database.transaction() as transaction:
        for table in TABLES:
            transaction.change(f"delete from {table} where 1 = 1" + (" and name <> 'schema'" * (table == "heartbeats")))
    world = World(inbox)
    for step in steps:
        world.step(*step)
    world.settle()


def explore(worlds: int) -> None:
    """Play so many random worlds; raises with the smallest one that leaks."""
    inbox = FileInbox()

    @profile(
        max_examples=worlds,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(WORLDS)
    def check_world(steps: list[Step]) -> None:
        play_world(steps, inbox)

    check_world()


@pytest.mark.slow
def test_an_answer_of_github_from_before_a_rename_does_not_undo_it() -> None:
    play_world([("rename", 0, 10, 7), ("race", 2, 9, 6), ("ask", 0, 7, 3), ("lose", 1, 4, 4)], FileInbox())


@pytest.mark.slow
def test_nothing_leaks_in_some_random_organisations() -> None:
    explore(examples(25))


@pytest.mark.night
@pytest.mark.slow
def test_nothing_leaks_in_many_random_organisations() -> None:
    explore(examples(500))


ARRIVE = [*[("deliver", 0, 0, 0)] * 8, ("work", 0, 0, 0)]
AGREED = [("visibility", 0, 2, 0), ("shares", 2, 2, 0), ("shares", 3, 3, 0), ("shares", 0, 3, 0), *ARRIVE]
READ = [("daily", 0, 0, 0), ("daily", 2, 0, 0), ("daily", 3, 0, 0)]
SQUAT = [("rename", 3, 5, 0), *ARRIVE, *READ[2:], ("rename", 0, 3, 0), *ARRIVE, *READ[:1]]
ASKED = [("ask", repository, thread, 0) for _ in range(3) for repository in (0, 2) for thread in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps",
    [
        [*AGREED, *READ, *SQUAT, *READ[1:2], *ASKED],
        [*AGREED, *READ, ("break", 2, 0, 0), *ARRIVE, *READ[1:2], *SQUAT, ("shares", 2, 2, 0), *ARRIVE, *READ, *ASKED],
        [("rename", 0, 4, 0), ("rename", 1, 0, 0), ("shares", 1, 3, 0), ("ask", 1, 0, 0), ("rename", 2, 1, 0), *ASKED],
    ],
    ids=["a free name", "a free name, while the settings were broken", "a free name, before the settings name it"],
)
def test_nothing_leaks_to_whoever_takes_a_name(steps: list[Step]) -> None:
    play_world(steps, FileInbox())
