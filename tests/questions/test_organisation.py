"""How threads of another repository are named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.domain.card import Card, CardId, Ending, Ruling
from bot.domain.kinds import Kind, OutcomeKind
from bot.questions.fields import ORGANISATION_FIELDS, item_of, row_of
from bot.questions.organisation import seen_from_outside
from bot.questions.views import ending

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SHA = "0d0e0ed056a45781a1b2c3d4e5f60718293a4b5c"
HOME = "https://github.com/octo-org/sdk"


def card(key: CardId, fix: str = "", duplicate_of: CardId | None = None, *decisions: Ruling) -> Card:
    kind = OutcomeKind.FIXED if fix else OutcomeKind.UNKNOWN
    ended = Ending(kind, fix=fix, release="v2" if fix else "")
    return Card(
        key, Kind.ISSUE, "proxy", "octocat", "closed", NOW, NOW, ending=ended, duplicate_of=duplicate_of,
        decisions=decisions,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "name", "ended"),
    [
        (card(1, "#13"), "octo-org/sdk#1", "closed, fixed by octo-org/sdk#13 in v2"),
        (card(2, SHA), "octo-org/sdk#2", f"closed, fixed by octo-org/sdk@{SHA[:10]} in v2"),
        (card(3, "other/place#4"), "octo-org/sdk#3", "closed, fixed by other/place#4 in v2"),
        (card("ABC-1", duplicate_of=12), "octo-org/sdk ABC-1", "closed, duplicate of octo-org/sdk#12"),
    ],
)
def test_a_thread_of_another_repository_has_full_references(shown: Card, name: str, ended: str) -> None:
    item = seen_from_outside(item_of(shown, HOME), "octo-org/sdk", HOME)
    assert (item.card.id, ending(item.card)) == (name, ended)
    row = row_of(ORGANISATION_FIELDS, item, HOME)
    assert (row["id"], row["cite"], row["repository"]) == (shown.id, name, "octo-org/sdk")


@pytest.mark.parametrize(("home", "later"), [(HOME, f"{HOME}/issues/51"), ("", "octo-org/sdk#51")])
def test_what_supersedes_a_decision_elsewhere_is_named_in_full(home: str, later: str) -> None:
    ruling = Ruling("We drop it.", "octocat", "OWNER", NOW, superseded_by="#51", is_proposal=True, done_in="#17")
    item = seen_from_outside(item_of(card(1, "", None, ruling), home), "octo-org/sdk", home)
    (decision,) = row_of(ORGANISATION_FIELDS, item, home)["decisions"]
    assert (decision["superseded_by"], decision["done_in"]) == (later, "octo-org/sdk#17")
