"""The first prompt of a session names the issue that it works on, or names none."""

from __future__ import annotations

from bot.reading.prompt_subject import subject_of
from tests.reading.linear_time import assert_linear_time


def test_a_prompt_names_the_one_issue_that_it_works_on() -> None:
    expected = {
        "Fix #42": "#42",
        "Please work on issue #42 (the login loop).": "#42",
        "#42: the login loops": "#42",
        "Implement https://github.com/octo-org/linkbarn/issues/42": "octo-org/linkbarn#42",
        "Review https://github.com/octo-org/linkbarn/pull/50, please": "octo-org/linkbarn#50",
        "https://code.example.com/octo-org/linkbarn/issues/7": "octo-org/linkbarn#7",
        "Fix octo-org/linkbarn#42": "octo-org/linkbarn#42",
        "Fix #42. It is on #42 that the others wait.": "#42",
        "Add a banner like in #42": "",
        "Add a banner, similar to issue #42": "",
        "The cookie is lost, see https://github.com/octo-org/linkbarn/issues/42": "",
        "It broke since #42": "",
        "Fix #42 and #43": "",
        "Fix the 42 warnings": "",
        "Fix issue 42": "",
        "```\nFix #42\n```": "",
        "Why is the colour `#42`?": "",
        "Colour it #421234": "",
        "Explain the log.\n" + "line\n" * 100 + "#42": "",
        "": "",
    }
    assert {prompt: subject_of(prompt) for prompt in expected} == expected


def test_a_hostile_prompt_is_read_in_linear_time() -> None:
    assert_linear_time(lambda text: subject_of(f"{text}#4"), "#4", "see ", "/", "(", "https://a/")
