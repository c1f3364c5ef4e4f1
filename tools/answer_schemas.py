"""The JSON Schemas of what the commands print (docs/schemas), and the table of fields in docs/asking.md.

Made from the registry of fields in `bot.questions.fields`; `make docs` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bot.domain.kinds import Kind, OutcomeKind
from bot.questions.fields import (
    COUNT,
    DECISION,
    FLAG,
    LINKED_FIELDS,
    MESSAGE_FIELDS,
    ORGANISATION_FIELDS,
    PAGE_FIELDS,
    PART,
    RELATED_FIELDS,
    SESSION_FIELDS,
    SESSION_PASSAGE_FIELDS,
    SHOWN_FIELDS,
    SMART_FIELDS,
    TEXT,
    TEXTS,
    THREAD_FIELDS,
    Field,
    Record,
    Scalar,
    Schema,
)
from tools.reference_docs import table

DRAFT = "https://json-schema.org/draft/2020-12/schema"
FIELDS = "fields"
"""The table of fields is between `<!-- fields -->` and `<!-- /fields -->` in docs/asking.md."""

_RULED = tuple(
    field._replace(
        type=DECISION._replace(limits=(("minItems", 1), ("maxItems", 1))), description="the one decision that is meant"
    )
    if field.name == "decisions"
    else field
    for field in SHOWN_FIELDS
)
"""A thread with only one of its decisions."""

_THREADS, _DECIDED = Record("thread", SHOWN_FIELDS), Record("ruled", _RULED)
_LINKED = Record("linked", LINKED_FIELDS, description="A thread one link away from another.")
_SCHEMA = Field("schema", Scalar({"const": 1}, {}), "the version of this shape")
_SESSIONS = Field(
    "sessions", Record("", SESSION_FIELDS), "agents' sessions on this machine that worked on it, newest first"
)
_SIGNALS = (
    Field("used", TEXTS, "what of the checkout was used"),
    Field("unused", TEXTS, "what of it could not be used, and why"),
)
_MEMORY = (
    Field("notes", TEXTS, "What to know of the memory: that there is none, and why; that it could not be fetched."),
    Field("searched", COUNT, "The number of threads in the memory; 0 where there is none."),
)
_HIT_FIELDS = (
    SMART_FIELDS[0],
    Field(
        "part",
        PART,
        "of a session: how much of the words its message holds, by their rarity; 1 without words",
        is_required=False,
    ),
    *SMART_FIELDS[1:],
)

ANSWERS: Mapping[str, tuple[Field, ...]] = {
    "check": (
        _SCHEMA,
        Field("similar", FLAG, "whether there is a comment; the exit code is 3 then, else 0"),
        Field(
            "comment",
            TEXT,
            "the comment that the Action would write, as Markdown without its hidden lines; empty where it would stay "
            "silent",
        ),
        Field("related", Record("related", RELATED_FIELDS), "the threads in the comment"),
        Field("pages", Record("page", PAGE_FIELDS), "the pages in the comment"),
        Field("messages", COUNT, "the number of messages in the threads of the memory"),
        Field("notes", TEXTS, "what to know of the memory, such as that it could not be fetched"),
        Field("searched", COUNT, "the number of threads in the memory"),
    ),
    "related": (
        _SCHEMA,
        Field("threads", _THREADS, "the threads that name the files"),
        Field("decisions", _DECIDED, "what was decided in them"),
        Field("pulls", _THREADS, "open pull requests that name the files or say that they close one of these threads"),
    ),
    "show": (
        _SCHEMA,
        *THREAD_FIELDS,
        Field("linked", _LINKED, "what it links to, and what links to it"),
        _SESSIONS,
        Field("conversation", Record("message", MESSAGE_FIELDS), "what was said, in order of time"),
        Field("omitted", COUNT, "messages that were left out, see --chars"),
    ),
    "smart-search": (
        _SCHEMA,
        Field(
            "hits",
            Record("hit", _HIT_FIELDS),
            "the threads, best first, then the agents' sessions on this machine, best first",
        ),
        *_SIGNALS,
        *_MEMORY,
    ),
    "what": (
        _SCHEMA,
        Field("related", _THREADS, "related to the branch"),
        Field("decisions", _DECIDED, "decided about the files that are worked on"),
        Field("tasks", _THREADS, "open issues near it"),
        Field("pulls", _THREADS, "open pull requests that name those files or say that they close one of these issues"),
        Field("recent", _DECIDED, "decided last, about anything"),
        _SESSIONS,
        *_SIGNALS,
        *_MEMORY,
    ),
}
"""The fields of each command's answer that is an object."""

LISTS: Mapping[str, tuple[str, tuple[Field, ...]]] = {
    "search": (
        "search",
        (
            *ORGANISATION_FIELDS,
            Field("linked", _LINKED, "with --expand: the threads one link away from it", is_required=False),
        ),
    ),
    "sessions": ("search --kind session", SESSION_PASSAGE_FIELDS),
}
"""The command and the fields of an element of each answer that is a list."""


def schemas() -> dict[str, str]:
    """The name of each schema → its text."""
    kinds = {"kind": {"enum": [*Kind]}, "outcome_kind": {"enum": [*OutcomeKind]}}
    title = "The kinds of threads and of endings, to which the other schemas refer"
    found = {"kinds": {"$schema": DRAFT, "title": title, "$defs": kinds}}
    for name, fields in ANSWERS.items():
        found[name] = _document(name, _object(fields), fields)
    for name, (command, fields) in LISTS.items():
        found[name] = _document(command, {"type": "array", "items": _object(fields)}, fields)
    return {name: f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n" for name, schema in found.items()}


def _document(command: str, shape: Schema, fields: Sequence[Field]) -> Schema:
    definitions = {record.name: _definition(record) for record in _records(fields) if record.name}
    title = f"What `precedent {command} --json` prints"
    return {"$schema": DRAFT, "title": title, **shape, **({"$defs": definitions} if definitions else {})}


def _records(fields: Iterable[Field]) -> Iterator[Record]:
    """The types of these fields that have fields themselves, and of those."""
    for field in fields:
        if isinstance(field.type, Record):
            yield from (field.type, *_records(field.type.fields))


def _definition(record: Record) -> Schema:
    return ({"description": record.description} if record.description else {}) | _object(record.fields)


def _object(fields: Iterable[Field]) -> Schema:
    properties = {field.name: _property(field) for field in fields}
    return {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if field.is_required],
    }


def _property(field: Field) -> Schema:
    described = {"description": field.description}
    if isinstance(field.type, Scalar):
        return described | field.type.published
    item = {"$ref": f"#/$defs/{field.type.name}"} if field.type.name else _object(field.type.fields)
    return described | {"type": "array", "items": item, **dict(field.type.limits)} if field.type.is_list else item


def fields_table() -> str:
    """The fields of a hit of a search, with those of the objects in it, as a table."""
    return table(("field", "is", "example"), list(_rows(LISTS["search"][1])))


def _rows(fields: Iterable[Field], before: str = "") -> Iterator[tuple[str, ...]]:
    for field in fields:
        name = f"{before}{field.name}"
        example = "" if isinstance(field.type, Record) else f"`{json.dumps(field.example, ensure_ascii=False)}`"
        yield f"`{name}`", field.description, example
        if isinstance(field.type, Record) and field.type is not _LINKED:
            yield from _rows(field.type.fields, f"{name}[]." if field.type.is_list else f"{name}.")
