"""`precedent try` at a fake GitHub: what it reads, what it keeps, what it shows, and what it says when it cannot."""

from __future__ import annotations

import argparse
import json
import re
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.arguments import NamedRepository, named_repository
from bot.pipeline.learn import LEAST_THREADS
from tests.cli.console import Run
from tests.cli.tried import PAGE, REPO, Try, at, fill, page, started
from tests.fakes.github import FakeGitHub

ERROR = "The exporter stops with ExportQueueOverflow in export_queue.py"
BODY = """It stops after a minute.

```
  File "linkbarn/export_queue.py", line 88, in push
ExportQueueOverflow: 4096 rows wait, the limit is 4096
```
"""


# What it shows


def test_a_repository_is_read_and_shown(github: FakeGitHub, tries: Try) -> None:
    fill(github, 8)
    first = github.open_issue("octocat", ERROR, BODY, at=at(10))
    github.comment(first, "octocat", "Fixed in 1.2: the queue is bounded now.", at=at(11))
    github.close(first, "octocat", at=at(11))
    last = github.open_issue("hubot", "Import of tags is slow", f"As in #{first}.", at=at(12))
    ended = tries("--last", "4")
    assert (ended.code, github.writes) == (0, 0)
    words, address = ended.out.splitlines()
    assert words == (
        "Of the 4 newest issues, it would have shown similar ones on 0 (0.0 %). On 1 other issue, it would have shown "
        "only what the text itself mentions. That is too little to tell how good it is in this repository."
    )
    assert address == Path(PAGE).absolute().as_uri()
    assert ended.err == (
        f"{REPO}: reading all 10 issues in 1 request, "
        "for 2 of the 999 points left this hour; nothing is written there.\n"
    )
    shown = page()
    assert f"Precedent backtest · <bdi>{REPO}</bdi>" in shown
    assert f"https://github.com/{REPO}/issues/{first}" in shown
    assert "a memory of 10 threads, with a similarity threshold of 0.65" in shown
    assert [f"#{key}" in shown for key in (first, last)] == [True, True]
    assert shown.count("<article ") == 4


@pytest.mark.slow
def test_the_command_as_a_process(github: FakeGitHub, tmp_path: Path) -> None:
    fill(github, 12)
    done = started(github, tmp_path, "--last", "10", "--json")
    out, err = done.communicate(timeout=60)
    assert (done.returncode, err.count("\n")) == (0, 1)
    figures = json.loads(out)
    assert (figures["issues"], figures["commented"], figures["history"], figures["of"]) == (10, 0, 12, 12)
    assert Path(figures["page"]) == tmp_path / PAGE
    assert (tmp_path / PAGE).is_file()


def test_the_figures_are_those_of_backtest(github: FakeGitHub, tries: Try, call: Run, tmp_path: Path) -> None:
    fill(github, 30)
    first, second = (github.open_issue("hubot", ERROR, BODY, at=at(40 + n)) for n in range(2))
    github.comment(second, "octocat", f"Duplicate of #{first}", at=at(50))
    github.close(second, "octocat", "duplicate", at=at(50))
    tried = tries("--last", "5", "--json").data
    assert (tried["commented"], tried["grades"]["success"]) == (1, 1)
    assert (tried["repository"], tried["issues"], tried["history"]) == (tried["repo"], tried["n"], tried["threads"])
    assert (tried["of"], tried["private"], tried["read_at"]) == (32, False, at(50))
    (store,) = (tmp_path / "cache" / "precedent" / "tries").iterdir()
    same = call("backtest", "--store", store, "--last", "5", "--json").data
    times = {"ms_p50", "ms_p95", "seconds"}
    assert {name: tried[name] for name in same.keys() - times} == {name: same[name] for name in same.keys() - times}


def test_a_history_that_is_long_enough_teaches(github: FakeGitHub, tries: Try) -> None:
    fill(github, LEAST_THREADS)
    assert "cut" in tries("--last", "3", "--json").data["evidence"]


def test_settings_that_are_tried_are_heeded(github: FakeGitHub, tries: Try) -> None:
    first = github.open_issue("octocat", ERROR, BODY, at=at(1))
    fill(github, 9, 10)
    github.open_issue("hubot", "It is slow", f"See #{first}.", at=at(30))
    github.open_issue("monalisa", "It is slower", f"See #{first}.", at=at(31))
    Path("mine.yml").write_text(
        "ignore:\n  authors: [hubot]\ntroubleshooting:\n  similarity_threshold: 0.8\n", encoding="utf-8"
    )
    found = tries("--last", "2", "--config", "mine.yml", "--json").data
    assert (found["issues"], found["wanted"], found["threshold"]) == (1, 1, 0.8)
    assert [title in page() for title in ("It is slower", "It is slow<")] == [True, False]


