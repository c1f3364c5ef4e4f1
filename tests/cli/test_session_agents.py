"""The sessions of every agent are found without a setting, in all worktrees of a repository."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from bot.local_cache.sessions import SessionScope, ask_sessions
from tests.cli.checkouts import create_cookie_checkout, git
from tests.cli.program_result import Run
from tests.sources.agents import (
    SESSIONS,
    AgentSession,
    claude_line,
    claude_path,
    codex_lines,
    codex_path,
    dashes,
    put,
    text_of,
    write_database,
)
from tests.sources.session_lines import line, write


@pytest.fixture
def checkout(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = create_cookie_checkout(tmp_path / "my.\U0001f600_app")
    monkeypatch.chdir(folder)
    return folder


def last_words(session: AgentSession) -> str:
    return session.messages[-1][2:].partition("\n")[0]


def found(call: Run, words: str) -> list[tuple[str, str]]:
    result = call("search", *re.findall(r"\w+", words), "--kind", "session", "--json")
    return [(row["session_id"], row["content"]) for row in result.data] if result.code == 0 else []


def found_sessions(call: Run, words: str = "zebra") -> set[str]:
    return {name for name, _ in found(call, words)}


def test_the_sessions_of_every_agent_are_found_without_a_setting(home: Path, checkout: Path, call: Run) -> None:
    for session in SESSIONS:
        put(session, home, checkout)
    for session in SESSIONS:
        assert session.session in {name for name, _ in found(call, last_words(session))}, session
    result = call("search", "migration", "--kind", "session")
    assert re.findall(r"Searched (\d+) sessions in (.*) \(", result.err) == [
        (
            str(len({each.session for each in SESSIONS}) + 1),  # the hook log has two
            " and ".join(
                [
                    ".claude/logging",
                    f"~/.claude/projects/{dashes(checkout)}",
                    "~/.codex/sessions",
                    "~/.codex/archived_sessions",
                    *(str(path).replace(str(home), "~") for path in (home / ".gemini/tmp").iterdir()),
                    f"~/.qwen/projects/{dashes(checkout)}",
                    "~/.copilot/session-state",
                    *(str(path).replace(str(home), "~") for path in (home / ".cursor/projects").iterdir()),
                    "~/.local/share/opencode",
                    "~/.pi/agent/sessions",
                ]
            ),
        )
    ]
    assert "broken" not in result.err


@pytest.mark.parametrize("session", [each for each in SESSIONS if each.agent != "hooks"], ids=str)
def test_the_sessions_of_another_checkout_are_left_out(
    home: Path, checkout: Path, tmp_path: Path, call: Run, session: AgentSession
) -> None:
    other = create_cookie_checkout(tmp_path / "other")
    put(session, home, other)
    assert found(call, last_words(session)) == []


def test_a_session_of_opencode_grows_in_its_database(home: Path, checkout: Path, call: Run) -> None:
    (session,) = (each for each in SESSIONS if each.agent == "opencode")
    path = put(session, home, checkout)
    assert found(call, "zebra") == []
    with closing(sqlite3.connect(path)) as database:  # a writer that is still open: the new rows are in its journal
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(
            "INSERT INTO message VALUES ('msg_3', 'ses_1', 1772787700000, 1772787700000, '{\"role\":\"user\"}')"
        )
        part = json.dumps({"type": "text", "text": "Now a zebra"})
        database.execute("INSERT INTO part VALUES ('prt_9', 'msg_3', 'ses_1', 1, 1, ?)", (part,))
        database.execute("INSERT INTO part VALUES ('prt_10', 'msg_3', 'ses_1', 1, 1, 'no JSON')")
        database.commit()
        assert found(call, "zebra") == [("ses_1", "Now a zebra")]
    export = json.loads(text_of(session, str(checkout)))
    export["info"] |= {"id": "ses_2", "parentID": "ses_1"}
    export["messages"] = [{"info": {"id": "m", "role": "user", "time": {"created": 1}}, "parts": []}]
    export["messages"][0]["parts"] = [{"id": "p", "type": "text", "text": "Count the quaggas"}]
    write_database(path, export)
    assert found(call, "quaggas") == [("ses_1", "Count the quaggas")]


@pytest.mark.parametrize("content", [b"SQLite format 3\0 damaged", b"", b"\0" * 5_000])
def test_a_database_that_cannot_be_read_is_named(home: Path, checkout: Path, call: Run, content: bytes) -> None:
    path = home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    write(claude_path(home, checkout), claude_line("A zebra", checkout))
    result = call("search", "zebra", "--kind", "session", "--json")
    assert [row["session_id"] for row in result.data] == ["c-1"]
    assert f"{path}: no database of opencode that can be read: " in result.err


VIEWS = """
CREATE TABLE session (id, directory, time_updated, parent_id);
INSERT INTO session VALUES ('ses_1', '{top}', 1, NULL);
CREATE VIEW numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
CREATE {kind} message {message};
CREATE VIEW part AS SELECT i AS id, 'm' AS message_id, 'ses_1' AS session_id, 1 AS time_updated,
    '{{"type":"text","text":"' || replace(hex(zeroblob(400000)), '0', 'x') || '"}}' AS data FROM numbers;
