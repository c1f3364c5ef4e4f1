"""What people say to the bot, and what it says, is nobody's summary, quotation, conversation or search hit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.thread import Message, Thread
from bot.index.document import message_documents
from bot.reading.digest import digest
from bot.reading.requests import without_requests
from bot.recall.condense import condense

OPENED = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
REQUESTS = [
    "/precedent why #12",
    "/precedent search session store",
    "  /precedent　off",
    "What did we decide about the session store?",
    "Didn’t we discuss the session store before?",
    "<!-- precedent:v1 id=action reply=7 -->\n\nWe decided to use PostgreSQL for the sessions.",
]


def thread(*texts: str) -> Thread:
    comments = tuple(
        Message("monalisa", "MEMBER", OPENED + timedelta(hours=hour), text, id=hour)
        for hour, text in enumerate(texts, 1)
    )
    last = comments[-1].created_at
    return Thread(42, "Sessions", "They are lost.", "octocat", OPENED, state="closed", closed_at=last,
                  closed_by="monalisa", comments=comments)  # fmt: skip


@pytest.mark.parametrize("text", REQUESTS)
def test_words_to_the_bot_and_its_own_are_no_words_of_the_thread(text: str) -> None:
    assert without_requests(text) == ""
    asked = thread(text)
    shown = digest(asked)
    assert (shown.summary, shown.outcome.quote, shown.outcome.comment) == ("They are lost.", "", None)
    assert [turn.text for turn in condense(asked, {}, 5_000)] == ["They are lost."]  # type: ignore[arg-type]
    assert [list(document.body) for document in message_documents(asked)][1:] == [[]]


def test_other_words_beside_a_command_stay() -> None:
    text = "Fixed by #57, which keeps them in a table.\n\n/precedent refresh"
    assert without_requests(text) == "Fixed by #57, which keeps them in a table."
    assert digest(thread(text)).outcome.fix == "#57"
    for other in ("We decided to use PostgreSQL for the sessions.", "See `/precedent why`.", "\\/precedent why"):
        assert without_requests(other) == other
    long = "What did we decide about the session store? " + "It matters, as every release loses them again. " * 8
    assert without_requests(long) == long


def test_a_command_does_not_hide_the_ending_before_it() -> None:
    result = digest(replace(thread("Fixed by #57, which keeps them.", "/precedent why #3"))).outcome
    assert (result.fix, result.comment) == ("#57", 0)
