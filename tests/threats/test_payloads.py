"""Bombs of numbers, depth and size: in the payload of an event, in GitHub's answers, in records and manifests."""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, Unreachable
from bot.github.events import parse_event
from bot.memory import manifest, records
from bot.memory.manifest import ForeignFormat
from tests.acceptance.stage import Stage

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
ISSUE = {
    "number": 7, "title": "x", "body": "y", "state": "open", "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z", "user": {"login": "hubot", "type": "User"}, "labels": [{"name": "a"}],
    "reactions": {"+1": 2}, "closed_at": None, "closed_by": None, "locked": False, "comments": 0,
}  # fmt: skip
RECORD = {
    "id": 7, "title": "x", "body": "y", "author": "hubot", "created_at": "2026-01-01T00:00:00Z", "state": "closed",
    "comments": [{"id": 5, "author": "a", "created_at": "2026-01-01T00:00:00Z", "body": "z", "reactions": {"+1": 1}}],
    "events": [{"event": "closed", "at": "2026-01-01T00:00:00Z", "actor": "a", "source": 3}], "labels": ["a"],
}  # fmt: skip
MANIFEST = {
    "format": 1, "analyser": "1", "cursor": "2026-01-01T00:00:00Z", "threads": 1, "tombstones": 0, "pending": [7],
    "day": "2026-01-05", "promised": 1, "index": {"a": "b"}, "model": {}, "learned_from": 0, "pages": {"a": "b"},
    "recent": [{"id": 7, "at": "2026-01-01T00:00:00Z"}],
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
    """Checks that ``action`` returns or raises an expected one-line error, within two seconds."""
    started = time.monotonic()
    try:
        action()
    except expected as error:
        line = str(error)
        assert "\n" not in line
        assert len(line) < 400
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("name", ["issues", "issue_comment", "workflow_dispatch"])
def test_a_payload_of_bombs_is_parsed_or_ends_with_a_one_line_error(name: str) -> None:
    shape = {"action": "opened", "issue": ISSUE, "comment": {"id": 5, "user": {"login": "a"}}, "inputs": {"issue": "7"}}
    for payload in (*bombs(shape), *DEEP, *BROKEN):
        check_ends_cleanly(lambda payload=payload: parse_event(name, payload), UserError)  # type: ignore[misc]


def test_a_payload_of_25_megabytes_is_read_and_one_byte_more_is_refused() -> None:
    payload = json.dumps({"action": "opened", "issue": ISSUE | {"body": "x"}}).encode()
    full = payload.replace(b'"body": "x"', b'"body": "' + b"[" * (25 * 1024 * 1024 - len(payload) + 1) + b'"')
    assert len(full) == 25 * 1024 * 1024
    assert parse_event("issues", full).number == 7
    with pytest.raises(UserError, match="larger than 25 MB"):
        parse_event("issues", full + b" ")


def test_a_record_of_bombs_is_decoded_or_reported_as_corrupt() -> None:
    for data in (*bombs(RECORD), *DEEP, *BROKEN):
        check_ends_cleanly(lambda data=data: records.decode_record(data), records.CorruptRecord)  # type: ignore[misc]


def test_a_record_decoded_from_a_bomb_survives_a_round_trip() -> None:
    for data in bombs(RECORD):
        try:
            record = records.decode_record(data)
        except records.CorruptRecord:
            continue
        assert records.decode_record(records.encode_record(record)) == record


def test_a_manifest_of_bombs_is_decoded_or_reported_as_corrupt() -> None:
    for data in (*bombs(MANIFEST), *DEEP, *BROKEN):
        check_ends_cleanly(lambda data=data: manifest.decode_manifest(data), ValueError, ForeignFormat)  # type: ignore[misc]


# -- GitHub's answers ----------------------------------------------------------------------------------------------


class Bomber(ThreadingHTTPServer):
    """Answers everything with the same bytes."""

    daemon_threads = True
    answer, encoding = b"", ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bomber

    def reply(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.server.answer)))
        if self.server.encoding:
            self.send_header("Content-Encoding", self.server.encoding)
        self.end_headers()
        try:
            self.wfile.write(self.server.answer)
        except ConnectionError:
            return

    do_GET = do_POST = do_PATCH = reply  # noqa: N815 - the names that http.server calls

    def log_message(self, *arguments: object) -> None:
        """Nothing is printed."""


@contextmanager
def bomber() -> Iterator[Bomber]:
    server = Bomber(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def calls(server: Bomber) -> Iterator[Callable[[], object]]:
    def client() -> GitHubClient:
        return GitHubClient(f"http://127.0.0.1:{server.server_port}", "t", "octo-org/hello-world", write_gap=0)

    yield lambda: client().issues_since(None, 1)
    yield lambda: client().issue(7)
    yield lambda: client().comments(7)
    yield lambda: client().comment(7)
    yield lambda: client().permission("hubot")
    yield lambda: client().create_comment(7, "x")
    yield lambda: client().update_comment(7, "x")


@pytest.mark.slow
def test_api_answers_of_bombs_are_parsed_or_end_with_a_one_line_error() -> None:
    sample = random.Random(11).sample([*bombs(ISSUE)], 60)
    with bomber() as server:
        for answer in (*sample, *(b"[" + each + b"]" for each in sample[:20]), *DEEP, *BROKEN):
            server.answer = answer
            for call in calls(server):
                check_ends_cleanly(call, ForgeError)


@pytest.mark.slow
def test_an_api_answer_that_unpacks_to_a_gigabyte_is_rejected() -> None:
    with bomber() as server:
        server.answer, server.encoding = gzip.compress(bytes(1 << 30), 1), "gzip"
        client = GitHubClient(f"http://127.0.0.1:{server.server_port}", "t", "octo-org/hello-world", write_gap=0)
        started = time.monotonic()
        with pytest.raises(Unreachable):
            client.create_comment(7, "x")
        assert time.monotonic() - started < 30


@pytest.mark.slow
@pytest.mark.parametrize("at", range(12))
def test_a_run_against_an_api_of_bombs_ends_without_a_traceback(
    tmp_path: Path, empty_stage: Stage, at: int, capfd: pytest.CaptureFixture[str]
) -> None:
    chosen = random.Random(at).choice([*bombs(ISSUE), *DEEP, *BROKEN])
    empty_stage.github.open_issue("hubot", "Logged out", "x")
    with bomber() as server:
        server.answer = chosen if at % 2 else b"[" + chosen + b"]"
        empty_stage.github.write_event(tmp_path / "event.json", "issues", "opened", 1)
        from bot.action.main import run

        environment = empty_stage.environment("issues") | {"GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}"}
        code = run(environment, NOW, write_gap=0)
    out, err = capfd.readouterr()
    assert code in (0, 1)
    assert "Traceback" not in out + err
    assert "this is a bug" not in out + err
