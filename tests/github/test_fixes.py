"""Finding a fix: the change, its telling files and the first release with it, in few reads."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.domain.change_state import NamedChange
from bot.domain.changes import FixInfo
from bot.github.client import GitHubClient
from bot.github.errors import Unreachable
from bot.github.fixes import (
    MAX_COMPARES,
    MAX_READS,
    NEVER,
    NO_FIX_INTERVAL,
    RECHECK_INTERVAL,
    RETRY_INTERVAL,
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


def merge_pull(github: FakeGitHub, at: str = day(3), files: tuple[str, ...] = (), base: str = "") -> str:
    """Merge a new pull request and return its reference."""
    number = github.add_pull("hubot", "Fix", files=files, at=day(1))
    if base:
        github.retarget(number, base)
    github.merge_pull(number, "octocat", at=at)
    return f"#{number}"


def look_up(finder: FixFinder, ref: str, known: FixInfo | None = None, now: datetime = NOW) -> FixInfo:
    fix_info = finder.find(1, NamedChange(ref), known, now)
    assert fix_info is not None
    assert (fix_info.id, fix_info.ref) == (1, ref)
    return fix_info


def due(refs: Mapping[int, str], known: Mapping[int, FixInfo], now: datetime) -> dict[int, str]:
    """The references that are due, in the words of a thread."""
    named = {key: NamedChange(ref) for key, ref in refs.items()}
    return {key: change.ref for key, change in due_fixes(named, known, now).items()}  # type: ignore[arg-type, misc]


# The change


def test_a_merged_pull_request_is_found_with_its_commit_and_files(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github, files=("CHANGELOG.md", "auth/cookie.py", "package-lock.json", "tests/test_cookie.py"))
    fix_info = look_up(finder, ref)
    assert fix_info.is_pull
    assert fix_info.commit == github.issue(int(ref[1:])).pull.merge_commit  # type: ignore[union-attr]
    assert fix_info.merged_at == datetime(2026, 2, 3, tzinfo=UTC)
    assert fix_info.files == ("auth/cookie.py", "CHANGELOG.md", "tests/test_cookie.py")
    assert fix_info.looked_at == NOW


def test_an_unmerged_pull_request_is_not_a_fix(github: FakeGitHub, finder: FixFinder) -> None:
    number = github.add_pull("hubot", "Fix", files=["a.py"])
    assert look_up(finder, f"#{number}") == FixInfo(1, f"#{number}", NOW, is_pull=True, refuted=True)
    github.close(number, "hubot")
    unmerged = look_up(finder, f"#{number}")
    assert unmerged == FixInfo(1, f"#{number}", NOW, is_pull=True, refuted=True)
    assert due({1: unmerged.ref}, {1: unmerged}, NOW + RECHECK_INTERVAL) == {1: unmerged.ref}, "it may be merged yet"


def test_an_issue_or_a_missing_reference_is_not_a_fix(github: FakeGitHub, finder: FixFinder) -> None:
    number = github.open_issue("octocat", "Crash")
    for ref in (f"#{number}", "#77", "a" * 40):
        assert look_up(finder, ref) == FixInfo(1, ref, NOW, refuted=True)
    for ref in ("octocat/other#1", "\ud800", "#0", "[" * 65_536):
        assert look_up(finder, ref) == FixInfo(1, ref, NOW)


def test_a_commit_outside_the_main_branch_and_all_releases_is_not_a_fix(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_branch("topic")
    sha = github.add_commit("Try it", "hubot", at=day(3), branch="topic")
    fix_info = look_up(finder, sha)
    assert (fix_info.commit, fix_info.refuted) == (sha, True)
    assert look_up(new_finder(github), sha, fix_info, NOW + RECHECK_INTERVAL).refuted
    github.add_release("v1.0.1", at=day(4), branch="topic")
    shipped = look_up(new_finder(github), sha, fix_info, NOW + RECHECK_INTERVAL)
    assert (shipped.release, shipped.refuted) == ("v1.0.1", False)


# What closed an issue, if its thread only claims or refers to a change


def claim(finder: FixFinder, key: int, ref: str) -> FixInfo:
    fix_info = finder.find(key, NamedChange(ref, is_claim=True), None, NOW)
    assert fix_info is not None
    return fix_info


def closed_issue(github: FakeGitHub, reason: str = "completed") -> int:
    number = github.open_issue("hubot", "Crash", at=day(1))
    github.close(number, "octocat", reason, at=day(9))
    return int(number)


def test_the_pull_request_that_closed_the_issue_is_found_in_one_read(github: FakeGitHub, finder: FixFinder) -> None:
    number = github.open_issue("hubot", "Crash", at=day(1))
    mentioned = github.add_pull("hubot", "Log more", f"Refs #{number}", at=day(2))
    pull = github.add_pull("hubot", "Fix", files=["a.py", "tests/test_a.py"], at=day(2), closes=[number])
    for each in (mentioned, pull):
        github.merge_pull(each, "octocat", at=day(3))
    github.mark()
    fix_info = claim(finder, number, f"#{mentioned}")
    assert (fix_info.ref, fix_info.closed_by, fix_info.change) == (f"#{mentioned}", f"#{pull}", f"#{pull}")
    assert (fix_info.commit, fix_info.files) == (github.issue(pull).pull.merge_commit, ("a.py", "tests/test_a.py"))  # type: ignore[union-attr]
    assert [call.path for call in github.requests if "pull" in call.path] == []


@pytest.mark.parametrize(
    ("text", "merged", "reason", "is_fix"),
    [
        ("Fixes #{}", day(3), "completed", True),
        ("Fixes #{}", None, "completed", False),
        ("Refs #{}", day(3), "completed", False),
        ("Linked to #{}", day(3), "completed", True),
        ("Linked to #{}", day(3), "not_planned", False),
        ("Linked to #{}", day(12), "completed", False),
    ],
)
def test_an_issue_closed_by_hand_was_fixed_by_a_change_that_is_linked_or_says_so(
    github: FakeGitHub, text: str, merged: str | None, reason: str, *, is_fix: bool
) -> None:
    finder = new_finder(github)
    number = closed_issue(github, reason)
    pull = github.add_pull("hubot", "Keep sessions", text.format(number), at=day(2))
    if merged:
        github.merge_pull(pull, "octocat", at=merged)
    if text.startswith("Linked"):
        github.issue(pull).pull.closes.append(number)  # type: ignore[union-attr]
    fix_info = claim(finder, number, f"#{pull}")
    assert (fix_info.commit is not None, fix_info.closed_by, fix_info.refuted) == (is_fix, f"#{pull}" * is_fix, False)


@pytest.mark.parametrize("text", ["Fixes #{}", "Refs #{}"])
def test_without_graphql_the_text_of_the_change_decides(github: FakeGitHub, text: str) -> None:
    number = closed_issue(github)
    pull = github.add_pull("hubot", "Keep sessions", text.format(number), at=day(2))
    github.merge_pull(pull, "octocat", at=day(3))
    github.add_token("weak", BOT, {"issues": "write", "contents": "write"})
    weak = FixFinder(GitHubClient(github.url, "weak", REPOSITORY), REPOSITORY)
    assert claim(weak, number, f"#{pull}").closed_by == ""
    sha = github.add_commit(f"Keep sessions\n\n{text.format(number)}", "octocat", at=day(3))
    is_fix = text.startswith("Fixes")
    for finder in (weak, new_finder(github)):
        fix_info = claim(finder, number, sha)
        assert (fix_info.commit, fix_info.closed_by) == ((sha, sha) if is_fix else (None, ""))


def test_an_issue_that_is_claimed_as_the_fix_is_refuted(github: FakeGitHub, finder: FixFinder) -> None:
    number, other = closed_issue(github), closed_issue(github)
    assert claim(finder, number, f"#{other}").refuted


def test_a_commit_is_found_with_its_files(github: FakeGitHub, finder: FixFinder) -> None:
    sha = github.add_commit("Fix it", "hubot", at=day(3), files=["a.py"])
    github.add_release("v1.0", at=day(4))
    fix_info = look_up(finder, sha[:8])
    assert (fix_info.commit, fix_info.files, fix_info.is_pull) == (sha, ("a.py",), False)
    assert (fix_info.merged_at, fix_info.release) == (datetime(2026, 2, 3, tzinfo=UTC), "v1.0")


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("yarn.lock a.py dist/app.js b/x.min.js go.sum api_pb2.py x.g.dart vendor/z.go w.pb.go", "a.py"),
        ("docs/a.md README.md src/b.py test_b.py spec/c.rb", "src/b.py docs/a.md README.md test_b.py spec/c.rb"),
        ("g.py f.py e.py d.py c.py b.py a.py", "g.py f.py e.py d.py c.py"),
        ("latest/testing.py", "latest/testing.py"),
    ],
)  # fmt: skip
def test_source_files_come_first_and_generated_ones_are_left_out(paths: str, expected: str) -> None:
    assert " ".join(files_of([{"filename": path} for path in paths.split()])) == expected


@pytest.mark.parametrize("listed", [None, {}, "x", [None, 3, {"filename": None}, {}]])
def test_a_malformed_list_of_files_counts_as_empty(listed: object) -> None:
    assert files_of(listed) == ()


# The release


def test_the_first_release_with_the_fix_is_found(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_release("v2.2.0", at=day(2))
    ref = merge_pull(github)
    for number, tag in enumerate(("v2.3.0", "v2.3.1", "v2.4.0"), start=4):
        github.add_release(tag, at=day(number))
    fix_info = look_up(finder, ref)
    assert (fix_info.release, fix_info.released_at) == ("v2.3.0", datetime(2026, 2, 4, tzinfo=UTC))


def test_a_release_from_another_branch_lacks_the_fix(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_branch("1.9")
    ref = merge_pull(github)
    github.add_commit("Backport something else", "octocat", at=day(4), branch="1.9")
    for number, tag in enumerate(("v1.9.7", "v1.9.8", "v1.9.9", "v1.9.10"), start=4):
        github.add_release(tag, at=day(number), branch="1.9")
    github.add_release("v2.0.0", at=day(9))
    assert look_up(finder, ref).release == "v2.0.0"
    assert count_compares(github) == 3


def test_a_backport_gets_the_release_of_its_branch(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_branch("1.9")
    github.add_commit("Go on", "octocat", at=day(2))
    ref = merge_pull(github, base="1.9")
    github.add_release("v2.0.0", at=day(4))
    github.add_release("v1.9.8", at=day(5), branch="1.9")
    assert look_up(finder, ref).release == "v1.9.8"


def test_drafts_are_skipped_and_prereleases_give_way_to_a_full_release(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github)
    github.add_release("v2.2.9", at=day(4), draft=True)
    github.add_release("v2.3.0-rc.1", at=day(4), prerelease=True)
    github.add_release("v2.3.0-rc.2", at=day(5))
    early = look_up(finder, ref)
    assert early.release == "v2.3.0-rc.1"
    github.add_release("v2.3.0", at=day(6))
    later = NOW + RECHECK_INTERVAL
    assert due({1: ref}, {1: early}, later)
    assert look_up(new_finder(github), ref, early, later).release == "v2.3.0"


def test_an_unreleased_fix_is_looked_up_again_after_a_day(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github, files=("a.py",))
    github.add_release("v2.2.0", at=day(2))
    known = look_up(finder, ref)
    assert (known.release, known.commit is not None, known.unreleased) == (None, True, True)
    assert not due({1: ref}, {1: known}, NOW + RECHECK_INTERVAL - timedelta(minutes=1))
    assert due({1: ref}, {1: known}, NOW + RECHECK_INTERVAL)
    github.add_release("v2.3.0", at="2026-06-02T00:00:00Z")
    github.mark()
    later = look_up(new_finder(github), ref, known, NOW + RECHECK_INTERVAL)
    assert (later.release, later.unreleased) == ("v2.3.0", False)
    assert github.reads == 2, "the pull request and its files are known"


@pytest.mark.parametrize(
    ("releases", "tags", "expected"),
    [
        ("nightly latest 2026-02-06 plugin-v9.0.0 v2.3.0", (0, 0), ("v2.3.0", False, 1)),  # the others are not versions
        ("core@1.0.0 cli@2.0.0", (0, 0), (None, False, 0)),  # several projects are released
        ("hello-world/v2.3.0", (0, 0), ("hello-world/v2.3.0", False, 1)),
        ("", (9, 0), (None, True, 1)),
        ("", (0, 0), (None, False, 0)),
        ("", (0, 130), (None, False, 7)),  # found among more tags than are compared
        ("", (0, 210), (None, False, 0)),  # more tags than can be read
    ],
)
def test_which_releases_and_tags_count(
    github: FakeGitHub,
    finder: FixFinder,
    releases: str,
    tags: tuple[int, int],
    expected: tuple[str | None, bool, int],
) -> None:
    """With ``tags`` made before and after the fix: its release, whether it has none, and the comparisons made."""
    for number in range(tags[0]):
        github.add_tag(f"v1.{number}.0")
    ref = merge_pull(github)
    for number in range(tags[1]):
        github.add_tag(f"v1.{number}.0")
    for number, tag in enumerate(releases.split(), start=4):
        github.add_release(tag, at=day(number))
    fix_info = look_up(finder, ref)
    assert (fix_info.release, fix_info.unreleased, count_compares(github)) == expected


def test_a_newer_tag_without_a_release_counts_too(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_release("v1.0.0", at=day(2))
    ref = merge_pull(github)
    github.add_release("v9.0.0", at=day(4), draft=True)
    github.add_tag("v1.1.0")
    assert look_up(finder, ref).release == "v1.1.0"


def test_tags_count_if_there_are_no_releases(github: FakeGitHub, finder: FixFinder) -> None:
    for number in range(60):
        github.add_commit(f"Work {number}", "octocat", at=day(2))
        github.add_tag(f"v1.{number}.0")
    ref = merge_pull(github, at=day(3))
    for number in range(60, 120):
        sha = github.add_commit(f"Work {number}", "octocat", at=day(4 + number // 20))
        github.add_tag(f"v1.{number}.0", sha)
    github.add_tag("v1.60.0-rc.1", github.repo.commits[github.repo.tags["v1.60.0"]].sha)
    fix_info = look_up(finder, ref)
    assert (fix_info.release, fix_info.released_at) == ("v1.60.0", datetime(2026, 2, 7, tzinfo=UTC))
    assert finder.reads <= MAX_READS


def test_a_fix_older_than_the_listed_releases_gets_no_release(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github)
    for number in range(310):
        github.add_release(f"v1.{number}.0", at=f"2026-03-01T{number // 60:02d}:{number % 60:02d}:00Z")
    assert look_up(finder, ref).release is None
    assert count_compares(github) == 0


# The cost


def count_compares(github: FakeGitHub) -> int:
    return sum("compare" in request.path for request in github.requests)


def new_finder(github: FakeGitHub) -> FixFinder:
    return FixFinder(GitHubClient(github.url, github.token, REPOSITORY), REPOSITORY)


def test_releases_are_read_once_per_run(github: FakeGitHub, finder: FixFinder) -> None:
    refs = [merge_pull(github, at=day(number)) for number in (3, 4)]
    github.add_release("v1.0.0", at=day(5))
    assert [look_up(finder, ref).release for ref in refs] == ["v1.0.0", "v1.0.0"]
    assert sum(request.path.endswith("/releases") for request in github.requests) == 1
    assert finder.reads == 7


def test_one_fix_costs_a_bounded_number_of_comparisons(github: FakeGitHub, finder: FixFinder) -> None:
    github.add_branch("old")
    ref = merge_pull(github)
    for number in range(10):
        github.add_release(f"v0.{number}.0", at=day(4 + number), branch="old")
    github.add_release("v9.0.0", at=day(20))
    fix_info = look_up(finder, ref)
    assert (fix_info.release, fix_info.looked_at, fix_info.unreleased) == (None, NOW, False)
    assert count_compares(github) == MAX_COMPARES


def test_one_run_costs_a_bounded_number_of_reads(github: FakeGitHub, finder: FixFinder) -> None:
    refs = [merge_pull(github) for _ in range(9)]
    github.add_release("v1.0.0", at=day(5))
    github.mark()
    results = [finder.find(1, NamedChange(ref), None, NOW) for ref in refs]
    assert github.reads == finder.reads == MAX_READS
    assert [fix.release for fix in results[:4] if fix] == ["v1.0.0"] * 4
    assert results[4:] == [None] * 5


def test_a_fix_that_had_no_reads_left_for_its_release_is_due_again(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github)
    github.add_release("v1.0.0", at=day(5))
    finder.reads = MAX_READS - 2
    fix_info = look_up(finder, ref)
    assert (fix_info.commit is not None, fix_info.release, fix_info.looked_at) == (True, None, NEVER)
    assert due({1: ref}, {1: fix_info}, NOW)


def test_a_known_fix_is_not_looked_up_again() -> None:
    released = FixInfo(1, "#5", NOW, is_pull=True, commit="a" * 40, merged_at=NOW, release="v2.3.0")
    not_found = FixInfo(2, "#6", NOW)
    unmerged = FixInfo(3, "#7", NOW, is_pull=True)
    known = {fix.id: fix for fix in (released, not_found, unmerged)}
    refs: dict[int | str, str] = {1: "#5", 2: "#6", 3: "#7"}
    assert due(refs, known, NOW + timedelta(hours=1)) == {}
    assert due(refs, known, NOW + RECHECK_INTERVAL) == {3: "#7"}
    assert due(refs, known, NOW + NO_FIX_INTERVAL) == {2: "#6", 3: "#7"}
    assert due({1: "#8", 9: "#1"}, known, NOW) == {1: "#8", 9: "#1"}


# Faults


@pytest.mark.parametrize("kind", ["primary403", "secondary403", "429", "401"])
def test_a_rate_limit_or_refused_token_ends_the_lookups(github: FakeGitHub, finder: FixFinder, kind: str) -> None:
    ref = merge_pull(github)
    github.faults.add("GET */pulls/*", kind, 1, seconds=60)
    github.mark()
    assert finder.find(1, NamedChange(ref), None, NOW) is None
    assert finder.find(1, NamedChange(ref), None, NOW) is None
    assert github.reads == 1


class FlakyClient:
    """A client that cannot reach paths that contain ``down``."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client
        self.down = ""

    def get(self, path: str, query: Mapping[str, Any]) -> Any:
        if self.down and self.down in path:
            raise Unreachable("GitHub answered 502")
        return self._client.get(path, query)


