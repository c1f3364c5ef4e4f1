"""What is shown of a fix: its known release, and how the question's version compares with it."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.answer import Context, EarlierClosing, Match, Mention
from bot.domain.change_state import ChangeState, number_of
from bot.domain.changes import Changes, FixInfo
from bot.domain.thread import Kind, Outcome, OutcomeKind, Thread, Tombstone
from bot.domain.thread_json import thread_from_archive
from bot.memory.memory import Memory
from bot.reading.endings.outcome import outcome
from bot.recall.answer import as_of, known_endings, named_changes, with_change_state, with_fixes, with_version
from tests.examples import share
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, thread

FIXED = Outcome(OutcomeKind.FIXED, fix="#57")
FIX = FixInfo(1, "#57", at(40), is_pull=True, commit="a" * 40, merged_at=at(10), files=("a.py",), release="v2.3.0",
          released_at=at(20))  # fmt: skip


def fix_number(outcome: Outcome) -> int | None:
    return number_of(outcome.change.ref) if outcome.change else None


def match(outcome: Outcome = FIXED, fix: FixInfo | None = None, key: int = 1) -> Match:
    return Match(key, "Crash", 0.9, "closed", at(1), outcome=outcome, fix=fix)


def merged(key: int) -> Mention:
    return Mention(key, "Fix", "closed", kind=Kind.PULL, merged_at=at(3))


def memory_with(remember: Remember, *fixes: FixInfo) -> Memory:
    memory = remember(closed(1))
    memory.stage(Changes(fixes=fixes))
    return memory


# What is looked up


def test_fixes_of_threads_shown_in_full_are_looked_up_mentions_first() -> None:
    context = Context(
        mentioned=(Mention(3, outcome=Outcome(OutcomeKind.FIXED, fix="abc1234")), Mention(4), merged(5)),
        also_mentioned=(Mention(6, outcome=FIXED),),
        seen_before=(match(), match(Outcome(), key=2)),
        open_now=(match(key=7),),
    )
    named = [(key, change.ref) for key, change in named_changes(context).items()]
    assert named == [(3, "abc1234"), (5, "#5"), (1, "#57")]


def test_a_pull_request_that_was_not_merged_has_no_fix() -> None:
    assert named_changes(Context(mentioned=(Mention(5, kind=Kind.PULL, state="closed"),))) == {}


# What is shown


def test_known_facts_of_a_fix_are_shown(remember: Remember) -> None:
    pull = replace(FIX, id=5, ref="#5")
    context = Context(mentioned=(merged(5), Mention(6)), seen_before=(match(), match(key=2)))
    shown = with_fixes(context, memory_with(remember, FIX, pull), None)
    assert [hit.fix for hit in (*shown.mentioned, *shown.seen_before)] == [pull, None, FIX, None]


def test_a_fix_other_than_that_of_the_ending_is_not_shown(remember: Remember) -> None:
    context = Context(seen_before=(match(Outcome(OutcomeKind.FIXED, fix="#58")),))
    assert with_fixes(context, memory_with(remember, FIX), None).seen_before[0].fix is None


@pytest.mark.parametrize("nothing", [FixInfo(1, "#57", at(40)), FixInfo(1, "#57", at(40), is_pull=True)])
def test_a_change_that_is_no_fix_or_not_merged_is_not_shown(remember: Remember, nothing: FixInfo) -> None:
    assert with_fixes(Context(seen_before=(match(),)), memory_with(remember, nothing), None).seen_before[0].fix is None


@pytest.mark.parametrize(
    ("before", "release", "is_known"),
    [(9, None, False), (11, None, True), (19, None, True), (20, "v2.3.0", True), (50, "v2.3.0", True)],
)
def test_no_fact_later_than_the_given_time_is_shown(before: int, release: str | None, *, is_known: bool) -> None:
    fix = as_of(FIX, at(before))
    assert (fix is not None, fix.release if fix else None) == (is_known, release)


def test_a_release_without_a_date_is_not_shown_for_the_past() -> None:
    undated = replace(FIX, released_at=None)
    assert as_of(undated, None) == undated
    past = as_of(undated, at(50))
    assert past is not None
    assert past.release is None
    assert as_of(replace(undated, merged_at=None), at(50)) is None


# Whether the named change is a fix


CLAIM = Outcome(claimed="#57", quote="Fixed by #57.", role="NONE")
ISSUE, OPEN_PULL = thread(57), thread(57, kind=Kind.PULL)
UNMERGED = closed(57, kind=Kind.PULL)
MERGED = closed(57, kind=Kind.PULL, merged_at=at(57.5))
CLOSING = replace(MERGED, body="Fixes #1.")


@pytest.mark.parametrize(
    ("record", "is_merged", "is_closing"),
    [
        (ISSUE, False, False),
        (closed(57), False, False),
        (OPEN_PULL, False, False),
        (UNMERGED, False, False),
        (replace(UNMERGED, body="Fixes #1."), False, False),
        (MERGED, True, False),
        (replace(MERGED, body="Part of #1."), True, False),
        (CLOSING, True, True),
    ],
)
def test_memory_knows_offline_whether_the_named_change_was_merged_and_closed_the_thread(
    remember: Remember, record: Thread, *, is_merged: bool, is_closing: bool
) -> None:
    library = remember(closed(1), record)
    stated, claimed = (
        known_endings({1: ending}, library)[1] for ending in (replace(FIXED, quote="Fixed by #57."), CLAIM)
    )
    kinds = {True: OutcomeKind.FIXED, False: OutcomeKind.UNKNOWN}
    assert (stated.kind, claimed.kind) == (kinds[is_merged], kinds[is_closing])
    assert (stated.fix or stated.claimed, claimed.fix or claimed.claimed) == ("#57", "#57")
    assert (stated.fix is not None, claimed.fix is not None) == (is_merged, is_closing)
    assert {stated.quote, claimed.quote} == {"Fixed by #57."}, "the quotation stays"


def test_the_words_decide_what_memory_does_not_know(remember: Remember) -> None:
    library = remember(closed(1), Tombstone(57, at(3)))
    assert known_endings({1: FIXED, 2: CLAIM}, library) == {1: FIXED, 2: CLAIM}
    commit = Outcome(OutcomeKind.FIXED, fix="0d0e0ed0")
    elsewhere = Outcome(OutcomeKind.FIXED, fix="octocat/other#1")
    assert known_endings({1: commit, 2: elsewhere}, remember(ISSUE)) == {1: commit, 2: elsewhere}


def test_the_answer_of_the_forge_overrides_what_memory_holds(remember: Remember) -> None:
    library = remember(closed(1), closed(2), closed(3), OPEN_PULL)
    refuted, other = FixInfo(2, "#57", at(40), refuted=True), replace(FIX, id=3, ref="#58")
    library.stage(Changes(fixes=(replace(FIX, closed_by="#60"), refuted, other)))
    endings = known_endings({1: CLAIM, 2: FIXED, 3: FIXED}, library)
    assert [endings[key].kind.value for key in (1, 2, 3)] == ["fixed", "unknown", "unknown"]
    assert endings[1].fix == "#60", "GitHub names another one than the claimed one"
    library.stage(Changes(fixes=(replace(FIX, looked_at=at(41)),)))
    assert known_endings({1: CLAIM}, library)[1].kind is OutcomeKind.UNKNOWN, "merged, but it closed nothing"
    refuted_commit = FixInfo(1, "0d0e0ed0", at(42), commit="0d0e0ed0", refuted=True)
    library.stage(Changes(fixes=(refuted_commit,)))
    assert known_endings({1: Outcome(OutcomeKind.FIXED, fix="0d0e0ed0")}, library)[1].kind is OutcomeKind.UNKNOWN


def test_every_part_of_an_answer_shows_only_proven_fixes(remember: Remember) -> None:
    library = remember(closed(1), ISSUE)
    earlier = EarlierClosing(at(1), at(2), FIXED)
    context = Context(
        mentioned=(Mention(3, outcome=FIXED, earlier=earlier),),
        also_mentioned=(Mention(6, outcome=FIXED),),
        seen_before=(match(),),
        open_now=(replace(match(Outcome()), earlier=earlier),),
    )
    shown = with_fixes(context, library, None)
    hits = (*shown.mentioned, *shown.also_mentioned, *shown.seen_before, *shown.open_now)
    assert {hit.outcome.kind for hit in hits} == {OutcomeKind.UNKNOWN}
    assert {hit.earlier.outcome.kind for hit in hits if hit.earlier} == {OutcomeKind.UNKNOWN}
    assert named_changes(shown)[1].ref == "#57", "it is still looked up where there is a network"


def test_nothing_was_fixed_before_it_was_merged(remember: Remember) -> None:
    library = remember(closed(1), MERGED)
    context = Context(seen_before=(match(),))
    assert with_fixes(context, library, at(57.2)).seen_before[0].outcome.kind is OutcomeKind.UNKNOWN
    assert with_fixes(context, library, at(60)).seen_before[0].outcome.kind is OutcomeKind.FIXED


def test_a_refuted_fix_loses_its_release() -> None:
    refuted = with_change_state(replace(FIXED, release="2.3"), ChangeState(False))
    assert (refuted.kind, refuted.release, refuted.confidence) == (OutcomeKind.UNKNOWN, None, 0.0)
    assert with_change_state(FIXED, ChangeState(True)) == with_change_state(FIXED, ChangeState()) == FIXED
    planned = Outcome(OutcomeKind.NOT_PLANNED)
    assert with_change_state(planned, ChangeState(False)) == with_change_state(planned, ChangeState(True)) == planned


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(
    ("archive", "least"),
    share(
        [
            ("threads/bitcoin_gui", 14),
            ("threads/ietf_http2-spec", 10),
            ("threads/ietf_mls-protocol", 38),
            ("threads/ietf_qlog", 10),
            ("rust_pre2015/issues", 300),
        ]
    ),
)
def test_no_issue_and_no_unmerged_pull_request_fixed_anything_in_real_histories(
    shared: Path, remember: Remember, archive: str, least: int
) -> None:
    with gzip.open(shared / f"{archive}.jsonl.gz", "rt", encoding="utf-8") as lines:
        threads = {each.id: each for each in map(thread_from_archive, map(json.loads, lines))}
    endings = {key: outcome(each) for key, each in threads.items() if each.is_closed}
    naming = {key: each for key, each in endings.items() if fix_number(each) is not None}
    named = {*naming, *map(fix_number, naming.values())}
    library = remember(*(threads[key] for key in named if key in threads))
    known = known_endings(naming, library)
    fixed = {key: threads.get(fix_number(each) or 0) for key, each in known.items() if each.kind is OutcomeKind.FIXED}
    assert [(key, each.id) for key, each in fixed.items() if each and not each.merged_at] == []
    assert len(fixed) >= least, "what is named is a pull request, as far as anybody knows"
    assert all(known[key].quote == each.quote for key, each in naming.items())


# Versions


def test_the_version_in_the_question_is_compared_with_the_release() -> None:
    cases = [
        ("2.2.4", ("2.2.4", False)),
        ("2.3.0", ("2.3.0", True)),
        ("2.4", ("2.4", True)),
        ("2.3", ("2.3", True)),
        ("2", ("", False)),
        ("", ("", False)),
        ("2024.1", ("", False)),
        ("nightly 2024-01-05", ("nightly 2024-01-05", False)),
        ("nightly 2024-02-05", ("nightly 2024-02-05", True)),
    ]
    for version, expected in cases:
        (hit,) = with_version(Context(seen_before=(match(fix=FIX),)), version).seen_before
        assert (hit.asked_on, hit.may_be_back) == expected, version


def test_a_release_named_in_the_thread_counts_if_the_forge_knows_none() -> None:
    words = replace(FIXED, release="2.3.0")
    unreleased = replace(FIX, release=None, released_at=None)
    for hit in (match(words), match(words, unreleased)):
        (shown,) = with_version(Context(seen_before=(hit,)), "2.2.4").seen_before
        assert (shown.asked_on, shown.may_be_back) == ("2.2.4", False)


def test_without_a_release_there_is_nothing_to_compare() -> None:
    unreleased = replace(FIX, release=None, released_at=None)
    (shown,) = with_version(Context(seen_before=(match(fix=unreleased),)), "2.2.4").seen_before
    assert shown.asked_on == ""


def test_a_release_counts_only_if_the_repository_has_it_or_has_none(remember: Remember) -> None:
    words = replace(FIXED, fix=None, release="2.3.0")
    page = replace(thread(9), id="releases:v2.3.0", kind=Kind.PAGE)
    for records, release in (((), "2.3.0"), ((replace(page, id="releases:v2.2.0"),), None), ((page,), "2.3.0")):
        library = remember(closed(1), *records)
        assert known_endings({1: words}, library)[1].release == release
        (hit,) = with_fixes(Context(seen_before=(match(words),)), library, None).seen_before
        assert (hit.outcome.kind, hit.outcome.release) == (OutcomeKind.FIXED, release)
