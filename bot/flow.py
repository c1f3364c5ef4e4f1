"""THE straight line: what happens to one event. Read this first.

event → what changed → memory → what is worth saying → memory is durable → the comment
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from bot import learning
from bot.answer import Silent
from bot.archive import parse_time
from bot.backfill import FIRST_SECONDS, backfill, bury
from bot.comment.seal import fingerprint, seal
from bot.duty import Look, due, question_of, reason_to_pass
from bot.errors import UserError
from bot.evaluation.learn import SECONDS
from bot.evaluation.report import in_words
from bot.evaluation.results import Backtest
from bot.github.catch_up import OVERLAP, PAGES, Known, News, catch_up, read_thread, tombstone
from bot.github.errors import ForgeError, Gone, RateLimited, Unauthorised
from bot.github.events import Event
from bot.github.threads import OwnComment
from bot.kept import Changes
from bot.model import Record, Thread, ThreadId, Tombstone
from bot.parts import Bot
from bot.recall.answering import decide, recall
from bot.recall.mentioned import referenced
from bot.voice import Plan, Spoken, look_back, look_for, promise, settle, speak

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

CALM = frozenset({"schedule", "workflow_dispatch"})
"""Events that nobody waits for."""

EVENT_SECONDS = 20.0
"""How long a run learns beside the word vectors that was not started for it."""

MAX_ANSWERS = 5
"""Issues that one run answers at most; the next run takes the others."""


def handle(event: Event, bot: Bot) -> list[Spoken]:
    """Handle one event. Returns what was said, or why nothing was, for each thread that was due an answer."""
    look, mode = look_around(event, bot), bot.settings.mode
    bot.memory.stage(Changes(records=look.news.records, said=tuple(look.settled.values()), cursor=look.news.cursor))
    if learning.is_due(bot.memory, calm=event.name in CALM):
        _learn(bot, EVENT_SECONDS)
    plans = plan_all(_due(look, bot), look, bot)
    bot.memory.stage(Changes(said=tuple(promise(p, bot.now, mode) for p in plans)))
    bot.memory.commit(_message(event))
    told = [speak(p, bot.forge, bot.own, mode) for p in _still_ours(plans, bot)]
    _release(told, bot)
    return told


def look_around(event: Event, bot: Bot) -> Look:
    """What changed since the last run, whatever the event says, and what memory knew of it before."""
    hinted = [event.number] if event.number else []
    memory = bot.memory.open(hinted)
    late = _read_history(bot, None) if memory.cursor is None else ()
    since = memory.cursor - OVERLAP if memory.cursor else None
    listed, complete = bot.forge.issues_since(since, PAGES) if since else ([], True)
    if not complete:
        bot.note("Much changed since the last run: it was read as history.")
        listed, late = [], _read_history(bot, since)
    found = [issue for issue in listed if bot.settings.pulls or not issue.get("pull_request")]
    ids = list(dict.fromkeys([*(issue["number"] for issue in found), *hinted, *memory.pending, *late]))
    held, said = dict(memory.records(ids)), dict(memory.said(ids))
    stands = frozenset(key for key, one in said.items() if one.state in ("said", "withdrawn"))
    news = catch_up(bot.forge, bot.own, Known(held, stands), found, since)
    if news.complete:  # pull requests move the cursor too, as they are in the list that it asks for
        news = replace(news, cursor=max((parse_time(issue["updated_at"]) for issue in listed), default=None))
    news = _with_hint(news, event, held, bot) if event.number else news
    settled = settle(said, news.own, bot.now - bot.within)
    return Look(event, news, bot.now, bot.place, said | settled, settled, late, bot.within)


def rebuild(bot: Bot) -> Backtest:
    """Read the whole history again, learn from it, and make the index anew. Returns what it would have said."""
    memory = bot.memory.open()
    seen = backfill(memory, bot.history, bot.clock, None, None)
    buried = bury(memory, seen or set(), bot.now)
    if buried:
        bot.note(f"{buried} threads are gone from GitHub: their text was removed.")
    backtest = _learn(bot, SECONDS)
    memory.commit(f"Rebuild: {memory.size} threads")
    return backtest


def prove(bot: Bot) -> Backtest:
    """What would have been said on the newest issues, with what memory has learned; nothing is written."""
    backtest = learning.prove(bot.memory.open(), bot.settings, bot.renderer, bot.place)
    bot.note(in_words(backtest))
    return backtest


def _learn(bot: Bot, seconds: float) -> Backtest:
    bot.clock.tell(f"Learning from {bot.memory.size:,} threads")
    backtest = learning.learn(bot.memory, bot.settings, bot.renderer, bot.place, seconds=seconds)
    bot.note(in_words(backtest))
    return backtest


def plan_all(threads: list[Thread], look: Look, bot: Bot) -> list[Plan]:
    """What is to be said on each of the threads, within what one run and one day may say."""
    room = bot.settings.comment.daily_limit - bot.memory.promised_on(bot.now.date())
    plans: list[Plan] = []
    for thread in threads:
        full = sum(not p.passed for p in plans) >= MAX_ANSWERS
        planned = plan(thread, look, bot, "one run answers no more, the next one does" if full else bot.muted)
        if planned.is_new and bot.settings.mode == "comment":
            room -= 1
        if room < 0 and planned.is_new:
            planned = replace(planned, waits="as many comments were written as one day may have")
        plans.append(planned)
    return plans


def plan(thread: Thread, look: Look, bot: Bot, waits: str = "") -> Plan:
    """What memory has to say on this thread, as text. ``waits``: why it is not to be worked out in this run."""
    reason = "" if look.asks_for(thread) else reason_to_pass(thread, bot.settings)
    question = question_of(thread, bot.place)
    base = Plan(thread, Silent(reason), question=question, before=look.said.get(thread.id))
    if reason or waits:
        return replace(base, passed=bool(reason), waits="" if reason else waits)
    try:
        _fetch_missing(thread, bot)
        text, answered = _worked_out(base, bot)
        own, removed = _standing(answered, text, look, bot)
    except ForgeError as error:
        return replace(base, waits=str(error), fault=error)
    return replace(answered, text=text, own=own, removed=removed)


def _worked_out(base: Plan, bot: Bot) -> tuple[str, Plan]:
    """The sealed comment, empty for silence, and the plan with the answer that it tells."""
    thread = base.thread
    answer = decide(recall(thread, bot.memory, bot.settings, bot.place))
    if isinstance(answer, Silent):
        return "", replace(base, answer=answer)
    rendered = bot.renderer.render(
        answer.context, thread_id=thread.id, now=thread.revised_at, searched=answer.context.searched
    )
    if rendered.problem:
        bot.note(rendered.problem)
    return seal(rendered.text, fingerprint(answer.context)), replace(base, answer=answer)


def _standing(p: Plan, text: str, look: Look, bot: Bot) -> tuple[OwnComment | None, bool]:
    """Our comment on the thread, and whether a person deleted it. It is looked for only before something is written."""
    key, before = p.thread.id, p.before
    own = look.news.own.get(key)
    if own or not isinstance(key, int):
        return own, False
    if before and before.state == "removed":
        return None, True
    if bot.settings.mode != "comment" or not (text or (before and before.comment_id)):
        return None, False
    if before and before.state == "pending" and before.text_hash:
        return look_back(key, before.at, bot.forge, bot.own)
    if key in look.news.own:
        return None, False
    own = look_for(key, bot.forge, bot.own)
    return own, own is None and before is not None and before.comment_id is not None


def _still_ours(plans: Iterable[Plan], bot: Bot) -> list[Plan]:
    """The plans as they are once memory is written: of two runs that promised an answer at once, one gives it."""
    waits = "another run that began meanwhile answers it"
    return [replace(p, waits=waits, fault=None) if p.thread.id in bot.memory.taken else p for p in plans]


def _read_history(bot: Bot, since: datetime | None) -> tuple[ThreadId, ...]:
    """Read history for a while: before the first answer, and when more changed than is read one by one.

    Returns the threads of it that are still fresh.
    """
    seen = backfill(bot.memory, bot.history, bot.clock, since, FIRST_SECONDS)
    if seen is None:
        bot.note("The history is longer than one run reads: the next runs go on, or start one with run: rebuild.")
    found = bot.memory.entries(seen or ())
    return tuple(key for key, entry in found.items() if entry.created_at > bot.now - bot.within)


def _with_hint(news: News, event: Event, held: Mapping[ThreadId, Record], bot: Bot) -> News:
    """The news with the event's own thread, which the list may not show yet or no longer."""
    number = event.number
    assert number is not None
    if event.forgets:
        gone = Tombstone(number, bot.now, event.action, event.moved_to)
        return replace(news, records=(*(r for r in news.records if r.id != number), gone))
    if (event.is_pull and not bot.settings.pulls) or number in held or any(r.id == number for r in news.records):
        return news
    try:
        thread, own, issue = read_thread(bot.forge, bot.own, number)
    except Gone as error:
        return _without_hint(news, event, error, bot)
    if issue.get("pull_request") and not bot.settings.pulls:
        return news
    return replace(news, records=(*news.records, thread), own={**news.own, number: own})


