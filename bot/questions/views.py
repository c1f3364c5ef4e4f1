"""Threads as rows of data, as lines, and in a few words. One description defines a row's fields and their schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.comment.clean_text import one_line, quoted
from bot.domain.card import Card, CardId, MessageHit, Passage, Ruling, SessionHit, SessionOutline, SessionPassage
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.roles import PARTICIPANT, role_word
from bot.questions.addresses import message_url, superseding_url, url_of
from bot.reading.analyzer import token_terms, tokens

if TYPE_CHECKING:
    from bot.questions.related import Neighbour, RelatedAnswer
    from bot.questions.requests import Cards
    from bot.questions.search import ThreadHits
    from bot.questions.smart_search import RankedThread
    from bot.questions.work import WorkAnswer

Row = dict[str, Any]
Schema = dict[str, Any]

MAX_TITLE, MAX_TEXT = 300, 1_000
MAX_LIST = 20
MAX_WORDS = 6
COMMIT_LENGTH = 10
"""Characters of a commit's id that identify it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMMIT_ID = re.compile(r"[0-9a-f]{7,64}", re.ASCII | re.IGNORECASE)


def ending(card: Card) -> str:
    """State and ending in a few words: ``closed, fixed by #50 in v2.3.0``."""
    if not card.kind.traits.has_state:
        return card.kind.traits.noun
    facts = [card.state if card.kind.traits.is_listed else f"{card.state} {card.kind}"]
    if card.duplicate_of is not None:
        facts.append(f"duplicate of {citation(card.duplicate_of)}")
    elif card.ending.kind != OutcomeKind.UNKNOWN:
        facts.append(outcome_phrase(card.ending.kind, card.ending.fix, card.ending.release))
    elif card.state_reason == "not_planned":
        facts.append("not planned")
    return one_line(", ".join(facts))


def outcome_phrase(kind: str, fix: str | None, release: str | None) -> str:
    """How something ended: ``fixed by #50 in v2.3.0``; ``kind`` is a value of `bot.domain.thread.OutcomeKind`."""
    by = f" by {_short_fix(fix)}" if fix else ""
    return f"{kind}{by}{f' in {release}' if release else ''}"


def _short_fix(fix: str) -> str:
    """A commit with a short id, also one of another repository (``owner/name@SHA``); any other reference unchanged."""
    repository, separator, sha = fix.rpartition("@")
    return f"{repository}{separator}{sha[:COMMIT_LENGTH]}" if COMMIT_ID.fullmatch(sha) else fix


def gist(card: Card) -> str:
    """One sentence from the thread: its newest decision in force, else how it ended, else the first answer."""
    standing = [ruling for ruling in card.decisions if not ruling.superseded_by]
    return decision_line(card, standing[-1]) if standing else one_line(card.ending.quote or card.summary)


def decision_line(card: Card, ruling: Ruling, home: str = "") -> str:
    """A decision with who said it, in what role and when, and what became of it, on one line.

    ``hubot (maintainer), 2025-05-03: “We decided …”``
    """
    passage = Passage(card.id, ruling.author, ruling.role, ruling.at, ruling.text, ruling.comment_id, card.kind)
    return "; ".join(filter(None, (quote_line(passage), decision_note(card, ruling, home))))


def decision_note(card: Card, ruling: Ruling, home: str = "") -> str:
    """What became of a decision: ``superseded by #51``, or of a proposal: ``proposed, and done in #17``."""
    if later := superseding_url(card, ruling, home):
        return f"superseded by {one_line(later)}"
    if not ruling.is_proposal:
        return ""
    is_known = ruling.done_in and ruling.done_in == card.ending.fix
    return f"proposed, and done in {_short_fix(one_line(ruling.done_in))}" if is_known else "proposed, and done"


def match_reasons(matched_terms: Sequence[str], query: str) -> list[str]:
    """The reason for a hit: the terms of the query that the thread holds, as the query spells them; [] for none."""
    spellings = {term: token for token in reversed(list(tokens(query))) for term in token_terms(token)}
    words = list(dict.fromkeys(spellings[term] for term in matched_terms if term in spellings))
    return [f"holds {', '.join(words[:MAX_WORDS])}"] if words else []


def citation(key: CardId) -> str:
    """How a sentence refers to the thread: ``#42``, or its text."""
    return f"#{key}" if isinstance(key, int) else key


