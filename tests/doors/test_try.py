"""`precedent try` at a fake GitHub: what it reads, what it keeps, what it shows, and what it says when it cannot."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.doors.try_options import Named, named
from bot.doors.try_reading import Task
from bot.github.graphql import PER_PAGE, POINTS
from tests.comment.payloads import PAYLOADS
from tests.comment.test_as_html import Seen
from tests.doors.console import Ended, Run
from tests.fakes.github import FakeGitHub

ROOT = Path(__file__).parents[2]
REPO = "octocat/hello-world"
PAGE = "precedent-octocat-hello-world.html"
ERROR = "The exporter stops with ExportQueueOverflow in export_queue.py"
BODY = """It stops after a minute.

```
  File "linkbarn/export_queue.py", line 88, in push
ExportQueueOverflow: 4096 rows wait, the limit is 4096
```
"""

Try = Callable[..., Ended]


@pytest.fixture
def tries(github: FakeGitHub, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """Gives a function that tries the fake's repository, in an empty folder and with a cache of its own."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GH_TOKEN", github.token)
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("PRECEDENT_TOKEN", raising=False)

    def run(*options: str | Path, repo: str = REPO) -> Ended:
        github.mark()
        return call("try", repo, *options)

    return run


def at(count: int) -> str:
    return f"2026-01-{1 + count // 1440:02d}T{count // 60 % 24:02d}:{count % 60:02d}:00Z"


def fill(github: FakeGitHub, count: int, first: int = 0) -> None:
    """So many issues that have nothing in common, each of another account, a minute apart."""
    for number in range(first, first + count):
        github.open_issue(f"user-{number}", f"Word{number}a misses word{number}b", f"See word{number}c.", at=at(number))


def queries(github: FakeGitHub) -> int:
    return sum(request.path == "/graphql" for request in github.recent)


def page() -> str:
    return Path(PAGE).read_text(encoding="utf-8")


def entries(ended: Ended) -> dict[int, dict[str, Any]]:
    return {entry["id"]: entry for entry in ended.data["entries"]}


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
    assert words.split(". ") == [
        "On 1 of the 4 newest issues it would have written a comment",
        "The comment shows what the issue itself points at.",
    ]
    assert address == Path(PAGE).absolute().as_uri()
    assert ended.err == (
        f"{REPO}: all 10 issues; nothing is written there. "
        "To read: 1 request, about 3 s, 2 of the 999 points that are left of this hour.\n"
    )
    shown = page()
    assert f'<a href="https://github.com/{REPO}/issues/{last}">' in shown
    assert f'<a href="https://github.com/{REPO}/issues/{first}">{ERROR}</a>' in shown
    assert "all 10 issues, since 1 January 2026" in shown
    assert "a similarity of 0.65" in shown
    assert "Nothing in memory is close enough" in shown
    assert "private" not in shown
    assert len(re.findall("<h3", shown)) == 4


def test_the_command_as_a_process(github: FakeGitHub, tmp_path: Path) -> None:
    fill(github, 12)
    done = started(github, tmp_path, "--last", "10", "--json")
    out, err = done.communicate(timeout=60)
    assert (done.returncode, err.count("\n")) == (0, 1)
    figures = json.loads(out)
    assert (figures["issues"], figures["commented"], figures["history"], figures["of"]) == (10, 0, 12, 12)
    assert Path(figures["page"]) == tmp_path / PAGE
    assert (tmp_path / PAGE).is_file()


def test_only_what_is_older_is_shown_as_it_was_then(github: FakeGitHub, tries: Try) -> None:
    fill(github, 30)
    first, second, third = (github.open_issue("hubot", ERROR, BODY, at=at(40 + n)) for n in range(3))
    github.comment(first, "octocat", "Fixed: the queue is bounded in 1.3.", at=at(60))
    github.close(first, "octocat", at=at(60))
    found = entries(tries("--last", "33", "--json"))
    assert len(found) == 33
    assert {key for key, entry in found.items() if entry["spoke"]} == {second, third}
    assert found[first]["reason"] == "nothing in memory is close enough"
    assert found[second]["shown"] == [first]
    assert set(found[third]["shown"]) <= {first, second}
    assert all(other < key for key, entry in found.items() for other in entry["shown"])
    articles = re.findall(r'<article aria-label="#(\d+)">(.*?)</article>', page(), re.DOTALL)
    links = {int(key): {*map(int, re.findall(r"/issues/(\d+)", text))} - {int(key)} for key, text in articles}
    assert links == {second: {first}, third: links[third]}
    assert links[third] <= {first, second}
    assert "Open now" in page()
    assert "Seen before" not in page(), "it was closed later"
    assert "bounded" not in page()


