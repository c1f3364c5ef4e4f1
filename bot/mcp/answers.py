"""Answers the requests that tools make: data, and the same as short text. Loaded when a tool runs.

In the text each thread is a few lines, and other people's words stand in quotation marks on one line or are indented.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.comment.catalogue import count
from bot.comment.clean_text import cut, one_line
from bot.comment.prompt import DATA_NOTICE, visible
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.thread import RepositoryAddress, Thread
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.local_cache.messages import LocalMessages
from bot.local_cache.session_answers import also_in_sessions, sessions_about_issue, sessions_about_work
from bot.mcp.tools import ToolAnswer, ToolContext, now
from bot.questions.requests import (
    DraftRequest,
    IssueRequest,
    OrganisationRequest,
    SmartSearch,
    ThreadRequest,
    WordSearch,
    WorkRequest,
)
from bot.questions.search import search_memory
from bot.questions.thread import INDENT, MOST, bounded, indented, plain, read_thread, signed
from bot.questions.views import (
    RELATED,
    RELATED_PAGE,
    WORK,
    Row,
    cited,
    holds,
    linked_rows,
    passage_row,
    row_of,
    said_rows,
    session_facts,
    session_rows,
    short_row,
    work_rows,
)

SEARCHED = "issues, pull requests and pages"
TITLE, SENTENCE, SUMMARY = 160, 240, 300
DECISIONS, FILES, REASONS = 3, 6, 4
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def answer_to(tools: ToolContext, request: object) -> ToolAnswer:
    return _ANSWERS[type(request)](tools, request)


def _search(tools: ToolContext, asked: WordSearch) -> ToolAnswer:
    if asked.is_of_sessions:
        return _search_sessions(tools, asked)
    with tools.opened() as place:
        cards = place.local_cache
        found = search_memory(asked, cards, LocalMessages(place))
        hits = [
            short_row(
                one.card,
                place.home,
                repository="",
                score=round(one.score, 2),
                why=holds(one.terms, asked.words),
                passages=said_rows(found.passages.get(one.card.id), place.home),
            )
            for one in found.found
        ]
        said = [passage_row(one.passage) for one in also_in_sessions(asked, place)]
        fields: Row = {
            "searched_messages": cards.messages,
            "hits": hits,
            "linked": linked_rows(found.near, place.home),
            "passages": said,
        }
        data = _of_memory(tools, place, fields, found=bool(hits or said))
    return _hits_answer(data, _for(asked.words), asked.limit)


def _search_organisation(tools: ToolContext, asked: OrganisationRequest) -> ToolAnswer:
    from bot.local_cache.organisation import listed_sources, open_index
    from bot.questions.organisation import organisation_row, search_organisation

    if not tools.organisation:
        raise UserError("no other repository is searched here: name the folder of `precedent org` in PRECEDENT_ORG")
    folder = Path(tools.organisation).absolute()
    listed = listed_sources(folder)
    with open_index(folder) as index:
        found = search_organisation(asked, index, listed.names)
    hits = [organisation_row(one, asked.words, short_row, score=round(one.score, 2)) for one in found.found]
    notes = [*found.notes, *filter(None, [listed.age_note(now())])]
    fields: Row = {"searched_messages": 0, "hits": hits, "linked": [], "passages": []}
    data = _data(fields, found=bool(hits), searched=sum(one.threads for one in listed.sources), notes=notes)
    if not hits:
        return _answer(f"Nothing relevant {_for(asked.words)}: {listed.searched}.", data)
    line = (
        f"{count(len(data['hits']), 'thread')} found {_for(asked.words)}{_more(hits, asked.limit)}: {listed.searched}."
    )
    return _answer(line, data, _rows_text(data["hits"]))


def _search_sessions(tools: ToolContext, asked: WordSearch) -> ToolAnswer:
    from bot.local_cache.sessions import search_sessions

    found = search_sessions(asked, tools.where.folder, "", warn=tools.where.warn)
    said = [passage_row(one) for one in found.passages]
    fields: Row = {"searched_messages": 0, "hits": [], "linked": [], "passages": said}
    data = _data(fields, found=bool(said), searched=found.searched)
    searched = f"{count(found.searched, 'session')} searched."
    if not said:
        return _answer(f"Nothing relevant {_for(asked.words)}: {searched}", data)
    line = f"{count(len(data['passages']), 'message')} found {_for(asked.words)}{_more(said, asked.limit)}: {searched}"
    return _answer(line, data, _said_in_sessions(data["passages"]))


def _said_in_sessions(passages: Sequence[Row]) -> str:
    told = "".join(
        f"\nsession {_line(each['session_id'])} ({_line(each['type'])}, {each['timestamp'][:10]})\n"
        f"{INDENT}{quoted(each['content'], SUMMARY)}\n"
        for each in passages
    )
    return f"\nSaid in sessions on this machine:\n{told}" if told else ""


def _smart_search(tools: ToolContext, asked: SmartSearch) -> ToolAnswer:
    from bot.questions.smart_search import smart

    with tools.opened() as place:
        cards = place.local_cache
        found = smart(asked, cards, LocalMessages(place))
        hits = [
            short_row(
                one.card,
                place.home,
                score=round(one.score, 2),
                why=list(one.why),
                passages=said_rows(found.passages.get(one.card.id), place.home),
            )
            for one in found.hits
        ]
        fields = {
            "searched_messages": cards.messages,
            "hits": hits,
            "used": list(found.used),
            "unused": list(found.unused),
        }
        data = _of_memory(tools, place, fields, found=bool(hits))
    return _hits_answer(data, _for(asked.words) if asked.words else "to the work at hand", asked.limit)


def _hits_answer(data: Row, about: str, limit: int) -> ToolAnswer:
    searched, signals = f"{data['searched']} {SEARCHED}", _signals(data)
    if data["nothing_relevant"]:
        messages = f"{data['searched_messages']} of their messages"
        return _answer(f"Nothing relevant {about}: {searched} and {messages} searched.{signals}", data)
    near, said = data.get("linked"), data.get("passages", [])
    body = (
        _rows_text(data["hits"]) + (f"\nLinked to these:\n{_rows_text(near)}" if near else "") + _said_in_sessions(said)
    )
    also = f" {count(len(said), 'session')} too." if said else ""
    line = f"{len(data['hits'])} of {searched} are relevant {about}{_more(data['hits'], limit)}.{also}{signals}"
    return _answer(line, data, body)


def _for(words: str) -> str:
    return f"for {quoted(words, 80)}"


def _more(found: Sequence[Row], limit: int) -> str:
    return ", and there may be more" if len(found) == limit else ""


def _what(tools: ToolContext, asked: WorkRequest) -> ToolAnswer:
    from bot.questions.what import find_what

    with tools.opened() as place:
        found = find_what(asked, place.local_cache, sessions_about_work(place, asked.worktree))
        fields = work_rows(found, place.home) | {"used": list(found.used), "unused": list(found.unused)}
        data = _of_memory(tools, place, fields, found=found.is_relevant)
    sections = ((section.title_for_agents, data[name]) for name, section in WORK.items())
    body = "".join(f"\n{title}:\n{_rows_text(rows)}" for title, rows in sections if rows) + _sessions(data)
    line = "What the memory has on the work at hand." if found.is_relevant else "Nothing relevant to the work at hand."
    return _answer(f"{line} {data['searched']} {SEARCHED} searched.{_signals(data)}", data, body)


def _signals(data: Mapping[str, Any]) -> str:
    used, unused = data.get("used", ()), data.get("unused", ())
    parts = [f"Used: {', '.join(map(quoted, used))}."] if used else []
    parts += [f"Not used: {'; '.join(map(quoted, unused))}."] if unused else []
    return "".join(f"\n{_line(part)}" for part in parts)


def _conversation(tools: ToolContext, asked: ThreadRequest) -> ToolAnswer:
    from bot.local_cache.threads import card_named, thread_named

    with tools.opened() as place:
        thread = thread_named(place, asked.name)
        if thread is None:
            return _unknown(tools, place, quoted(asked.name, 80), conversation=[])
        sessions = session_rows(sessions_about_issue(place, thread.id) if isinstance(thread.id, int) else ())
        said = read_thread(asked, thread, card_named(place, thread), place.local_cache).said
        fields = _known(place, thread) | {
            "sessions": sessions, "conversation": said.messages, "omitted": said.omitted,
        }  # fmt: skip
        data = _of_memory(tools, place, fields, found=True)
    left_out = f", {data['omitted']} left out as they did not fit" if data["omitted"] else ""
    # only we write lines that are not indented
    spoken = "".join(
        f"\n[{signed(each['author'], each['role'])}, {each['at'][:10]}]\n{indented(each['text'])}"
        for each in data["conversation"]
    )
    line = f"{_head(data['thread'])}\n{len(thread.comments) + 1} messages{left_out}."
    return _answer(line, data, f"{_decided(data['thread'])}{_sessions(data)}{spoken}")


def _sessions(data: Row) -> str:
    told = "".join(
        f"session {_line(each['id'])} ({_line(session_facts(each))}) {quoted(each['title'], TITLE)}\n"
        for each in data["sessions"]
    )
    return f"\nSessions that worked on it:\n{told}" if told else ""


def _issue(tools: ToolContext, asked: IssueRequest) -> ToolAnswer:
    from bot.local_cache.sessions import threads_of
    from bot.local_cache.threads import open_records
    from bot.questions.issue import QuestionService, issue_context

    with tools.opened() as place:
        number = asked.issue.within(place.repo)
        with open_records(place) as memory:
            service = QuestionService(memory, settings_of(place), RepositoryAddress(place.repo or None))
            thread = service.quiet.records([number]).get(number)
            if not isinstance(thread, Thread):
                return _unknown(tools, place, f"#{number}", related=[], pages=[], elsewhere=[], quoted="")
            sessions = sessions_about_issue(place, number)
            found = issue_context(asked, thread, threads_of(place, sessions, number), service)
        fields = _known(place, thread) | {
            "sessions": session_rows(sessions),
            "related": [row_of(RELATED, each) for each in found.related],
            "pages": [row_of(RELATED_PAGE, each) for each in found.context.pages],
            "elsewhere": list(found.context.elsewhere),
            "quoted": found.quoted,
            "omitted": found.omitted,
        }
        data = _of_memory(tools, place, fields, found=bool(found.quoted or sessions))
    head, decided = _head(data["thread"]), _decided(data["thread"]) + _sessions(data)
    if data["nothing_relevant"]:
        return _answer(f"{head}\nNothing relevant to it: {data['searched']} {SEARCHED} searched.", data, decided)
    return _answer(head, data, f"{decided}\n{data['quoted']}")


def _draft(tools: ToolContext, asked: DraftRequest) -> ToolAnswer:
    from bot.local_cache.draft import check_draft

    with tools.opened() as place:
        found = check_draft(asked, place)
        data = _of_memory(tools, place, found.rows, found=bool(found.comment))
    data |= {"comment": found.comment}  # what keeps it from pinging anybody is invisible
    if not found.comment:
        return _answer(found.nothing, data)
    return _answer("The bot would write this comment:", data, f"\n{indented(found.comment)}")


_ANSWERS: dict[type, Callable[[ToolContext, Any], ToolAnswer]] = {
    WordSearch: _search,
    OrganisationRequest: _search_organisation,
    SmartSearch: _smart_search,
    WorkRequest: _what,
    ThreadRequest: _conversation,
    IssueRequest: _issue,
    DraftRequest: _draft,
}


def _unknown(tools: ToolContext, place: LocalMemory, name: str, **fields: Any) -> ToolAnswer:
    """There is no such thread. That is an answer and no error, as the memory may be older than the thread."""
    unknown = {"found": False, "thread": {}, "sessions": [], "omitted": 0}
    data = _of_memory(tools, place, unknown | fields, found=False)
    return _answer(f"No record of {name} among {data['searched']} {SEARCHED}.", data)


def _known(place: LocalMemory, thread: Thread) -> Row:
    from bot.local_cache.threads import card_named

    return {"found": True, "thread": short_row(card_named(place, thread), place.home)}


def _of_memory(tools: ToolContext, place: LocalMemory, fields: Row, *, found: bool) -> Row:
    notes = [line for line in place.note.split("\n") if line]
    if tools.where.offline and place.store is None and place.cache:
        with suppress(ValueError):
            age = now() - datetime.fromisoformat(place.local_cache.fact("fetched"))
            notes.append(f"Offline: the memory is as of {ago(age.total_seconds())}.")
    return _data(fields, found=found, searched=place.local_cache.size, notes=notes)


def _data(fields: Row, *, found: bool, searched: int, notes: Sequence[str] = ()) -> Row:
    """The fields that every answer has, then its own; within bounds, and with nothing hidden in them."""
    shared = {"nothing_relevant": not found, "searched": searched, "notes": list(notes), "notice": DATA_NOTICE}
    return dict(plain(bounded({**shared, **fields})))


def ago(seconds: float) -> str:
    """An age in its largest unit: ``3 hours ago``."""
    for size, name in _UNITS:
        if seconds >= size:
            return f"{count(int(seconds // size), name)} ago"
    return "less than a minute ago"


def _answer(line: str, data: Row, body: str = "") -> ToolAnswer:
    notes = "".join(f"Note: {_line(note)}\n" for note in data["notes"])
    text = f"{line}\n{notes}{DATA_NOTICE if body else ''}\n{body}".rstrip() + "\n"
    return ToolAnswer(data, cut(text, MOST))


def quoted(text: str, most: int = SENTENCE) -> str:
    """The text on one line in quotation marks, those in it escaped."""
    return json.dumps(cut(one_line(visible(text)), most), ensure_ascii=False)


def _line(text: str) -> str:
    return cut(one_line(visible(text)), SUMMARY)


def _rows_text(found: Sequence[Row]) -> str:
    return "".join("\n" + "".join(f"{line}\n" for line in _row_lines(each)) for each in found)


def _row_lines(row: Row) -> Iterator[str]:
    yield _head(row)
    if row.get("why"):
        yield f"{INDENT}found because: {_line('; '.join(row['why'][:REASONS]))}"
    if told := _ending(row):
        yield f"{INDENT}ended: {told}"
    elif row["summary"]:
        yield f"{INDENT}summary: {quoted(row['summary'], SUMMARY)}"
    yield from (f"{INDENT}{_decision(each)}" for each in row["decisions"][:DECISIONS])
    yield from (f"{INDENT}{line}" for each in row.get("passages", ()) for line in _said(each))
    if row["files"]:
        yield f"{INDENT}files: {_line(', '.join(row['files'][:FILES]))}"
    if row["url"]:
        yield f"{INDENT}{row['url']}"


def _head(row: Row) -> str:
    """The first line of a thread: how to cite it, what it is, its title."""
    kind = Kind(row["kind"])
    state = f"{row['state']} {kind.traits.noun}" if kind.is_on_github else kind.traits.noun
    return f"{_line(row['cite'])} ({state}, {row['updated_at'][:10]}) {quoted(row['title'], TITLE)}"


def _ending(row: Row) -> str:
    """How it ended, in a few words; "" if unknown."""
    outcome = row["outcome"]
    if outcome["kind"] == OutcomeKind.UNKNOWN:
        return ""
    words = [outcome["kind"]]
    words += [f"by {outcome['fix']}"] if outcome["fix"] else []
    words += [f"in {outcome['release']}"] if outcome["release"] else []
    words += [f"of {cited(outcome['duplicate_of'])}"] if outcome["duplicate_of"] is not None else []
    said = f": {quoted(outcome['quote'])}" if outcome["quote"] else ""
    return one_line(" ".join(words)) + said


def _decision(decision: Row) -> str:
    who = one_line(" ".join(filter(None, (decision["author"], decision["role"].lower(), decision["at"][:10]))))
    later = f", superseded by {_line(decision['superseded_by'])}" if decision["superseded_by"] else ""
    return f"decided ({who}){later}: {quoted(decision['text'])}"


def _said(passage: Row) -> Iterator[str]:
    who = signed(passage["author"], passage["role"])
    said = f": {quoted(passage['text'])}" if passage["text"] else ""
    yield f"said ({one_line(who)}, {passage['at'][:10]}){said}"
    if "#" in passage["url"]:
        yield passage["url"]


def _decided(thread: Row) -> str:
    told = _ending(thread)
    ended = [f"ended: {told}\n"] if told else []
    return "".join([*ended, *(f"{_decision(each)}\n" for each in thread["decisions"])])
