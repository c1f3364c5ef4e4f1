"""The fields of every row that an answer shows: name, type, description, example, and how each is read.

JSON, the published schemas (docs/schemas), the schemas of the tools for agents, labelled lines of text and the table in
docs/asking.md are made from them. A field that is added here is in all of these; `make docs` writes the last two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bot.domain.card import Card, CardId, Passage, Ruling
from bot.domain.kinds import Kind, OutcomeKind
from bot.questions.addresses import citation, message_url, superseding_url, url_of
from bot.reading.analyzer import token_terms, tokens

Row = dict[str, Any]
Schema = dict[str, Any]

MAX_TITLE, MAX_TEXT = 300, 1_000
MAX_LIST = 20
MAX_WORDS = 6


class Scalar(NamedTuple):
    """The type of a value: its JSON Schema in docs/schemas, and in the schemas that agents get."""

    published: Schema
    agents: Schema
    is_score: bool = False


class Record(NamedTuple):
    """The type of an object with these fields, or of a list of them. Published schemas define it once by its ``name``,
    "" for one that they write where it is used. ``limits`` are further keywords of the list."""

    name: str
    fields: tuple[Field, ...]
    is_list: bool = True
    description: str = ""
    limits: tuple[tuple[str, int], ...] = ()


class Field(NamedTuple):
    """A field of a row.

    ``read`` takes the object that the row shows and the address of its repository; None reads the attribute ``name``.
    ``brief`` is the description for agents, who read all of them at every start: "" if the name says it. Agents do not
    get a field without ``agents``. ``label`` stands before the value in text; "" if text has a form of its own for it.
    ``is_required``: programs may rely on it in every row.
    """

    name: str
    type: Scalar | Record
    description: str
    read: Callable[[Any, str], Any] | None = None
    brief: str = ""
    example: object = None
    label: str = ""
    agents: bool = True
    is_required: bool = True


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _scalar(**schema: Any) -> Scalar:
    return Scalar(schema, schema)


TEXT = _scalar(type="string")
TEXTS = _scalar(**list_of(TEXT.published))
COUNT = _scalar(type="integer", minimum=0)
FLAG = _scalar(type="boolean")
KEY = _scalar(type=["integer", "string"])
KEY_OR_NULL = _scalar(type=["integer", "string", "null"])
SIMILARITY = _scalar(type="number", minimum=0)
SCORE = SIMILARITY._replace(is_score=True)
PART = _scalar(type="number", minimum=0.5, maximum=1)._replace(is_score=True)
TIME = Scalar(
    TEXT.published | {"pattern": r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?$"},
    TEXT.agents | {"description": "ISO 8601, empty if unknown"},
)
KIND = Scalar({"$ref": "kinds.v1.json#/$defs/kind"}, {"enum": [kind.value for kind in Kind]})
ENDING = Scalar({"$ref": "kinds.v1.json#/$defs/outcome_kind"}, TEXT.agents)
STATE = _scalar(enum=["open", "closed"])
MESSAGES = Scalar(COUNT.published | {"minimum": 1}, COUNT.agents)


class Item(NamedTuple):
    """A thread in an answer, from which its row and its text are made.

    ``words`` of the search are highlighted in its title, ``terms`` are those of them that it holds; ``decision`` is the
    decision to show, if any; ``passage`` is what was said about the words, which a list ``hides`` if the thread has
    something better to say. ``hit`` and ``link`` say what the thread is linked to, and how; ``id`` is its name in its
    ``repository``, if that is another one.
    """

    card: Card
    url: str = ""
    score: float | None = None
    why: tuple[str, ...] = ()
    words: str = ""
    terms: tuple[str, ...] = ()
    decision: str = ""
    passage: Passage | None = None
    hides: bool = False
    part: float = 1.0
    hit: CardId | None = None
    link: str = ""
    repository: str = ""
    id: CardId | None = None


def item_of(card: Card, home: str, why: tuple[str, ...] = ()) -> Item:
    """The thread with its address; ``home`` is that of its repository, or ""."""
    return Item(card, url_of(card, home), why=why)


class _Decided(NamedTuple):
    """A decision of a thread, with the thread and its address."""

    ruling: Ruling
    card: Card
    url: str

    @property
    def address(self) -> str:
        """That of the comment that says it, else of the thread; "" if unknown."""
        comment = self.ruling.comment_id
        return f"{self.url}{self.card.kind.traits.comment_path}{comment}" if self.url and comment else self.url


def row_stamp(moment: datetime | None) -> str:
    """A moment in UTC, as GitHub writes it; "" for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def match_reasons(matched_terms: Sequence[str], query: str) -> list[str]:
    """The reason for a hit: the terms of the query that the thread holds, as the query spells them; [] for none."""
    spellings = {term: token for token in reversed(list(tokens(query))) for term in token_terms(token)}
    words = list(dict.fromkeys(spellings[term] for term in matched_terms if term in spellings))
    return [f"holds {', '.join(words[:MAX_WORDS])}"] if words else []


