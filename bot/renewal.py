"""Comments that stand are kept true: worked out again in the run that learns that a thread which they show changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bot.duty import Look, is_at_it
from bot.github.events import CALM, Event
from bot.github.fixes import wanted
from bot.kept import Changes, CommentKey, Renewal, Said, StandingComment
from bot.model import Thread
from bot.parts import Bot
from bot.plans import plan_again
from bot.replies.again import ReplyAgain, is_being_replied, renew_reply, reply_again, stands
from bot.voice import DELETED, Plan, Spoken, promise, to_stand

MAX_RELEASES = 4
"""Fixes whose release one run looks for again, the longest not looked for first."""

MAX_RENEWALS = 10
"""Comments that one run works out again; the next runs take the others."""


@dataclass(slots=True)
class Renewing:
    """What one run does about what is owed to comments that stand: ``plans`` and ``replies`` that are to be carried
    out, and what a look ``settled``, as it was ``owed`` to a comment that says what is so, or is gone."""

    owed: dict[CommentKey, list[Renewal]] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    replies: list[ReplyAgain] = field(default_factory=list)
    settled: list[Renewal] = field(default_factory=list)

    def settle(self, comment_key: CommentKey) -> None:
        self.settled += self.owed.get(comment_key, [])


def renew(planned: Iterable[Plan], look: Look, bot: Bot) -> Renewing:
    """What stands and has to be worked out again, oldest change first, beside what is ``planned`` anyway."""
    found = Renewing()
    for one in bot.memory.owed if bot.settings.mode == "comment" and not (bot.muted or look.limit) else ():
        found.owed.setdefault(one.comment_key, []).append(one)
    covered = {(plan.thread.id, 0): plan for plan in planned if not (plan.passed or plan.waits or plan.fault)}
    comment_keys = [comment_key for comment_key in found.owed if comment_key not in covered][:MAX_RENEWALS]
    if comment_keys:
        bot.memory.bring(dict.fromkeys(key for key, _ in comment_keys))
    for comment_key in comment_keys:
        _work_out(comment_key, found, look, bot)
    for comment_key in found.owed.keys() & {comment_key for comment_key, plan in covered.items() if plan.is_idle}:
        found.settle(comment_key)
    return found


def _work_out(comment_key: CommentKey, found: Renewing, look: Look, bot: Bot) -> None:
    key, reply = comment_key
    thread, linked = bot.memory.records([key]).get(key), bot.memory.thread_comments([key]).get(key)
    stood = next((one for one in linked.comments if one.reply == reply), None) if linked else None
    if stood and isinstance(thread, Thread) and not reply:
        changed = frozenset(one.about for one in found.owed[comment_key])
        plan = plan_again(thread, changed, look, bot)
        found.plans += [plan] if plan else []
        if plan is None:
            found.settle(comment_key)
        return
    wish = next((one for one in bot.memory.wishes([key]).get(key, ()) if one.comment_id == reply), None)
    if (stood and is_at_it(stood.trying_since, bot.now)) or (wish and is_being_replied(wish, thread, bot)):
        return
    again = reply_again(thread, wish, stood, bot) if stood and wish and isinstance(thread, Thread) else None
    found.replies += [again] if again else []
    if again is None:
        found.settle(comment_key)


def promises(found: Renewing, bot: Bot) -> list[StandingComment]:
    """What memory keeps of the replies to be renewed, before they are."""
    return [replace(again.stood, at=bot.now, trying_since=bot.now) for again in found.replies]


def carry_out(found: Renewing, plans: Sequence[Plan], told: Sequence[Spoken], bot: Bot) -> list[Spoken]:
    """Renew the replies, and keep what came of it all; ``told`` is what came of ``plans``, those planned anyway among
    them. What failed is owed still."""
    mine = [again for again in found.replies if again.stood.comment_key not in bot.memory.taken_comments]
    replied = [renew_reply(again, bot) for again in mine]
    done, said, standing = list[Renewal](), list[Said](), list[StandingComment]()
    for plan, spoken in zip(plans, told, strict=True):
        if plan.thread.id in {comment_key[0] for comment_key in found.owed if not comment_key[1]} and _is_done(spoken):
            done += found.owed[plan.thread.id, 0]
            said += _kept(plan, spoken, bot)
            standing += [one for one in [to_stand(plan, bot.now, is_written=True)] if one]
    for again, spoken in zip(mine, replied, strict=True):
        if _is_done(spoken):
            done += found.owed[again.stood.comment_key]
            standing.append(stands(again, spoken, bot))
    if done:
        bot.memory.stage(Changes(said=tuple(said), standing=tuple(standing), renewed=tuple(done)))
        bot.memory.commit("Keep which comments were brought up to date")
    return replied


def _is_done(spoken: Spoken) -> bool:
    return spoken.is_refused or not (spoken.error or spoken.is_owed)


def _kept(plan: Plan, spoken: Spoken, bot: Bot) -> list[Said]:
    """What was said, once it is known to stand."""
    said = promise(plan, bot.now, bot.settings.mode)
    if said.state != "pending" or spoken.is_refused:
        return []
    state = "removed" if spoken.reason == DELETED else "said" if plan.text else "withdrawn"
    comment_id = spoken.comment.id if spoken.comment else said.comment_id
    return [replace(said, state=state, comment_id=comment_id, trying_since=None)]


def look_for_releases(event: Event, bot: Bot) -> None:
    """Look again for the releases of fixes that comments show without one: every day, and as one was published."""
    if bot.settings.mode != "comment" or bot.muted or (event.name not in CALM and event.name != "release"):
        return
    known = {fix.id: fix for fix in bot.memory.every_fix() if fix.commit and not fix.release}
    due = known if event.name == "release" else wanted({key: fix.ref for key, fix in known.items()}, known, bot.now)
    shown = [known[key] for key, linked in bot.memory.thread_comments(due).items() if linked.shown_in]
    oldest = sorted(shown, key=lambda fix: fix.looked_at)[:MAX_RELEASES]
    found = [bot.fixes.find(fix.id, fix.ref, fix, bot.now) for fix in oldest]
    bot.memory.stage(Changes(fixes=tuple(fix for fix in found if fix)))
