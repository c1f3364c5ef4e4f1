"""Every phrase of the tables fires: no quick test passes over it, and nothing else keeps it from being heard."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.thread import Message, OutcomeKind, Thread
from bot.reading.endings import decisions
from bot.reading.endings.decisions import DecisionAuthority, may_decide, standing_of
from bot.reading.endings.engine import RULES, PhraseRule, PhraseRules
from bot.reading.endings.outcome import outcome
from tests.reading.generated import generated

CLOSED = datetime(2024, 5, 3, 12, 0, tzinfo=UTC)
PHRASES = [
    pytest.param(rule, phrase, id=f"{rule.ways.name} {at}")
    for rule in (*RULES.stating, RULES.thanked)
    for at, phrase in enumerate(rule.ways.phrases)
]


def threads(text: str) -> list[Thread]:
    """Closed with this text, by a maintainer and by the reporter, who was answered; one of them asks for a removal."""
    answer = Message("hubot", "MEMBER", CLOSED - timedelta(hours=1), "The path has to end with a slash.", id=1)
    return [
        Thread(
            id=42, title=title, body="It loops.", author="octocat", created_at=CLOSED - timedelta(days=90),
            state="closed", closed_at=CLOSED, closed_by=author,
            comments=(answer, Message(author, "NONE", CLOSED - timedelta(minutes=1), text, id=2)),
        )
        for title, author in (("Login loops", "octocat"), ("Login loops", "monalisa"), ("Remove it", "monalisa"))
    ]  # fmt: skip


def is_heard(text: str, rules: PhraseRules) -> bool:
    """By itself, or with a few words around it."""
    said = (text, f"The plug-in {text}.", f"{text}it")
    return any(len(outcome(thread, rules=rules).evidence) > 1 for each in said for thread in threads(each))


@pytest.mark.parametrize(("rule", "phrase"), PHRASES)
def test_a_phrase_of_an_ending_is_heard_when_a_thread_is_closed_with_it(rule: PhraseRule, phrase: str) -> None:
    alone = rule.without(frozenset(rule.ways.phrases) - {phrase})
    silent = rule.without(frozenset(rule.ways.phrases))
    rules = (
        PhraseRules((silent,), RULES.released, alone) if rule is RULES.thanked else PhraseRules((alone,), alone, silent)
    )
    said = list(generated(re.compile(phrase, re.IGNORECASE), tries=500))
    assert all(rule.ways.may_stand_in(text) for text in said)
    assert any(is_heard(text, rules) for text in said)


@pytest.mark.parametrize("text", ["Closing after a year of inactivity.", "Closed given the long inactivity."])
def test_inactivity_is_stale(text: str) -> None:
    assert outcome(threads(text)[1]).kind is OutcomeKind.STALE


@pytest.mark.parametrize(
    ("standing", "phrase"),
    [
        (DecisionAuthority.GROUP, decisions._GROUP_DECIDED),
        (DecisionAuthority.SPEAKER, decisions._SPEAKER_DECIDED),
        (DecisionAuthority.MAINTAINER, decisions._MAINTAINER_DECIDED),
        (DecisionAuthority.ENDING, decisions._RULING),
    ],
    ids=["group", "speaker", "maintainer", "ending"],
)
def test_the_quick_test_for_decisions_passes_over_no_phrase(
    standing: DecisionAuthority, phrase: re.Pattern[str]
) -> None:
    said = list(generated(phrase, tries=5_000))
    assert len(said) > 500
    assert [text for text in said if not may_decide(text, standing)] == []


@pytest.mark.parametrize("text", ["This wont happen.", "We dont want this.", "That is a won't -fix."])
def test_a_decision_without_its_apostrophe_is_found(text: str) -> None:
    assert standing_of(text, DecisionAuthority.ENDING) is not None
