"""Of a text that is too long the end is kept, and it is said where it was cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.reading.markdown import LEFT_OUT, tail

TEXT = st.text(alphabet="a é\n", max_size=200)


def test_what_fits_is_all_there() -> None:
    assert tail("It works.", 9) == "It works."


def test_the_end_begins_with_a_word() -> None:
    assert tail("It failed, then it works.", 20) == "[…] then it works."
    assert tail("It failed, then it works.", 18) == "[…] then it works."
    assert tail("x" * 100, 20) == "[…] " + "x" * 16
    assert tail("It works.", 100, is_cut=True) == "[…] It works."


@given(TEXT, st.integers(4, 300), st.booleans())
def test_it_is_the_end_of_the_text_and_no_longer_than_it_may_be(text: str, most: int, is_cut: bool) -> None:
    found = tail(text, most, is_cut=is_cut)
    assert len(found) <= most
    assert found.startswith(LEFT_OUT) == (is_cut or len(text) > most)
    assert text.endswith(found.removeprefix(LEFT_OUT))
