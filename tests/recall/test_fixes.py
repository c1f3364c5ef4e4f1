"""What is told of a fix: the release that is known, and where the question's version stands to it."""

from dataclasses import replace

import pytest

from bot.answer import Context, Match, Mention
from bot.kept import Changes, Fix
from bot.memory.memory import Memory
from bot.model import Kind, Outcome, OutcomeKind
from bot.recall.fixes import as_of, fix_refs, with_fixes, with_version
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed

FIXED = Outcome(OutcomeKind.FIXED, fix="#57")
FIX = Fix(1, "#57", at(40), is_pull=True, commit="a" * 40, merged_at=at(10), files=("a.py",), release="v2.3.0",
          released_at=at(20))  # fmt: skip


def match(outcome: Outcome = FIXED, fix: Fix | None = None, key: int = 1) -> Match:
    return Match(key, "Crash", 0.9, "closed", at(1), outcome=outcome, fix=fix)


def merged(key: int) -> Mention:
    return Mention(key, "Fix", "closed", kind=Kind.PULL, merged_at=at(3))


def holding(remember: Remember, *fixes: Fix) -> Memory:
    memory = remember(closed(1))
    memory.stage(Changes(fixes=fixes))
    return memory


# What is to be looked up


def test_the_fixes_of_what_is_told_in_full_are_looked_up_what_is_mentioned_first() -> None:
    context = Context(
        mentioned=(Mention(3, outcome=Outcome(OutcomeKind.FIXED, fix="abc1234")), Mention(4), merged(5)),
        also_mentioned=(Mention(6, outcome=FIXED),),
        seen_before=(match(), match(Outcome(), key=2)),
        open_now=(match(key=7),),
    )
    assert list(fix_refs(context).items()) == [(3, "abc1234"), (5, "#5"), (1, "#57")]


def test_a_pull_request_that_was_not_merged_has_no_fix() -> None:
    assert fix_refs(Context(mentioned=(Mention(5, kind=Kind.PULL, state="closed"),))) == {}


# What is told


def test_what_is_known_of_the_fix_is_told(remember: Remember) -> None:
    pull = replace(FIX, id=5, ref="#5")
    context = Context(mentioned=(merged(5), Mention(6)), seen_before=(match(), match(key=2)))
    told = with_fixes(context, holding(remember, FIX, pull), None)
    assert [one.fix for one in (*told.mentioned, *told.seen_before)] == [pull, None, FIX, None]


def test_a_fix_that_is_not_the_one_of_the_ending_is_not_told(remember: Remember) -> None:
    context = Context(seen_before=(match(Outcome(OutcomeKind.FIXED, fix="#58")),))
    assert with_fixes(context, holding(remember, FIX), None).seen_before[0].fix is None


@pytest.mark.parametrize("nothing", [Fix(1, "#57", at(40)), Fix(1, "#57", at(40), is_pull=True)])
def test_what_is_no_fix_or_not_merged_is_not_told(remember: Remember, nothing: Fix) -> None:
    assert with_fixes(Context(seen_before=(match(),)), holding(remember, nothing), None).seen_before[0].fix is None


@pytest.mark.parametrize(
    ("before", "release", "is_known"),
    [(9, None, False), (11, None, True), (19, None, True), (20, "v2.3.0", True), (50, "v2.3.0", True)],
)
def test_nothing_from_after_the_moment_is_told(before: int, release: str | None, *, is_known: bool) -> None:
    told = as_of(FIX, at(before))
    assert (told is not None, told.release if told else None) == (is_known, release)


def test_a_release_without_a_date_is_not_told_of_the_past() -> None:
    undated = replace(FIX, released_at=None)
    assert as_of(undated, None) == undated
    past = as_of(undated, at(50))
    assert past is not None
    assert past.release is None
    assert as_of(replace(undated, merged_at=None), at(50)) is None


# Versions


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("2.2.4", ("2.2.4", False)),
        ("2.3.0", ("2.3.0", True)),
        ("2.4", ("2.4", True)),
        ("2.3", ("2.3", True)),
        ("2", ("", False)),
        ("", ("", False)),
        ("2024.1", ("", False)),
        ("nightly 2024-01-05", ("nightly 2024-01-05", False)),
        ("nightly 2024-02-05", ("nightly 2024-02-05", True)),
    ],
)
def test_the_questions_version_is_compared_with_the_release(asked: str, told: tuple[str, bool]) -> None:
    (one,) = with_version(Context(seen_before=(match(fix=FIX),)), asked).seen_before
    assert (one.asked_on, one.may_be_back) == told


def test_the_release_that_the_thread_names_does_where_the_forge_knows_none() -> None:
    words = replace(FIXED, release="2.3.0")
    unreleased = replace(FIX, release=None, released_at=None)
    for one in (match(words), match(words, unreleased)):
        (told,) = with_version(Context(seen_before=(one,)), "2.2.4").seen_before
        assert (told.asked_on, told.may_be_back) == ("2.2.4", False)


def test_without_a_release_there_is_nothing_to_compare() -> None:
    unreleased = replace(FIX, release=None, released_at=None)
    (told,) = with_version(Context(seen_before=(match(fix=unreleased),)), "2.2.4").seen_before
    assert told.asked_on == ""