def test_what_of_the_settings_is_not_tried_is_told(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    Path("mine.yml").write_text("pulls: true\nsemantic:\n  model: models/small\n", encoding="utf-8")
    missing = "without its text model (semantic.model) and pull requests (pulls)"
    assert tries("--config", "mine.yml").err.startswith(f"precedent try: mine.yml is tried {missing}\n")
    Path("mine.yml").write_text("mode: summary\n", encoding="utf-8")
    assert "without" not in tries("--config", "mine.yml").err


def test_discussions_that_are_not_tried_are_told(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    assert "discussion" not in tries().err
    github.discuss("hubot", "How do I keep the cookie?")
    assert tries().err.endswith("precedent try: 1 discussion left out of the trial\n")
    github.world.tokens[github.token].permissions = {"issues": "read", "contents": "read"}
    ended = tries()
    assert (ended.code, "discussion" in ended.err) == (0, False)


def test_a_repository_of_bots_has_nothing_to_show(github: FakeGitHub, tries: Try) -> None:
    github.open_issue("dependabot[bot]", "Bump", at=at(1))
    assert tries().out.startswith("There is no issue to replay yet.")


def test_a_private_repository_is_kept_from_others(github: FakeGitHub, tries: Try) -> None:
    github.repo.private = True
    fill(github, 3)
    Path(PAGE).touch(mode=0o644)
    assert "keep it private too" in tries().out
    assert stat.S_IMODE(Path(PAGE).stat().st_mode) == 0o600


def test_the_page_goes_where_it_is_wanted_and_opens(
    github: FakeGitHub, tries: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(github, 3)
    opener = tmp_path / "browser"
    opener.write_text('#!/bin/sh\nprintf %s "$1" > "$0.saw"\n', encoding="utf-8")
    opener.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{opener} %s")
    assert tries("--out", tmp_path).out.endswith(f"{(tmp_path / PAGE).as_uri()}\n")
    assert not opener.with_name("browser.saw").exists()
    tries("--out", tmp_path / "x.html", "--open", "--offline")
    assert opener.with_name("browser.saw").read_text(encoding="utf-8") == (tmp_path / "x.html").as_uri()


@pytest.mark.slow
def test_a_renamed_repository_is_shown_by_its_name_now(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    tries()
    github.world.names["octocat/hello"] = github.repo.id
    github.repo.name = "hello"
    assert tries("--json").data["repository"] == "octocat/hello"


def test_what_closed_an_issue_is_known_after_its_repository_was_renamed(
    github: FakeGitHub, tries: Try, call: Run, tmp_path: Path
) -> None:
    number = github.open_issue("octocat", "Crash", at=at(1))
    pull = github.add_pull("hubot", "Fix", at=at(2))
    github.merge_pull(pull, "hubot", at=at(3))
    github.close(number, "octocat", at=at(4))
    fix = github.issue(pull).pull
    assert fix is not None
    fix.closes.append(number)  # linked by hand, which no text tells
    github.world.names["octocat/hello"] = github.repo.id
    github.repo.name = "hello"
    assert tries().code == 0
    (store,) = (tmp_path / "cache" / "precedent" / "tries").iterdir()
    assert f"#{pull}" in call("outcomes", "--store", store, "--ids", str(number), "--json").out


# What it says when it cannot


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("401", 2, "GH_TOKEN holds a token that is wrong or has expired (401); `export GH_TOKEN=$(gh auth token)`, or"),
        ("404", 1, "has no GraphQL API (404), which is needed to read issues"),
        ("limit200", 1, "rate limit is exhausted until"),
        ("drop", 1, "could not be reached"),
        ("500", 1, "try again later"),
    ],
)
def test_a_fault_is_one_line_with_the_remedy(github: FakeGitHub, tries: Try, kind: str, code: int, told: str) -> None:
    fill(github, 3)
    github.faults.add("POST /graphql", kind, None, seconds=3600)
    ended = tries()
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert ended.err.startswith("precedent try: ")
    assert told in ended.err


def test_a_repository_that_is_not_there_is_told(github: FakeGitHub, tries: Try) -> None:
    ended = tries(repo="octocat/absent")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "octocat/absent does not exist on https://github.com, or is private and this token may not" in ended.err
    assert ended.err.endswith("; check the name, or use a token that may read it\n")


def test_a_repository_without_issues_is_told(github: FakeGitHub, tries: Try) -> None:
    assert tries().err == f"precedent try: {REPO} has no issues yet: there is nothing to try it on\n"
    github.switch_issues(on=False)
    assert tries().err == f"precedent try: issues are switched off in {REPO}; try another repository\n"


def test_a_token_that_may_read_no_issues_is_told(
    github: FakeGitHub, tries: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.add_token("weak", "hubot", {"contents": "read"})
    monkeypatch.setenv("GH_TOKEN", "weak")
    ended = tries()
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.endswith("use a token that may read its issues\n")


def test_without_a_token_it_says_how_to_get_one(tries: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GH_TOKEN")
    ended = tries()
    assert ended.code == 2
    assert "`export GH_TOKEN=$(gh auth token)`, or make one at https://github.com/settings/tokens; it" in ended.err
    monkeypatch.setenv("GH_TOKEN", "two words")
    assert tries().err == "precedent try: GH_TOKEN contains characters that no token has: copy it again\n"


def test_the_token_is_the_one_that_githubs_own_command_line_takes(
    github: FakeGitHub, tries: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(github, 3)
    monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    assert tries().code == 0
    monkeypatch.delenv("GH_TOKEN")
    assert "GITHUB_TOKEN holds a token that is wrong or has expired (401); `export GITHUB_TOKEN=" in tries().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--last", "20", "--history", "10"], "--last 20 is more than is read: add --history 20 or more"),
        (["--offline"], f"nothing of {REPO} has been read yet: leave out --offline"),
        (["--out", "absent/x.html"], "cannot be written: name another file with --out"),
        (["--out", "/dev/null"], "/dev/null cannot be written: name another file with --out"),
        (["--out", "x" * 300], "cannot be written: name another file with --out"),
        (["--config", "absent.yml"], "there is no file absent.yml"),
    ],
)
def test_what_was_given_wrongly_is_told_before_anything_is_read(
    github: FakeGitHub, tries: Try, options: list[str], told: str
) -> None:
    fill(github, 3)
    ended = tries(*options)
    assert (ended.code, ended.err.count("\n"), github.reads) == (2, 1, 0)
    assert told in ended.err


@pytest.mark.parametrize("option", [["--history", "many"], ["--last", "0"], ["--fresh", "--offline"]])
def test_what_no_option_takes_is_refused(tries: Try, option: list[str]) -> None:
    assert tries(*option).code == 2


def test_a_token_goes_to_no_server_that_only_an_address_names(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    ended = tries(repo="https://git.example.com/octocat/hello-world")
    assert (ended.code, github.reads) == (2, 0)
    assert "if it is for the other one, add --server https://git.example.com" in ended.err
    assert tries(repo=f"https://github.com/{REPO}/issues?q=x").code == 0


def test_a_server_of_ones_own_is_read_by_its_own_api(
    github: FakeGitHub, tries: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(github, 3)
    monkeypatch.delenv("GITHUB_API_URL")
    assert tries("--server", github.url).code == 0
    monkeypatch.setenv("GITHUB_API_URL", "ftp://x")
    assert tries().err.startswith("precedent try: GITHUB_SERVER_URL or GITHUB_API_URL: 'ftp://x' is not an address")


def test_without_an_address_of_a_server_it_is_github(
    github: FakeGitHub, tries: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(github, 3)
    monkeypatch.delenv("GITHUB_SERVER_URL")
    assert tries().code == 0


# How a repository is named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (REPO, NamedRepository(REPO)),
        (f" {REPO}/ ", NamedRepository(REPO)),
        (f"{REPO}.git", NamedRepository(REPO)),
        (f"https://github.com/{REPO}", NamedRepository(REPO, "https://github.com")),
        (f"https://www.github.com/{REPO}.git", NamedRepository(REPO, "https://github.com")),
        (f"HTTPS://GitHub.com/{REPO}/issues/7#x", NamedRepository(REPO, "https://github.com")),
        (f"http://git.example.com:8080/{REPO}?tab=readme", NamedRepository(REPO, "http://git.example.com:8080")),
    ],
)
def test_a_repository_is_named_in_many_ways(text: str, expected: NamedRepository) -> None:
    assert named_repository(text) == expected


@pytest.mark.parametrize(
    "text", ["", "octocat", "a/b/c", "a/..", "../b", "a b/c", "-a/b", "https://github.com/a", "a/b\n/c"]
)
def test_what_names_no_repository_is_refused(tries: Try, text: str) -> None:
    ended = tries(repo=text)
    assert ended.code == 2
    assert "is not OWNER/NAME" in ended.err or "expected" in ended.err or "required" in ended.err


@given(st.text(max_size=80) | st.from_regex(r"(https?://[\w.:-]{0,20}/)?[\w./-]{0,30}", fullmatch=True))
def test_what_is_named_has_the_form_of_a_name(text: str) -> None:
    with suppress(argparse.ArgumentTypeError):
        found = named_repository(text)
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+", found.repository)
        assert found.repository.partition("/")[2] not in (".", "..")
        assert found.server == "" or re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]+)?", found.server)
        assert named_repository(found.repository) == NamedRepository(found.repository)
