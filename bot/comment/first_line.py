"""The first line of a comment: what helps most, in one sentence. No line rather than a vague one."""

from __future__ import annotations

from bot.comment.defang import inline
from bot.comment.outcome_text import (
    VERSION_CHARS,
    CommentPhrases,
    change_label,
    ending_quote,
    is_waiting,
    linked_release,
    told_version,
)
from bot.domain.answer import Context, Match
from bot.domain.reason import NEAR_SIMILARITY, Reason, is_near
from bot.domain.roles import PARTICIPANT, role_word
from bot.domain.thread import OutcomeKind

MIN_CONFIDENCE = 0.75
"""Confidence in an ending below which the first line does not tell it."""

SURE = 0.95
"""Confidence from which anybody's words are told, such as those that the asker marked as the answer."""

_QUOTED_KINDS = {
    OutcomeKind.ANSWERED: "first_answered",
    OutcomeKind.WORKAROUND: "first_workaround",
    OutcomeKind.NOT_PLANNED: "first_declined",
}


def first_line(context: Context, phrases: CommentPhrases) -> str:
    """What the nearest thread says, or that it is still open; "" if it is not near enough or says nothing clear."""
    nearest = max((*context.seen_before, *context.open_now), key=lambda match: match.similarity, default=None)
    if nearest is None or not is_near(nearest.similarity, nearest.why):
        return ""
    if nearest.state == "closed":
        return _of_ending(nearest, phrases)
    # Whoever pastes an error may be writing about something else, such as the trace below it.
    is_whole = nearest.why[:1] in ((Reason.TEXT,), (Reason.TITLE,))
    has_error = any(reason.startswith(Reason.ERROR) for reason in nearest.why)
    if has_error and not is_whole and nearest.similarity < NEAR_SIMILARITY:
        return ""
    name = "first_open_error" if has_error and not is_whole else "first_open"
    return phrases.words.say(name, thread=phrases.link_label(nearest.id, nearest.kind))


def _of_ending(match: Match, phrases: CommentPhrases) -> str:
    outcome = match.outcome
    if match.state != "closed" or outcome.confidence < MIN_CONFIDENCE:
        return ""
    if outcome.kind is OutcomeKind.FIXED:
        return _of_fix(match, phrases)
    is_told = outcome.kind in _QUOTED_KINDS and (role_word(outcome.role) != PARTICIPANT or outcome.confidence >= SURE)
    quote = ending_quote(match, phrases) if is_told else ""
    return phrases.words.say(_QUOTED_KINDS[outcome.kind], quote=quote) if quote else ""


def _of_fix(match: Match, phrases: CommentPhrases) -> str:
    """In which release, by which change, and which version the reporter has; "" without release and change."""
    release, change = linked_release(match, phrases), change_label(match, phrases)
    version = inline(told_version(match), VERSION_CHARS)
    values = {"release": release, "change": change, "version": version}
    if version and match.may_be_back:
        return phrases.words.say("first_back", **values)
    if release:
        return phrases.words.say(f"first_fixed_in{'_by' if change else ''}{'_since' if version else ''}", **values)
    ending = "_unreleased" if is_waiting(match) else ""
    return phrases.words.say(f"first_fixed_by{ending}", **values) if change else ""
