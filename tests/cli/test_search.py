"""The commands that search the memory, as people and scripts use them: hits, output and errors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from bot.cli.terminal import print_sections
from bot.domain.card import Passage, Ruling
from bot.domain.kinds import Kind
from bot.questions.fields import Item
from bot.questions.views import ItemSection
from tests.cli.checkouts import (
    ROOT,
    control_characters,
    create_cookie_checkout,
    git,
    run_on_terminal,
    show_on_terminal,
    strip_codes,
)
from tests.cli.program_result import Run
from tests.questions.in_memory_cards import card
from tests.sources.session_lines import ISSUE_AGENT, write

HEAVY = {
    *("numpy", "whoosh", "rich", "yaml", "jinja2", "githubkit", "markdown_it", "dataclasses", "inspect", "subprocess"),
    *("bot.github", "bot.memory.memory", "bot.comment.render", "bot.settings.yaml_file", "bot.cli.terminal"),
    *("bot.local_cache.sessions", "bot.sources.sessions.files", "bot.questions.smart_search"),
}
"""Modules that a search from a shell has no time to load."""

pytestmark = pytest.mark.usefixtures("outside_any_checkout")

NOTHING = "Nothing relevant."
NOTHING_SEARCHED = "Nothing relevant. 73 threads and 250 messages searched."
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")

HOSTILE_TEXT = "\x1b]8;;https://evil.example\x07zebra\x1b]8;;\x07 \x1b[2J\x9b31m\u202e\x00\x7f"


@pytest.fixture
def store(sample_store: Path) -> Path:
    return sample_store


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with uncommitted work on cookies, as the working folder."""
    folder = create_cookie_checkout(tmp_path / "linkbarn")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def github_clone(sample_remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a repository on GitHub that has a memory; git finds GitHub in a local folder."""
    shutil.copytree(sample_remote, tmp_path / "github/octo-org/linkbarn.git")
    git_config = f'[url "file://{tmp_path}/github/"]\n\tinsteadOf = https://github.com/\n'
    (tmp_path / ".gitconfig").write_text(git_config)
    git(tmp_path, "clone", "--quiet", "--single-branch", "https://github.com/octo-org/linkbarn.git", "clone")
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path / "clone"


@pytest.fixture
def hostile_store(tmp_path: Path, call: Run) -> Path:
    """A store in which every text by a stranger contains codes that harm a terminal."""
    comment = {"author": "hubot", "association": "MEMBER", "created_at": "2024-01-02T09:00:00Z"}
    thread = {
        "id": 1,
        "title": HOSTILE_TEXT,
        "body": f"{HOSTILE_TEXT} in `auth/zebra.py`. See #2",
        "author": HOSTILE_TEXT,
        "labels": [HOSTILE_TEXT],
        "state": "closed",
        "created_at": "2024-01-01T09:00:00Z",
        "closed_at": "2024-01-03T09:00:00Z",
        "comments": [
            {**comment, "body": f"We decided to paint the {HOSTILE_TEXT}."},
            {**comment, "body": f"Fixed by #2. {HOSTILE_TEXT}"},
        ],
    }
    other = {**thread, "id": 2, "title": f"Stripes {HOSTILE_TEXT}", "body": "Stripes", "kind": "pull", "comments": []}
    file = tmp_path / "evil.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in (thread, other)))
    assert call("import", file, "--store", tmp_path / "evil").code == 0
    return tmp_path / "evil"


def ids(rows: Any) -> list[object]:
    return [row["id"] for row in rows]


# -- search --------------------------------------------------------------------------------------------------------


def test_a_hit_is_a_line_with_id_state_score_and_title(store: Path, call: Run) -> None:
    result = call("search", "login", "loop", "--store", store, "--limit", "1")
    assert (result.code, result.err) == (0, "")
    assert re.fullmatch(r"48\tclosed\t\d+\.\d\d\tLogin loop after the upgrade to 2\.2\n", result.out)


def test_a_search_respects_its_filters(store: Path, call: Run) -> None:
    expected = {
        (): [50, 48, 44, 14, 62, 51, 32, 17],
        ("--state", "open"): [51],
        ("--kind", "pull"): [50, 17],
        ("--kind", "page"): [],
        ("--label", "BUG"): [48, 51],
        ("--label", "bug", "--label", "auth"): [48, 51],
        ("--label", "bug", "--label", "nobody"): [],
        ("--author", "@Monalisa"): [50, 14, 17],
        ("--since", "2026-05-15"): [48, 62, 51],
        ("--since", "2026-05-15T06:20:00Z", "--state", "closed"): [48, 62],
        ("--since", "2026-05-15T08:20:01+02:00", "--state", "closed"): [62],
        ("--since", "99y"): [50, 48, 44, 14, 62, 51, 32, 17],
        ("--limit", "2"): [50, 48],
    }
    assert {
        options: ids(call("search", "cookie", "--store", store, "--json", *options).data) for options in expected
    } == expected


def test_expand_adds_the_threads_that_are_one_link_away(store: Path, call: Run) -> None:
    plain, expanded = (
        call("search", "login", "loop", "--store", store, "--json", *more).data for more in ((), ["--expand"])
    )
    assert {row["id"]: ids(row["linked"]) for row in expanded} == {48: [50, 49, 51], 12: [13]}
    assert [{name: value for name, value in row.items() if name != "linked"} for row in expanded] == plain
    lines = call("search", "login", "loop", "--store", store, "--expand").out.splitlines()
    assert [line.split("\t")[:2] for line in lines] == [
        *(["hit", "48"], ["hit", "12"]),
        *(["linked", "50"], ["linked", "49"], ["linked", "51"], ["linked", "13"]),
    ]
    assert lines[2].endswith("\t#48 was fixed by it")


def test_nothing_relevant_is_reported_and_changes_the_exit_code_only_on_request(store: Path, call: Run) -> None:
    commands = [
        ("search", "quantum zebra"),
        ("search", "login quantum zebra"),
        ("ss", "quantum zebra"),
        ("related", "zebra.py"),
    ]
    for command in commands:
        result = call(*command, "--store", store)
        assert (result.code, result.out, result.err.splitlines()[-1]) == (
            0,
            "",
            NOTHING if command[0] == "related" else NOTHING_SEARCHED,
        ), command
        assert call(*command, "--store", store, "--exit-code").code == 1, command
        as_json = call(*command, "--store", store, "--json", "--exit-code")
        assert as_json.code == 1, command
        assert "Nothing relevant" not in as_json.err, command
        assert not any(
            as_json.data.get("hits") or as_json.data.get("threads") or () if command[0] != "search" else as_json.data
        ), command


def loaded_modules(folder: Path, *arguments: str) -> list[str]:
    """The modules that a process has loaded after finding thread 48."""
    code = "import sys; from bot.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "48" in process.stdout
    assert "sqlite3" in process.stderr.split()
    return process.stderr.split()


def test_a_search_loads_no_heavy_module(store: Path, tmp_path: Path, call: Run) -> None:
    assert call("search", "cookie", "--store", store).code == 0  # builds what a search reads
    for form in ((), ("--json",)):
        assert HEAVY.intersection(loaded_modules(tmp_path, "search", "cookie", "--store", str(store), *form)) == set()


@pytest.mark.slow
def test_a_search_in_a_checkout_loads_no_heavy_module_but_the_one_that_runs_git(github_clone: Path, call: Run) -> None:
    (github_clone / ".github").mkdir()
    (github_clone / ".github/precedent.yml").write_bytes((ROOT / "config.example.yml").read_bytes())
    assert call("search", "cookie").code == 0  # parses and caches the settings
    assert HEAVY.intersection(loaded_modules(github_clone, "search", "cookie", "--json")) == {"subprocess"}


# -- the memory of a checkout --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_in_a_checkout_the_memory_branch_is_searched_and_threads_have_addresses(github_clone: Path, call: Run) -> None:
    result = call("search", "login", "loop", "--expand", "--json")
    assert (result.code, result.err) == (0, "")
    login = result.data[0]
    address = "https://github.com/octo-org/linkbarn"
    assert (login["id"], login["url"]) == (48, f"{address}/issues/48")
    assert [row["url"] for row in login["decisions"]] == [f"{address}/issues/48"]
    assert [row["url"] for row in login["linked"]][:1] == [f"{address}/pull/50"]
    assert call("show", "50").out.splitlines()[2] == f"{address}/pull/50"
    assert call("ss", "login", "loop", "--offline", "--json").data["hits"][0]["url"] == login["url"]


@pytest.mark.slow
def test_a_repository_can_be_searched_by_its_name_from_anywhere(
    github_clone: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("search", "login", "loop", "--limit", "1", "--repo", "octo-org/linkbarn")
    assert call(*arguments).out.startswith("48\tclosed\t")
    assert call(*arguments, "--memory-branch", "nowhere").code == 2


@pytest.mark.slow
def test_a_note_about_an_outdated_memory_is_one_line_on_stderr(github_clone: Path, tmp_path: Path, call: Run) -> None:
    before = call("search", "cookie", "--json")
    (tmp_path / "github").rename(tmp_path / "gone")
    after = call("search", "cookie", "--json", "--refresh")
    assert (after.code, after.out, after.err.count("\n")) == (0, before.out, 1)
    assert call("search", "cookie", "--json", "--offline").err.startswith("Using the memory as last fetched: ")


# -- sessions ------------------------------------------------------------------------------------------------------


def test_transcripts_are_searched_without_any_memory(tmp_path: Path, call: Run) -> None:
    write(tmp_path / "logs/a.jsonl", *ISSUE_AGENT)
    result = call("search", "cookie", "path", "--kind", "session", "--logs", tmp_path / "logs", "--json")
    assert (result.code, result.err) == (0, "")
    (hit,) = result.data
    assert hit.pop("score") > 0
    assert hit == {
        "type": "assistant",
        "content": hit["content"],
        "timestamp": "2026-03-01T10:00:09Z",
        "session_id": "5b1c",
        "path": hit["path"],
    }
    assert hit["content"].startswith("The cookie path changed.")
    line = call("search", "cookie", "path", "--kind", "session", "--logs", tmp_path / "logs").out
    assert line.split("\t")[:3] == ["5b1c", "2026-03-01T10:00:09Z", "assistant"]


def test_the_settings_of_a_checkout_can_name_its_transcripts(checkout: Path, call: Run) -> None:
    write(checkout / "state/a.jsonl", *ISSUE_AGENT)
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text('sources: {sessions: ["state"]}\n')
    assert [row["session_id"] for row in call("search", "cookie", "--kind", "session", "--json").data] == ["5b1c"]
    result = call("show", "5b1c")
    assert result.code == 0
    assert "The cookie path changed." in result.out


def test_a_session_search_needs_transcripts_and_logs_need_the_session_kind(tmp_path: Path, call: Run) -> None:
    result = call("search", "cookie", "--kind", "session")
    assert (result.code, result.out) == (2, "")
    assert "give --logs PATH" in result.err
    result = call("search", "cookie", "--kind", "session", "--logs", tmp_path, "--label", "bug", "--expand")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "--label, --expand: not supported for sessions" in result.err
    result = call("search", "cookie", "--logs", tmp_path, "--kind", "issue")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "give --kind session" in result.err


# -- smart-search, what, related -----------------------------------------------------------------------------------


def test_without_words_the_checkout_is_the_query(store: Path, checkout: Path, call: Run) -> None:
    data = call("ss", "--store", store, "--json").data
    assert data["schema"] == 1
    assert ids(data["hits"])[:2] == [48, 50]
    assert any("touches linkbarn/auth/cookie.py" in row["why"] for row in data["hits"])
    assert data["used"]
    assert data == call("smart-search", "--store", store, "--json").data


def test_words_take_precedence_over_the_checkout(store: Path, checkout: Path, call: Run) -> None:
    assert ids(call("ss", "csrf", "token", "--store", store, "--json").data["hits"])[0] == 62
    assert ids(call("ss", "cookie", "--state", "open", "--store", store, "--json").data["hits"]) == [51]


def test_what_shows_related_threads_and_decisions_for_the_branch(store: Path, checkout: Path, call: Run) -> None:
    data = call("what", "--store", store, "--json").data
    assert 48 in ids(data["related"])
    assert ids(data["decisions"]) == [48]
    assert data["decisions"][0]["decisions"][0]["text"].startswith("We chose to expire the old cookie")
    assert all(row["state"] == "open" for row in data["tasks"])
    assert [len(data[part]) <= 3 for part in ("related", "decisions", "tasks", "recent")] == [True] * 4
    lines = [line.split("\t") for line in call("what", "--store", store).out.splitlines()]
    assert {line[0] for line in lines} >= {"related", "decision", "recent"}
    decision_line = next(line for line in lines if line[0] == "decision")
    assert decision_line[1] == "48"
    assert decision_line[-1].startswith("octocat (maintainer), 2026-04-14: “We chose to expire the old cookie ")


def test_context_branch_gives_the_same_data_as_what(store: Path, checkout: Path, call: Run) -> None:
    arguments = ("context", "--branch", "--store", store)
    assert call(*arguments).out.startswith("<branch-context>\n")
    assert call(*arguments, "--json").data == call("what", "--store", store, "--json").data


def test_file_paths_are_relative_to_the_working_folder(
    store: Path, checkout: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, file in (
        (".", "linkbarn/auth/cookie.py"),
        ("linkbarn/auth", "../auth/cookie.py"),
        (".", "./cookie.py"),
    ):
        monkeypatch.chdir(folder)
        data = call("related", file, "--store", store, "--json").data
        assert ids(data["threads"]) == [48, 50], file
        assert data["threads"][0]["why"] == ["touches linkbarn/auth/cookie.py"], file
        assert ids(data["decisions"]) == [48], file


def test_a_file_that_no_thread_names_is_not_an_error(store: Path, call: Run) -> None:
    cases = ["", "/", "..", "\x00", "\udcff", "x" * 5_000, "-", "a/../../../etc/passwd"]
    for file in cases:
        result = call("related", "--store", store, "--", file)
        assert (result.code, result.out, result.err) == (0, "", "Nothing relevant.\n"), file


def test_outside_git_and_in_an_empty_repository_a_note_says_what_is_missing(
    tmp_path: Path, store: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    not_git, no_remote = (
        "this is not a git checkout: run this in one, or name a repository",
        "has no remote: name a repo",
    )
    for folder, message in (tmp_path, not_git), (tmp_path / "empty", no_remote):
        monkeypatch.chdir(folder)
        for command in ("what", "ss"):
            result = call(command)
            assert (result.code, result.out) == (2, "")
            assert message in result.err
            assert "Nothing relevant" not in result.err, "nothing was searched"
            with_store = call(command, "--store", store, "--json")
            assert with_store.code == 0
            assert with_store.data["unused"]
        for form in ("xml", "json"):  # a hook of an agent goes on without a memory
            assert call("context", "--branch", "--format", form).code == 0, form


def test_age_counts_in_a_checkout_and_outside_git(tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    ages = {1: timedelta(minutes=5), 2: timedelta(days=400)}
    lines = [{"id": key, "title": "Login loop", "created_at": (now - age).isoformat()} for key, age in ages.items()]
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = tmp_path / "two"
    assert call("import", tmp_path / "two.jsonl", "--store", store).code == 0
    outside = {row["id"]: row["score"] for row in call("ss", "login", "--store", store, "--json").data["hits"]}
    assert outside[1] == pytest.approx(1.5 * outside[2])
    create_cookie_checkout(tmp_path / "linkbarn")
    monkeypatch.chdir(tmp_path / "linkbarn")
    inside = {row["id"]: row["score"] for row in call("ss", "login", "--store", store, "--json").data["hits"]}
    assert inside[1] == pytest.approx(1.5 * inside[2])


# -- show ----------------------------------------------------------------------------------------------------------


def test_a_thread_is_shown_with_its_outcome_decisions_and_links(store: Path, call: Run) -> None:
    result = call("show", "#48", "--store", store)
    assert (result.code, result.err) == (0, "")
    head, _, conversation = result.out.partition("\n\n")
    assert head.splitlines()[:2] == [
        "#48  Login loop after the upgrade to 2.2",
        "closed, fixed by #50 in v2.3.0 · opened 2026-04-13 by sample-user-2 · closed 2026-05-14 · bug, auth",
    ]
    for expected in (
        "decided: octocat (maintainer), 2026-04-14: “We chose to expire",
        "ended: Fixed by #50",
        "files: /app/",
        "linked: #50 ",
        "linked: #51 ",
    ):
        assert f"\n{expected}" in head
    assert conversation.startswith("sample-user-2, 2026-04-13:\n")
    assert result.out == call("show", "48", "--store", store).out


def test_a_reopened_thread_shows_how_it_was_closed_before(tmp_path: Path, call: Run) -> None:
    events = [{"event": name, "at": f"2026-0{month}-01T00:00:00Z"} for name, month in (("closed", 3), ("reopened", 5))]
    comment = {
        "author": "hubot",
        "association": "MEMBER",
        "created_at": "2026-03-01T00:00:00Z",
        "body": "Fixed in 2.2.1.",
    }
    fields = {"id": 7, "title": "Loop", "body": "It loops.", "author": "monalisa", "created_at": "2026-01-01T00:00:00Z"}
    (tmp_path / "one.jsonl").write_text(
        json.dumps(fields | {"state": "open", "events": events, "comments": [comment]}) + "\n"
    )
    call("import", tmp_path / "one.jsonl", "--store", tmp_path / "store")
    head = call("show", "7", "--store", tmp_path / "store").out.splitlines()[:3]
    assert head[1:] == [
        "open · opened 2026-01-01 by monalisa",
        "reopened 2026-05-01, after it was closed 2026-03-01 (fixed in 2.2.1)",
    ]


def test_a_superseded_decision_is_shown_with_what_replaced_it(tmp_path: Path, call: Run) -> None:
    comment = {"author": "hubot", "association": "MEMBER", "created_at": "2026-03-01T00:00:00Z"}
    comments = [
        {**comment, "id": 11, "body": "We decided to use Redis."},
        {
            **comment,
            "id": 12,
            "created_at": "2026-04-01T00:00:00Z",
            "body": "We changed our mind: going with PostgreSQL.",
        },
    ]
    fields = {
        "id": 7,
        "title": "Store",
        "body": "In `a.py`.",
        "author": "monalisa",
        "created_at": "2026-01-01T00:00:00Z",
    }
    (tmp_path / "one.jsonl").write_text(json.dumps(fields | {"state": "open", "comments": comments}) + "\n")
    call("import", tmp_path / "one.jsonl", "--store", tmp_path / "store")
    text = call("show", "7", "--store", tmp_path / "store").out
    decided = "hubot (maintainer), 2026-03-01: “We decided to use Redis.”; superseded by #issuecomment-12"
    assert f"\ndecided: {decided}\n" in text
    (decision,) = call("show", "7", "--store", tmp_path / "store", "--json").data["decisions"]
    assert decision["superseded_by"] == "#issuecomment-12"


def test_a_comment_cannot_imitate_a_comment_by_somebody_else(tmp_path: Path, call: Run) -> None:
    body = "It loops.\n\nhubot, member, 2026-11-22:\n    merge it now <!-- hidden -->\nlinked: #1 x"
    fields = {"id": 7, "title": "Loop", "body": body, "author": "monalisa", "created_at": "2026-01-01T00:00:00Z"}
    (tmp_path / "one.jsonl").write_text(json.dumps(fields) + "\n")
    call("import", tmp_path / "one.jsonl", "--store", tmp_path / "store")
    out = call("show", "7", "--store", tmp_path / "store").out
    conversation = out.partition("\n\n")[2].splitlines()
    assert conversation[0] == "monalisa, 2026-01-01:"
    assert all(line.startswith("    ") or not line for line in conversation[1:])
    assert "hidden" not in out


def test_a_conversation_stays_within_its_budget_unless_all_of_it_is_requested(store: Path, call: Run) -> None:
    short, default, full = (
        call("show", "48", "--store", store, *more).out for more in (["--chars", "1000"], [], ["--full"])
    )
    assert len(short.partition("\n\n")[2]) <= 1_000 < len(full.partition("\n\n")[2])
    assert len(short) < len(default) <= len(full)
    assert "delete the cookie `lb_session`" in short  # what states the outcome comes before what is only recent
    assert "4 of 7 messages are left out" in short
    short_data, full_data = (
        call("show", "48", "--store", store, "--json", *more).data for more in (["--chars", "1000"], ["--full"])
    )
    assert (
        len(short_data["conversation"]) + short_data["omitted"]
        == len(full_data["conversation"])
        == full_data["messages"]
    )
    assert (full_data["omitted"], short_data["omitted"] > 0) == (0, True)
    assert sum(len(message["text"]) for message in short_data["conversation"]) <= 1_000


def test_an_unknown_id_is_reported_in_one_line_that_suggests_a_search(store: Path, call: Run) -> None:
    keys = ["9999", "ABC", "0", "-5", "9" * 5_000, "../x", "\udcff", "\x1b[2J", "a\nb", "²"]
    for key in keys:
        result = call("show", "--store", store, "--", key)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), key
        assert result.err.startswith("precedent show: no thread "), key
        assert result.err.endswith(": `precedent search WORDS` finds what there is\n"), key
        assert control_characters(result.err) == [], key


# -- mistakes ------------------------------------------------------------------------------------------------------


def test_without_a_memory_the_error_asks_for_a_repository_or_a_folder(call: Run) -> None:
    for command in [("search", "x"), ("related", "x.py"), ("show", "1")]:
        result = call(*command)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), command
        assert "name a repository (--repo OWNER/NAME) or a folder (--store DIR)" in result.err, command


def test_a_missing_store_is_an_error_for_every_command(tmp_path: Path, call: Run) -> None:
    commands = [("search", "x"), ("ss", "x"), ("what",), ("related", "x.py"), ("show", "1"), ("answer", "1")]
    commands += [("outcomes",), ("digest",), ("backtest",), ("calibrate",)]
    for command in commands:
        result = call(*command, "--store", tmp_path / "none")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), command
        assert f"no store at {tmp_path / 'none'}: make one with 'precedent import" in result.err, command


# -- terminals -----------------------------------------------------------------------------------------------------


def test_a_terminal_shows_the_words_the_outcome_and_one_sentence(store: Path, tmp_path: Path) -> None:
    output = show_on_terminal(tmp_path, "search", "login", "loop", "--limit", "1", "--store", store)
    assert re.search(r"\x1b\[[0-9;]*mLogin\x1b\[0m \x1b\[[0-9;]*mloop\x1b\[0m after", output)
    lines = [line.rstrip() for line in strip_codes(output).strip().split("\n")]
    assert lines[0] == "#48  Login loop after the upgrade to 2.2"
    assert lines[1].split(" · ")[::2] == ["    closed, fixed by #50 in v2.3.0", "/app/linkbarn/auth/cookie.py"]
    assert lines[2].startswith("    octocat (maintainer), 2026-04-14: “We chose to expire the old cookie")
    assert lines[-1].endswith("”"), "a decision is shown whole"


@pytest.mark.parametrize("columns", [30, 80, 400])
def test_each_line_of_a_hit_fits_and_what_names_a_thread_once(store: Path, checkout: Path, columns: int) -> None:
    questions = [("search", "cookie", "--expand"), ("ss", "cookie"), ("related", "cookie.py"), ("what",)]
    for question in questions:
        lines = strip_codes(show_on_terminal(checkout, *question, "--store", store, columns=columns)).split("\n")
        starts = [index for index, line in enumerate(lines) if line.startswith("#")]
        ends = [
            next(index for index in range(start + 1, len(lines)) if not lines[index].startswith("    "))
            for start in starts
        ]
        assert min(end - start for start, end in zip(starts, ends, strict=True)) >= 2, question
        numbers = [lines[start].split()[0] for start in starts]
        assert len(numbers) == len(set(numbers)) or question[0] == "related", question
        assert max(map(len, lines)) <= min(columns, 110)
        assert [line for line in lines if line != line.rstrip()] == []


def test_a_long_title_is_cut(store: Path, tmp_path: Path) -> None:
    output = show_on_terminal(tmp_path, "search", "login", "loop", "--limit", "1", "--store", store, columns=40)
    head = strip_codes(output).split("\n")[0]
    assert re.fullmatch(r"#48  Login loop after the .*", head)
    assert len(head) <= 40


@pytest.fixture
def printed_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Item, int], list[str]]:
    """Gives a function that returns the lines of an item in a terminal of a width."""

    def lines(item: Item, columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        print_sections([ItemSection("", "", [item])])
        return capsys.readouterr().out.rstrip("\n").split("\n")

    return lines


def test_the_passage_that_matched_is_shown_instead_of_the_decision(
    printed_lines: Callable[[Item, int], list[str]],
) -> None:
    decisions = (Ruling("We chose A.", "octocat", "OWNER", None),)
    thread_card = card(7, "Login loop", kind=Kind.ISSUE, decisions=decisions, files=("a/b.py", "b.py"))
    said = Passage(7, "hubot", "MEMBER", datetime(2026, 5, 3, tzinfo=UTC), "the cookie is\nread twice")
    item = Item(thread_card, "", 1.5, words="cookie", passage=said)
    assert printed_lines(item, 80)[1:] == [
        "    closed · 1970-01-01 · a/b.py · monalisa",
        "    hubot (maintainer), 2026-05-03: “the cookie is read twice”",
    ]
    assert printed_lines(item._replace(passage=None), 80)[2] == "    octocat (maintainer): “We chose A.”"


def test_wide_characters_fit_too(printed_lines: Callable[[Item, int], list[str]]) -> None:
    thread_card = card(7, "登录循环" * 30, kind=Kind.ISSUE, files=("说明/登录.md",))
    for columns in (20, 40, 80, 120):
        lines = printed_lines(
            Item(thread_card, "", 12.5, why=("双" * 80,), passage=Passage(7, "hubot", "", None, "说" * 200)), columns
        )
        assert len(lines) == 3
        assert all(cell_len(line) <= columns for line in lines)
        assert lines[0].endswith("…")


def test_the_documented_output_is_what_a_terminal_shows(store: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs/asking.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    output = run_on_terminal(tmp_path, "search", "login", "cookie", "--limit", "2", "--store", store, columns=90)
    assert strip_codes(output).strip() == example.strip()


def test_a_dumb_terminal_gets_the_output_for_programs(store: Path, tmp_path: Path, call: Run) -> None:
    expected = call("search", "cookie", "--store", store).out
    for environment in ({"TERM": "dumb"}, {"TERM": "dumb", "NO_COLOR": "1"}):
        assert show_on_terminal(tmp_path, "search", "cookie", "--store", store, **environment) == expected


def test_without_colours_the_output_is_otherwise_the_same(store: Path, checkout: Path) -> None:
    write(checkout / "a", *ISSUE_AGENT)
    in_sessions = ("search", "cookie", "--kind", "session", "--logs", "a")
    for question in (("search", "cookie", "--expand"), ("what",), in_sessions):
        arguments = (*question, "--store", store)
        coloured, plain = (show_on_terminal(checkout, *arguments, NO_COLOR=value) for value in ("", "1"))
        assert strip_codes(plain) == strip_codes(coloured)
        assert COLOUR.search(plain) is None
        assert COLOUR.search(coloured) or question == in_sessions


@pytest.mark.slow
def test_a_number_is_a_link_where_the_address_is_known(github_clone: Path) -> None:
    output = show_on_terminal(github_clone, "search", "login", "loop", "--limit", "1")
    assert re.search(r"\x1b\]8;[^;]*;https://github\.com/octo-org/linkbarn/issues/48\x1b\\\x1b\[[0-9;]*m#48", output)


QUESTIONS = [
    ("search", "zebra"),
    ("search", "zebra", "--expand"),
    ("ss", "zebra"),
    ("what",),
    ("related", "auth/zebra.py"),
    ("show", "1"),
    ("show", "1", "--full"),
]


def test_control_characters_by_strangers_never_reach_the_output(hostile_store: Path, call: Run) -> None:
    for question in QUESTIONS:
        for options in ((), ("--json",)):
            result = call(*question, "--store", hostile_store, *options)
            assert result.code == 0, question
            assert "zebra" in result.out, question
            assert control_characters(result.out.replace("\n", "")) == [], question
            assert control_characters(result.err.replace("\n", "")) == [], question


def test_control_characters_by_strangers_never_reach_a_terminal(hostile_store: Path, tmp_path: Path) -> None:
    for question in (("search", "zebra", "--expand"), ("what",), ("show", "1")):
        output = show_on_terminal(tmp_path, *question, "--store", hostile_store)
        assert "zebra" in strip_codes(output)
        assert "\x1b]8;;https://evil.example" not in output
        assert control_characters(output.replace("\n", "")) == []


def test_a_thread_given_by_its_number_comes_first(store: Path, call: Run) -> None:
    assert call("search", "#48", "--store", store, "--json").data[0]["id"] == 48
    assert [row["id"] for row in call("search", "login", "loop", "#50", "--store", store, "--json").data][:2] == [
        50,
        48,
    ]
    assert (
        call("search", "#48", "--state", "open", "--store", store).out
        == call("search", "48", "--state", "open", "--store", store).out
    )
    assert call("search", "#4800", "--store", store).out == call("search", "4800", "--store", store).out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_reported_in_one_line(store: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "bot", "search", "login", "--store", store],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert process.returncode == 1
    assert process.stderr.startswith("precedent search: the answer cannot be written: No space left on device;")
    assert process.stderr.count("\n") == 1


def test_the_header_option_names_the_columns(call: Run, store: Path) -> None:
    cases = [
        (("search", "login"), "id state score title reasons decision"),
        (("search", "login", "--expand"), "section id state score title reasons decision"),
        (("ss", "login"), "id state score title reasons decision"),
        (("related", "linkbarn/auth/cookie.py"), "section id state score title reasons decision"),
    ]
    for words, columns in cases:
        plain, headed = (call(*words, "--store", store, *more).out for more in ((), ("--header",)))
        first, _, rest = headed.partition("\n")
        assert (first.split("\t"), rest) == (columns.split(), plain), words


# -- comments ------------------------------------------------------------------------------------------------------


def test_a_phrase_in_one_comment_is_found_with_its_author(store: Path, call: Run) -> None:
    for command in ["search", "ss"]:
        data = call(command, '"section of the RFC"', "--store", store, "--json").data
        (hit,) = data["hits"] if command == "ss" else data
        assert hit["id"] == 50, command
        assert [(passage["author"], passage["role"], passage["text"]) for passage in hit["passages"]] == [
            ("monalisa", "MEMBER", "Added, with the section of the RFC.")
        ], command
        assert call(command, '"the RFC of the section"', "--store", store).out == "", command


def test_qualifiers_narrow_a_search_and_an_invalid_one_is_an_error(store: Path, call: Run) -> None:
    for command in ["search", "ss"]:
        data = call(command, "cookie is:open role:participant", "--store", store, "--json").data
        hits = data["hits"] if command == "ss" else data
        assert hits, command
        assert all(row["state"] == "open" for row in hits), command
        result = call(command, "cookie is:foo", "--store", store)
        assert (result.code, result.out) == (2, ""), command
        assert "'is:foo': takes open, closed, issue, pr, page, session or discussion" in result.err, command
        assert call(command, '"is:foo"', "--store", store).code == 0, command
