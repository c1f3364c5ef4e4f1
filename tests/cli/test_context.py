"""The command that tells an agent what was said lately, and the Action's file that tells it after the findings."""

from __future__ import annotations

import argparse
import json
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import TZPATH

import pytest

from bot.action.environment import read_environment
from bot.action.outputs import MAX_CONTEXT, context_file
from bot.cli import main
from bot.cli.commands.context import run_context
from bot.comment.prompt import DATA_NOTICE
from bot.domain.answer import CondensedTurn, Context
from bot.domain.changes import Changes
from bot.domain.thread import Message, Thread
from bot.errors import UserError
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.publish import CommentResult
from bot.questions import requests as tiers
from bot.questions.context import RecentConversations, recent_conversations
from bot.sources.archive_file import read_archive
from bot.sources.clock import local_key, local_zone, zone_named
from tests.comment.gallery import GALLERY

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)
TALK = [
    {"type": "user", "sessionId": "abc", "timestamp": "2026-05-14T11:40:00Z", "message": "Why does it loop?"},
    {"type": "assistant", "sessionId": "abc", "timestamp": "2026-05-14T11:41:00Z", "message": "The cookie."},
]


def parse(*arguments: str | Path) -> argparse.Namespace:
    return main.parser("context").parse_args(["context", *map(str, arguments)])


def context(*arguments: str | Path) -> str:
    told = run_context(parse(*arguments))
    assert isinstance(told, str)
    return told


def root_of(*arguments: str | Path) -> ET.Element:
    return ET.fromstring(context(*arguments))


def threads_in(root: ET.Element) -> list[str | None]:
    return [one.get("thread") for one in root.findall("conversation")]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the sample's threads."""
    folder = tmp_path_factory.mktemp("context") / "memory"
    memory = Memory(FolderStore(folder)).open()
    memory.stage(Changes(records=tuple(read_archive(ROOT / "sample/history.jsonl"))))
    memory.commit("Import")
    memory.close()
    return folder


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    lines = [dict(line, message={"role": line["type"], "content": line["message"]}) for line in TALK]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "abc.jsonl").write_text(f"{text}not json\n", encoding="utf-8")
    return folder


# Scopes


def test_an_issue_is_told_as_it_was_at_a_moment(sample: Path) -> None:
    root = root_of("--issue", "28", "--store", sample, "--as-of", "2025-10-23T19:45Z", "--me", "hubot")
    assert root.findtext("thread-status") == "CONTINUATION"
    assert threads_in(root) == ["28"] * 4
    assert [one.get("summary") for one in root.findall("conversation")] == [None, "true", "true", "true"]
    assert "[you 07:44] Found it" in ET.tostring(root, encoding="unicode")


def test_a_person_is_told_of_in_all_threads_in_which_they_wrote(sample: Path) -> None:
    asked = ("--store", sample, "--as-of", "2025-10-07T19:45Z")
    assert set(threads_in(root_of("--participant", "@Monalisa", *asked))) == {"26", "23"}
    assert threads_in(root_of("--participant", "sample-user-1", *asked)) == ["26"] * 4
    fewer = threads_in(root_of("--participant", "monalisa", "--days", "1", *asked))
    assert set(fewer) == {"26"}


def test_a_person_who_opened_and_closed_alone_is_told_of_too(tmp_path: Path) -> None:
    memory = Memory(FolderStore(tmp_path)).open()
    alone = [
        Thread(n, f"Title {n}", "Spam and more.", "mallory", NOW, state="closed", closed_at=NOW) for n in range(1, 60)
    ]
    memory.stage(Changes(records=tuple(alone)))
    memory.commit("x")
    memory.close()
    root = root_of("--participant", "mallory", "--store", tmp_path, "--as-of", NOW.isoformat())
    assert len(threads_in(root)) == 59


def test_sessions_are_read_from_their_folder(sessions: Path) -> None:
    root = root_of("--sessions", sessions, "--as-of", "2026-05-14T11:50Z", "--timezone", "Asia/Kolkata")
    assert threads_in(root) == ["abc"]
    assert root.findtext("conversation") == "\n[human 17:10] Why does it loop?\n[you 17:11] The cookie.\n"


