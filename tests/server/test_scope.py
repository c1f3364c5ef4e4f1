"""Patterns of repositories: what they fit, which one wins, and that no name makes them slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.name_patterns import fits
from bot.server.model import RepositoryScope


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("octo-org/*", ["octo-org/hello-world", "OCTO-org/.github"], ["octo-org2/a", "octo-org/a/b", "octo-org", "/a"]),
        ("octo-org/docs-*", ["octo-org/docs-", "octo-org/Docs-api"], ["octo-org/docs", "octo-org/my-docs-api"]),
        ("*/hello-*-world", ["octocat/hello--world", "a/hello-big-world"], ["a/hello-world", "hello-x-world"]),
        ("octo-org/hello.world", ["octo-org/hello.world"], ["octo-org/hello-world"]),
        ("octo-org/[ab]?", ["octo-org/[ab]?"], ["octo-org/a", "octo-org/ab"]),
        ("octo-org/a*b*a", ["octo-org/aba", "octo-org/abxa"], ["octo-org/ab", "octo-org/aa"]),
    ],
)
def test_a_pattern_fits_whole_names(pattern: str, fitting: list[str], others: list[str]) -> None:
    assert [name for name in fitting if not fits(name, pattern)] == []
    assert [name for name in others if fits(name, pattern)] == []


NAMES = st.text("ab-./\n\u0130", max_size=12)


@given(NAMES, st.text("aAb-./*", max_size=8))
def test_a_pattern_fits_the_same_names_as_its_regular_expression(name: str, pattern: str) -> None:
    expression = "[^/]*".join(map(re.escape, pattern.lower().split("*")))
    assert fits(name, pattern) == bool(re.fullmatch(expression, name.lower(), re.DOTALL))


def test_a_hostile_name_is_not_slow_to_match() -> None:
    """A matcher that tries again and again would not end."""
    assert not fits("octo-org/" + "a" * 200_000, "octo-org/" + "*a" * 140 + "*b")
    assert not fits("octo-org/" + "a" * 200_000 + "b", "octo-org/" + "*ab" * 90 + "*")


def test_exclude_wins_and_an_empty_include_means_all() -> None:
    assert RepositoryScope().includes("octo-org/hello-world")
    scope = RepositoryScope(include=("octo-org/*",), exclude=("*/secret-*",))
    assert [name for name in ("octo-org/a", "octo-org/secret-a", "else/a", "") if scope.includes(name)] == [
        "octo-org/a",
        "",
    ]


def test_an_observed_repository_is_included() -> None:
    scope = RepositoryScope(observed=("octo-org/*",))
    assert (scope.includes("octo-org/a"), scope.observes("octo-org/a"), scope.observes("else/a")) == (True, True, False)


def test_the_digest_depends_on_include_and_exclude_only() -> None:
    digests = {
        RepositoryScope().digest,
        RepositoryScope(include=("a/*",)).digest,
        RepositoryScope(exclude=("a/*",)).digest,
    }
    assert len(digests) == 3
    assert RepositoryScope(observed=("a/*",)).digest == RepositoryScope().digest
