"""`precedent context`, which gives an agent recent conversations, and the Action's context file, which adds them."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any
from zoneinfo import TZPATH

import pytest

from bot.action.environment import read_environment
from bot.action.outputs import MAX_CONTEXT, context_file
from bot.cli import parser
from bot.cli.commands.context import ContextArguments, issue_head, run_context
from bot.comment.prompt import DATA_NOTICE
from bot.domain.answer import CondensedTurn, Context
from bot.domain.card import Card
from bot.domain.changes import Changes
from bot.domain.thread import Kind, Message, Thread
from bot.errors import UserError
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.reconcile import CommentResult
from bot.questions import requests as tiers
from bot.questions.context import RecentConversations, recent_conversations
from bot.questions.fields import SHOWN_FIELDS, item_of, row_of
from bot.sources.sessions.times import local_key, local_zone, zone_named
from tests.cli.checkouts import create_cookie_checkout
from tests.comment.gallery import GALLERY
from tests.sources.session_lines import write

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)
TALK = [
    {"type": "user", "sessionId": "abc", "timestamp": "2026-05-14T11:40:00Z", "message": "Why does it loop?"},
    {"type": "assistant", "sessionId": "abc", "timestamp": "2026-05-14T11:41:00Z", "message": "The cookie."},
]


def parse(*arguments: str | Path) -> ContextArguments:
    return parser.parse(["context", *map(str, arguments)])


def context(*arguments: str | Path) -> str:
    text = run_context(parse(*arguments))
    assert isinstance(text, str)
    return text


def context_root(*arguments: str | Path) -> ET.Element:
    return ET.fromstring(context(*arguments))


def threads_in(root: ET.Element) -> list[str | None]:
    return [conversation.get("thread") for conversation in root.findall("conversation")]


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    lines = [dict(line, message={"role": line["type"], "content": line["message"]}) for line in TALK]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "abc.jsonl").write_text(f"{text}not json\n", encoding="utf-8")
    return folder


# Scopes


def test_an_issue_is_shown_as_it_was_at_the_given_time(sample_store: Path) -> None:
    root = context_root("--issue", "28", "--store", sample_store, "--as-of", "2025-10-23T19:45Z", "--me", "hubot")
    assert root.findtext("thread-status") == "CONTINUATION"
    assert threads_in(root) == ["28"] * 4
    assert [conversation.get("summary") for conversation in root.findall("conversation")] == [
        None,
        "true",
        "true",
        "true",
    ]
    assert "[you 07:44] Found it" in ET.tostring(root, encoding="unicode")


def test_a_participant_gets_every_thread_they_wrote_in(sample_store: Path) -> None:
    options = ("--store", sample_store, "--as-of", "2025-10-07T19:45Z")
    assert set(threads_in(context_root("--participant", "@Monalisa", *options))) == {"26", "23"}
    assert threads_in(context_root("--participant", "sample-user-1", *options)) == ["26"] * 4
    last_day = threads_in(context_root("--participant", "monalisa", "--days", "1", *options))
    assert set(last_day) == {"26"}


def test_threads_that_only_the_participant_wrote_in_are_included(tmp_path: Path) -> None:
    memory = Memory(FolderStore(tmp_path)).open()
    threads = [
        Thread(n, f"Title {n}", "Spam and more.", "mallory", NOW, state="closed", closed_at=NOW) for n in range(1, 60)
    ]
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("x")
    memory.close()
    root = context_root("--participant", "mallory", "--store", tmp_path, "--as-of", NOW.isoformat())
    assert len(threads_in(root)) == 59


def test_sessions_are_read_from_their_folder(sessions: Path) -> None:
    root = context_root("--sessions", sessions, "--as-of", "2026-05-14T11:50Z", "--timezone", "Asia/Kolkata")
    assert threads_in(root) == ["abc"]
    assert root.findtext("conversation") == "\n[human 17:10] Why does it loop?\n[you 17:11] The cookie.\n"


def test_files_unchanged_for_the_given_days_are_not_read(sessions: Path) -> None:
    long_ago = (NOW - timedelta(days=8)).timestamp()
    os.utime(sessions / "abc.jsonl", (long_ago, long_ago))
    assert context("--sessions", sessions, "--as-of", NOW.isoformat()) == ""
    assert threads_in(context_root("--sessions", sessions, "--as-of", NOW.isoformat(), "--days", "9")) == ["abc"]


def test_a_missing_checkout_store_or_folder_is_reported(
    sample_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, message in [
        (("--issue", "1"), "this is not a git checkout"),
        (("--issue", "1", "--store", tmp_path / "none"), "no store at"),
        (("--sessions", tmp_path / "none"), "takes the folder of the transcripts"),
    ]:
        with pytest.raises(UserError, match=message):
            context(*arguments)


def test_an_invalid_option_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        ((), "one of the arguments --issue --participant --sessions --branch is required"),
        (("--issue", "1", "--branch"), "not allowed with argument --issue"),
        (("--issue", "x"), "'x' is not an issue such as 42, #42, OWNER/NAME#42"),
        (("--issue", "1", "--chars", "999"), "'999' is not a number from 1,000 to 120,000"),
        (("--issue", "1", "--days", "31"), "'31' is not a number from 1 to 30"),
        (("--participant", "a b"), "'a b' is not an account's login"),
        (("--issue", "1", "--me", "-x-\n"), "--me"),
        (("--issue", "1", "--timezone", "Europe"), "'Europe' is not a time zone such as Europe/Berlin"),
        (("--issue", "1", "--timezone", "../../etc/passwd"), "is not a time zone"),
        (("--issue", "1", "--as-of", "yesterday"), "'yesterday' is not a time such as"),
        (("--issue", "1", "--format", "yaml"), "invalid choice: 'yaml'"),
    ]
    for arguments, message in cases:
        with pytest.raises(SystemExit) as exit_info:
            parse(*arguments)
        assert exit_info.value.code == 2, arguments
        assert message in capsys.readouterr().err, arguments


# The issue itself


def test_an_old_issue_is_shown_with_its_ending_and_its_newest_conversation(
    sample_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--issue", "28", "--store", sample_store, "--as-of", "2031-01-01T00:00Z", "--days", "1")
    root = context_root(*options)
    (thread,) = root.findall("thread")
    fix = {"fix": "c7959c3aecbfb0534681cde05c58dcc58783543e", "release": "1.2.1", "outcome": "fixed"}
    assert thread.attrib.items() >= ({"id": "28", "state": "closed", "closed": "2025-10-23T19:30:00Z"} | fix).items()
    assert thread.findtext("title") == "Deleting a tag deleted all bookmarks that had it!"
    assert thread.findtext("outcome") == "Fixed in 1.2.1. The trash arrives with 1.3."
    (newest,) = root.findall("conversation")
    assert (newest.get("until"), newest.get("summary")) == ("2025-10-23T19:30+00:00", None)
    data = json.loads(context(*options, "--json"))
    assert (data["issue"]["outcome"]["fix"], len(data["conversations"])) == (fix["fix"], 1)
    markdown = context(*options, "--format", "markdown")
    assert "\n## #28\n\n- state: closed\n- closed: 2025-10-23\n" in markdown
    assert "[human 19:30] octocat: Fixed in 1.2.1." in markdown
    assert capsys.readouterr().err == ""


def test_the_issue_is_shown_as_it_was_at_the_given_time(sample_store: Path) -> None:
    root = context_root("--issue", "28", "--store", sample_store, "--as-of", "2025-10-22T08:00Z")
    (thread,) = root.findall("thread")
    assert (thread.get("state"), thread.get("outcome"), thread.findall("decision")) == ("open", None, [])


def test_the_newest_conversation_may_be_a_session_however_old(
    sample_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = create_cookie_checkout(tmp_path / "linkbarn")
    monkeypatch.chdir(folder)
    for name, month in (("old", 9), ("older", 8)):
        at = f"2026-{month:02}-01T10:00:00Z"
        line = {"type": "user", "sessionId": name, "timestamp": at, "message": {"role": "user", "content": "Fix #28"}}
        write(folder / f".claude/logging/{name}.jsonl", line)
    root = context_root("--issue", "28", "--store", sample_store, "--as-of", "2031-01-01T00:00Z")
    assert [thread.get("id") for thread in root.findall("thread")] == ["28"]
    assert threads_in(root) == ["old"]


@pytest.mark.parametrize("format_name", ["xml", "markdown", "json"])
@pytest.mark.parametrize("chars", [1_000, 1_500, 3_000, 120_000])
def test_a_long_issue_leaves_room_for_its_newest_conversation(tmp_path: Path, format_name: str, chars: int) -> None:
    decided = [Message("octocat", "OWNER", NOW, f"We decided to take the way {n}{' and on' * 90}.") for n in range(20)]
    thread = Thread(1, "Which way? <&>", "word " * 400, "monalisa", NOW - timedelta(days=1), comments=tuple(decided))
    memory = Memory(FolderStore(tmp_path)).open()
    memory.stage(Changes(records=(thread,)))
    memory.commit("x")
    memory.close()
    options = ("--issue", "1", "--store", tmp_path, "--as-of", "2031-01-01T00:00Z", "--chars", str(chars))
    text = context(*options, "--format", format_name)
    assert len(text) <= chars
    assert "and on and on." in text, "the newest message"
    has_issue = '"issue": ' in text if format_name == "json" else "\n## #1\n" in text or '<thread id="1"' in text
    assert has_issue == (chars > 1_000 or format_name != "json")


def test_the_latest_decisions_of_a_long_issue_are_kept() -> None:
    decisions = [
        dict.fromkeys(("author", "role", "at", "superseded_by"), "") | {"text": f"way {n} " * 30} for n in range(3)
    ]
    card = Card(1, Kind.ISSUE, "Which way?", "closed", "monalisa", NOW, NOW, turn_count=1, summary="words")
    row = row_of(SHOWN_FIELDS, item_of(card, "")) | {"decisions": decisions}
    heads = [issue_head(row, "xml", chars) for chars in range(200, 3_000, 100)]
    kept = [sorted(set(re.findall(r"way (\d)", head))) for head in heads]
    assert [key for key, _ in groupby(kept)] == [[], ["2"], ["1", "2"], ["0", "1", "2"]]
    assert [key for key, _ in groupby("words" in head for head in heads)] == [False, True]
    assert heads[0] == ""


# Output


def test_without_conversations_the_output_is_empty_and_a_note_says_why(
    sample_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for format_name in ("xml", "markdown", "json"):
        options = ("--store", sample_store, "--format", format_name, "--days", "1")
        assert context("--participant", "sample-user-6", "--as-of", "2026-08-01T12:00Z", *options) == ""
        assert capsys.readouterr().err == "Nothing was said in the last 1 day.\n"
        assert context("--issue", "28", "--as-of", "2025-10-21T12:00Z", *options) == "", "it was not opened yet"
        assert capsys.readouterr().err == "Nothing was said in the last 1 day.\n"
    assert context("--issue", "999999", "--store", sample_store, "--as-of", "2025-10-23T19:45Z") == ""
    assert capsys.readouterr().err.startswith("No thread #999999 in this memory.\n")


def test_the_json_option_is_short_for_the_json_format(sample_store: Path) -> None:
    options = ("--issue", "28", "--store", sample_store, "--as-of", "2025-10-23T19:45Z")
    assert context(*options, "--json") == context(*options, "--format", "json")
    assert json.loads(context(*options, "--json"))["schema"] == 1
    assert context(*options, "--format", "markdown").startswith("# What was said lately\n")


def test_the_output_stays_within_the_given_length(sample_store: Path) -> None:
    options = ("--participant", "octocat", "--store", sample_store, "--as-of", "2025-10-23T19:45Z", "--days", "30")
    full, short = context(*options), context(*options, "--chars", "2000")
    assert len(short) <= 2_000 < len(full)
    ET.fromstring(short)


def test_the_agent_is_the_configured_bot_unless_an_option_names_it(tmp_path: Path) -> None:
    comments = (Message("github-actions[bot]", "NONE", NOW, "b"), Message("helper", "NONE", NOW, "c"))
    memory = Memory(FolderStore(tmp_path)).open()
    memory.stage(Changes(records=(Thread(1, "t", "a", "monalisa", NOW, comments=comments),)))
    memory.commit("x")
    memory.close()
    options = ("--issue", "1", "--store", tmp_path, "--as-of", NOW.isoformat())
    assert re.findall(r"(?m)^\[(\w+)", context(*options)) == ["human", "you", "human"]
    named = context(*options, "--me", "helper", "--me", "MonaLisa")
    assert re.findall(r"(?m)^\[(\w+)", named) == ["you", "human", "you"]


def test_the_local_time_zone_is_found(tmp_path: Path) -> None:
    summer, winter = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    def offsets(environ: dict[str, str], local_time: Path = tmp_path / "none") -> list[timedelta | None]:
        zone = local_zone(environ, local_time)
        return [when.astimezone(zone).utcoffset() for when in (summer, winter)]

    one_hour, two_hours, no_offset = timedelta(hours=1), timedelta(hours=2), timedelta()
    assert offsets({"TZ": "Europe/Berlin"}) == offsets({"TZ": ":Europe/Berlin"}) == [two_hours, one_hour]
    assert offsets({"TZ": "nowhere"}) == offsets({"TZ": "/nowhere"}) == offsets({}) == [no_offset, no_offset]
    for zone_file in filter(Path.is_file, (Path(folder, "Europe/Berlin") for folder in TZPATH)):
        assert (
            offsets({"TZ": f":{zone_file}"})
            == offsets({"TZ": str(zone_file)})
            == offsets({}, zone_file)
            == [two_hours, one_hour]
        )
    (tmp_path / "bad").write_bytes(b"no zone")
    assert offsets({}, tmp_path / "bad") == [no_offset, no_offset]
    assert offsets({}, tmp_path) == [no_offset, no_offset]
    assert zone_named("x" * 5_000) is None
    (tmp_path / "link").symlink_to("Berlin")
    keys = [local_key({"TZ": "Europe/Berlin"}), local_key({}, tmp_path / "link"), local_key({}, tmp_path / "bad")]
    assert keys == ["Europe/Berlin", str(tmp_path / "Berlin"), str(tmp_path / "bad")]


# The Action's file


def action_environment(folder: Path) -> Any:
    names = {"GITHUB_EVENT_NAME": "issues", "GITHUB_EVENT_PATH": "/x", "GITHUB_REPOSITORY": "a/b"}
    return read_environment(names | {"GITHUB_WORKSPACE": str(folder)})


def comment_result(findings: Context | None = None) -> CommentResult:
    return CommentResult(7, "Login loops", "silent", context=findings or Context())


def make_history(*texts: str) -> RecentConversations:
    opening, *later = texts
    comments = tuple(Message("octocat", "NONE", NOW + timedelta(minutes=n), text) for n, text in enumerate(later, 1))
    return recent_conversations(
        [Thread(7, "Login loops", opening, "monalisa", NOW, comments=comments)], [], NOW + timedelta(hours=1)
    )


def read_text(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8") if path else ""


def test_the_file_holds_the_history_after_the_findings(tmp_path: Path) -> None:
    findings = GALLERY["possibly-back"].context
    alone = read_text(tmp_path, context_file(action_environment(tmp_path), comment_result(findings)))
    both = read_text(
        tmp_path, context_file(action_environment(tmp_path), comment_result(findings), make_history("a", "b"))
    )
    assert both.startswith(alone)
    assert both[len(alone) :] == (
        "\n## What was said lately\n\n- thread status: NEW CONVERSATION (the last one is over)\n"
        "\n### issue 7, today\n\n- from 2026-05-14T12:00+00:00 to 2026-05-14T12:01+00:00\n\n"
        "```text\ntitle: Login loops\n[human 12:00] monalisa: a\n[human 12:01] octocat: b\n```\n"
    )


def test_a_history_alone_makes_a_file_and_the_opening_text_alone_makes_none(tmp_path: Path) -> None:
    environment = action_environment(tmp_path)
    assert context_file(environment, comment_result(), make_history("a")) == ""
    assert context_file(environment, comment_result(), recent_conversations([], [], NOW)) == ""
    assert context_file(environment, comment_result()) == ""
    text = read_text(tmp_path, context_file(environment, comment_result(), make_history("a", "b")))
    assert text.index(DATA_NOTICE) < text.index("octocat: b")


@pytest.mark.parametrize("length", [1_000, 60_000, 118_000, 119_500, 130_000])
def test_the_file_stays_within_its_limit(tmp_path: Path, length: int) -> None:
    findings = GALLERY["possibly-back"].context
    (match,) = findings.seen_before
    conversation = (CondensedTurn("octocat", "NONE", NOW, "word " * (length // 5)),)
    findings = replace(findings, seen_before=(replace(match, conversation=conversation),))
    alone = read_text(tmp_path, context_file(action_environment(tmp_path), comment_result(findings)))
    long_history = make_history("a", *("x" * 60_000 for _ in range(4)))
    both = read_text(tmp_path, context_file(action_environment(tmp_path), comment_result(findings), long_history))
    assert len(both) <= max(MAX_CONTEXT, len(alone))
    assert (len(both) > len(alone)) is (len(alone) < MAX_CONTEXT - 1_000)
    history_only = read_text(tmp_path, context_file(action_environment(tmp_path), comment_result(), long_history))
    assert 60_000 < len(history_only) <= MAX_CONTEXT


# The documentation


def test_the_documented_example_is_what_the_command_prints(sample_store: Path) -> None:
    page = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```xml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    options = (
        "--issue",
        "13",
        "--store",
        sample_store,
        "--as-of",
        "2025-07-09T20:00Z",
        "--me",
        "hubot",
        "--timezone",
        "UTC",
    )
    assert example == context(*options)
    assert "precedent context --issue 13 --store memory --as-of 2025-07-09T20:00Z --me hubot --timezone UTC" in page


def test_the_options_have_the_limits_of_the_request() -> None:
    cases = [("--chars", tiers.MIN_CHARS, tiers.MAX_CHARS), ("--days", 1, tiers.MAX_DAYS)]
    for option, smallest, largest in cases:
        for number in (smallest, largest):
            assert getattr(parse("--issue", "1", option, str(number)), option.removeprefix("--")) == number, option
        for number in (smallest - 1, largest + 1):
            with pytest.raises(SystemExit):
                parse("--issue", "1", option, str(number))
