"""The hidden lines of a comment: the first, by which it is found again, and the last, a seal that edits break."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from bot.domain.answer import Context, Match, Mention
from bot.domain.changes import FixInfo
from bot.errors import UserError

_SEAL = re.compile(r"\n<!-- precedent-seal ([0-9a-f]{16}) ([0-9a-f]{16}) -->\s*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Seal:
    """``content`` identifies what was said; ``untouched`` is whether the text is still as it was written."""

    content: str
    untouched: bool


def fingerprint(context: Context) -> str:
    """Identifies what a comment tells, 16 hexadecimal digits: the same facts give the same, whatever day it is.

    Ages, similarities and the number of threads looked through are not facts about the answer and do not count.
    """
    told = (
        [_mention_facts(m) for m in (*context.mentioned, *context.also_mentioned)],
        [_match_facts(m) for m in (*context.seen_before, *context.open_now)],
        [(page.title, page.url, page.excerpt) for page in context.pages],
        context.elsewhere,
        *([[(m.id, m.title, m.state, m.why) for m in context.possible]] if context.possible else []),
    )
    return _hash(repr(told))


def seal(text: str, content: str) -> str:
    """The comment with its seal as last line."""
    body = _plain(text)
    return f"{body}\n<!-- precedent-seal {content} {_hash(body)} -->\n"


def read_seal(text: str) -> Seal | None:
    """The seal of a comment; None where there is none, as after an edit that removed it."""
    unified = text.replace("\r\n", "\n")
    found = _SEAL.search(unified)
    if not found:
        return None
    return Seal(found[1], _hash(_plain(unified[: found.start()])) == found[2])


def _mention_facts(mention: Mention) -> tuple[object, ...]:
    told = (mention.id, mention.title, mention.state, mention.draft, mention.merged_at, mention.outcome, mention.chain)
    return (*told, mention.decisions, mention.summary, mention.files, _fix_facts(mention.fix))


def _match_facts(match: Match) -> tuple[object, ...]:
    told = (match.id, match.title, match.state, match.outcome, match.why, match.files, _fix_facts(match.fix))
    return (*told, match.asked_on, match.may_be_back)


def _fix_facts(fix: FixInfo | None) -> tuple[object, ...]:
    """When somebody last looked is no fact, nor which commit it is: that it is on the main line is."""
    return (fix.ref, fix.is_pull, fix.commit is not None, fix.files, fix.release, fix.unreleased) if fix else ()


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


_INSTANCE = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


def marker(instance: str = "action", reply_to: int | None = None) -> str:
    """The hidden first line by which a comment of ours is found again, together with the id of its author.

    Two installations on one repository have different ``instance`` names: letters, digits, ``_``, ``.`` and single
    hyphens, else UserError (a double hyphen would end the HTML comment).
    ``reply_to`` is the id of the comment that is answered; each has a reply of its own.
    """
    if not _INSTANCE.fullmatch(instance) or "--" in instance or instance.endswith("-"):
        raise UserError(f"instance name {instance[:70]!r}: use 1 to 64 letters, digits, '_', '.' and single '-'")
    return f"<!-- precedent:v1 id={instance}{f' reply={reply_to}' if reply_to is not None else ''} -->"
