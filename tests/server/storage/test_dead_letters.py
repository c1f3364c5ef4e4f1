"""Dead deliveries in both databases: filters, groups by reason, and the audit entry of an action."""

from __future__ import annotations

import contextlib
import logging

import pytest

from bot.domain.organisation import Visibility
from bot.errors import WorldError
from bot.server.model import DAY, RepositoryKey, Result, RunReport
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.deliveries import DeliveryFilter, select_deliveries, select_numbers
from bot.server.storage.operations import (
    AuditRecord,
    Operation,
    audit_entries,
    dead_groups,
    numbers_in_words,
    replay_or_drop,
)
from tests.server.queues import REPOSITORY, LossyInbox, Queue, arrival, begin_work, drop

OTHER = RepositoryKey(7, 71)
AWAY, HOSTILE = "GitHub did not answer (502): tried 8 times", "100 % of \\ _ or '; drop table deliveries; --"


def add_dead(queue: Queue, reason: str, *received_times: int, repository: RepositoryKey = REPOSITORY) -> list[int]:
    """Add a dead delivery for each time; returns their numbers."""
    names = [f"{repository.text}-{reason[:9]}-{at}" for at in received_times]
    queue.inbox.put([arrival(name, repository, received_at=at) for name, at in zip(names, received_times, strict=True)])
    work = begin_work(queue.inbox, repository)
    queue.inbox.end(work, [Result(each.seq, "dead", reason) for each in work.deliveries], RunReport())
    return [each.seq for each in work.deliveries]


def states(queue: Queue) -> list[str]:
    return [row.state for row in reversed(queue.inbox.deliveries(limit=999))]


@pytest.mark.parametrize(
    ("delivery_filter", "numbers"),
    [
        (DeliveryFilter(), [1, 2, 3, 4]),
        (DeliveryFilter("waiting"), [4]),
        (DeliveryFilter("dead", OTHER), [3]),
        (DeliveryFilter(reason=AWAY), [1, 2]),
        (DeliveryFilter(reason=AWAY[:-1]), []),
        (DeliveryFilter(reason=""), [4]),
        (DeliveryFilter(reason=HOSTILE), [3]),
        (DeliveryFilter(reason="\0\udc80"), []),
        (DeliveryFilter(says="ANSWER (502)"), [1, 2]),
        (DeliveryFilter(says="github DID"), [1, 2]),
        (DeliveryFilter(says="100 % of \\ _"), [3]),
        (DeliveryFilter(says="100%"), []),
        (DeliveryFilter(says="1__ %"), []),
        (DeliveryFilter(says="!"), []),
        (DeliveryFilter(name="Octo-Org/hello-world"), [1, 2, 3, 4]),
        (DeliveryFilter(name="octo-org/RENAMED"), [3]),
        (DeliveryFilter(name="octo-org"), []),
        (DeliveryFilter(since=20), [2, 3, 4]),
        (DeliveryFilter(until=20), [1]),
        (DeliveryFilter(since=20, until=40), [2, 3]),
        (DeliveryFilter(before=3), [1, 2]),
        (DeliveryFilter(seq=2), [2]),
        (DeliveryFilter("dead", ended=1), []),
    ],
    ids=str,
)
def test_a_filter_selects_the_matching_deliveries(
    queue: Queue, delivery_filter: DeliveryFilter, numbers: list[int]
) -> None:
    add_dead(queue, AWAY, 10, 20)
    add_dead(queue, HOSTILE, 30, repository=OTHER)
    queue.inbox.put([arrival("late", received_at=40)])
    OrganisationRegister(queue.inbox).store_repository(OTHER, "octo-org/renamed", Visibility.PRIVATE)
    with queue.inbox.database.transaction() as transaction:
        assert select_numbers(transaction, delivery_filter) == numbers
        assert [row.seq for row in select_deliveries(transaction, delivery_filter, 3)] == numbers[::-1][:3]


def test_dead_deliveries_are_grouped_by_reason_with_the_largest_group_first(queue: Queue) -> None:
    queue.inbox.put([arrival("waits", OTHER)])
    assert dead_groups(queue.inbox.database, 9, 9) == []
    drop(queue.inbox, [1], "for the test")
    add_dead(queue, HOSTILE, 5)
    away = add_dead(queue, AWAY, 10, 30) + add_dead(queue, AWAY, 20, repository=OTHER)
    OrganisationRegister(queue.inbox).store_repository(OTHER, "octo-org/renamed", Visibility.PRIVATE)
    first, second = dead_groups(queue.inbox.database, 9, 2)
    assert (first.reason, first.count, first.first, first.last, first.repositories) == (AWAY, 3, 10, 30, 2)
    assert first.names == ("octo-org/hello-world", "octo-org/renamed"), "the one with more of them first"
    assert [each.seq for each in first.deliveries] == away[::-1][:2]
    assert (second.reason, second.count, second.names) == (HOSTILE, 1, ("octo-org/hello-world",))
    assert dead_groups(queue.inbox.database, 1, 2) == [first]
    assert dead_groups(queue.inbox.database, 9, 2, HOSTILE) == [second]
    assert dead_groups(queue.inbox.database, 9, 2, "unknown") == []


