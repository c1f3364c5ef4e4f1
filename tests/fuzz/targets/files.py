"""Other files of strangers: settings, manifests, shards, models, commit messages, paths, rows, transcripts."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache

import numpy as np

from bot.domain.thread_json import MAX_TITLE
from bot.errors import StoreError, UserError
from bot.files import Globs, check_path, is_safe_path
from bot.git.remote import checked_branch
from bot.memory.branch_store import Growth
from bot.memory.manifest import ForeignFormat, decode_manifest, encode_manifest
from bot.memory.model_store import read_ranking, read_words
from bot.memory.shards import SCHEMAS, StoredShard, edit_shards, read_lines
from bot.organisation.rows import MAX_TEXT_CHARS, row_of, thread_of
from bot.ranking.weights import ranking_fields, shipped
from bot.ranking.word_vectors import WordVectors, encode_words
from bot.settings.schema import SettingsError
from bot.settings.yaml_file import load_plain, load_settings, load_texts
from bot.sources.session import Unreadable, parse_line
from tests.fuzz import seeds
from tests.fuzz.target import Target, require, require_storable

CONFIG = (seeds.ROOT / "config.example.yml").read_text(encoding="utf-8")


def _config(text: str) -> None:
    load_settings(text, "precedent.yml")


def _config_bytes(data: bytes) -> None:
    for load in (load_settings, load_texts, load_plain):
        try:
            load(data, "precedent.yml")
        except SettingsError as error:
            require("\n" not in str(error) and len(str(error)) < 2_000, "an error of more than a line")


def _manifest(data: bytes) -> None:
    manifest = decode_manifest(data)
    again = decode_manifest(encode_manifest(manifest))
    require(again == manifest, "a manifest is not what it is written as")


def _manifests() -> list[bytes]:
    request = {"id": 7, "comment_id": 12, "name": "search", "by": "octocat", "at": seeds.AT, "state": "pending"}
    fields = {
        "format": 1, "analyser": "x", "cursor": seeds.AT, "threads": 3, "tombstones": 1, "pending": [7, "ABC-1"],
        "written": ["2026-11-03T09:00:00Z", "2026-11-03T10:00:00Z"],
        "index": {"_MAIN_1.toc": "0" * 64}, "model": {"model/words.bin": "1" * 64},
        "learned_from": 3, "embedder": "", "pages": {"docs": "abc"}, "recent": [request],
    }  # fmt: skip
    return [json.dumps(fields).encode(), b'{"format": 2}']


def _shards(data: bytes) -> None:
    lines, _ = read_lines(data)
    for schema in SCHEMAS:
        path = schema.path(7)
        if isinstance(schema, StoredShard):
            values, _ = schema.read(path, data)
            require_storable(values)
            for key, value in values.items():
                line = schema.line(value)
                read_back = schema.read(path, f"{line}\n".encode())[0] if line else {}
                require(
                    line is None or read_back.get(key) == value, f"{schema.folder}: a line does not give its value back"
                )
        edit_shards({path: data}, [(7, '{"id":7}'), (8, None)], schema.path)
    require(all(isinstance(line, dict) for line in lines.values()), "a line that is no object")


def _lines() -> list[bytes]:
    answer = {"id": 7, "state": "pending", "at": seeds.AT, "text_hash": "ab", "matches": [[3, 0.8]], "ups": 1}
    request = {"comment_id": 12, "name": "search", "by": "octocat", "at": seeds.AT, "state": "done", "about": [3]}
    fix = {"id": 7, "ref": "#9", "looked_at": seeds.AT, "is_pull": True, "files": ["a.py"], "release": "v1"}
    records = [answer, {"id": 7, "wishes": [request]}, fix, {"id": "ABC-1", "title": "x"}]
    return ["\n".join(json.dumps(line | extra) for extra in ({}, {"id": 8})).encode() for line in records]


def _vectors(data: bytes) -> None:
    vectors = read_words(data)
    vectors.text(["crash", "login"], ["cookie", "a"])
    vectors.title(["crash"])


@cache
def _vector_file() -> bytes:
    words = {word: number for number, word in enumerate(("crash", "login", "cookie", "straße"))}
    matrix = np.array([[0.5, -0.5, 0.25], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    return encode_words(WordVectors(words, np.ones(4, dtype=np.float32), matrix, 9))


def _ranking(data: bytes) -> None:
    weights = read_ranking(data)
    for arms in ((), ("trained",), ("semantic",)):
        chance = weights.model(arms).probability({"share": -1.0, "near": 0.5})
        require(0 <= chance <= 1, f"a probability of {chance}")


def _growth(text: str) -> None:
    growth = Growth.of(text)
    require(growth.commits >= 0 and growth.bytes >= 0, "less than nothing")
    require(Growth.of(growth.with_trailers("x")) == growth, "the trailers do not give the counts back")


def _paths(text: str) -> None:
    is_safe_path(text)
    for check in (check_path, checked_branch):
        try:
            require(check(text) == text, f"{check.__name__} changes a name")
            text.encode()
        except (StoreError, UserError):
            pass
    pattern, _, path = text.partition("\n")
    pattern, path = pattern[:200], path[:4_096]  # the limits of the settings and the file system
    globs = Globs([pattern])
    is_path = all(path.split("/"))  # git has no empty names
    require(
        not (is_path and globs.match(path)) or globs.may_match_below(path.rpartition("/")[0]) or "/" not in path,
        "a file matches whose folder does not lead to it",
    )


def _organisation(data: bytes) -> None:
    """A row of an organisation's index, written by anybody with access to it."""
    row = {"repository": 1, "revision": 2, "terms": "crash login", "document": data.decode("utf-8", "replace")}
    thread = thread_of(row)
    if thread is not None:
        require_storable(thread)
        require(
            len(thread.title) <= MAX_TITLE and len(thread.outcome.quote) <= MAX_TEXT_CHARS, "a text without a limit"
        )
        require(thread_of(row_of(thread)) == thread, "a row does not give its thread back")


