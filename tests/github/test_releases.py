"""Finding the first release with a commit without checking all of them."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.github.fixes import Release, first_by_date, first_by_version, main_releases, read_release, read_tag
from bot.reading.versions import read_version

START = datetime(2026, 1, 1, tzinfo=UTC)


def release(tag: str, at: int = 0) -> Release:
    version = read_version(tag)
    assert version is not None
    return Release(tag, version, START + timedelta(days=at))


class RecordingCheck:
    """Says which tags are in a set, and records the tags it was asked about."""

    def __init__(self, tags_with_commit: set[str]) -> None:
        self.tags_with_commit, self.tags = tags_with_commit, list[str]()

    def __call__(self, tag: str) -> bool:
        self.tags.append(tag)
        return tag in self.tags_with_commit


LINES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=5)
"""For each line of releases: how many there are, and the first with the commit (beyond the last: none)."""


@given(LINES, st.randoms(use_true_random=False))
def test_the_first_release_by_date_is_the_one_that_checking_all_would_find(
    lines: list[tuple[int, int]], rng: object
) -> None:
    tags = [(f"v{line}.0.{patch}", patch >= first) for line, (size, first) in enumerate(lines) for patch in range(size)]
    order = list(range(len(tags)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    shuffled = sorted(tags, key=lambda tag: (order[tags.index(tag)] // 2, tag))
    by_time = sorted(shuffled, key=lambda tag: _position(tag[0], shuffled))
    releases = [release(tag, at) for at, (tag, _) in enumerate(by_time)]
    contains_commit = RecordingCheck({tag for tag, is_fixed in tags if is_fixed})
    first_release = first_by_date(releases, contains_commit)
    assert (first_release.tag if first_release else None) == next((tag for tag, is_fixed in by_time if is_fixed), None)


def _position(tag: str, shuffled: list[tuple[str, bool]]) -> float:
    """The position of a tag, such that the releases of a line are in the order of their numbers."""
    line, patch = tag.rsplit(".", 1)
    positions = sorted(at for at, (other, _) in enumerate(shuffled) if other.rsplit(".", 1)[0] == line)
    return positions[int(patch)]


def test_a_branch_without_the_commit_is_ruled_out_with_two_checks() -> None:
    old = [release(f"v1.9.{patch}", patch) for patch in range(20)]
    contains_commit = RecordingCheck({"v2.0.0"})
    first_release = first_by_date([*old, release("v2.0.0", 30)], contains_commit)
    assert first_release is not None
    assert (first_release.tag, contains_commit.tags) == ("v2.0.0", ["v1.9.0", "v1.9.19", "v2.0.0"])


@given(st.integers(0, 63), st.integers(0, 63))
def test_the_first_release_by_version_is_found_by_bisection(size: int, first: int) -> None:
    tags = [release(f"v1.{number}.0") for number in range(size)]
    contains_commit = RecordingCheck({tag.tag for tag in tags[first:]})
    first_release = first_by_version(tags, contains_commit)
    assert first_release is (tags[first] if first < size else None)
    assert len(contains_commit.tags) <= 7


def test_a_release_or_tag_that_is_not_a_version_is_skipped() -> None:
    at = "2026-01-01T00:00:00Z"
    assert read_release({"tag_name": "latest", "published_at": at}) is None
    assert read_release({"tag_name": "2026-01-01", "published_at": at}) is None
    assert read_release({}) is None
    assert read_release({"tag_name": "v1.0", "prerelease": True, "published_at": None}) == Release(
        "v1.0", release("v1.0").version, None, is_early=True
    )
    assert read_tag({"name": "v1.0", "commit": {"sha": "zz"}}) is None
    assert read_tag({"name": "v1.0", "commit": None}) is None


def test_only_the_main_project_of_a_repository_with_several_counts() -> None:
    tags = [release(tag) for tag in ("v1.0", "plugin-v2.0", "hello-v3.0")]
    assert [item.tag for item in main_releases(tags, "hello")] == ["v1.0", "hello-v3.0"]
    assert [item.tag for item in main_releases(tags[1:2], "hello")] == ["plugin-v2.0"]
    assert main_releases([*tags[1:2], release("other-v1.0")], "hello") == []
