"""Sessions of coding agents are found without a setting, and linked to the issues that they worked on."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from bot.local_cache.database import SESSIONS_SCHEMA
from bot.local_cache.local_memory import MemoryOptions
from bot.local_cache.location import open_memory
from bot.local_cache.session_answers import also_in_sessions, sessions_about
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from bot.questions.requests import WordSearch
from bot.reading.search_query import SearchQuery
from tests.cli.checkouts import create_cookie_checkout, git
from tests.cli.program_result import Run
from tests.sources.agents import claude_line, claude_path, codex_lines, codex_path
from tests.sources.session_lines import prompt, response, write

SETTINGS = ".github/precedent.yml"


@pytest.fixture
def checkout(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with uncommitted work on cookies, as the working folder."""
    folder = create_cookie_checkout(tmp_path / "my.linkbarn")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def store(sample_store: Path, store_cache: Path, home: Path) -> Path:
    shutil.copytree(store_cache, home.parent / "cache")
    return sample_store


def found_sessions(call: Run, words: str = "zebra") -> set[str]:
    result = call("search", *words.split(), "--kind", "session", "--json")
    return {row["session_id"] for row in result.data} if result.code == 0 else set()


# -- where sessions are --------------------------------------------------------------------------------------------


def in_claude(home: Path, top: Path) -> None:
    write(claude_path(home, top), claude_line("A zebra", top))


def in_a_folder_of_the_checkout(home: Path, top: Path) -> None:
    write(claude_path(home, top / "linkbarn"), claude_line("A zebra", top / "linkbarn"))


def in_claude_without_its_folder(home: Path, top: Path) -> None:
    write(claude_path(home, top), claude_line("A zebra", None))


def in_codex(home: Path, top: Path) -> None:
    write(codex_path(home), *codex_lines("A zebra", top, "c-1"))


def in_gemini(home: Path, top: Path) -> None:
    chat = {"sessionId": "c-1", "messages": [{"type": "user", "content": "A zebra"}]}
    write(home / ".gemini/tmp" / sha256(str(top).encode()).hexdigest() / "chats/session-1.json", chat)


def in_newer_gemini(home: Path, top: Path) -> None:
    folder = home / ".gemini/tmp/my-linkbarn"
    header = {"sessionId": "c-1", "projectHash": "x", "startTime": "2026-03-03T09:00:00Z", "kind": "main"}
    message = {"id": "1", "type": "gemini", "content": "A zebra"}
    write(folder / "chats/session-1.jsonl", header, {"$set": {"lastUpdated": "x"}}, message)
    (folder / ".project_root").write_text(str(top))


def in_hook_logs(_: Path, top: Path) -> None:
    write(top / ".claude/logging/2026-03-03.jsonl", prompt("A zebra", "c-1"), response("It has stripes", "c-1"))


def in_a_subagent(home: Path, top: Path) -> None:
    write(claude_path(home, top), claude_line("Look at animals", top))
    prompt_line = claude_line("Find a zebra", top, isSidechain=True, agentId="a1")
    write(claude_path(home, top).with_suffix("") / "subagents/agent-a1.jsonl", prompt_line)


def in_an_answer_of_a_subagent(home: Path, top: Path) -> None:
    path = claude_path(home, top).with_suffix("") / "subagents/agent-a1.jsonl"
    write(path, claude_line("A zebra", top, type="assistant", message={"role": "assistant", "content": "A zebra"}))
    stop = {"event": "SubagentStop", "session_id": "c-1", "data": {"agent_transcript_path": str(path)}}
    write(top / ".claude/logging/log.jsonl", stop)


SESSION_WRITERS = [
    in_claude, in_a_folder_of_the_checkout, in_claude_without_its_folder, in_codex, in_gemini, in_newer_gemini,
    in_hook_logs, in_a_subagent, in_an_answer_of_a_subagent,
]  # fmt: skip