def _first(texts: Sequence[str]) -> list[str]:
    return [text[:MAX_TITLE] for text in texts[:MAX_LIST]]


_WRITTEN = "when it was written (UTC), empty where it is not known"
_ROLE = "what its author is to the repository"

DECISION = Record(
    "decision",
    (
        Field(
            "text", TEXT, "a sentence that states a decision", lambda one, _: one.ruling.text[:MAX_TEXT],
            example="We keep sessions in PostgreSQL.",
        ),
        Field("author", TEXT, "who wrote it", lambda one, _: one.ruling.author, example="octocat"),
        Field(
            "role", TEXT, f"{_ROLE}, as GitHub calls it: OWNER, MEMBER, NONE, …", lambda one, _: one.ruling.role,
            example="OWNER",
        ),
        Field("at", TIME, _WRITTEN, lambda one, _: row_stamp(one.ruling.at), example="2025-07-22T09:12:00Z"),
        Field(
            "superseded_by", TEXT,
            "the address of what a later statement puts in its place, a reference where the address is not known; "
            "empty if it stands",
            lambda one, home: superseding_url(one.card, one.ruling, home),
            "the address of what supersedes it, empty if nothing does", "#51",
        ),
        Field(
            "is_proposal", FLAG,
            "whether a maintainer only proposed it, in a thread that was then closed as completed",
            lambda one, _: one.ruling.is_proposal,
            "a maintainer's proposal in a thread that was then closed as completed", example=False,
        ),
        Field(
            "done_in", TEXT, "the change that did what was proposed: #N or a commit; empty where it is not known",
            lambda one, _: one.ruling.done_in,
            "the change that did what was proposed: #N or a commit, empty if unknown", "#17",
        ),
        Field(
            "url", TEXT, "the comment that says it, else the thread; empty where the address is not known",
            lambda one, _: one.address, example="https://github.com/octo-org/linkbarn/issues/14#issuecomment-99",
            agents=False,
        ),
    ),
)  # fmt: skip
"""What was decided in a thread."""

OUTCOME = Record(
    "outcome",
    (
        Field(
            "kind", ENDING, "how the thread ended", lambda card, _: card.ending.kind,
            f"{', '.join([*OutcomeKind][:-1])} or {[*OutcomeKind][-1]}", "fixed",
        ),
        Field(
            "fix", TEXT, "what fixed it: #N or a commit; empty where nobody said", lambda card, _: card.ending.fix,
            "what fixed it: #N or a commit", "#50",
        ),
        Field(
            "release", TEXT, "the first version with the fix, empty where nobody said",
            lambda card, _: card.ending.release, "the first release with the fix, in the words of the thread", "v2.3.0",
        ),
        Field(
            "duplicate_of", KEY_OR_NULL, "the thread that it is a duplicate of, else null",
            lambda card, _: card.duplicate_of, example=12,
        ),
        Field(
            "quote", TEXT, "the sentence that says how it ended, empty if there is none",
            lambda card, _: card.ending.quote[:MAX_TEXT], "the sentence that says so", "Fixed by #50 in v2.3.0.",
        ),
        Field("author", TEXT, "who wrote it", lambda card, _: card.ending.author, example="octocat"),
        Field("role", TEXT, _ROLE, lambda card, _: card.ending.role, example="OWNER"),
        Field("at", TIME, _WRITTEN, lambda card, _: row_stamp(card.ending.at), example="2025-05-14T10:00:00Z"),
    ),
    is_list=False,
)  # fmt: skip
"""How a thread ended, read from its `Card`."""

