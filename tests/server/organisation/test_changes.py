"""The outbox of the organisation's index, in SQLite and in PostgreSQL: runs fill it, and workers empty it."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from bot.domain.organisation import Visibility
from bot.organisation.documents import DOCUMENT_VERSION
from bot.server.model import (
    ALL_REPOSITORIES,
    MINUTE,
    Lease,
    PendingWork,
    RepositoryKey,
    RepositoryRow,
    RepositoryScope,
    RunReport,
)
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.database import to_json
from bot.server.storage.outbox import (
    FIRST_ROW_PAUSE,
    MAX_ROW_PAUSE,
    MAX_ROW_THREADS,
    PURGE_DELAY,
    PURGE_PREFIX,
    OrganisationChanges,
    installation_of,
    queue_key,
)
from tests.server.queues import REPOSITORY, Queue, arrival, begin_work, drop, keys

OTHER = RepositoryKey(7, 71)
LOCATION = "/srv/index"


def changes_of(queue: Queue) -> OrganisationChanges:
    return OrganisationChanges(queue.inbox.database, queue.clock)


def switch_on(queue: Queue) -> OrganisationChanges:
    changes = changes_of(queue)
    changes.align(LOCATION, ALL_REPOSITORIES)
    return changes


def begin_run(queue: Queue, repository: RepositoryKey = REPOSITORY, number: int = 1) -> PendingWork:
    queue.inbox.put([arrival(f"{repository.text}-{number}", repository, number)])
    return begin_work(queue.inbox, repository)


def do_run(
    queue: Queue,
    changed: Collection[int],
    repository: RepositoryKey = REPOSITORY,
    *,
    is_unread: bool | None = False,
) -> None:
    """Do a run that changed these threads."""
    work = begin_run(queue, repository, number=next(NUMBERS))
    queue.inbox.end(work, [], RunReport(changed=frozenset(changed), is_unread=is_unread))
    drop(queue.inbox, [each.seq for each in work.deliveries], "for the test")


def is_queued(queue: Queue) -> bool:
    """Whether the queue has the key of the installation."""
    return queue_key(7) in keys(queue.inbox)


def is_claimable(queue: Queue) -> bool:
    """Whether a worker would lease the key now."""
    row = queue.inbox.database.row("select due, lease from queue where key = :key", key=queue_key(7))
    return bool(row and not row["lease"] and row["due"] <= queue.clock())


NUMBERS = iter(range(100, 10_000))


def rows(queue: Queue) -> list[tuple[str, str]]:
    changes = queue.inbox.database.rows("select repository, threads from organisation_changes order by seq")
    return [(row["repository"], row["threads"]) for row in changes]


def switch_on_and_index(queue: Queue) -> OrganisationChanges:
    """Switch the index on and have it contain the memory of the repository."""
    changes = switch_on(queue)
    do_run(queue, [1])
    changes.mark_done(changes.take(7))
    lease = queue.inbox.queue.claim_key("here", queue_key(7))
    assert lease
    queue.inbox.finish_changes(lease, 7)
    return changes


def test_no_change_is_recorded_while_there_is_no_index(queue: Queue) -> None:
    do_run(queue, [1, 2])
    assert (rows(queue), changes_of(queue).backlog()) == ([], None)
    assert not is_queued(queue)


def test_the_first_run_records_the_whole_memory_and_later_runs_only_their_changes(queue: Queue) -> None:
    changes = switch_on(queue)
    do_run(queue, [1, 2])
    assert rows(queue) == [("7-70", "")]
    do_run(queue, [3, 2])
    do_run(queue, [])
    assert rows(queue) == [("7-70", ""), ("7-70", "[2,3]")]
    assert is_queued(queue)
    assert (changes.backlog() or (0, 0))[0] == 2


def test_a_history_is_recorded_once_it_is_completely_read(queue: Queue) -> None:
    switch_on(queue)
    do_run(queue, range(1, 2 * MAX_ROW_THREADS), is_unread=True)
    do_run(queue, range(1, 2 * MAX_ROW_THREADS), is_unread=None)
    assert rows(queue) == []
    do_run(queue, [], is_unread=False)
    assert rows(queue) == [("7-70", "")]


def test_very_many_changes_are_recorded_as_the_whole_memory(queue: Queue) -> None:
    switch_on_and_index(queue)
    do_run(queue, range(1, MAX_ROW_THREADS + 2))
    assert rows(queue) == [("7-70", "")]


def test_the_whole_memory_is_recorded_once_when_the_list_of_ignored_people_changes(queue: Queue) -> None:
    switch_on_and_index(queue)
    register, both = OrganisationRegister(queue.inbox), [("octocat", "MonaLisa"), ("monalisa", "Octocat")]
    for people, expected in [((), 0), (None, 0), (both[0], 1), (None, 1), (both[1], 1), ((), 2)]:
        register.store_settings(REPOSITORY, None if people is None else (), people or ())
        do_run(queue, [])
        assert rows(queue) == expected * [("7-70", "")]


def test_a_repository_deleted_while_the_index_was_off_is_recorded_when_it_is_on_again(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    changes.switch_off()
    OrganisationRegister(queue.inbox).mark_gone(REPOSITORY, "deleted")
    assert rows(queue) == []
    assert changes.align(LOCATION, ALL_REPOSITORIES) == 1
    assert rows(queue) == [("7-70", "")]
    assert changes.align(LOCATION, ALL_REPOSITORIES) == 0


def test_a_new_document_version_rereads_everything(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    assert changes.align(LOCATION, ALL_REPOSITORIES, DOCUMENT_VERSION) == 0
    assert changes.align(LOCATION, ALL_REPOSITORIES, "another") == 1
    assert rows(queue) == [("7-70", "")]


def test_the_whole_memory_is_recorded_once_after_a_run_that_never_ended(queue: Queue) -> None:
    """It may have pushed, and the run after it finds nothing new on GitHub."""
    changes = switch_on_and_index(queue)
    begin_run(queue)
    queue.clock.ahead += 40_000  # its lease runs out
    work = begin_work(queue.inbox, REPOSITORY)
    queue.inbox.end(work, [], RunReport())
    assert rows(queue) == [("7-70", "")]
    changes.mark_done(changes.take(7))
    drop(queue.inbox, [each.seq for each in work.deliveries], "for the test")
    queue.clock.ahead += 70_000  # further apart than the clocks of two processes
    do_run(queue, [])
    queue.clock.ahead += 70_000
    do_run(queue, [5])
    assert rows(queue) == [("7-70", "[5]")]


def test_a_run_that_lost_its_lease_records_no_change(queue: Queue) -> None:
    switch_on_and_index(queue)
    work = begin_run(queue)
    assert not queue.inbox.end(
        replace(work, lease=replace(work.lease, id="lost")), [], RunReport(changed=frozenset([1]))
    )
    assert rows(queue) == []


def test_a_deleted_repository_is_recorded_and_so_is_its_return(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    OrganisationRegister(queue.inbox).mark_gone(REPOSITORY, "deleted")
    assert rows(queue) == [("7-70", "")]
    assert is_queued(queue)
    assert changes.is_gone(REPOSITORY)
    changes.mark_done(changes.take(7))
    OrganisationRegister(queue.inbox).store_repository(REPOSITORY, "octo-org/hello-world", Visibility.PUBLIC)
    do_run(queue, [])
    assert rows(queue) == [("7-70", "")]  # it is back


def purges(queue: Queue, hours: int) -> Iterator[int]:
    """Yield the minutes from now at which a purge is due, within so many hours."""
    minute = 0
    while heartbeat := queue.inbox.heartbeats.all().get(f"{PURGE_PREFIX}7"):
        wait = max(0, math.ceil((heartbeat[0] - queue.clock()) / MINUTE))
        if (minute := minute + wait) >= 60 * hours:
            return
        if wait:
            queue.clock.ahead += (wait - 1) * MINUTE
            assert not changes_of(queue).is_purge_due(7)
            queue.clock.ahead += MINUTE
        assert changes_of(queue).is_purge_due(7)
        yield minute
        queue.clock.ahead += MINUTE
        minute += 1


def test_files_are_purged_twice_once_the_index_has_all_recorded_changes(queue: Queue) -> None:
    changes, purged_at = switch_on(queue), list[int]()
    changes.note_forgotten(7)
    changes.note_forgotten(8)
    changes.request_reread([REPOSITORY])
    for minute in purges(queue, 3):
        changes.note_purged(7)
        if not purged_at:  # it did not count: a waiting change may be the forgotten one
            changes.mark_done(changes.take(7))
        purged_at.append(minute)
    assert purged_at == [11, 11 + 22, 11 + 22 + 11]
    assert changes.is_purge_due(8)


@pytest.mark.parametrize("failed", [True, False])
def test_purges_become_rarer_while_they_fail_or_do_not_count(queue: Queue, failed: bool) -> None:
    changes, purged_at = switch_on(queue), list[int]()
    changes.note_forgotten(7)
    if not failed:
        changes.request_reread([REPOSITORY])  # nobody can read it
    for minute in purges(queue, 48):
        changes.note_purged(7, failed=failed)
        purged_at.append(minute)
    gaps = [later - first for first, later in pairwise(purged_at)]
    assert gaps == [22, 44, 88, 176, 352, 360, 360, 360, 360, 360, 360]
    changes.note_forgotten(7)
    assert list(purges(queue, 1))[:1] == [11], "what is forgotten now need not wait as long"


def test_a_change_recorded_during_a_purge_still_needs_a_purge(queue: Queue) -> None:
    """In PostgreSQL both transactions are open at once."""
    changes, work = switch_on_and_index(queue), begin_run(queue)
    changes.note_forgotten(7)
    with queue.inbox.database.transaction() as ending:
        sql = "update heartbeats set note = :note where name = :name"
        ending.change(sql, note=to_json({"left": 1}), name=f"{PURGE_PREFIX}7")
    purging = threading.Thread(target=changes.note_purged, args=(7,))
    with queue.inbox.database.transaction() as ending:
        changes.note_ignored_people(REPOSITORY)
        changes.note_run(work, RepositoryRow(REPOSITORY, is_unread=False), RunReport(), 0)
        purging.start()
        purging.join(0.5)
    purging.join(30)
    changes.mark_done(changes.take(7))
    for _ in range(2):
        queue.clock.ahead += 2 * PURGE_DELAY
        assert changes.is_purge_due(7)
        changes.note_purged(7)
    assert not list(purges(queue, 1))


def test_switching_the_index_on_or_changing_the_scope_records_the_repositories_concerned(queue: Queue) -> None:
    do_run(queue, [1])
    do_run(queue, [1], OTHER)
    OrganisationRegister(queue.inbox).store_repository(OTHER, "octo-org/other", Visibility.PRIVATE)
    OrganisationRegister(queue.inbox).store_repository(RepositoryKey(8, 80), "octocat/unread", Visibility.PRIVATE)
    changes = changes_of(queue)
    without = RepositoryScope(exclude=("*/other",))
    assert changes.align(LOCATION, without) == 2  # the other one may be in an earlier index
    assert sorted(rows(queue)) == [("7-70", ""), ("7-71", "")]
    assert changes.align(LOCATION, ALL_REPOSITORIES) == 1
    assert changes.align(LOCATION, ALL_REPOSITORIES) == 0
    assert changes.align(LOCATION, without) == 1
    assert sorted(rows(queue)) == [("7-70", ""), *3 * [("7-71", "")]]
    assert changes.align("/another", ALL_REPOSITORIES) == 2
    assert rows(queue) == [("7-70", ""), ("7-71", "")]
    changes.switch_off()
    assert (rows(queue), changes.backlog()) == ([], None)


def test_a_change_whose_key_is_missing_from_the_queue_gets_it_back(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    do_run(queue, [4])
    queue.inbox.database.change("delete from queue where key = :key", key=queue_key(7))
    changes.align(LOCATION, ALL_REPOSITORIES)
    assert is_queued(queue)


def test_changes_of_a_repository_are_taken_together_and_failed_ones_later_one_by_one(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    do_run(queue, [1])
    do_run(queue, [2])
    first = changes.take(7)
    assert [each.threads for each in first] == [(1,), (2,)]
    assert changes.take(7) == []
    do_run(queue, [3])
    assert [each.threads for each in changes.take(7)] == [(3,)]  # it does not wait for those that failed
    queue.clock.ahead += FIRST_ROW_PAUSE
    assert [[each.threads for each in changes.take(7)] for _ in range(3)] == [[(1,)], [(2,)], [(3,)]]
    queue.clock.ahead += FIRST_ROW_PAUSE
    assert changes.take(7) == []
    queue.clock.ahead += MAX_ROW_PAUSE
    retried = changes.take(7)
    assert [(each.threads, each.attempts) for each in retried] == [((1,), 3)]
    changes.mark_done(retried)
    assert rows(queue) == [("7-70", "[2]"), ("7-70", "[3]")]


def test_a_change_that_always_fails_does_not_hold_up_others(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    do_run(queue, [1])
    do_run(queue, [2], OTHER)
    taken = changes.take(7)
    assert taken[0].repository == REPOSITORY
    assert [each.repository for each in changes.take(7)] == [OTHER]


def test_the_changes_of_another_installation_are_left_alone(queue: Queue) -> None:
    changes, foreign = switch_on_and_index(queue), RepositoryKey(8, 80)
    do_run(queue, [1], foreign)
    assert changes.take(7) == []
    assert [each.repository for each in changes.take(8)] == [foreign]


def test_a_whole_memory_is_divided_into_parts(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    OrganisationRegister(queue.inbox).mark_gone(REPOSITORY, "deleted")
    taken = changes.take(7)
    changes.divide(taken, list(range(1, 2 * MAX_ROW_THREADS + 2)))
    parts = changes.take(7)
    assert [len(each.threads or ()) for each in parts] == [MAX_ROW_THREADS, MAX_ROW_THREADS, 1]


def test_the_key_is_due_again_with_the_next_change_and_removed_without_one(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    do_run(queue, [1])
    lease = queue.inbox.queue.claim_key("here", queue_key(7))
    assert lease
    taken = changes.take(7)
    queue.inbox.finish_changes(lease, 7)
    assert not is_claimable(queue)
    queue.clock.ahead += FIRST_ROW_PAUSE + 1
    assert is_claimable(queue)
    second_lease = queue.inbox.queue.claim_key("here", queue_key(7))
    assert second_lease
    changes.mark_done(taken)
    queue.inbox.finish_changes(second_lease, 7)
    assert not is_queued(queue)


def test_a_change_recorded_while_the_key_is_leased_makes_it_due_afterwards(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    lease = queue.inbox.queue.claim_key("here", queue_key(7))
    assert lease
    assert changes.take(7) == []
    do_run(queue, [1])
    queue.inbox.finish_changes(lease, 7)
    assert is_claimable(queue)


def test_a_key_claimed_by_name_is_leased_once(queue: Queue) -> None:
    first = queue.inbox.queue.claim_key("one", queue_key(7))
    assert first
    assert queue.inbox.queue.claim_key("two", queue_key(7)) is None
    queue.clock.ahead += 40_000
    assert queue.inbox.queue.claim_key("two", queue_key(7))
    assert queue.inbox.queue.renew("one", [first.id]) == {first.id}


def test_a_damaged_index_is_rebuilt_only_once_in_a_while(queue: Queue) -> None:
    changes = switch_on_and_index(queue)
    assert [changes.claim_repair(7) for _ in range(2)] == [True, False]
    queue.clock.ahead += 11 * 60_000
    assert changes.claim_repair(7)
    do_run(queue, [1])
    changes.note_repaired(7)
    assert rows(queue) == [("7-70", "")]  # instead of what waited
    queue.clock.ahead += 60 * 60_000
    assert not changes.claim_repair(7)
    queue.clock.ahead += 6 * 60 * 60_000
    assert changes.claim_repair(7)


def test_two_workers_and_many_runs_lose_no_change(queue: Queue) -> None:
    """Both take changes and keys while runs end; each change is done once, and the key goes last."""
    changes, indexed, runs_ended, lock = switch_on_and_index(queue), list[int](), threading.Event(), threading.Lock()

    def work(name: str) -> None:
        while not runs_ended.is_set() or rows(queue):
            lease: Lease | None = queue.inbox.queue.claim_key(name, queue_key(7))
            if lease is None:
                continue
            while taken := changes.take(7):
                with lock:
                    indexed.extend(number for each in taken for number in each.threads or ())
                changes.mark_done(taken)
            queue.inbox.finish_changes(lease, 7)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for number in range(1, 21):
        do_run(queue, [number])
    runs_ended.set()
    for thread in threads:
        thread.join(30)
    assert sorted(indexed) == list(range(1, 21))
    assert not is_queued(queue)


def test_queue_keys_of_installations_are_recognised() -> None:
    others = ("17-42", "resync", "organisation-0", "organisation-1-2", "organisation-")
    assert installation_of(queue_key(17)) == 17
    assert [installation_of(key) for key in others] == [0] * len(others)
