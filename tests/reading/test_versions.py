"""Versions in all their spellings, and which of two is older."""

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bot.reading.versions import Version, compare_versions, read_version

MERGED = datetime(2014, 11, 2, 12, tzinfo=UTC)

IN_ORDER = """
0.9.9 1.0.0-dev.1 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.2 1.0.0-M1 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-preview.1
1.0.0-rc.1 1.0.0rc2 1.0.0-RC10 1.0.0 1.0.0.post1 1.0.1 1.2 1.2.0.1 1.10.0 2.0.0-nightly 2.0 10.0 2024.9.3 2024.10.1
"""


def version(text: str) -> Version:
    parsed = read_version(text)
    assert parsed is not None, text
    return parsed


def test_versions_are_ordered() -> None:
    for earlier, later in pairwise(IN_ORDER.split()):
        assert version(earlier) < version(later), (earlier, later)


def test_one_version_has_many_spellings() -> None:
    cases = [
        ("v2.3.0", "2.3.0"),
        ("V2.3.0", "2.3.0"),
        ("v 2.3.0", "2.3.0"),
        ("2.3", "2.3.0"),
        ("2", "2.0.0"),
        ("release-1.2", "1.2.0"),
        ("release/1.2", "1.2.0"),
        ("Release 1.2", "1.2.0"),
        ("REL_15_3", "15.3"),
        ("v1_2_3", "1.2.3"),
        ("2.3.0rc1", "2.3.0-rc.1"),
        ("2.3.0.rc1", "2.3.0-rc.1"),
        ("2.3.0-RC1", "2.3.0-rc.1"),
        ("1.0b2", "1.0.0-beta.2"),
        ("5.0.0.RELEASE", "5.0.0"),
        ("4.2.5.Final", "4.2.5"),
        ("1.2.3+build.7", "1.2.3"),
        ("2024.10.1", "2024.10.1"),
        ("  v2.3.0\n", "2.3.0"),
        ("nightly-2014-11-02", "nightly 2014-11-02"),
        ("2014-11-02", "nightly 2014-11-02"),
    ]
    for text, same in cases:
        assert version(text) == version(same), text
        assert version(text).name == "", text


def test_a_tag_may_begin_with_a_name() -> None:
    cases = [
        ("project-v1.2.0", "project", "1.2.0"),
        ("log4j-2.17.1", "log4j", "2.17.1"),
        ("go1.21.3", "go", "1.21.3"),
        ("@scope/pkg@1.2.3", "scope/pkg", "1.2.3"),
        ("rel/core-1.2.3-rc.1", "rel/core", "1.2.3-rc.1"),
    ]
    assert [tag for tag, name, same in cases if (version(tag).name, version(tag)) != (name, version(same))] == []


def test_text_that_is_no_version_or_ambiguous_is_not_read() -> None:
    texts = [
        "", "latest", "nightly", "master", "build-12", "rc1", "1.0-1", "33.0-jre", "1.2.x", "v", "2014-13-40",
        "1.2.3.4.5.6", "1..2", "a1", "\ud800", "١.٢", "1.2.3 and 1.2.4", "[" * 65_536, "1." * 40_000, "9" * 5_000,
    ]  # fmt: skip
    assert [text for text in texts if read_version(text) is not None] == []


def test_a_version_is_compared_with_the_release_that_has_the_fix() -> None:
    cases = [
        ("2.2.4", "v2.3.0", "older"),
        ("2.3.0", "v2.3.0", "same or newer"),
        ("2.4", "v2.3.0", "same or newer"),
        ("2.4", "v2.4.0", "same or newer"),
        ("2.4", "v2.4.1", None),
        ("2.4.0", "v2.4.1", "older"),
        ("2.3", "v2.4.1", "older"),
        ("2.4.1", "v2.4", "same or newer"),
        ("2.10.0", "v2.9.1", "same or newer"),
        ("2.3.0-rc.1", "2.3.0", "older"),
        ("2.3.0", "2.3.0-rc.1", "same or newer"),
        ("2.3.0rc2", "2.3.0-rc.1", "same or newer"),
        ("2.3.0-dev", "2.3.0-rc.1", None),
        ("2.3.0-dev", "2.3.0", "older"),
        ("2.4.0-dev", "2.3.0", "same or newer"),
        ("2024.9.3", "2024.10.1", "older"),
        ("2024.10", "2024.10.1", None),
        ("2024.10.1", "v2.3.0", None),
        ("18.2.0", "2024.1.0", None),
        ("2", "v2.3.0", None),
        ("2.2.4", "latest", None),
        ("unknown", "v2.3.0", None),
        ("2.2.4", "", None),
        ("2.2.4", "project-v2.3.0", "older"),
        ("1.2", "v1.2.0.1", None),
    ]
    assert [reported for reported, release, expected in cases if compare_versions(reported, release) != expected] == []


def test_a_nightly_is_compared_by_the_day_of_the_fix() -> None:
    cases = [
        ("nightly 2014-11-01", "older"),
        ("nightly 2014-11-02", None),
        ("nightly 2014-11-03", None),
        ("nightly 2014-11-04", "same or newer"),
    ]
    for reported, expected in cases:
        assert compare_versions(reported, "", None, MERGED) == expected, reported
        assert compare_versions(reported, "v0.13.0", MERGED.replace(year=2015), MERGED) == expected, reported


def test_a_nightly_before_the_release_may_have_the_fix_already() -> None:
    assert compare_versions("nightly 2014-11-01", "v0.13.0", MERGED) is None
    assert compare_versions("nightly 2014-11-09", "v0.13.0", MERGED) == "same or newer"
    assert compare_versions("nightly 2014-11-09", "v0.13.0") is None


# Laws of the order

STAGES = st.sampled_from(["", "-rc.1", "-beta.2", "rc1", "-alpha", "-dev", ".post1", "-rc.1.dev3"])
VERSIONS = st.builds(
    lambda numbers, stage: ".".join(map(str, numbers)) + stage,
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    STAGES,
)


@given(VERSIONS, VERSIONS, VERSIONS)
def test_the_order_is_total_antisymmetric_and_transitive(a: str, b: str, c: str) -> None:
    one, two, three = sorted(map(version, (a, b, c)))
    assert one <= two <= three
    assert one <= three
    assert (one < two) + (two < one) + (one == two) == 1


@given(VERSIONS, VERSIONS)
def test_the_comparison_of_full_versions_agrees_with_their_order(a: str, b: str) -> None:
    there, back = compare_versions(a, b), compare_versions(b, a)
    if there == "older":
        assert version(a) < version(b)
        assert back in (None, "same or newer")
    if there == "same or newer":
        assert version(a) >= version(b)
    if there == back == "same or newer":
        assert version(a) == version(b)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_compared(reported: str, release: str) -> None:
    assert compare_versions(reported, release, MERGED, MERGED) in (None, "older", "same or newer")
