"""`precedent try` against a fake GitHub: what it reads, keeps and shows, and how it fails."""

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
from bot.pipeline.learn import MIN_LEARN_THREADS
from tests.cli.program_result import Run
from tests.cli.try_runs import PAGE, REPO, RunTry, open_issues, read_page, start_try, time_at
from tests.fakes.github import FakeGitHub

ERROR = "The exporter stops with ExportQueueOverflow in export_queue.py"
BODY = """It stops after a minute.

```
  File "linkbarn/export_queue.py", line 88, in push
ExportQueueOverflow: 4096 rows wait, the limit is 4096
```
"""


# What it shows


def test_a_repository_is_read_and_shown(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 8)
    github.set_permission("octocat", "write")
    first = github.open_issue("octocat", ERROR, BODY, at=time_at(10))
    github.comment(first, "octocat", "Fixed in 1.2: the queue is bounded now.", at=time_at(11))
    github.close(first, "octocat", at=time_at(11))
    last = github.open_issue("hubot", "Import of tags is slow", f"As in #{first}.", at=time_at(12))
    result = run_try("--last", "4")
    assert (result.code, github.writes) == (0, 0)
    words, address = result.out.splitlines()
    assert words == (
        "It would have commented on 1 of the 4 newest issues (25.0 %): on 0 with similar issues, on 1 only about "
        "issues that they mention. That is too little to tell how good it is in this repository."
    )
    assert address == Path(PAGE).absolute().as_uri()
    assert result.err == (
        f"{REPO}: reading all 10 issues in 1 request, "
        "for 2 of the 999 points left this hour; nothing is written there.\n"
    )
    html = read_page()
    assert f"<h1>What Precedent would have said in <bdi>{REPO}</bdi></h1>" in html
    assert f"https://github.com/{REPO}/issues/{first}" in html
    assert "a memory of 10 threads, with a similarity threshold of 0.65. Issues were compared by words only" in html
    assert [f"#{key}" in html for key in (first, last)] == [True, True]
    assert html.count("<article ") == 4


@pytest.mark.slow
def test_the_command_works_as_a_process_of_its_own(github: FakeGitHub, tmp_path: Path) -> None:
    open_issues(github, 12)
    process = start_try(github, tmp_path, "--last", "10", "--json")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err.count("\n")) == (0, 1)
    figures = json.loads(out)
    assert (figures["issues"], figures["commented"], figures["history"], figures["of"]) == (10, 0, 12, 12)
    assert Path(figures["page"]) == tmp_path / PAGE
    assert (tmp_path / PAGE).is_file()


@pytest.mark.slow
def test_the_figures_are_those_of_backtest(github: FakeGitHub, run_try: RunTry, call: Run, tmp_path: Path) -> None:
    open_issues(github, 30)
    first, second = (github.open_issue("hubot", ERROR, BODY, at=time_at(40 + n)) for n in range(2))
    github.comment(second, "octocat", f"Duplicate of #{first}", at=time_at(50))
    github.close(second, "octocat", "duplicate", at=time_at(50))
    figures = run_try("--last", "5", "--json").data
    assert (figures["commented"], figures["grades"]["success"]) == (1, 1)
    assert (figures["repository"], figures["issues"], figures["history"]) == (
        figures["repo"],
        figures["n"],
        figures["threads"],
    )
    assert (figures["of"], figures["private"], figures["read_at"]) == (32, False, time_at(50))
    (store,) = (tmp_path / "cache" / "precedent" / "tries").iterdir()
    backtest = call("backtest", "--store", store, "--last", "5", "--json").data
    times = {"ms_p50", "ms_p95", "seconds"}
    assert {name: figures[name] for name in backtest.keys() - times} == {
        name: backtest[name] for name in backtest.keys() - times
    }


@pytest.mark.slow
def test_a_long_enough_history_is_learned_from(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, MIN_LEARN_THREADS)
    assert "cut" in run_try("--last", "3", "--json").data["evidence"]


def test_the_given_settings_are_applied(github: FakeGitHub, run_try: RunTry) -> None:
    first = github.open_issue("octocat", ERROR, BODY, at=time_at(1))
    open_issues(github, 9, 10)
    github.open_issue("hubot", "It is slow", f"See #{first}.", at=time_at(30))
    github.open_issue("monalisa", "It is slower", f"See #{first}.", at=time_at(31))
    Path("mine.yml").write_text("ignore:\n  authors: [hubot]\nsimilar:\n  threshold: 0.8\n", encoding="utf-8")
    figures = run_try("--last", "2", "--config", "mine.yml", "--json").data
    assert (figures["issues"], figures["wanted"], figures["threshold"]) == (1, 1, 0.8)
    assert [title in read_page() for title in ("It is slower", "It is slow<")] == [True, False]


