"""What a text puts its finger on."""

from __future__ import annotations

import time

import pytest

from bot.reading.signals import LONGEST, MAX_KEYWORDS, keywords, quotations


def test_quotations_errors_names_and_files_are_keywords() -> None:
    text = """It crashes when I save the gallery.

The log says "queue is blocked" and `store/session.py` has

    ValueError: no such session

with base_path set."""
    found = keywords(text)
    assert found[0] == "ValueError: no such session"
    assert {"queue is blocked", "store/session.py", "base_path"} <= {*found}
    assert any(one.startswith("when I save") for one in found)


def test_what_an_issue_form_wrote_is_not_looked_for() -> None:
    assert keywords('### Expected behavior\n\n<!-- say "what happened" -->\nnothing') == ()


def test_quotations_come_once_and_from_one_line() -> None:
    assert quotations('"a b" `c d` “e f” «g h» "a b" "\n"') == ("a b", "c d", "e f", "g h")


@pytest.mark.parametrize("piece", ['"', "`", "error", "error: ", "a_b ", "«", '"a" ', "x.py "])
def test_hostile_texts_are_read_in_time_and_bounded(piece: str) -> None:
    began = time.process_time()
    found = keywords(piece * (65_536 // len(piece)))
    assert time.process_time() - began < 2
    assert len(found) <= MAX_KEYWORDS
    assert all(len(one) <= LONGEST for one in found)
