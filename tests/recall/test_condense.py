"""A conversation in a budget: shares, the body, the latest comments, those nearest to the question."""

from collections import Counter
from dataclasses import fields, replace
from fractions import Fraction
from math import floor

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.answer import CondensedTurn
from bot.domain.thread import Message, Thread
from bot.reading.analyzer import terms
from bot.recall.condense import condense, condense_body, share_budget, turn_of
from bot.settings.schema import CommentSettings
from tests.recall.samples import message, thread

SIMILARITIES = st.lists(st.integers(3_000, 10_000).map(lambda digits: digits / 10_000), min_size=1, max_size=10)
WORDS = st.sampled_from(["cookie", "path", "proxy", "index", "branch", "token", "retry", "cache", "socket"])
PARAGRAPHS = st.builds(
    lambda piece, length: f"({(piece * length)[:length]})",
    st.text("abc .", min_size=1, max_size=20),
    st.integers(1, 700),
)
BODIES = st.lists(PARAGRAPHS, max_size=8).map("\n\n".join)
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)
THREADS = st.builds(
    lambda body, comments: thread(
        1, "Sessions", body, comments=tuple(message(c, i + 2) for i, c in enumerate(comments))
    ),
    st.text(max_size=1500) | TEXTS | BODIES,
    st.lists(TEXTS | st.text(max_size=300), max_size=25),
)
NUMBERED = st.builds(
    lambda body, texts: conversation(*(f"{number:03} {text}" for number, text in enumerate(texts)), body=body),
    st.text(max_size=700) | TEXTS,
    st.lists(TEXTS, max_size=25),
)
"""Conversations in which no two comments are alike."""


Turns = tuple[CondensedTurn, ...]


def opening_of(issue: Thread) -> Turns:
    return condense(thread(1, issue.title, issue.body), Counter(), 10_000)


def length(turns: Turns) -> int:
    return sum(turn.length for turn in turns)


def shown_comments(issue: Thread, turns: Turns) -> list[int]:
    """The comments of a thread, all different, that a condensed conversation holds uncut."""
    return [index for index, comment in enumerate(issue.comments) if turn_of(comment) in turns]


def conversation(*texts: str, body: str = "Hello.") -> Thread:
    return thread(1, "Sessions", body, comments=tuple(message(text, index + 2) for index, text in enumerate(texts)))


def likeness(issue: Thread, index: int, words: list[str]) -> int:
    """How many words of a question a comment shares; all comments here have equally many words."""
    return len(set(terms(" ".join(words))) & set(terms(issue.comments[index].text)))


# Shares


def test_the_budget_is_12_000_characters_and_may_be_set_from_1_000_to_50_000() -> None:
    (budget,) = (each for each in fields(CommentSettings) if each.name == "chars")
    assert CommentSettings().chars == 12_000
    rule = budget.metadata["rule"]
    assert (rule.low, rule.high) == (1_000, 50_000)


@given(st.floats(0, 1), st.integers(1_000, 50_000))
def test_a_single_hit_gets_the_whole_budget(similarity: float, total: int) -> None:
    assert share_budget([similarity], total) == [total]
    assert share_budget([0.7], 12_000) == [12_000]


def test_shares_are_proportional_to_the_similarity_and_rounded_down() -> None:
    assert share_budget([0.9, 0.8, 0.7], 12_000) == [4500, 4000, 3500]
    assert share_budget([0.9, 0.7, 0.66], 12_000) == [4778, 3716, 3504]


@given(SIMILARITIES, st.integers(0, 100_000))
def test_shares_stay_within_the_budget_and_lose_less_than_a_character_each(
    similarities: list[float], total: int
) -> None:
    clamped = min(50_000, max(1_000, total))
    shares = share_budget(similarities, total)
    assert len(shares) == len(similarities)
    assert clamped - len(shares) < sum(shares) <= clamped
    if len(shares) > 1:
        exact = [Fraction(str(each)) for each in similarities]
        assert shares == [floor(clamped * each / sum(exact)) for each in exact]


def test_the_budget_is_clamped_to_its_bounds() -> None:
    cases = [(0, 1_000), (999, 1_000), (1_000, 1_000), (50_001, 50_000)]
    assert [requested for requested, clamped in cases if share_budget([0.8], requested) != [clamped]] == []


def test_hits_without_any_similarity_share_equally() -> None:
    assert share_budget([0.0, 0.0, 0.0], 1_000) == [333, 333, 333]


# The body