def test_a_group_names_at_most_five_repositories(queue: Queue) -> None:
    for number in range(71, 78):
        add_dead(queue, AWAY, 10, repository=RepositoryKey(7, number))
    (group,) = dead_groups(queue.inbox.database, 9, 1)
    assert (group.repositories, len(group.names)) == (7, 5)


def test_an_action_in_several_batches_is_one_audit_entry(queue: Queue) -> None:
    numbers = add_dead(queue, AWAY, *range(1, 8))
    drop(queue.inbox, numbers[:1], "before")
    operation = Operation("replay", "octocat", [*numbers, numbers[0], 99], "it is back")
    record = replay_or_drop(queue.inbox, operation, at_once=3)
    assert (record.asked, record.done) == (8, 6), "each number counts once"
    assert states(queue) == ["dropped", *["waiting"] * 6]
    entry, _ = audit_entries(queue.inbox.database)
    assert (entry.seq, entry.who, entry.action, entry.asked, entry.done) == (record.seq, "octocat", "replay", 8, 6)
    assert (entry.chosen, entry.why) == ("1 2 3 4 5 6 7 99", "it is back")


def test_an_action_that_fails_leaves_an_entry_for_the_batches_that_were_done(queue: Queue) -> None:
    repositories = [RepositoryKey(7, number) for number in range(71, 75)]
    for repository in repositories:
        add_dead(queue, AWAY, 10, repository=repository)
    failing = LossyInbox(queue.inbox.database, "one", queue.clock)
    failing.adds_left = 1
    with pytest.raises(ConnectionError):
        replay_or_drop(failing, Operation("replay", "octocat", DeliveryFilter("dead")), at_once=2)
    assert states(queue) == ["waiting", "waiting", "dead", "dead"]
    (entry,) = audit_entries(queue.inbox.database)
    assert (entry.asked, entry.done, entry.chosen) == (2, 2, "all dead")


def test_nothing_is_recorded_when_nothing_was_selected(queue: Queue) -> None:
    record = replay_or_drop(queue.inbox, Operation("drop", "octocat", DeliveryFilter("dead")))
    assert (record.seq, record.asked, record.done) == (0, 0, 0)
    assert audit_entries(queue.inbox.database) == []


def test_the_texts_of_an_audit_entry_are_short_and_clean(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    numbers = add_dead(queue, AWAY, 1)
    hostile = "line\nnext\0\udc80\u202e" + "x" * 9_000
    with caplog.at_level(logging.INFO, "bot.server.storage.operations"):
        replay_or_drop(queue.inbox, Operation("drop", hostile, numbers, hostile))
    (entry,) = audit_entries(queue.inbox.database)
    for text in (entry.who, entry.why):
        assert text.startswith("line next\ufffdxxx")
        assert len(text) == 300
    (line,) = caplog.records
    assert (line.getMessage(), vars(line)["who"]) == ("drop: 1 of 1 deliveries", entry.who)
    (row,) = queue.inbox.deliveries()
    assert len(row.reason) == 200


def test_old_audit_entries_are_purged_and_pages_are_newest_first(queue: Queue) -> None:
    numbers = add_dead(queue, AWAY, 1, 2, 3)
    for number in numbers:
        replay_or_drop(queue.inbox, Operation("drop", "octocat", [number]))
        queue.clock.ahead += DAY
    entries = audit_entries(queue.inbox.database)
    assert [each.chosen for each in entries] == ["3", "2", "1"]
    assert audit_entries(queue.inbox.database, limit=2) == entries[:2]
    assert audit_entries(queue.inbox.database, before=entries[1].seq) == entries[2:]
    assert audit_entries(queue.inbox.database, since=entries[1].at) == entries[:2]
    assert audit_entries(queue.inbox.database, until=entries[1].at) == entries[2:]
    queue.inbox.purge(entries[1].at)
    assert audit_entries(queue.inbox.database) == entries[:2]


def test_long_lists_of_numbers_are_shortened() -> None:
    assert numbers_in_words([4, 5]) == "4 5"
    assert numbers_in_words(range(1, 2_001)) == f"{' '.join(map(str, range(1, 21)))} and 1,980 more"


SECOND = "1970-01-01T00:00:0{}+00:00"


@pytest.mark.parametrize(
    ("delivery_filter", "words"),
    [
        (DeliveryFilter(), "all"),
        (DeliveryFilter("dead", seq=481), "all dead, number 481"),
        (DeliveryFilter("dead", reason=""), "all dead, with the reason none"),
        (DeliveryFilter("dead", OTHER, reason=AWAY), f"all dead, of 7-71, with the reason {AWAY}"),
        (DeliveryFilter(says="x", name="a/b"), "all of a/b, with a reason that contains x"),
        (
            DeliveryFilter(since=1_000, until=2_000),
            f"all received since {SECOND.format(1)}, received before {SECOND.format(2)}",
        ),
        (DeliveryFilter(ended=3_000), f"all ended by {SECOND.format(3)}"),
    ],
)
def test_a_filter_is_described_in_words(delivery_filter: DeliveryFilter, words: str) -> None:
    assert str(delivery_filter) == words


def test_an_audit_record_is_rolled_back_with_its_transaction(queue: Queue) -> None:
    record = AuditRecord("drop", "octocat", "1", "")
    with contextlib.suppress(WorldError), queue.inbox.database.transaction() as transaction:
        record.add(transaction, 1, 1, 5)
        raise WorldError("lost")
    assert audit_entries(queue.inbox.database) == []
