"""The commands that ask the memory, as people and scripts use them: what is found, how it is shown, how it fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from bot.cli.terminal import print_sections
from bot.domain.card import Ruling
from bot.domain.changes import Changes
from bot.domain.kinds import Kind
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.questions.views import Item, ItemSection
from bot.sources.archive_file import read_archive
from tests.cli.asked import ROOT, SAMPLE, bare, git, obeyed, on_a_terminal, working_on_cookies
from tests.cli.console import Run
from tests.memory.remotes import bare_repository, commit
from tests.questions.shelf import card
from tests.sources.session_lines import ISSUE_AGENT, write

HEAVY = {
    *("numpy", "whoosh", "rich", "yaml", "jinja2", "githubkit", "markdown_it", "dataclasses", "inspect", "subprocess"),
    *(
        "bot.github",
        "bot.memory.memory",
        "bot.comment.render",
        "bot.settings.yaml_file",
        "bot.cli.terminal",
        "bot.local_cache.sessions",
        "bot.sources.session_files",
        "bot.questions.smart_search",
    ),
}
"""What a search from a shell has no time for."""

NOTHING = "Nothing relevant."
LOOKED = "Nothing relevant. 73 threads and 250 messages searched."
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")

EVIL = "\x1b]8;;https://evil.example\x07zebra\x1b]8;;\x07 \x1b[2J\x9b31m\u202e\x00\x7f"


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody outside of any checkout, whose own settings of git are empty."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("GITHUB_SERVER_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the sample."""
    from bot.cli.main import main

    folder = tmp_path_factory.mktemp("asked") / "store"
    options = ["--repo", "octo-org/linkbarn", "--no-learn", "--json"]
    assert main(["import", str(SAMPLE), "--store", str(folder), *options]) == 0
    return folder


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which somebody works on cookies, and asks."""
    folder = working_on_cookies(tmp_path / "linkbarn")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of a repository on GitHub that has a memory: git is told that GitHub lies in a folder here."""
    bare = bare_repository(tmp_path / "github/octo-org/linkbarn.git")
    commit(bare, {"README.md": ("100644", b"# Linkbarn\n")}, "refs/heads/main")
    with BranchStore(str(bare), "precedent") as branch:
        memory = Memory(branch, repo="octo-org/linkbarn").open()
        memory.stage(Changes(records=tuple(read_archive(SAMPLE))))
        memory.commit("sample")
    there = f'[url "file://{tmp_path}/github/"]\n\tinsteadOf = https://github.com/\n'
    (tmp_path / ".gitconfig").write_text(there)
    git(tmp_path, "clone", "--quiet", "--single-branch", "https://github.com/octo-org/linkbarn.git", "clone")
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path / "clone"


@pytest.fixture
def evil(tmp_path: Path, call: Run) -> Path:
    """A store in which everything that a stranger can write is written to harm a terminal."""
    said = {"author": "hubot", "association": "MEMBER", "created_at": "2024-01-02T09:00:00Z"}
    thread = {
        "id": 1,
        "title": EVIL,
        "body": f"{EVIL} in `auth/zebra.py`. See #2",
        "author": EVIL,
        "labels": [EVIL],
        "state": "closed",
        "created_at": "2024-01-01T09:00:00Z",
        "closed_at": "2024-01-03T09:00:00Z",
        "comments": [{**said, "body": f"We decided to paint the {EVIL}."}, {**said, "body": f"Fixed by #2. {EVIL}"}],
    }
    other = {**thread, "id": 2, "title": f"Stripes {EVIL}", "body": "Stripes", "kind": "pull", "comments": []}
    file = tmp_path / "evil.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (thread, other)))
    assert call("import", file, "--store", tmp_path / "evil").code == 0
    return tmp_path / "evil"


def ids(found: Any) -> list[object]:
    return [one["id"] for one in found]


