"""From hits to candidates: a similarity that means the same everywhere, and an order with a written rule."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.indexed import Entry, Hit
from bot.memory.documents import entry_of
from bot.model import ThreadId
from bot.reading.digest import digest
from bot.recall.rank import Candidate, in_order, ranked, text_evidence, with_signals, within_reach
from tests.recall.samples import thread


def entry(key: ThreadId, days: float = 1) -> Entry:
    one = thread(key, days=days)
    return entry_of(one, digest(one))


def hit(key: ThreadId, score: float = 10.0, share: float = 0.5, terms: int = 5, days: float = 1) -> Hit:
    return Hit(entry(key, days), score, tuple(f"term{n}" for n in range(terms)), share)


def candidate(key: ThreadId, evidence: float = 1.0, score: float = 10.0, days: float = 1) -> Candidate:
    return Candidate(entry(key, days), evidence, score, (), key)


@given(st.floats(-700, 700))
def test_similarity_lies_between_nothing_and_one(evidence: float) -> None:
    assert 0.0 <= candidate(1, evidence).similarity <= 1.0


def test_no_evidence_either_way_is_one_half() -> None:
    assert candidate(1, 0.0).similarity == 0.5


@pytest.mark.parametrize("found", [hit(1, terms=2), hit(1, share=0.0), hit(1, score=0.0)])
def test_a_coincidence_is_no_candidate(found: Hit) -> None:
    assert ranked([found], {}, 20) == []


@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.floats(0.1, 100), st.integers(1, 400))
def test_more_of_the_question_covered_is_more_alike(one: float, other: float, field: float, terms: int) -> None:
    less, more = sorted((one, other))
    assert text_evidence(hit(1, share=less), field, terms) <= text_evidence(hit(1, share=more), field, terms)


@given(st.floats(0.1, 100), st.floats(0.1, 100))
def test_what_stands_out_of_its_field_is_more_alike(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert text_evidence(hit(1, score=less), 1.0, 20) <= text_evidence(hit(1, score=more), 1.0, 20)


def test_a_repository_of_one_thread_has_no_field_to_stand_out_of() -> None:
    only = ranked([hit(1)], {}, 20)[0]
    assert only.evidence == text_evidence(hit(1), 10.0, 20)


def test_signals_add_evidence() -> None:
    plain = candidate(1)
    error = with_signals(plain, same_error=True, same_file=False)
    file = with_signals(plain, same_error=False, same_file=True)
    both = with_signals(plain, same_error=True, same_file=True)
    assert plain.similarity < file.similarity < error.similarity < both.similarity
    assert with_signals(plain, same_error=False, same_file=False) == plain


def test_only_what_signals_could_lift_over_the_floor_is_within_reach() -> None:
    sure, near, hopeless = candidate(1, 5.0), candidate(2, -1.0), candidate(3, -8.0)
    assert within_reach([sure, near, hopeless], 0.65) == [sure, near]


def test_only_the_best_ten_are_within_reach() -> None:
    assert len(within_reach([candidate(n) for n in range(1, 30)], 0.0)) == 10


def test_ties_go_to_the_higher_score_then_to_the_older_then_by_id() -> None:
    wanted = [
        candidate(9, 2.0),
        candidate(8, score=20.0),
        candidate(7, days=1),
        candidate("B-1", days=2),
        candidate("B-2", days=2),
    ]
    assert in_order(reversed(wanted)) == wanted
    assert in_order(wanted) == wanted


def test_numbers_of_equal_age_are_ordered_as_numbers() -> None:
    assert [c.entry.id for c in in_order([candidate(n) for n in (10, 9, 100)])] == [9, 10, 100]


def test_a_duplicate_counts_for_its_canonical_thread_with_the_better_evidence() -> None:
    folded = ranked([hit(1, share=0.4), hit(2, share=0.8)], {2: entry(1)}, 20)
    assert [(c.entry.id, c.found_as) for c in folded] == [(1, 2)]
    assert folded[0].evidence == ranked([hit(2, share=0.8)], {}, 20)[0].evidence


def test_a_canonical_thread_that_is_the_better_hit_is_found_as_itself() -> None:
    folded = ranked([hit(1, share=0.8), hit(2, share=0.4)], {2: entry(1)}, 20)
    assert [(c.entry.id, c.found_as) for c in folded] == [(1, 1)]


def test_no_hits_are_no_candidates() -> None:
    assert ranked([], {}, 20) == []


def test_an_entry_is_taken_as_it_is() -> None:
    renamed = replace(entry(1), title="Renamed")
    assert ranked([hit(2)], {2: renamed}, 20)[0].entry is renamed
