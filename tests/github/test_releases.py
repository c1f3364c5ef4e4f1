"""Which release is the first with a commit, found without asking all of them."""

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


class Asked:
    """Answers from a set, and remembers what it was asked."""

    def __init__(self, having: set[str]) -> None:
        self.having, self.tags = having, list[str]()

    def __call__(self, tag: str) -> bool:
        self.tags.append(tag)
        return tag in self.having


LINES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=5)
"""For each line of releases how many there are, and which is the first with the commit (none where beyond them)."""


@given(LINES, st.randoms(use_true_random=False))
def test_the_first_by_date_is_the_one_that_asking_all_would_find(lines: list[tuple[int, int]], chance: object) -> None:
    tags = [(f"v{line}.0.{patch}", patch >= first) for line, (size, first) in enumerate(lines) for patch in range(size)]
    order = list(range(len(tags)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    placed = sorted(tags, key=lambda tag: (order[tags.index(tag)] // 2, tag))
    in_time = sorted(placed, key=lambda tag: _place(tag[0], placed))
    releases = [release(tag, at) for at, (tag, _) in enumerate(in_time)]
    has = Asked({tag for tag, having in tags if having})
    found = first_by_date(releases, has)
    assert (found.tag if found else None) == next((tag for tag, having in in_time if having), None)


def _place(tag: str, placed: list[tuple[str, bool]]) -> float:
    """The releases of a line come in the order of their numbers, whatever stands between them."""
    line, patch = tag.rsplit(".", 1)
    places = sorted(at for at, (other, _) in enumerate(placed) if other.rsplit(".", 1)[0] == line)
    return places[int(patch)]


def test_a_branch_without_the_commit_is_out_with_two_questions() -> None:
    old = [release(f"v1.9.{patch}", patch) for patch in range(20)]
    has = Asked({"v2.0.0"})
    found = first_by_date([*old, release("v2.0.0", 30)], has)
    assert found is not None
    assert (found.tag, has.tags) == ("v2.0.0", ["v1.9.0", "v1.9.19", "v2.0.0"])


@given(st.integers(0, 63), st.integers(0, 63))
def test_the_first_by_version_is_found_by_halves(size: int, first: int) -> None:
    tags = [release(f"v1.{number}.0") for number in range(size)]
    has = Asked({tag.tag for tag in tags[first:]})
    found = first_by_version(tags, has)
    assert found is (tags[first] if first < size else None)
    assert len(has.tags) <= 7


def test_a_release_or_tag_that_is_no_version_is_none() -> None:
    at = "2026-01-01T00:00:00Z"
    assert read_release({"tag_name": "latest", "published_at": at}) is None
    assert read_release({"tag_name": "2026-01-01", "published_at": at}) is None
    assert read_release({}) is None
    assert read_release({"tag_name": "v1.0", "prerelease": True, "published_at": None}) == Release(
        "v1.0", release("v1.0").version, None, is_early=True
    )
    assert read_tag({"name": "v1.0", "commit": {"sha": "zz"}}) is None
    assert read_tag({"name": "v1.0", "commit": None}) is None


def test_of_several_projects_in_one_repository_only_its_own_is_looked_at() -> None:
    tags = [release(tag) for tag in ("v1.0", "plugin-v2.0", "hello-v3.0")]
    assert [one.tag for one in main_releases(tags, "hello")] == ["v1.0", "hello-v3.0"]
    assert [one.tag for one in main_releases(tags[1:2], "hello")] == ["plugin-v2.0"]
    assert main_releases([*tags[1:2], release("other-v1.0")], "hello") == []