def test_an_unreachable_server_is_asked_again_later(github: FakeGitHub, client: GitHubClient) -> None:
    flaky = FlakyClient(client)
    finder = FixFinder(flaky, REPOSITORY)
    ref = merge_pull(github)
    github.add_release("v1.0.0", at=day(5))
    flaky.down = "/releases"
    cut_short = look_up(finder, ref)
    assert (cut_short.release, cut_short.unreleased, cut_short.looked_at) == (
        None, False, NOW - RECHECK_INTERVAL + RETRY_INTERVAL,
    )  # fmt: skip
    flaky.down = ""
    assert look_up(finder, ref, cut_short).release == "v1.0.0"


@pytest.mark.parametrize("down", ["/pulls/", "/files", "/commits/", "/releases", "/compare/", "/tags"])
def test_a_failed_lookup_is_repeated_after_an_hour(github: FakeGitHub, client: GitHubClient, down: str) -> None:
    flaky = FlakyClient(client)
    github.add_release("v1.0.0", at=day(2))
    sha = github.add_commit("Mend it", "hubot", at=day(3))
    ref = sha if down == "/commits/" else merge_pull(github)
    if down == "/compare/":
        github.add_release("v1.1.0", at=day(5))
    flaky.down = down
    fix_info = look_up(FixFinder(flaky, REPOSITORY), ref)
    assert (fix_info.release, fix_info.unreleased) == (None, False)
    due_at = NOW + RETRY_INTERVAL
    assert due({1: ref}, {1: fix_info}, due_at - timedelta(seconds=1)) == {}
    assert due({1: ref}, {1: fix_info}, due_at) == {1: ref}
    retried = look_up(FixFinder(flaky, REPOSITORY), ref, fix_info, due_at)
    assert later_fix(retried, fix_info) == retried
    assert due({1: ref}, {1: retried}, due_at) == {}