def test_settings_that_are_left_out_of_the_trial_are_reported(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 3)
    Path("mine.yml").write_text("pulls: true\nsimilar:\n  model: models/small\n", encoding="utf-8")
    missing = "without its text model (similar.model) and pull requests (pulls)"
    assert run_try("--config", "mine.yml").err.startswith(f"precedent try: mine.yml is tried {missing}\n")
    Path("mine.yml").write_text("similar:\n  model: /models\n", encoding="utf-8")
    assert "without" not in run_try("--config", "mine.yml").err


def test_discussions_that_are_left_out_of_the_trial_are_reported(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 3)
    assert "discussion" not in run_try().err
    github.discuss("hubot", "How do I keep the cookie?")
    assert run_try().err.endswith("precedent try: 1 discussion left out of the trial\n")
    github.world.tokens[github.token].permissions = {"issues": "read", "contents": "read"}
    result = run_try()
    assert (result.code, "discussion" in result.err) == (0, False)


def test_a_repository_of_bots_has_nothing_to_show(github: FakeGitHub, run_try: RunTry) -> None:
    github.open_issue("dependabot[bot]", "Bump", at=time_at(1))
    assert run_try().out.startswith("There is no issue to replay yet.")


def test_the_page_of_a_private_repository_is_readable_by_its_owner_only(github: FakeGitHub, run_try: RunTry) -> None:
    github.repo.private = True
    open_issues(github, 3)
    Path(PAGE).touch(mode=0o644)
    assert "keep it private too" in run_try().out
    assert stat.S_IMODE(Path(PAGE).stat().st_mode) == 0o600


def test_the_page_is_written_to_the_given_path_and_opened_on_request(
    github: FakeGitHub, run_try: RunTry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_issues(github, 3)
    opener = tmp_path / "browser"
    opener.write_text('#!/bin/sh\nprintf %s "$1" > "$0.saw"\n', encoding="utf-8")
    opener.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{opener} %s")
    assert run_try("--out", tmp_path).out.endswith(f"{(tmp_path / PAGE).as_uri()}\n")
    assert not opener.with_name("browser.saw").exists()
    run_try("--out", tmp_path / "x.html", "--open", "--offline")
    assert opener.with_name("browser.saw").read_text(encoding="utf-8") == (tmp_path / "x.html").as_uri()


@pytest.mark.slow
def test_a_renamed_repository_is_shown_by_its_current_name(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 3)
    run_try()
    github.world.names["octocat/hello"] = github.repo.id
    github.repo.name = "hello"
    assert run_try("--json").data["repository"] == "octocat/hello"


def test_the_fix_of_an_issue_is_known_after_its_repository_was_renamed(
    github: FakeGitHub, run_try: RunTry, call: Run, tmp_path: Path
) -> None:
    number = github.open_issue("octocat", "Crash", at=time_at(1))
    pull = github.add_pull("hubot", "Fix", at=time_at(2))
    github.merge_pull(pull, "hubot", at=time_at(3))
    github.close(number, "octocat", at=time_at(4))
    fix = github.issue(pull).pull
    assert fix is not None
    fix.closes.append(number)  # linked by hand, so no text mentions it
    github.world.names["octocat/hello"] = github.repo.id
    github.repo.name = "hello"
    assert run_try().code == 0
    (store,) = (tmp_path / "cache" / "precedent" / "tries").iterdir()
    assert f"#{pull}" in call("outcomes", "--store", store, "--ids", str(number), "--json").out


# Errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("401", 2, "GH_TOKEN holds a token that is wrong or has expired (401); `export GH_TOKEN=$(gh auth token)`, or"),
        ("404", 1, "has no GraphQL API (404), which is needed to read issues"),
        ("limit200", 1, "rate limit is exhausted until"),
        ("drop", 1, "GitHub did not answer"),
        ("500", 1, "try again later"),
    ],
)
def test_an_error_is_one_line_with_the_remedy(
    github: FakeGitHub, run_try: RunTry, kind: str, code: int, message: str
) -> None:
    open_issues(github, 3)
    github.faults.add("POST /graphql", kind, None, seconds=3600)
    result = run_try()
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert result.err.startswith("precedent try: ")
    assert message in result.err


def test_a_missing_repository_is_reported(github: FakeGitHub, run_try: RunTry) -> None:
    result = run_try(repo="octocat/absent")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "octocat/absent does not exist on https://github.com, or is private and this token may not" in result.err
    assert result.err.endswith("; check the name, or use a token that may read it\n")


def test_a_repository_without_issues_is_reported(github: FakeGitHub, run_try: RunTry) -> None:
    assert run_try().err == f"precedent try: {REPO} has no issues yet: there is nothing to try it on\n"
    github.switch_issues(on=False)
    assert run_try().err == f"precedent try: issues are switched off in {REPO}; try another repository\n"