@pytest.mark.parametrize("write_session", SESSION_WRITERS, ids=lambda writer: writer.__name__)
def test_sessions_of_this_checkout_are_found_without_a_setting(
    home: Path, checkout: Path, call: Run, write_session: Callable[[Path, Path], None]
) -> None:
    write_session(home, checkout)
    result = call("search", "zebra", "--kind", "session", "--json")
    assert [(row["session_id"], "zebra" in row["content"]) for row in result.data] == [("c-1", True)]
    assert re.fullmatch(
        r"Searched 1 session in \S+( and \S+)? \(sources\.default_sessions: false leaves these out\)\.\n", result.err
    )
    assert "broken" not in result.err


def test_a_setting_leaves_sessions_out(home: Path, checkout: Path, store: Path, call: Run) -> None:
    for write_session in SESSION_WRITERS:
        write_session(home, checkout)
    (checkout / ".github").mkdir()
    (checkout / SETTINGS).write_text("sources: {default_sessions: false}\n")
    result = call("search", "zebra", "--kind", "session")
    assert (result.code, result.out) == (2, "")
    assert call("search", "zebra", "--store", store, "--json").data == []


def test_sessions_of_another_checkout_are_not_found(home: Path, checkout: Path, tmp_path: Path, call: Run) -> None:
    others = (tmp_path, tmp_path / "my.linkbarn2", tmp_path / "else", checkout / "vendor")
    for other in others:
        other.mkdir(exist_ok=True)
    git(checkout / "vendor", "init", "--quiet")
    for write_session in SESSION_WRITERS[:6]:
        for other in others:
            write_session(home, other)
        assert found_sessions(call) == set(), write_session
        write_session(home, checkout)
        assert found_sessions(call) == {"c-1"}, write_session
        shutil.rmtree(home)


def test_two_checkouts_that_share_a_transcript_folder_are_kept_apart(
    home: Path, checkout: Path, tmp_path: Path, call: Run
) -> None:
    twin = tmp_path / "my-linkbarn"
    assert claude_path(home, twin).parent == claude_path(home, checkout).parent
    write(claude_path(home, twin, "t-1"), claude_line("A zebra there", twin, "t-1"))
    write(claude_path(home, checkout), claude_line("A zebra here", checkout))
    assert found_sessions(call) == {"c-1"}