def test_failing_comparisons_end_no_run_and_are_not_repeated_in_the_next_one(
    github: FakeGitHub, client: GitHubClient
) -> None:
    issue = github.open_issue("octocat", "Crash")
    refs = {number: merge_pull(github, at=day(number)) for number in (3, 4, 5, 6)}
    github.add_release("v1.0.0", at=day(7))
    known: dict[int | str, FixInfo] = {
        key: replace(look_up(FixFinder(client, REPOSITORY), ref), id=key, release=None, looked_at=NEVER)
        for key, ref in refs.items()
    }
    github.faults.add("GET */compare/*", "5xx", None)
    finder = FixFinder(client, REPOSITORY)
    results = [finder.find(key, NamedChange(ref), known[key], NOW) for key, ref in refs.items()]
    assert client.create_comment(issue, "Seen before").text == "Seen before"
    assert count_compares(github) == 4 + 3 * 4
    assert results[3] is None, "it was not asked for"
    known |= {fix.id: fix for fix in results if fix}
    assert due(dict(refs), known, NOW) == {6: refs[6]}


def test_an_unreleased_verdict_is_withdrawn_once_releases_are_ambiguous(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github)
    github.add_release("v1.0.0", at=day(2))
    known = look_up(finder, ref)
    assert known.unreleased
    github.add_release("cli@2.0.0", at=day(5))
    github.repo.releases.pop(0)
    github.add_release("core@2.0.0", at=day(6))
    assert look_up(new_finder(github), ref, known).unreleased is False


def test_a_token_without_pull_requests_permission_still_finds_commits(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github)
    github.add_token("weak", BOT, {"issues": "write", "contents": "write"})
    weak = FixFinder(GitHubClient(github.url, "weak", REPOSITORY), REPOSITORY)
    assert look_up(weak, ref) == FixInfo(1, ref, NOW)
    sha = github.add_commit("Fix it", "hubot", at=day(4))
    github.add_release("v1.0.0", at=day(5))
    assert look_up(weak, sha).release == "v1.0.0"


def test_a_release_whose_tag_was_deleted_does_not_count(github: FakeGitHub, finder: FixFinder) -> None:
    ref = merge_pull(github)
    github.add_release("v1.0.0", at=day(5))
    del github.repo.tags["v1.0.0"]
    assert look_up(finder, ref).release is None
