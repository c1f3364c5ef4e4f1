"""How threads are cited, and the addresses of threads, of messages, and of what supersedes a decision."""

from __future__ import annotations

import re

from bot.domain.card import Card, CardId, Passage, Ruling
from bot.domain.change_state import number_of
from bot.domain.kinds import Kind

_COMMENT_ANCHOR = re.compile(r"#(?:issue|discussion)comment-\d{1,20}", re.ASCII)
_MAX_REFERENCE_CHARS = 300


def citation(key: CardId) -> str:
    """How a sentence refers to the thread: ``#42``, or its text."""
    return f"#{key}" if isinstance(key, int) else key


def url_of(card: Card, home: str) -> str:
    """The address of the thread's page; "" if the repository's address ``home`` is unknown."""
    path = card.kind.traits.path or Kind.ISSUE.traits.path
    return f"{home}/{path}/{card.id}" if home and isinstance(card.id, int) else ""


def message_url(passage: Passage, home: str) -> str:
    """The address of the message; "" if unknown."""
    if not home or not passage.kind.is_on_github or not isinstance(passage.thread, int):
        return ""
    kind = passage.kind.traits
    thread = f"{home}/{kind.path}/{passage.thread}"
    return f"{thread}{kind.comment_path}{passage.comment_id}" if passage.comment_id else thread


def superseding_url(card: Card, ruling: Ruling, home: str) -> str:
    """The address of what supersedes a decision of ``card``, else its reference; "" if nothing supersedes it."""
    ref, page = ruling.superseded_by, url_of(card, home)
    if home and (number := number_of(ref)):
        return f"{home}/{Kind.ISSUE.traits.path}/{number}"
    return f"{page}{ref}" if page and _COMMENT_ANCHOR.fullmatch(ref) else ref[:_MAX_REFERENCE_CHARS]
