"""What GitHub sends, and threads in archives and records."""

from __future__ import annotations

import json
from typing import Any

from bot.comment.marker import marker
from bot.domain.thread import Thread
from bot.domain.thread_json import archive_fields, thread_from_archive
from bot.errors import UserError
from bot.github.events import KNOWN_EVENTS, parse_event
from bot.github.graphql_queries import issue_json
from bot.github.threads import OwnCommentRule, split_own, thread_of
from bot.memory.records import CorruptRecord, decode_record, encode_record
from tests.fuzz import seeds
from tests.fuzz.target import Target, require, require_storable

MALFORMED = (KeyError, TypeError, ValueError)
"""What `thread_from_archive` raises for malformed fields."""

API = (*MALFORMED, AttributeError, OverflowError)
"""What a malformed answer of GitHub itself may raise: it is reported as a bug, in one line."""

OWN = OwnCommentRule("github-actions[bot]", marker())


def _payload(data: bytes) -> None:
    for name in KNOWN_EVENTS:
        event = parse_event(name, data)
        require_storable((event.action, event.comment_author, event.moved_to, event.inputs))
        for number in (event.number, event.comment_id):
            require(number is None or (type(number) is int and 0 < number < 2**53), f"the number {number!r:.40}")
        hash(event)


def _check_round_trip(thread: Thread) -> None:
    """The thread survives the round trip through its record, byte for byte."""
    require_storable(thread)
    data = encode_record(thread)
    again = decode_record(data)
    require(again == thread, "a record does not give the thread back")
    require(encode_record(again) == data, "a record is written otherwise the second time")


def _rest(fields: Any) -> None:
    comments = split_own(fields["comments"], OWN)[0]
    _check_round_trip(thread_of(fields["issue"], comments, fields["events"]))


def _graph(node: Any) -> None:
    issue, comments, events = issue_json(node, "o/r")
    _check_round_trip(thread_of(issue, split_own(comments, OWN)[0], events))


def _archive(fields: Any) -> None:
    thread = thread_from_archive(fields)
    _check_round_trip(thread)
    require(thread_from_archive(archive_fields(thread)) == thread, "an archive does not give the thread back")


def _record(data: bytes) -> None:
    record = decode_record(data)
    require_storable(record)
    require(decode_record(encode_record(record)) == record, "a record is not what it is read as")


def _records() -> list[bytes]:
    grave = {"id": 7, "tombstone": {"at": seeds.AT, "reason": "transferred", "moved_to": "octo-org/other#3"}}
    return [*(json.dumps(thread).encode() for thread in seeds.threads()), json.dumps(grave).encode()]


TARGETS = (
    Target("payload", "json bytes", seeds.payloads, _payload, (UserError,)),
    Target("rest", "json", seeds.rest_threads, _rest, API),
    Target("graphql", "json", seeds.graph_nodes, _graph, API),
    Target("archive", "json", seeds.threads, _archive, MALFORMED),
    Target("record", "json bytes", _records, _record, (CorruptRecord,)),
)
