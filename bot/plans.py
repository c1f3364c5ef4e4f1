"""What is to be said on the threads that are due: recall, decide, render, and find our comment."""

from __future__ import annotations

from dataclasses import replace

from bot.answer import Context, Silent
from bot.comment.seal import fingerprint, seal
from bot.duty import Look, is_being_said, question_of, reason_to_pass
from bot.github.catch_up import tombstone
from bot.github.errors import ForgeError, Gone
from bot.github.fixes import wanted
from bot.github.threads import OwnComment
from bot.kept import Changes, Said
from bot.lookout import fetch_missing
from bot.model import Thread
from bot.parts import FULL_DAY, Bot
from bot.recall.answering import decide, recall, with_endings
from bot.recall.fixes import fix_refs
from bot.recall.mentioned import referenced
from bot.recall.wishes import is_off, redo, refreshed
from bot.voice import SWITCHED_OFF, UNSEEN, Plan, look_back, look_for

BUSY = "another run is writing the comment"
FULL = "one run answers no more, the next one does"

MAX_ANSWERS = 5
"""Issues that one run answers at most; the next run takes the others."""


def plan_all(threads: list[Thread], look: Look, bot: Bot) -> list[Plan]:
    """What is to be said on each of the threads, within what one run and 24 hours may say. Replies come first."""
    new = sum(wish.name == "refresh" and wish.trying_since is not None for wish in look.wished)
    plans: list[Plan] = []
    for thread in threads:
        full = sum(not p.passed for p in plans) >= MAX_ANSWERS
        waits = look.limit or bot.muted or (FULL if full else "")
        planned = plan(thread, look, bot, waits)
        if planned.is_new and not planned.is_counted:
            planned, new = (planned, new + 1) if bot.may_write(new) else (replace(planned, waits=FULL_DAY), new)
        plans.append(planned)
    return plans


def plan(thread: Thread, look: Look, bot: Bot, waits: str = "") -> Plan:
    """What memory has to say on this thread, as text. ``waits``: why it is not to be worked out in this run."""
    said = before = look.said.get(thread.id) or bot.memory.said([thread.id]).get(thread.id)
    reason = _reason_to_pass(thread, said, look, bot)
    if said and not reason and thread.id in refreshed(look.wished):
        # that a person deleted the comment does not count any more, and what is promised is a new answer
        before = replace(said, state="removed", comment_id=None)
    base = Plan(thread, Silent(reason), question=question_of(thread, bot.place), before=before)
    if reason or waits:
        return replace(base, passed=bool(reason), waits="" if reason else waits)
    try:
        fetch_missing(_pointed_at(thread, bot), bot, f"mentioned in issue {thread.id}")
        text, answered = _worked_out(base, bot)
        own, removed = _standing(answered, text, look, bot)
        planned = replace(answered, text=text, own=own, removed=removed)
        if planned.is_new and said and is_being_said(said, look.now) and not _was_deleted(said, bot):
            return replace(base, before=said, waits=BUSY)
    except Gone as error:  # this very thread, as all others are told of without what is not there
        return _without_thread(base, error, bot)
    except ForgeError as error:
        return replace(base, waits=str(error), fault=error)
    return planned


def _without_thread(base: Plan, gone: Gone, bot: Bot) -> Plan:
    """The plan for a thread that went, or went out of sight, since it was read."""
    if not gone.certain:
        return replace(base, waits=UNSEEN)
    if isinstance(base.thread.id, int):
        bot.memory.stage(Changes(records=(tombstone(base.thread.id, gone, bot.now),)))
    return replace(base, answer=Silent("it is not there any more"), passed=True)


def _reason_to_pass(thread: Thread, before: Said | None, look: Look, bot: Bot) -> str:
    """Why this thread is left alone, empty when it is not. On a closed or locked one commands are obeyed all the same:
    the comment that stands there is changed, and ``refresh`` and ``on`` may write one."""
    if look.asks_for(thread):
        return ""
    wished = thread.id in refreshed(look.wished)
    if before and before.comment_id and not wished:
        unfinished = bot.memory.wishes([thread.id]).get(thread.id, ()) if before.state == "pending" else ()
        wished = thread.id in redo((*look.wished, *unfinished))
    return reason_to_pass(replace(thread, state="open", locked=False) if wished else thread, bot.settings)


def _pointed_at(thread: Thread, bot: Bot) -> list[int]:
    """The older issues that are to be told of in full."""
    newest = thread.id if isinstance(thread.id, int) else 0
    return [number for number in referenced(thread, bot.place)[: bot.settings.references.max] if number <= newest]


def _worked_out(base: Plan, bot: Bot) -> tuple[str, Plan]:
    """The sealed comment, empty for silence, and the plan with the answer that it tells."""
    thread = base.thread
    if is_off(bot.memory.wishes([thread.id]).get(thread.id, ())):
        return "", replace(base, answer=Silent(SWITCHED_OFF))
    answer = decide(_recalled(thread, bot))
    if isinstance(answer, Silent):
        return "", replace(base, answer=answer)
    rendered = bot.renderer.render(
        answer.context, thread_id=thread.id, now=thread.revised_at, searched=answer.context.searched
    )
    if rendered.problem:
        bot.note(rendered.problem)
    return seal(rendered.text, fingerprint(answer.context)), replace(base, answer=answer)


def _recalled(thread: Thread, bot: Bot) -> Context:
    """What memory has to say, with where the fixes are, which is looked up once."""
    context = recall(thread, bot.memory, bot.settings, bot.place)
    refs = fix_refs(context)
    known = bot.memory.fixes(refs)
    found = [bot.fixes.find(key, ref, known.get(key), bot.now) for key, ref in wanted(refs, known, bot.now).items()]
    fixes = tuple(fix for fix in found if fix)
    if not fixes:
        return context
    bot.memory.stage(Changes(fixes=fixes))
    return with_endings(context, thread, bot.memory, bot.place)


def _standing(p: Plan, text: str, look: Look, bot: Bot) -> tuple[OwnComment | None, bool]:
    """Our comment on the thread, and whether a person deleted it. It is looked for only before something is written."""
    key, before = p.thread.id, p.before
    own = look.news.own.get(key)
    if own or not isinstance(key, int):
        return own, False
    if key in refreshed(look.wished):
        return look_for(key, bot.forge, bot.own), False
    if before and before.state == "removed":
        return None, True
    if bot.settings.mode != "comment" or not (text or (before and before.comment_id)):
        return None, False
    if before and before.text_hash and (before.state == "pending" or not before.comment_id):  # it was never seen
        return look_back(key, before.at, bot.forge, bot.own)
    if key in look.news.own:
        return None, False
    own = look_for(key, bot.forge, bot.own)
    return own, own is None and before is not None and before.comment_id is not None


def _was_deleted(said: Said, bot: Bot) -> bool:
    """Whether the comment that was promised stood there, so that no other run will write it any more."""
    return isinstance(said.id, int) and look_back(said.id, said.at, bot.forge, bot.own)[1]