def test_a_token_that_may_not_read_issues_is_reported(
    github: FakeGitHub, run_try: RunTry, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.add_token("weak", "hubot", {"contents": "read"})
    monkeypatch.setenv("GH_TOKEN", "weak")
    result = run_try()
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.endswith("use a token that may read its issues\n")


def test_without_a_token_it_says_how_to_get_one(run_try: RunTry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GH_TOKEN")
    result = run_try()
    assert result.code == 2
    assert "`export GH_TOKEN=$(gh auth token)`, or make one at https://github.com/settings/tokens; it" in result.err
    monkeypatch.setenv("GH_TOKEN", "two words")
    assert run_try().err == "precedent try: GH_TOKEN contains characters that no token has: copy it again\n"


def test_the_token_is_the_one_that_githubs_own_command_line_would_use(
    github: FakeGitHub, run_try: RunTry, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_issues(github, 3)
    monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    assert run_try().code == 0
    monkeypatch.delenv("GH_TOKEN")
    assert "GITHUB_TOKEN holds a token that is wrong or has expired (401); `export GITHUB_TOKEN=" in run_try().err


def test_invalid_options_are_reported_before_anything_is_read(github: FakeGitHub, run_try: RunTry) -> None:
    cases = [
        (["--last", "20", "--history", "10"], "--last 20 is more than is read: add --history 20 or more"),
        (["--offline"], f"nothing of {REPO} has been read yet: leave out --offline"),
        (["--out", "absent/x.html"], "cannot be written: name another file with --out"),
        (["--out", "/dev/null"], "/dev/null cannot be written: name another file with --out"),
        (["--out", "x" * 300], "cannot be written: name another file with --out"),
        (["--config", "absent.yml"], "there is no file absent.yml"),
    ]
    open_issues(github, 3)
    for options, message in cases:
        result = run_try(*options)
        assert (result.code, result.err.count("\n"), github.reads) == (2, 1, 0), options
        assert message in result.err, options


def test_a_token_is_never_sent_to_a_server_named_only_by_an_address(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 3)
    result = run_try(repo="https://git.example.com/octocat/hello-world")
    assert (result.code, github.reads) == (2, 0)
    assert "if it is for the other one, add --server https://git.example.com" in result.err
    assert run_try(repo=f"https://github.com/{REPO}/issues?q=x").code == 0


def test_a_company_server_is_read_through_its_own_api(
    github: FakeGitHub, run_try: RunTry, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_issues(github, 3)
    monkeypatch.delenv("GITHUB_API_URL")
    assert run_try("--server", github.url).code == 0
    monkeypatch.setenv("GITHUB_API_URL", "ftp://x")
    assert run_try().err.startswith("precedent try: GITHUB_SERVER_URL or GITHUB_API_URL: 'ftp://x' is not an address")


def test_without_the_address_of_a_server_github_is_used(
    github: FakeGitHub, run_try: RunTry, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_issues(github, 3)
    monkeypatch.delenv("GITHUB_SERVER_URL")
    assert run_try().code == 0


# How a repository is named


def test_a_repository_can_be_named_in_many_ways() -> None:
    cases = [
        (REPO, NamedRepository(REPO)),
        (f" {REPO}/ ", NamedRepository(REPO)),
        (f"{REPO}.git", NamedRepository(REPO)),
        (f"https://github.com/{REPO}", NamedRepository(REPO, "https://github.com")),
        (f"https://www.github.com/{REPO}.git", NamedRepository(REPO, "https://github.com")),
        (f"HTTPS://GitHub.com/{REPO}/issues/7#x", NamedRepository(REPO, "https://github.com")),
        (f"http://git.example.com:8080/{REPO}?tab=readme", NamedRepository(REPO, "http://git.example.com:8080")),
    ]
    assert [text for text, expected in cases if named_repository(text) != expected] == []


def test_an_invalid_name_of_a_repository_is_refused(run_try: RunTry) -> None:
    texts = ["", "octocat", "a/b/c", "a/..", "../b", "a b/c", "-a/b", "https://github.com/a", "a/b\n/c"]
    for text in texts:
        result = run_try(repo=text)
        assert result.code == 2, text
        assert "is not OWNER/NAME" in result.err or "expected" in result.err or "required" in result.err, text


@given(st.text(max_size=80) | st.from_regex(r"(https?://[\w.:-]{0,20}/)?[\w./-]{0,30}", fullmatch=True))
def test_every_accepted_name_has_the_form_of_a_name(text: str) -> None:
    with suppress(argparse.ArgumentTypeError):
        named = named_repository(text)
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+", named.repository)
        assert named.repository.partition("/")[2] not in (".", "..")
        assert named.server == "" or re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]+)?", named.server)
        assert named_repository(named.repository) == NamedRepository(named.repository)
