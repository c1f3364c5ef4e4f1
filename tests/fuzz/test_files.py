"""Other files of strangers: settings, manifests, shards, models, commit messages, paths, rows, transcripts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress

from bot.domain.bounds import MAX_QUOTE, MAX_TITLE
from bot.errors import StoreError, UserError
from bot.files import Globs, check_path, is_safe_path
from bot.git.remote import checked_branch
from bot.memory.branch_store import Growth
from bot.memory.manifest import ForeignFormat, decode_manifest, encode_manifest
from bot.memory.model_store import read_ranking
from bot.memory.shards import SCHEMAS, StoredShard, edit_shards, read_lines
from bot.organisation.rows import row_of, thread_of
from bot.ranking.weights import ranking_fields, shipped
from bot.settings.schema import SettingsError
from bot.settings.yaml_file import load_plain, load_settings, load_texts
from bot.sources.sessions.formats import fold_chat, is_chat, origin_in
from bot.sources.sessions.head import Unreadable
from bot.sources.sessions.line import parse_line, parse_whole
from bot.sources.sessions.times import TranscriptClock
from tests.fuzz import inputs, seeds
from tests.fuzz.properties import assert_storable, fuzz
from tests.sources.agents import SESSIONS
from tests.sources.session_lines import FOLDER
from tests.sources.session_lines import line as to_line

YAML = (": ", "? ", "- a\n", "name: ", "&a ", "*a", "!!python/object:os.system ", "%TAG ! x:\n")
CONFIG = (seeds.ROOT / "config.example.yml").read_text(encoding="utf-8")


@fuzz(inputs.texts(lambda: [CONFIG, *CONFIG.split("\n\n")], YAML), SettingsError)
def test_settings_are_loaded_or_refused(text: str) -> None:
    load_settings(text, "precedent.yml")


def refusal_of(load: Callable[[bytes, str], object], data: bytes) -> str:
    try:
        load(data, "precedent.yml")
    except SettingsError as error:
        return str(error)
    return ""


@fuzz(inputs.binary(lambda: [CONFIG.encode(), b"mode: off\n"]))
def test_bytes_are_loaded_or_refused_in_one_line(data: bytes) -> None:
    for load in (load_settings, load_texts, load_plain):
        assert re.fullmatch(".{0,2000}", refusal_of(load, data)), "an error of more than a line"


@fuzz(inputs.json_lines(lambda: [json.dumps(seeds.manifest()).encode(), b'{"format": 3}']), ValueError, ForeignFormat)
def test_a_manifest_is_written_as_it_was_read(data: bytes) -> None:
    manifest = decode_manifest(data)
    assert decode_manifest(encode_manifest(manifest)) == manifest


def shards() -> list[bytes]:
    post = {
        "slot": "reply:12",
        "state": "pending",
        "at": seeds.AT,
        "content": "ab",
        "shows": [3],
        "quotes": ["0a1b2c3d"],
        "others": [[7, 31]],
        "pulls": [{"about": 3, "id": 205, "title": "x"}],
        "matches": [[3, 0.8]],
        "votes": [["hubot", True, False]],
    }
    notice = {"slot": "notice:0123456789abcdef", "state": "said", "at": seeds.AT, "release": "v1"}
    posts = {"id": 7, "posts": [post, notice], "shown_by": [[3, ""], [7, "reply:12"]]}
    request = {"comment_id": 12, "name": "search", "by": "octocat", "at": seeds.AT, "state": "done", "about": [3]}
    fix = {"id": 7, "ref": "#9", "looked_at": seeds.AT, "is_pull": True, "files": ["a.py"], "release": "v1"}
    records = [posts, {"id": 7, "requests": [request]}, fix, {"id": "ABC-1", "title": "x"}]
    return ["\n".join(json.dumps(line | extra) for extra in ({}, {"id": 8})).encode() for line in records]


@fuzz(inputs.json_lines(shards))
def test_a_line_of_any_shard_gives_its_value_back(data: bytes) -> None:
    lines, _ = read_lines(data)
    assert all(isinstance(line, dict) for line in lines.values())
    for schema in SCHEMAS:
        path = schema.path(7)
        if isinstance(schema, StoredShard):
            values, _ = schema.read(path, data)
            assert_storable(values)
            for key, value in values.items():
                line = schema.line(value)
                assert line is None or schema.read(path, f"{line}\n".encode())[0].get(key) == value
        edit_shards({path: data}, [(7, '{"id":7}'), (8, None)], schema.path)


@fuzz(inputs.json_lines(lambda: [json.dumps(ranking_fields(shipped())).encode()]), ValueError)
def test_any_weights_give_probabilities(data: bytes) -> None:
    weights = read_ranking(data)
    for model in (weights.by_words, weights.with_text_model):
        assert 0 <= model.probability({"share": -1.0, "near": 0.5}) <= 1


@fuzz(inputs.texts(lambda: [Growth(3, 900).with_trailers("Remember")], ("Precedent-Commits: 9", "\n")))
def test_the_trailers_of_a_commit_give_its_counts_back(text: str) -> None:
    growth = Growth.of(text)
    assert growth.commits >= 0
    assert growth.bytes >= 0
    assert Growth.of(growth.with_trailers("x")) == growth


PATHS = ["records/0042/4242.json", "docs/**/*.md\ndocs/a/b.md", "../.git"]


@fuzz(inputs.texts(lambda: PATHS, ("**", "*/", "?", "[a", "{a,b}", "../")))
def test_a_path_is_refused_or_kept_and_its_folder_leads_to_it(text: str) -> None:
    is_safe_path(text)
    for check in (check_path, checked_branch):
        with suppress(StoreError, UserError):
            assert check(text) == text
            text.encode()
    pattern, _, path = text.partition("\n")
    pattern, path = pattern[:200], path[:4_096]  # the limits of the settings and the file system
    globs = Globs([pattern])
    if all(path.split("/")) and "/" in path and globs.match(path):  # git has no empty names
        assert globs.may_match_below(path.rpartition("/")[0])


def rows() -> list[bytes]:
    ending = {
        "kind": "fixed",
        "quote": "Set SameSite.",
        "author": "octocat",
        "at": seeds.AT,
        "fix": "#57",
        "comment": 3,
    }
    known = {"id": 7, "name": "octo-org/sdk", "kind": "issue", "title": "Lost", "created_at": seeds.AT}
    endings = (ending, ending | {"confidence": 1e400})
    return [json.dumps(known | {"files": ["a.py"], "outcome": outcome}).encode() for outcome in endings]


@fuzz(inputs.json_lines(rows))
def test_a_row_of_an_organisations_index_has_limits_and_gives_its_thread_back(data: bytes) -> None:
    row = {"repository": 1, "revision": 2, "terms": "crash login", "document": data.decode("utf-8", "replace")}
    thread = thread_of(row)
    if thread is not None:
        assert_storable(thread)
        assert len(thread.title) <= MAX_TITLE
        assert len(thread.outcome.quote) <= MAX_QUOTE
        assert thread_of(row_of(thread)) == thread


def transcripts() -> list[bytes]:
    lines = [line for session in SESSIONS for line in (FOLDER / session.fixture).read_bytes().splitlines()]
    stopped = {"response": "x", "transcript_path": "/work/app/a.jsonl"}
    more = (
        {"timestamp": seeds.AT, "event": "SubagentStop", "data": stopped},
        {"type": "pr-link", "prNumber": 50, "prRepository": "octo-org/app"},
        json.loads((FOLDER / "opencode.json").read_bytes()),
        json.loads((FOLDER / "gemini_cli_early.json").read_bytes()),
    )
    return [*(line for line in lines if line.startswith(b"{") and line.endswith(b"}")), *map(to_line, more)]


@fuzz(inputs.json_lines(transcripts))
def test_a_line_of_a_transcript_is_unreadable_or_has_texts_that_can_be_stored(data: bytes) -> None:
    for line in data.split(b"\n"):  # a transcript may come from a checkout
        with suppress(Unreadable):
            assert_storable(parse_line(line, "/work/app"))


@fuzz(inputs.json_lines(transcripts))
def test_a_chat_of_any_lines_is_folded_and_read(data: bytes) -> None:
    fields, broken = fold_chat(data.split(b"\n"))
    assert broken <= data.count(b"\n") + 1
    with suppress(Unreadable):
        assert_storable(parse_whole(fields, "/work/app", TranscriptClock()))


@fuzz(inputs.json_lines(transcripts))
def test_the_start_of_any_transcript_has_a_folder_or_none(data: bytes) -> None:
    folder, repository = origin_in(data)
    assert len(folder) <= 4_096
    assert len(repository) <= 201
    assert is_chat(data) in (True, False)
