"""Threads as rows of data and in lists for people, and what is said of each in a few words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.comment.clean_text import one_line
from bot.domain.card import Card, CardId, Ending, Ruling, SessionPassage
from bot.reading.analyzer import token_terms, tokens

if TYPE_CHECKING:
    from bot.questions.related import Hop, RelatedDecision
    from bot.questions.what import WhatAnswer


_COMMIT = 10
"""Characters of a commit's id that tell it from others."""

_SHA = re.compile(r"[0-9a-f]{7,64}", re.ASCII | re.IGNORECASE)


class Item(NamedTuple):
    """A thread in a list; ``words`` are what was looked for, to be seen in its title, ``said`` the decision that is
    meant where it is one."""

    card: Card
    url: str
    score: float | None = None
    why: tuple[str, ...] = ()
    words: str = ""
    said: str = ""


class ItemSection(NamedTuple):
    """Threads below a heading; ``name`` is what stands before each of them where a program reads."""

    name: str
    title: str
    items: Sequence[Item]


def ending(card: Card) -> str:
    """State and ending in a few words: ``closed, fixed by #50 in v2.3.0``."""
    if card.kind == "page":
        return "page"
    told = [card.state if card.kind == "issue" else f"{card.state} {card.kind}"]
    if card.duplicate_of is not None:
        told.append(f"duplicate of {cited(card.duplicate_of)}")
    elif card.ending.kind != "unknown":
        told.append(how(card.ending.kind, card.ending.fix, card.ending.release))
    elif card.state_reason == "not_planned":
        told.append("not planned")
    return one_line(", ".join(told))


def how(kind: str, fix: str | None, release: str | None) -> str:
    """How something ended: ``fixed by #50 in v2.3.0``; ``kind`` is a value of `bot.domain.thread.OutcomeKind`."""
    by = f" by {_short_fix(fix)}" if fix else ""
    return f"{kind}{by}{f' in {release}' if release else ''}"


def gist(card: Card) -> str:
    """One sentence of the thread: what was decided, how it ended, else what was first answered."""
    said = card.decisions[-1].text if card.decisions else card.ending.quote or card.summary
    return one_line(said)


def _short_fix(fix: str) -> str:
    """A commit as people write it, also one of another repository (``owner/name@SHA``); a reference as it is."""
    place, at, sha = fix.rpartition("@")
    return f"{place}{at}{sha[:_COMMIT]}" if _SHA.fullmatch(sha) else fix


Row = dict[str, Any]
Shape = Callable[..., Row]
"""`short_row` or `full_row`."""

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


def short_row(card: Card, home: str, **fields: Any) -> Row:
    """A thread without its conversation, after the ``fields`` given. ``home``: where its repository is, "" for none."""
    return fields | {
        "id": card.id,
        "cite": cited(card.id),
        "kind": card.kind,
        "state": card.state,
        "state_reason": card.state_reason,
        "url": url_of(card, home),
        "author": card.author,
        "created_at": row_stamp(card.created_at),
        "updated_at": row_stamp(card.updated_at),
        "closed_at": row_stamp(card.closed_at),
        "messages": card.turn_count,
        "labels": _short(card.labels),
        "title": card.title[:MAX_TITLE],
        "summary": card.summary[:MAX_TEXT],
        "decisions": [_ruling(each) for each in card.decisions[:MAX_LIST]],
        "files": _short(card.files),
        "outcome": _ending(card.ending, card),
    }


def full_row(card: Card, home: str, **fields: Any) -> Row:
    """As `short_row`, and of each decision the address where people read it, "" where that is not known."""
    told = short_row(card, home, **fields)
    for decision, ruling in zip(told["decisions"], card.decisions, strict=False):
        is_comment = told["url"] and ruling.comment_id
        decision["url"] = f"{told['url']}#issuecomment-{ruling.comment_id}" if is_comment else told["url"]
    return told


def decision_row(one: RelatedDecision, home: str, shape: Shape = short_row) -> Row:
    """A thread with the one decision that is meant."""
    return shape(one.card._replace(decisions=(one.ruling,)), home, why=[one.why])


def work_rows(work: WhatAnswer, home: str, shape: Shape = short_row) -> dict[str, list[Row]]:
    """What there is to know of the work at hand, by section."""
    return {
        "related": [shape(one.card, home, why=list(one.why)) for one in work.related],
        "decisions": [decision_row(one, home, shape) for one in work.decisions],
        "tasks": [shape(one.card, home, why=list(one.why)) for one in work.tasks],
        "recent": [decision_row(one, home, shape) for one in work.recent],
    }


def linked_rows(hops: Iterable[Hop], home: str, shape: Shape = short_row) -> list[Row]:
    """The threads one link away from some hits, each with which one, and how."""
    return [
        shape(hop.card, home, why=[_WAYS[hop.kind, hop.direction].format(cited(hop.hit))], of=hop.hit, link=hop.kind)
        for hop in hops
    ]


def passage_row(one: SessionPassage) -> Row:
    """A message of a session."""
    return {
        "score": round(one.score, 2),
        "type": one.type,
        "content": one.text,
        "timestamp": row_stamp(one.at),
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


def row_stamp(moment: datetime | None) -> str:
    """A moment in UTC, as GitHub writes it; "" for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _ruling(one: Ruling) -> Row:
    return {"text": one.text[:MAX_TEXT], "author": one.author, "role": one.role, "at": row_stamp(one.at)}


def _ending(one: Ending, card: Card) -> Row:
    return {
        "kind": one.kind,
        "fix": one.fix,
        "release": one.release,
        "duplicate_of": card.duplicate_of,
        "quote": one.quote[:MAX_TEXT],
        "author": one.author,
        "role": one.role,
        "at": row_stamp(one.at),
    }


def _short(texts: Sequence[str]) -> list[str]:
    return [text[:MAX_TITLE] for text in texts[:MAX_LIST]]
