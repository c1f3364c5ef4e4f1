"""The keywords of a text: quotations, errors, names and files."""

from __future__ import annotations

from bot.reading.signals import MAX_KEYWORD_CHARS, MAX_KEYWORDS, keywords, quotations
from tests.reading.linear_time import assert_linear_time


def test_quotations_errors_names_and_files_are_keywords() -> None:
    text = """It crashes when I save the gallery.

The log says "queue is blocked" and `store/session.py` has

    ValueError: no such session

with base_path set."""
    words = keywords(text)
    assert words[0] == "ValueError: no such session"
    assert {"queue is blocked", "store/session.py", "base_path"} <= {*words}
    assert any(word.startswith("when I save") for word in words)


def test_text_of_an_issue_form_gives_no_keywords() -> None:
    assert keywords('### Expected behavior\n\n<!-- say "what happened" -->\nnothing') == ()


def test_quotations_are_unique_and_within_one_line() -> None:
    assert quotations('"a b" `c d` “e f” «g h» "a b" "\n"') == ("a b", "c d", "e f", "g h")


def test_hostile_texts_are_read_in_linear_time_with_bounded_results() -> None:
    def read(text: str) -> None:
        words = keywords(text)
        assert len(words) <= MAX_KEYWORDS
        assert all(len(word) <= MAX_KEYWORD_CHARS for word in words)

    assert_linear_time(read, '"', "`", "error", "error: ", "a_b ", "«", '"a" ', "x.py ")