def test_a_body_is_cut_at_its_limits() -> None:
    """Up to 500 characters it stays whole; else it keeps its ends if these take no more than 750, or its beginning."""
    whole, longer = "First.\n\n" + "x" * 484 + "\n\nLast.", "a" * 100 + "\n\n" + "b" * 294 + "\n\n" + "c" * 103
    fits = "a" * 400 + "\n\nmiddle\n\n" + "b" * 341
    expected = {
        whole: whole,
        "x" * 500: "x" * 500,
        "First.\n\n" + "x" * 500 + "\n \nLast.": "First.\n\n[...]\n\nLast.",
        longer: "a" * 100 + "\n\n[...]\n\n" + "c" * 103,
        "a" * 501: "a" * 500 + "...",
        "a" * 300 + "\n\n" + "b" * 300: "a" * 300 + "\n\n" + "b" * 198 + "...",
        fits: "a" * 400 + "\n\n[...]\n\n" + "b" * 341,
        f"{fits}b": f"{fits}b"[:500] + "...",
    }
    assert (len(whole), len(longer), len(expected[fits])) == (499, 501, 750)
    assert {body: condense_body(body) for body in expected} == expected


@given(st.lists(PARAGRAPHS, min_size=1, max_size=8))
def test_every_body_is_condensed_by_the_three_rules(paragraphs: list[str]) -> None:
    body = "\n\n".join(paragraphs)
    ends = f"{paragraphs[0]}\n\n[...]\n\n{paragraphs[-1]}"
    if len(body) <= 500:
        assert condense_body(body) == body
    elif len(paragraphs) > 2 and len(ends) <= 750:
        assert condense_body(body) == ends
    else:
        assert condense_body(body) == body[:500] + "..."


@given(st.text(max_size=3_000) | BODIES)
def test_no_condensed_body_is_longer_than_its_limit(body: str) -> None:
    short = condense_body(body)
    assert len(short) <= 750
    assert len(body.strip()) > 500 or short == body.strip()


def test_template_text_in_the_body_is_left_out() -> None:
    body = "<!-- Search first! -->\n### Describe the bug\n\nThe cookie is gone.\n\n\n\n### Additional context\n\nNone."
    (turn,) = condense(thread(1, "Sessions", body), Counter(), 5_000)
    text = turn.text
    assert "Describe the bug" not in text
    assert "Search first" not in text
    assert "The cookie is gone.\n\nNone." in text


# The comments


@given(THREADS, TEXTS, st.integers(0, 4_000))
def test_no_conversation_is_longer_than_its_budget(issue: Thread, question: str, budget: int) -> None:
    assert length(condense(issue, Counter(terms(question)), budget)) <= budget


@given(THREADS, TEXTS, st.integers(0, 4_000) | st.integers(0, 400))
def test_the_body_comes_first(issue: Thread, question: str, budget: int) -> None:
    turns, opening = condense(issue, Counter(terms(question)), budget)[:1], opening_of(issue)
    if length(opening) < budget:
        assert turns == opening
    else:
        text = opening[0].text
        room = max(0, budget - length(opening) + len(text))
        expected = replace(opening[0], text=text[:room], is_cut=room < len(text))
        assert turns == ((expected,) if room else ())


@given(NUMBERED, TEXTS, st.integers(200, 4_000))
def test_comments_are_in_order_of_time(issue: Thread, question: str, budget: int) -> None:
    turns = condense(issue, Counter(terms(question)), budget)
    positions = [turns.index(turn_of(issue.comments[index])) for index in shown_comments(issue, turns)]
    assert positions == sorted(positions)


@given(NUMBERED, TEXTS, st.integers(200, 4_000))
def test_the_newest_comments_that_fit_sixty_percent_of_the_remaining_budget_are_kept(
    issue: Thread, question: str, budget: int
) -> None:
    turns = condense(issue, Counter(terms(question)), budget)
    room = (budget - length(opening_of(issue))) * 60 // 100
    for index in range(len(issue.comments) - 1, -1, -1):
        room -= turn_of(issue.comments[index]).length
        if room < 0:
            break
        assert index in shown_comments(issue, turns)


@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 30), st.integers(0, 99))
def test_the_latest_get_sixty_percent_and_the_nearest_of_the_others_get_the_rest(
    old: int, new: int, fit: int, over: int
) -> None:
    issue = conversation(
        *(f"{number:03} cookie path " + "x" * 64 for number in range(old)),
        *(f"{number:03} " + "x" * 76 for number in range(old, old + new)),
    )
    each = turn_of(issue.comments[0]).length
    left = fit * each + min(over, each - 1)
    latest = left * 60 // 100 // each
    shown_indexes = shown_comments(
        issue, condense(issue, Counter(terms("cookie path")), length(opening_of(issue)) + left)
    )
    ranked = [*range(old), *range(old, old + new)]
    taken = ranked[len(ranked) - latest :] if latest else []
    nearest = [index for index in ranked if index not in taken][: fit - len(taken)]
    assert shown_indexes == sorted({*taken, *nearest})


