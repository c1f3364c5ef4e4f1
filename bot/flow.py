"""THE straight line: what happens to one event. Read this first.

event → what changed → memory → what is worth saying → memory is durable → the comment
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from bot.answer import Silent
from bot.backfill import FIRST_SECONDS, Clock, backfill, bury
from bot.comment.render import Renderer
from bot.comment.seal import fingerprint, seal
from bot.duty import Look, due, reason_to_pass
from bot.github.catch_up import OVERLAP, PAGES, Known, News, catch_up, read_thread, tombstone
from bot.github.errors import ForgeError, Gone, RateLimited, Unauthorised
from bot.github.events import Event
from bot.github.forge import Forge
from bot.github.history import History
from bot.github.threads import Own, OwnComment
from bot.memory.memory import Memory
from bot.model import Changes, Record, Said, Thread, ThreadId, Tombstone
from bot.recall.answering import decide, recall
from bot.recall.mentioned import Place, referenced
from bot.settings import Settings
from bot.voice import Plan, Spoken, speak

MAX_ANSWERS = 5
"""Issues that one run answers at most; the next run takes the others."""


@dataclass(frozen=True, slots=True)
class Bot:
    """Everything that handling an event needs. ``now`` is the time of the run."""

    memory: Memory
    forge: Forge
    history: History
    own: Own
    settings: Settings
    renderer: Renderer
    place: Place
    now: datetime
    clock: Clock
    note: Callable[[str], None]


def handle(event: Event, bot: Bot) -> list[Spoken]:
    """Handle one event. Returns what was said, or why nothing was, for each thread that was due an answer."""
    look = look_around(event, bot)
    bot.memory.stage(Changes(records=look.news.records, said=_seen(look), cursor=look.news.cursor))
    plans = [plan(thread, look, bot) for thread in _due(look, bot)]
    bot.memory.stage(Changes(said=tuple(_promise(p, bot.now) for p in plans)))
    bot.memory.commit(_message(event))
    return [speak(p, bot.forge, bot.own, bot.settings.mode) for p in plans]


def look_around(event: Event, bot: Bot) -> Look:
    """What changed since the last run, whatever the event says, and what memory knew of it before."""
    hinted = [event.number] if event.number else []
    memory = bot.memory.open(hinted)
    if memory.cursor is None:
        _begin(bot)
    since = memory.cursor - OVERLAP if memory.cursor else None
    listed, complete = bot.forge.issues_since(since, PAGES) if since else ([], False)
    if not bot.settings.pulls:
        listed = [issue for issue in listed if not issue.get("pull_request")]
    ids = list(dict.fromkeys([*(issue["number"] for issue in listed), *hinted, *memory.pending]))
    held = dict(memory.records(ids))
    said = memory.said(ids)
    known = Known(held, frozenset(said))
    news = catch_up(bot.forge, bot.own, known, listed, since)
    news = _with_hint(news, event, held, bot) if event.number else news
    if not complete and since:
        bot.note("More changed than one run reads: the next runs go on from here.")
    seen = {issue["number"] for issue in listed}
    unposted: dict[ThreadId, OwnComment | None] = {key: None for key in memory.pending if key not in seen}
    return Look(event, replace(news, own=unposted | dict(news.own)), bot.now, bot.place, held, said)


def rebuild(bot: Bot) -> int:
    """Read the whole history again and make the index anew from it. Returns the number of threads."""
    memory = bot.memory.open()
    seen = backfill(memory, bot.history, bot.clock, None, None)
    buried = bury(memory, seen or set(), bot.now)
    if buried:
        bot.note(f"{buried} threads are gone from GitHub: their text was removed.")
    memory.rebuild_index()
    memory.commit(f"Rebuild: {memory.size} threads")
    return memory.size


def plan(thread: Thread, look: Look, bot: Bot) -> Plan:
    """What memory has to say on this thread, as text."""
    base = Plan(
        thread=thread,
        answer=Silent(reason_to_pass(thread, bot.settings)),
        own=look.news.own.get(thread.id),
        own_is_known=thread.id in look.news.own,
        before=look.said.get(thread.id),
    )
    if base.reason and look.event.name != "workflow_dispatch":
        return base
    _fetch_missing(thread, bot)
    answer = decide(recall(thread, bot.memory, bot.settings, bot.place))
    if isinstance(answer, Silent):
        return replace(base, answer=answer)
    rendered = bot.renderer.render(
        answer.context, thread_id=thread.id, now=thread.revised_at, searched=answer.context.searched
    )
    if rendered.problem:
        bot.note(rendered.problem)
    return replace(base, answer=answer, text=seal(rendered.text, fingerprint(answer.context)))


def _begin(bot: Bot) -> None:
    """The first run of all: read history for a while, so that even the first answer has something to look through."""
    if backfill(bot.memory, bot.history, bot.clock, None, FIRST_SECONDS) is None:
        bot.note("The history is longer than the first run reads: the next runs go on, or start one with run: rebuild.")


def _with_hint(news: News, event: Event, held: dict[ThreadId, Record], bot: Bot) -> News:
    """The news with the event's own thread, which the list may not show yet or no longer."""
    number = event.number
    assert number is not None
    if event.forgets:
        gone = Tombstone(number, bot.now, event.action, event.moved_to)
        return replace(news, records=(*(r for r in news.records if r.id != number), gone))
    if event.is_pull and not bot.settings.pulls:
        return news
    if number in held or any(record.id == number for record in news.records):
        return news
    try:
        thread, own, issue = read_thread(bot.forge, bot.own, number)
    except Gone as gone_error:
        if not gone_error.certain:
            raise
        return replace(news, records=(*news.records, tombstone(number, gone_error, bot.now)))
    if issue.get("pull_request") and not bot.settings.pulls:
        return news
    return replace(news, records=(*news.records, thread), own={**news.own, number: own})


