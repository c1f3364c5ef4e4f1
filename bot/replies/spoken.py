"""Replying: promised in memory first, written once, found again by its marker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.github.errors import CannotComment, ForgeError, Gone, Invalid, Unreachable
from bot.github.threads import OwnComment, own_comment
from bot.kept import Changes, StandingComment, Wish
from bot.parts import Bot
from bot.replies.prepared import ReplyPlan, react
from bot.replies.requests import closed
from bot.voice import Spoken, unsaid


def promises(plans: Iterable[ReplyPlan], bot: Bot) -> tuple[Wish, ...]:
    """What memory keeps of these requests, written before any reply, so that no crash makes one twice or never."""
    kept = []
    for plan in plans:
        wish = plan.wish
        if plan.text and bot.settings.mode == "comment":
            wish = replace(wish, trying_since=bot.now)
        elif not plan.waits:
            wish = replace(wish, state="done")
        kept.append(wish)
    return tuple(kept)


def answer(plans: Iterable[ReplyPlan], bot: Bot) -> list[Spoken]:
    """Carry the plans out once memory is written; what another run has taken up meanwhile is left to it.

    What GitHub refuses ends in a reason, and is taken back in memory; after other failures a later run looks whether
    the reply stands, and tries again where it does not.
    """
    mine = [plan for plan in plans if plan.request.key not in bot.memory.taken_wishes]
    told = [_answered(plan, bot) for plan in mine]
    refused = [plan for plan, spoken in zip(mine, told, strict=True) if spoken.is_refused]
    if refused:
        gone = tuple(StandingComment(plan.request.thread.id, bot.now, plan.request.key) for plan in refused)
        bot.memory.stage(Changes(wishes=tuple(closed(wish) for wish in promises(refused, bot)), standing=gone))
        bot.memory.commit("Take back replies that could not be written")
    return told


def _answered(plan: ReplyPlan, bot: Bot) -> Spoken:
    thread = plan.request.thread
    told = Spoken(thread.id, thread.title, "silent", plan.reason, plan.context, plan.text)
    told = replace(told, is_owed=bool(plan.waits))
    if plan.fault:
        return unsaid(told, plan.fault)
    if plan.waits:
        return told
    if bot.settings.mode != "comment":
        return replace(told, action="would say") if plan.text else told
    try:
        if plan.text:
            told = replace(told, action="replied", comment=_write(plan, bot))
    except (CannotComment, Gone) as error:
        return replace(told, reason=str(error), is_refused=True)
    except ForgeError as error:
        return replace(unsaid(told, error), is_refused=isinstance(error, Invalid))
    react(plan.request, "rocket" if plan.good else "confused", bot)
    return told


def _write(plan: ReplyPlan, bot: Bot) -> OwnComment:
    """The reply, written once: after a lost answer we look, and never write again."""
    number = plan.request.thread.id
    assert isinstance(number, int)  # threads from elsewhere have no comments in which somebody asks
    try:
        return bot.forge.create_comment(number, plan.text)
    except Unreachable:
        for comment in bot.forge.comments(number):
            if bot.own.replied(comment) == plan.request.key:
                return own_comment(comment)
        raise
