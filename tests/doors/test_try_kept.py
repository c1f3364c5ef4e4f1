"""What `precedent try` keeps of what it read, and how a reading that was broken off goes on."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from bot.doors.try_reading import Task
from bot.doors.try_site import held
from bot.github.graphql import PER_PAGE, POINTS
from tests.doors.tried import PAGE, REPO, Try, at, fill, queries, started
from tests.fakes.github import FakeGitHub


@pytest.mark.slow
def test_the_next_time_only_what_changed_is_read(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3")
    github.edit_issue(2 * PER_PAGE - 1, title="Another title", at=at(500))
    new = github.open_issue("octocat", "A new one", at=at(501))
    ended = tries("--last", "3", "--json")
    assert queries(github) == 2
    assert [entry["title"] for entry in ended.data["entries"]][::2] == ["A new one", "Another title"]
    assert (ended.data["entries"][0]["id"], ended.data["history"]) == (new, 2 * PER_PAGE + 1)
    assert f"{2 * PER_PAGE} were read before" in ended.err


@pytest.mark.slow
def test_an_old_issue_that_changed_makes_no_gap(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3", "--history", str(PER_PAGE))
    github.comment(1, "octocat", "Me too", at=at(500))
    assert tries("--last", "3", "--history", "all", "--offline", "--json").data["history"] == PER_PAGE
    tries("--last", "3", "--history", str(PER_PAGE))
    assert tries("--last", "3", "--history", "all", "--offline", "--json").data["history"] == PER_PAGE


@pytest.mark.slow
def test_a_limit_ends_it_and_the_next_time_goes_on(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3 * PER_PAGE)
    github.limits.set(1 + POINTS, resource="graphql")
    ended = tries("--last", "3")
    assert (ended.code, ended.out) == (1, "")
    cost, told = ended.err.splitlines()
    assert "6 of the 2 points that are left of this hour. They do not suffice" in cost
    assert re.fullmatch(
        r"precedent try: GitHub's rate limit is reached until \d\d:\d\d UTC; 50 issues that were read are kept; "
        r"run the same command after \d\d:\d\d UTC; or see now what there is, with --offline",
        told,
    )
    assert not Path(PAGE).exists()
    assert tries("--last", "3", "--offline", "--json").data["history"] == PER_PAGE
    assert github.reads == 0
    github.limits.set(5000, resource="graphql")
    assert tries("--last", "3", "--json").data["history"] == 3 * PER_PAGE
    assert queries(github) == 4, "a glimpse, what changed since, and the two pages that were missing"


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
        "precedent try: stopped; 50 issues that were read are kept, and the same command goes on"
    ]
    github.faults.clear()
    github.mark()
    again = started(github, tmp_path, "--last", "3", "--json")
    assert json.loads(again.communicate(timeout=60)[0])["history"] == 2 * PER_PAGE
    assert queries(github) == 3, "a glimpse, what changed since, and the page that was missing"


@pytest.mark.slow
def test_ctrl_c_is_one_line_before_anything_begins(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    tries()
    (kept,) = (tmp_path / "cache").rglob("lock")
    with kept.open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = started(github, tmp_path)
        opened = Path(f"/proc/{running.pid}/fd")
        deadline = time.monotonic() + 30
        while not any(os.path.realpath(one) == str(kept) for one in opened.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, "", "precedent: stopped\n")


def test_how_long_a_request_takes_is_learned(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    assert "about 3 s" in tries().err
    (kept,) = (tmp_path / "cache").rglob("issues.db")
    with closing(sqlite3.connect(kept, isolation_level=None)) as database:
        (told,) = database.execute("SELECT value FROM facts WHERE name = 'pace'").fetchone()
        assert 0 < float(told) < 2
        database.execute("UPDATE facts SET value = '240.0' WHERE name = 'pace'")
    fill(github, 1, 3)
    assert "1 request, about 4 min" in tries().err


@pytest.mark.slow
def test_a_place_that_github_forgot_is_looked_for_again(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3 * PER_PAGE)
    tries("--last", "3", "--history", str(PER_PAGE))
    (kept,) = (tmp_path / "cache").rglob("issues.db")
    with closing(sqlite3.connect(kept, isolation_level=None)) as database:
        database.execute("UPDATE facts SET value = '/' WHERE name = 'place'")
    assert tries("--last", "3", "--json").data["history"] == 3 * PER_PAGE


@pytest.mark.slow
def test_fresh_forgets(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3")
    github.delete_issue(1)
    assert tries("--last", "3", "--json").data["history"] == 2 * PER_PAGE
    assert tries("--last", "3", "--fresh", "--json").data["history"] == 2 * PER_PAGE - 1
    assert queries(github) == 3


@pytest.mark.slow
def test_a_cache_that_is_none_is_made_anew(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    tries()
    (kept,) = (tmp_path / "cache").rglob("issues.db")
    kept.write_bytes(b"no database" * 1000)
    assert tries("--json").data["history"] == 3


@pytest.mark.slow
def test_a_cache_that_is_damaged_is_told_and_fresh_mends_it(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3")
    (kept,) = (tmp_path / "cache").rglob("issues.db")
    content = kept.read_bytes()
    kept.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    ended = tries("--last", "3")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "or try --fresh" in ended.err
    assert tries("--last", "3", "--fresh", "--json").data["history"] == 2 * PER_PAGE


def test_fresh_forgets_nothing_before_the_server_answers(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    tries()
    github.faults.add("POST /graphql", "401", None)
    assert tries("--fresh").code == 2
    assert tries("--offline", "--json").data["history"] == 3


@pytest.mark.slow
def test_another_repository_of_the_same_name_is_another(github: FakeGitHub, tries: Try) -> None:
    fill(github, 5)
    tries()
    other = github.add_project("octocat/other")
    other.open_issue("octocat", "The only one", at=at(1))
    github.world.names[REPO] = other.repo.id
    assert tries("--json").data["history"] == 1


@pytest.mark.parametrize(
    ("held", "wanted", "expected"),
    [((0, 0, False), 3000, 60), ((3000, 20, False), 3000, 1), ((1000, 60, False), 3000, 42)],
)
def test_the_cost_is_a_request_for_fifty(held: tuple[int, int, bool], wanted: int, expected: int) -> None:
    size, changed, _ = held
    task = Task(wanted, changed, wanted - size, 12_345)
    assert (task.requests, task.points) == (expected, POINTS * expected)


@pytest.mark.slow
def test_where_more_changed_than_is_wanted_it_begins_anew(github: FakeGitHub, tries: Try) -> None:
    fill(github, 4 * PER_PAGE)
    tries("--last", "3", "--history", str(PER_PAGE))
    for number in range(1, 3 * PER_PAGE):
        github.comment(number, "octocat", "Stale", at=at(500 + number))
    assert tries("--last", "3", "--history", str(PER_PAGE), "--json").data["history"] == PER_PAGE
    assert queries(github) == 2, "a glimpse, and the newest page"


def test_what_is_kept_is_counted_in_words() -> None:
    told = {0: "", 1: "1 issue that was read is kept", 3_000: "3,000 issues that were read are kept"}
    assert {count: held(count) for count in told} == told
