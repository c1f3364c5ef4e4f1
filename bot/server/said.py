"""What a run said, or memory knows to have been said, as far as the ledger keeps it."""

from __future__ import annotations

from collections.abc import Iterable

from bot.github.threads import OwnComment
from bot.memory.memory import Memory
from bot.outfit import Site
from bot.plans import BUSY
from bot.voice import Spoken

KINDS = ("same text", "same error", "same file", "both name", "both speak of")
"""How reasons begin, see `bot.recall.why`; what follows are words of issues."""


def about(told: Iterable[Spoken], number: int) -> Spoken | None:
    """What was said on an issue: a comment or a reply before silence."""
    return min((each for each in told if each.id == number), key=lambda each: not each.spoke, default=None)


def standing(memory: Memory, number: int, site: Site) -> Spoken | None:
    """What memory has of an earlier answer, which a turn gave, or was about to give, that did not live to tell."""
    said = memory.said([number]).get(number)
    if said and said.state == "pending" and said.trying_since:
        return Spoken(number, "", "silent", BUSY, is_owed=True)
    if said is None or said.state not in ("said", "silent", "removed", "withdrawn"):
        return None
    if said.state != "said":
        return Spoken(number, "", "silent", said.reason)
    url = f"{site.server_url}/{site.repository}/issues/{number}#issuecomment-{said.comment_id}"
    comment = OwnComment(said.comment_id, "", url) if said.comment_id else None
    return Spoken(number, "", "unchanged", "it was said before", comment=comment)


def nearest(spoken: Spoken) -> tuple[tuple[int, float, str], ...]:
    """The issues most like it, shown or not, each with its similarity in 0..1 and the kinds of reasons."""
    return tuple((m.id, m.similarity, _kinds(m.why)) for m in spoken.nearest if isinstance(m.id, int))


def _kinds(why: Iterable[str]) -> str:
    """Which kinds of reasons: no word of an issue goes into the ledger."""
    return ", ".join(kind for kind in KINDS if any(f"{reason} ".startswith(f"{kind} ") for reason in why))


def matches(spoken: Spoken) -> tuple[tuple[int, float], ...]:
    """The issues that were shown, each with its similarity in 0..1."""
    shown = (*spoken.context.seen_before, *spoken.context.open_now)
    return tuple((match.id, match.similarity) for match in shown if isinstance(match.id, int))
