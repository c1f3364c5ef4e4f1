"""Puts into words which release has a fix, for the person who reported the problem."""

from __future__ import annotations

from dataclasses import dataclass

from bot.comment.outcome_text import CommentPhrases
from bot.domain.thread import ThreadId


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What a release notice tells: the ``tag``, and whether that is a pre-release.

    ``original`` is the fixed thread, if the notice stands on a duplicate of it; ``upgrade_note`` is what the release
    says about upgrading (a stranger's words), "" if nothing.
    """

    tag: str
    is_early: bool = False
    original: ThreadId | None = None
    upgrade_note: str = ""


def release_text(facts: ReleaseFacts, scene: CommentPhrases) -> str:
    """The notice as Markdown: two sentences at most, and the upgrade note in a paragraph of its own."""
    release = scene.linked(facts.tag, scene.links.release(facts.tag))
    told = [scene.words.say("notice_early" if facts.is_early else "notice_released", release=release)]
    if facts.original is not None:
        told.insert(0, scene.words.say("notice_original", thread=scene.numbered(facts.original)))
    note = scene.quote(facts.upgrade_note)
    return "\n\n".join([" ".join(told), *([scene.words.say("notice_upgrade", note=note)] if note else [])])