@given(st.lists(st.integers(0, 8), min_size=3, max_size=12), st.integers(1, 10))
def test_no_omitted_comment_is_nearer_to_the_question_than_one_chosen_for_nearness(hits: list[int], fit: int) -> None:
    words = ["cookie", "path", "proxy", "index", "branch", "token", "retry", "cache"]
    texts = [
        " ".join(
            [
                f"{number:03}",
                *(word if at < hit else f"q{number}" + "z" * (len(word) - 2) for at, word in enumerate(words)),
            ]
        )
        for number, hit in enumerate(hits)
    ]
    issue = conversation(*(text.ljust(70, "y") for text in texts))
    each = turn_of(issue.comments[0]).length
    shown_indexes = shown_comments(
        issue, condense(issue, Counter(terms(" ".join(words))), length(opening_of(issue)) + fit * each)
    )
    latest = range(len(hits) - fit * 60 // 100, len(hits))
    rest = [likeness(issue, index, words) for index in shown_indexes if index not in latest]
    left_out = [likeness(issue, index, words) for index in range(len(hits)) if index not in shown_indexes]
    assert not rest or not left_out or min(rest) >= max(left_out)
    assert len(shown_indexes) == min(fit, len(hits))


def test_a_conversation_that_fits_is_kept_whole() -> None:
    issue = conversation("Which version?", "2.4.", "Then delete the cookie.")
    turns = condense(issue, Counter(terms("nothing of this")), 1_000)
    assert turns == opening_of(issue) + tuple(map(turn_of, issue.comments))


def test_the_nearest_comments_are_chosen_from_those_not_yet_taken() -> None:
    texts = [
        "000 " + "x" * 40,
        "001 cookie cookie " + "x" * 26,
        "002 cookie " + "x" * 33,
        "003 cookie path " + "x" * 28,
    ]
    issue = conversation(*texts)
    each = turn_of(issue.comments[0]).length
    turns = condense(issue, Counter(terms("cookie path")), length(opening_of(issue)) + 2 * each)
    assert shown_comments(issue, turns) == [1, 3]


def test_the_newest_comments_end_at_the_first_that_does_not_fit() -> None:
    small = [f"{number:03} {word} " + "x" * 40 for number, word in enumerate(["cookie", "cookie", "cookie", "branch"])]
    issue = conversation(*small, "004 " + "x" * 500, "005 branch " + "x" * 40)
    each = turn_of(issue.comments[0]).length
    turns = condense(issue, Counter(terms("cookie")), length(opening_of(issue)) + 4 * each)
    assert shown_comments(issue, turns) == [0, 1, 2, 5]


def test_a_newest_comment_longer_than_its_share_is_cut_at_the_end() -> None:
    issue = conversation("000 old", "001 Solved by clearing the cookie. " + "x" * 2_000)
    budget = length(opening_of(issue)) + 1_000
    turns = condense(issue, Counter(), budget)
    assert turns[-1].text.startswith("001 Solved by clearing the cookie.")
    assert turns[-1].text.endswith("x...")
    assert turns[-1].is_cut
    assert shown_comments(issue, turns) == [0]
    assert length(turns) <= length(opening_of(issue)) + 600 + turn_of(issue.comments[0]).length


def test_an_opening_that_fills_the_budget_is_cut() -> None:
    issue = conversation("Never shown.", body="y" * 500)
    (turn,) = condense(issue, Counter(), 100)
    assert (turn.text, turn.is_cut, turn.length) == ("y" * len(turn.text), True, 100)
    assert condense(issue, Counter(), 10) == ()


def test_a_turn_keeps_its_author_role_and_time() -> None:
    reply = Message("monalisa", "OWNER", message("x").created_at, " Fixed. ")
    assert turn_of(reply) == CondensedTurn("monalisa", "OWNER", reply.created_at, "Fixed.")
    assert turn_of(reply).by_maintainer
    assert not turn_of(message("Thanks")).by_maintainer


def test_text_added_by_a_mail_program_is_no_part_of_a_turn() -> None:
    text = "It is kept.\n\nSent from my phone\n\nOn May 4, 2025, at 9:00, octocat wrote:\n\n> Is it lost?"
    assert turn_of(message(text, 2)).text == "It is kept."
