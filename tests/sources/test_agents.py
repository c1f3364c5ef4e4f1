"""Each agent's sessions are read alike: whole, or while they grow."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.sources.sessions.files import find_sessions
from bot.sources.sessions.formats import FORMATS, Format, origin_in
from bot.sources.sessions.reader import Cursor, is_same, read_portion, read_sessions
from bot.sources.sessions.session import Utterance
from tests.sources.agents import SESSIONS, TOP, AgentSession, put, text_of

Messages = list[tuple[str, Utterance]]


def read(path: Path) -> list[tuple[str, list[Utterance], int]]:
    (file,) = find_sessions([str(path)], str(path.parent)).sessions
    return [(each.id, list(each.utterances), each.broken) for each in read_sessions(file)]


@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_the_session_of_each_agent_is_read(tmp_path: Path, session: AgentSession) -> None:
    path = put(session, tmp_path, Path(TOP) if session.agent != "hooks" else tmp_path)
    sessions = read(path)
    utterances = sessions[0][1]
    assert (sessions[0][0], sessions[0][2]) == (session.session, 0)
    assert tuple(f"{each.type[0]} {each.text}" for each in utterances) == session.messages
    assert tuple(path for each in utterances for path in each.files) == session.files
    assert "giraffe" not in str(sessions)


def test_an_export_of_opencode_is_read_like_its_database(tmp_path: Path) -> None:
    (opencode,) = (each for each in SESSIONS if each.agent == "opencode")
    (tmp_path / "export.json").write_text(text_of(opencode), encoding="utf-8")
    assert read(tmp_path / "export.json") == read(put(opencode, tmp_path, Path(TOP)))


def test_a_rollout_without_a_header_is_named_by_its_file(tmp_path: Path) -> None:
    (early,) = (each for each in SESSIONS if each.fixture == "codex_early.jsonl")
    path = put(early, tmp_path, Path(TOP))
    path.write_text(path.read_text(encoding="utf-8").partition("\n")[2], encoding="utf-8")
    ((name, utterances, broken),) = read(path)
    assert (name, len(utterances), broken) == ("e-1", 2, 0)
    assert utterances[1].files == ("net/pool.py",), "the folder is in the first message"


def test_a_subagent_of_cursor_belongs_to_the_session_that_started_it(tmp_path: Path) -> None:
    (cursor,) = (each for each in SESSIONS if each.agent == "Cursor")
    path = tmp_path / "agent-transcripts/k-1/subagents/s-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(text_of(cursor), encoding="utf-8")
    ((name, utterances, _),) = read(path)
    assert (name, [each.type for each in utterances]) == ("k-1", ["assistant", "assistant"])


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.agent)
def test_the_example_of_each_format_is_read(tmp_path: Path, form: Format) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{form.example}\n", encoding="utf-8")
    ((_, utterances, broken),) = read(path)
    assert ([(each.type, bool(each.text)) for each in utterances], broken) == ([("user", True), ("assistant", True)], 0)
    folder, names_folder = origin_in(form.example.encode()).folder, f'"{form.folder[-1]}": "/work/app"' in form.example
    assert folder == ("/work/app" if names_folder else "")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.agent)
def test_a_line_of_an_example_has_the_format_of_its_agent_only(form: Format) -> None:
    for text in form.example.splitlines():
        accepting = [each.agent for each in FORMATS if each.is_line(json.loads(text))]
        assert accepting in ([], [form.agent])


def test_every_agent_is_in_the_table_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs/agents.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^\| ([^|]+) \| [^|]*`[~.]", page)) == {each.agent for each in FORMATS}


class GrowingFile:
    """Reads a file as the index does: on from the end of the part read before, unless that part has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cursor = Cursor()
        self.messages: Messages = []
        self.broken = 0

    def read(self, most: int) -> None:
        (file,) = find_sessions([str(self.path)], str(self.path.parent)).sessions
        if not is_same(file, self.cursor):
            self.cursor, self.messages = Cursor(), []
        is_last = False
        while not is_last:
            last = self.messages[-1] if self.messages else None
            portion = read_portion(file, self.cursor, most, last=last)
            self.messages[len(self.messages) - portion.replaces_last :] = portion.messages
            self.cursor, is_last, self.broken = portion.cursor, portion.is_last, portion.unfinished
        self.broken += self.cursor.broken


TEXTS = [each for each in SESSIONS if each.agent != "opencode"]


@pytest.mark.parametrize("session", TEXTS, ids=str)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.integers(1, 4), st.booleans())
def test_a_transcript_read_as_it_grows_gives_the_same_messages_as_one_read_whole(
    tmp_path: Path, session: AgentSession, data: st.DataObject, most: int, is_at_newlines: bool
) -> None:
    path = tmp_path / Path(session.path).parent.name / Path(session.path).name
    path.parent.mkdir(exist_ok=True)
    content = text_of(session).encode()
    ends = [at + 1 for at, byte in enumerate(content) if byte == 10] if is_at_newlines else range(len(content))
    cuts = sorted(data.draw(st.sets(st.sampled_from(ends), min_size=1)))
    growing = GrowingFile(path)
    for end in [*cuts, len(content)]:
        path.write_bytes(content[:end])
        growing.read(most)
    whole = [(name, utterance) for name, utterances, _ in read(path) for utterance in utterances]
    assert sorted(growing.messages, key=lambda one: one[0]) == sorted(whole, key=lambda one: one[0])
    assert growing.broken == 0


@pytest.mark.parametrize("session", TEXTS, ids=str)
def test_a_transcript_cut_at_every_line_gives_the_same_messages(tmp_path: Path, session: AgentSession) -> None:
    path = tmp_path / Path(session.path).parent.name / Path(session.path).name
    path.parent.mkdir(exist_ok=True)
    lines = text_of(session).encode().splitlines(keepends=True)
    growing = GrowingFile(path)
    for count in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        growing.read(50_000)
    whole = [(name, utterance) for name, utterances, _ in read(path) for utterance in utterances]
    assert sorted(growing.messages, key=lambda one: one[0]) == whole
    assert growing.broken == 0
