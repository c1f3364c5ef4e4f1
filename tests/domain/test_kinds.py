"""Every kind of thread and of ending is described wherever kinds differ: traits, words, schema and documentation."""

import json
from pathlib import Path

import pytest

from bot.comment.render import shipped_words
from bot.domain.card import CardId, card_of
from bot.domain.kinds import Kind, OutcomeKind
from bot.index.whoosh.segment_reader import KIND_NUMBERS

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = sorted((ROOT / "docs" / "schemas").glob("*.json"))


def enums(schema: object) -> list[list[object]]:
    """Every ``enum`` in a JSON schema."""
    if isinstance(schema, list):
        return [enum for part in schema for enum in enums(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["enum"]] if isinstance(schema.get("enum"), list) else []
    return own + [enum for part in schema.values() for enum in enums(part)]


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_thread_is_described_once(kind: Kind) -> None:
    assert kind.traits.noun
    assert kind.traits.words in shipped_words().texts
    digest = json.dumps({"id": 1, "kind": kind, "created_at": "2025-01-01T00:00:00Z"})
    card = card_of(digest)
    assert card is not None
    assert card.kind is kind
    assert isinstance(card.id, CardId)


def test_the_index_keeps_the_numbers_of_kinds() -> None:
    assert {
        Kind.ISSUE: 1,
        Kind.PULL: 2,
        Kind.PAGE: 3,
        Kind.SESSION: 4,
        Kind.DISCUSSION: 5,
    }.items() <= KIND_NUMBERS.items()


@pytest.mark.parametrize("kind", OutcomeKind)
def test_each_ending_has_its_words(kind: OutcomeKind) -> None:
    assert {kind.traits.words, kind.traits.short_words} <= shipped_words().texts.keys()


@pytest.mark.parametrize(("name", "kinds"), [("kind", Kind), ("outcome_kind", OutcomeKind)])
def test_the_schema_of_kinds_lists_every_kind_and_the_others_refer_to_it(
    name: str, kinds: type[Kind] | type[OutcomeKind]
) -> None:
    schema = json.loads((ROOT / "docs/schemas/kinds.v1.json").read_text())
    assert schema["$defs"][name]["enum"] == [*kinds]
    others = [file for file in SCHEMAS if file.name != "kinds.v1.json"]
    assert [
        enum for file in others for enum in enums(json.loads(file.read_text())) if len({*enum} & {*kinds}) > 1
    ] == []


@pytest.mark.parametrize("kind", [kind for kind in OutcomeKind if kind.is_known])
def test_the_page_about_endings_names_every_kind(kind: OutcomeKind) -> None:
    assert f"`{kind.value}`" in (ROOT / "docs/endings.md").read_text(encoding="utf-8")
