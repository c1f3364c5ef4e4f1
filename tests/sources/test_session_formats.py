"""Rollouts, conversations in one JSON object, and transcripts of subagents are sessions too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.sources.sessions.files import find_sessions
from bot.sources.sessions.head import Unreadable
from bot.sources.sessions.line import parse_line
from bot.sources.sessions.reader import MAX_OBJECT_BYTES, SessionMark, read_portion, read_sessions
from bot.sources.sessions.session import Session
from tests.sources.session_lines import CODING, CONVERSATION, ROLLOUT, line, prompt, session_file, write


def messages_of(session: Session) -> list[tuple[str, str]]:
    return [(each.type, each.text) for each in session.utterances]


def test_a_rollout_is_read_without_generated_messages(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", *ROLLOUT)
    (session,) = read_sessions(session_file(path))
    assert (session.id, session.broken) == ("r-1", 0)
    assert messages_of(session) == [
        ("user", "Why does the login loop?"),
        ("assistant", "The old cookie shadows the new one."),
    ]
    assert session.utterances[1].files == ("auth/cookie.py", "tests/new.py")
    assert read_portion(session_file(path)).marks == (SessionMark("r-1", "branch", "fix/42-login"),)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "message"},
        {"type": "message", "role": "user"},
        {"type": "message", "role": 5, "content": []},
        {"type": "message", "role": "assistant", "content": {"text": "no list"}},
    ],
)
def test_a_malformed_message_item_is_broken(payload: dict[str, object]) -> None:
    with pytest.raises(Unreadable):
        parse_line(line({"type": "response_item", "payload": payload}))


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["chat.json", "chat.jsonl", "chat.log"])
def test_a_conversation_as_one_object_is_read(tmp_path: Path, name: str, indent: int | None) -> None:
    (tmp_path / name).write_text(json.dumps(CONVERSATION, indent=indent), encoding="utf-8")
    (file,) = find_sessions(["."], str(tmp_path)).sessions
    (session,) = read_sessions(file)
    assert (session.id, session.broken) == ("w-1", 0)
    assert messages_of(session) == [
        ("user", "Which driver do we use?"),
        ("assistant", "The pure one."),
        ("assistant", "It needs no compiler."),
    ]


def test_messages_of_an_object_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "zebra"}, 5, {"role": "user"}, {"foo": 1}, None]
    (tmp_path / "a.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    (session,) = read_sessions(find_sessions(["."], str(tmp_path)).sessions[0])
    assert (session.id, messages_of(session), session.broken) == ("a", [("user", "zebra")], 4)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ('{"messages": [1, 2]}', 1),
        ('{"a": {"messages": [1]}}', 1),
        ('{"messages": [', 1),
        ('{"messages": [' + "[" * 100_000, 1),
        ('{"messages": []}', 0),
        ('{"name": "a package", "version": 1}', 0),
        ("", 0),
        ("no JSON at all", 0),
    ],
)
def test_any_json_file_is_accepted(tmp_path: Path, text: str, broken: int) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    portion = read_portion(find_sessions(["."], str(tmp_path)).sessions[0])
    assert (portion.messages, portion.cursor.broken, portion.is_last) == ((), broken, True)


def test_an_object_that_is_too_long_is_counted(tmp_path: Path) -> None:
    conversation = {"messages": [{"role": "user", "content": "x" * MAX_OBJECT_BYTES}]}
    (tmp_path / "a.json").write_text(json.dumps(conversation), encoding="utf-8")
    portion = read_portion(find_sessions(["."], str(tmp_path)).sessions[0])
    assert (portion.messages, portion.cursor.broken) == ((), 1)


def test_a_folder_of_json_files_has_no_session_unless_one_holds_messages(tmp_path: Path) -> None:
    write(tmp_path / "12.json", {"issueNumber": 12})
    assert list(find_sessions(["."], str(tmp_path)).unmatched) == ["."]
    (tmp_path / "b.json").write_text(json.dumps(CONVERSATION), encoding="utf-8")
    assert find_sessions(["."], str(tmp_path)).unmatched == {}


def test_a_prompt_to_a_subagent_is_a_message_of_the_agent_in_its_session(tmp_path: Path) -> None:
    question = CODING[2] | {"isSidechain": True, "agentId": "a1", "message": {"role": "user", "content": "Look at it"}}
    answer = CODING[4] | {"isSidechain": True, "agentId": "a1"}
    (session,) = read_sessions(session_file(write(tmp_path / "subagents" / "agent-a1.jsonl", question, answer)))
    assert session.id == "c-1"
    assert messages_of(session) == [("assistant", "Look at it"), ("assistant", "I retry with jitter.")]


def test_branches_and_pull_requests_are_noted_once_each(tmp_path: Path) -> None:
    link = {"type": "pr-link", "sessionId": "c-1", "prNumber": 50, "prRepository": "octo-org/linkbarn"}
    lines = [
        *(CODING[2] | {"gitBranch": branch} for branch in ("main", "fix/42-login", "fix/42-login", "", [])),
        *(
            link,
            link,
            link | {"prNumber": True},
            link | {"prNumber": -1},
            link | {"prRepository": "evil\n", "sessionId": []},
        ),
    ]
    marks = read_portion(session_file(write(tmp_path / "a.jsonl", *lines))).marks
    assert marks == (
        SessionMark("c-1", "branch", "main"),
        SessionMark("c-1", "branch", "fix/42-login"),
        SessionMark("c-1", "pull request", "octo-org/linkbarn#50"),
        SessionMark("a", "pull request", "#50"),
    )


@pytest.mark.slow
def test_marks_are_bounded(tmp_path: Path) -> None:
    lines = [CODING[2] | {"gitBranch": f"fix/{number}-x"} for number in range(5_000)]
    assert len(read_portion(session_file(write(tmp_path / "a.jsonl", *lines))).marks) == 200


def test_a_log_with_a_messages_field_in_a_later_line_is_still_a_log(tmp_path: Path) -> None:
    lines = [prompt("before"), line(CONVERSATION), prompt("after")]
    sessions = read_sessions(session_file(write(tmp_path / "a.jsonl", *lines)))
    assert [(each.id, len(each.utterances)) for each in sessions] == [("h-1", 2), ("w-1", 3)]
