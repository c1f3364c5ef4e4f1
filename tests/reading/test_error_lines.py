"""The lines of a text that state an error, as terms that two people's reports have in common."""

import pytest

from bot.reading.analyzer import terms
from bot.reading.error_lines import line_terms

LOG = "Error: repository not found at /srv/a/b.git (attempt 3)"


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ("Error: repository not found at /home/monalisa/c.git (attempt 17)", True),
        ("> error: repository not found at C:\\git\\c.git (attempt 1)", True),
        ("Error: repository not readable at /srv/a/b.git (attempt 3)", False),
        ("The repository of the attempt was not found. Error", False),
    ],
)
def test_the_same_line_has_the_same_term_whatever_the_paths_and_numbers(other: str, *, is_same: bool) -> None:
    assert (line_terms("", f"It fails.\n\n{LOG}\n") == line_terms("Fails", other)) is is_same


BARE = ("", "Plain words.", "TypeError", "error: process exited", "Tests FAILED", "fatal: Out of memory!")
BARE += ("RangeError: Maximum call stack size exceeded", "Uncaught RangeError: Maximum call stack size exceeded.")


@pytest.mark.parametrize("text", BARE)
def test_what_says_only_that_something_failed_is_no_line(text: str) -> None:
    assert line_terms("", text) == {}


def test_no_word_is_a_line() -> None:
    (line,) = line_terms("", LOG)
    assert line not in terms(line)