def attribution(passage: Passage) -> str:
    """Who said it, in what role, and on what day: ``hubot (maintainer), 2025-05-03``."""
    role_name = role_word(passage.role)
    role = "" if role_name == PARTICIPANT else f" ({role_name})"
    return one_line(f"{passage.author}{role}{f', {passage.at:%Y-%m-%d}' if passage.at else ''}")


def quote_line(passage: Passage | None) -> str:
    """Who said what; "" for None."""
    if passage is None:
        return ""
    return f"{attribution(passage)}: {quoted(passage.text)}" if passage.text else attribution(passage)


def quote_rows(passage: Passage | None, home: str) -> list[Row]:
    """The passages of a hit: one at most."""
    return [row_of(PASSAGE_FIELDS, passage, home)] if passage else []


def search_scope(cards: Cards) -> str:
    """What a search looked through: ``517 threads and 2,113 messages searched``."""
    threads = f"{cards.size:,} thread{'s' * (cards.size != 1)}"
    if not cards.messages:
        return f"{threads} searched, without their comments"
    return f"{threads} and {cards.messages:,} messages searched"


def row_stamp(moment: datetime | None) -> str:
    """A moment in UTC, as GitHub writes it; "" for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


class Field(NamedTuple):
    """A field of a row: its name, the JSON Schema of its values, and how it is read.

    ``read`` takes the object that the row shows and the address of its repository; None reads the attribute ``name``.
    """

    name: str
    schema: Schema
    read: Callable[[Any, str], Any] | None = None


def describe(description: str, schema: Schema) -> Schema:
    """The schema with a description."""
    return schema | {"description": description}


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def record(**fields: Schema) -> Schema:
    """The schema of an object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def one_of(values: Iterable[str]) -> str:
    """These values as a phrase: ``open, closed or all``."""
    *most, last = values
    return f"{', '.join(most)} or {last}"


def schema_of(fields: Iterable[Field], **before: Schema) -> Schema:
    """The schema of a row with these fields after those in ``before``."""
    return record(**before, **{field.name: field.schema for field in fields})


def row_of(fields: Iterable[Field], source: object, home: str = "") -> Row:
    """The row with these fields of ``one``."""
    return {name: read(source, home) if read else getattr(source, name) for name, _, read in fields}