def _due(look: Look, bot: Bot) -> list[Thread]:
    """The threads to answer now: those of the news, the event's, and those whose promised comment is missing."""
    keys = [record.id for record in look.news.records]
    keys += [key for key in (look.event.number, *bot.memory.pending) if key is not None]
    current = bot.memory.records(dict.fromkeys(keys)).values()
    waiting = due((record for record in current if isinstance(record, Thread)), look)
    if len(waiting) > MAX_ANSWERS:
        bot.note(f"{len(waiting) - MAX_ANSWERS} more issues wait for an answer: the next run takes them.")
    first = sorted(waiting, key=lambda thread: (thread.id != look.event.number, thread.created_at))
    return first[:MAX_ANSWERS]


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
            bot.note(f"Issue {number}, which is mentioned, could not be read: {error}")
    if fetched:
        bot.memory.stage(Changes(records=tuple(fetched)))


def _seen(look: Look) -> tuple[Said, ...]:
    """Promised comments that now stand: the promise is kept."""
    kept = []
    for key, said in look.said.items():
        comment = look.news.own.get(key)
        if said.state == "pending" and comment is not None:
            kept.append(replace(said, state="said", comment_id=comment.id))
    return tuple(kept)


def _promise(p: Plan, now: datetime) -> Said:
    """What memory keeps of an answer: written before the comment, so that no crash makes it twice or never."""
    if not p.text:
        state = "withdrawn" if p.own or (p.before and p.before.comment_id) else "silent"
        return Said(p.thread.id, state, now, p.reason, comment_id=p.before.comment_id if p.before else None)
    matches = tuple((m.id, m.similarity) for m in (*p.context.seen_before, *p.context.open_now))
    known = p.own.id if p.own else (p.before.comment_id if p.before else None)
    state = "said" if p.own else "pending"
    return Said(p.thread.id, state, now, "", fingerprint(p.context), known, matches)


def _message(event: Event) -> str:
    what = f"{event.name} {event.action}".strip()
    return f"Remember {what} of {event.number}" if event.number else f"Remember {what}"
