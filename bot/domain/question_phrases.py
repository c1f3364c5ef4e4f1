"""The phrases by which a repository's people ask about earlier decisions, besides the shipped ones."""

from __future__ import annotations

from typing import NamedTuple


class QuestionPhrases(NamedTuple):
    """Phrases with ``{topic}``, as in the setting ``recall_phrases``; ``only``: the shipped questions do not count."""

    added: tuple[str, ...] = ()
    only: bool = False


SHIPPED_QUESTIONS = QuestionPhrases()
