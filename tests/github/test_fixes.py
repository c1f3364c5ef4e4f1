"""Where a fix is: the change, the files that tell, the first release with it, in few reads."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.domain.changes import FixInfo
from bot.github.client import GitHubClient
from bot.github.errors import Unreachable
from bot.github.fixes import (
    AGAIN,
    FAILED_AGAIN,
    MAX_COMPARES,
    MAX_READS,
    NEVER,
    NOTHING_AGAIN,
    FixFinder,
    due_fixes,
    files_of,
)
from bot.memory.merge import later_fix
from tests.fakes.github import FakeGitHub
from tests.github.conftest import REPOSITORY

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BOT = "github-actions[bot]"


@pytest.fixture
def finder(github: FakeGitHub, client: GitHubClient) -> FixFinder:
    github.add_commit("Begin", "octocat", at="2025-01-01T00:00:00Z")
    return FixFinder(client, REPOSITORY)


def day(number: int) -> str:
    return f"2026-02-{number:02d}T00:00:00Z"


def merged(github: FakeGitHub, at: str = day(3), files: tuple[str, ...] = (), base: str = "") -> str:
    """The reference to a pull request that was merged."""
    number = github.add_pull("hubot", "Fix", files=files, at=day(1))
    if base:
        github.retarget(number, base)
    github.merge_pull(number, "octocat", at=at)
    return f"#{number}"


def look(finder: FixFinder, ref: str, known: FixInfo | None = None, now: datetime = NOW) -> FixInfo:
    found = finder.find(1, ref, known, now)
    assert found is not None
    assert (found.id, found.ref) == (1, ref)
    return found


# The change


def test_a_merged_pull_request_is_told_with_its_commit_and_files(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merged(github, files=("CHANGELOG.md", "auth/cookie.py", "package-lock.json", "tests/test_cookie.py"))
    found = look(finder, ref)
    assert found.is_pull
    assert found.commit == github.issue(int(ref[1:])).pull.merge_commit  # type: ignore[union-attr]
    assert found.merged_at == datetime(2026, 2, 3, tzinfo=UTC)
    assert found.files == ("auth/cookie.py", "CHANGELOG.md", "tests/test_cookie.py")
    assert found.looked_at == NOW


def test_a_pull_request_that_is_not_merged_fixes_nothing(github: FakeGitHub, finder: FixFinder) -> None:
    number = github.add_pull("hubot", "Fix", files=["a.py"])
    assert look(finder, f"#{number}") == FixInfo(1, f"#{number}", NOW, is_pull=True, refuted=True)
    github.close(number, "hubot")
    unmerged = look(finder, f"#{number}")
    assert unmerged == FixInfo(1, f"#{number}", NOW, is_pull=True, refuted=True)
    assert due_fixes({1: unmerged.ref}, {1: unmerged}, NOW + AGAIN) == {1: unmerged.ref}, "it may be merged yet"


def test_an_issue_and_what_is_not_there_are_no_fix(github: FakeGitHub, finder: FixFinder) -> None:
    number = github.open_issue("octocat", "Crash")
    for ref in (f"#{number}", "#77", "a" * 40):
        assert look(finder, ref) == FixInfo(1, ref, NOW, refuted=True)
    for ref in ("octocat/other#1", "\ud800", "#0", "[" * 65_536):
        assert look(finder, ref) == FixInfo(1, ref, NOW)


def test_a_commit_that_is_neither_on_the_main_line_nor_in_a_release_is_no_fix(
    github: FakeGitHub, finder: FixFinder
) -> None:
    github.add_branch("topic")
    sha = github.add_commit("Try it", "hubot", at=day(3), branch="topic")
    found = look(finder, sha)
    assert (found.commit, found.refuted) == (sha, True)
    assert look(fresh(github), sha, found, NOW + AGAIN).refuted
    github.add_release("v1.0.1", at=day(4), branch="topic")
    shipped = look(fresh(github), sha, found, NOW + AGAIN)
    assert (shipped.release, shipped.refuted) == ("v1.0.1", False)


def test_a_commit_is_told_with_its_files(github: FakeGitHub, finder: FixFinder) -> None:
    sha = github.add_commit("Fix it", "hubot", at=day(3), files=["a.py"])
    github.add_release("v1.0", at=day(4))
    found = look(finder, sha[:8])
    assert (found.commit, found.files, found.is_pull) == (sha, ("a.py",), False)
    assert (found.merged_at, found.release) == (datetime(2026, 2, 3, tzinfo=UTC), "v1.0")


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        ("yarn.lock a.py dist/app.js b/x.min.js go.sum api_pb2.py x.g.dart vendor/z.go w.pb.go", "a.py"),
        ("docs/a.md README.md src/b.py test_b.py spec/c.rb", "src/b.py docs/a.md README.md test_b.py spec/c.rb"),
        ("g.py f.py e.py d.py c.py b.py a.py", "g.py f.py e.py d.py c.py"),
        ("latest/testing.py", "latest/testing.py"),
    ],
)  # fmt: skip
def test_the_files_that_tell_come_first_and_those_that_are_made_are_left_out(paths: str, shown: str) -> None:
    assert " ".join(files_of([{"filename": path} for path in paths.split()])) == shown


@pytest.mark.parametrize("listed", [None, {}, "x", [None, 3, {"filename": None}, {}]])
def test_a_list_of_files_in_another_shape_is_no_files(listed: object) -> None:
    assert files_of(listed) == ()


# The release


def test_the_first_release_that_has_it_is_told(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_release("v2.2.0", at=day(2))
    ref = merged(github)
    for number, tag in enumerate(("v2.3.0", "v2.3.1", "v2.4.0"), start=4):
        github.add_release(tag, at=day(number))
    found = look(finder, ref)
    assert (found.release, found.released_at) == ("v2.3.0", datetime(2026, 2, 4, tzinfo=UTC))


def test_a_release_from_another_branch_has_it_not(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_branch("1.9")
    ref = merged(github)
    github.add_commit("Backport something else", "octocat", at=day(4), branch="1.9")
    for number, tag in enumerate(("v1.9.7", "v1.9.8", "v1.9.9", "v1.9.10"), start=4):
        github.add_release(tag, at=day(number), branch="1.9")
    github.add_release("v2.0.0", at=day(9))
    assert look(finder, ref).release == "v2.0.0"
    assert compares(github) == 3


def test_a_backport_is_told_with_the_release_of_its_branch(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_branch("1.9")
    github.add_commit("Go on", "octocat", at=day(2))
    ref = merged(github, base="1.9")
    github.add_release("v2.0.0", at=day(4))
    github.add_release("v1.9.8", at=day(5), branch="1.9")
    assert look(finder, ref).release == "v1.9.8"


def test_drafts_are_passed_over_and_early_ones_where_a_full_release_has_it(
    github: FakeGitHub, finder: FixFinder
) -> None:
    ref = merged(github)
    github.add_release("v2.2.9", at=day(4), draft=True)
    github.add_release("v2.3.0-rc.1", at=day(4), prerelease=True)
    github.add_release("v2.3.0-rc.2", at=day(5))
    early = look(finder, ref)
    assert early.release == "v2.3.0-rc.1"
    github.add_release("v2.3.0", at=day(6))
    later = NOW + AGAIN
    assert due_fixes({1: ref}, {1: early}, later)
    assert look(fresh(github), ref, early, later).release == "v2.3.0"


def test_what_is_in_no_release_yet_is_looked_for_again_after_a_day(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merged(github, files=("a.py",))
    github.add_release("v2.2.0", at=day(2))
    known = look(finder, ref)
    assert (known.release, known.commit is not None, known.unreleased) == (None, True, True)
    assert not due_fixes({1: ref}, {1: known}, NOW + AGAIN - timedelta(minutes=1))
    assert due_fixes({1: ref}, {1: known}, NOW + AGAIN)
    github.add_release("v2.3.0", at="2026-06-02T00:00:00Z")
    github.mark()
    later = look(fresh(github), ref, known, NOW + AGAIN)
    assert (later.release, later.unreleased) == ("v2.3.0", False)
    assert github.reads == 2, "the pull request and its files are known"


@pytest.mark.parametrize(
    ("releases", "tags", "told"),
    [
        ("nightly latest 2026-02-06 plugin-v9.0.0 v2.3.0", (0, 0), ("v2.3.0", False, 1)),  # others are no versions
        ("core@1.0.0 cli@2.0.0", (0, 0), (None, False, 0)),  # several things are released
        ("hello-world/v2.3.0", (0, 0), ("hello-world/v2.3.0", False, 1)),
        ("", (9, 0), (None, True, 1)),
        ("", (0, 0), (None, False, 0)),
        ("", (0, 130), (None, False, 7)),  # the first of more tags than are compared
        ("", (0, 210), (None, False, 0)),  # more tags than can be read
    ],
)
def test_which_releases_and_tags_tell(
    github: FakeGitHub,
    finder: FixFinder,
    releases: str,
    tags: tuple[int, int],
    told: tuple[str | None, bool, int],
) -> None:
    """With so many tags that were made before and after the fix: its release, whether it has none, and comparisons."""
    for number in range(tags[0]):
        github.add_tag(f"v1.{number}.0")
    ref = merged(github)
    for number in range(tags[1]):
        github.add_tag(f"v1.{number}.0")
    for number, tag in enumerate(releases.split(), start=4):
        github.add_release(tag, at=day(number))
    found = look(finder, ref)
    assert (found.release, found.unreleased, compares(github)) == told


def test_a_newer_tag_without_a_release_tells_as_well(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_release("v1.0.0", at=day(2))
    ref = merged(github)
    github.add_release("v9.0.0", at=day(4), draft=True)
    github.add_tag("v1.1.0")
    assert look(finder, ref).release == "v1.1.0"


def test_where_there_are_no_releases_the_tags_tell(github: FakeGitHub, finder: FixFinder) -> None:
    for number in range(60):
        github.add_commit(f"Work {number}", "octocat", at=day(2))
        github.add_tag(f"v1.{number}.0")
    ref = merged(github, at=day(3))
    for number in range(60, 120):
        sha = github.add_commit(f"Work {number}", "octocat", at=day(4 + number // 20))
        github.add_tag(f"v1.{number}.0", sha)
    github.add_tag("v1.60.0-rc.1", github.repo.commits[github.repo.tags["v1.60.0"]].sha)
    found = look(finder, ref)
    assert (found.release, found.released_at) == ("v1.60.0", datetime(2026, 2, 7, tzinfo=UTC))
    assert finder.reads <= MAX_READS


def test_releases_older_than_the_list_reaches_say_nothing(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merged(github)
    for number in range(310):
        github.add_release(f"v1.{number}.0", at=f"2026-03-01T{number // 60:02d}:{number % 60:02d}:00Z")
    assert look(finder, ref).release is None
    assert compares(github) == 0


# Its cost


def compares(github: FakeGitHub) -> int:
    return sum("compare" in request.path for request in github.requests)


def fresh(github: FakeGitHub) -> FixFinder:
    return FixFinder(GitHubClient(github.url, github.token, REPOSITORY), REPOSITORY)


def test_the_releases_are_read_once_in_a_run(github: FakeGitHub, finder: FixFinder) -> None:
    refs = [merged(github, at=day(number)) for number in (3, 4)]
    github.add_release("v1.0.0", at=day(5))
    assert [look(finder, ref).release for ref in refs] == ["v1.0.0", "v1.0.0"]
    assert sum(request.path.endswith("/releases") for request in github.requests) == 1
    assert finder.reads == 7


def test_one_fix_costs_a_bounded_number_of_questions(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_branch("old")
    ref = merged(github)
    for number in range(10):
        github.add_release(f"v0.{number}.0", at=day(4 + number), branch="old")
    github.add_release("v9.0.0", at=day(20))
    found = look(finder, ref)
    assert (found.release, found.looked_at, found.unreleased) == (None, NOW, False)
    assert compares(github) == MAX_COMPARES


def test_one_run_costs_a_bounded_number_of_reads(github: FakeGitHub, finder: FixFinder) -> None:
    refs = [merged(github) for _ in range(9)]
    github.add_release("v1.0.0", at=day(5))
    github.mark()
    found = [finder.find(1, ref, None, NOW) for ref in refs]
    assert github.reads == finder.reads == MAX_READS
    assert [fix.release for fix in found[:4] if fix] == ["v1.0.0"] * 4
    assert found[4:] == [None] * 5


def test_a_fix_that_had_no_reads_left_for_its_release_is_due_again(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merged(github)
    github.add_release("v1.0.0", at=day(5))
    finder.reads = MAX_READS - 2
    found = look(finder, ref)
    assert (found.commit is not None, found.release, found.looked_at) == (True, None, NEVER)
    assert due_fixes({1: ref}, {1: found}, NOW)


def test_what_is_known_is_not_looked_up_again() -> None:
    released = FixInfo(1, "#5", NOW, is_pull=True, commit="a" * 40, merged_at=NOW, release="v2.3.0")
    nothing = FixInfo(2, "#6", NOW)
    open_one = FixInfo(3, "#7", NOW, is_pull=True)
    known = {fix.id: fix for fix in (released, nothing, open_one)}
    refs: dict[int | str, str] = {1: "#5", 2: "#6", 3: "#7"}
    assert due_fixes(refs, known, NOW + timedelta(hours=1)) == {}
    assert due_fixes(refs, known, NOW + AGAIN) == {3: "#7"}
    assert due_fixes(refs, known, NOW + NOTHING_AGAIN) == {2: "#6", 3: "#7"}
    assert due_fixes({1: "#8", 9: "#1"}, known, NOW) == {1: "#8", 9: "#1"}


# Faults


@pytest.mark.parametrize("kind", ["primary403", "secondary403", "429", "401"])
def test_a_limit_and_a_refused_token_end_the_looking(github: FakeGitHub, finder: FixFinder, kind: str) -> None:
    ref = merged(github)
    github.faults.add("GET */pulls/*", kind, 1, seconds=60)
    github.mark()
    assert finder.find(1, ref, None, NOW) is None
    assert finder.find(1, ref, None, NOW) is None
    assert github.reads == 1


class Flaky:
    """The API by a line that is down whenever a path contains ``down``."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client
        self.down = ""

    def get(self, path: str, query: Mapping[str, Any]) -> Any:
        if self.down and self.down in path:
            raise Unreachable("GitHub answered 502")
        return self._client.get(path, query)