# -- search --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hit_is_a_line_with_id_state_score_and_title(store: Path, call: Run) -> None:
    found = call("search", "login", "loop", "--store", store, "--limit", "1")
    assert (found.code, found.err) == (0, "")
    assert re.fullmatch(r"48\tclosed\t\d+\.\d\d\tLogin loop after the upgrade to 2\.2\n", found.out)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), [50, 48, 44, 14, 62, 51, 32, 17]),
        (("--state", "open"), [51]),
        (("--kind", "pull"), [50, 17]),
        (("--kind", "page"), []),
        (("--label", "BUG"), [48, 51]),
        (("--label", "bug", "--label", "auth"), [48, 51]),
        (("--label", "bug", "--label", "nobody"), []),
        (("--author", "@Monalisa"), [50, 14, 17]),
        (("--since", "2026-05-15"), [48, 62, 51]),
        (("--since", "2026-05-15T06:20:00Z", "--state", "closed"), [48, 62]),
        (("--since", "2026-05-15T08:20:01+02:00", "--state", "closed"), [62]),
        (("--since", "99y"), [50, 48, 44, 14, 62, 51, 32, 17]),
        (("--limit", "2"), [50, 48]),
    ],
)
def test_a_search_keeps_to_what_was_asked_for(
    store: Path, call: Run, options: tuple[str, ...], found: list[int]
) -> None:
    assert ids(call("search", "cookie", "--store", store, "--json", *options).data) == found


def test_each_hit_brings_what_is_one_link_away(store: Path, call: Run) -> None:
    plain, expanded = (
        call("search", "login", "loop", "--store", store, "--json", *more).data for more in ((), ["--expand"])
    )
    assert {one["id"]: ids(one["linked"]) for one in expanded} == {48: [50, 49, 51], 12: [13]}
    assert [{name: value for name, value in one.items() if name != "linked"} for one in expanded] == plain
    lines = call("search", "login", "loop", "--store", store, "--expand").out.splitlines()
    assert [line.split("\t")[:2] for line in lines] == [
        *(["hit", "48"], ["hit", "12"]),
        *(["linked", "50"], ["linked", "49"], ["linked", "51"], ["linked", "13"]),
    ]
    assert lines[2].endswith("\t#48 was fixed by it")


@pytest.mark.parametrize(
    "command",
    [("search", "quantum zebra"), ("search", "login quantum zebra"), ("ss", "quantum zebra"), ("related", "zebra.py")],
    ids=" ".join,
)
def test_nothing_relevant_is_told_and_is_an_exit_code_for_who_wants_one(
    store: Path, call: Run, command: tuple[str, ...]
) -> None:
    told = call(*command, "--store", store)
    assert (told.code, told.out, told.err.splitlines()[-1]) == (0, "", NOTHING if command[0] == "related" else LOOKED)
    assert call(*command, "--store", store, "--exit-code").code == 1
    as_data = call(*command, "--store", store, "--json", "--exit-code")
    assert as_data.code == 1
    assert "Nothing relevant" not in as_data.err
    assert not any(
        as_data.data.get("hits") or as_data.data.get("threads") or () if command[0] != "search" else as_data.data
    )


@pytest.mark.parametrize("command", [("search", "cookie"), ("ss", "cookie"), ("related", "cookie.py"), ("show", "48")])
def test_what_is_found_ends_with_0_whoever_asks(store: Path, call: Run, command: tuple[str, ...]) -> None:
    assert call(*command, "--store", store, "--exit-code").code == 0


def loaded(folder: Path, *arguments: str) -> list[str]:
    """The modules that a process has in the end which found thread 48."""
    code = "import sys; from bot.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "48" in done.stdout
    assert "sqlite3" in done.stderr.split()
    return done.stderr.split()


@pytest.mark.parametrize("form", [("--json",), ()])
def test_a_search_loads_nothing_heavy(store: Path, tmp_path: Path, call: Run, form: tuple[str, ...]) -> None:
    assert call("search", "cookie", "--store", store).code == 0  # what it looks at is made once
    assert sorted(HEAVY.intersection(loaded(tmp_path, "search", "cookie", "--store", str(store), *form))) == []


@pytest.mark.parametrize("form", [("--json",), ()])
def test_a_search_in_a_checkout_with_settings_loads_nothing_heavy_but_what_asks_git(
    hosted: Path, call: Run, form: tuple[str, ...]
) -> None:
    (hosted / ".github").mkdir()
    (hosted / ".github/precedent.yml").write_bytes((ROOT / "config.example.yml").read_bytes())
    assert call("search", "cookie").code == 0  # the settings are parsed once
    assert sorted(HEAVY.intersection(loaded(hosted, "search", "cookie", *form))) == ["subprocess"]


