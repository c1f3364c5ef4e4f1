"""Replies that stand, worked out again from the request, as a thread that they show has changed, or the request has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bot.answer import Context
from bot.comment.seal import fingerprint
from bot.duty import is_at_it
from bot.github.errors import CannotComment, ForgeError, Gone, Invalid
from bot.github.threads import OwnComment, own_comment
from bot.kept import StandingComment, Wish
from bot.model import Record, Thread
from bot.parts import Bot
from bot.replies.prepared import LOOKED, ReplyPlan, looked_up
from bot.replies.requests import request_of
from bot.shown import is_false, mark, quoted_in, shown_in
from bot.voice import DELETED, EDITED, NOTHING, Spoken, is_ours, unsaid, update, withdraw


@dataclass(frozen=True, slots=True)
class ReplyAgain:
    """A reply as it is to stand. ``text``: empty where it is taken back; ``stood``: what memory knows of it, that
    ``is_false`` where it quotes what was taken back."""

    thread: Thread
    wish: Wish
    stood: StandingComment
    is_false: bool
    context: Context = field(default_factory=Context)
    text: str = ""

    @property
    def content(self) -> str:
        return fingerprint(self.context) if self.text else NOTHING


def is_being_replied(wish: Wish, thread: Record | None, bot: Bot) -> bool:
    """Whether another run may be writing the reply at this moment, as it was promised just now and does not stand."""
    if wish.state != "pending" or not is_at_it(wish.trying_since, bot.now) or not isinstance(thread, Thread):
        return False
    try:
        return _standing(wish, thread, bot) is None
    except ForgeError:
        return True


def reply_again(thread: Thread, wish: Wish, stood: StandingComment, bot: Bot) -> ReplyAgain | None:
    """The reply to a request worked out again; None where it stays as it is. What did not come of a look into memory
    stays as long as the request does; no thread is told of that was not before."""
    again = ReplyAgain(thread, wish, stood, is_false(stood, bot.memory.records(stood.shows)))
    request = request_of(thread, wish.comment_id, bot)
    if request and wish.name not in LOOKED:
        return None
    if request and request.name == wish.name:
        plan = looked_up(request, bot, frozenset(stood.shows))
        again = replace(again, context=plan.context, text=plan.text)
    return None if again.content == stood.content and not again.is_false else again


def renew_reply(again: ReplyAgain, bot: Bot) -> Spoken:
    """Have the reply stand as it is to; one that a person edited is left alone, unless it is false."""
    thread, forge = again.thread, bot.forge
    told = Spoken(thread.id, thread.title, "silent", "the reply shows an issue that changed", again.context, again.text)
    told = replace(told, renews=True)
    try:
        mine = _standing(again.wish, thread, bot)
        if mine is None:
            return replace(told, reason=DELETED)
        if again.text and not (again.is_false and not is_ours(mine)):
            return update(told, mine, forge, must_match=again.is_false)
        return withdraw(told, mine, forge, bot.renderer.words, is_false=again.is_false)
    except CannotComment as error:
        return replace(told, reason=str(error), is_refused=True)
    except ForgeError as error:
        return replace(unsaid(told, error), is_refused=isinstance(error, Invalid))


def stands(again: ReplyAgain, told: Spoken, bot: Bot) -> StandingComment:
    """What is to be known of the reply after that."""
    stood = again.stood
    if told.reason == EDITED:
        return replace(stood, at=bot.now)
    if not again.text or told.reason == DELETED or told.action == "withdrawn":
        return StandingComment(stood.id, bot.now, stood.reply)
    return _shows(StandingComment(stood.id, bot.now, stood.reply, again.content), again.thread, again.context, bot)


def promised(plan: ReplyPlan, bot: Bot) -> StandingComment | None:
    """What is to be known of a new reply; None where none is to be written."""
    request = plan.request
    if not plan.text or plan.waits or bot.settings.mode != "comment":
        return None
    new = StandingComment(request.thread.id, bot.now, request.key, fingerprint(plan.context))
    return _shows(new, request.thread, plan.context, bot)


def _shows(new: StandingComment, thread: Thread, context: Context, bot: Bot) -> StandingComment:
    """A reply shows its own thread too: it quotes what was asked there."""
    shows = shown_in(context)
    asked = [comment.text for comment in thread.comments if comment.id == new.reply] or [thread.title, thread.body]
    quotes = {*map(mark, asked), *quoted_in(context, bot.memory.records(shows))}
    return replace(new, shows=tuple(dict.fromkeys((*shows, thread.id))), quotes=tuple(sorted(quotes)))


def _standing(wish: Wish, thread: Thread, bot: Bot) -> OwnComment | None:
    """The reply as it stands, None where there is none."""
    try:
        if wish.reply_id:
            found = [bot.forge.comment(wish.reply_id)]
        else:
            found = bot.forge.comments(thread.id) if isinstance(thread.id, int) else []
    except Gone:
        return None
    return next((own_comment(each) for each in found if bot.own.replied(each) == wish.comment_id), None)
