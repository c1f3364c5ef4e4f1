"""Search that knows the checkout: the factors of the specification, evidence, duplicates, order."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.card import Card, Ruling, Worktree, WorktreeCommit
from bot.questions.requests import WorkRequest
from bot.questions.smart_search import RankedThread, recency
from bot.questions.work import WorkAnswer, find_for_work
from bot.reading.search_query import SearchQuery, given_filters
from tests.examples import examples
from tests.questions.in_memory_cards import NOW, InMemoryCards, card

FILLER = tuple(card(key, f"Filler about subject{key}") for key in range(900, 930))
LOGIN = Worktree(branch="login-loop")


def search(cards: tuple[Card, ...], checkout: Worktree = LOGIN, words: str = "", limit: int = 20) -> WorkAnswer:
    return find_for_work(smart_search(words, checkout, limit), InMemoryCards((*cards, *FILLER)))


def smart_search(words: str, checkout: Worktree, limit: int = 20) -> WorkRequest:
    return WorkRequest(checkout, NOW, words, limit, SearchQuery(words), is_search=True)


def score(answer: WorkAnswer, key: int | str) -> float:
    return next(hit.score for hit in answer.threads if hit.card.id == key)


def ids(answer: WorkAnswer) -> list[int | str]:
    return [hit.card.id for hit in answer.threads]


def test_recent_changes_raise_the_score() -> None:
    cases = [
        (timedelta(minutes=-5), 1.5),
        (timedelta(minutes=60), 1.5),
        (timedelta(minutes=61), 1.3),
        (timedelta(hours=24), 1.3),
        (timedelta(hours=25), 1.1),
        (timedelta(days=7), 1.1),
        (timedelta(days=8), 1.0),
    ]
    for age, factor in cases:
        assert recency(NOW - age, NOW) == factor, age
        answer = search((card(1, "Login loop", updated_at=NOW - age), card(2, "Login loop")))
        assert score(answer, 1) == pytest.approx(factor * score(answer, 2)), age


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 8))
def test_each_overlapping_file_adds_a_fifth_to_the_score(count: int) -> None:
    paths = tuple(f"auth/part{n}.py" for n in range(8))
    cards = (card(1, "Login loop", files=paths[:count]), card(2, "Login loop", files=("web/other.py",)))
    answer = search(cards, Worktree(branch="login-loop", modified=paths))
    assert score(answer, 1) == pytest.approx(score(answer, 2) + 0.2 * count)


def test_a_file_that_is_modified_and_staged_counts_once() -> None:
    path = "auth/cookie.py"
    answer = search((card(1, "Login loop", files=(path,)),), Worktree("login-loop", (), (path,), (path,)))
    assert score(answer, 1) == pytest.approx(1.2)


def test_a_thread_that_names_the_branch_and_the_ticket_of_the_branch_score_higher() -> None:
    named, other = (
        card(key, "Login loop", decisions=(Ruling(f"We go on in {name}.", "octocat", "OWNER", NOW),))
        for key, name in ((1, "Login-Loop"), (2, "login_loop"))
    )
    answer = search((named, other))
    assert score(answer, 1) == pytest.approx(1.3 * score(answer, 2))
    assert answer.threads[0].why[0] == "names the branch"
    ticket = search((card(7, "Login loop"), card(8, "Login loop")), Worktree(branch="7-login-loop"))
    assert score(ticket, 7) == pytest.approx(1.3 * score(ticket, 8))
    assert ticket.threads[0].why[0] == "the branch names #7"


def test_age_files_and_branch_combine_as_specified() -> None:
    thread_card = card(7, "Login loop", files=("auth/cookie.py",), updated_at=NOW - timedelta(hours=5))
    answer = search((thread_card,), Worktree(branch="fix/7-login-loop", modified=("auth/cookie.py",)))
    assert score(answer, 7) == pytest.approx((1.0 * 1.3 + 0.2) * 1.3)
    assert answer.threads[0].why == (
        "the branch names #7",
        "touches auth/cookie.py",
        "words in common: login, loop",
        "changed in the last day",
    )


def test_without_signals_it_equals_the_plain_search() -> None:
    cards = (
        card(1, "Login", updated_at=NOW),
        card(2, "Login login loop", files=("a.py",)),
        card(3, "Login loop again and once more"),
    )
    all_cards = InMemoryCards((*cards, *FILLER))
    answer = find_for_work(smart_search("login loop", Worktree()), all_cards)
    best = all_cards.search({"login": 1.0, "loop": 1.0}, limit=20, floor=0.5)
    assert ids(answer) == [hit.card.id for hit in best]
    assert [hit.score for hit in answer.threads] == pytest.approx([hit.score / best[0].score for hit in best])


def test_a_hit_needs_half_of_the_words_whatever_the_branch_names() -> None:
    cards = (card(7, "Something else"), card(8, "Database is locked during import", files=("auth/cookie.py",)))
    answer = search(cards, Worktree(branch="fix/7-login", modified=("auth/cookie.py",)), "database locked")
    assert ids(answer) == [8]
    assert search(cards, words="kubernetes operator database").threads == ()


def test_the_branch_decides_between_equal_hits() -> None:
    cards = (card(1, "Database locked"), card(2, "Database locked", keywords=("login", "loop")))
    assert ids(search(cards, words="database locked")) == [2, 1]
    assert ids(search(cards, Worktree(), words="database locked")) == [1, 2]


def test_a_thread_about_the_files_is_found_beyond_the_fifty_best() -> None:
    many = tuple(card(key, "Database locked") for key in range(1, 81))
    touching = card(500, "Long title where the database also comes up", files=("store/sqlite.py",))
    checkout = Worktree(branch="wip", modified=("store/sqlite.py",))
    assert 500 in ids(search((*many, touching), checkout, "database"))


def test_only_fifty_candidates_are_considered() -> None:
    many = tuple(card(key, "Database locked") for key in range(1, 81))
    assert len(search(many, words="database", limit=100).threads) == 50
    assert len(search(many, Worktree(branch="database-locked"), limit=100).threads) == 50
    assert len(search(many, words="database").threads) == 20


def test_there_are_no_hits_if_nothing_is_relevant() -> None:
    cases = ["wip", "login-kubernetes-operator", "octocat/editorconfig", "login", ""]
    for branch in cases:
        cards = (card(1, "Login does not work"), card(2, "Import is slow"), card(3, "Editor is gone"))
        assert search(cards, Worktree(branch=branch)).threads == (), branch


def test_one_word_of_a_branch_is_not_enough_unless_a_file_confirms_it() -> None:
    cards = (card(1, "Login does not work", files=("auth/cookie.py",)), card(2, "Login is slow"))
    assert ids(search(cards, Worktree(branch="login", modified=("auth/cookie.py",)))) == [1]


def test_files_that_many_threads_name_are_not_evidence() -> None:
    many = tuple(card(key, f"Thing {key}", files=("src/app.py",)) for key in range(1, 20))
    assert search(many, Worktree(modified=("src/app.py",))).threads == ()
    assert len(search(many[:5], Worktree(modified=("src/app.py",))).threads) == 5
    assert search(many[:6], Worktree(modified=("src/app.py",))).threads == ()
    readme = (card(1, "One", files=("README.md",)), card(2, "Two", files=("docs/api/README.md",)))
    assert ids(search(readme, Worktree(modified=("docs/api/README.md",)))) == [2]


def test_a_commit_of_the_branch_names_a_thread() -> None:
    answer = search(
        (card(48, "Odd"),), Worktree(branch="wip", commits=(WorktreeCommit("Expire cookies (#48)"),), is_own=True)
    )
    assert [(hit.card.id, hit.why) for hit in answer.threads] == [(48, ("a commit names #48",))]


def test_duplicates_are_shown_as_their_canonical_thread() -> None:
    cards = (
        card(7, "Cannot sign in", duplicate_of=8),
        card(8, "Sign in fails", duplicate_of=9),
        card(9, "Cookie of another path"),
    )
    answer = search(cards, Worktree(branch="fix/7"))
    assert [(hit.card.id, hit.why) for hit in answer.threads] == [(9, ("the branch names #7, a duplicate",))]


def test_duplicates_in_a_circle_or_of_an_unknown_thread_are_shown_as_they_are() -> None:
    cards = (card(7, "One", duplicate_of=8), card(8, "Two", duplicate_of=7), card(9, "Three", duplicate_of=10))
    assert ids(search(cards, Worktree(branch="fix/7"))) == [7]
    assert ids(search(cards, Worktree(branch="fix/9"))) == [9]


def test_a_filtered_thread_does_not_replace_its_duplicate() -> None:
    cards = (card(7, "Login loop", state="open", duplicate_of=8), card(8, "Cookie path"))
    request = smart_search("", Worktree(branch="fix/7"))._replace(query=given_filters("open"))
    answer = find_for_work(request, InMemoryCards(cards))
    assert ids(answer) == [7]


def test_equal_scores_are_ordered_by_last_change_and_then_by_id() -> None:
    later = NOW - timedelta(days=90)
    cards = (*(card(key, "Login loop") for key in ("b", 3, "a", 2)), card(9, "Login loop", updated_at=later))
    assert ids(search(cards)) == [9, 2, 3, "a", "b"]
    assert ids(search(tuple(reversed(cards)))) == [9, 2, 3, "a", "b"]


def test_a_reason_is_one_short_line_whatever_a_file_is_called() -> None:
    path = "src/" + "x" * 300 + "\n\x1b[31m\u202e.py"
    answer = search((card(1, "Odd", files=(path,)),), Worktree(modified=(path,)))
    assert answer.threads[0].why[0].isprintable()
    assert len(answer.threads[0].why[0]) < 80


def test_unused_signals_are_reported() -> None:
    unused = search((), Worktree(branch="wip", unused=("commits: none yet",))).unused
    assert unused == ("commits: none yet", "branch: its name has no distinctive word")


WORDS = st.sampled_from(["login", "loop", "cookie", "path", "import", "session", "timeout"])
CARDS = st.lists(
    st.builds(
        lambda words, files, age, other: (" ".join(words), tuple(files), age, other),
        st.lists(WORDS, min_size=1, max_size=4),
        st.lists(st.sampled_from(["a/b.py", "b.py", "c/d.py", "README.md"]), max_size=3),
        st.integers(0, 20),
        st.one_of(st.none(), st.integers(1, 12)),
    ),
    max_size=12,
)
CHECKOUTS = st.builds(
    Worktree,
    branch=st.lists(st.one_of(WORDS, st.integers(1, 13).map(str)), max_size=3).map("-".join),
    modified=st.lists(st.sampled_from(["a/b.py", "c/d.py", "README.md"]), max_size=3).map(tuple),
)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(CARDS, CHECKOUTS, st.lists(WORDS, max_size=2), st.integers(0, 6))
def test_hits_are_limited_distinct_and_sorted_and_have_reasons(
    values: list[tuple[str, tuple[str, ...], int, int | None]], checkout: Worktree, words: list[str], limit: int
) -> None:
    cards = [
        card(key, title, files=files, updated_at=NOW - timedelta(days=age), duplicate_of=other)
        for key, (title, files, age, other) in enumerate(values, 1)
    ]
    request = smart_search(" ".join(words), checkout, limit)
    answer = find_for_work(request, InMemoryCards(cards))
    assert answer == find_for_work(request, InMemoryCards(reversed(cards)))
    assert len(answer.threads) <= limit
    assert len(set(ids(answer))) == len(answer.threads)
    assert all(is_ordered(one, other) for one, other in pairwise(answer.threads))
    assert all(one.why and len(one.why) <= 4 for one in answer.threads)


def is_ordered(one: RankedThread, other: RankedThread) -> bool:
    return (one.score, one.card.updated_at, -int(one.card.id)) > (
        other.score,
        other.card.updated_at,
        -int(other.card.id),
    )
