"""What is told of a fix: the release that is known, and where the question's version stands to it."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.answer import Context, EarlierClosing, Match, Mention
from bot.domain.changes import Changes, FixInfo
from bot.domain.thread import Kind, Outcome, OutcomeKind, Thread, Tombstone
from bot.domain.thread_json import thread_from_archive
from bot.memory.memory import Memory
from bot.reading.endings.outcome import outcome
from bot.recall.answer import apply_merge_state, as_of, fix_number, fix_refs, known_endings, with_fixes, with_version
from tests.examples import share
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, thread

FIXED = Outcome(OutcomeKind.FIXED, fix="#57")
FIX = FixInfo(1, "#57", at(40), is_pull=True, commit="a" * 40, merged_at=at(10), files=("a.py",), release="v2.3.0",
          released_at=at(20))  # fmt: skip


def match(outcome: Outcome = FIXED, fix: FixInfo | None = None, key: int = 1) -> Match:
    return Match(key, "Crash", 0.9, "closed", at(1), outcome=outcome, fix=fix)


def merged(key: int) -> Mention:
    return Mention(key, "Fix", "closed", kind=Kind.PULL, merged_at=at(3))


def holding(remember: Remember, *fixes: FixInfo) -> Memory:
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


@pytest.mark.parametrize("nothing", [FixInfo(1, "#57", at(40)), FixInfo(1, "#57", at(40), is_pull=True)])
def test_what_is_no_fix_or_not_merged_is_not_told(remember: Remember, nothing: FixInfo) -> None:
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


# Whether what is named is a fix


CLAIM = Outcome(claimed="#57", quote="Fixed by #57.", role="NONE")
ISSUE, OPEN_PULL = thread(57), thread(57, kind=Kind.PULL)
UNMERGED = closed(57, kind=Kind.PULL)
MERGED = closed(57, kind=Kind.PULL, merged_at=at(57.5))


@pytest.mark.parametrize(
    ("known", "is_merged"), [(ISSUE, False), (closed(57), False), (OPEN_PULL, False), (UNMERGED, False), (MERGED, True)]
)
def test_memory_tells_without_a_network_whether_what_is_named_was_merged(
    remember: Remember, known: Thread, *, is_merged: bool
) -> None:
    library = remember(closed(1), known)
    said, claimed = (known_endings({1: one}, library)[1] for one in (replace(FIXED, quote="Fixed by #57."), CLAIM))
    assert {said.kind, claimed.kind} == {OutcomeKind.FIXED if is_merged else OutcomeKind.UNKNOWN}
    assert (said.fix or said.claimed, claimed.fix or claimed.claimed) == ("#57", "#57")
    assert (said.fix is not None, claimed.fix is not None) == (is_merged, is_merged)
    assert {said.quote, claimed.quote} == {"Fixed by #57."}, "the quotation stays"


def test_what_memory_does_not_know_is_as_the_words_have_it(remember: Remember) -> None:
    library = remember(closed(1), Tombstone(57, at(3)))
    assert known_endings({1: FIXED, 2: CLAIM}, library) == {1: FIXED, 2: CLAIM}
    commit = Outcome(OutcomeKind.FIXED, fix="0d0e0ed0")
    elsewhere = Outcome(OutcomeKind.FIXED, fix="octocat/other#1")
    assert known_endings({1: commit, 2: elsewhere}, remember(ISSUE)) == {1: commit, 2: elsewhere}


def test_what_the_forge_said_goes_before_what_memory_holds(remember: Remember) -> None:
    library = remember(closed(1), closed(2), closed(3), OPEN_PULL)
    refuted, other = FixInfo(2, "#57", at(40), refuted=True), replace(FIX, id=3, ref="#58")
    library.stage(Changes(fixes=(FIX, refuted, other)))
    found = known_endings({1: CLAIM, 2: FIXED, 3: FIXED}, library)
    assert [found[key].kind.value for key in (1, 2, 3)] == ["fixed", "unknown", "unknown"]
    aside = FixInfo(1, "0d0e0ed0", at(40), commit="0d0e0ed0", refuted=True)
    library.stage(Changes(fixes=(aside,)))
    assert known_endings({1: Outcome(OutcomeKind.FIXED, fix="0d0e0ed0")}, library)[1].kind is OutcomeKind.UNKNOWN


def test_every_part_of_an_answer_tells_only_what_is_proven(remember: Remember) -> None:
    library = remember(closed(1), ISSUE)
    earlier = EarlierClosing(at(1), at(2), FIXED)
    context = Context(
        mentioned=(Mention(3, outcome=FIXED, earlier=earlier),),
        also_mentioned=(Mention(6, outcome=FIXED),),
        seen_before=(match(),),
        open_now=(replace(match(Outcome()), earlier=earlier),),
    )
    told = with_fixes(context, library, None)
    hits = (*told.mentioned, *told.also_mentioned, *told.seen_before, *told.open_now)
    assert {hit.outcome.kind for hit in hits} == {OutcomeKind.UNKNOWN}
    assert {hit.earlier.outcome.kind for hit in hits if hit.earlier} == {OutcomeKind.UNKNOWN}
    assert fix_refs(told)[1] == "#57", "it is still looked up where there is a network"


def test_nothing_was_fixed_before_it_was_merged(remember: Remember) -> None:
    library = remember(closed(1), MERGED)
    context = Context(seen_before=(match(),))
    assert with_fixes(context, library, at(57.2)).seen_before[0].outcome.kind is OutcomeKind.UNKNOWN
    assert with_fixes(context, library, at(60)).seen_before[0].outcome.kind is OutcomeKind.FIXED


def test_the_release_goes_with_the_fix() -> None:
    found = apply_merge_state(replace(FIXED, release="2.3"), False)
    assert (found.kind, found.release, found.confidence) == (OutcomeKind.UNKNOWN, None, 0.0)
    assert apply_merge_state(FIXED, True) == apply_merge_state(FIXED, None) == FIXED
    planned = Outcome(OutcomeKind.NOT_PLANNED)
    assert apply_merge_state(planned, False) == apply_merge_state(planned, True) == planned


@pytest.mark.shared
@pytest.mark.parametrize(
    ("archive", "numbered"),
    share(
        [
            ("threads/bitcoin_gui", 15),
            ("threads/ietf_http2-spec", 10),
            ("threads/ietf_mls-protocol", 38),
            ("threads/ietf_qlog", 10),
            ("rust_pre2015/issues", 300),
        ]
    ),
)
def test_no_issue_and_no_unmerged_pull_request_fixed_anything_in_real_histories(
    shared: Path, remember: Remember, archive: str, numbered: int
) -> None:
    with gzip.open(shared / f"{archive}.jsonl.gz", "rt", encoding="utf-8") as lines:
        threads = {one.id: one for one in map(thread_from_archive, map(json.loads, lines))}
    read = {key: outcome(one) for key, one in threads.items() if one.is_closed}
    naming = {key: one for key, one in read.items() if fix_number(one) is not None}
    library = remember(*(threads[key] for key in {*naming, *map(fix_number, naming.values())} if key in threads))
    told = known_endings(naming, library)
    fixed = {key: threads.get(fix_number(one) or 0) for key, one in told.items() if one.kind is OutcomeKind.FIXED}
    assert [(key, one.id) for key, one in fixed.items() if one and not one.merged_at] == []
    assert len(fixed) >= numbered, "what is named is a pull request, as far as anybody knows"
    assert all(told[key].quote == one.quote for key, one in naming.items())


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