TEXT: Schema = {"type": "string"}
TEXTS = list_of(TEXT)
COUNT: Schema = {"type": "integer", "minimum": 0}
SCORE: Schema = {"type": "number", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
KEY: Schema = {"type": ["integer", "string"]}
TIME = describe("ISO 8601, empty if unknown", TEXT)

DECISION_FIELDS = (
    Field("text", TEXT, lambda ruling, _: ruling.text[:MAX_TEXT]),
    Field("author", TEXT),
    Field("role", TEXT),
    Field("at", TIME, lambda ruling, _: row_stamp(ruling.at)),
    Field("superseded_by", describe("the address of what supersedes it, empty if nothing does", TEXT)),
    Field("is_proposal", describe("a maintainer's proposal in a thread that was then closed as completed", FLAG)),
    Field("done_in", describe("the change that did what was proposed: #N or a commit, empty if unknown", TEXT)),
)
OUTCOME_FIELDS = (
    Field(
        "kind",
        describe(one_of(OutcomeKind), TEXT),
        lambda card, _: card.ending.kind,
    ),
    Field("fix", describe("what fixed it: #N or a commit", TEXT), lambda card, _: card.ending.fix),
    Field(
        "release",
        describe("the first release with the fix, in the words of the thread", TEXT),
        lambda card, _: card.ending.release,
    ),
    Field("duplicate_of", {"type": ["integer", "string", "null"]}),
    Field("quote", describe("the sentence that says so", TEXT), lambda card, _: card.ending.quote[:MAX_TEXT]),
    Field("author", TEXT, lambda card, _: card.ending.author),
    Field("role", TEXT, lambda card, _: card.ending.role),
    Field("at", TIME, lambda card, _: row_stamp(card.ending.at)),
)
THREAD_FIELDS = (
    Field("id", describe("a number, or the name of a page or session", KEY)),
    Field("cite", describe("how to cite it", TEXT), lambda card, _: citation(card.id)),
    Field("kind", {"enum": [kind.value for kind in Kind]}),
    Field("state", {"enum": ["open", "closed"]}),
    Field("state_reason", TEXT),
    Field("url", describe("its address, empty if unknown", TEXT), url_of),
    Field("author", TEXT),
    Field("created_at", TIME, lambda card, _: row_stamp(card.created_at)),
    Field("updated_at", TIME, lambda card, _: row_stamp(card.updated_at)),
    Field("closed_at", TIME, lambda card, _: row_stamp(card.closed_at)),
    Field("messages", COUNT, lambda card, _: card.turn_count),
    Field("labels", TEXTS, lambda card, _: _truncate_all(card.labels)),
    Field("title", TEXT, lambda card, _: card.title[:MAX_TITLE]),
    Field("summary", TEXT, lambda card, _: card.summary[:MAX_TEXT]),
    Field(
        "decisions",
        list_of(schema_of(DECISION_FIELDS)),
        lambda card, home: [_decision_row(card, each, home) for each in card.decisions[:MAX_LIST]],
    ),
    Field("files", TEXTS, lambda card, _: _truncate_all(card.files)),
    Field("outcome", schema_of(OUTCOME_FIELDS), lambda card, _: row_of(OUTCOME_FIELDS, card)),
)
"""A thread without its conversation, read from its `Card`."""

SESSION_PASSAGE_FIELDS = (
    Field("score", SCORE, lambda one, _: round(one.score, 2)),
    Field("type", {"enum": ["user", "assistant"]}),
    Field("content", TEXT, lambda one, _: one.text),
    Field("timestamp", TIME, lambda one, _: row_stamp(one.at)),
    Field("session_id", describe("read it with get_conversation", TEXT), lambda one, _: one.session),
    Field("path", TEXT),
)
"""A message of a session, read from its `SessionPassage`."""

SESSION_FIELDS = (
    Field("id", describe("read it with get_conversation", TEXT)),
    Field("title", describe("the first line of the first prompt", TEXT), lambda one, _: one.title[:MAX_TITLE]),
    Field("begun_at", TIME, lambda one, _: row_stamp(one.begun)),
    Field("ended_at", TIME, lambda one, _: row_stamp(one.ended)),
    Field("messages", COUNT, lambda one, _: one.turn_count),
    Field("why", describe("why it is listed", TEXTS), lambda one, _: list(one.why)),
    Field("path", describe("the transcript", TEXT)),
)
"""A session without its messages, read from its `SessionOutline`."""

PASSAGE_FIELDS = (
    Field("author", TEXT),
    Field("role", describe("of the author, as GitHub reports it", TEXT)),
    Field("at", TIME, lambda one, _: row_stamp(one.at)),
    Field("text", describe("one or two sentences, empty if not available", TEXT)),
    Field(
        "url",
        describe("the address of the comment, empty if unknown", TEXT),
        message_url,
    ),
)
"""What was said about the words of a search, read from its `Passage`."""

MESSAGE_FIELDS = (
    Field("author", TEXT),
    Field("role", TEXT),
    Field("at", TIME, lambda one, _: row_stamp(one.created_at)),
    Field("text", TEXT),
    Field("cut", describe("its end was left out", FLAG), lambda *_: False),
)
"""A message of a thread, read from its `bot.domain.thread.Message`."""

RELATED_FIELDS = (
    Field("id", KEY, lambda each, _: each.match.id),
    Field("cite", TEXT, lambda each, _: citation(each.match.id)),
    Field("how", {"enum": ["mentioned", "seen before", "open now"]}),
    Field("state", TEXT, lambda each, _: each.match.state),
    Field("similarity", SCORE, lambda each, _: round(each.similarity, 2)),
    Field("outcome", TEXT, lambda each, _: each.match.outcome.kind.value),
    Field("fix", TEXT, lambda each, _: each.match.fix.ref if each.match.fix else each.match.outcome.fix or ""),
    Field("title", TEXT, lambda each, _: each.match.title[:MAX_TITLE]),
    Field("why", TEXTS, lambda each, _: list(each.why)),
)
"""A thread in an answer about an issue, read from its `bot.questions.issue.RelatedThread`."""

PAGE_FIELDS = (Field("title", TEXT), Field("url", TEXT), Field("similarity", SCORE))
"""A page that answers an issue, read from its `bot.domain.answer.PageHit`."""


def _decision_row(card: Card, ruling: Ruling, home: str) -> Row:
    return row_of(DECISION_FIELDS, ruling) | {"superseded_by": superseding_url(card, ruling, home)}


def _truncate_all(texts: Sequence[str]) -> list[str]:
    return [text[:MAX_TITLE] for text in texts[:MAX_LIST]]


Shape = Callable[..., Row]
"""`short_row` or `full_row`."""


_LINK_PHRASES = {
    ("reference", "to"): "{0} refers to it",
    ("reference", "from"): "it refers to {0}",
    ("duplicate", "to"): "{0} is a duplicate of it",
    ("duplicate", "from"): "it is a duplicate of {0}",
    ("fix", "to"): "{0} was fixed by it",
    ("fix", "from"): "it was fixed by {0}",
}


def link_sentence(neighbour: Neighbour) -> str:
    """How a thread is linked to its hit."""
    return _LINK_PHRASES[neighbour.kind, neighbour.direction].format(citation(neighbour.hit))


def short_row(card: Card, home: str, **fields: Any) -> Row:
    """A thread without its conversation, after the given ``fields``. ``home``: its repository's address or ""."""
    return fields | row_of(THREAD_FIELDS, card, home)


def full_row(card: Card, home: str, **fields: Any) -> Row:
    """A `short_row` whose decisions have addresses, "" where those are not known."""
    row = short_row(card, home, **fields)
    for decision, ruling in zip(row["decisions"], card.decisions, strict=False):
        is_comment = row["url"] and ruling.comment_id
        decision["url"] = (
            f"{row['url']}{card.kind.traits.comment_path}{ruling.comment_id}" if is_comment else row["url"]
        )
    return row


def ranked_rows(ranked: Iterable[RankedThread], home: str, shape: Shape = short_row) -> list[Row]:
    """Threads, each with the reasons for showing it."""
    return [shape(thread.card, home, why=list(thread.why)) for thread in ranked]


def work_rows(work: WorkAnswer, home: str, shape: Shape = short_row) -> dict[str, list[Row]]:
    """The threads that matter for the work at hand, by section, and the sessions on it."""
    rows = {name: ranked_rows(getattr(work, name), home, shape) for name in WORK_SECTIONS}
    return rows | {SESSIONS_SECTION: session_rows(work.sessions)}


def linked_rows(neighbours: Iterable[Neighbour], home: str, shape: Shape = short_row) -> list[Row]:
    """The threads one link away from some hits, each with its hit and the kind of link."""
    return [shape(each.card, home, why=[link_sentence(each)], of=each.hit, link=each.kind) for each in neighbours]


def passage_row(one: SessionPassage) -> Row:
    return row_of(SESSION_PASSAGE_FIELDS, one)


def session_rows(sessions: Iterable[SessionOutline]) -> list[Row]:
    return [row_of(SESSION_FIELDS, session) for session in sessions]


def session_facts(row: Row) -> str:
    """A session of `session_rows` in a few words: day, messages, why it is listed."""
    day = [row["ended_at"][:10]] if row["ended_at"] else []
    return ", ".join([*day, f"{row['messages']:,} message{'s' * (row['messages'] != 1)}", *row["why"]])


def session_card(session: SessionOutline) -> Card:
    """A session as a thread in a list."""
    begun, ended = session.begun or _EPOCH, session.ended or _EPOCH
    return Card(
        id=session.id, kind=Kind.SESSION, title=session.title, state="open", author="human",
        created_at=begun, updated_at=ended, turn_count=session.turn_count, files=session.files,
    )  # fmt: skip


def session_hit_row(hit: SessionHit) -> Row:
    """A session that a search found, with its best message as ``passages``."""
    passage = hit.passage
    quote = {"author": passage.type, "role": "", "at": row_stamp(passage.at), "text": passage.text, "url": ""}
    facts = {
        "score": round(passage.score, 4),
        "part": round(passage.part, 4),
        "why": [*hit.outline.why, _speaker_note(passage)],
        "passages": [quote],
    }
    return full_row(session_card(hit.outline), "", **facts)


def session_item(hit: SessionHit) -> Item:
    passage = hit.passage
    why = (*hit.outline.why, _speaker_note(passage))
    return Item(session_card(hit.outline), "", passage.score or None, why, decision=passage.text)


def _speaker_note(passage: SessionPassage) -> str:
    speaker = "the assistant" if passage.type == "assistant" else "a person"
    return f"said by {speaker}{f' on {passage.at:%Y-%m-%d}' if passage.at else ''}"


class Item(NamedTuple):
    """A thread in a list. ``words`` of the search are highlighted in its title; ``decision`` is the decision to show,
    if any; ``passage`` says in one line who said what about the words, and when."""

    card: Card
    url: str
    score: float | None = None
    why: tuple[str, ...] = ()
    words: str = ""
    decision: str = ""
    passage: str = ""


class ItemSection(NamedTuple):
    """Threads below a heading; for programs, ``name`` precedes each of them."""

    name: str
    title: str
    items: Sequence[Item]


def ranked_item(thread: RankedThread, home: str, words: str = "", passage: Passage | None = None) -> Item:
    line = _passage_line(thread.card, thread.message, passage)
    return Item(thread.card, url_of(thread.card, home), thread.score or None, thread.why, words, passage=line)


def _passage_line(card: Card, message: MessageHit | None, passage: Passage | None) -> str:
    """The passage as a line; "" if it is from the opening text and the thread has a decision, ending or answer."""
    is_opening = message is not None and message.position == 0
    return "" if is_opening and gist(card) else quote_line(passage)


def decision_item(thread: RankedThread, home: str) -> Item:
    return ranked_item(thread, home)._replace(decision=decision_line(thread.card, thread.card.decisions[0], home))


def hit_items(hits: ThreadHits, words: str, home: str) -> list[ItemSection]:
    """The hits of a search, and the threads one link away."""
    found = [
        Item(
            hit.card,
            url_of(hit.card, home),
            hit.score,
            words=words,
            passage=_passage_line(hit.card, hit.message, hits.passages.get(hit.card.id)),
        )
        for hit in hits.hits
    ]
    linked = [Item(each.card, url_of(each.card, home), why=(link_sentence(each),)) for each in hits.linked]
    return [ItemSection("hit", "Found", found), ItemSection("linked", "One link away", linked)]


class WorkSection(NamedTuple):
    """A section of `bot.questions.work.WorkAnswer`: its name in lines, its titles for people and for agents, and a
    description. ``item`` turns a thread into an entry."""

    name: str
    title: str
    title_for_agents: str
    description: str
    item: Callable[[RankedThread, str], Item] = ranked_item


WORK_SECTIONS = {
    "related": WorkSection(
        "related", "Related to this branch", "Related to the branch", "threads related to the branch"
    ),
    "decisions": WorkSection(
        "decision",
        "Decided about its files",
        "Decided about the files at hand",
        "decided about the files at hand",
        decision_item,
    ),
    "tasks": WorkSection(
        "task", "Open tasks", "Open tasks", "open issues near them; if there are none, those of the project"
    ),
    "pulls": WorkSection("pull", "Open pull requests", "Open pull requests", "open ones on those files or issues"),
    "recent": WorkSection(
        "recent", "Decided last", "Decided last, about anything", "decided last, about anything", decision_item
    ),
}


SESSIONS_SECTION, SESSIONS_TITLE = "sessions", "Agents' sessions on it"
"""The section of a `WorkAnswer` with sessions, and its title."""


def work_items(work: WorkAnswer, home: str) -> list[ItemSection]:
    """The sections of `work_rows` as lists."""
    sessions = [Item(session_card(one), "", why=one.why) for one in work.sessions]
    return [
        *(
            ItemSection(section.name, section.title, [section.item(one, home) for one in getattr(work, field)])
            for field, section in WORK_SECTIONS.items()
        ),
        ItemSection("session", SESSIONS_TITLE, sessions),
    ]


def related_rows(answer: RelatedAnswer, home: str) -> dict[str, list[Row]]:
    """The threads that name some files and the decisions made there, with addresses."""
    return {name: ranked_rows(getattr(answer, name), home, full_row) for name in ("threads", "decisions", "pulls")}


def related_items(answer: RelatedAnswer, home: str) -> list[ItemSection]:
    """The sections of `related_rows` as lists."""
    return [
        ItemSection("thread", "Threads that name them", [ranked_item(thread, home) for thread in answer.threads]),
        ItemSection("decision", "Decided there", [decision_item(thread, home) for thread in answer.decisions]),
        ItemSection("pull", WORK_SECTIONS["pulls"].title, [ranked_item(thread, home) for thread in answer.pulls]),
    ]


def cells_of(item: Item) -> list[object]:
    """A thread as a line of `COLUMNS`; without reasons and decision it ends with the title."""
    score = "" if item.score is None else f"{item.score:.2f}"
    kind = item.card.kind.traits
    state = item.card.state if kind.has_state else kind.noun
    return [item.card.id, state, score, item.card.title, *filter(None, ("; ".join(item.why), item.decision))]


COLUMNS = "id\tstate\tscore\ttitle\treasons\tdecision"