THREAD_FIELDS = (
    Field(
        "id", KEY, "a number, or the text that names a page or session",
        lambda item, _: item.card.id if item.id is None else item.id,
        "a number, or the name of a page or session", 51,
    ),
    Field(
        "cite", TEXT, "how it is called in a sentence: #42", lambda item, _: citation(item.card.id), "how to cite it",
        "#51",
    ),
    Field("kind", KIND, "what it is", lambda item, _: item.card.kind, example="issue"),
    Field("state", STATE, "whether it is closed", lambda item, _: item.card.state, example="open"),
    Field(
        "state_reason", TEXT, "as GitHub has it: completed, not_planned, reopened, duplicate, or empty",
        lambda item, _: item.card.state_reason, example="completed",
    ),
    Field(
        "url", TEXT, "where people read it, empty where that is not known, as in a store", lambda item, _: item.url,
        "its address, empty if unknown", "https://github.com/octo-org/linkbarn/issues/51",
    ),
    Field("author", TEXT, "who opened it", lambda item, _: item.card.author, example="hubot"),
    Field(
        "created_at", TIME, "when it was opened (UTC), empty where it is not known",
        lambda item, _: row_stamp(item.card.created_at), example="2026-05-09T20:52:00Z",
    ),
    Field(
        "updated_at", TIME, "when it last changed (UTC), empty where it is not known",
        lambda item, _: row_stamp(item.card.updated_at), example="2026-08-14T19:11:00Z",
    ),
    Field(
        "closed_at", TIME, "when it was closed (UTC), empty where it is not known",
        lambda item, _: row_stamp(item.card.closed_at), example="2026-08-14T19:11:00Z",
    ),
    Field(
        "messages", MESSAGES, "the opening text and its comments", lambda item, _: item.card.turn_count, example=5
    ),
    Field("labels", TEXTS, "its labels", lambda item, _: _first(item.card.labels), example=["bug"]),
    Field(
        "title", TEXT, f"at most {MAX_TITLE} characters of it", lambda item, _: item.card.title[:MAX_TITLE],
        example="Session lost behind a proxy",
    ),
    Field(
        "summary", TEXT,
        f"the beginning of the first answer, else of the opening text; at most {MAX_TEXT:,} characters",
        lambda item, _: item.card.summary[:MAX_TEXT], example="X-Forwarded-Proto is not read at all today.",
    ),
    Field(
        "decisions", DECISION, f"what was decided in it, at most {MAX_LIST}",
        lambda item, _: [_Decided(ruling, item.card, item.url) for ruling in item.card.decisions[:MAX_LIST]],
    ),
    Field(
        "files", TEXTS, f"files that it names, at most {MAX_LIST}", lambda item, _: _first(item.card.files),
        example=["linkbarn/auth/cookie.py"], label="files",
    ),
    Field("outcome", OUTCOME, "how it ended", lambda item, _: item.card),
)  # fmt: skip
"""A thread without its conversation, read from its `Item`."""

PASSAGE = Record(
    "passage",
    (
        Field("author", TEXT, "who said it", example="hubot"),
        Field(
            "role", TEXT, "the author's role, as GitHub has it", brief="of the author, as GitHub reports it",
            example="NONE",
        ),
        Field(
            "at", TIME, "when (UTC), empty where it is not known", lambda one, _: row_stamp(one.at),
            example="2026-05-09T20:52:00Z",
        ),
        Field(
            "text", TEXT, "one or two sentences of other people's words, empty if they are not at hand",
            brief="one or two sentences, empty if not available", example="The login holds for some minutes.",
        ),
        Field(
            "url", TEXT, "the address of the comment, empty where that is not known", message_url,
            "the address of the comment, empty if unknown",
            "https://github.com/octo-org/linkbarn/issues/51#issuecomment-7",
        ),
    ),
    description="what somebody said about the words of a search",
)  # fmt: skip
"""What was said about the words of a search, read from its `Passage`."""