def test_a_server_that_does_not_answer_is_asked_again_another_time(github: FakeGitHub, client: GitHubClient) -> None:
    line = Flaky(client)
    finder = FixFinder(line, REPOSITORY)
    ref = merged(github)
    github.add_release("v1.0.0", at=day(5))
    line.down = "/releases"
    cut_short = look(finder, ref)
    assert (cut_short.release, cut_short.unreleased, cut_short.looked_at) == (
        None, False, NOW - AGAIN + FAILED_AGAIN,
    )  # fmt: skip
    line.down = ""
    assert look(finder, ref, cut_short).release == "v1.0.0"


@pytest.mark.parametrize("down", ["/pulls/", "/files", "/commits/", "/releases", "/compare/", "/tags"])
def test_a_look_without_an_answer_waits_for_an_hour(github: FakeGitHub, client: GitHubClient, down: str) -> None:
    line = Flaky(client)
    github.add_release("v1.0.0", at=day(2))
    sha = github.add_commit("Mend it", "hubot", at=day(3))
    ref = sha if down == "/commits/" else merged(github)
    if down == "/compare/":
        github.add_release("v1.1.0", at=day(5))
    line.down = down
    found = look(FixFinder(line, REPOSITORY), ref)
    assert (found.release, found.unreleased) == (None, False)
    due = NOW + FAILED_AGAIN
    assert due_fixes({1: ref}, {1: found}, due - timedelta(seconds=1)) == {}
    assert due_fixes({1: ref}, {1: found}, due) == {1: ref}
    again = look(FixFinder(line, REPOSITORY), ref, found, due)
    assert later_fix(again, found) == again
    assert due_fixes({1: ref}, {1: again}, due) == {}


