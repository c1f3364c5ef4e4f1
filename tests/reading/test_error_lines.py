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


GLIBC = (
    'relay: src/pool.cpp:31: void net::Pool::close(): Assertion `size() == 0 && "the pool must be empty here"\' failed.'
)
MAC = 'Assertion failed: (size() == 0 && "the pool must be empty here"), function close, file pool.cpp, line 31.'
TITLE = 'Assertion "the pool must be empty here" failed'


def test_a_failed_assertion_of_c_code_is_a_line_by_its_message_and_a_vague_one() -> None:
    assert line_terms("", GLIBC) == line_terms("", MAC) == line_terms(TITLE, "")
    assert list(line_terms("", GLIBC).values()) == [True]
    assert line_terms("", GLIBC) != line_terms("", GLIBC.replace("pool must", "list must"))
    assert list(line_terms("", LOG).values()) == [False]


def test_a_line_that_announces_an_error_states_none() -> None:
    assert line_terms("", "When I start the relay I get this error:\n\n    no such channel") == {}
    assert line_terms("", "Starting the relay, error: no such channel") != {}