REPOSITORY = Field(
    "repository", TEXT, "with --org, the repository of the thread: OWNER/NAME, or the name of its folder",
    brief="OWNER/NAME of the thread's repository; empty for this one", example="octo-org/sdk",
    is_required=False,
)  # fmt: skip
_SCORE = Field(
    "score", SCORE, "how well it fits; not comparable between searches", lambda item, _: item.score or 0.0,
    example=101.256,
)  # fmt: skip
_PART = Field("part", PART, "how much of the words it holds, by their rarity", example=1.0, agents=False)
_WHY = Field(
    "why", TEXTS, "why it is shown, in a few words each",
    lambda item, _: list(item.why) or match_reasons(item.terms, item.words),
    "why it was found", ["holds proxy, session"],
)  # fmt: skip
_PASSAGES = Field(
    "passages", PASSAGE, "what was said about the words: one passage, or none if only the title holds them",
    lambda item, _: [item.passage] if item.passage else [], "what was said about the words, by whom and when",
    is_required=False,
)  # fmt: skip
SEARCH_FIELDS = (_SCORE, _PART, _WHY, _PASSAGES, *THREAD_FIELDS)
"""A hit of a search by words."""

ORGANISATION_FIELDS = (REPOSITORY, *SEARCH_FIELDS)
"""A hit of a search in many repositories; agents get it for one repository, too."""

SMART_FIELDS = (_SCORE._replace(description="the number that it is ranked by"), _WHY, _PASSAGES, *THREAD_FIELDS)
SHOWN_FIELDS = (_WHY._replace(brief="why it is shown"), *THREAD_FIELDS)
"""A thread in a section of an answer."""

LINKED_FIELDS = (
    _WHY._replace(brief=""),
    Field("of", KEY, "the hit that it is linked with", lambda item, _: item.hit, "the hit that it is linked to", 48),
    Field("link", _scalar(enum=["reference", "duplicate", "fix"]), "what the link is", example="fix"),
    *THREAD_FIELDS,
)
"""A thread one link away from a hit."""

SESSION_PASSAGE_FIELDS = (
    Field("score", SCORE, _SCORE.description, lambda one, _: round(one.score, 2)),
    Field("type", _scalar(enum=["user", "assistant"]), "who speaks"),
    Field(
        "content", TEXT._replace(published=TEXT.published | {"maxLength": 500}),
        "at most 500 characters around the words", lambda one, _: one.text,
    ),
    Field("timestamp", TIME, "when it was said (UTC), empty where it is not known", lambda one, _: row_stamp(one.at)),
    Field(
        "session_id", TEXT, "the session; `precedent show` takes it", lambda one, _: one.session,
        "read it with get_conversation",
    ),
    Field("path", TEXT, "the file that it was read from"),
)  # fmt: skip
"""A message of a session, read from its `SessionPassage`."""

SESSION_FIELDS = (
    Field("id", TEXT, "the session; `precedent show` takes it", brief="read it with get_conversation"),
    Field(
        "title", TEXT, "the first line of the first prompt", lambda one, _: one.title[:MAX_TITLE],
        "the first line of the first prompt",
    ),
    Field("begun_at", TIME, "when it began (UTC), empty where it is not known", lambda one, _: row_stamp(one.begun)),
    Field(
        "ended_at", TIME, "when its last message was written (UTC), empty where it is not known",
        lambda one, _: row_stamp(one.ended),
    ),
    Field("messages", COUNT, "how many messages it has", lambda one, _: one.turn_count),
    Field("why", TEXTS, "why it is listed", lambda one, _: list(one.why), "why it is listed"),
    Field("path", TEXT, "the file that it was read from", brief="the transcript"),
)  # fmt: skip
"""A session without its messages, read from its `SessionOutline`."""

