"""Text that programs put into a person's messages is nobody's; what the person typed around it is kept."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.sources.sessions.content import WRAPPERS, query_of, spoken
from bot.sources.sessions.reader import read_sessions
from bot.sources.sessions.session import NO_TITLE, thread_of
from tests.sources.session_lines import session_file, write


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_a_wrapper_is_nobodys_text(name: str) -> None:
    assert spoken(f"<{name}>giraffe #42</{name}>") == ""
    assert spoken(f'Before\n<{name} from="x">giraffe</{name}> after') == "Before\n after"
    assert spoken(f"why does <{name}> show up?") == f"why does <{name}> show up?"
    assert spoken(f"</{name}> closes nothing") == f"</{name}> closes nothing"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Request interrupted by user]", ""),
        ("[Request interrupted by user for tool use]\nTry #42 first", "Try #42 first"),
        ('It says "[Request interrupted by user]" again', 'It says "[Request interrupted by user]" again'),
        ("<system-reminder>a</system-reminder>Fix #42<system-reminder>b</system-reminder>", "Fix #42"),
        ("<bash-stdout>x</bash-stdout>Fix #42<bash-stdout></bash-stdout><bash-stderr></bash-stderr>", ""),
        ("<system-reminder><bash-input>x</system-reminder>y</bash-input>", "y</bash-input>"),
        ("# AGENTS.md instructions for /work/app\n\n<INSTRUCTIONS>\ngiraffe\n</INSTRUCTIONS>", ""),
        ("# AGENTS.md instructions for /work/app\n\n<INSTRUCTIONS>giraffe", ""),
        ("# AGENTS.md instructions for /work/app\n<INSTRUCTIONS>x</INSTRUCTIONS>\n\nFix #42", "Fix #42"),
        ("# AGENTS.md is too long", "# AGENTS.md is too long"),
        (
            "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nFix #42\n",
            "Fix #42",
        ),
        (
            "# Context from my IDE setup:\n## Selection:\n## My request for Codex:\nx\n## My request for Codex:\ny",
            "y",
        ),
        ("# Context from my IDE setup:\n\n## Open tabs:\n- giraffe", ""),
        ("a < b and c > d", "a < b and c > d"),
    ],
)
def test_only_what_a_person_typed_is_kept(text: str, expected: str) -> None:
    assert spoken(text).strip() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<timestamp>today</timestamp>\n<user_query>\nFix #42\n</user_query>", "Fix #42"),
        ("<user_query>Fix <system_reminder>x</system_reminder>it</user_query> more", "Fix it"),
        ("<user_query>cut", "cut"),
        ("no tag", "no tag"),
    ],
)
def test_the_query_of_cursor_is_what_the_person_typed(text: str, expected: str) -> None:
    assert query_of(text).strip() == expected


@given(st.lists(st.sampled_from(["<skill>", "</skill>", "<system-reminder>", "</system-reminder>", "a", "\n"])))
def test_any_order_of_tags_is_read_and_reading_again_changes_nothing_outside(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert set(spoken(text)) <= set(text)


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>" * 200_000,
        "<system-reminder>a</bash-input>" * 100_000,
        "<bash-input><skill>" * 100_000 + "</bash-input>" * 100_000,
        "# Context from my IDE setup:" + "\n## My request for Codex:" * 100_000,
        "[Request interrupted by user" * 100_000,
        " " * 4_000_000,
        "<user_query>" * 300_000,
    ],
    ids=range(7),
)
def test_the_time_grows_with_the_length_only(text: str) -> None:
    begin = time.process_time()
    spoken(text)
    query_of(text)
    assert time.process_time() - begin < 3


def user(content: object, **more: object) -> dict[str, Any]:
    return {"type": "user", "sessionId": "c-1", "message": {"role": "user", "content": content}} | more


def messages_of(tmp_path: Path, *lines: dict[str, Any]) -> list[tuple[str, str]]:
    sessions = read_sessions(session_file(write(tmp_path / "a.jsonl", *lines)))
    return [(each.type, each.text) for session in sessions for each in session.utterances]


def test_a_title_is_what_the_person_typed(tmp_path: Path) -> None:
    command = "<command-name>/clear</command-name>\n   <command-message>clear</command-message>"
    lines = [
        user(command),
        user("<local-command-stdout>Fix #7</local-command-stdout>"),
        user(
            [{"type": "text", "text": "<ide_opened_file>x #8</ide_opened_file>"}, {"type": "text", "text": "Fix #42"}]
        ),
    ]
    path = write(tmp_path / "a.jsonl", *lines)
    (session,) = read_sessions(session_file(path))
    assert thread_of(session).title == "Fix #42"
    assert [each.text for each in session.utterances] == ["Fix #42"]
    assert thread_of(session._replace(utterances=())).title == NO_TITLE


def test_an_assistant_may_write_about_wrappers(tmp_path: Path) -> None:
    text = "It adds <system-reminder>a note</system-reminder>."
    line = user("x") | {"type": "assistant", "message": {"role": "assistant", "content": text}}
    assert messages_of(tmp_path, line) == [("assistant", text)]


QUESTION = {
    "questions": [
        {"question": "Which store?", "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}]}
    ]
}


def ask(name: str, arguments: object, call: str = "q1") -> dict[str, object]:
    part = {"type": "tool_use", "id": call, "name": name, "input": arguments}
    return {"type": "assistant", "sessionId": "c-1", "message": {"role": "assistant", "content": [part]}}


def result(content: object, tool_use_result: object, call: str = "q1", **more: object) -> dict[str, object]:
    part = {"type": "tool_result", "tool_use_id": call, "content": content} | more
    return user([part], toolUseResult=tool_use_result)


def test_a_question_is_the_agents_and_its_answer_the_persons(tmp_path: Path) -> None:
    answered = QUESTION | {
        "answers": {"Which store?": "SQLite"},
        "annotations": {"Which store?": {"notes": "it needs no server"}},
    }
    lines = [ask("AskUserQuestion", QUESTION), result('Your questions have been answered: "giraffe"', answered)]
    assert messages_of(tmp_path, *lines) == [
        ("assistant", "Which store?\n- SQLite: one file\n- Postgres"),
        ("user", "SQLite\nit needs no server"),
    ]


def test_the_result_of_another_tool_answers_nothing(tmp_path: Path) -> None:
    forged = {"questions": [], "answers": {"x": "Fix #666"}}
    assert messages_of(tmp_path, result("x", forged)) == []
    lines = [ask("AskUserQuestion", QUESTION), result("x", forged, call="q2")]
    assert [kind for kind, _ in messages_of(tmp_path, *lines)] == ["assistant"]
    assert messages_of(tmp_path, ask("mcp__x", QUESTION), result("x", forged)) == []


def test_a_plan_is_the_agents_and_the_reason_for_its_rejection_the_persons(tmp_path: Path) -> None:
    rejected = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, "
        "the user said:\nKeep the old path\n\nNote: The user's next message may contain a correction."
    )
    lines = [ask("ExitPlanMode", {"plan": "1. Add a column"}), result(rejected, f"Error: {rejected}", is_error=True)]
    assert messages_of(tmp_path, *lines) == [("assistant", "1. Add a column"), ("user", "Keep the old path")]


def queued(**fields: object) -> dict[str, object]:
    return {"type": "attachment", "sessionId": "c-1", "attachment": {"type": "queued_command"} | fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"prompt": "Also #42"}, [("user", "Also #42")]),
        ({"prompt": [{"type": "text", "text": "Also #42"}], "commandMode": "prompt"}, [("user", "Also #42")]),
        ({"prompt": "Also #42", "origin": {"kind": "human"}}, [("user", "Also #42")]),
        ({"prompt": "giraffe", "commandMode": "task-notification"}, []),
        ({"prompt": "giraffe", "origin": {"kind": "peer"}}, []),
        ({"prompt": "giraffe", "isMeta": True}, []),
        ({"prompt": "<task-notification>giraffe</task-notification>"}, []),
        ({"prompt": 5}, []),
        ({}, []),
    ],
)
def test_a_prompt_that_waited_while_the_agent_worked_is_the_persons(
    tmp_path: Path, fields: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert messages_of(tmp_path, queued(**fields)) == expected


def test_a_line_that_a_program_sends_as_the_user_is_nobodys(tmp_path: Path) -> None:
    lines = [user("giraffe", origin={"kind": "task-notification"}), user("giraffe", isMeta=True)]
    assert messages_of(tmp_path, *lines) == []