def test_what_people_linked_later_is_told(github: FakeGitHub, tries: Try) -> None:
    fill(github, 30)
    first, second = (github.open_issue("hubot", ERROR, BODY, at=at(40 + n)) for n in range(2))
    github.comment(second, "octocat", f"Duplicate of #{first}", at=at(50))
    github.close(second, "octocat", "duplicate", at=at(50))
    ended = tries("--last", "5", "--json")
    assert entries(ended)[second]["linked"] == [first]
    assert "✓ People linked it later to" in page()


def test_only_so_many_of_the_newest_are_read(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3 * PER_PAGE)
    ended = tries("--last", "3", "--history", str(PER_PAGE), "--json")
    assert (ended.data["history"], ended.data["of"], queries(github)) == (PER_PAGE, 3 * PER_PAGE, 2)
    assert f"the newest {PER_PAGE} of {3 * PER_PAGE} issues" in page()
    assert tries("--last", "3", "--history", "all", "--json").data["history"] == 3 * PER_PAGE
    assert queries(github) == 4, "a glimpse, what changed since, and two pages more"
    assert tries("--last", "3", "--history", "20", "--json").data["history"] == 20


def test_settings_that_are_tried_are_heeded(github: FakeGitHub, tries: Try) -> None:
    first = github.open_issue("octocat", ERROR, BODY, at=at(1))
    fill(github, 9, 10)
    github.open_issue("hubot", "It is slow", f"See #{first}.", at=at(30))
    github.open_issue("monalisa", "It is slower", f"See #{first}.", at=at(31))
    Path("mine.yml").write_text(
        "ignore:\n  authors: [hubot]\ntroubleshooting:\n  similarity_threshold: 0.8\n", encoding="utf-8"
    )
    found = tries("--last", "2", "--config", "mine.yml", "--json")
    assert [entry["spoke"] for entry in found.data["entries"]] == [True, False]
    assert found.data["entries"][1]["reason"] == "its author is a bot or ignored"
    assert found.data["threshold"] == 0.8
    assert "those of mine.yml" in page()