# -- the memory of a checkout --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_in_a_checkout_the_branch_is_asked_and_every_thread_has_its_address(hosted: Path, call: Run) -> None:
    found = call("search", "login", "loop", "--expand", "--json")
    assert (found.code, found.err) == (0, "")
    login = found.data[0]
    address = "https://github.com/octo-org/linkbarn"
    assert (login["id"], login["url"]) == (48, f"{address}/issues/48")
    assert [one["url"] for one in login["decisions"]] == [f"{address}/issues/48"]
    assert [one["url"] for one in login["linked"]][:1] == [f"{address}/pull/50"]
    assert call("show", "50").out.splitlines()[2] == f"{address}/pull/50"
    assert call("ss", "login", "loop", "--offline", "--json").data["hits"][0]["url"] == login["url"]


@pytest.mark.slow
def test_a_repository_is_asked_by_its_name_from_anywhere(
    hosted: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("search", "login", "loop", "--limit", "1", "--repo", "octo-org/linkbarn")
    assert call(*asked).out.startswith("48\tclosed\t")
    assert call(*asked, "--memory-branch", "nowhere").code == 2


def test_what_to_know_of_the_memory_is_a_line_on_stderr(hosted: Path, tmp_path: Path, call: Run) -> None:
    before = call("search", "cookie", "--json")
    (tmp_path / "github").rename(tmp_path / "gone")
    after = call("search", "cookie", "--json", "--refresh")
    assert (after.code, after.out, after.err.count("\n")) == (0, before.out, 1)
    assert call("search", "cookie", "--json", "--offline").err.startswith("Using the memory as last fetched: ")


# -- sessions ------------------------------------------------------------------------------------------------------


def test_transcripts_are_searched_without_any_memory(tmp_path: Path, call: Run) -> None:
    write(tmp_path / "logs/a.jsonl", *ISSUE_AGENT)
    found = call("search", "cookie", "path", "--kind", "session", "--logs", tmp_path / "logs", "--json")
    assert (found.code, found.err) == (0, "")
    (hit,) = found.data
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


def test_the_settings_of_a_checkout_name_its_transcripts(checkout: Path, call: Run) -> None:
    write(checkout / "state/a.jsonl", *ISSUE_AGENT)
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text('sources: {sessions: ["state"]}\n')
    assert [one["session_id"] for one in call("search", "cookie", "--kind", "session", "--json").data] == ["5b1c"]
    shown = call("show", "5b1c")
    assert shown.code == 0
    assert "The cookie path changed." in shown.out


def test_transcripts_that_nobody_names_are_a_mistake_and_so_are_logs_without_their_kind(
    tmp_path: Path, call: Run
) -> None:
    ended = call("search", "cookie", "--kind", "session")
    assert (ended.code, ended.out) == (2, "")
    assert "give --logs PATH" in ended.err
    ended = call("search", "cookie", "--kind", "session", "--logs", tmp_path, "--label", "bug", "--expand")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "--label, --expand: not supported for sessions" in ended.err
    ended = call("search", "cookie", "--logs", tmp_path, "--kind", "issue")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "give --kind session" in ended.err


# -- smart-search, what, related -----------------------------------------------------------------------------------


def test_without_words_the_checkout_asks(store: Path, checkout: Path, call: Run) -> None:
    told = call("ss", "--store", store, "--json").data
    assert told["schema"] == 1
    assert ids(told["hits"])[:2] == [48, 50]
    assert any("touches linkbarn/auth/cookie.py" in one["why"] for one in told["hits"])
    assert told["used"]
    assert told == call("smart-search", "--store", store, "--json").data


def test_words_come_before_the_checkout(store: Path, checkout: Path, call: Run) -> None:
    assert ids(call("ss", "csrf", "token", "--store", store, "--json").data["hits"])[0] == 62
    assert ids(call("ss", "cookie", "--state", "open", "--store", store, "--json").data["hits"]) == [51]


def test_what_tells_of_the_branch_its_files_and_what_was_decided(store: Path, checkout: Path, call: Run) -> None:
    told = call("what", "--store", store, "--json").data
    assert 48 in ids(told["related"])
    assert ids(told["decisions"]) == [48]
    assert told["decisions"][0]["decisions"][0]["text"].startswith("We chose to expire the old cookie")
    assert all(one["state"] == "open" for one in told["tasks"])
    assert [len(told[part]) <= 3 for part in ("related", "decisions", "tasks", "recent")] == [True] * 4
    lines = [line.split("\t") for line in call("what", "--store", store).out.splitlines()]
    assert {line[0] for line in lines} >= {"related", "decision", "recent"}
    decided = next(line for line in lines if line[0] == "decision")
    assert (decided[1], decided[-1][:34]) == ("48", "We chose to expire the old cookie ")


def test_the_branch_of_context_is_what(store: Path, checkout: Path, call: Run) -> None:
    asked = ("context", "--branch", "--store", store)
    assert call(*asked).out.startswith("<branch-context>\n")
    assert call(*asked, "--json").data == call("what", "--store", store, "--json").data


@pytest.mark.parametrize("file", ["linkbarn/auth/cookie.py", "../auth/cookie.py", "./cookie.py"])
def test_a_file_is_named_from_where_somebody_stands(
    store: Path, checkout: Path, call: Run, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    if file[0] == ".":
        monkeypatch.chdir(checkout / "linkbarn/auth")
    told = call("related", file, "--store", store, "--json").data
    assert ids(told["threads"]) == [48, 50]
    assert told["threads"][0]["why"] == ["touches linkbarn/auth/cookie.py"]
    assert ids(told["decisions"]) == [48]


@pytest.mark.parametrize("file", ["", "/", "..", "\x00", "\udcff", "x" * 5_000, "-", "a/../../../etc/passwd"])
def test_a_file_that_nothing_names_is_no_fault(store: Path, call: Run, file: str) -> None:
    told = call("related", "--store", store, "--", file)
    assert (told.code, told.out, told.err) == (0, "", "Nothing relevant.\n")


@pytest.mark.parametrize("command", ["what", "ss"])
def test_outside_of_git_and_in_an_empty_repository_it_is_said_what_is_missing(
    tmp_path: Path, store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    told = call(command)
    assert (told.code, told.out) == (0, "")
    assert "this is not a git checkout: run this in one, or name a repository" in told.err
    assert "Nothing relevant" not in told.err, "nothing was searched"
    with_store = call(command, "--store", store, "--json")
    assert with_store.code == 0
    assert with_store.data["unused"]
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    monkeypatch.chdir(tmp_path / "empty")
    told = call(command)
    assert (told.code, told.out) == (0, "")
    assert "has no remote: name a repository" in told.err
    assert call(command, "--store", store).code == 0


@pytest.mark.parametrize(("branch", "found"), [("work", [48]), ("main", [])])
def test_a_commit_counts_where_it_is_the_branchs_own(
    tmp_path: Path, store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, branch: str, found: list[int]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    git(tmp_path / "here", "init", "--quiet", "--initial-branch=main")
    git(tmp_path / "here", "commit", "--quiet", "--allow-empty", "--message=Begin")
    git(tmp_path / "here", "checkout", "--quiet", "-B", branch)
    git(tmp_path / "here", "commit", "--quiet", "--allow-empty", "--message=Expire the old one (#48)")
    assert ids(call("ss", "--store", store, "--json").data["hits"]) == found


def test_age_counts_in_a_checkout_and_outside_of_git(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    ages = {1: timedelta(minutes=5), 2: timedelta(days=400)}
    lines = [{"id": key, "title": "Login loop", "created_at": (now - age).isoformat()} for key, age in ages.items()]
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = tmp_path / "two"
    assert call("import", tmp_path / "two.jsonl", "--store", store).code == 0
    outside = {one["id"]: one["score"] for one in call("ss", "login", "--store", store, "--json").data["hits"]}
    assert outside[1] == pytest.approx(1.5 * outside[2])
    working_on_cookies(tmp_path / "linkbarn")
    monkeypatch.chdir(tmp_path / "linkbarn")
    inside = {one["id"]: one["score"] for one in call("ss", "login", "--store", store, "--json").data["hits"]}
    assert inside[1] == pytest.approx(1.5 * inside[2])


@pytest.mark.slow
def test_on_the_main_branch_a_commit_that_is_not_pushed_counts(hosted: Path, call: Run) -> None:
    assert call("what", "--json").data["related"] == []
    (hosted / "linkbarn").mkdir()
    (hosted / "linkbarn/cookie.py").touch()
    git(hosted, "add", "--all")
    git(hosted, "commit", "--quiet", "-m", "Expire cookies (#48)")
    for found in (call("what", "--json").data["related"], call("ss", "--json").data["hits"]):
        assert (found[0]["id"], found[0]["why"][0]) == (48, "a commit names #48")


# -- show ----------------------------------------------------------------------------------------------------------


def test_a_thread_is_shown_with_its_ending_its_decisions_and_its_links(store: Path, call: Run) -> None:
    shown = call("show", "#48", "--store", store)
    assert (shown.code, shown.err) == (0, "")
    head, _, said = shown.out.partition("\n\n")
    assert head.splitlines()[:2] == [
        "#48  Login loop after the upgrade to 2.2",
        "closed, fixed by #50 in v2.3.0 · opened 2026-04-13 by sample-user-2 · closed 2026-05-14 · bug, auth",
    ]
    for expected in (
        "decided: We chose to expire",
        "ended: Fixed by #50",
        "files: /app/",
        "linked: #50 ",
        "linked: #51 ",
    ):
        assert f"\n{expected}" in head
    assert said.startswith("sample-user-2, 2026-04-13:\n")
    assert shown.out == call("show", "48", "--store", store).out


def test_of_what_is_open_again_it_says_how_it_had_ended(tmp_path: Path, call: Run) -> None:
    flips = [{"event": name, "at": f"2026-0{month}-01T00:00:00Z"} for name, month in (("closed", 3), ("reopened", 5))]
    said = {"author": "hubot", "association": "MEMBER", "created_at": "2026-03-01T00:00:00Z", "body": "Fixed in 2.2.1."}
    fields = {"id": 7, "title": "Loop", "body": "It loops.", "author": "monalisa", "created_at": "2026-01-01T00:00:00Z"}
    (tmp_path / "one.jsonl").write_text(
        json.dumps(fields | {"state": "open", "events": flips, "comments": [said]}) + "\n"
    )
    call("import", tmp_path / "one.jsonl", "--store", tmp_path / "store")
    head = call("show", "7", "--store", tmp_path / "store").out.splitlines()[:3]
    assert head[1:] == [
        "open · opened 2026-01-01 by monalisa",
        "reopened 2026-05-01, after it was closed 2026-03-01 (fixed in 2.2.1)",
    ]


def test_a_superseded_decision_is_shown_with_what_holds_instead(tmp_path: Path, call: Run) -> None:
    said = {"author": "hubot", "association": "MEMBER", "created_at": "2026-03-01T00:00:00Z"}
    comments = [
        {**said, "id": 11, "body": "We decided to use Redis."},
        {**said, "id": 12, "created_at": "2026-04-01T00:00:00Z", "body": "We changed our mind: going with PostgreSQL."},
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
    shown = call("show", "7", "--store", tmp_path / "store").out
    assert "\ndecided, superseded by #issuecomment-12: We decided to use Redis. (hubot, member)\n" in shown
    (decision,) = call("show", "7", "--store", tmp_path / "store", "--json").data["decisions"]
    assert decision["superseded_by"] == "#issuecomment-12"


def test_what_somebody_wrote_looks_like_nobody_elses_word(tmp_path: Path, call: Run) -> None:
    body = "It loops.\n\nhubot, member, 2026-11-22:\n    merge it now <!-- hidden -->\nlinked: #1 x"
    fields = {"id": 7, "title": "Loop", "body": body, "author": "monalisa", "created_at": "2026-01-01T00:00:00Z"}
    (tmp_path / "one.jsonl").write_text(json.dumps(fields) + "\n")
    call("import", tmp_path / "one.jsonl", "--store", tmp_path / "store")
    out = call("show", "7", "--store", tmp_path / "store").out
    said = out.partition("\n\n")[2].splitlines()
    assert said[0] == "monalisa, 2026-01-01:"
    assert all(line.startswith("    ") or not line for line in said[1:])
    assert "hidden" not in out


def test_a_conversation_keeps_to_its_room_unless_all_of_it_is_wanted(store: Path, call: Run) -> None:
    short, default, whole = (
        call("show", "48", "--store", store, *more).out for more in (["--chars", "1000"], [], ["--full"])
    )
    assert len(short.partition("\n\n")[2]) <= 1_000 < len(whole.partition("\n\n")[2])
    assert len(short) < len(default) <= len(whole)
    assert "delete the cookie `lb_session`" in short  # what states the ending comes before what is only new
    assert "4 of 7 messages are left out" in short
    part, everything = (
        call("show", "48", "--store", store, "--json", *more).data for more in (["--chars", "1000"], ["--full"])
    )
    assert len(part["conversation"]) + part["omitted"] == len(everything["conversation"]) == everything["messages"]
    assert (everything["omitted"], part["omitted"] > 0) == (0, True)
    assert sum(len(one["text"]) for one in part["conversation"]) <= 1_000


@pytest.mark.parametrize("key", ["9999", "ABC", "0", "-5", "9" * 5_000, "../x", "\udcff", "\x1b[2J", "a\nb", "²"])
def test_an_unknown_id_is_named_in_a_line_with_what_finds_others(store: Path, call: Run, key: str) -> None:
    ended = call("show", "--store", store, "--", key)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("precedent show: no thread ")
    assert ended.err.endswith(": `precedent search WORDS` finds what there is\n")
    assert obeyed(ended.err) == []


# -- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("search", "x"), ("related", "x.py"), ("show", "1")])
def test_where_there_is_no_memory_it_is_said_what_to_name(call: Run, command: tuple[str, ...]) -> None:
    ended = call(*command)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "name a repository (--repo OWNER/NAME) or a folder (--store DIR)" in ended.err


@pytest.mark.parametrize("command", [("search", "x"), ("ss", "x"), ("what",), ("related", "x.py"), ("show", "1")])
def test_a_store_that_is_not_there_is_a_mistake_of_every_question(
    tmp_path: Path, call: Run, command: tuple[str, ...]
) -> None:
    ended = call(*command, "--store", tmp_path / "none")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert f"no store at {tmp_path / 'none'}: make one with 'precedent import" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x", "--since", "yesterday"),
        ("search", "x", "--since", "2026-13-01"),
        ("search", "x", "--since", "0d"),
        ("search", "x", "--since", "7 d"),
        ("search", "x", "--since", "9999y"),
        ("search", "x", "--kind", "wiki"),
        ("search", "x", "--limit", "0"),
        ("search", "x", "--store", "s", "--repo", "octo-org/linkbarn"),
        ("search", "x", "--repo", "linkbarn"),
        ("search", "x", "--refresh", "--offline"),
        ("search",),
        ("related",),
        ("show",),
        ("show", "1", "--chars", "10"),
        ("show", "1", "--chars", "2000", "--full"),
        ("ss", "--limit", "51"),
        ("what", "words"),
    ],
)
def test_what_cannot_be_asked_is_told_before_anything_is_looked_at(call: Run, arguments: tuple[str, ...]) -> None:
    ended = call(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "; see `precedent " in ended.err
    assert ended.err.count("\n") == 1


# -- terminals -----------------------------------------------------------------------------------------------------


def test_a_person_sees_the_words_the_ending_and_one_sentence(store: Path, tmp_path: Path) -> None:
    seen = on_a_terminal(tmp_path, "search", "login", "loop", "--limit", "1", "--store", store)
    assert re.search(r"\x1b\[[0-9;]*mLogin\x1b\[0m \x1b\[[0-9;]*mloop\x1b\[0m after", seen)
    lines = [line.rstrip() for line in bare(seen).strip().split("\n")]
    assert re.fullmatch(r"#48  Login loop after the upgrade to 2\.2 +\d+\.\d\d", lines[0])
    assert lines[1].split(" · ")[::2] == ["    closed, fixed by #50 in v2.3.0", "/app/linkbarn/auth/cookie.py"]
    assert lines[2].startswith("    We chose to expire the old cookie")
    assert len(lines) == 3


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("question", [("search", "cookie"), ("ss", "cookie"), ("related", "cookie.py"), ("what",)])
def test_a_hit_takes_three_lines_at_most_and_they_fit(
    store: Path, checkout: Path, question: tuple[str, ...], columns: int
) -> None:
    lines = bare(on_a_terminal(checkout, *question, "--store", store, columns=columns)).split("\n")
    heads = [at for at, line in enumerate(lines) if line.startswith("#")]
    ends = [next(at for at in range(head + 1, len(lines)) if not lines[at].startswith("    ")) for head in heads]
    assert {end - head for head, end in zip(heads, ends, strict=True)} <= {2, 3}
    assert max(map(len, lines)) <= min(columns, 110)
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_score_stands_at_the_right_edge_and_a_long_title_gives_way(store: Path, tmp_path: Path) -> None:
    seen = on_a_terminal(tmp_path, "search", "login", "loop", "--limit", "1", "--store", store, columns=40)
    head = bare(seen).split("\n")[0]
    assert re.fullmatch(r"#48  Login loop after the .*…  \d\d\.\d\d", head)
    assert len(head) == 40


def listed(item: Item, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of an item on a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    print_sections([ItemSection("", "", [item])])
    return capsys.readouterr().out.rstrip("\n").split("\n")


def test_the_passage_that_matched_is_shown_instead_of_the_decision(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = card(
        7,
        "Login loop",
        kind=Kind.ISSUE,
        decisions=(Ruling("We chose A.", "octocat", "OWNER", None),),
        files=("a/b.py", "b.py"),
    )
    item = Item(one, "", 1.5, words="cookie", passage="hubot (MEMBER), 2026-05-03: the cookie is\nread twice")
    assert listed(item, 80, monkeypatch, capsys)[1:] == [
        "    closed · 1970-01-01 · a/b.py · monalisa",
        "    hubot (MEMBER), 2026-05-03: the cookie is read twice",
    ]
    assert listed(item._replace(passage=""), 80, monkeypatch, capsys)[2] == "    We chose A."


@pytest.mark.parametrize("columns", [20, 40, 80, 120])
def test_wide_characters_fit_too(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    item = Item(
        card(7, "登录循环" * 30, kind=Kind.ISSUE, files=("说明/登录.md",)),
        "",
        12.5,
        why=("双" * 80,),
        passage="说" * 200,
    )
    lines = listed(item, columns, monkeypatch, capsys)
    assert len(lines) == 3
    assert all(cell_len(line) <= columns for line in lines)
    assert lines[0].endswith("…  12.50")


def test_the_page_shows_what_a_terminal_shows(store: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs/asking.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    seen = on_a_terminal(tmp_path, "search", "login", "cookie", "--limit", "2", "--store", store, columns=90)
    assert bare(seen).strip() == shown.strip()


@pytest.mark.parametrize("columns", [30, 90, 400])
def test_no_line_is_wider_than_the_terminal(store: Path, tmp_path: Path, columns: int) -> None:
    seen = on_a_terminal(tmp_path, "search", "cookie", "--expand", "--store", store, columns=columns)
    assert max(map(len, bare(seen).split("\n"))) <= min(columns, 110)


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "dumb", "NO_COLOR": "1"}])
def test_a_terminal_that_is_a_typewriter_gets_what_a_program_gets(
    store: Path, tmp_path: Path, call: Run, environment: dict[str, str]
) -> None:
    seen = on_a_terminal(tmp_path, "search", "cookie", "--store", store, **environment)
    assert seen == call("search", "cookie", "--store", store).out


@pytest.mark.parametrize(
    "question", [("search", "cookie", "--expand"), ("what",), ("search", "cookie", "--kind", "session", "--logs", "a")]
)
def test_who_wants_no_colours_sees_the_same_without_them(
    store: Path, checkout: Path, question: tuple[str, ...]
) -> None:
    write(checkout / "a", *ISSUE_AGENT)
    asked = (*question, "--store", store)
    coloured, plain = (on_a_terminal(checkout, *asked, NO_COLOR=value) for value in ("", "1"))
    assert bare(plain) == bare(coloured)
    assert COLOUR.search(plain) is None
    assert COLOUR.search(coloured) or "session" in question


@pytest.mark.slow
def test_a_number_is_a_link_where_the_address_is_known(hosted: Path) -> None:
    seen = on_a_terminal(hosted, "search", "login", "loop", "--limit", "1")
    assert re.search(r"\x1b\]8;[^;]*;https://github\.com/octo-org/linkbarn/issues/48\x1b\\\x1b\[[0-9;]*m#48", seen)


QUESTIONS = [
    ("search", "zebra"),
    ("search", "zebra", "--expand"),
    ("ss", "zebra"),
    ("what",),
    ("related", "auth/zebra.py"),
    ("show", "1"),
    ("show", "1", "--full"),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_nothing_that_a_stranger_wrote_is_obeyed(evil: Path, call: Run, question: tuple[str, ...]) -> None:
    for more in ((), ("--json",)):
        told = call(*question, "--store", evil, *more)
        assert told.code == 0
        assert "zebra" in told.out
        assert obeyed(told.out.replace("\n", "")) == []
        assert obeyed(told.err.replace("\n", "")) == []


@pytest.mark.slow
def test_nothing_that_a_stranger_wrote_is_obeyed_by_the_terminal_of_a_person(evil: Path, tmp_path: Path) -> None:
    for question in (("search", "zebra", "--expand"), ("what",), ("show", "1")):
        seen = on_a_terminal(tmp_path, *question, "--store", evil)
        assert "zebra" in bare(seen)
        assert "\x1b]8;;https://evil.example" not in seen
        assert obeyed(seen.replace("\n", "")) == []


def test_a_thread_that_is_named_by_its_number_comes_first(store: Path, call: Run) -> None:
    assert call("search", "#48", "--store", store, "--json").data[0]["id"] == 48
    assert [each["id"] for each in call("search", "login", "loop", "#50", "--store", store, "--json").data][:2] == [
        50,
        48,
    ]
    assert (
        call("search", "#48", "--state", "open", "--store", store).out
        == call("search", "48", "--state", "open", "--store", store).out
    )
    assert call("search", "#4800", "--store", store).out == call("search", "4800", "--store", store).out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_without_room_is_told_in_one_line(store: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bot", "search", "login", "--store", store],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("precedent search: the answer cannot be written: No space left on device;")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (("search", "login"), "id state score title reasons decision"),
        (("search", "login", "--expand"), "section id state score title reasons decision"),
        (("ss", "login"), "id state score title reasons decision"),
        (("related", "linkbarn/auth/cookie.py"), "section id state score title reasons decision"),
    ],
)
def test_a_header_names_the_columns_where_a_program_reads(
    call: Run, store: Path, words: tuple[str, ...], columns: str
) -> None:
    plain, headed = (call(*words, "--store", store, *more).out for more in ((), ("--header",)))
    first, _, rest = headed.partition("\n")
    assert (first.split("\t"), rest) == (columns.split(), plain)


# -- what was said -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["search", "ss"])
def test_a_word_of_one_comment_is_found_with_who_said_it(store: Path, call: Run, command: str) -> None:
    told = call(command, '"section of the RFC"', "--store", store, "--json").data
    (hit,) = told["hits"] if command == "ss" else told
    assert hit["id"] == 50
    assert [(one["author"], one["role"], one["text"]) for one in hit["passages"]] == [
        ("monalisa", "MEMBER", "Added, with the section of the RFC.")
    ]
    assert call(command, '"the RFC of the section"', "--store", store).out == ""


@pytest.mark.parametrize("command", ["search", "ss"])
def test_qualifiers_narrow_and_a_wrong_one_is_an_error(store: Path, call: Run, command: str) -> None:
    told = call(command, "cookie is:open role:participant", "--store", store, "--json").data
    hits = told["hits"] if command == "ss" else told
    assert hits
    assert all(one["state"] == "open" for one in hits)
    wrong = call(command, "cookie is:foo", "--store", store)
    assert (wrong.code, wrong.out) == (2, "")
    assert "'is:foo': takes open, closed, issue, pr, page, session or discussion" in wrong.err
    assert call(command, '"is:foo"', "--store", store).code == 0


def test_a_person_in_a_terminal_sees_what_was_said(store: Path, tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "search", '"section of the RFC"', "--store", str(store))
    assert "monalisa (maintainer)" in bare(shown)
    assert "Added, with the section of the RFC." in bare(shown)
