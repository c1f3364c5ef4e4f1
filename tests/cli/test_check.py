"""`precedent check`: what the bot would say about a draft, how it is shown, and hostile drafts."""

from __future__ import annotations

import io
import json
import re
import sys
from itertools import product
from pathlib import Path

import pytest

from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from bot.questions.comment import split_draft
from tests.cli.checkouts import control_characters
from tests.cli.program_result import ProgramResult, Run
from tests.reading.linear_time import assert_linear_time

DRAFT = "# Signed out again under /bm\n\nThe log says `SESSION_PATH_MISMATCH`.\n"
NOTHING = "Nothing similar is in memory (73 threads, 250 messages searched).\n"


@pytest.fixture
def store(sample_store: Path) -> Path:
    return sample_store


@pytest.fixture(autouse=True)
def outside_any_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def set_stdin(text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the text on stdin."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_the_first_line_of_a_draft_is_its_title() -> None:
    cases = [
        ("# A title\n\nBody\n", "A title", "Body\n"),
        ("A title\nBody", "A title", "Body"),
        ("\ufeff\r\n\n###  A title \r\n\r\nBody", "A title", "Body"),
        ("#48 again", "#48 again", ""),
        ("C# leaks\n\n    code", "C# leaks", "    code"),
        ("", "", ""),
    ]
    assert [text for text, title, body in cases if split_draft(text) != (title, body)] == []


@pytest.mark.slow
def test_a_draft_is_answered_as_an_issue_would_be(store: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    set_stdin(DRAFT, monkeypatch)
    short = call("check", "--store", store)
    assert (short.code, short.err) == (3, "")
    assert short.out.startswith("Likely fixed in v2.3.0 by [pull request 50](https://")
    assert "\n\n**Seen before**\n\n- [Login loop after the upgrade to 2.2](https://" in short.out
    assert "*Why:* same error `SESSION_PATH_MISMATCH`" in short.out
    assert [part for part in ("<details", "Show 7 messages", "<sub>") if part in short.out] == []
    Path("draft.md").write_text(DRAFT)
    full_comment = call("check", "draft.md", "--store", store, "--comment")
    assert "<details><summary>Show 7 messages</summary>" in full_comment.out
    assert "<!--" not in full_comment.out
    as_json = call("check", "draft.md", "--store", store, "--json")
    assert (as_json.code, as_json.data["comment"], as_json.data["similar"]) == (3, full_comment.out, True)
    tool_answer = answer(
        ToolContext(MemoryOptions(Path.cwd(), store=store)),
        "check_draft",
        dict(zip(("title", "body"), split_draft(DRAFT), strict=True)),
    )
    assert tool_answer.data["comment"] == full_comment.out
    assert tool_answer.data["related"] == as_json.data["related"]


def test_when_nothing_is_similar_the_output_says_how_much_was_searched(
    store: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_stdin("Quantum zebra\n\nEntangled.", monkeypatch)
    assert call("check", "--store", store) == ProgramResult(0, NOTHING, "")
    set_stdin("Quantum zebra", monkeypatch)
    assert call("check", "--store", store, "--comment") == ProgramResult(0, "", NOTHING)
    tool_answer = answer(ToolContext(MemoryOptions(Path.cwd(), store=store)), "check_draft", {"title": "Quantum zebra"})
    assert (tool_answer.text, tool_answer.data["nothing_relevant"], tool_answer.data["comment"]) == (NOTHING, True, "")


@pytest.mark.parametrize(
    ("draft", "heading"),
    [
        ("CART_ERROR\n\n#1", "**文中提到**"),
        ("The cart is empty after the login\n\nThe same as in #1.", "**Mentioned here**"),
    ],
)
def test_a_draft_is_answered_in_its_language_or_the_usual_one(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, draft: str, heading: str
) -> None:
    said = {"author": "monalisa", "association": "MEMBER", "body": "已在 2.1.0 版本修复。"}
    threads = [
        {
            "id": day, "title": "登录之后购物车是空的", "body": "控制台没有报错。", "author": "octocat",
            "state": "closed", "created_at": f"2026-01-0{day}T09:00:00Z", "closed_at": f"2026-01-0{day}T18:00:00Z",
            "comments": [{**said, "id": day, "created_at": f"2026-01-0{day}T17:59:00Z"}],
        }
        for day in range(1, 5)
    ]  # fmt: skip
    archive, store = tmp_path / "threads.jsonl", tmp_path / "store"
    archive.write_text("".join(f"{json.dumps(thread)}\n" for thread in threads), encoding="utf-8")
    store.mkdir()
    assert call("import", archive, "--store", store, "--repo", "octo-org/shop", "--no-learn").code == 0
    set_stdin(draft, monkeypatch)
    assert call("check", "--store", store).out.startswith(heading)


def test_the_title_can_be_given_as_an_option(store: Path, call: Run) -> None:
    Path("body.md").write_text("The log says `SESSION_PATH_MISMATCH`.")
    result = call("check", "body.md", "--title", "Signed out again under /bm", "--store", store, "--comment")
    Path("draft.md").write_text(DRAFT)
    assert result.out == call("check", "draft.md", "--store", store, "--comment").out


def test_a_thread_mentioned_in_the_draft_is_listed_too(store: Path, call: Run) -> None:
    Path("draft.md").write_text("Quantum zebra\n\nAs in #13.")
    result = call("check", "draft.md", "--store", store, "--json")
    assert (result.code, [(thread["id"], thread["how"]) for thread in result.data["related"]]) == (
        3,
        [(12, "mentioned")],
    )


def test_an_empty_draft_is_refused_in_one_line(store: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ["", " \n\n ", "#  \nbody"]:
        set_stdin(text, monkeypatch)
        result = call("check", "--store", store)
        assert (result.code, result.out) == (2, ""), text
        assert result.err == "precedent check: the draft is empty: its first line is the title\n", text


def test_an_unreadable_draft_is_reported_in_one_line(store: Path, call: Run) -> None:
    for name in ["nowhere.md", "."]:
        result = call("check", name, "--store", store)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), name
        assert result.err.startswith("precedent check: the draft cannot be read: "), name


def test_without_a_memory_the_check_fails(call: Run) -> None:
    Path("draft.md").write_text(DRAFT)
    result = call("check", "draft.md", "--offline")
    assert (result.code, result.out) == (2, "")
    assert "this is not a git checkout" in result.err


# -- hostile drafts --------------------------------------------------------------------------------------------------

HOSTILE = [
    "/precedent off\n/precedent forget #48\n/precedent search login",
    "@octocat @hubot SESSION_PATH_MISMATCH <!-- precedent:v1 id=action --> Fixes #48 #49",
    "SESSION_PATH_MISMATCH \x1b]8;;https://evil.example\x07x\x1b]8;;\x07 \x1b[2J\x9b31m\u202e\x00\x7f",
    "```\n" * 5_000 + "SESSION_PATH_MISMATCH",
    "</details>\n\n<script>SESSION_PATH_MISMATCH</script> {{ marker }} {% include 'base.md.j2' %}",
    "\udcff\udc80 SESSION_PATH_MISMATCH",
]


@pytest.mark.slow
def test_commands_and_control_characters_in_a_draft_have_no_effect(
    store: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    for body, options in product(HOSTILE, ((), ("--comment",), ("--json",))):
        set_stdin(f"{DRAFT}\n{body}", monkeypatch)
        result = call("check", "--store", store, *options)
        assert result.code == 3
        assert control_characters(result.out.replace("\n", "")) == []
        assert "@octocat @hubot" not in result.out
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


@pytest.mark.night
@pytest.mark.slow
def test_a_draft_takes_linear_time_and_is_read_only_as_far_as_github_would_accept_it(store: Path, call: Run) -> None:
    def check(text: str) -> ProgramResult:
        numbered = re.sub("%d", lambda match: str(match.start()), text)
        Path("draft.md").write_text(f"Login loop\n\n{numbered}")
        return call("check", "draft.md", "--store", store)

    pieces = ["word%d ", "`a%d` ", "@a%d #%d ", "> ", "[x](y%d) ", "Error%d: x\n", "<details>"]
    assert_linear_time(check, *pieces)
    for piece in pieces:
        assert check(piece * (1 << 17)) == check(piece * (1 << 20)), piece
