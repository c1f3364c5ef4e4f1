"""The addresses of threads of each kind, of their comments, and of what supersedes a decision."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.domain.card import Card, Passage, Ruling
from bot.domain.kinds import Kind
from bot.questions.addresses import message_url, superseding_url, url_of
from bot.questions.fields import THREAD_FIELDS, item_of, row_of
from bot.questions.views import ending

HOME = "https://github.com/octo-org/hello-world"
AT = datetime(2026, 1, 1, tzinfo=UTC)


def card(kind: Kind, *decisions: Ruling, state: str = "open") -> Card:
    return Card(12, kind, "A title", "octocat", state, AT, AT, decisions=decisions)


def test_threads_of_each_kind_and_their_comments_have_addresses() -> None:
    cases = [
        (Kind.ISSUE, "issues/12", "#issuecomment-77"), (Kind.PULL, "pull/12", "#issuecomment-77"),
        (Kind.DISCUSSION, "discussions/12", "#discussioncomment-77"),
    ]  # fmt: skip
    for kind, thread, comment in cases:
        ruling = Ruling("We go with PostgreSQL.", "monalisa", "MEMBER", AT, 77, comment.replace("77", "78"))
        assert url_of(card(kind), HOME) == f"{HOME}/{thread}", kind
        assert (
            message_url(Passage(12, "monalisa", "MEMBER", AT, "So it is.", 77, kind), HOME)
            == f"{HOME}/{thread}{comment}"
        ), kind
        assert (
            message_url(Passage(12, "monalisa", "MEMBER", AT, "So it is.", None, kind), HOME) == f"{HOME}/{thread}"
        ), kind
        (decision,) = row_of(THREAD_FIELDS, item_of(card(kind, ruling), HOME), HOME)["decisions"]
        assert decision["url"] == f"{HOME}/{thread}{comment}", kind
        assert superseding_url(card(kind), ruling, HOME) == f"{HOME}/{thread}{comment.replace('77', '78')}", kind


def test_nothing_has_an_address_without_a_known_repository() -> None:
    assert (
        url_of(card(Kind.DISCUSSION), "")
        == message_url(Passage(12, "monalisa", "", AT, kind=Kind.DISCUSSION), "")
        == ""
    )


def test_a_row_names_its_kind_unless_it_is_an_issue() -> None:
    cases = [
        (Kind.ISSUE, "open", "open"), (Kind.PULL, "closed", "closed pull"),
        (Kind.DISCUSSION, "open", "open discussion"),
    ]  # fmt: skip
    assert [kind for kind, state, expected in cases if ending(card(kind, state=state)) != expected] == []
