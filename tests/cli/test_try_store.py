"""What `precedent try` keeps of what it read, and how a reading that was broken off goes on."""

from __future__ import annotations

import json
import re
import signal
import stat
import time
from pathlib import Path

import pytest

from bot.github.history import PER_PAGE, POINTS
from tests.cli.tried import PAGE, Try, at, fill, page, queries, started
from tests.fakes.github import FakeGitHub

GLIMPSES = 3
"""Requests that read no history: how many discussions there are, what else there is, and of that, where something was
read before, what changed since."""


def stores(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "precedent" / "tries").iterdir())


@pytest.mark.slow
def test_the_next_time_only_what_changed_is_read(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3")
    github.edit_issue(2 * PER_PAGE - 1, title="Another title", at=at(500))
    github.open_issue("octocat", "A new one", at=at(501))
    ended = tries("--last", "3", "--json")
    assert queries(github) == GLIMPSES + 1
    assert ended.data["history"] == 2 * PER_PAGE + 1
    assert f"reading 7 of {2 * PER_PAGE + 1} issues in 1 request" in ended.err, "and those of five minutes before"
    assert [title in page() for title in ("A new one", "Another title")] == [True, True]


@pytest.mark.slow
def test_of_a_long_history_the_part_is_read_that_changed_last(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3 * PER_PAGE)
    github.comment(1, "octocat", "Me too", at=at(500))
    ended = tries("--last", "3", "--history", str(PER_PAGE), "--json")
    assert PER_PAGE <= ended.data["history"] <= 1.1 * PER_PAGE
    assert ended.data["of"] == 3 * PER_PAGE
    assert f"reading {ended.data['history']} of {3 * PER_PAGE} issues" in ended.err
    assert queries(github) < 40, "to find the moment takes a point for each halving of the time"
    again = tries("--last", "3", "--history", str(PER_PAGE), "--json")
    assert (again.data["history"], queries(github)) == (ended.data["history"], GLIMPSES + 1)
    assert tries("--last", "3", "--history", "all", "--json").data["history"] == 3 * PER_PAGE
    assert len(stores(tmp_path)) == 2


@pytest.mark.slow
def test_a_limit_ends_it_and_the_next_time_goes_on(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3 * PER_PAGE)
    github.limits.set(1 + POINTS, resource="graphql")
    ended = tries("--last", "3")
    assert (ended.code, ended.out) == (1, "")
    cost, told = ended.err.splitlines()
    assert "6 of the 2 points left this hour; nothing is written there. That is not enough" in cost
    assert re.fullmatch(
        r"precedent try: GitHub's rate limit is exhausted until \d\d:\d\d UTC; what was read is kept; "
        r"run the same command again after \d\d:\d\d UTC to continue, or use --offline with what was read",
        told,
    )
    assert not Path(PAGE).exists()
    offline = tries("--last", "3", "--offline", "--json").data
    assert (offline["history"], offline["of"], offline["private"]) == (PER_PAGE, None, None)
    assert github.reads == 0
    github.limits.set(5000, resource="graphql")
    ended = tries("--last", "3", "--json")
    assert ended.data["history"] == 3 * PER_PAGE
    assert queries(github) == GLIMPSES + 3, "what was read within the last minutes before the limit is read again"
    (store,) = stores(tmp_path)
    (tmp_path / "other").mkdir()
    store.rename(tmp_path / "other" / "store")
    whole = tries("--last", "3", "--json").data
    times = {"ms_p50", "ms_p95", "seconds"}
    assert {name: whole[name] for name in whole.keys() - times} == {
        name: ended.data[name] for name in whole.keys() - times
    }, "what was read in parts says what is said by what was read at once"


@pytest.mark.slow
def test_a_limit_that_is_soon_over_is_waited_for(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    github.faults.add("POST /graphql", "secondary200", 1, after=2, seconds=1)
    assert tries("--last", "3", "--json").data["history"] == 2 * PER_PAGE


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_read(github: FakeGitHub, tmp_path: Path) -> None:
    fill(github, 2 * PER_PAGE)
    github.faults.add("POST /graphql", "slow", 1, after=2, seconds=15)
    running = started(github, tmp_path, "--last", "3")
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
    again = started(github, tmp_path, "--last", "3", "--json")
    out, err = again.communicate(timeout=60)
    assert json.loads(out)["history"] == 2 * PER_PAGE
    assert f"reading {PER_PAGE + 6} of {2 * PER_PAGE} issues" in err, "the rest, and those of the last five minutes"


@pytest.mark.slow
def test_fresh_forgets(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3")
    github.delete_issue(1)
    assert tries("--last", "3", "--json").data["history"] == 2 * PER_PAGE
    assert tries("--last", "3", "--fresh", "--json").data["history"] == 2 * PER_PAGE - 1


def test_fresh_forgets_nothing_before_the_server_answers(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    tries()
    github.faults.add("POST /graphql", "401", None)
    assert tries("--fresh").code == 2
    assert tries("--offline", "--json").data["history"] == 3


@pytest.mark.slow
def test_a_store_that_cannot_be_used_is_told_and_fresh_mends_it(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    tries()
    (store,) = stores(tmp_path)
    (store / "manifest.json").write_bytes(b"\xff")
    assert tries("--json").data["history"] == 3, "what is damaged is read again"
    (store / "manifest.json").write_text('{"format": 999}', encoding="utf-8")
    ended = tries()
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert ended.err.endswith("; or try --fresh\n")
    assert tries("--fresh", "--json").data["history"] == 3


def test_what_was_read_is_for_its_owner_alone(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    tries()
    (store,) = stores(tmp_path)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    held = [file.read_bytes() for file in store.rglob("*") if file.is_file()]
    assert held
    assert not any(github.token.encode() in content for content in held)
