"""The registry of fields: what it says of a field is so, and every form of an answer has it."""

from __future__ import annotations

import json

import jsonschema
import pytest

from bot.questions.fields import (
    LINKED_FIELDS,
    ORGANISATION_FIELDS,
    SMART_FIELDS,
    THREAD_FIELDS,
    Field,
    Record,
    Scalar,
    agent_schema,
)
from tools.answer_schemas import DRAFT, fields_table, schemas

HIT_FIELDS = {field.name: field for field in (*SMART_FIELDS, *LINKED_FIELDS, *ORGANISATION_FIELDS)}.values()


def nested(field: Field) -> list[Field]:
    inner = field.type.fields if isinstance(field.type, Record) else ()
    return [one for each in inner for one in nested(each)] or [field]


@pytest.mark.parametrize("field", [inner for field in HIT_FIELDS for inner in nested(field)], ids=lambda one: one.name)
def test_each_field_has_a_description_and_an_example_of_its_type(field: Field) -> None:
    assert field.description
    assert isinstance(field.type, Scalar)
    definitions = json.loads(schemas()["kinds"])["$defs"]
    name = field.type.published.get("$ref", "").rpartition("/")[2]
    published = definitions[name] if name else field.type.published
    jsonschema.validate(field.example, published | {"$schema": DRAFT})
    jsonschema.validate(field.example, field.type.agents)


@pytest.mark.parametrize("field", THREAD_FIELDS, ids=lambda one: one.name)
def test_a_field_of_a_thread_is_in_all_schemas_and_in_the_table(field: Field) -> None:
    for name in ("search", "smart-search", "related", "what", "show"):
        assert f'"{field.name}": {{' in schemas()[name], name
    for fields in (ORGANISATION_FIELDS, SMART_FIELDS, LINKED_FIELDS):
        assert field.name in agent_schema(fields)["required"]
    assert f"| `{field.name}` |" in fields_table()