def test_comparisons_that_never_come_end_no_run_and_are_not_asked_for_in_the_next_one(
    github: FakeGitHub, client: GitHubClient
) -> None:
    issue = github.open_issue("octocat", "Crash")
    refs = {number: merged(github, at=day(number)) for number in (3, 4, 5, 6)}
    github.add_release("v1.0.0", at=day(7))
    known: dict[int | str, FixInfo] = {
        key: replace(look(FixFinder(client, REPOSITORY), ref), id=key, release=None, looked_at=NEVER)
        for key, ref in refs.items()
    }
    github.faults.add("GET */compare/*", "5xx", None)
    finder = FixFinder(client, REPOSITORY)
    found = [finder.find(key, ref, known[key], NOW) for key, ref in refs.items()]
    assert client.create_comment(issue, "Seen before").text == "Seen before"
    assert compares(github) == 4 + 3 * 4
    assert found[3] is None, "it was not asked for"
    known |= {fix.id: fix for fix in found if fix}
    assert due_fixes(dict(refs), known, NOW) == {6: refs[6]}


def test_what_is_not_sure_any_more_is_not_said_again(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merged(github)
    github.add_release("v1.0.0", at=day(2))
    known = look(finder, ref)
    assert known.unreleased
    github.add_release("cli@2.0.0", at=day(5))
    github.repo.releases.pop(0)
    github.add_release("core@2.0.0", at=day(6))
    assert look(fresh(github), ref, known).unreleased is False


def test_a_token_that_may_not_read_pull_requests_leaves_them_alone(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merged(github)
    github.add_token("weak", BOT, {"issues": "write", "contents": "write"})
    weak = FixFinder(GitHubClient(github.url, "weak", REPOSITORY), REPOSITORY)
    assert look(weak, ref) == FixInfo(1, ref, NOW)
    sha = github.add_commit("Fix it", "hubot", at=day(4))
    github.add_release("v1.0.0", at=day(5))
    assert look(weak, sha).release == "v1.0.0"


def test_a_tag_that_was_taken_away_says_nothing(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merged(github)
    github.add_release("v1.0.0", at=day(5))
    del github.repo.tags["v1.0.0"]
    assert look(finder, ref).release is None
