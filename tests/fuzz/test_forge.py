"""What GitHub sends, and threads in archives and records: read, or refused as the contract says."""

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
from tests.fuzz import inputs, seeds
from tests.fuzz.properties import assert_storable, fuzz

MALFORMED = (KeyError, TypeError, ValueError)
"""What `thread_from_archive` raises for malformed fields."""

API = (*MALFORMED, AttributeError, OverflowError)
"""What a malformed answer of GitHub itself may raise: it is reported as a bug, in one line."""

OWN = OwnCommentRule("github-actions[bot]", marker())


@fuzz(inputs.json_lines(seeds.payloads), UserError)
def test_an_event_has_texts_that_can_be_stored_and_numbers_in_range(data: bytes) -> None:
    for name in KNOWN_EVENTS:
        event = parse_event(name, data)
        assert_storable((event.action, event.comment_author, event.moved_to, event.inputs))
        for number in (event.number, event.comment_id):
            assert number is None or (type(number) is int and 0 < number < 2**53)
        hash(event)


def assert_round_trip(thread: Thread) -> None:
    """The thread survives the round trip through its record, byte for byte."""
    assert_storable(thread)
    data = encode_record(thread)
    again = decode_record(data)
    assert again == thread
    assert encode_record(again) == data


@fuzz(inputs.structures(seeds.rest_threads), *API)
def test_a_thread_of_the_rest_api_survives_the_round_trip_through_its_record(fields: Any) -> None:
    comments = split_own(fields["comments"], OWN)[0]
    assert_round_trip(thread_of(fields["issue"], comments, fields["events"]))


@fuzz(inputs.structures(seeds.graph_nodes), *API)
def test_a_thread_of_the_graphql_api_survives_the_round_trip_through_its_record(node: Any) -> None:
    issue, comments, events = issue_json(node, "o/r")
    assert_round_trip(thread_of(issue, split_own(comments, OWN)[0], events))


@fuzz(inputs.structures(seeds.threads), *MALFORMED)
def test_a_thread_of_an_archive_survives_the_round_trips_through_archive_and_record(fields: Any) -> None:
    thread = thread_from_archive(fields)
    assert_round_trip(thread)
    assert thread_from_archive(archive_fields(thread)) == thread


def records() -> list[bytes]:
    grave = {"id": 7, "tombstone": {"at": seeds.AT, "reason": "transferred", "moved_to": "octo-org/other#3"}}
    return [*(json.dumps(thread).encode() for thread in seeds.threads()), json.dumps(grave).encode()]


@fuzz(inputs.json_lines(records), CorruptRecord)
def test_a_record_is_written_as_it_was_read(data: bytes) -> None:
    record = decode_record(data)
    assert_storable(record)
    assert decode_record(encode_record(record)) == record