MESSAGE_FIELDS = (
    Field("author", TEXT, "who wrote it"),
    Field("role", TEXT, _ROLE),
    Field("at", TIME, _WRITTEN, lambda one, _: row_stamp(one.created_at)),
    Field("text", TEXT, "what it says"),
    Field("cut", FLAG, "whether its end was left out", lambda *_: False, "its end was left out"),
)
"""A message of a thread, read from its `bot.domain.thread.Message`."""

RELATED_FIELDS = (
    Field("id", KEY, "a number, or the name of a page or session", lambda each, _: each.match.id),
    Field("cite", TEXT, "how to cite it", lambda each, _: citation(each.match.id)),
    Field(
        "how", _scalar(enum=["mentioned", "seen before", "open now"]),
        "why it is there: the draft mentions it, or it is similar and closed, or similar and open",
    ),
    Field("state", TEXT, "open or closed", lambda each, _: each.match.state),
    Field(
        "similarity", SIMILARITY, "from 0 to 1; 1 for what the draft mentions",
        lambda each, _: round(each.similarity, 2),
    ),
    Field("outcome", ENDING, "how it ended", lambda each, _: each.match.outcome.kind.value),
    Field(
        "fix", TEXT, "what fixed it: #N or a commit; empty where it is not known",
        lambda each, _: each.match.fix.ref if each.match.fix else each.match.outcome.fix or "",
    ),
    Field("title", TEXT, "its title", lambda each, _: each.match.title[:MAX_TITLE]),
    Field("why", TEXTS, "the reasons for it", lambda each, _: list(each.why)),
)  # fmt: skip
"""A thread in an answer about an issue, read from its `bot.questions.issue.RelatedThread`."""

PAGE_FIELDS = (
    Field("title", TEXT, "the heading of the section"),
    Field("url", TEXT, "its address"),
    Field("similarity", SIMILARITY, "from 0 to 1"),
)
"""A page that answers an issue, read from its `bot.domain.answer.PageHit`."""


def row_of(fields: Iterable[Field], source: object, home: str = "", *, agents: bool = False) -> Row:
    """The row with these fields of ``source``; ``home`` is the address of its repository, or "". Scores of rows for
    ``agents`` have two decimals, others four."""
    return {field.name: _value(field, source, home, agents) for field in fields if field.agents or not agents}


def rows_of(fields: Iterable[Field], sources: Iterable[object], home: str = "", *, agents: bool = False) -> list[Row]:
    return [row_of(fields, source, home, agents=agents) for source in sources]


def _value(field: Field, source: object, home: str, agents: bool) -> Any:
    value = field.read(source, home) if field.read else getattr(source, field.name)
    if isinstance(field.type, Scalar):
        return round(value, 2 if agents else 4) if field.type.is_score else value
    if field.type.is_list:
        return rows_of(field.type.fields, value, home, agents=agents)
    return row_of(field.type.fields, value, home, agents=agents)


def agent_schema(fields: Iterable[Field]) -> Schema:
    """The JSON Schema of a row for agents."""
    return record(**{field.name: _agent_type(field) for field in fields if field.agents})


def record(**properties: Schema) -> Schema:
    """The schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _agent_type(field: Field) -> Schema:
    if isinstance(field.type, Scalar):
        schema = field.type.agents
    else:
        schema = agent_schema(field.type.fields)
        schema = list_of(schema) if field.type.is_list else schema
    return schema | {"description": field.brief} if field.brief else schema


def labelled_texts(row: Row, most: int = MAX_LIST) -> list[tuple[str, str]]:
    """The labels and values of the fields that text shows as they are, at most ``most`` of a list; those without a
    value are left out."""
    labelled = [(field.label, row[field.name]) for field in THREAD_FIELDS if field.label and row[field.name]]
    return [(label, ", ".join(value[:most]) if isinstance(value, list) else str(value)) for label, value in labelled]
