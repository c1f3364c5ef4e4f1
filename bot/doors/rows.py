"""Threads as plain data: what the command line prints as JSON, and what the tools for agents answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bot.card import Card, CardId, Ending, Passage, Ruling
from bot.reading.words import token_terms, tokens

if TYPE_CHECKING:
    from bot.recall.hop import Hop
    from bot.recall.work import Ruled, Work

Row = dict[str, Any]
Shape = Callable[..., Row]
"""`row`, or `full`."""

MAX_TITLE, MAX_TEXT = 300, 1_000
MAX_LIST = 20
MAX_WORDS = 6

_WAYS = {
    ("reference", "to"): "{0} refers to it",
    ("reference", "from"): "it refers to {0}",
    ("duplicate", "to"): "{0} is a duplicate of it",
    ("duplicate", "from"): "it is a duplicate of {0}",
    ("fix", "to"): "{0} was fixed by it",
    ("fix", "from"): "it was fixed by {0}",
}


def row(card: Card, home: str, **fields: Any) -> Row:
    """A thread without its conversation, after the ``fields`` given. ``home``: where its repository is, "" for none."""
    return fields | {
        "id": card.id,
        "cite": cited(card.id),
        "kind": card.kind,
        "state": card.state,
        "state_reason": card.state_reason,
        "url": url_of(card, home),
        "author": card.author,
        "created_at": stamp(card.created_at),
        "updated_at": stamp(card.updated_at),
        "closed_at": stamp(card.closed_at),
        "messages": card.turn_count,
        "labels": _short(card.labels),
        "title": card.title[:MAX_TITLE],
        "summary": card.summary[:MAX_TEXT],
        "decisions": [_ruling(each) for each in card.decisions[:MAX_LIST]],
        "files": _short(card.files),
        "outcome": _ending(card.ending, card),
    }


def full(card: Card, home: str, **fields: Any) -> Row:
    """As `row`, and of each decision the address where people read it, "" where that is not known."""
    told = row(card, home, **fields)
    for decision, ruling in zip(told["decisions"], card.decisions, strict=False):
        decision["url"] = _permalink(told["url"], ruling.comment_id)
    return told


def ruled(one: Ruled, home: str, shape: Shape = row) -> Row:
    """A thread with the one decision that is meant."""
    return shape(one.card._replace(decisions=(one.ruling,)), home, why=[one.why])


def work_rows(work: Work, home: str, shape: Shape = row) -> dict[str, list[Row]]:
    """What there is to know of the work at hand, by section."""
    return {
        "related": [shape(one.card, home, why=list(one.why)) for one in work.related],
        "decisions": [ruled(one, home, shape) for one in work.decisions],
        "tasks": [shape(one.card, home, why=list(one.why)) for one in work.tasks],
        "recent": [ruled(one, home, shape) for one in work.recent],
    }


def linked(hops: Iterable[Hop], home: str, shape: Shape = row) -> list[Row]:
    """The threads one link away from some hits, each with which one, and how."""
    return [
        shape(hop.card, home, why=[_WAYS[hop.kind, hop.direction].format(cited(hop.hit))], of=hop.hit, link=hop.kind)
        for hop in hops
    ]


def passage(one: Passage) -> Row:
    """A message of a session."""
    return {
        "score": round(one.score, 2),
        "type": one.type,
        "content": one.text,
        "timestamp": stamp(one.at),
        "session_id": one.session,
        "path": one.path,
    }


def holds(found: Sequence[str], query: str) -> list[str]:
    """That a thread holds these terms of the query, as they were written there."""
    written = {term: token for token in reversed(list(tokens(query))) for term in token_terms(token)}
    words = list(dict.fromkeys(written[term] for term in found if term in written))
    return [f"holds {', '.join(words[:MAX_WORDS])}"] if words else []


def cited(key: CardId) -> str:
    """How a thread is called in a sentence."""
    return f"#{key}" if isinstance(key, int) else key


def url_of(card: Card, home: str) -> str:
    """Where people read the thread, "" where that is not known."""
    place = "pull" if card.kind == "pull" else "issues"
    return f"{home}/{place}/{card.id}" if home and isinstance(card.id, int) else ""


def _permalink(thread: str, comment: int | None) -> str:
    return f"{thread}#issuecomment-{comment}" if thread and comment else thread


def stamp(moment: datetime | None) -> str:
    """A moment in UTC, as GitHub writes it; "" for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _ruling(one: Ruling) -> Row:
    return {"text": one.text[:MAX_TEXT], "author": one.author, "role": one.role, "at": stamp(one.at)}


def _ending(one: Ending, card: Card) -> Row:
    return {
        "kind": one.kind,
        "fix": one.fix,
        "release": one.release,
        "duplicate_of": card.duplicate_of,
        "quote": one.quote[:MAX_TEXT],
        "author": one.author,
        "role": one.role,
        "at": stamp(one.at),
    }


def _short(texts: Sequence[str]) -> list[str]:
    return [text[:MAX_TITLE] for text in texts[:MAX_LIST]]
