"""What a text states, sentence by sentence."""

from __future__ import annotations

from bot.reading.markdown import statements
from tests.examples import share
from tests.reading.linear_time import assert_linear_time


def test_a_line_that_begins_like_a_sentence_is_a_statement() -> None:
    expected = {
        "It is fixed\nUpgrade to 1.2": ("It is fixed", "Upgrade to 1.2"),
        "It is fixed\nsince 1.2": ("It is fixed since 1.2",),
        "It is fixed<br><br>  Upgrade to 1.2": ("It is fixed", "Upgrade to 1.2"),
        "It is fixed\\\n\\\nsince 1.2": ("It is fixed since 1.2",),
        "~~It is fixed.~~ It is not.": ("It is not.",),
    }
    assert {text: statements(text) for text in expected} == expected


def test_hostile_text_takes_linear_time() -> None:
    pieces = share(["<br>", "\\\n", "&#32;<br>", "a<br>", "~~", "~~a~~", "A\n"])
    assert_linear_time(lambda text: statements(f"a{text}a"), *pieces)
