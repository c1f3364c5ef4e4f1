"""Threads in the sections of an answer, as lines, and in a few words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from bot.comment.clean_text import one_line, quoted
from bot.domain.card import Card, MessageHit, Passage, Ruling, SessionHit, SessionOutline, SessionPassage
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.roles import PARTICIPANT, role_word
from bot.questions.addresses import citation, superseding_url
from bot.questions.fields import (
    SEARCH_FIELDS,
    SESSION_FIELDS,
    SESSION_PASSAGE_FIELDS,
    SHOWN_FIELDS,
    SMART_FIELDS,
    Field,
    Item,
    Row,
    item_of,
    rows_of,
)

if TYPE_CHECKING:
    from bot.questions.related import Neighbour
    from bot.questions.requests import Cards, WorkRequest
    from bot.questions.search import ThreadHits
    from bot.questions.smart_search import RankedThread
    from bot.questions.work import WorkAnswer

COMMIT_LENGTH = 10
"""Characters of a commit's id that identify it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMMIT_ID = re.compile(r"[0-9a-f]{7,64}", re.ASCII | re.IGNORECASE)


def ending(card: Card) -> str:
    """State and ending in a few words: ``closed, fixed by #50 in v2.3.0``."""
    if not card.kind.is_on_github:
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
    """One sentence from the thread, with who said it: its newest decision in force, else how it ended, else the first
    answer."""
    standing = [ruling for ruling in card.decisions if not ruling.superseded_by]
    if standing:
        return decision_line(card, standing[-1])
    said = card.ending
    if said.quote:
        return quote_line(Passage(card.id, said.author, said.role, said.at, said.quote, said.comment_id, card.kind))
    return quote_line(Passage(card.id, card.summary_by, "", None, card.summary)) if card.summary else ""


def decision_line(card: Card, ruling: Ruling, home: str = "") -> str:
    """A decision with who said it, in what role and when, and what became of it, on one line.

    ``hubot (maintainer), 2025-05-03: “We decided …”``
    """
    return "; ".join(filter(None, (quote_line(decision_passage(card, ruling)), decision_note(card, ruling, home))))


def decision_passage(card: Card, ruling: Ruling) -> Passage:
    """The words of a decision, with who said them and where."""
    return Passage(card.id, ruling.author, ruling.role, ruling.at, ruling.text, ruling.comment_id, card.kind)


def decision_note(card: Card, ruling: Ruling, home: str = "") -> str:
    """What became of a decision: ``superseded by #51``, or of a proposal: ``proposed, and done in #17``."""
    if later := superseding_url(card, ruling, home):
        return f"superseded by {one_line(later)}"
    if not ruling.is_proposal:
        return ""
    is_known = ruling.done_in and ruling.done_in == card.ending.fix
    return f"proposed, and done in {_short_fix(one_line(ruling.done_in))}" if is_known else "proposed, and done"


def attribution(passage: Passage) -> str:
    """Who said it, in what role, and on what day: ``hubot (maintainer), 2025-05-03``."""
    role_name = role_word(passage.role)
    role = "" if role_name == PARTICIPANT else f" ({role_name})"
    return one_line(f"{passage.author}{role}{f', {passage.at:%Y-%m-%d}' if passage.at else ''}")


def quote_line(passage: Passage | None) -> str:
    """Who said what; "" for None."""
    if passage is None:
        return ""
    return ": ".join(filter(None, (attribution(passage), passage.text and quoted(passage.text))))


def search_scope(cards: Cards) -> str:
    """What a search looked through: ``517 threads and 2,113 messages searched``."""
    threads = f"{cards.size:,} thread{'s' * (cards.size != 1)}"
    if not cards.messages:
        return f"{threads} searched, without their comments"
    return f"{threads} and {cards.messages:,} messages searched"


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


def session_item(hit: SessionHit) -> Item:
    """A session, with its best message if one was sought."""
    passage, item = hit.passage, Item(session_card(hit.outline), why=hit.outline.why)
    if passage is None:
        return item
    return item._replace(
        score=passage.score or None,
        why=(*item.why, _speaker_note(passage)),
        decision=passage.text,
        passage=Passage(passage.session, passage.type, "", passage.at, passage.text, kind=Kind.SESSION),
        hides=True,
        part=passage.part,
    )


def _speaker_note(passage: SessionPassage) -> str:
    speaker = "the assistant" if passage.type == "assistant" else "a person"
    return f"said by {speaker}{f' on {passage.at:%Y-%m-%d}' if passage.at else ''}"


class ItemSection(NamedTuple):
    """Threads below a heading; in lines, ``name`` precedes each of them."""

    name: str
    title: str
    items: Sequence[Item]


def ranked_item(thread: RankedThread, home: str, words: str = "", passage: Passage | None = None) -> Item:
    item = item_of(thread.card, home, thread.why)
    hides = _is_opening(thread.message) and bool(gist(thread.card))
    return item._replace(score=thread.score or None, words=words, passage=passage, hides=hides)


def _is_opening(message: MessageHit | None) -> bool:
    return message is not None and message.position == 0


def quotation(item: Item) -> str:
    """What a list quotes of the thread: what was said about the words, else its decision, ending or answer.

    The opening text is quoted only if the thread has nothing else.
    """
    return ("" if item.hides else quote_line(item.passage)) or item.decision or gist(item.card)