def _rows() -> list[bytes]:
    ending = {
        "kind": "fixed",
        "quote": "Set SameSite.",
        "author": "octocat",
        "at": seeds.AT,
        "fix": "#57",
        "comment": 3,
    }
    fields = {
        "id": 7,
        "name": "octo-org/sdk",
        "kind": "issue",
        "title": "Lost",
        "created_at": seeds.AT,
        "files": ["a.py"],
    }
    return [json.dumps(fields | {"outcome": ending | more}).encode() for more in ({}, {"confidence": 1e400})]


def _transcript(data: bytes) -> None:
    """Lines of transcripts and logs, which may come from a checkout."""
    for line in data.split(b"\n"):
        with suppress(Unreadable):
            require_storable(parse_line(line, "/work/app"))


def _transcripts() -> list[bytes]:
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "Go"}, {"type": "toolCall", "arguments": {"path": "a"}}],
    }
    lines = (
        {"type": "session", "id": "5b1c", "timestamp": seeds.AT, "cwd": "/work/app"},
        {"type": "message", "message": message},
        {
            "timestamp": seeds.AT,
            "event": "SubagentStop",
            "data": {"response": "x", "transcript_path": "/work/app/a.jsonl"},
        },
        {"type": "user", "sessionId": "c", "message": {"role": "user", "content": "Go"}, "gitBranch": "fix/42-x"},
        {"type": "response_item", "payload": {"type": "message", **message}},
        {"sessionId": "w", "messages": [message]},
        {"type": "pr-link", "prNumber": 50, "prRepository": "octo-org/app"},
    )
    return [json.dumps(line).encode() for line in lines]


TARGETS = (
    Target(
        "config",
        "text",
        lambda: [CONFIG, *CONFIG.split("\n\n")],
        _config,
        (SettingsError,),
        tokens=(": ", "- ", "&a", "*a"),
    ),
    Target("config bytes", "bytes", lambda: [CONFIG.encode(), b"mode: off\n"], _config_bytes),
    Target("manifest", "json bytes", _manifests, _manifest, (ValueError, ForeignFormat)),
    Target("shards", "json bytes", _lines, _shards),
    Target("organisation", "json bytes", _rows, _organisation),
    Target("transcripts", "json bytes", _transcripts, _transcript),
    Target("vectors", "bytes", lambda: [_vector_file()], _vectors, (ValueError,)),
    Target("ranking", "json bytes", lambda: [json.dumps(ranking_fields(shipped())).encode()], _ranking, (ValueError,)),
    Target(
        "growth",
        "text",
        lambda: [Growth(3, 900).with_trailers("Remember")],
        _growth,
        tokens=("Precedent-Commits: 9", "\n"),
    ),
    Target(
        "paths",
        "text",
        lambda: ["records/0042/4242.json", "docs/**/*.md\ndocs/a/b.md", "../.git"],
        _paths,
        tokens=("**", "*/", "?", "[a", "{a,b}", "../"),
    ),
)
