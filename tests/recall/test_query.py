"""Threads and words as weighted queries."""

from bot.memory.index import NOTES, TEXT
from bot.reading.words import terms
from bot.recall.query import similar_query, word_query
from tests.recall.samples import thread


def test_a_term_of_the_title_counts_three_times_and_each_term_once() -> None:
    query = similar_query(thread(1, "Cookie lost", "The cookie is lost, lost at a proxy."))
    (cookie,), (lost,), (proxy,) = terms("cookie"), terms("lost"), terms("proxy")
    assert query.terms == {proxy: 1.0, cookie: 3.0, lost: 3.0}


def test_a_thread_is_compared_with_opening_texts() -> None:
    assert set(similar_query(thread(1, "Cookie lost")).fields) == {TEXT}


def test_what_a_template_put_there_is_not_looked_for() -> None:
    query = similar_query(thread(1, "Cookie", "### Describe the bug\n\n<!-- be nice -->\nproxy"))
    assert set(query.terms) == set(terms("cookie proxy"))


def test_words_are_looked_for_in_texts_and_in_what_was_noted() -> None:
    query = word_query("cookie proxy cookie")
    assert query.terms == {terms("cookie")[0]: 2.0, terms("proxy")[0]: 1.0}
    assert set(query.fields) == {TEXT, NOTES}


def test_nothing_to_look_for_is_an_empty_query() -> None:
    assert word_query("*** the").terms == {}
    assert similar_query(thread(1, "", "")).terms == {}
