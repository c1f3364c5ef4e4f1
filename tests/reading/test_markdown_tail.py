"""The tail of a text that is too long, with a mark where it was cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.reading.markdown import OMISSION_MARK, tail

TEXT = st.text(alphabet="a é\n", max_size=200)


def test_a_text_that_fits_is_unchanged() -> None:
    assert tail("It works.", 9) == "It works."


def test_the_tail_begins_with_a_whole_word_if_there_is_one() -> None:
    assert tail("It failed, then it works.", 20) == "[…] then it works."
    assert tail("It failed, then it works.", 18) == "[…] then it works."
    assert tail("x" * 100, 20) == "[…] " + "x" * 16
    assert tail("It works.", 100, is_cut=True) == "[…] It works."


@given(TEXT, st.integers(4, 300) | st.integers(4, 12), st.booleans())
def test_the_tail_is_the_end_of_the_text_within_the_limit(text: str, limit: int, is_cut: bool) -> None:
    result = tail(text, limit, is_cut=is_cut)
    assert len(result) <= limit
    assert result.startswith(OMISSION_MARK) == (is_cut or len(text) > limit)
    assert text.endswith(result.removeprefix(OMISSION_MARK))