"""


@pytest.mark.parametrize("is_message_endless", [True, False])
def test_a_database_with_a_view_that_never_ends_does_not_stop_a_search(
    home: Path, checkout: Path, call: Run, is_message_endless: bool
) -> None:
    path = checkout / "state/opencode.db"
    path.parent.mkdir()
    endless = (
        "AS SELECT i AS id, 'ses_1' AS session_id, 1 AS time_updated, 1 AS time_created, '{}' AS data FROM numbers"
    )
    table = "(id, session_id, time_updated, time_created, data)"
    kind, message = ("VIEW", endless) if is_message_endless else ("TABLE", table)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(VIEWS.format(top=checkout, kind=kind, message=message))
        if not is_message_endless:
            database.execute("INSERT INTO message VALUES ('m', 'ses_1', 1, 1, '{\"role\": \"user\"}')")
            database.commit()
    write(claude_path(home, checkout), claude_line("A zebra", checkout))
    begin = time.process_time()
    result = call("search", "zebra", "--kind", "session", "--logs", path, "--json")
    assert time.process_time() - begin < 20
    assert [row["session_id"] for row in result.data] == ["c-1"] if result.code == 0 else "opencode.db" in result.err


def test_a_committed_database_is_not_this_machines(home: Path, checkout: Path, call: Run) -> None:
    (session,) = (each for each in SESSIONS if each.agent == "opencode")
    write_database(checkout / "state/opencode.db", json.loads(text_of(session, str(checkout))))
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text('sources: {sessions: ["state/opencode.db"]}\n')
    assert {name for name, _ in found(call, "Newest first")} == {"ses_1"}
    git(checkout, "add", "state")
    assert ask_sessions(SessionScope(checkout), lambda index: index.search_each("Newest first", 5)).found == ()
    git(checkout, "rm", "--cached", "--quiet", "-r", "state")
    answer = ask_sessions(SessionScope(checkout), lambda index: index.search_each("Newest first", 5))
    assert [each.session for each in answer.found] == ["ses_1"]


def test_formats_that_are_not_read_are_named_with_their_number(home: Path, checkout: Path, call: Run) -> None:
    write(claude_path(home, checkout), claude_line("A zebra", checkout))
    for number in (1, 2):
        write(home / f".codex/archived_sessions/rollout-{number}.jsonl.zst", b"\x28\xb5\x2f\xfd")
    write(home / ".codex/sessions/2026/03/04/rollout-3.jsonl", *codex_lines("Another zebra", checkout, "r-3"))
    write(home / ".codex/sessions/2026/03/04/rollout-3.jsonl.zst", b"\x28\xb5\x2f\xfd")
    write(home / ".copilot/history-session-state/session_1.json", {"chatMessages": []})
    write(home / ".local/share/opencode/storage/session/p/ses_1.json", {"id": "ses_1"})
    cursor = put(next(each for each in SESSIONS if each.agent == "Cursor"), home, checkout)
    write(cursor.parents[1] / "old.txt", b"user:\nHello")
    result = call("search", "zebra", "--kind", "session", "--json")
    assert {row["session_id"] for row in result.data} == {"c-1", "r-3"}
    assert re.findall(r"(\d+) files? cannot be read: (.*)\.\n", result.err) == [
        ("2", "compressed rollouts of Codex (.jsonl.zst)"),
        ("1", "old sessions of Copilot CLI (history-session-state)"),
        ("1", "old transcripts of Cursor (.txt)"),
        ("1", "old sessions of opencode (storage/session)"),
    ]
    claude_path(home, checkout).unlink()
    (home / ".codex/sessions/2026/03/04/rollout-3.jsonl").unlink()
    cursor.unlink()
    result = call("search", "zebra", "--kind", "session")
    assert result.code == 2
    assert "no sessions found for this checkout (3 files cannot be read: compressed rollouts of Codex" in result.err
    (path,) = home.glob(".codex/archived_sessions/rollout-1.*")
    result = call("search", "zebra", "--kind", "session", "--logs", path)
    assert result.code == 2
    assert "matches only compressed rollouts of Codex (.jsonl.zst), which cannot be read" in result.err


# -- folders ---------------------------------------------------------------------------------------------------------


def test_a_long_path_is_found_by_the_start_of_its_name(
    home: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = create_cookie_checkout(tmp_path / ("long-" * 40))
    monkeypatch.chdir(top)
    name = dashes(top)[:200]
    write(home / f".claude/projects/{name}-1x2y3z/c-1.jsonl", claude_line("A zebra", top))
    other = claude_line("Another zebra", tmp_path / ("long-" * 41), "c-2")
    write(home / f".claude/projects/{name}-9x8y7z/c-2.jsonl", other)
    assert found_sessions(call) == {"c-1"}


def test_a_project_of_cursor_may_name_another_folder(home: Path, checkout: Path, call: Run) -> None:
    session = next(each for each in SESSIONS if each.agent == "Cursor")
    path = put(session, home, checkout)
    trusted = path.parents[2] / ".workspace-trusted"
    trusted.write_text(json.dumps({"workspacePath": str(checkout) + "-2"}))
    assert found(call, "migration") == []
    trusted.write_text(json.dumps({"workspacePath": str(checkout)}))
    assert found(call, "migration") == [("k-1", "I write a migration.")]


@pytest.fixture
def worktree(checkout: Path, tmp_path: Path) -> Path:
    git(checkout, "worktree", "add", "--quiet", str(tmp_path / "elsewhere"))
    return tmp_path / "elsewhere"


def write_both(home: Path, folder: Path) -> None:
    write(claude_path(home, folder), claude_line("A zebra", folder))
    write(codex_path(home), *codex_lines("A zebra", folder / "linkbarn"))


def test_sessions_in_a_worktree_are_those_of_the_repository(
    home: Path, checkout: Path, worktree: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_both(home, worktree)
    assert found_sessions(call) == {"c-1", "r-1"}
    shutil.rmtree(home)
    write_both(home, checkout)
    monkeypatch.chdir(worktree)
    assert found_sessions(call) == {"c-1", "r-1"}


def test_a_worktree_inside_the_checkout_belongs_to_it(home: Path, checkout: Path, call: Run) -> None:
    inside = checkout / ".claude/worktrees/zebra"
    git(checkout, "worktree", "add", "--quiet", str(inside))
    write_both(home, inside)
    assert found_sessions(call) == {"c-1", "r-1"}
    git(checkout, "worktree", "remove", str(inside))
    assert found_sessions(call) == {"c-1", "r-1"}


def test_a_worktree_that_was_deleted_still_counts(home: Path, checkout: Path, worktree: Path, call: Run) -> None:
    write_both(home, worktree)
    shutil.rmtree(worktree)
    assert found_sessions(call) == {"c-1", "r-1"}


def test_a_worktree_that_was_removed_counts_if_its_sessions_were_seen(
    home: Path, checkout: Path, tmp_path: Path, call: Run
) -> None:
    sibling = tmp_path / f"{checkout.name}-fix"
    git(checkout, "worktree", "add", "--quiet", str(sibling))
    write_both(home, sibling)
    assert found_sessions(call) == {"c-1", "r-1"}
    git(checkout, "worktree", "remove", str(sibling))
    assert found_sessions(call) == {"c-1", "r-1"}
    with claude_path(home, sibling).open("ab") as transcript:
        transcript.write(line(claude_line("A quagga", sibling)) + b"\n")
    assert found_sessions(call, "quagga") == {"c-1"}
    assert found_sessions(call) == {"c-1", "r-1"}
    shutil.rmtree(tmp_path / "cache")
    assert found_sessions(call) == set()


def test_a_worktree_that_was_removed_counts_if_its_sessions_name_the_repository(
    home: Path, checkout: Path, tmp_path: Path, call: Run
) -> None:
    git(checkout, "remote", "add", "origin", "git@github.com:octo-org/Linkbarn.git")
    (header, message) = codex_lines("A zebra", tmp_path / "gone")
    for address, expected in (
        ("https://github.com/octo-org/linkbarn", {"r-1"}),
        ("https://github.com/octo-org/other.git", set()),
        ("", set()),
    ):
        header["payload"]["git"] = {"repository_url": address}
        write(codex_path(home), header, message)
        assert found_sessions(call) == expected


def test_another_repository_in_the_place_of_a_removed_worktree_is_another(
    home: Path, checkout: Path, worktree: Path, call: Run
) -> None:
    write_both(home, worktree)
    assert found_sessions(call) == {"c-1", "r-1"}
    git(checkout, "worktree", "remove", str(worktree))
    create_cookie_checkout(worktree)
    assert found_sessions(call) == set()


def test_a_git_file_that_only_claims_to_be_a_worktree_is_none(
    home: Path, checkout: Path, worktree: Path, tmp_path: Path, call: Run
) -> None:
    forged = tmp_path / "forged"
    forged.mkdir()
    shutil.copy(worktree / ".git", forged / ".git")
    write_both(home, forged)
    assert found_sessions(call) == set()
