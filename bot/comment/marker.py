"""The hidden lines of a comment: the marker, by which it is found again, and the seal, which detects edits."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.domain.answer import Context, Match, Mention, OrganisationMatch
from bot.domain.changes import FixInfo
from bot.domain.post import COMMENT, OpenPull, short_hash
from bot.errors import UserError

_SEAL = re.compile(r"\n<!-- precedent-seal ([0-9a-f]{16}) ([0-9a-f]{16}) -->\s*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """``content`` identifies the answer; ``untouched`` says that nobody edited the text."""

    content: str
    untouched: bool


def fingerprint(context: Context) -> str:
    """Sixteen hexadecimal digits that identify the facts in a comment, whatever day it is.

    Ages, similarities and the number of threads searched do not count.
    """
    facts = (
        [_mention_facts(m) for m in (*context.mentioned, *context.also_mentioned)],
        [_match_facts(m) for m in (*context.seen_before, *context.open_now)],
        [(page.title, page.url, page.excerpt) for page in context.pages],
        *([("pulls", list(map(_pull_facts, context.pulls)))] if context.pulls else []),
        *([("organisation", list(map(_other_facts, context.organisation)))] if context.organisation else []),
    )
    return short_hash(repr(facts))


def seal(text: str, content: str) -> str:
    """The comment with its seal as the last line."""
    body = _plain(text)
    return f"{body}\n<!-- precedent-seal {content} {short_hash(body)} -->\n"


def read_seal(text: str) -> Fingerprint | None:
    """The seal of a comment, or None, for example after an edit that removed it."""
    unified = text.replace("\r\n", "\n")
    match = _SEAL.search(unified)
    if not match:
        return None
    return Fingerprint(match[1], short_hash(_plain(unified[: match.start()])) == match[2])


def _mention_facts(mention: Mention) -> tuple[object, ...]:
    facts = (mention.id, mention.title, mention.state, mention.draft, mention.merged_at, mention.outcome, mention.chain)
    passage = (mention.passage,) if mention.passage else ()  # seals of comments without one stay as they are
    return (*facts, mention.decisions, mention.files, _fix_facts(mention.fix), *passage)


def _match_facts(match: Match) -> tuple[object, ...]:
    facts = (match.id, match.title, match.state, match.outcome, match.why, match.files, _fix_facts(match.fix))
    return (*facts, match.asked_on, match.may_be_back)


def _other_facts(other: OrganisationMatch) -> tuple[object, ...]:
    return (*other.key, other.repository, *_match_facts(other.match))


def _fix_facts(fix: FixInfo | None) -> tuple[object, ...]:
    """Ignores when the fix was last looked up and which commit it is: only that it is on the main line counts."""
    return (fix.ref, fix.is_pull, fix.commit is not None, fix.files, fix.release, fix.unreleased) if fix else ()


def _pull_facts(pull: OpenPull) -> tuple[object, ...]:
    """Ignores when the forge was asked."""
    return pull.about, pull.id, pull.title, pull.closes, pull.draft, pull.files


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


_INSTANCE = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


def marker(instance: str = "action", slot: str = COMMENT) -> str:
    """The hidden first line by which we find our post again, together with its author.

    Two installations on one repository have different ``instance`` names of letters, digits, ``_``, ``.`` and single
    hyphens; others raise UserError, as a double hyphen would end the HTML comment. ``slot`` is that of its `PostKey`.
    """
    if not _INSTANCE.fullmatch(instance) or "--" in instance or instance.endswith("-"):
        raise UserError(f"instance name {instance[:70]!r}: use 1 to 64 letters, digits, '_', '.' and single '-'")
    place = f" {slot.replace(':', '=')}" if slot else ""
    return f"<!-- precedent:v1 id={instance}{place} -->"
