"""Texts in scripts without spaces are cut after their punctuation, others as before."""

import pytest

from bot.comment.clean_text import truncate
from bot.reading.analyzer import terms
from bot.reading.passage import passage
from bot.reading.text_edges import cut_at_edge, nearest_edge
from tests.reading.linear_time import assert_linear_time

PHRASE = "我们讨论了购物车的保存方式，"


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("修复了。", 4, "修复了。"),
        ("先修复登录，再修复购物车", 10, "先修复登录…"),
        ("先修复登录。再修复购物车", 10, "先修复登录。…"),
        ("错误：连接失败，请重试一次", 6, "错误…"),
        ("一二三四五六七八九十", 6, "一二三四五…"),
        ("fixed, in the next release", 10, "fixed, in…"),
        ("ログインの後、カートが空です", 9, "ログインの後…"),
    ],
)
def test_a_text_is_cut_after_the_nearest_punctuation(text: str, limit: int, cut: str) -> None:
    assert cut_at_edge(text, limit) == cut


def test_punctuation_that_is_far_away_is_no_place_to_cut() -> None:
    text = "短句，" + "长" * 60
    assert nearest_edge(text, 50) == 50
    assert nearest_edge(text, 20) == 3


def test_lines_of_the_terminal_and_of_comments_end_at_punctuation() -> None:
    assert truncate(PHRASE * 5, 40) == f"{(PHRASE * 2).rstrip('，')}…"
    assert truncate("Words of English are cut at spaces", 20) == "Words of English…"


def test_the_passage_of_a_long_sentence_is_the_part_with_the_words_from_edge_to_edge() -> None:
    text = (
        PHRASE.replace("购物车", "退款单") * 20
        + "最后决定把优惠券放在结账页，"
        + PHRASE.replace("购物车", "退款单") * 20
    )
    found = passage(text, set(terms("优惠券")))
    assert "最后决定把优惠券放在结账页，" in found
    assert len(found) <= 240
    assert found.startswith("… 我们讨论")
    assert found.endswith("， …")


def test_a_long_text_without_spaces_is_cut_in_linear_time() -> None:
    assert_linear_time(
        lambda text: (cut_at_edge(text, 10**6), passage(text, {"购物"})), "购物车", "，", "购物，", "a，"
    )