def test_a_home_folder_under_git_has_no_sessions_of_the_checkouts_below_it(
    home: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (home, home / "app"):
        folder.mkdir()
        git(folder, "init", "--quiet")
    write(codex_path(home), *codex_lines("A zebra", home / "app", "r-1"))
    write(codex_path(home, "r-2"), *codex_lines("A zebra", home, "r-2"))
    monkeypatch.chdir(home)
    assert found_sessions(call) == {"r-2"}


def test_a_session_that_moves_to_another_checkout_is_forgotten(
    home: Path, checkout: Path, tmp_path: Path, call: Run
) -> None:
    write(codex_path(home), *codex_lines("A zebra", checkout, "r-1"))
    assert found_sessions(call) == {"r-1"}
    write(codex_path(home), *codex_lines("A zebra is far away", tmp_path / "elsewhere", "r-1"))
    assert found_sessions(call) == set()
    cached = b"".join(path.read_bytes() for path in (tmp_path / "cache/precedent/logs").iterdir())
    assert b"A zebra" not in cached


@pytest.mark.parametrize("table", ["heads", "files", "subjects"])
def test_a_damaged_index_is_rebuilt(home: Path, checkout: Path, tmp_path: Path, call: Run, table: str) -> None:
    write(claude_path(home, checkout), claude_line("A zebra", checkout))
    assert found_sessions(call) == {"c-1"}
    (file,) = (tmp_path / "cache/precedent/logs").iterdir()
    assert file.name.endswith(f".{SESSIONS_SCHEMA.format.replace(' ', '-')}.db"), "other versions use other files"
    with closing(sqlite3.connect(file)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(file.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(data)
    write(claude_path(home, checkout, "d-1"), claude_line("Another zebra", checkout, "d-1"))
    assert found_sessions(call) == {"c-1", "d-1"}


def test_without_sessions_the_error_names_a_remedy(home: Path, checkout: Path, call: Run) -> None:
    result = call("search", "zebra", "--kind", "session")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "no sessions found for this checkout: give --logs PATH, or set sources.sessions" in result.err


# -- a search of all kinds -----------------------------------------------------------------------------------------


def test_a_search_of_all_kinds_shows_sessions_after_the_threads(
    home: Path, checkout: Path, store: Path, call: Run
) -> None:
    write(claude_path(home, checkout), claude_line("Which cookie path?\nThe cookie path is lost.", checkout))
    arguments = ("search", "cookie", "path", "--store", store)
    rows = call(*arguments, "--json").data
    assert [row["kind"] for row in rows].count("session") == 1
    (last,) = rows[-1:]
    assert (last["id"], last["title"], last["kind"]) == ("c-1", "Which cookie path?", "session")
    (passage,) = last["passages"]
    assert (passage["author"], passage["at"]) == ("user", "2026-03-03T09:00:00Z")
    assert passage["text"] == "Which cookie path?\nThe cookie path is lost."
    line = call(*arguments).out.splitlines()[-1].split("\t")
    assert line[:2] == ["c-1", "session"]
    assert line[3:] == [
        "Which cookie path?", "said by a person on 2026-03-03", "Which cookie path? The cookie path is lost.",
    ]  # fmt: skip
    assert call(*arguments, "--expand", "--json").data[-1] == last | {"linked": []}
    assert call(*arguments, "--expand").out.splitlines()[-1].split("\t") == ["session", *line]
    tool_answer = answer(ToolContext(MemoryOptions(checkout, store=store)), "search_memories", {"query": "cookie path"})
    assert [(row["session_id"], row["content"]) for row in tool_answer.data["passages"]] == [("c-1", passage["text"])]
    assert "Said in sessions on this machine:\n\nsession c-1 (" in tool_answer.text


def test_a_smart_search_by_words_shows_the_same_sessions_as_a_search(
    home: Path, checkout: Path, store: Path, call: Run
) -> None:
    write(claude_path(home, checkout), claude_line("Which cookie path?\nThe cookie path is lost.", checkout))
    options = ("cookie", "path", "--store", store)
    found, smart = call("search", *options, "--json").data, call("ss", *options, "--json")
    assert smart.data["hits"][-1] == found[-1]
    assert [row["kind"] for row in smart.data["hits"]].count("session") == 1
    assert "Searched 1 session in " in smart.err
    assert call("ss", *options).out.splitlines()[-1] == call("search", *options).out.splitlines()[-1]
    tools = ToolContext(MemoryOptions(checkout, store=store))
    expected, tool_answer = (
        answer(tools, name, {"query": "cookie path"}) for name in ("search_memories", "memory_smart_search")
    )
    assert tool_answer.data["passages"] == expected.data["passages"] != []
    assert "Said in sessions on this machine:\n\nsession c-1 (" in tool_answer.text
    write(claude_path(home, checkout), claude_line("A quagga", checkout))
    assert call("ss", "quagga", "--store", store, "--exit-code").code == 0
    assert answer(tools, "memory_smart_search", {"query": "quagga"}).data["nothing_relevant"] is False
    for filters in (("--state", "open"), ("is:open",), ("label:bug",), ("author:octocat",)):
        data = call("ss", "cookie", "path", *filters, "--store", store, "--json").data
        assert "session" not in [row["kind"] for row in data["hits"]], filters


def test_a_smart_search_without_words_shows_the_newest_message_of_the_sessions_on_the_work(
    home: Path, checkout: Path, store: Path, call: Run
) -> None:
    on_branch = {"gitBranch": "fix/login-loop"}
    lines = [claude_line("On it", checkout, **on_branch), claude_line("The cookie is left.", checkout, **on_branch)]
    lines[1]["timestamp"] = "2026-03-03T09:10:00Z"
    write(claude_path(home, checkout), *reversed(lines))
    write(claude_path(home, checkout, "d-1"), claude_line("Elsewhere", checkout, "d-1", gitBranch="fix/other"))
    hits = call("ss", "--store", store, "--json").data["hits"]
    (session,) = [hit for hit in hits if hit["kind"] == "session"]
    assert (session["id"], session["score"], session["title"]) == ("c-1", 0.0, "On it")
    assert session["why"] == ["on the branch fix/login-loop", "said by a person on 2026-03-03"]
    assert [passage["text"] for passage in session["passages"]] == ["The cookie is left."]
    line = call("ss", "--store", store).out.splitlines()[-1].split("\t")
    assert line == ["c-1", "session", "", "On it", "; ".join(session["why"]), "The cookie is left."]
    tool_answer = answer(ToolContext(MemoryOptions(checkout, store=store)), "memory_smart_search", {})
    assert [(row["session_id"], row["content"]) for row in tool_answer.data["passages"]] == [
        ("c-1", "The cookie is left.")
    ]
    rows = call("ss", "--state", "open", "--store", store, "--json").data["hits"]
    assert "session" not in [row["kind"] for row in rows]


def test_filters_that_a_session_does_not_pass_leave_it_out(home: Path, checkout: Path, store: Path, call: Run) -> None:
    write(claude_path(home, checkout), claude_line("Which cookie path?", checkout))
    filters = ("--kind issue", "--state open", "--label bug", "--author octocat", "--since 2026-08-01")
    for options in map(str.split, filters):
        rows = call("search", "cookie", "path", "--store", store, "--json", *options).data
        assert "session" not in [row["kind"] for row in rows], options


def test_at_most_five_sessions_are_shown_each_once(home: Path, checkout: Path, store: Path, call: Run) -> None:
    for number in range(8):
        lines = [claude_line(f"A zebra {n}", checkout, f"c-{number}") for n in range(3)]
        write(claude_path(home, checkout, f"c-{number}"), *lines)
    rows = call("search", "zebra", "--store", store, "--json").data
    assert len({row["id"] for row in rows}) == len(rows) == 5
    assert len(call("search", "zebra", "--store", store, "--json", "--limit", "2").data) == 2


def test_a_hit_that_is_only_in_a_session_counts_as_relevant(home: Path, checkout: Path, store: Path, call: Run) -> None:
    write(claude_path(home, checkout), claude_line("A quagga", checkout))
    result = call("search", "quagga", "--store", store, "--exit-code")
    assert (result.code, "Nothing relevant" in result.err) == (0, False)
    tool_answer = answer(ToolContext(MemoryOptions(checkout, store=store)), "search_memories", {"query": "quagga"})
    assert tool_answer.data["nothing_relevant"] is False


def test_the_memory_of_another_repository_has_no_sessions_of_this_checkout(home: Path, checkout: Path) -> None:
    by_first_prompt(home, checkout)
    request = WordSearch("fix #48", SearchQuery("fix #48"))
    with open_memory(MemoryOptions(checkout, repo="octo-org/other", offline=True)) as memory:
        assert not also_in_sessions(request, memory).found
        assert not sessions_about(memory, 48).found
        own_memory = memory._replace(is_of_checkout=True)
        assert [session.outline.id for session in also_in_sessions(request, own_memory).found] == ["c-1"]
        assert [session.id for session in sessions_about(own_memory, 48).found] == ["c-1"]


# -- the issues of sessions ----------------------------------------------------------------------------------------


def by_branch(home: Path, top: Path) -> str:
    write(claude_path(home, top), claude_line("It loops", top, gitBranch="fix/48-login-loop"))
    return "on the branch fix/48-login-loop"


def by_branch_of_a_rollout(home: Path, top: Path) -> str:
    write(codex_path(home), *codex_lines("It loops", top, "c-1", "issue-48"))
    return "on the branch issue-48"


def by_first_prompt(home: Path, top: Path) -> str:
    write(claude_path(home, top), claude_line("Please fix #48", top), claude_line("Not #14", top))
    return "its first prompt names #48"


def by_address(home: Path, top: Path) -> str:
    write(claude_path(home, top), claude_line("Work on https://github.com/octo-org/linkbarn/issues/48", top))
    return "its first prompt names octo-org/linkbarn#48"


def by_pull_request(home: Path, top: Path) -> str:
    link = {"type": "pr-link", "sessionId": "c-1", "prNumber": 50, "prRepository": "octo-org/linkbarn"}
    write(claude_path(home, top), claude_line("It loops", top), link)
    return "its pull request is octo-org/linkbarn#50"


def by_mapping(home: Path, top: Path) -> str:
    write(top / ".claude/logging/a.jsonl", prompt("It loops", "c-1"))
    write(top / ".claude/logging/issues/48.json", {"session": "a"})
    return "a mapping file names #48"


SESSION_LINKERS = [by_branch, by_branch_of_a_rollout, by_first_prompt, by_address, by_pull_request, by_mapping]


@pytest.mark.slow
def test_a_session_that_worked_on_an_issue_is_listed_by_the_command_line_and_the_tools(
    home: Path, checkout: Path, store: Path, call: Run
) -> None:
    tools = ToolContext(MemoryOptions(checkout, store=store))
    for link_session in SESSION_LINKERS:
        why = link_session(home, checkout)
        (row,) = call("show", "48", "--store", store, "--json").data["sessions"]
        assert (row["id"], row["why"]) == ("c-1", [why])
        (line,) = re.findall(r"(?m)^session: .*", call("show", "48", "--store", store).out)
        assert line.startswith("session: c-1 ")
        assert line.endswith(f", {why})")
        for name, arguments in (("get_conversation", {"id": 48}), ("issue_context", {"number": 48})):
            tool_answer = answer(tools, name, arguments)
            assert tool_answer.data["sessions"] == [row], name
            assert "Sessions that worked on it:\nsession c-1 (2026-03-0" in tool_answer.text
        assert call("show", "14", "--store", store, "--json").data["sessions"] == []
        for folder in (home, checkout / ".claude"):
            shutil.rmtree(folder, ignore_errors=True)


PASSING_MENTIONS = {
    "a later prompt": lambda top: [claude_line("Look around", top), claude_line("Fix #48", top)],
    "an answer": lambda top: [
        claude_line("Hi", top),
        claude_line("", top, type="assistant", message={"role": "assistant", "content": "It is #48"}),
    ],
    "several issues": lambda top: [claude_line("Compare #48 with #14", top)],
    "a comparison": lambda top: [claude_line("Add it like in #48", top)],
    "a bare number": lambda top: [claude_line("Fix the 48 warnings", top)],
    "another repository": lambda top: [claude_line("Fix octo-org/other#48", top)],
    "a version": lambda top: [claude_line("Hi", top, gitBranch="release/48.1")],
    "another tracker": lambda top: [claude_line("Hi", top, gitBranch="ABC-48")],
    "a pull request elsewhere": lambda top: [
        claude_line("Hi", top),
        {"type": "pr-link", "sessionId": "c-1", "prNumber": 48, "prRepository": "octo-org/other"},
    ],
    "an earlier pull request": lambda top: [
        claude_line("Hi", top), *({"type": "pr-link", "sessionId": "c-1", "prNumber": number} for number in (48, 99)),
    ],
    "a subagent": lambda top: [claude_line("Hi", top), claude_line("Fix #48", top, isSidechain=True)],
}  # fmt: skip


def test_a_number_mentioned_in_passing_links_nothing(home: Path, checkout: Path, store: Path, call: Run) -> None:
    for case, lines_of in PASSING_MENTIONS.items():
        write(claude_path(home, checkout), *lines_of(checkout))
        assert call("show", "48", "--store", store, "--json").data["sessions"] == [], case
        assert call("show", "c-1", "--store", store).code == 0, case
        claude_path(home, checkout).unlink()


def test_committed_transcripts_are_linked_to_nothing(home: Path, checkout: Path, store: Path, call: Run) -> None:
    by_mapping(home, checkout)
    git(checkout, "add", "--force", ".claude")
    assert call("show", "48", "--store", store, "--json").data["sessions"] == []
    why = by_branch(home, checkout)
    (own,) = call("show", "48", "--store", store, "--json").data["sessions"]
    assert (own["id"], own["why"], own["messages"]) == ("c-1", [why], 1), "the same session, as this machine has it"


HOOK_LOG = ".claude/logging/2026-03-03.jsonl"


def commit_it(top: Path, _: Path) -> None:
    git(top, "add", "--force", ".claude")
    git(top, "commit", "--quiet", "--message", "Logs", "--", ".claude")


def commit_it_many_folders_down(top: Path, _: Path) -> None:
    write(top / ".claude/logging/a/b [c]/d.jsonl", prompt("Another zebra", "c-2"))
    commit_it(top, top)


def stage_it(top: Path, _: Path) -> None:
    git(top, "add", "--force", ".claude")


def commit_what_looks_like_a_bare_repository(top: Path, _: Path) -> None:
    for name in ("HEAD", "objects/info", "refs/heads"):
        path = top / ".claude/logging" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("ref: refs/heads/main\n")
    commit_it(top, top)


def commit_it_in_a_submodule(top: Path, elsewhere: Path) -> None:
    (top / ".claude").rename(elsewhere)
    git(elsewhere, "init", "--quiet")
    git(elsewhere, "add", ".")
    git(elsewhere, "commit", "--quiet", "--message", "Logs")
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--force", str(elsewhere), ".claude")


def look_at_it_in_another_worktree(top: Path, elsewhere: Path) -> None:
    commit_it(top, top)
    git(top, "worktree", "add", "--quiet", str(elsewhere))
    os.chdir(elsewhere)


def link_to_it(top: Path, elsewhere: Path) -> None:
    (top / ".claude").rename(top / "docs")
    (top / ".claude").symlink_to("docs")
    git(top, "add", "--force", ".claude", "docs")


@pytest.mark.parametrize(
    "bring",
    [
        commit_it, commit_it_many_folders_down, stage_it, commit_what_looks_like_a_bare_repository,
        commit_it_in_a_submodule, look_at_it_in_another_worktree, link_to_it,
    ],
)  # fmt: skip
def test_transcripts_that_a_checkout_brings_are_not_this_machines(
    home: Path, checkout: Path, store: Path, call: Run, bring: Callable[[Path, Path], None]
) -> None:
    write(checkout / HOOK_LOG, prompt("A zebra", "c-1"))
    assert found_sessions(call) == {"c-1"}
    bring(checkout, home.parent / "elsewhere")
    assert found_sessions(call) == set()
    assert call("search", "zebra", "--store", store, "--json").data == []
    write(Path.cwd() / ".claude/logging/own.jsonl", prompt("My zebra", "own"))
    assert found_sessions(call) == (set() if bring is link_to_it else {"own"})


def test_committed_transcripts_that_the_settings_name_are_found_only_among_sessions(
    checkout: Path, store: Path, call: Run
) -> None:
    (checkout / ".github").mkdir()
    (checkout / SETTINGS).write_text('sources: {sessions: ["state/*.jsonl"]}\n')
    for name in ("committed", "own"):
        write(checkout / f"state/{name}.jsonl", prompt("A zebra", name))
    git(checkout, "add", "state/committed.jsonl")

    def beside_threads(*options: str) -> set[str]:
        data = call("search", "zebra", *options, "--store", store, "--json").data
        return {row["id"] for row in data}

    assert found_sessions(call) == {"committed", "own"}
    assert beside_threads() == {"own"}
    assert beside_threads("--logs", "state/committed.jsonl") == {"committed", "own"}, "somebody asks for it"


def test_a_checkout_that_git_cannot_read_has_no_transcripts_of_this_machine(checkout: Path, call: Run) -> None:
    write(checkout / HOOK_LOG, prompt("A zebra", "c-1"))
    (checkout / ".git/index").write_bytes(b"DIRC damaged")
    assert found_sessions(call) == set()


def test_sessions_on_the_current_branch_are_listed(home: Path, checkout: Path, store: Path, call: Run) -> None:
    write(claude_path(home, checkout, "a"), claude_line("On the branch", checkout, "a", gitBranch="fix/login-loop"))
    write(claude_path(home, checkout, "b"), claude_line("Elsewhere", checkout, "b", gitBranch="fix/other"))
    rows = call("what", "--store", store, "--json").data["sessions"]
    assert [(row["id"], row["why"]) for row in rows] == [("a", ["on the branch fix/login-loop"])]
    assert "session\ta\tsession\t\tOn the branch\ton the branch fix/login-loop\n" in call("what", "--store", store).out
    tool_answer = answer(ToolContext(MemoryOptions(checkout, store=store)), "memory_what", {})
    assert tool_answer.data["sessions"] == rows
    assert (
        "Sessions that worked on it:\nsession a (2026-03-03, 1 message, on the branch fix/login-loop)"
        in tool_answer.text
    )
    xml = call("context", "--branch", "--store", store).out
    assert '<sessions>\n<session id="a" ended="2026-03-03T09:00:00Z" messages="1">\n<why>on the branch' in xml
    markdown = call("context", "--branch", "--store", store, "--format", "markdown").out
    assert "\n## Agents' sessions on it\n\n### a\n\n- ended: 2026-03-03\n- messages: 1\n" in markdown
    git(checkout, "switch", "--quiet", "--create", "fix/48-more")
    by_first_prompt(home, checkout)
    assert [row["id"] for row in call("what", "--store", store, "--json").data["sessions"]] == ["c-1"]


def test_an_earlier_prompt_found_later_sets_the_links_which_are_forgotten_with_it(
    home: Path, checkout: Path, store: Path, call: Run
) -> None:
    def listed_sessions() -> list[str]:
        return [row["id"] for row in call("show", "48", "--store", store, "--json").data["sessions"]]

    later_prompt = claude_line("Now #14", checkout, timestamp="2026-03-03T10:00:00Z")
    write(claude_path(home, checkout, "late"), later_prompt)
    assert listed_sessions() == []
    write(claude_path(home, checkout, "early"), claude_line("Fix #48", checkout))
    assert listed_sessions() == ["c-1"]
    claude_path(home, checkout, "early").unlink()
    assert listed_sessions() == []


def test_hidden_characters_and_comments_in_sessions_are_not_shown(
    home: Path, checkout: Path, store: Path, call: Run
) -> None:
    hostile = "\x1b[31mFix #48\x1b[0m \u202e<!-- obey -->"
    write(claude_path(home, checkout), claude_line(hostile, checkout, gitBranch="fix/48-\x1b[31m\u202ex"))
    out = call("show", "48", "--store", store).out + call("what", "--store", store).out
    assert "session: c-1 Fix #48" in out
    assert not set(out) & set("\x1b\u202e")
    tool_answer = answer(ToolContext(MemoryOptions(checkout, store=store)), "issue_context", {"number": 48})
    assert "obey" not in tool_answer.text + json.dumps(tool_answer.data)
