"""The outbox of the organisation's index, in SQLite and in PostgreSQL: what runs write there, and who takes it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from bot.server.database import to_json
from bot.server.model import MINUTE, Lease, PendingWork, RepositoryKey, RepositoryRow, RunReport
from bot.server.organisation_changes import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MOST_CHANGED,
    NEXT_PURGE,
    PURGE_AFTER,
    OrganisationChanges,
    installation_of,
    note_run,
    people_digest,
    queue_key,
)
from bot.server.scope import EVERYTHING, RepositoryScope
from tests.server.queues import REPOSITORY, Queue, arrival, keys, leased

OTHER = RepositoryKey(7, 71)
PLACE = "/srv/index"


def changes_of(queue: Queue) -> OrganisationChanges:
    return OrganisationChanges(queue.inbox.database, queue.inbox.queue, queue.clock)


def switched_on(queue: Queue) -> OrganisationChanges:
    found = changes_of(queue)
    found.align(PLACE, EVERYTHING)
    return found


def begun(queue: Queue, repository: RepositoryKey = REPOSITORY, number: int = 1) -> PendingWork:
    queue.inbox.put([arrival(f"{repository.text}-{number}", repository, number)])
    work = queue.inbox.begin(leased(queue.inbox, repository))
    assert work
    return work


def ran(
    queue: Queue,
    changed: Collection[int],
    repository: RepositoryKey = REPOSITORY,
    *,
    is_unread: bool | None = False,
    people: str | None = None,
) -> None:
    """A run that changed these threads."""
    work = begun(queue, repository, number=next(NUMBERS))
    queue.inbox.end(work, [], RunReport(changed=frozenset(changed), is_unread=is_unread, people=people))
    queue.inbox.drop([each.seq for each in work.deliveries], "for the test")


def is_called(queue: Queue) -> bool:
    """Whether the queue has the key of the installation."""
    return queue_key(7) in keys(queue.inbox)


def is_due(queue: Queue) -> bool:
    """Whether a worker would lease the key now."""
    with queue.inbox.database.transaction() as asking:
        row = asking.row("select due, lease from queue where key = :key", key=queue_key(7))
    return bool(row and not row["lease"] and row["due"] <= queue.clock())


NUMBERS = iter(range(100, 10_000))


def rows(queue: Queue) -> list[tuple[str, str]]:
    with queue.inbox.database.transaction() as asking:
        found = asking.rows("select repository, threads from organisation_changes order by seq")
    return [(row["repository"], row["threads"]) for row in found]


def indexed(queue: Queue) -> OrganisationChanges:
    """Switched on, and the memory of the repository is in the index."""
    found = switched_on(queue)
    ran(queue, [1])
    found.mark_done(found.take(7))
    lease = queue.inbox.queue.claim_key("here", queue_key(7))
    assert lease
    found.finish(lease, 7)
    return found


def test_nothing_is_noted_while_there_is_no_index(queue: Queue) -> None:
    ran(queue, [1, 2])
    assert (rows(queue), changes_of(queue).backlog()) == ([], None)
    assert not is_called(queue)


def test_the_first_run_notes_the_whole_memory_and_later_ones_what_they_changed(queue: Queue) -> None:
    changes = switched_on(queue)
    ran(queue, [1, 2])
    assert rows(queue) == [("7-70", "")]
    ran(queue, [3, 2])
    ran(queue, [])
    assert rows(queue) == [("7-70", ""), ("7-70", "[2,3]")]
    assert is_called(queue)
    assert (changes.backlog() or (0, 0))[0] == 2


def test_a_history_is_noted_when_it_is_read_and_not_with_each_of_its_parts(queue: Queue) -> None:
    switched_on(queue)
    ran(queue, range(1, 2 * MOST_CHANGED), is_unread=True)
    ran(queue, range(1, 2 * MOST_CHANGED), is_unread=None)
    assert rows(queue) == []
    ran(queue, [], is_unread=False)
    assert rows(queue) == [("7-70", "")]


def test_very_many_changes_are_noted_as_the_whole_memory(queue: Queue) -> None:
    indexed(queue)
    ran(queue, range(1, MOST_CHANGED + 2))
    assert rows(queue) == [("7-70", "")]


def test_the_whole_memory_is_noted_once_when_other_people_are_to_be_left_out(queue: Queue) -> None:
    indexed(queue)
    both = [people_digest(["octocat", "MonaLisa"]), people_digest(["monalisa", "Octocat"])]
    for people, noted in [("", 0), (None, 0), (both[0], 1), (None, 1), (both[1], 1), ("", 2)]:
        ran(queue, [], people=people)
        assert rows(queue) == noted * [("7-70", "")]


def test_a_new_place_has_nothing_left_of_what_went_while_there_was_no_index(queue: Queue) -> None:
    changes = indexed(queue)
    changes.switch_off()
    queue.inbox.installations().mark_gone(REPOSITORY, "deleted")
    assert rows(queue) == []
    assert changes.align(PLACE, EVERYTHING) == 1
    assert rows(queue) == [("7-70", "")]
    assert changes.align(PLACE, EVERYTHING) == 0


def test_all_is_read_again_with_a_version_that_makes_other_documents(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = indexed(queue)
    monkeypatch.setattr("bot.organisation.documents.DOCUMENT_VERSION", "another")
    assert changes.align(PLACE, EVERYTHING) == 1
    assert rows(queue) == [("7-70", "")]


def test_after_a_run_that_never_ended_the_whole_memory_is_noted_once(queue: Queue) -> None:
    """It may have pushed, and the run after it finds nothing new on GitHub."""
    changes = indexed(queue)
    begun(queue)
    queue.clock.ahead += 40_000  # its lease runs out
    work = queue.inbox.begin(leased(queue.inbox, REPOSITORY))
    assert work
    queue.inbox.end(work, [], RunReport())
    assert rows(queue) == [("7-70", "")]
    changes.mark_done(changes.take(7))
    queue.inbox.drop([each.seq for each in work.deliveries], "for the test")
    queue.clock.ahead += 70_000  # further apart than the clocks of two processes
    ran(queue, [])
    queue.clock.ahead += 70_000
    ran(queue, [5])
    assert rows(queue) == [("7-70", "[5]")]


def test_a_run_that_lost_its_lease_notes_nothing(queue: Queue) -> None:
    indexed(queue)
    work = begun(queue)
    assert not queue.inbox.end(
        replace(work, lease=replace(work.lease, id="lost")), [], RunReport(changed=frozenset([1]))
    )
    assert rows(queue) == []


def test_a_repository_that_is_gone_is_noted_with_that(queue: Queue) -> None:
    changes = indexed(queue)
    queue.inbox.installations().mark_gone(REPOSITORY, "deleted")
    assert rows(queue) == [("7-70", "")]
    assert is_called(queue)
    assert changes.is_gone(REPOSITORY)
    changes.mark_done(changes.take(7))
    queue.inbox.installations().store_repository(REPOSITORY, "octo-org/hello-world", private=False)
    ran(queue, [])
    assert rows(queue) == [("7-70", "")]  # it is back


def purges(queue: Queue, hours: int) -> Iterator[int]:
    """The minutes from now at which files are written again, within so many hours."""
    for minute in range(60 * hours):
        if changes_of(queue).is_purge_due(7):
            yield minute
        queue.clock.ahead += MINUTE


def test_files_are_written_again_twice_once_the_index_has_what_was_noted(queue: Queue) -> None:
    changes, told = switched_on(queue), list[int]()
    changes.note_forgotten(7)
    changes.note_forgotten(8)
    changes.request_reread([REPOSITORY])
    for minute in purges(queue, 3):
        changes.note_purged(7)
        if not told:  # it did not count: a change waits that may be the one
            changes.mark_done(changes.take(7))
        told.append(minute)
    assert told == [11, 11 + 22, 11 + 22 + 11]
    assert changes.is_purge_due(8)


@pytest.mark.parametrize("failed", [True, False])
def test_files_are_written_again_ever_more_seldom_while_that_fails_or_does_not_count(
    queue: Queue, failed: bool
) -> None:
    changes, told = switched_on(queue), list[int]()
    changes.note_forgotten(7)
    if not failed:
        changes.request_reread([REPOSITORY])  # nobody can read it
    for minute in purges(queue, 48):
        changes.note_purged(7, failed=failed)
        told.append(minute)
    between = [later - first for first, later in pairwise(told)]
    assert between == [22, 44, 88, 176, 352, 360, 360, 360, 360, 360, 360]
    changes.note_forgotten(7)
    assert list(purges(queue, 1))[:1] == [11], "what is forgotten now need not wait as long"


def test_what_a_run_notes_while_files_are_written_is_not_taken_for_written(queue: Queue) -> None:
    """In PostgreSQL both are in their transactions at once."""
    changes, work = indexed(queue), begun(queue)
    changes.note_forgotten(7)
    with queue.inbox.database.transaction() as ending:
        sql = "update heartbeats set note = :note where name = :name"
        ending.change(sql, note=to_json({"left": 1}), name=f"{NEXT_PURGE}7")
    purging = threading.Thread(target=changes.note_purged, args=(7,))
    with queue.inbox.database.transaction() as ending:
        note_run(ending, work, RepositoryRow(REPOSITORY, is_unread=False), RunReport(people="other"), 0, queue.clock())
        purging.start()
        purging.join(0.5)
    purging.join(30)
    changes.mark_done(changes.take(7))
    for _ in range(2):
        queue.clock.ahead += 2 * PURGE_AFTER
        assert changes.is_purge_due(7)
        changes.note_purged(7)
    assert not list(purges(queue, 1))


def test_what_belongs_into_the_index_is_found_when_it_is_switched_on_and_when_the_scope_changes(queue: Queue) -> None:
    ran(queue, [1])
    ran(queue, [1], OTHER)
    queue.inbox.installations().store_repository(OTHER, "octo-org/other", private=True)
    queue.inbox.installations().store_repository(RepositoryKey(8, 80), "octocat/unread", private=True)
    changes = changes_of(queue)
    without = RepositoryScope(exclude=("*/other",))
    assert changes.align(PLACE, without) == 2  # the other one may be in an index of earlier
    assert sorted(rows(queue)) == [("7-70", ""), ("7-71", "")]
    assert changes.align(PLACE, EVERYTHING) == 1
    assert changes.align(PLACE, EVERYTHING) == 0
    assert changes.align(PLACE, without) == 1
    assert sorted(rows(queue)) == [("7-70", ""), *3 * [("7-71", "")]]
    assert changes.align("/another", EVERYTHING) == 2
    assert rows(queue) == [("7-70", ""), ("7-71", "")]
    changes.switch_off()
    assert (rows(queue), changes.backlog()) == ([], None)


def test_a_row_without_a_key_in_the_queue_is_found(queue: Queue) -> None:
    changes = indexed(queue)
    ran(queue, [4])
    with queue.inbox.database.transaction() as losing:
        losing.change("delete from queue where key = :key", key=queue_key(7))
    changes.align(PLACE, EVERYTHING)
    assert is_called(queue)


def test_rows_of_one_repository_are_taken_together_and_one_that_failed_comes_alone_and_later(queue: Queue) -> None:
    changes = indexed(queue)
    ran(queue, [1])
    ran(queue, [2])
    first = changes.take(7)
    assert [each.threads for each in first] == [(1,), (2,)]
    assert changes.take(7) == []
    ran(queue, [3])
    assert [each.threads for each in changes.take(7)] == [(3,)]  # it does not wait for those that failed
    queue.clock.ahead += FIRST_PAUSE
    assert [[each.threads for each in changes.take(7)] for _ in range(3)] == [[(1,)], [(2,)], [(3,)]]
    queue.clock.ahead += FIRST_PAUSE
    assert changes.take(7) == []
    queue.clock.ahead += LONGEST_PAUSE
    again = changes.take(7)
    assert [(each.threads, each.attempts) for each in again] == [((1,), 3)]
    changes.mark_done(again)
    assert rows(queue) == [("7-70", "[2]"), ("7-70", "[3]")]


def test_a_poisonous_row_keeps_nobody_waiting(queue: Queue) -> None:
    changes = indexed(queue)
    ran(queue, [1])
    ran(queue, [2], OTHER)
    taken = changes.take(7)
    assert taken[0].repository == REPOSITORY
    assert [each.repository for each in changes.take(7)] == [OTHER]


def test_the_rows_of_another_installation_are_left_alone(queue: Queue) -> None:
    changes, strange = indexed(queue), RepositoryKey(8, 80)
    ran(queue, [1], strange)
    assert changes.take(7) == []
    assert [each.repository for each in changes.take(8)] == [strange]


def test_a_whole_memory_is_divided(queue: Queue) -> None:
    changes = indexed(queue)
    queue.inbox.installations().mark_gone(REPOSITORY, "deleted")
    taken = changes.take(7)
    changes.divide(taken, list(range(1, 2 * MOST_CHANGED + 2)))
    found = changes.take(7)
    assert [len(each.threads or ()) for each in found] == [MOST_CHANGED, MOST_CHANGED, 1]


def test_the_key_is_due_again_with_the_next_row_and_gone_without_one(queue: Queue) -> None:
    changes = indexed(queue)
    ran(queue, [1])
    lease = queue.inbox.queue.claim_key("here", queue_key(7))
    assert lease
    taken = changes.take(7)
    changes.finish(lease, 7)
    assert not is_due(queue)
    queue.clock.ahead += FIRST_PAUSE + 1
    assert is_due(queue)
    again = queue.inbox.queue.claim_key("here", queue_key(7))
    assert again
    changes.mark_done(taken)
    changes.finish(again, 7)
    assert not is_called(queue)


def test_a_change_that_comes_while_the_key_is_leased_is_found_at_its_end(queue: Queue) -> None:
    changes = indexed(queue)
    lease = queue.inbox.queue.claim_key("here", queue_key(7))
    assert lease
    assert changes.take(7) == []
    ran(queue, [1])
    changes.finish(lease, 7)
    assert is_due(queue)


def test_a_key_is_leased_by_name_once(queue: Queue) -> None:
    first = queue.inbox.queue.claim_key("one", queue_key(7))
    assert first
    assert queue.inbox.queue.claim_key("two", queue_key(7)) is None
    queue.clock.ahead += 40_000
    assert queue.inbox.queue.claim_key("two", queue_key(7))
    assert queue.inbox.queue.renew("one", [first.id]) == {first.id}


def test_a_damaged_index_is_made_again_once_in_a_while(queue: Queue) -> None:
    changes = indexed(queue)
    assert [changes.claim_repair(7) for _ in range(2)] == [True, False]
    queue.clock.ahead += 11 * 60_000
    assert changes.claim_repair(7)
    ran(queue, [1])
    changes.note_repaired(7)
    assert rows(queue) == [("7-70", "")]  # instead of what waited
    queue.clock.ahead += 60 * 60_000
    assert not changes.claim_repair(7)
    queue.clock.ahead += 6 * 60 * 60_000
    assert changes.claim_repair(7)


def test_two_workers_and_many_runs_lose_no_change(queue: Queue) -> None:
    """Both take rows and keys at the same time as runs end; each row is done once, and the key goes last."""
    changes, seen, over, guard = indexed(queue), list[int](), threading.Event(), threading.Lock()

    def work(name: str) -> None:
        while not over.is_set() or rows(queue):
            lease: Lease | None = queue.inbox.queue.claim_key(name, queue_key(7))
            if lease is None:
                continue
            while taken := changes.take(7):
                with guard:
                    seen.extend(number for each in taken for number in each.threads or ())
                changes.mark_done(taken)
            changes.finish(lease, 7)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for number in range(1, 21):
        ran(queue, [number])
    over.set()
    for thread in threads:
        thread.join(30)
    assert sorted(seen) == list(range(1, 21))
    assert not is_called(queue)


def test_keys_of_the_queue_are_told_apart() -> None:
    others = ("17-42", "resync", "organisation-0", "organisation-1-2", "organisation-")
    assert installation_of(queue_key(17)) == 17
    assert [installation_of(key) for key in others] == [0] * len(others)
