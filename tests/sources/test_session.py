"""Agent sessions and logs are read line by line, whatever they contain."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.domain.thread import Kind
from bot.domain.thread_json import MAX_TEXT
from bot.sources.sessions.content import MAX_FILES as MAX_TOUCHED
from bot.sources.sessions.content import content_of
from bot.sources.sessions.files import MAX_DEPTH, SessionFile, find_sessions
from bot.sources.sessions.head import MAX_LINE, Unreadable
from bot.sources.sessions.issues import issues_of_sessions
from bot.sources.sessions.line import parse_line
from bot.sources.sessions.reader import Cursor, is_same, read_portion, read_sessions
from bot.sources.sessions.session import Session, Utterance, thread_of
from bot.sources.sessions.times import TranscriptClock
from tests.sources.session_lines import BROKEN, CODING, HOOKS, ISSUE_AGENT, line, prompt, response, session_file, write

KEYS = (
    *("type", "message", "role", "content", "text", "event", "data", "prompt", "response", "session_id", "sessionId"),
    *("timestamp", "input", "arguments", "path", "files", "cwd", "id", "transcript_path", "user", "assistant"),
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def read_lines(path: Path, *lines: bytes | dict[str, object]) -> tuple[Session, ...]:
    return read_sessions(session_file(write(path, *lines)))


def test_an_issue_agents_session_is_read(tmp_path: Path) -> None:
    (session,) = read_lines(tmp_path / "x.jsonl", *ISSUE_AGENT)
    assert session == Session(
        "5b1c",
        str(tmp_path / "x.jsonl"),
        (
            Utterance("user", "Login loops after upgrade\nPlease look into it.", at("2026-03-01T10:00:01Z")),
            Utterance(
                "assistant",
                "The cookie path changed.",
                at("2026-03-01T10:00:09Z"),
                ("auth/cookie.py", "tests/test_cookie.py"),
            ),
        ),
    )


def test_a_hook_log_holds_several_sessions(tmp_path: Path) -> None:
    first, second = read_lines(tmp_path / "hooks.log", *HOOKS)
    assert (first.id, first.broken, second.id) == ("h-1", 0, "h-2")
    assert first.utterances == (
        Utterance("user", "How do we rotate the webhook secret?", at("2026-03-02T07:00:01Z")),
        Utterance("assistant", "Two secrets are accepted while one is replaced.", at("2026-03-02T07:00:05Z")),
    )
    assert [utterance.text for utterance in second.utterances] == ["Another window"]


def test_a_coding_agents_transcript_is_read_without_tool_output(tmp_path: Path) -> None:
    (session,) = read_lines(tmp_path / "c.jsonl", *CODING)
    assert (session.id, session.broken) == ("c-1", 0)
    assert session.utterances == (
        Utterance("user", "Add retries to the client", at("2026-03-03T09:00:00.123Z")),
        Utterance("assistant", "I retry with jitter.", at("2026-03-03T09:00:04Z"), ("net/client.py", "/data/n.ipynb")),
    )


def test_formats_may_be_mixed_in_one_file_and_broken_lines_are_counted(tmp_path: Path) -> None:
    lines = [*map(line, [*HOOKS, *CODING, *ISSUE_AGENT]), b"", b"  \t"]
    for index, broken in enumerate(BROKEN):
        lines.insert(index * 2, broken)
    read_all = read_lines(tmp_path / "any.log", *lines)
    assert {each.id for each in read_all} == {"h-1", "h-2", "c-1", "5b1c"}
    assert {each.broken for each in read_all} == {len(BROKEN)}
    assert sum(len(each.utterances) for each in read_all) == 7


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each[:40].decode("latin-1"))
def test_a_malformed_message_line_is_broken(broken: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_line(broken)


@pytest.mark.parametrize(
    "fields",
    [
        *(one for one in CODING if one["type"] in ("summary", "progress", "system", "attachment", "queue-operation")),
        {"type": "something-new", "sessionId": "c-1"},
        {"event": "Stop", "session_id": "h-1", "data": {}},
        {"hook_event_name": "Notification", "session_id": "h-1", "message": "waiting"},
        {"type": "custom", "message": {"role": "custom", "content": "x"}},
        {"event": "SubagentStop", "session_id": "h-1", "data": {"agent_id": "7"}},
    ],
)
def test_a_known_line_without_a_message_is_not_broken(fields: dict[str, object]) -> None:
    assert parse_line(line(fields)) is None


def test_a_session_without_an_id_is_named_after_its_file(tmp_path: Path) -> None:
    message = {"message": {"role": "user", "content": "hello"}}
    write(tmp_path / "a" / "s.v2.jsonl", message)
    (file,) = find_sessions(["**/*.jsonl"], str(tmp_path)).sessions
    assert [each.id for each in read_sessions(file)] == ["a/s.v2"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T10:00:01Z", "2026-03-01T10:00:01Z"),
        ("2026-03-01T12:00:01.5+02:00", "2026-03-01T10:00:01.5Z"),
        ("2026-03-01T10:00:01", "2026-03-01T10:00:01Z"),
        (1772359201, "2026-03-01T10:00:01Z"),
        (1772359201.25, "2026-03-01T10:00:01.25Z"),
        (1772359201000, "2026-03-01T10:00:01Z"),
        (1772359201000000, "2026-03-01T10:00:01Z"),
        ("1772359201000", "2026-03-01T10:00:01Z"),
    ],
)
def test_all_time_formats_of_logs_are_read(value: object, expected: str) -> None:
    assert TranscriptClock().read(value) == at(expected)


@pytest.mark.parametrize(
    "value",
    [None, True, "", "today", "10:00", -5, 0, 1e400, float("nan"), 10**30, [], {}, "9" * 5_000, "9999-12-31T23:59:59Z"],
)
def test_an_invalid_time_is_unknown(value: object) -> None:
    assert TranscriptClock().read(value) is None


def test_tool_calls_give_files_in_every_spelling() -> None:
    parts = [
        {"type": "tool_use", "input": {"file_path": "/repo/a.py", "path": "."}},
        {"type": "tool_call", "args": {"filename": "b.py", "paths": ["c.py", 5, "src/"]}},
        {"type": "toolCall", "arguments": {"files": [{"filePath": "d.py"}], "command": "rm e.py"}},
        {"type": "function_call", "arguments": '{"file": "C:\\\\f.py"}'},
        {"type": "tool_use", "input": {"file_path": 5}},
        {"type": "tool_use", "input": "{broken"},
        {"type": "tool_result", "input": {"file_path": "no.py"}},
        {"type": ["tool_use"], "input": {"file_path": "no.py"}},
    ]
    assert content_of(parts, "/repo").files == ("a.py", "b.py", "c.py", "d.py", "C:/f.py")


def test_a_flood_of_files_and_parts_is_bounded() -> None:
    calls = [{"type": "tool_use", "input": {"path": f"{number}.py", "file": "x" * 900}} for number in range(5_000)]
    assert len(content_of(calls).files) == MAX_TOUCHED


def test_text_holds_only_what_a_person_sees() -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07\0 a\u202eb\u200bc\ud800 \U000e0041tag\r\nnext"
    assert content_of(text).text == "red bell abc\ufffd tag\nnext"
    assert len(content_of("é" * 1_000_000).text) == MAX_TEXT


def test_a_line_that_is_too_long_is_skipped_and_the_next_is_read(tmp_path: Path) -> None:
    long = prompt("x" * 10_000_000)
    (session,) = read_lines(tmp_path / "x.log", prompt("before"), long, prompt("after"), long)
    assert ([each.text for each in session.utterances], session.broken) == (["before", "after"], 2)
    exact = prompt("x" * (MAX_LINE - len(prompt(""))))
    assert len(exact) == MAX_LINE
    (session,) = read_lines(tmp_path / "y.log", exact, exact[:-3] + b"y" + exact[-3:])
    assert (len(session.utterances), session.broken) == (1, 1)


def test_a_byte_order_mark_and_windows_newlines_are_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"\xef\xbb\xbf" + prompt("one") + b"\r\n" + prompt("two"))
    (session,) = read_sessions(session_file(path))
    assert ([each.text for each in session.utterances], session.broken) == (["one", "two"], 0)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=80),
            st.sampled_from([*map(line, [*ISSUE_AGENT, *HOOKS, *CODING]), *BROKEN[:16]]),
            st.recursive(
                st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
                lambda inner: (
                    st.lists(inner, max_size=4)
                    | st.dictionaries(
                        st.sampled_from(KEYS),
                        inner | st.sampled_from(["user", "assistant", "tool_use", "SubagentStop", "UserPromptSubmit"]),
                        max_size=6,
                    )
                ),
                max_leaves=15,
            ).map(lambda value: json.dumps(value).encode()),
        ),
        max_size=12,
    ),
    st.booleans(),
    st.integers(1, 4),
)
def test_any_bytes_are_read_and_the_counts_add_up(
    tmp_path: Path, lines: list[bytes], is_whole: bool, limit: int
) -> None:
    path = tmp_path / "any.jsonl"
    data = b"\n".join(lines) + (b"\n" if is_whole else b"")
    path.write_bytes(data)
    file = session_file(path)
    cursor, messages, count, is_last = Cursor(), [], 0, False
    while not is_last:
        portion = read_portion(file, cursor, limit)
        assert portion.cursor.offset >= cursor.offset
        cursor, is_last, count = portion.cursor, portion.is_last, count + portion.lines
        messages += portion.messages
    broken = 0
    pieces = data.split(b"\n")
    for piece in pieces:
        try:
            parse_line(piece) if piece.strip() else None
        except Unreadable:
            broken += 1
    assert cursor.broken + portion.unfinished == broken
    assert count == len(pieces) - (not pieces[-1])
    assert cursor.offset == len(data) - (len(pieces[-1]) if portion.unfinished else 0)
    assert {each.broken for each in read_sessions(file)} <= {broken}
    for _, utterance in messages:
        assert utterance.type in ("user", "assistant")
        assert utterance.text or utterance.files
        utterance.text.encode()
    for session in read_sessions(file):
        thread_of(session)


def test_reading_continues_where_it_ended(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", *ISSUE_AGENT[:4])
    first = read_portion(session_file(path))
    with path.open("ab") as handle:
        handle.write(line(ISSUE_AGENT[5])[:20])
    half = read_portion(session_file(path), first.cursor)
    assert (half.messages, half.unfinished, half.cursor) == ((), 1, first.cursor)
    with path.open("ab") as handle:
        handle.write(line(ISSUE_AGENT[5])[20:] + b"\n")
    file = session_file(path)
    assert is_same(file, half.cursor)
    rest = read_portion(file, half.cursor)
    assert [(name, each.files) for name, each in rest.messages] == [("5b1c", ("tests/test_cookie.py",))]
    assert (rest.unfinished, rest.cursor.broken, rest.cursor.offset) == (0, 0, path.stat().st_size)


def test_a_rewritten_file_is_not_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "x.log", prompt("one"), prompt("two"))
    cursor = read_portion(session_file(path)).cursor
    write(path, prompt("one"), prompt("TWO"), prompt("three"))
    assert not is_same(session_file(path), cursor)
    write(path, prompt("one"))
    assert not is_same(session_file(path), cursor)


# Subagents


def stop(path: object, **rest: object) -> dict[str, object]:
    return {"event": "SubagentStop", "session_id": "h-1", "data": {"agent_transcript_path": path, **rest}}


def answers(log: Path, top: Path, *paths: object) -> list[str]:
    write(log, *map(stop, paths))
    return [each.text for session in read_sessions(session_file(log, top)) for each in session.utterances]


def test_a_subagents_last_words_are_read_from_its_transcript(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "hooks.jsonl"
    write(tmp_path / "agents" / "agent-1.jsonl", *CODING[:5], {"type": "assistant", "message": "Done."}, b"{broken")
    write(log.parent / "agent-2.jsonl", CODING[4])
    absolute = str(tmp_path / "agents" / "agent-1.jsonl")
    assert answers(log, tmp_path, absolute) == ["Done."]
    assert answers(log, tmp_path, "agents/agent-1.jsonl", "agent-2.jsonl") == ["Done.", "I retry with jitter."]
    assert parse_line(line(stop(absolute, response="Here it is"))).content.text == "Here it is"  # type: ignore[union-attr]


def test_a_hook_log_cannot_make_us_read_unrelated_files(tmp_path: Path) -> None:
    top = tmp_path / "top"
    log = top / "logs" / "hooks.jsonl"
    outside = write(tmp_path / "outside.jsonl", CODING[4])
    write(top / "secret.txt", CODING[4])
    (top / "logs").mkdir()
    (top / "logs" / "link.jsonl").symlink_to(outside)
    (top / "logs" / "away").symlink_to(tmp_path)
    os.mkfifo(top / "logs" / "pipe.jsonl")
    (top / "logs" / "folder.jsonl").mkdir()
    paths = [
        *(str(outside), "../../outside.jsonl", str(top / "logs" / ".." / ".." / "outside.jsonl"), "link.jsonl"),
        *("away/outside.jsonl", "pipe.jsonl", "folder.jsonl", "../secret.txt", "missing.jsonl", "/etc/passwd"),
        *("x" * 3_000, "a\0b.jsonl", "~/x.jsonl", "", 5),
    ]
    assert answers(log, top, *paths) == []
    assert [each.broken for each in read_sessions(session_file(log, top))] in ([], [0])


# Finding


def names(*patterns: str, top: Path) -> list[str]:
    return sorted(file.name for file in find_sessions(patterns, str(top)).sessions)


def test_patterns_name_files_below_the_top_and_a_folder_all_its_logs(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.log", "c.txt", "logs/d.jsonl", "logs/deep/e.log", "logs/deep/f.md", ".git/g.jsonl"):
        write(tmp_path / name, prompt("x"))
    assert names("logs", top=tmp_path) == ["logs/d.jsonl", "logs/deep/e.log"]
    assert names("*.jsonl", "c.txt", top=tmp_path) == ["a.jsonl", "c.txt"]
    assert names("logs/**/*.log", top=tmp_path) == ["logs/deep/e.log"]
    assert names(".", top=tmp_path) == ["a.jsonl", "b.log", "logs/d.jsonl", "logs/deep/e.log"]
    assert names(str(tmp_path / "logs" / "*.jsonl"), top=tmp_path / "elsewhere") == [str(tmp_path / "logs/d.jsonl")]
    assert names("nothing/*.jsonl", "", "a\0b", top=tmp_path) == []
    assert find_sessions(["missing"], str(tmp_path)).notes == (
        f"{tmp_path}/missing is neither a folder nor a regular file",
    )


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "agent" / "a.jsonl", prompt("x"))
    assert names("~/agent", top=tmp_path / "checkout") == [str(tmp_path / "agent" / "a.jsonl")]
    assert names("~other/agent", top=tmp_path / "checkout") == []


def test_symlinks_pipes_and_undecodable_names_are_left_out(tmp_path: Path) -> None:
    top = tmp_path / "top"
    write(tmp_path / "outside" / "a.jsonl", prompt("x"))
    write(top / "logs" / "b.jsonl", prompt("x"))
    (top / "logs" / "link.jsonl").symlink_to(tmp_path / "outside" / "a.jsonl")
    (top / "logs" / "away").symlink_to(tmp_path / "outside")
    (top / "logs" / "round").symlink_to(top)
    os.mkfifo(top / "logs" / "pipe.jsonl")
    os.close(os.open(os.fsencode(top) + b"/logs/\xff.jsonl", os.O_CREAT))
    assert names("logs", "logs/away", "logs/link.jsonl", "logs/away/*.jsonl", "**/*.jsonl", top=top) == ["logs/b.jsonl"]
    (tmp_path / "own").symlink_to(tmp_path / "outside")
    assert [names(str(tmp_path / name), top=top) for name in ("own", "outside")] == [
        [], [str(tmp_path / "outside" / "a.jsonl")]
    ]  # fmt: skip


def test_only_the_newest_files_are_read_and_a_note_counts_the_others(tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / f"{number}.log"
        path.touch()
        os.truncate(path, 1 << 30)  # takes no space on the disk
        os.utime(path, (number, number))
    found_files = find_sessions(["."], str(tmp_path))
    assert [file.name for file in found_files.sessions] == ["2.log", "1.log"]
    assert found_files.notes == ("the oldest 1 of 3 session files are not read: the limit is 10,000 files and 2 GiB",)


def test_folders_too_deep_are_not_entered(tmp_path: Path) -> None:
    write(tmp_path.joinpath(*["d"] * MAX_DEPTH) / "a.jsonl", prompt("x"))
    write(tmp_path.joinpath(*["d"] * (MAX_DEPTH + 1)) / "b.jsonl", prompt("x"))
    assert [Path(name).name for name in names(".", top=tmp_path)] == ["a.jsonl"]


# Issues


def map_issues(top: Path, *sessions_: str) -> dict[str, int]:
    for name in sessions_:
        write(top / name, prompt("x"))
    files = find_sessions(["."], str(top))
    return {
        os.path.relpath(path, top): number
        for path, number in issues_of_sessions(files.mappings, files.sessions).items()
    }


def test_a_mapping_file_gives_the_issue_of_a_session(tmp_path: Path) -> None:
    write(
        tmp_path / "state" / "sessions.json",
        {"12": "sessions/a.jsonl", "#13": {"sessionPath": "state/sessions/b.jsonl"}, "14": str(tmp_path / "c.jsonl")},
    )
    sessions_ = ("state/sessions/a.jsonl", "state/sessions/b.jsonl", "c.jsonl")
    assert map_issues(tmp_path, *sessions_) == {sessions_[0]: 12, sessions_[1]: 13, sessions_[2]: 14}


def test_one_file_for_each_issue_gives_it_too(tmp_path: Path) -> None:
    write(tmp_path / "state" / "issues" / "12.json", {"issueNumber": 12, "sessionPath": "state/sessions/a.jsonl"})
    write(tmp_path / "state" / "issues" / "7.json", {"session": "b"})
    sessions_ = ("state/sessions/a.jsonl", "state/sessions/b.jsonl")
    assert map_issues(tmp_path, *sessions_) == {sessions_[0]: 12, sessions_[1]: 7}
    beside = find_sessions(["state/sessions/*.jsonl"], str(tmp_path))
    assert [file.name for file in beside.mappings] == ["state/issues/12.json", "state/issues/7.json"]


def test_a_mapping_file_with_the_name_of_a_session_is_not_a_session(tmp_path: Path) -> None:
    write(tmp_path / "state" / "b.json", {"issueNumber": 7, "session": "b"})
    assert map_issues(tmp_path, "a/b.jsonl") == {"a/b.jsonl": 7}


def test_lists_and_other_shapes_of_mappings_are_understood(tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"issues": {"1": "a.jsonl"}, "version": 3})
    write(tmp_path / "b.json", line({"x": 1})[:0] + b'[{"issue": {"number": 2}, "session": "b.jsonl"}, 5, null]')
    write(tmp_path / "c.json", {"c.jsonl": 3})
    assert map_issues(tmp_path, "a.jsonl", "b.jsonl", "c.jsonl") == {"a.jsonl": 1, "b.jsonl": 2, "c.jsonl": 3}


def test_a_mapping_names_only_found_sessions_and_opens_nothing(tmp_path: Path) -> None:
    top = tmp_path / "top"
    write(tmp_path / "outside.jsonl", prompt("x"))
    write(top / "m.json", {"1": "../outside.jsonl", "2": "/etc/passwd", "3": "a\0b", "4": "", "5": 6, "-7": "a.jsonl"})
    write(top / "deep.json", b"[" * 100_000)
    write(top / "bytes.json", b"\xff\xfe")
    write(top / "huge.json", {"9" * 30: "a.jsonl", "0": "a.jsonl", "1e3": "a.jsonl"})
    assert map_issues(top, "a.jsonl") == {}


def test_two_sessions_with_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    write(tmp_path / "m.json", {"1": "a.jsonl", "2": "y/a.jsonl"})
    assert map_issues(tmp_path, "x/a.jsonl", "y/a.jsonl") == {"y/a.jsonl": 2}


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=6) | st.just("a.jsonl"),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=6) | st.sampled_from(["7", "#8"]), x),
    )
)
@example({"7": "a.jsonl", "#8": ["a.jsonl"], "x": {"sessionPath": "a.jsonl"}})
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mapping_is_accepted(tmp_path: Path, value: object) -> None:
    (tmp_path / "m.json").write_text(json.dumps(value), encoding="utf-8")
    assert set(map_issues(tmp_path, "a.jsonl")) <= {"a.jsonl"}


# Threads


def test_a_session_becomes_a_thread(tmp_path: Path) -> None:
    (session,) = read_lines(tmp_path / "x.jsonl", *ISSUE_AGENT)
    thread = thread_of(session._replace(issue=12))
    assert (thread.id, thread.kind, thread.title) == ("5b1c", Kind.SESSION, "Login loops after upgrade")
    assert (thread.author, thread.is_bot, thread.created_at) == ("human", False, at("2026-03-01T10:00:01Z"))
    assert thread.body == "Login loops after upgrade\nPlease look into it."
    (answer,) = thread.comments
    assert (answer.author, answer.is_bot) == ("assistant", True)
    assert answer.text == "The cookie path changed.\n\nFiles: `auth/cookie.py`, `tests/test_cookie.py`"
    assert [(event.name, event.source) for event in thread.events] == [("cross-referenced", 12)]
    assert thread.updated_at == at("2026-03-01T10:00:09Z")


def test_missing_and_earlier_times_become_those_of_the_message_before(tmp_path: Path) -> None:
    lines = [prompt("a", at=None), response("b", at=1772359201), prompt("c", at=None), response("d", at=1772350000)]
    (session,) = read_lines(tmp_path / "x.log", *lines)
    assert [each.at is None for each in session.utterances] == [True, False, True, False]
    thread = thread_of(session)
    assert {thread.created_at, *(each.created_at for each in thread.comments)} == {at("2026-03-01T10:00:01Z")}


def test_a_session_without_messages_becomes_a_thread_too() -> None:
    thread = thread_of(Session("x", "x.jsonl", ()))
    assert (thread.title, thread.body, thread.comments) == ("(nothing was asked)", "", ())


def test_a_file_that_was_replaced_by_a_link_or_pipe_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x.log", prompt("x"))
    file = session_file(path)
    path.rename(tmp_path / "y.log")
    path.symlink_to(tmp_path / "y.log")
    with pytest.raises(OSError, match="symbolic link"):
        read_sessions(file)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        read_sessions(file)
    assert isinstance(file, SessionFile)


@pytest.mark.slow
def test_any_number_of_tool_calls_without_text_is_one_message_with_few_files(tmp_path: Path) -> None:
    lines = []
    for number in range(400):
        calls = [
            {"type": "tool_use", "name": "Read", "input": {"path": f"src/{number}/{n}.py"}} for n in range(MAX_TOUCHED)
        ]
        message = {"role": "assistant", "content": calls}
        lines.append(line({"type": "assistant", "sessionId": "c-1", "message": message}))
    (session,) = read_lines(tmp_path / "log.jsonl", *lines)
    assert len(session.utterances) == 1
    assert len(session.utterances[0].files) == MAX_TOUCHED