def test_files_that_nobody_wrote_to_in_these_days_are_not_read(sessions: Path) -> None:
    long_ago = (NOW - timedelta(days=8)).timestamp()
    os.utime(sessions / "abc.jsonl", (long_ago, long_ago))
    assert context("--sessions", sessions, "--as-of", NOW.isoformat()) == ""
    assert threads_in(root_of("--sessions", sessions, "--as-of", NOW.isoformat(), "--days", "9")) == ["abc"]


def test_what_cannot_be_asked_is_refused_in_one_line(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, told in [
        (("--issue", "1"), "this is not a git checkout"),
        (("--issue", "1", "--store", tmp_path / "none"), "no store at"),
        (("--sessions", tmp_path / "none"), "takes the folder of the transcripts"),
    ]:
        with pytest.raises(UserError, match=told):
            context(*arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
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
    ],
)
def test_an_option_that_is_none_ends_with_code_two(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(*arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


# Output


def test_nothing_to_say_is_an_empty_string_and_a_remark(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for how in ("xml", "markdown", "json"):
        assert context("--issue", "28", "--store", sample, "--days", "1", "--format", how) == ""
        assert capsys.readouterr().err == "Nothing was said in the last 1 day.\n"
    assert context("--issue", "999999", "--store", sample, "--as-of", "2025-10-23T19:45Z") == ""
    assert capsys.readouterr().err.startswith("No thread #999999 in this memory.\n")


def test_json_is_a_format_with_a_short_name(sample: Path) -> None:
    asked = ("--issue", "28", "--store", sample, "--as-of", "2025-10-23T19:45Z")
    assert context(*asked, "--json") == context(*asked, "--format", "json")
    assert json.loads(context(*asked, "--json"))["schema"] == 1
    assert context(*asked, "--format", "markdown").startswith("# What was said lately\n")


def test_a_budget_is_kept(sample: Path) -> None:
    asked = ("--participant", "octocat", "--store", sample, "--as-of", "2025-10-23T19:45Z", "--days", "30")
    whole, part = context(*asked), context(*asked, "--chars", "2000")
    assert len(part) <= 2_000 < len(whole)
    ET.fromstring(part)


def test_the_agent_is_the_bot_of_the_settings_unless_named(tmp_path: Path) -> None:
    said = (Message("github-actions[bot]", "NONE", NOW, "b"), Message("helper", "NONE", NOW, "c"))
    memory = Memory(FolderStore(tmp_path)).open()
    memory.stage(Changes(records=(Thread(1, "t", "a", "monalisa", NOW, comments=said),)))
    memory.commit("x")
    memory.close()
    asked = ("--issue", "1", "--store", tmp_path, "--as-of", NOW.isoformat())
    assert re.findall(r"(?m)^\[(\w+)", context(*asked)) == ["human", "you", "human"]
    named = context(*asked, "--me", "helper", "--me", "MonaLisa")
    assert re.findall(r"(?m)^\[(\w+)", named) == ["you", "human", "you"]


def test_the_time_zone_is_that_of_here(tmp_path: Path) -> None:
    summer, winter = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    def offsets(environ: dict[str, str], place: Path = tmp_path / "none") -> list[timedelta | None]:
        zone = local_zone(environ, place)
        return [when.astimezone(zone).utcoffset() for when in (summer, winter)]

    one, two, none = timedelta(hours=1), timedelta(hours=2), timedelta()
    assert offsets({"TZ": "Europe/Berlin"}) == offsets({"TZ": ":Europe/Berlin"}) == [two, one]
    assert offsets({"TZ": "nowhere"}) == offsets({"TZ": "/nowhere"}) == offsets({}) == [none, none]
    for known in filter(Path.is_file, (Path(folder, "Europe/Berlin") for folder in TZPATH)):
        assert offsets({"TZ": f":{known}"}) == offsets({"TZ": str(known)}) == offsets({}, known) == [two, one]
    (tmp_path / "bad").write_bytes(b"no zone")
    assert offsets({}, tmp_path / "bad") == [none, none]
    assert offsets({}, tmp_path) == [none, none]
    assert zone_named("x" * 5_000) is None
    (tmp_path / "link").symlink_to("Berlin")
    keys = [local_key({"TZ": "Europe/Berlin"}), local_key({}, tmp_path / "link"), local_key({}, tmp_path / "bad")]
    assert keys == ["Europe/Berlin", str(tmp_path / "Berlin"), str(tmp_path / "bad")]


# The Action's file


def workspace(folder: Path) -> Any:
    names = {"GITHUB_EVENT_NAME": "issues", "GITHUB_EVENT_PATH": "/x", "GITHUB_REPOSITORY": "a/b"}
    return read_environment(names | {"GITHUB_WORKSPACE": str(folder)})


def spoken(found: Context | None = None) -> CommentResult:
    return CommentResult(7, "Login loops", "silent", context=found or Context())


def lately(*texts: str) -> RecentConversations:
    opening, *later = texts
    said = tuple(Message("octocat", "NONE", NOW + timedelta(minutes=n), t) for n, t in enumerate(later, 1))
    return recent_conversations(
        [Thread(7, "Login loops", opening, "monalisa", NOW, comments=said)], [], NOW + timedelta(hours=1)
    )


def left(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8") if path else ""


def test_the_file_holds_the_history_after_the_findings(tmp_path: Path) -> None:
    found = GALLERY["possibly-back"].context
    alone = left(tmp_path, context_file(workspace(tmp_path), spoken(found)))
    both = left(tmp_path, context_file(workspace(tmp_path), spoken(found), lately("a", "b")))
    assert both.startswith(alone)
    assert both[len(alone) :] == (
        "\n## What was said lately\n\n- thread status: NEW CONVERSATION (the last one is over)\n"
        "\n### issue 7, today\n\n- from 2026-05-14T12:00+00:00 to 2026-05-14T12:01+00:00\n\n"
        "```text\ntitle: Login loops\n[human 12:00] monalisa: a\n[human 12:01] octocat: b\n```\n"
    )


def test_a_history_alone_makes_a_file_and_the_opening_text_alone_makes_none(tmp_path: Path) -> None:
    around = workspace(tmp_path)
    assert context_file(around, spoken(), lately("a")) == ""
    assert context_file(around, spoken(), recent_conversations([], [], NOW)) == ""
    assert context_file(around, spoken()) == ""
    text = left(tmp_path, context_file(around, spoken(), lately("a", "b")))
    assert text.index(DATA_NOTICE) < text.index("octocat: b")


@pytest.mark.parametrize("long", [1_000, 60_000, 118_000, 119_500, 130_000])
def test_the_file_stays_within_its_bound(tmp_path: Path, long: int) -> None:
    found = GALLERY["possibly-back"].context
    (match,) = found.seen_before
    said = (CondensedTurn("octocat", "NONE", NOW, "word " * (long // 5)),)
    found = replace(found, seen_before=(replace(match, conversation=said),))
    alone = left(tmp_path, context_file(workspace(tmp_path), spoken(found)))
    past_of_much = lately("a", *("x" * 60_000 for _ in range(4)))
    both = left(tmp_path, context_file(workspace(tmp_path), spoken(found), past_of_much))
    assert len(both) <= max(MAX_CONTEXT, len(alone))
    assert (len(both) > len(alone)) is (len(alone) < MAX_CONTEXT - 1_000)
    only = left(tmp_path, context_file(workspace(tmp_path), spoken(), past_of_much))
    assert 60_000 < len(only) <= MAX_CONTEXT


# The documentation


def shown_in_docs(language: str) -> list[str]:
    page = (ROOT / "docs/context.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_example_of_the_documentation_is_what_is_printed(sample: Path) -> None:
    (shown,) = shown_in_docs("xml")
    asked = ("--issue", "28", "--store", sample, "--as-of", "2025-10-23T19:45Z", "--me", "hubot", "--timezone", "UTC")
    assert shown == context(*asked)
    page = (ROOT / "docs/context.md").read_text(encoding="utf-8")
    assert "precedent context --issue 28 --store memory --as-of 2025-10-23T19:45Z --me hubot --timezone UTC" in page


@pytest.mark.parametrize(
    ("option", "least", "most"), [("--chars", tiers.MIN_CHARS, tiers.MAX_CHARS), ("--days", 1, tiers.MAX_DAYS)]
)
def test_the_options_have_the_limits_of_what_they_are_for(option: str, least: int, most: int) -> None:
    for number in (least, most):
        assert getattr(parse("--issue", "1", option, str(number)), option.removeprefix("--")) == number
    for number in (least - 1, most + 1):
        with pytest.raises(SystemExit):
            parse("--issue", "1", option, str(number))
