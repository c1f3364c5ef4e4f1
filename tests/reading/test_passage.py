"""The sentences of a message that hold the words of a search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.reading.analyzer import terms
from bot.reading.passage import ELLIPSIS, MAX_PASSAGE_CHARS, passage
from tests.reading.linear_time import assert_linear_time

LONG = " ".join(f"word{number}x" for number in range(400))


def passage_of(text: str, words: str, *phrases: str) -> str:
    return passage(text, frozenset(terms(words)), phrases)


def test_the_sentence_with_most_of_the_words_is_shown() -> None:
    cases = [
        ("We use Redis. It is fast. Ships on Monday.", "redis", "We use Redis. It is fast."),
        ("It rains.\n\nWe cache\nthumbnails here.\n\nBye.", "thumbnail caching", "We cache thumbnails here. Bye."),
        ("The cache. The cache of thumbnails.", "cache thumbnails", "The cache of thumbnails."),
        ("> the cache is slow\n\nNo, it is the cache of DNS.", "cache", "No, it is the cache of DNS."),
        ("> the cache is slow\n\nI agree.", "cache", "> the cache is slow I agree."),
        ("See file.py: the cache is in v1.2.3 now.", "cache", "See file.py: the cache is in v1.2.3 now."),
        ("Nothing of it.", "cache", ""),
        ("", "cache", ""),
        ("<!-- the cache -->Hello.", "cache", ""),
        ("<!-- the cache", "cache", ""),
        ("The cache.\n> quoted", "cache", "The cache."),
        ("Either:\n- a cache\n- a store", "cache", "a cache a store"),
        ("Log:\n```text\ncache miss\n```", "cache", "cache miss"),
    ]
    assert [text for text, words, shown in cases if passage_of(text, words) != shown] == []


def test_a_sentence_with_a_phrase_goes_first() -> None:
    text = "The store keeps a session in the store of sessions. The session\nstore is slow."
    assert passage_of(text, "session store", "session store") == "The session store is slow."


def test_a_long_sentence_is_cut_around_the_word_and_marked() -> None:
    cases = [("word0x", (False, True)), ("word200x", (True, True)), ("word399x", (True, False))]
    for word, marks in cases:
        shown = passage_of(LONG, word)
        assert word in shown.split(), word
        assert (shown.startswith(ELLIPSIS), shown.endswith(ELLIPSIS)) == marks, word
        assert MAX_PASSAGE_CHARS // 2 < len(shown) <= MAX_PASSAGE_CHARS, word


def test_a_long_sentence_is_cut_around_most_of_the_words() -> None:
    shown = passage_of(f"cache {LONG} cache of thumbnails {LONG}", "cache thumbnails")
    assert "cache of thumbnails" in shown


def test_a_long_sentence_that_holds_only_a_phrase_is_cut_around_it() -> None:
    assert " is it " in f"{passage_of(f'{LONG} is it {LONG}', 'is', 'is it')} "


@given(st.text(max_size=600), st.sampled_from(["cache", "a", "x y", "日本"]))
def test_a_passage_is_short_and_on_one_line(text: str, words: str) -> None:
    shown = passage_of(f"{text} cache {text}", words)
    assert len(shown) <= MAX_PASSAGE_CHARS
    assert "\n" not in shown


def test_cutting_is_linear() -> None:
    pieces = ["a", " ", "\n", "\n ", ". ", "x ", "> ", "<!--", "cache ", "`", "1. "]
    assert_linear_time(lambda text: passage_of(text, "cache", "the cache"), *pieces)
