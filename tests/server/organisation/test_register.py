"""News about a repository has the comments that it concerns checked again, and no others."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bot.domain.organisation import Visibility
from bot.domain.post import OrganisationKey
from bot.errors import WorldError
from bot.github.events import ORGANISATION_EVENT
from bot.server.model import ALL_REPOSITORIES, Priority, RepositoryKey
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.inbox import Inbox
from bot.server.storage.outbox import OrganisationChanges, queue_key
from tests.server.queues import Queue, arrival, drop, take_lease

APP, SDK, PLUGIN, OTHER, FOREIGN = (RepositoryKey.of(key) for key in ("7-1", "7-2", "7-3", "7-4", "8-1"))
PUBLIC, INTERNAL, PRIVATE = Visibility.PUBLIC, Visibility.INTERNAL, Visibility.PRIVATE
OF_SDK = OrganisationKey(SDK.number, 57)


@pytest.fixture
def register(queue: Queue) -> OrganisationRegister:
    """Three repositories of one installation; a comment in the app shows an issue of the SDK."""
    new_register = OrganisationRegister(queue.inbox)
    for repository in (APP, SDK, PLUGIN, FOREIGN):
        new_register.store_repository(repository, f"octo-org/r{repository.number}", PUBLIC)
    new_register.add_shown(APP, 5, [OF_SDK])
    new_register.add_shown(FOREIGN, 6, [OF_SDK])
    return new_register


def take_checks(inbox: Inbox) -> list[tuple[RepositoryKey, int | None, Priority]]:
    """Return and drop the deliveries that have comments checked again."""
    deliveries = inbox.deliveries(DeliveryFilter(state="waiting"), limit=100)
    drop(inbox, [each.seq for each in deliveries], "seen")
    rows = inbox.database.rows("select seq, priority from deliveries")
    priorities = {row["seq"]: Priority(row["priority"]) for row in rows}
    assert {each.event.name for each in deliveries} <= {ORGANISATION_EVENT}
    return sorted((each.repository, each.event.number, priorities[each.seq]) for each in deliveries)


SHOWN = [(APP, 5, Priority.URGENT)]


def test_a_change_of_visibility_is_stored_with_the_comments_it_concerns(
    register: OrganisationRegister, queue: Queue
) -> None:
    register.store_repository(SDK, "octo-org/r2", PRIVATE)
    assert take_checks(queue.inbox) == SHOWN
    register.store_repository(SDK, "octo-org/r2", PRIVATE)
    assert take_checks(queue.inbox) == [], "nothing new"
    register.store_repository(SDK, "octo-org/renamed", PRIVATE)
    assert take_checks(queue.inbox) == SHOWN, "repositories agree by their names"
    register.store_repository(SDK, "octo-org/r2", None)
    assert take_checks(queue.inbox) == [], "an answer from before says nothing about a known repository"
    register.store_repository(APP, "octo-org/r1", INTERNAL)
    assert take_checks(queue.inbox) == SHOWN
    register.store_repository(PLUGIN, "octo-org/r3", PRIVATE)
    assert take_checks(queue.inbox) == [], "nobody shows it"
    register.store_repository(APP, "octo-org/app", INTERNAL)
    assert take_checks(queue.inbox) == SHOWN
    stored = {each.id: (each.name, each.visibility) for each in register.repositories(7)}
    assert stored == {1: ("octo-org/app", INTERNAL), 2: ("octo-org/renamed", PRIVATE), 3: ("octo-org/r3", PRIVATE)}


def test_comments_are_checked_when_a_repository_they_show_or_belong_to_goes_or_returns(
    register: OrganisationRegister, queue: Queue
) -> None:
    register.mark_gone(SDK, "the repository was deleted")
    assert take_checks(queue.inbox) == SHOWN
    register.mark_gone(SDK, "the repository was deleted")
    assert take_checks(queue.inbox) == []
    assert [each.id for each in register.repositories(7)] == [1, 3]
    register.mark_gone(APP, "the repository was deleted")
    register.store_repository(PLUGIN, "octo-org/r3", PRIVATE)
    assert take_checks(queue.inbox) == [], "nobody can write there"
    register.store_repository(APP, "octo-org/r1", None)
    assert take_checks(queue.inbox) == SHOWN, "while it was away it heard nothing"


def test_changed_sharing_settings_concern_comments_on_both_sides(register: OrganisationRegister, queue: Queue) -> None:
    for repository in (SDK, APP):
        register.store_settings(repository, ["octo-org/*"])
        assert take_checks(queue.inbox) == SHOWN
        register.store_settings(repository, ("octo-org/*",))
        assert take_checks(queue.inbox) == []
    shares = [[share.pattern for share in each.shares] for each in register.repositories(7)]
    assert shares == [["octo-org/*"], ["octo-org/*"], []]


def test_every_rename_concerns_comments_on_both_sides(register: OrganisationRegister, queue: Queue) -> None:
    for repository in (APP, SDK):
        for visibility in Visibility:
            register.store_repository(repository, f"octo-org/r{repository.number}", visibility)
            take_checks(queue.inbox)
            register.store_repository(repository, f"octo-org/{visibility}", visibility)
            assert take_checks(queue.inbox) == SHOWN
            register.store_repository(repository, f"octo-org/r{repository.number}", visibility)
            take_checks(queue.inbox)


def shares_of(register: OrganisationRegister, repository: RepositoryKey) -> list[tuple[str, int]]:
    found = register.repository(repository)
    return [(share.pattern, share.repository) for share in found.shares] if found else []


def test_whoever_takes_a_name_takes_over_no_agreement(register: OrganisationRegister) -> None:
    register.store_settings(APP, ["octo-org/R2", "octo-org/new", "octo-org/*"])
    assert shares_of(register, APP) == [("octo-org/R2", SDK.number), ("octo-org/new", 0), ("octo-org/*", 0)]
    register.store_repository(SDK, "octo-org/elsewhere", PUBLIC)
    register.store_repository(PLUGIN, "octo-org/r2", PUBLIC)
    register.store_repository(OTHER, "octo-org/new", PUBLIC)
    bound = [("octo-org/R2", SDK.number), ("octo-org/new", OTHER.number), ("octo-org/*", 0)]
    assert shares_of(register, APP) == bound
    register.store_settings(APP, ["octo-org/R2", "octo-org/new", "octo-org/*", "octo-org/r9"])
    assert shares_of(register, APP)[:3] == bound, "another change of the list changes no meaning"
    register.store_settings(APP, None)
    assert shares_of(register, APP) == [], "settings that cannot be read share nothing"
    register.store_settings(APP, ["octo-org/R2"])
    assert shares_of(register, APP) == bound[:1], "nor do they let the meaning be forgotten"
    register.store_settings(APP, [])
    register.store_settings(APP, ["octo-org/R2"])
    assert shares_of(register, APP) == [("octo-org/R2", PLUGIN.number)], "whoever names it anew means the new one"


def test_a_name_known_of_two_repositories_means_neither(register: OrganisationRegister) -> None:
    register.store_repository(PLUGIN, "octo-org/r2", PUBLIC)
    register.store_settings(APP, ["octo-org/r2"])
    assert shares_of(register, APP) == [("octo-org/r2", 0)]
    register.store_repository(FOREIGN, "octo-org/r2", PUBLIC)
    register.store_repository(SDK, "octo-org/sdk", PUBLIC)
    register.store_repository(PLUGIN, "octo-org/r2", PUBLIC)
    assert shares_of(register, APP) == [("octo-org/r2", 0)], "another one had it"
    register.store_settings(APP, [])
    register.store_settings(APP, ["octo-org/r2"])
    assert shares_of(register, APP) == [("octo-org/r2", PLUGIN.number)], "named anew, it means the one that has it"


def test_a_name_that_was_free_when_it_was_written_means_nobody_who_takes_it(register: OrganisationRegister) -> None:
    register.store_repository(SDK, "octo-org/elsewhere", PUBLIC)
    register.store_repository(SDK, "octo-org/R_2", PUBLIC)
    register.store_repository(SDK, "octo-org/third", PUBLIC)
    register.store_settings(APP, ["octo-org/elsewhere", "octo-org/R_2", "octo-org/fresh"])
    register.store_repository(PLUGIN, "octo-org/Elsewhere", PUBLIC)
    register.store_repository(OTHER, "octo-org/r_2", PUBLIC)
    register.store_repository(OTHER, "octo-org/fresh", PUBLIC)
    assert [number for _, number in shares_of(register, APP)] == [0, 0, OTHER.number]


def test_an_installation_that_comes_back_has_all_its_comments_checked(
    register: OrganisationRegister, queue: Queue
) -> None:
    register.store_installation(7, "octo-org", "active")
    assert take_checks(queue.inbox) == []
    register.store_installation(7, "octo-org", "suspended")
    assert take_checks(queue.inbox) == []
    register.store_installation(7, "octo-org", "active")
    assert take_checks(queue.inbox) == SHOWN


def test_changed_threads_concern_the_comments_that_show_them(register: OrganisationRegister, queue: Queue) -> None:
    register.note_changed(SDK, range(1, 57))
    assert take_checks(queue.inbox) == []
    register.note_changed(SDK, range(1, 1_200))
    assert take_checks(queue.inbox) == [(APP, 5, Priority.CHANGE)]
    register.note_changed(PLUGIN, [57])
    assert take_checks(queue.inbox) == []


def test_a_deleted_thread_is_no_longer_recorded_as_shown(register: OrganisationRegister, queue: Queue) -> None:
    register.note_changed(SDK, [57], gone=[57])
    assert take_checks(queue.inbox) == [(APP, 5, Priority.CHANGE)]
    assert register.filter_shown(APP, 5, [OF_SDK]) == []
    assert register.filter_shown(FOREIGN, 6, [OF_SDK]) == [OF_SDK], "another installation's"


def test_a_thread_that_a_comment_no_longer_shows_does_not_concern_it(
    register: OrganisationRegister, queue: Queue
) -> None:
    other = OrganisationKey(PLUGIN.number, 1)
    register.add_shown(APP, 5, [other, OF_SDK])
    register.retain_shown(APP, 5, [other])
    register.note_changed(SDK, [57])
    assert take_checks(queue.inbox) == []
    register.note_changed(PLUGIN, [1])
    assert take_checks(queue.inbox) == [(APP, 5, Priority.CHANGE)]
    register.retain_shown(APP, 5, [])
    register.note_changed(PLUGIN, [1])
    assert take_checks(queue.inbox) == []


def test_a_comment_that_shows_two_excluded_repositories_is_checked_once(
    register: OrganisationRegister, queue: Queue
) -> None:
    register.add_shown(APP, 5, [OrganisationKey(PLUGIN.number, 1)])
    register.note_excluded([SDK, PLUGIN])
    assert take_checks(queue.inbox) == SHOWN


def test_comments_of_several_batches_are_queued_at_once(register: OrganisationRegister, queue: Queue) -> None:
    for number in range(100, 108):
        register.add_shown(PLUGIN, number, [OF_SDK])
    OrganisationRegister(queue.inbox, batch_size=3).mark_gone(SDK, "the repository was deleted")
    assert len(take_checks(queue.inbox)) == 9


CHANGES: list[Callable[[OrganisationRegister], object]] = [
    lambda register: register.mark_gone(APP, "uninstalled"),
    lambda register: register.store_repository(APP, "octo-org/app", PRIVATE),
    lambda register: register.store_settings(APP, ["octo-org/*"]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_repository_does_not_deadlock_with_the_beginning_of_its_run(
    register: OrganisationRegister, queue: Queue, change: Callable[[OrganisationRegister], object]
) -> None:
    """In PostgreSQL one of the two would fail. The run begins statement by statement, as in `Inbox.begin`."""
    queue.inbox.put([arrival("app-1", APP, 1)])
    lease, faults = take_lease(queue.inbox, APP), list[WorldError]()

    def apply_change() -> None:
        try:
            change(register)
        except WorldError as error:
            faults.append(error)

    other = threading.Thread(target=apply_change)
    with queue.inbox.database.transaction() as beginning:
        assert queue.inbox.queue.lock(lease)
        beginning.change("update deliveries set state = 'working' where repository = :key", key=APP.text)
        other.start()
        other.join(0.5)  # it waits for one of our rows
        queue.inbox.installations.record_work(APP, "octo-org/r1")
    other.join(30)
    assert (other.is_alive(), faults) == (False, [])


WRITES: list[Callable[[OrganisationRegister], object]] = [
    lambda register: register.mark_gone(SDK, "uninstalled"),
    lambda register: register.store_repository(SDK, "octo-org/sdk", PRIVATE),
    lambda register: register.store_settings(SDK, ["octo-org/*"]),
    lambda register: register.note_excluded([OTHER, SDK]),
    lambda register: register.note_changed(SDK, [56, 57]),
]


@pytest.mark.parametrize("second", [SDK.text, PLUGIN.text, queue_key(7)])
@pytest.mark.parametrize("write", WRITES)
def test_a_change_does_not_deadlock_with_adding_work_for_several_keys(
    register: OrganisationRegister,
    queue: Queue,
    write: Callable[[OrganisationRegister], object],
    second: str,
) -> None:
    """Statement by statement, in order, as the webhook, a change of the other repository and the end of a run do."""
    register.add_shown(PLUGIN, 8, [OrganisationKey(SDK.number, 56), OrganisationKey(OTHER.number, 1)])
    for repository in (APP, SDK, PLUGIN):
        queue.inbox.put([arrival(repository.text, repository, 1)])
    changes = OrganisationChanges(queue.inbox.database, queue.clock)
    changes.align("/srv/index", ALL_REPOSITORIES)
    changes.request_reread([SDK])
    faults = list[WorldError]()

    def apply_write() -> None:
        try:
            write(OrganisationRegister(queue.inbox, batch_size=1))
        except WorldError as error:
            faults.append(error)

    other = threading.Thread(target=apply_write)
    with queue.inbox.database.transaction():
        queue.inbox.queue.add([(APP.text, Priority.CHANGE, 1)])
        other.start()
        other.join(0.5)  # it waits for that key
        queue.inbox.queue.add([(second, Priority.CHANGE, 1)])
    other.join(30)
    assert (other.is_alive(), faults) == (False, [])
    waiting = {(each.repository, each.event.name) for each in queue.inbox.deliveries(DeliveryFilter(state="waiting"))}
    assert waiting >= {(APP, ORGANISATION_EVENT), (PLUGIN, ORGANISATION_EVENT)}