def test_what_of_the_settings_is_not_tried_is_told(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    Path("mine.yml").write_text("pulls: true\nsemantic:\n  model: models/small\n", encoding="utf-8")
    missing = "without its text model (semantic.model) and pull requests (pulls)"
    assert tries("--config", "mine.yml").err.startswith(f"precedent try: mine.yml is tried {missing}\n")
    assert f"those of mine.yml, {missing}" in page()
    Path("mine.yml").write_text("mode: summary\n", encoding="utf-8")
    assert "without" not in tries("--config", "mine.yml").err


def test_a_repository_of_bots_has_nothing_to_show(github: FakeGitHub, tries: Try) -> None:
    github.open_issue("dependabot[bot]", "Bump", at=at(1))
    assert tries().out.startswith("Nobody but bots has opened an issue yet")
    assert "There is none." in page()


def test_hostile_text_is_text(github: FakeGitHub, tries: Try) -> None:
    for number, text in enumerate(PAYLOADS):
        github.open_issue("hubot", text.encode("utf-8", "replace").decode(), f"See #{number}. {BODY}", at=at(number))
        github.comment(number + 1, "octocat", text.encode("utf-8", "replace").decode(), at=at(number))
    ended = tries("--last", str(len(PAYLOADS)), "--json")
    assert ended.data["commented"] > len(PAYLOADS) / 2
    seen = Seen(page())
    assert not seen.tags & {"script", "img", "iframe", "object", "form", "input", "svg", "base", "embed"}
    assert not [name for name in seen.other if name.split()[-1].startswith("on") or name.endswith((" src", " style"))]
    allowed = ("#comments", f"https://github.com/{REPO}")
    assert [link for link in seen.links if not str(link).startswith(allowed)] == []
    assert "default-src 'none'; style-src 'sha256-" in page()
    assert "\x1b" not in ended.out
    assert not set("\x1b\u202e\u2066") & set(page())


def test_a_private_repository_is_kept_from_others(github: FakeGitHub, tries: Try) -> None:
    github.repo.private = True
    fill(github, 3)
    Path(PAGE).touch(mode=0o644)
    assert "keep it where that may be read" in tries().out
    assert "this page holds text of it" in page()
    assert stat.S_IMODE(Path(PAGE).stat().st_mode) == 0o600


def test_a_private_repository_is_known_for_one_however_little_of_it_was_read(github: FakeGitHub, tries: Try) -> None:
    github.repo.private = True
    fill(github, 2 * PER_PAGE)
    github.limits.set(1 + POINTS, resource="graphql")
    assert tries("--last", "3").code == 1
    assert "keep it where that may be read" in tries("--last", "3", "--offline").out
    assert stat.S_IMODE(Path(PAGE).stat().st_mode) == 0o600


def test_what_was_read_is_for_its_owner_alone(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    tries()
    (held,) = (tmp_path / "cache").rglob("issues.db")
    assert (stat.S_IMODE(held.stat().st_mode), stat.S_IMODE(held.parent.stat().st_mode)) == (0o600, 0o700)
    assert github.token not in held.read_bytes().decode("latin-1")


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


def test_a_renamed_repository_is_shown_by_its_name_now(github: FakeGitHub, tries: Try) -> None:
    fill(github, 3)
    tries()
    github.world.names["octocat/hello"] = github.repo.id
    github.repo.name = "hello"
    assert tries("--json").data["repository"] == "octocat/hello"


def test_what_closed_an_issue_is_known_after_its_repository_was_renamed(
    github: FakeGitHub, tries: Try, tmp_path: Path
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
    (held,) = (tmp_path / "cache").rglob("issues.db")
    with closing(sqlite3.connect(held)) as database:
        (fields,) = database.execute("SELECT fields FROM threads WHERE id = ?", (number,)).fetchone()
    (closed,) = (event for event in json.loads(fields)["events"] if event["event"] == "closed")
    assert closed["source"] == pull


# What it keeps


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


def test_an_old_issue_that_changed_makes_no_gap(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3", "--history", str(PER_PAGE))
    github.comment(1, "octocat", "Me too", at=at(500))
    assert tries("--last", "3", "--history", "all", "--offline", "--json").data["history"] == PER_PAGE
    tries("--last", "3", "--history", str(PER_PAGE))
    assert tries("--last", "3", "--history", "all", "--offline", "--json").data["history"] == PER_PAGE


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


def test_a_limit_that_is_soon_over_is_waited_for(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    github.faults.add("POST /graphql", "secondary200", 1, after=2, seconds=1)
    assert tries("--last", "3", "--json").data["history"] == 2 * PER_PAGE


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


def test_ctrl_c_is_one_line_before_anything_begins(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    tries()
    (held,) = (tmp_path / "cache").rglob("lock")
    with held.open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = started(github, tmp_path)
        time.sleep(2.5)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, "", "precedent: stopped\n")


def test_how_long_a_request_takes_is_learned(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    assert "about 3 s" in tries().err
    (held,) = (tmp_path / "cache").rglob("issues.db")
    with closing(sqlite3.connect(held, isolation_level=None)) as database:
        (told,) = database.execute("SELECT value FROM facts WHERE name = 'pace'").fetchone()
        assert 0 < float(told) < 2
        database.execute("UPDATE facts SET value = '240.0' WHERE name = 'pace'")
    fill(github, 1, 3)
    assert "1 request, about 4 min" in tries().err


def test_a_place_that_github_forgot_is_looked_for_again(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3 * PER_PAGE)
    tries("--last", "3", "--history", str(PER_PAGE))
    (held,) = (tmp_path / "cache").rglob("issues.db")
    with closing(sqlite3.connect(held, isolation_level=None)) as database:
        database.execute("UPDATE facts SET value = '/' WHERE name = 'place'")
    assert tries("--last", "3", "--json").data["history"] == 3 * PER_PAGE


def test_fresh_forgets(github: FakeGitHub, tries: Try) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3")
    github.delete_issue(1)
    assert tries("--last", "3", "--json").data["history"] == 2 * PER_PAGE
    assert tries("--last", "3", "--fresh", "--json").data["history"] == 2 * PER_PAGE - 1
    assert queries(github) == 3


def test_a_cache_that_is_none_is_made_anew(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 3)
    tries()
    (held,) = (tmp_path / "cache").rglob("issues.db")
    held.write_bytes(b"no database" * 1000)
    assert tries("--json").data["history"] == 3


def test_a_cache_that_is_damaged_is_told_and_fresh_mends_it(github: FakeGitHub, tries: Try, tmp_path: Path) -> None:
    fill(github, 2 * PER_PAGE)
    tries("--last", "3")
    (held,) = (tmp_path / "cache").rglob("issues.db")
    content = held.read_bytes()
    held.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
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


def test_where_more_changed_than_is_wanted_it_begins_anew(github: FakeGitHub, tries: Try) -> None:
    fill(github, 4 * PER_PAGE)
    tries("--last", "3", "--history", str(PER_PAGE))
    for number in range(1, 3 * PER_PAGE):
        github.comment(number, "octocat", "Stale", at=at(500 + number))
    assert tries("--last", "3", "--history", str(PER_PAGE), "--json").data["history"] == PER_PAGE
    assert queries(github) == 2, "a glimpse, and the newest page"


# What it says when it cannot


@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("401", 2, "GH_TOKEN holds a token that is wrong or has expired (401); `export GH_TOKEN=$(gh auth token)`, or"),
        ("404", 1, "has no GraphQL API (404), by which issues are read"),
        ("limit200", 1, "rate limit is reached until"),
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
    assert tries().err == f"precedent try: {REPO} has no issue yet: there is nothing to try it on\n"
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
    assert tries().err == "precedent try: GH_TOKEN holds characters that no token has: copy it again\n"


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
        (["--offline"], f"nothing of {REPO} was read yet: leave out --offline"),
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
    assert f'<a href="{github.url}/{REPO}/issues/3">' in page()
    monkeypatch.setenv("GITHUB_API_URL", "ftp://x")
    assert tries().err.startswith("precedent try: GITHUB_API_URL: 'ftp://x' is not an address")


# How a repository is named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (REPO, Named(REPO)),
        (f" {REPO}/ ", Named(REPO)),
        (f"{REPO}.git", Named(REPO)),
        (f"https://github.com/{REPO}", Named(REPO, "https://github.com")),
        (f"https://www.github.com/{REPO}.git", Named(REPO, "https://github.com")),
        (f"HTTPS://GitHub.com/{REPO}/issues/7#x", Named(REPO, "https://github.com")),
        (f"http://git.example.com:8080/{REPO}?tab=readme", Named(REPO, "http://git.example.com:8080")),
    ],
)
def test_a_repository_is_named_in_many_ways(text: str, expected: Named) -> None:
    assert named(text) == expected


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
        found = named(text)
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+", found.repository)
        assert found.repository.partition("/")[2] not in (".", "..")
        assert found.server == "" or re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]+)?", found.server)
        assert named(found.repository) == Named(found.repository)


def started(github: FakeGitHub, folder: Path, *options: str) -> subprocess.Popen[str]:
    """The command as a process of its own, which a person may stop."""
    environ = {
        **os.environ,
        "GITHUB_API_URL": github.url,
        "GH_TOKEN": github.token,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "bot", "try", REPO, *options]
    # Who runs in the background hears no Ctrl-C, and hands that on: these are to hear it wherever the tests run.
    hears = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=folder, env=environ, **pipes)  # type: ignore[call-overload,no-any-return]
    finally:
        signal.signal(signal.SIGINT, hears)
