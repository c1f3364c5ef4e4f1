"""Every form of a question in the files of the languages is needed, and every example there is read as it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.comment.render import shipped_words
from bot.reading.endings.phrases import read_languages
from bot.reading.question_forms import Form, QuestionForms
from bot.reading.questions import recall_question
from bot.reading.search_query import search_query
from bot.settings.schema import ENGLISH
from tests.reading.linear_time import assert_linear_time

LANGUAGES: dict[str, dict[str, Any]] = {
    code: toml["recall"] for code, toml in read_languages().items() if "recall" in toml
}
_MARKS = re.compile("[{}]")
_TABLES = {*Form, "words", "verbs"}
_PATTERNS = {key for key in LANGUAGES[ENGLISH] if key not in _TABLES}


@dataclass(frozen=True)
class Row:
    """The forms for one idea in one language."""

    language: str
    form: Form
    forms: tuple[str, ...]
    yes: tuple[str, ...]
    no: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.language} {self.form}: {self.forms[0]}"

    def alone(self, text: str) -> QuestionForms:
        """One of the forms without all others."""
        others: dict[str, Any] = dict.fromkeys(Form, ())
        return QuestionForms({**LANGUAGES[self.language], **others, self.form: [{"forms": [text]}]})


ROWS = [
    Row(code, form, tuple(row["forms"]), tuple(row["yes"]), tuple(row["no"]))
    for code, recall in LANGUAGES.items()
    for form in Form
    for row in recall.get(form, ())
]


def topic_of(marked: str) -> str:
    return " ".join(re.findall(r"\{(.*?)\}", marked))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_sentence_under_yes_asks_about_the_marked_topic(row: Row) -> None:
    asked = {marked: recall_question(_MARKS.sub("", marked)) for marked in row.yes}
    topics = {marked: question.topic if question else None for marked, question in asked.items()}
    assert topics == {marked: topic_of(marked) for marked in row.yes}


def test_a_sentence_under_no_asks_nothing() -> None:
    assert [text for row in ROWS for text in row.no if recall_question(text)] == []


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_form_is_needed_by_a_sentence_under_yes(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    assert row.yes
    assert row.no
    unused = []
    for text in row.forms:
        monkeypatch.setattr("bot.reading.question_grammar.forms_of", lambda _, form=text: (row.alone(form),))
        if not any(recall_question(_MARKS.sub("", marked)) for marked in row.yes):
            unused.append(text)
    assert unused == []


def test_every_class_is_used_and_every_name_is_known() -> None:
    for code, recall in LANGUAGES.items():
        assert recall.keys() <= {*_TABLES, *_PATTERNS, "may_end_with_stop"}, code
        classes = {**recall["words"], **recall.get("verbs", {})}
        texts = [*classes.values(), *(text for form in Form for row in recall.get(form, ()) for text in row["forms"])]
        used = {name for text in texts for name in re.findall(r"<([a-z-]+)>", text)}
        assert used | {"lead", "time", "generic", "plain"} >= classes.keys() >= used, code


def test_all_languages_in_which_comments_are_written_have_forms() -> None:
    assert LANGUAGES.keys() == {"de", "en", "es", "fr", "ja", "ko", "pt", "ru", "zh"}
    assert all({row.form for row in ROWS if row.language == code} >= {Form.ASKS, Form.REQUESTS} for code in LANGUAGES)


def test_a_text_of_the_words_of_questions_is_read_in_linear_time() -> None:
    parts = [_MARKS.sub("", text) for row in ROWS if row.language != ENGLISH for text in row.yes[:1]]
    words = [part[: len(part) // 2] for part in parts]
    assert_linear_time(recall_question, *words[::3], *(f"{word}, " for word in words[1::3]), *parts[2::6])


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_example_of_the_help_is_understood(code: str) -> None:
    example = shipped_words(code).say("example_question")
    question = recall_question(example.replace("…", "Redis"))
    assert (question and question.topic) == "Redis"


def test_a_search_understands_a_question_in_every_language_like_a_comment() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    asked = [
        (text, topic)
        for row in ROWS
        if row.language != ENGLISH
        for text, topic in ((_MARKS.sub("", marked), topic_of(marked)) for marked in row.yes)
        if topic and (text.endswith("?") or not text.isascii())
    ]
    assert [text for text, topic in asked if search_query(text, now).words != topic] == []
