"""What a run prints and leaves for the runner holds only its own commands and outputs, whatever strangers write."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.action.environment import append, read_environment, write_file
from bot.action.outputs import context_file, outputs
from bot.comment.clean_text import log_line, plain_log_line
from bot.domain.answer import CondensedTurn, Context, Match
from bot.errors import WorldError
from bot.git.errors import parse_error
from bot.github.errors import error_for_graphql, error_for_status
from bot.github.threads import OwnComment
from bot.pipeline.reconcile import CommentResult
from tests.threats.runner import LINE_ENDS, commands, hostile_texts, read_outputs_file

pytestmark = pytest.mark.slow

OURS = ("error", "notice", "warning")
NAMES = ("matches", "context", "report", "comment-id", "comment-url", "spoke", "would-speak", "reason")


@pytest.mark.parametrize(
    ("printed", "names"),
    [
        ("::error::x", ["error"]),
        ("  \t::add-mask::x", ["add-mask"]),
        ("\u3000::set-env name=A::b", ["set-env"]),
        ("text ::error::x", []),
        ("text ##[add-matcher]x", ["add-matcher"]),
        ("a\r::stop-commands::t", ["stop-commands"]),
        ("a\u2028::stop-commands::t", ["stop-commands"]),
        (":: x", []),
    ],
)
def test_the_parser_finds_what_a_runner_finds(printed: str, names: list[str]) -> None:
    assert commands(printed) == names


def test_five_thousand_hostile_texts_in_every_line_make_no_command() -> None:
    for text in hostile_texts(5_000):
        for line in (
            plain_log_line(text),
            plain_log_line(f"Issue 7: silent ({text})"),
            plain_log_line(f"A permission is missing: {text}"),
        ):
            assert commands(line) == [], repr(text)
            assert "::" not in line
            assert "##[" not in line
            assert not re.search("|".join(map(re.escape, LINE_ENDS)), line)
        for kind in OURS:
            assert commands(f"::{kind}::{log_line(text)}") == [kind], repr(text)


def test_messages_of_git_and_github_make_no_command() -> None:
    for text in hostile_texts(1_500):
        git = str(parse_error("push", f"remote: {text}\nfatal: {text}"))
        github = [
            str(error_for_status(status, {}, {"message": text})) for status in (401, 403, 404, 410, 422, 429, 500)
        ]
        graphql = str(error_for_graphql([{"message": text}], {}))
        for line in (git, *github, graphql):
            assert commands(f"::error::{log_line(line)}") == ["error"], repr(text)
            assert commands(plain_log_line(line)) == []


def test_log_messages_of_libraries_make_no_command(tmp_path: Path) -> None:
    script = (
        "import json, logging, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "from bot.action.environment import prepare_process\n"
        "prepare_process()\n"
        "for text in json.load(open(sys.argv[1])): logging.getLogger('x').warning('not squashed: %s', text)\n"
        "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))\n"
    )
    texts = list(hostile_texts(500))
    (tmp_path / "texts").write_text(json.dumps(texts), encoding="utf-8")
    command = [sys.executable, "-I", "-c", script, str(tmp_path / "texts")]
    process = subprocess.run(command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "utf-8"})
    assert process.stderr == b""
    lines = process.stdout.decode().splitlines()
    assert len(lines) == len(texts) + 1
    assert commands("\n".join(lines)) == []
    assert lines[-1] == "(0, 0)"
    assert logging.getLogger().getEffectiveLevel() <= logging.WARNING


def comment_result(text: str) -> CommentResult:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    match = Match(48, text, 0.5, text, at, why=(text,), conversation=(CondensedTurn(text, text, at, text),))
    context = Context(seen_before=(match,))
    return CommentResult(7, text, "created", text, context, text, OwnComment(5, text, "https://github.com/x"))


def test_outputs_hold_our_names_and_nothing_else() -> None:
    for text in hostile_texts(2_000):
        read = read_outputs_file(outputs(comment_result(text), ".precedent/context-7.md"))
        assert tuple(read) == NAMES, repr(text)
        assert read["comment-id"] == "5"
        assert read["spoke"] == "true"
        assert read["context"] == ".precedent/context-7.md"
        assert json.loads(read["matches"]) == [{"number": 48, "state": text, "similarity": 0.5}]


def test_the_delimiter_of_outputs_cannot_be_guessed() -> None:
    fences = {re.search(r"<<(\S+)", outputs(comment_result("x"), ""))[1] for _ in range(50)}  # type: ignore[index]
    assert len(fences) == 50
    assert all(re.fullmatch(r"precedent_[0-9a-f]{32}", fence) for fence in fences)


@pytest.mark.parametrize("which", ["the folder", "the file"])
def test_no_file_is_written_through_a_link(tmp_path: Path, which: str) -> None:
    elsewhere, workspace = tmp_path / "elsewhere", tmp_path / "workspace"
    elsewhere.mkdir()
    workspace.mkdir()
    if which == "the folder":
        (workspace / ".precedent").symlink_to(elsewhere)
    else:
        (workspace / ".precedent").mkdir()
        (workspace / ".precedent" / "context-7.md").symlink_to(elsewhere / "profile")
    runner_environment = read_environment(
        {
            "GITHUB_EVENT_NAME": "issues",
            "GITHUB_EVENT_PATH": "/x",
            "GITHUB_REPOSITORY": "a/b",
            "GITHUB_WORKSPACE": str(workspace),
        }
    )
    with pytest.raises(WorldError, match=r"is a symlink|Too many levels of symbolic links"):
        write_file(runner_environment, "context-7.md", "evil")
    assert list(elsewhere.iterdir()) == []
    with pytest.raises(WorldError):
        context_file(runner_environment, comment_result("x"))


def test_the_runners_file_is_only_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    file.write_text("before\n", encoding="utf-8")
    append(str(file), "after \ud800\n")
    assert file.read_text(encoding="utf-8") == "before\nafter ?\n"
