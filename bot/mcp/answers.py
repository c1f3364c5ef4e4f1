"""Answers the tools: data, and the same as short text. Loaded when a tool runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.comment.catalogue import count
from bot.comment.clean_text import account, cut
from bot.comment.prompt import DATA_NOTICE
from bot.domain.answer import Context, Match, Mention
from bot.domain.thread import Thread
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.mcp import text
from bot.mcp.context import ToolAnswer, ToolContext, now
from bot.questions.requests import MIN_CHARS, Issue, SmartSearch, WordSearch, WorkRequest
from bot.questions.search import search_memory
from bot.questions.thread import MOST, bounded, conversation, indented, plain
from bot.questions.views import MAX_TITLE, Row, cited, holds, linked_rows, passage_row, short_row, work_rows
from bot.settings.schema import Settings

HISTORY_SHARE = 0.5
"""Largest share of the characters that recent conversation may fill."""

SEARCHED = "issues, pull requests and pages"
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_SECTIONS = {
    "related": "Related to the branch",
    "decisions": "Decided about the files at hand",
    "tasks": "Open tasks",
    "recent": "Decided last, about anything",
}


def _answer(line: str, data: Row, body: str = "") -> ToolAnswer:
    return ToolAnswer(data, cut(text.headed(line, data, body), MOST))


def _data(fields: Row, *, found: bool, searched: int, notes: Sequence[str] = ()) -> Row:
    """The fields that every answer has, then its own; within bounds, and with nothing hidden in them."""
    shared = {"nothing_relevant": not found, "searched": searched, "notes": list(notes), "notice": DATA_NOTICE}
    return dict(plain(bounded({**shared, **fields})))


def _of_memory(tools: ToolContext, place: LocalMemory, fields: Row, *, found: bool) -> Row:
    notes = [line for line in place.note.split("\n") if line]
    if tools.where.offline and place.store is None and place.cache:
        with suppress(ValueError):
            age = now() - datetime.fromisoformat(place.local_cache.fact("fetched"))
            notes.append(f"Offline: the memory is as of {ago(age.total_seconds())}.")
    return _data(fields, found=found, searched=place.local_cache.size, notes=notes)


def ago(seconds: float) -> str:
    """An age in its largest unit: ``3 hours ago``."""
    for size, name in _UNITS:
        if seconds >= size:
            return f"{count(int(seconds // size), name)} ago"
    return "less than a minute ago"


def answer_search(tools: ToolContext, asked: WordSearch) -> ToolAnswer:
    """The threads that hold these words, or the messages of sessions."""
    if asked.is_of_sessions:
        return _answer_sessions(tools, asked)
    with tools.opened() as place:
        found = search_memory(asked, place.local_cache)
        hits = [
            short_row(one.card, place.home, score=round(one.score, 2), why=holds(one.terms, asked.words))
            for one in found.found
        ]
        fields: Row = {"hits": hits, "linked": linked_rows(found.near, place.home), "passages": []}
        data = _of_memory(tools, place, fields, found=bool(hits))
    return _answer_hits(data, f"for {text.quoted(asked.words, 80)}", asked.limit)


def _answer_sessions(tools: ToolContext, asked: WordSearch) -> ToolAnswer:
    from bot.local_cache.sessions import search_sessions

    found = search_sessions(asked, tools.folder, "", warn=tools.where.warn)
    said = [passage_row(one) for one in found.passages]
    data = _data({"hits": [], "linked": [], "passages": said}, found=bool(said), searched=found.searched)
    about, searched = f"for {text.quoted(asked.words, 80)}", f"{count(found.searched, 'session')} searched."
    if not said:
        return _answer(f"Nothing relevant {about}: {searched}", data)
    more = ", and there may be more" if len(said) == asked.limit else ""
    line = f"{count(len(data['passages']), 'message')} found {about}{more}: {searched}"
    return _answer(line, data, f"\nSaid in sessions on this machine:\n{text.passages_text(data['passages'])}")


def answer_smart_search(tools: ToolContext, asked: SmartSearch) -> ToolAnswer:
    """The threads related to these words, to the work at hand, or to both."""
    from bot.questions.smart_search import smart

    with tools.opened() as place:
        found = smart(asked, place.local_cache)
        hits = [short_row(one.card, place.home, score=round(one.score, 2), why=list(one.why)) for one in found.hits]
        fields = {"hits": hits, "used": list(found.used), "unused": list(found.unused)}
        data = _of_memory(tools, place, fields, found=bool(hits))
    about = f"for {text.quoted(asked.words, 80)}" if asked.words else "to the work at hand"
    return _answer_hits(data, about, asked.limit)


def _answer_hits(data: Row, about: str, limit: int) -> ToolAnswer:
    signals = _signals(data)
    if data["nothing_relevant"]:
        return _answer(f"Nothing relevant {about}: {data['searched']} {SEARCHED} searched.{signals}", data)
    near = data.get("linked")
    body = text.rows_text(data["hits"]) + (f"\nLinked to these:\n{text.rows_text(near)}" if near else "")
    more = ", and there may be more" if len(data["hits"]) == limit else ""
    searched = f"{data['searched']} {SEARCHED}"
    return _answer(f"{len(data['hits'])} of {searched} are relevant {about}{more}.{signals}", data, body)


def answer_what(tools: ToolContext, asked: WorkRequest) -> ToolAnswer:
    """What is related to the work at hand, decided about its files, open near it, and was decided last."""
    from bot.questions.what import find_what

    with tools.opened() as place:
        found = find_what(asked, place.local_cache)
        fields = work_rows(found, place.home) | {"used": list(found.used), "unused": list(found.unused)}
        data = _of_memory(tools, place, fields, found=found.is_relevant)
    body = "".join(f"\n{title}:\n{text.rows_text(data[name])}" for name, title in _SECTIONS.items() if data[name])
    line = "What the memory has on the work at hand." if found.is_relevant else "Nothing relevant to the work at hand."
    return _answer(f"{line} {data['searched']} {SEARCHED} searched.{_signals(data)}", data, body)


def _signals(data: Mapping[str, Any]) -> str:
    used, unused = data.get("used", ()), data.get("unused", ())
    parts = [f"Used: {', '.join(map(text.quoted, used))}."] if used else []
    parts += [f"Not used: {'; '.join(map(text.quoted, unused))}."] if unused else []
    return "".join(f"\n{text.plain_line(part)}" for part in parts)


def answer_conversation(tools: ToolContext, name: str, chars: int) -> ToolAnswer:
    """One thread, with as much of its conversation as fits into ``chars``."""
    from bot.local_cache.threads import thread_named

    with tools.opened() as place:
        thread = thread_named(place, name)
        if thread is None:
            return _unknown(tools, place, text.quoted(name, 80), conversation=[])
        said = conversation(thread, chars)
        fields = _known(place, thread) | {"conversation": said.messages, "omitted": said.omitted}
        data = _of_memory(tools, place, fields, found=True)
    left_out = f", {data['omitted']} left out as they did not fit" if data["omitted"] else ""
    spoken = "".join(f"\n{_speaker(each)}\n{indented(each['text'])}" for each in data["conversation"])
    line = f"{text.head_text(data['thread'])}\n{len(thread.comments) + 1} messages{left_out}."
    return _answer(line, data, f"{_decided(data['thread'])}{spoken}")


def answer_issue(tools: ToolContext, issue: Issue, chars: int) -> ToolAnswer:
    """What the bot would say about an issue, and what was said on it in the last days."""
    from bot.comment.prompt import as_xml
    from bot.domain.thread import RepositoryAddress
    from bot.local_cache.sessions import sessions_of_issue
    from bot.local_cache.threads import open_records
    from bot.recall.answer import recall
    from bot.recall.library import WithoutWords

    with tools.opened() as place:
        number = issue.within(place.repo)
        settings = settings_of(place)
        with open_records(place) as memory:
            thread = WithoutWords(memory, settings.ignore.people).records([number]).get(number)
            if not isinstance(thread, Thread):
                return _unknown(tools, place, f"#{number}", related=[], pages=[], elsewhere=[], quoted="")
            found = recall(thread, memory, _within(chars, settings), RepositoryAddress(place.repo or None))
        talk = [thread, *sessions_of_issue(place, number)]
        history = _history(talk, tools.me or (settings.comment.author,), int(chars * HISTORY_SHARE))
        context, omitted = _fitted(found, chars - len(history))
        quoted = as_xml(context, history)
        fields = _known(place, thread) | _context_fields(context) | {"quoted": quoted, "omitted": omitted}
        data = _of_memory(tools, place, fields, found=bool(quoted))
    head, decided = text.head_text(data["thread"]), _decided(data["thread"])
    if not quoted:
        return _answer(f"{head}\nNothing relevant to it: {data['searched']} {SEARCHED} searched.", data, decided)
    return _answer(head, data, f"{decided}\n{data['quoted']}")


def _unknown(tools: ToolContext, place: LocalMemory, name: str, **fields: Any) -> ToolAnswer:
    """There is no such thread. That is an answer and no error, as the memory may be older than the thread."""
    data = _of_memory(tools, place, {"found": False, "thread": {}, "omitted": 0} | fields, found=False)
    return _answer(f"No record of {name} among {data['searched']} {SEARCHED}.", data)


def _known(place: LocalMemory, thread: Thread) -> Row:
    from bot.local_cache.threads import card_named

    return {"found": True, "thread": short_row(card_named(place, thread), place.home)}


def _within(chars: int, known: Settings) -> Settings:
    """The settings with budgets of at most a third of these characters."""
    most = chars // 3
    references = replace(known.references, chars=min(known.references.chars, most))
    budget = min(known.troubleshooting.total_budget_chars, most)
    return replace(
        known, references=references, troubleshooting=replace(known.troubleshooting, total_budget_chars=budget)
    )


def _history(talk: Sequence[Thread], mine: Sequence[str], room: int) -> str:
    """What was said on the issue in the last days, as XML; "" if that is only its opening text."""
    from bot.comment.prompt import Xml, render
    from bot.questions.context import history_of, recent_conversations

    said = recent_conversations(talk, mine, now())
    if room < MIN_CHARS or sum(len(one.turns) for one in said.conversations) < 2:
        return ""
    form = Xml(is_part=True)
    return render(history_of(said, form, room), form)


def _fitted(context: Context, room: int) -> tuple[Context, int]:
    """The context without what does not fit, the least important left out first; and how many that is."""
    from bot.comment.prompt import as_xml

    omitted = 0
    for name in ("pages", "open_now", "also_mentioned", "seen_before", "mentioned"):
        while getattr(context, name) and len(as_xml(context)) > room:
            context = replace(context, **{name: getattr(context, name)[:-1]})
            omitted += 1
    return context, omitted


def _context_fields(context: Context) -> Row:
    mentions = (one for one in (*context.mentioned, *context.also_mentioned) if not one.missing)
    related = [_related("mentioned", one, 1.0, ("mentioned in the text",)) for one in mentions]
    related += [_related("seen before", one, one.similarity, one.why) for one in context.seen_before]
    related += [_related("open now", one, one.similarity, one.why) for one in context.open_now]
    return {
        "related": related,
        "pages": [{"title": one.title, "url": one.url, "similarity": one.similarity} for one in context.pages],
        "elsewhere": list(context.elsewhere),
    }


def _related(how: str, one: Mention | Match, similarity: float, why: Sequence[str]) -> Row:
    return {
        "id": one.id,
        "cite": cited(one.id),
        "how": how,
        "state": one.state,
        "similarity": round(similarity, 2),
        "outcome": one.outcome.kind.value,
        "fix": one.fix.ref if one.fix else one.outcome.fix or "",
        "title": one.title[:MAX_TITLE],
        "why": list(why),
    }


def _decided(thread: Row) -> str:
    told = text.row_ending(thread)
    ended = [f"ended: {told}\n"] if told else []
    return "".join([*ended, *(f"{text.decided_text(each)}\n" for each in thread["decisions"])])


def _speaker(message: Row) -> str:
    """The author, role and day of a message, on an unindented line, which only we write."""
    role = f", {message['role'].lower()}" if message["role"] not in ("", "NONE") else ""
    return f"[{account(message['author'])}{role}, {message['at'][:10]}]"