def decision_item(thread: RankedThread, home: str) -> Item:
    return ranked_item(thread, home)._replace(decision=decision_line(thread.card, thread.card.decisions[0], home))


def hit_items(hits: ThreadHits, words: str, home: str) -> list[Item]:
    """The hits of a search."""
    return [
        item_of(hit.card, home)._replace(
            score=hit.score,
            words=words,
            terms=hit.terms,
            passage=hits.passages.get(hit.card.id),
            hides=_is_opening(hit.message) and bool(gist(hit.card)),
            part=hit.part,
        )
        for hit in hits.hits
    ]


def linked_items(neighbours: Iterable[Neighbour], home: str) -> list[Item]:
    """The threads one link away from some hits."""
    return [
        item_of(each.card, home, (link_sentence(each),))._replace(hit=each.hit, link=each.kind) for each in neighbours
    ]


class WorkSection(NamedTuple):
    """A section of a `WorkAnswer`: the attribute with its threads, its name in lines, its titles for people and for
    agents, and a description. ``is_decided``: its threads are shown with their decision."""

    threads: str
    name: str = ""
    title: str = ""
    title_for_agents: str = ""
    description: str = ""
    is_decided: bool = False
    fields: tuple[Field, ...] = SHOWN_FIELDS


WORK_SECTIONS = {
    "related": WorkSection(
        "threads", "related", "Related to this branch", "Related to the branch", "threads related to the branch"
    ),
    "decisions": WorkSection(
        "decisions",
        "decision",
        "Decided about its files",
        "Decided about the files at hand",
        "decided about the files at hand",
        is_decided=True,
    ),
    "tasks": WorkSection(
        "tasks", "task", "Open tasks", "Open tasks", "open issues near them; if there are none, those of the project"
    ),
    "pulls": WorkSection(
        "pulls", "pull", "Open pull requests", "Open pull requests", "open ones on those files or issues"
    ),
    "recent": WorkSection(
        "recent",
        "recent",
        "Decided last",
        "Decided last, about anything",
        "decided last, about anything",
        is_decided=True,
    ),
}
"""The sections of an answer on the work at hand, by their names in JSON."""

FILE_SECTIONS = {
    "threads": WorkSection("threads", "thread", "Threads that name them"),
    "decisions": WorkSection("decisions", "decision", "Decided there", is_decided=True),
    "pulls": WORK_SECTIONS["pulls"],
}
HIT_SECTIONS = {"hits": WorkSection("threads", fields=SMART_FIELDS)}
SESSIONS_SECTION, SESSIONS_TITLE = "sessions", "Agents' sessions on it"
"""The section with sessions, and its title."""


def work_items(
    answer: WorkAnswer, request: WorkRequest, sessions: Iterable[SessionHit], home: str
) -> list[ItemSection]:
    """The sections of an answer, then the sessions found with it; a search has no headings."""
    found = [session_item(hit) for hit in sessions]
    items = [
        ItemSection(section.name, section.title, _section_items(section, answer, request, home))
        for section in _sections_of(request).values()
    ]
    name, title = ("", "") if request.is_search else ("session", SESSIONS_TITLE)
    return [*items, ItemSection(name, title, found)]


def work_rows(
    answer: WorkAnswer, request: WorkRequest, sessions: Sequence[SessionHit], home: str, *, agents: bool = False
) -> dict[str, list[Row]]:
    """The threads of an answer by section, and the sessions found with it; those of a search are among its hits, for
    agents below ``passages``."""
    rows = {
        name: rows_of(section.fields, _section_items(section, answer, request, home), home, agents=agents)
        for name, section in _sections_of(request).items()
    }
    if not request.is_search:
        found = rows_of(SESSION_FIELDS, (hit.outline for hit in sessions))
        return rows if request.files else rows | {SESSIONS_SECTION: found}
    if agents:
        return rows | {"passages": rows_of(SESSION_PASSAGE_FIELDS, (hit.passage for hit in sessions))}
    return {"hits": rows["hits"] + rows_of(SEARCH_FIELDS, map(session_item, sessions))}


def _sections_of(request: WorkRequest) -> dict[str, WorkSection]:
    return FILE_SECTIONS if request.files else HIT_SECTIONS if request.is_search else WORK_SECTIONS


def _section_items(section: WorkSection, answer: WorkAnswer, request: WorkRequest, home: str) -> list[Item]:
    threads: tuple[RankedThread, ...] = getattr(answer, section.threads)
    if section.is_decided:
        return [decision_item(one, home) for one in threads]
    return [ranked_item(one, home, request.words, answer.passages.get(one.card.id)) for one in threads]


def cells_of(item: Item) -> list[object]:
    """A thread as a line of `COLUMNS`; without reasons and decision it ends with the title."""
    score = "" if item.score is None else f"{item.score:.2f}"
    kind = item.card.kind.traits
    state = item.card.state if item.card.kind.is_on_github else kind.noun
    return [item.card.id, state, score, item.card.title, *filter(None, ("; ".join(item.why), item.decision))]


COLUMNS = "id\tstate\tscore\ttitle\treasons\tdecision"
