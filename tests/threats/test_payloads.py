"""Bombs of numbers, depth and size: in the payload of an event, in GitHub's answers, in records and manifests."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from bot.action.main import run
from bot.errors import UserError
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, Unreachable
from bot.github.events import parse_event
from bot.memory import manifest, records
from bot.memory.manifest import ForeignFormat
from tests.acceptance.stage import Stage
from tests.fakes.httpd import Listener
from tests.fakes.service import SentReply
from tests.fuzz import seeds

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
NUMBERS = ("1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9" * 5_000, "-0", "1e-400", "true", "null", "[]", "{}",
           '"7"', "0.1", "18446744073709551616", "1" + "0" * 4_000, '"\\ud800"', '"\\u0000"')  # fmt: skip
DEEP = (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b'[{"a":' * 50_000 + b"1" + b"}]" * 50_000)
BROKEN = (
    b"",
    b"\x00",
    b"\xff\xfe{}",
    b"\xef\xbb\xbf{}",
    b'{"a"',
    b"[1",
    b'"',
    b"{} {}",
    b"\xed\xa0\x80",
    b"null",
    b"7",
)
RECORD = {
    "id": 7, "title": "x", "body": "y", "author": "hubot", "created_at": "2026-01-01T00:00:00Z", "state": "closed",
    "comments": [{"id": 5, "author": "a", "created_at": "2026-01-01T00:00:00Z", "body": "z", "reactions": {"+1": 1}}],
    "events": [{"event": "closed", "at": "2026-01-01T00:00:00Z", "actor": "a", "source": 3}], "labels": ["a"],
}  # fmt: skip


def bombs(shape: object) -> Iterator[bytes]:
    """JSON of this shape with one value replaced by a hostile number, or one character by one that breaks it."""
    text = json.dumps(shape)
    values = sorted({json.dumps(value) for value in leaves(shape)}, key=len, reverse=True)
    for value in values:
        for number in NUMBERS:
            yield text.replace(f": {value}", f": {number}").encode()
    rng = random.Random(7)
    for _ in range(200):
        at = rng.randrange(len(text))
        yield (text[:at] + rng.choice(('"', "{", "[", "1e400", "\\ud800", ",", "NaN")) + text[at + 1 :]).encode()


def leaves(value: object) -> Iterator[object]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield value
    for each in inner:
        yield from leaves(each)


def check_ends_cleanly(action: Callable[[], object], *expected: type[Exception]) -> None:
    """Checks that ``action`` returns or raises an expected one-line error, within two seconds of processor time."""
    started = time.process_time()
    try:
        action()
    except expected as error:
        line = str(error)
        assert "\n" not in line
        assert len(line) < 400
    assert time.process_time() - started < 2


@pytest.mark.parametrize("name", ["issues", "issue_comment", "workflow_dispatch"])
def test_a_payload_of_bombs_is_parsed_or_ends_with_a_one_line_error(name: str) -> None:
    shape = {
        "action": "opened",
        "issue": seeds.issue(),
        "comment": {"id": 5, "user": {"login": "a"}},
        "inputs": {"issue": "7"},
    }
    for payload in (*bombs(shape), *DEEP, *BROKEN):
        check_ends_cleanly(partial(parse_event, name, payload), UserError)


def test_a_payload_of_25_megabytes_is_read_and_one_byte_more_is_refused() -> None:
    payload = json.dumps({"action": "opened", "issue": seeds.issue() | {"body": "x"}}).encode()
    full = payload.replace(b'"body": "x"', b'"body": "' + b"[" * (25 * 1024 * 1024 - len(payload) + 1) + b'"')
    assert len(full) == 25 * 1024 * 1024
    assert parse_event("issues", full).number == 7
    with pytest.raises(UserError, match="larger than 25 MB"):
        parse_event("issues", full + b" ")


def test_a_record_of_bombs_is_decoded_or_reported_as_corrupt() -> None:
    def decode(data: bytes) -> None:
        record = records.decode_record(data)
        assert records.decode_record(records.encode_record(record)) == record

    for data in (*bombs(RECORD), *DEEP, *BROKEN):
        check_ends_cleanly(partial(decode, data), records.CorruptRecord)


def test_a_manifest_of_bombs_is_decoded_or_reported_as_corrupt() -> None:
    for data in (*bombs(seeds.manifest()), *DEEP, *BROKEN):
        check_ends_cleanly(partial(manifest.decode_manifest, data), ValueError, ForeignFormat)


# -- GitHub's answers ----------------------------------------------------------------------------------------------


@contextmanager
def answering(answer: bytes, encoding: str = "identity") -> Iterator[str]:
    """The address of a server that answers each request with these bytes."""
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    server = Listener(lambda *_: SentReply(200, headers, answer))
    try:
        yield server.url
    finally:
        server.stop()


def client_of(url: str) -> GitHubClient:
    return GitHubClient(url, "t", "octo-org/hello-world", write_gap=0)


CALLS: tuple[Callable[[GitHubClient], object], ...] = (
    lambda client: client.issues_since(None, 1),
    lambda client: client.issue(7),
    lambda client: client.comments(7),
    lambda client: client.comment(7),
    lambda client: client.permission("hubot"),
    lambda client: client.create_comment(7, "x"),
    lambda client: client.update_comment(7, "x"),
)


@pytest.mark.night
def test_api_answers_of_bombs_are_parsed_or_end_with_a_one_line_error() -> None:
    sample = random.Random(11).sample([*bombs(seeds.issue())], 60)
    for answer in (*sample, *(b"[" + each + b"]" for each in sample[:20]), *DEEP, *BROKEN):
        with answering(answer) as url:
            for call in CALLS:
                check_ends_cleanly(partial(call, client_of(url)), ForgeError)


def test_an_api_answer_that_unpacks_to_a_gigabyte_is_rejected() -> None:
    with answering(gzip.compress(bytes(1 << 30), 1), encoding="gzip") as url:
        started = time.process_time()
        with pytest.raises(Unreachable):
            client_of(url).create_comment(7, "x")
        assert time.process_time() - started < 30


@pytest.mark.parametrize("at", range(12))
def test_a_run_against_an_api_of_bombs_ends_without_a_traceback(
    tmp_path: Path, empty_stage: Stage, at: int, capfd: pytest.CaptureFixture[str]
) -> None:
    chosen = random.Random(at).choice([*bombs(seeds.issue()), *DEEP, *BROKEN])
    answer = chosen if at % 2 else b"[" + chosen + b"]"
    empty_stage.github.open_issue("hubot", "Logged out", "x")
    empty_stage.github.write_event(tmp_path / "event.json", "issues", "opened", 1)
    with answering(answer) as url:
        code = run(empty_stage.environment("issues") | {"GITHUB_API_URL": url}, NOW, write_gap=0)
    out, err = capfd.readouterr()
    assert code in (0, 1)
    assert "Traceback" not in out + err
    assert "this is a bug" not in out + err
