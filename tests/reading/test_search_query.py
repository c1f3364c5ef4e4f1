"""What people type into a search, and what it means."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.kinds import Kind
from bot.errors import UserError
from bot.reading.search_query import MAX_PHRASES, MAX_QUALIFIERS, SearchQuery, fold, search_query
from tests.questions.in_memory_cards import card
from tests.reading.linear_time import assert_linear_time

NOW = datetime(2026, 5, 31, 12, tzinfo=UTC)
DAY = datetime(2026, 5, 3, tzinfo=UTC)


def read(text: str) -> SearchQuery:
    return search_query(text, NOW)


@pytest.mark.parametrize(
    ("text", "words", "kind"),
    [
        ("What did we decide about caching?", "caching", "decides asks"),
        ("what did we decide about caching.", "caching", "decides asks"),
        ("@octocat what did we decide about caching?", "caching", "decides asks"),
        ("Interesting, why did we drop Redis?", "Redis", "decides asks drop"),
        ("was the caching layer discussed before?", "the caching layer", "asks"),
        ("what did we decide about #48 and #50?", "", "decides asks"),
        ("caching decision", "caching", "decides"),
        ("decisions about caching", "caching", "decides"),
        ("chose redis", "redis", "decides"),
        ("reason for dropping Redis", "dropping Redis", "decides"),
        ("reason for segfault", "reason for segfault", ""),
        ("decision tree pruning", "decision tree pruning", ""),
        ("scheduler decided to evict worker", "scheduler decided to evict worker", ""),
        ("error: chose wrong encoding", "error: chose wrong encoding", ""),
        ("list all decisions", "list all decisions", ""),
        ("search for previous decisions", "search for previous decisions", ""),
        ('"decided to abort"', "decided to abort", ""),
        ("what is the difference", "what is the difference", ""),
        ("in file included from", "in file included from", ""),
    ],
)
def test_a_question_is_a_search_for_its_topic(text: str, words: str, kind: str) -> None:
    query = read(text)
    kinds = ["decides"] * query.decides + ["asks"] * query.is_question + [query.verb] * bool(query.verb)
    assert (query.words, " ".join(kinds)) == (words, kind)


def test_phrases_around_the_topic_do_not_count() -> None:
    assert read('what did we decide about "session store" "before"?').phrases == ("session store",)


def test_a_search_is_read_as_intended() -> None:
    cases = [
        ("session  timeout", {"words": "session timeout"}),
        ('the "Session  Store" is', {"words": "the Session  Store is", "phrases": ("session store",)}),
        ("“session store”", {"words": "session store", "phrases": ("session store",)}),
        ("cache author:@OctoCat", {"words": "cache", "authors": {"octocat"}}),
        ("author:a author:b", {"authors": {"a", "b"}}),
        ("role:maintainer", {"roles": {"maintainer"}}),
        ("role:OWNER role:participant", {"roles": {"maintainer", "participant"}}),
        ("is:open is:pr", {"states": {"open"}, "kinds": {Kind.PULL}}),
        ("is:issue is:page", {"kinds": {Kind.ISSUE, Kind.PAGE}}),
        ('label:bug label:"Good First Issue" x', {"words": "x", "labels": {"bug", "good first issue"}}),
        ("after:2026-05-03 x", {"words": "x", "after": DAY}),
        ("before:28d", {"before": DAY.replace(hour=12)}),
        ("after:2026-05-03 after:2026-05-01", {"after": DAY}),
        ("#48", {"words": "#48", "numbers": (48,)}),
        ("see #48 and #48 #7", {"words": "see #48 and #48 #7", "numbers": (48, 7)}),
        ("#2, #3 and (#5)?", {"words": "#2, #3 and (#5)?", "numbers": (2, 3, 5)}),
        ("#2-3 #4x a#5 ##6", {"words": "#2-3 #4x a#5 ##6"}),
        ("#0 #x 48 a#48", {"words": "#0 #x 48 a#48"}),
        ("IS:open", {"states": {"open"}}),
    ]
    assert [text for text, expected in cases if read(text) != SearchQuery()._replace(**expected)] == []


def test_text_that_only_looks_like_a_qualifier_is_words() -> None:
    texts = [
        "TypeError: x is not a function",
        "std::vector<int>::at",
        r"C:\Users\x",
        "error:404 https://example.com/a:b",
        "label: bug",
        "the-author:x",
        "/is:open",
        'say"is:open',
        '5" disk',
        "author:",
        "kind:pull",
    ]
    assert [text for text in texts if read(text) != SearchQuery(text)] == []


def test_a_qualifier_in_quotation_marks_is_searched_for() -> None:
    assert read('"is:open"') == SearchQuery("is:open", phrases=("is:open",))


def test_an_invalid_value_is_a_one_line_error_or_plain_words_if_not_strict() -> None:
    texts = [
        "is:foo",
        "is::open",
        "role:king",
        "before:yesterday",
        "after:2026-13-40",
        "after:9999y",
        'label:""',
        "author:@",
    ]
    for text in texts:
        with pytest.raises(UserError, match=r"takes .*quotation marks") as error:
            read(f"x {text}")
        assert "\n" not in str(error.value), text
        assert search_query(f"x {text}", NOW, strict=False).words == f"x {text}", text


def test_only_a_limited_number_of_qualifiers_count() -> None:
    names = [f"author:a{number}" for number in range(MAX_QUALIFIERS + 1)]
    query = read(" ".join(names))
    assert (len(query.authors), query.words) == (MAX_QUALIFIERS, names[-1])


def test_the_order_does_not_matter() -> None:
    for order in [*permutations(('"a b"', "is:open", "author:x", "word"))]:
        query = read(" ".join(order))
        assert query._replace(words=" ".join(sorted(query.words.split()))) == SearchQuery(
            "a b word", phrases=("a b",), states=frozenset({"open"}), authors=frozenset({"x"})
        ), order


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ("is:open", False),
        ("is:closed", True),
        ("is:open is:closed", True),
        ("is:pr", False),
        ("is:issue", True),
        ("label:BUG", True),
        ("label:bug label:ui", False),
        ("", True),
    ],
)
def test_threads_are_filtered_by_state_kind_and_labels(text: str, *, is_match: bool) -> None:
    assert read(text).matches_thread(card(1, kind=Kind.ISSUE, labels=("Bug", "docs"))) is is_match


def test_a_page_is_neither_open_nor_closed() -> None:
    assert not read("is:closed").matches_thread(card("docs/a.md", kind=Kind.PAGE))


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ("author:hubot", True),
        ("author:octocat", False),
        ("role:maintainer", True),
        ("role:contributor", False),
        ("after:2026-05-03", True),
        ("after:2026-05-04", False),
        ("before:2026-05-03", False),
        ("before:2026-05-04", True),
        ("author:hubot role:participant", False),
    ],
)
def test_messages_are_filtered_by_author_role_and_day(text: str, *, is_match: bool) -> None:
    assert read(text).matches_message("Hubot", "MEMBER", DAY) is is_match
    assert read(text).has_message_filters


def test_a_message_of_unknown_time_or_role_fails_a_filter_on_it() -> None:
    assert not read("after:2026-05-03").matches_message("hubot", "", None)
    assert not read("role:participant").matches_message("hubot", None, DAY)


@pytest.mark.parametrize(
    ("text", "is_found"), [("We use\n the SESSION   store.", True), ("session of the store", False), ("", False)]
)
def test_a_phrase_is_compared_ignoring_case_and_white_space(text: str, *, is_found: bool) -> None:
    assert bool(read('"Session store"').phrases_in(text)) is is_found


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("don't panic", "Don\u2019t panic!"),
        ("don\u2019t panic", "Don't panic!"),
        ("cafe\u0301 app", "the café app"),
        ("ｆｕｌｌ width", "Full width"),
        ("co\u00adoperate now", "cooperate\u200b now"),
        ("two\u00a0words", "two words"),
    ],
)
def test_a_phrase_is_compared_without_differences_that_nobody_sees(phrase: str, text: str) -> None:
    assert read(f'"{phrase}"').phrases_in(text)
    assert read(f'"{text.strip("!")}"').phrases_in(phrase) or "the" in text


@given(st.text(alphabet=st.sampled_from('ab:"“” #1isopenauthor\n@\0'), max_size=80))
def test_any_search_can_be_read_and_keeps_its_phrases(text: str) -> None:
    query = search_query(text, NOW, strict=False)
    assert all(phrase in fold(query.words) for phrase in query.phrases)
    assert len(query.phrases) <= MAX_PHRASES


def test_reading_a_search_is_linear() -> None:
    pieces = ['"', 'is:"', "author:", "is:open ", '"a', "a:", '"" ', "author:a"]
    assert_linear_time(lambda text: search_query(text, NOW, strict=False), *pieces)
