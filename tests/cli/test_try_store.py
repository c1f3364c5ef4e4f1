"""What `precedent try` keeps of what it read, and how it resumes after an interruption."""

from __future__ import annotations

import json
import re
import signal
import stat
import time
from pathlib import Path

import pytest

from bot.github.history import PER_PAGE, POINTS_PER_REQUEST
from tests.cli.try_runs import PAGE, RunTry, count_queries, open_issues, read_page, start_try, time_at
from tests.fakes.github import FakeGitHub

EXTRA_QUERIES = 3
"""Requests that read no history: how many discussions there are, what else there is, and what of that changed since an
earlier reading."""


def stores(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "precedent" / "tries").iterdir())


@pytest.mark.slow
def test_a_second_run_reads_only_what_changed(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 2 * PER_PAGE)
    run_try("--last", "3")
    github.edit_issue(2 * PER_PAGE - 1, title="Another title", at=time_at(500))
    github.open_issue("octocat", "A new one", at=time_at(501))
    result = run_try("--last", "3", "--json")
    assert count_queries(github) == EXTRA_QUERIES + 1
    assert result.data["history"] == 2 * PER_PAGE + 1
    assert f"reading 7 of {2 * PER_PAGE + 1} issues in 1 request" in result.err, "and those of five minutes before"
    assert [title in read_page() for title in ("A new one", "Another title")] == [True, True]


@pytest.mark.slow
def test_of_a_long_history_only_the_part_that_changed_last_is_read(
    github: FakeGitHub, run_try: RunTry, tmp_path: Path
) -> None:
    open_issues(github, 3 * PER_PAGE)
    github.comment(1, "octocat", "Me too", at=time_at(500))
    result = run_try("--last", "3", "--history", str(PER_PAGE), "--json")
    assert PER_PAGE <= result.data["history"] <= 1.1 * PER_PAGE
    assert result.data["of"] == 3 * PER_PAGE
    assert f"reading {result.data['history']} of {3 * PER_PAGE} issues" in result.err
    assert count_queries(github) < 40, "to find the moment takes a point for each halving of the time"
    again = run_try("--last", "3", "--history", str(PER_PAGE), "--json")
    assert (again.data["history"], count_queries(github)) == (result.data["history"], EXTRA_QUERIES + 1)
    assert run_try("--last", "3", "--history", "all", "--json").data["history"] == 3 * PER_PAGE
    assert len(stores(tmp_path)) == 2


@pytest.mark.slow
def test_a_rate_limit_ends_a_run_and_the_next_run_continues(
    github: FakeGitHub, run_try: RunTry, tmp_path: Path
) -> None:
    open_issues(github, 3 * PER_PAGE)
    github.limits.set(1 + POINTS_PER_REQUEST, resource="graphql")
    result = run_try("--last", "3")
    assert (result.code, result.out) == (1, "")
    cost, message = result.err.splitlines()
    assert "6 of the 2 points left this hour; nothing is written there. That is not enough" in cost
    assert re.fullmatch(
        r"precedent try: GitHub's rate limit is exhausted until \d\d:\d\d UTC; what was read is kept; "
        r"run the same command again after \d\d:\d\d UTC to continue, or use --offline with what was read",
        message,
    )
    assert not Path(PAGE).exists()
    offline = run_try("--last", "3", "--offline", "--json").data
    assert (offline["history"], offline["of"], offline["private"]) == (PER_PAGE, None, None)
    assert github.reads == 0
    github.limits.set(5000, resource="graphql")
    result = run_try("--last", "3", "--json")
    assert result.data["history"] == 3 * PER_PAGE
    assert count_queries(github) == EXTRA_QUERIES + 3, (
        "what was read within the last minutes before the limit is read again"
    )
    (store,) = stores(tmp_path)
    (tmp_path / "other").mkdir()
    store.rename(tmp_path / "other" / "store")
    read_at_once = run_try("--last", "3", "--json").data
    times = {"ms_p50", "ms_p95", "seconds", "evidence"}  # how many issues could be replayed depends on the time too
    assert {name: read_at_once[name] for name in read_at_once.keys() - times} == {
        name: result.data[name] for name in read_at_once.keys() - times
    }, "what was read in parts says what is said by what was read at once"


@pytest.mark.slow
def test_a_run_waits_for_a_short_rate_limit_to_end(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 2 * PER_PAGE)
    github.faults.add("POST /graphql", "secondary200", 1, after=2, seconds=1)
    assert run_try("--last", "3", "--json").data["history"] == 2 * PER_PAGE


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_read(github: FakeGitHub, tmp_path: Path) -> None:
    open_issues(github, 2 * PER_PAGE)
    github.faults.add("POST /graphql", "slow", 1, after=2, seconds=15)
    running = start_try(github, tmp_path, "--last", "3")
    deadline = time.monotonic() + 30
    while not github.faults.injected and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (130, "")
    assert err.splitlines()[1:] == [
        "precedent try: stopped; what was read is kept: run the same command again to continue"
    ]
    github.faults.clear()
    github.mark()
    again = start_try(github, tmp_path, "--last", "3", "--json")
    out, err = again.communicate(timeout=60)
    assert json.loads(out)["history"] == 2 * PER_PAGE
    assert f"reading {PER_PAGE + 6} of {2 * PER_PAGE} issues" in err, "the rest, and those of the last five minutes"


@pytest.mark.slow
def test_fresh_reads_everything_again(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 2 * PER_PAGE)
    run_try("--last", "3")
    github.delete_issue(1)
    assert run_try("--last", "3", "--json").data["history"] == 2 * PER_PAGE
    assert run_try("--last", "3", "--fresh", "--json").data["history"] == 2 * PER_PAGE - 1


def test_fresh_deletes_nothing_before_the_server_answers(github: FakeGitHub, run_try: RunTry) -> None:
    open_issues(github, 3)
    run_try()
    github.faults.add("POST /graphql", "401", None)
    assert run_try("--fresh").code == 2
    assert run_try("--offline", "--json").data["history"] == 3


@pytest.mark.slow
def test_an_unusable_store_is_reported_and_fresh_replaces_it(
    github: FakeGitHub, run_try: RunTry, tmp_path: Path
) -> None:
    open_issues(github, 3)
    run_try()
    (store,) = stores(tmp_path)
    (store / "manifest.json").write_bytes(b"\xff")
    assert run_try("--json").data["history"] == 3, "what is damaged is read again"
    (store / "manifest.json").write_text('{"format": 999}', encoding="utf-8")
    result = run_try()
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.endswith("; or try --fresh\n")
    assert run_try("--fresh", "--json").data["history"] == 3


def test_the_store_is_readable_by_its_owner_only(github: FakeGitHub, run_try: RunTry, tmp_path: Path) -> None:
    open_issues(github, 3)
    run_try()
    (store,) = stores(tmp_path)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    contents = [file.read_bytes() for file in store.rglob("*") if file.is_file()]
    assert contents
    assert not any(github.token.encode() in content for content in contents)