def _without_hint(news: News, event: Event, gone: Gone, bot: Bot) -> News:
    """The news when the event's own thread cannot be had."""
    number = event.number
    assert number is not None
    if event.name == "workflow_dispatch":
        raise UserError(f"issue {number} cannot be answered: {gone}; give the number of an issue of this repository")
    if gone.certain:
        return replace(news, records=(*news.records, tombstone(number, gone, bot.now)))
    bot.note(f"Issue {number} cannot be seen now, and was left as it is: {gone}")
    return news


def _due(look: Look, bot: Bot) -> list[Thread]:
    """The threads to answer now, the event's own first: the news, the event's, and those that wait for an answer."""
    keys = [*(record.id for record in look.news.records), *look.late, *bot.memory.pending]
    keys += [look.event.number] if look.event.number else []
    current = bot.memory.records(dict.fromkeys(keys)).values()
    waiting = due((record for record in current if isinstance(record, Thread)), look)
    return sorted(waiting, key=lambda thread: (thread.id != look.event.number, thread.created_at))


def _fetch_missing(thread: Thread, bot: Bot) -> None:
    """Fetch once what the thread points at and memory does not hold; what cannot be had stays unknown."""
    wanted = referenced(thread, bot.place)[: bot.settings.references.max]
    held = bot.memory.records(wanted)
    newest = thread.id if isinstance(thread.id, int) else 0
    fetched: list[Record] = []
    for number in wanted:
        if number in held or number > newest:
            continue
        try:
            fetched.append(read_thread(bot.forge, bot.own, number)[0])
        except (RateLimited, Unauthorised):
            raise
        except ForgeError as error:
            if isinstance(error, Gone):  # what only cannot be seen now comes back as soon as it can be
                fetched.append(
                    tombstone(number, error, bot.now) if error.certain else Tombstone(number, EPOCH, "unseen")
                )
            bot.note(f"Issue {number}, which is mentioned, could not be read: {error}")
    if fetched:
        bot.memory.stage(Changes(records=tuple(fetched)))


def _release(told: Iterable[Spoken], bot: Bot) -> None:
    """What could not be said: taken back where GitHub takes no comment, else left to whichever run comes next."""
    failed = {spoken.id: spoken for spoken in told if spoken.is_refused or spoken.error}
    outcomes = []
    for key, said in bot.memory.said(failed).items():
        state = "silent" if failed[key].is_refused else said.state
        outcomes.append(replace(said, state=state, reason=failed[key].reason, trying_since=None))
    if outcomes:
        bot.memory.stage(Changes(said=tuple(outcomes)))
        bot.memory.commit("Take back what could not be said")


def _message(event: Event) -> str:
    what = f"{event.name} {event.action}".strip()
    return f"Remember {what} of {event.number}" if event.number else f"Remember {what}"
