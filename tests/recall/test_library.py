"""Threads and words as weighted queries."""

from bot.index.protocol import NOTES, TEXT
from bot.ranking.weights import ORDER_NAMES, RankingWeights, shipped
from bot.reading.analyzer import terms
from bot.recall.library import blend, similar_query
from tests.index.word_query import word_query
from tests.recall.samples import thread


def test_a_title_term_counts_three_times_and_repetitions_do_not_count() -> None:
    query = similar_query(thread(1, "Cookie lost", "The cookie is lost, lost at a proxy."))
    (cookie,), (lost,), (proxy,) = terms("cookie"), terms("lost"), terms("proxy")
    assert query.terms == {proxy: 1.0, cookie: 3.0, lost: 3.0}


def test_a_thread_is_compared_with_opening_texts() -> None:
    assert set(similar_query(thread(1, "Cookie lost")).fields) == {TEXT}


def test_template_text_is_not_searched_for() -> None:
    query = similar_query(thread(1, "Cookie", "### Describe the bug\n\n<!-- be nice -->\nproxy"))
    assert set(query.terms) == set(terms("cookie proxy"))


def test_words_are_searched_for_in_texts_and_notes() -> None:
    query = word_query("cookie proxy cookie")
    assert query.terms == {terms("cookie")[0]: 2.0, terms("proxy")[0]: 1.0}
    assert set(query.fields) == {TEXT, NOTES}


def test_a_text_without_terms_gives_an_empty_query() -> None:
    assert word_query("*** the").terms == {}
    assert similar_query(thread(1, "", "")).terms == {}


def test_without_a_vector_and_a_model_a_query_has_only_words() -> None:
    query = similar_query(thread(1, "Cookie lost"))
    assert (query.vector, query.blend) == (b"", None)


def test_the_vector_and_the_models_blend_go_with_the_query() -> None:
    model = shipped().with_text_model
    query = similar_query(thread(1, "Cookie lost"), b"\1\2", model)
    assert query.vector == b"\1\2"
    assert query.blend == blend(model.order)
    assert query.terms == similar_query(thread(1, "Cookie lost")).terms


def test_a_model_of_words_alone_has_a_blend_too() -> None:
    query = similar_query(thread(1, "Cookie lost"), b"", RankingWeights({"text": 2.0, "open": 1.0}, {}, 0.0, 0.5))
    assert query.blend == {"text": 2.0, "open": 1.0}


def test_a_blend_has_exactly_the_weights_of_an_order_that_an_index_can_use() -> None:
    order = {name: float(number) for number, name in enumerate(ORDER_NAMES, 1)}
    seen = ("text", "semantic", "open", "age", "closed", "length", "duplicates")
    assert blend(order) == {name: order[name] for name in seen}


def test_a_blend_has_nothing_that_the_order_does_not_weigh() -> None:
    assert blend({"title_found": 3.0}) == {}
    assert blend({"semantic": 3.0}) == {"semantic": 3.0}
