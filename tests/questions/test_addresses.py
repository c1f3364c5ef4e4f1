"""The addresses of threads of each kind, of their comments, and of what supersedes a decision."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.domain.card import Card, Passage, Ruling
from bot.domain.kinds import Kind
from bot.questions.addresses import message_url, superseding_url, url_of
from bot.questions.views import ending, full_row

HOME = "https://github.com/octo-org/hello-world"
AT = datetime(2026, 1, 1, tzinfo=UTC)


def card(kind: Kind, *decisions: Ruling, state: str = "open") -> Card:
    return Card(12, kind, "A title", "octocat", state, AT, AT, decisions=decisions)


@pytest.mark.parametrize(
    ("kind", "thread", "comment"),
    [(Kind.ISSUE, "issues/12", "#issuecomment-77"), (Kind.PULL, "pull/12", "#issuecomment-77"),
     (Kind.DISCUSSION, "discussions/12", "#discussioncomment-77")],
)  # fmt: skip
def test_threads_of_each_kind_and_their_comments_have_addresses(kind: Kind, thread: str, comment: str) -> None:
    ruling = Ruling("We go with PostgreSQL.", "monalisa", "MEMBER", AT, 77, comment.replace("77", "78"))
    assert url_of(card(kind), HOME) == f"{HOME}/{thread}"
    assert (
        message_url(Passage(12, "monalisa", "MEMBER", AT, "So it is.", 77, kind), HOME) == f"{HOME}/{thread}{comment}"
    )
    assert message_url(Passage(12, "monalisa", "MEMBER", AT, "So it is.", None, kind), HOME) == f"{HOME}/{thread}"
    (decision,) = full_row(card(kind, ruling), HOME)["decisions"]
    assert decision["url"] == f"{HOME}/{thread}{comment}"
    assert superseding_url(card(kind), ruling, HOME) == f"{HOME}/{thread}{comment.replace('77', '78')}"


def test_nothing_has_an_address_without_a_known_repository() -> None:
    assert (
        url_of(card(Kind.DISCUSSION), "")
        == message_url(Passage(12, "monalisa", "", AT, kind=Kind.DISCUSSION), "")
        == ""
    )


@pytest.mark.parametrize(("kind", "state", "expected"), [
    (Kind.ISSUE, "open", "open"), (Kind.PULL, "closed", "closed pull"), (Kind.DISCUSSION, "open", "open discussion"),
])  # fmt: skip
def test_a_row_names_its_kind_unless_it_is_an_issue(kind: Kind, state: str, expected: str) -> None:
    assert ending(card(kind, state=state)) == expected
