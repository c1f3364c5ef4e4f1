"""Answers the requests of tools as data and as short text. Loaded when a tool runs.

In the text each thread takes a few lines. Other people's words are in quotation marks on one line, or indented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.comment.catalogue import count
from bot.comment.clean_text import account, one_line, truncate, visible
from bot.comment.prompt import DATA_NOTICE
from bot.domain.ages import age
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.thread import RepositoryAddress, Thread
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.local_cache.messages import LocalMessages
from bot.local_cache.session_answers import (
    also_at_work,
    also_in_sessions,
    records_about_issue,
    sessions_about,
)
from bot.mcp.tools import ToolAnswer, ToolContext, now
from bot.questions.addresses import citation
from bot.questions.fields import (
    LINKED_FIELDS,
    ORGANISATION_FIELDS,
    PAGE_FIELDS,
    RELATED_FIELDS,
    SESSION_FIELDS,
    SESSION_PASSAGE_FIELDS,
    THREAD_FIELDS,
    Row,
    item_of,
    labelled_texts,
    row_of,
    rows_of,
)
from bot.questions.requests import (
    DraftRequest,
    IssueRequest,
    ThreadRequest,
    WordSearch,
    WorkRequest,
    asked_by,
)
from bot.questions.search import search_memory
from bot.questions.thread import INDENT, MAX_ANSWER_CHARS, author_label, indent, limit_size, read_thread, visible_data
from bot.questions.views import WORK_SECTIONS, hit_items, linked_items, session_facts, work_rows

SEARCHED_KINDS = "issues, pull requests and pages"
MAX_TITLE_CHARS, MAX_SENTENCE_CHARS, MAX_SUMMARY_CHARS = 160, 240, 300
MAX_DECISIONS, MAX_FILES, MAX_REASONS = 3, 6, 4


def answer_to(tools: ToolContext, request: object) -> ToolAnswer:
    return _HANDLERS[type(request)](tools, request)


def _search(tools: ToolContext, request: WordSearch) -> ToolAnswer:
    if request.is_of_organisation:
        return _search_organisation(tools, request)
    if request.is_of_sessions:
        return _search_sessions(tools, request)
    with tools.open_memory() as memory:
        cards, request = memory.local_cache, asked_by(request, memory.questions, now())
        results = search_memory(request, cards, LocalMessages(memory))
        items, linked = hit_items(results, request.words, memory.home), linked_items(results.linked, memory.home)
        hits = rows_of(ORGANISATION_FIELDS, items, memory.home, agents=True)
        sessions = also_in_sessions(request, memory)
        passages = rows_of(SESSION_PASSAGE_FIELDS, (hit.passage for hit in sessions.found))
        fields: Row = {
            "searched_messages": cards.messages,
            "hits": hits,
            "linked": rows_of(LINKED_FIELDS, linked, memory.home, agents=True),
            "passages": passages,
        }
        unused = [f"Not used: {note}." for note in request.query.unused]
        data = _memory_data(tools, memory, fields, found=bool(hits or passages), notes=[*unused, *sessions.notes])
    return _hits_answer(data, _for_words(request.words), request.limit)


def _search_organisation(tools: ToolContext, request: WordSearch) -> ToolAnswer:
    from bot.local_cache.organisation import search_folder

    if not tools.organisation:
        raise UserError("no other repositories are set up here: set PRECEDENT_ORG to the folder of `precedent org`")
    result = search_folder(Path(tools.organisation).absolute(), request, now())
    hits = result.rows(agents=True)
    fields = _NO_HITS | {"hits": hits, "searched_messages": result.messages}
    data = _data(fields, found=bool(hits), searched=result.threads, notes=result.notes)
    return _listed(request, data, hits, result.search_scope)


def _search_sessions(tools: ToolContext, request: WordSearch) -> ToolAnswer:
    from bot.local_cache.sessions import search_sessions

    answer = search_sessions(request, tools.options.folder, "")
    (results,) = answer.found
    passages = rows_of(SESSION_PASSAGE_FIELDS, results.passages)
    fields = _NO_HITS | {"passages": passages}
    data = _data(fields, found=bool(passages), searched=results.searched, notes=answer.notes)
    return _listed(request, data, passages, f"{count(results.searched, 'session')} searched")


_NO_HITS: Row = {"searched_messages": 0, "hits": [], "linked": [], "passages": []}


def _listed(request: WordSearch, data: Row, found: Sequence[Row], searched: str) -> ToolAnswer:
    """The answer with these threads or messages, which ``data`` has as far as there is room."""
    about = f"{_for_words(request.words)}{_more_note(found, request.limit)}: {searched}."
    if not found:
        return _answer(f"Nothing relevant {about}", data)
    hits, passages = data["hits"], data["passages"]
    counted = count(len(hits), "thread") if hits else count(len(passages), "message")
    return _answer(f"{counted} found {about}", data, _rows_text(hits) + _session_passages_text(passages))


def _session_passages_text(passages: Sequence[Row]) -> str:
    lines = "".join(
        f"\nsession {_word(each['session_id'])} ({_short_line(each['type'])}, {each['timestamp'][:10]})\n"
        f"{INDENT}{quote(each['content'], MAX_SUMMARY_CHARS)}\n"
        for each in passages
    )
    return f"\nSaid in sessions on this machine:\n{lines}" if lines else ""


def _hits_answer(data: Row, about: str, limit: int) -> ToolAnswer:
    searched, signals = f"{data['searched']} {SEARCHED_KINDS}", _signals_text(data)
    if data["nothing_relevant"]:
        messages = f"{data['searched_messages']} of their messages"
        return _answer(f"Nothing relevant {about}: {searched} and {messages} searched.{signals}", data)
    linked, passages = data.get("linked"), data.get("passages", [])
    body = (
        _rows_text(data["hits"])
        + (f"\nLinked to these:\n{_rows_text(linked)}" if linked else "")
        + _session_passages_text(passages)
    )
    also = f" Also {count(len(passages), 'session')}." if passages else ""
    line = f"{len(data['hits'])} of {searched} are relevant {about}{_more_note(data['hits'], limit)}.{also}{signals}"
    return _answer(line, data, body)


def _for_words(words: str) -> str:
    return f"for {quote(words, 80)}"


def _more_note(rows: Sequence[Row], limit: int) -> str:
    return ", and there may be more" if len(rows) == limit else ""


def _answer_work(tools: ToolContext, request: WorkRequest) -> ToolAnswer:
    from bot.questions.work import find_for_work

    with tools.open_memory() as memory:
        cards, request = memory.local_cache, asked_by(request, memory.questions, request.now)
        results, sessions = find_for_work(request, cards, LocalMessages(memory)), also_at_work(request, memory)
        fields: Row = {"searched_messages": cards.messages} if request.is_search else {}
        fields |= work_rows(results, request, sessions.found, memory.home, agents=True)
        fields |= {"used": list(results.used), "unused": list(results.unused)}
        found = results.is_relevant or bool(sessions.found)
        data = _memory_data(tools, memory, fields, found=found, notes=sessions.notes)
    if request.is_search:
        about = _for_words(request.words) if request.words else "to the work at hand"
        return _hits_answer(data, about, request.limit)
    sections = ((section.title_for_agents, data[name]) for name, section in WORK_SECTIONS.items())
    body = "".join(f"\n{title}:\n{_rows_text(rows)}" for title, rows in sections if rows) + _sessions_text(data)
    line = "What the memory has on the work at hand." if found else "Nothing relevant to the work at hand."
    return _answer(f"{line} {data['searched']} {SEARCHED_KINDS} searched.{_signals_text(data)}", data, body)


def _signals_text(data: Mapping[str, Any]) -> str:
    used, unused = data.get("used", ()), data.get("unused", ())
    parts = [f"Used: {', '.join(map(quote, used))}."] if used else []
    parts += [f"Not used: {'; '.join(map(quote, unused))}."] if unused else []
    return "".join(f"\n{_short_line(part)}" for part in parts)


def _answer_conversation(tools: ToolContext, request: ThreadRequest) -> ToolAnswer:
    from bot.local_cache.threads import card_named, thread_named

    with tools.open_memory() as memory:
        notes: list[str] = []
        thread = thread_named(memory._replace(warn=notes.append), request.name)
        if thread is None:
            return _no_such_thread(tools, memory, quote(request.name, 80), notes, conversation=[])
        on_it = sessions_about(memory, thread.id)
        conversation = read_thread(request, thread, card_named(memory, thread), memory.local_cache).conversation
        fields = _thread_fields(memory, thread) | {
            "sessions": rows_of(SESSION_FIELDS, on_it.found),
            "conversation": conversation.messages,
            "omitted": conversation.omitted,
        }
        data = _memory_data(tools, memory, fields, found=True, notes=[*notes, *on_it.notes])
    left_out = f", {data['omitted']} left out as they did not fit" if data["omitted"] else ""
    # unindented lines are always ours
    messages = "".join(
        f"\n[{author_label(each['author'], each['role'])}, {each['at'][:10]}]\n{indent(each['text'])}"
        for each in data["conversation"]
    )
    line = f"{_title_line(data['thread'])}\n{len(thread.comments) + 1} messages{left_out}."
    return _answer(line, data, f"{_decisions_text(data['thread'])}{_sessions_text(data)}{messages}")


def _sessions_text(data: Row) -> str:
    lines = "".join(
        f"session {_word(each['id'])} ({_short_line(session_facts(each))}) {quote(each['title'], MAX_TITLE_CHARS)}\n"
        for each in data["sessions"]
    )
    return f"\nSessions that worked on it:\n{lines}" if lines else ""


def _answer_issue(tools: ToolContext, request: IssueRequest) -> ToolAnswer:
    from bot.local_cache.sync import memory_of
    from bot.questions.issue import QuestionService, issue_context

    with tools.open_memory() as memory:
        number = request.issue.within(memory.repo)
        with memory_of(memory) as records:
            service = QuestionService(records, settings_of(memory), RepositoryAddress(memory.repo or None))
            thread = records.records([number]).get(number)
            if not isinstance(thread, Thread):
                return _no_such_thread(tools, memory, f"#{number}", related=[], pages=[], elsewhere=[], quoted="")
            sessions = records_about_issue(memory, number)
            answer = issue_context(request, thread, [session.thread for session in sessions.found], service)
        fields = _thread_fields(memory, thread) | {
            "sessions": rows_of(SESSION_FIELDS, (session.outline for session in sessions.found)),
            "related": rows_of(RELATED_FIELDS, answer.related),
            "pages": rows_of(PAGE_FIELDS, answer.context.pages),
            "elsewhere": list(answer.context.elsewhere),
            "omitted": answer.omitted,
        }
        data = _memory_data(tools, memory, fields, found=bool(answer.quoted or sessions.found), notes=sessions.notes)
        data |= {"quoted": visible(answer.quoted)}  # not cut: it is as long as the caller allowed
    head, decided = _title_line(data["thread"]), _decisions_text(data["thread"]) + _sessions_text(data)
    if data["nothing_relevant"]:
        return _answer(f"{head}\nNothing relevant to it: {data['searched']} {SEARCHED_KINDS} searched.", data, decided)
    return _answer(head, data, f"{decided}\n{data['quoted']}", MAX_ANSWER_CHARS + request.chars)


def _answer_draft(tools: ToolContext, request: DraftRequest) -> ToolAnswer:
    from bot.local_cache.draft import check_draft

    with tools.open_memory() as memory:
        draft = check_draft(request, memory)
        data = _memory_data(tools, memory, draft.rows, found=bool(draft.comment))
    data |= {"comment": draft.comment}  # with the invisible characters that prevent pings
    if not draft.comment:
        return _answer(draft.nothing, data)
    return _answer("The bot would write this comment:", data, f"\n{indent(draft.comment)}")


_HANDLERS: dict[type, Callable[[ToolContext, Any], ToolAnswer]] = {
    WordSearch: _search,
    WorkRequest: _answer_work,
    ThreadRequest: _answer_conversation,
    IssueRequest: _answer_issue,
    DraftRequest: _answer_draft,
}


def _no_such_thread(
    tools: ToolContext, memory: LocalMemory, name: str, notes: Sequence[str] = (), **fields: Any
) -> ToolAnswer:
    """The thread is unknown: an answer, not an error, as the memory may be older than the thread."""
    unknown = {"found": False, "thread": {}, "sessions": [], "omitted": 0}
    data = _memory_data(tools, memory, unknown | fields, found=False, notes=notes)
    return _answer(f"No record of {name} among {data['searched']} {SEARCHED_KINDS}.", data)


def _thread_fields(memory: LocalMemory, thread: Thread) -> Row:
    from bot.local_cache.threads import card_named

    item = item_of(card_named(memory, thread), memory.home)
    return {"found": True, "thread": row_of(THREAD_FIELDS, item, memory.home, agents=True)}


def _memory_data(
    tools: ToolContext, memory: LocalMemory, fields: Row, *, found: bool, notes: Sequence[str] = ()
) -> Row:
    lines = [*filter(None, memory.note.split("\n")), *notes]
    if tools.options.offline and memory.store is None and memory.cache:
        with suppress(ValueError):
            fetched = datetime.fromisoformat(memory.local_cache.fact("fetched"))
            lines.append(f"Offline: the memory is as of {age(now() - fetched)} ago.")
    return _data(fields, found=found, searched=memory.local_cache.size, notes=lines)


def _data(fields: Row, *, found: bool, searched: int, notes: Sequence[str] = ()) -> Row:
    """The fields of every answer, then its own; bounded, and without hidden characters."""
    shared = {"nothing_relevant": not found, "searched": searched, "notes": list(notes), "notice": DATA_NOTICE}
    return dict(visible_data(limit_size({**shared, **fields})))


def _answer(line: str, data: Row, body: str = "", limit: int = MAX_ANSWER_CHARS) -> ToolAnswer:
    notes = "".join(f"Note: {_short_line(note)}\n" for note in data["notes"])
    text = f"{line}\n{notes}{DATA_NOTICE if body else ''}\n{body}".rstrip() + "\n"
    return ToolAnswer(data, truncate(text, limit))


def quote(text: str, most: int = MAX_SENTENCE_CHARS) -> str:
    """The text on one line in quotation marks, with inner ones escaped."""
    return json.dumps(truncate(one_line(visible(text)), most), ensure_ascii=False)


def _word(text: str | int) -> str:
    """A name or reference from memory as it is; in quotation marks if it may be more than that."""
    return str(text) if re.fullmatch(r"[\w.:/#@+-]{1,300}", str(text), re.ASCII) else quote(str(text))


def _short_line(text: str) -> str:
    return truncate(one_line(visible(text)), MAX_SUMMARY_CHARS)


def _rows_text(rows: Sequence[Row]) -> str:
    return "".join("\n" + "".join(f"{line}\n" for line in _row_lines(row)) for row in rows)


def _row_lines(row: Row) -> Iterator[str]:
    yield _title_line(row)
    if row.get("why"):
        yield f"{INDENT}found because: {_short_line('; '.join(row['why'][:MAX_REASONS]))}"
    if ending := _ending_text(row):
        yield f"{INDENT}ended: {ending}"
    elif row["summary"]:
        yield f"{INDENT}summary: {quote(row['summary'], MAX_SUMMARY_CHARS)}"
    yield from (f"{INDENT}{_decision_line(entry)}" for entry in row["decisions"][:MAX_DECISIONS])
    yield from (f"{INDENT}{line}" for entry in row.get("passages", ()) for line in _passage_lines(entry))
    yield from (f"{INDENT}{label}: {_short_line(value)}" for label, value in labelled_texts(row, MAX_FILES))
    if row["url"]:
        yield f"{INDENT}{row['url']}"


def _title_line(row: Row) -> str:
    """The first line of a thread: how to cite it, what it is, its title."""
    kind = Kind(row["kind"])
    state = f"{row['state']} {kind.traits.noun}" if kind.is_on_github else kind.traits.noun
    return f"{_word(row['cite'])} ({state}, {row['updated_at'][:10]}) {quote(row['title'], MAX_TITLE_CHARS)}"


def _ending_text(row: Row) -> str:
    """How it ended, in a few words; "" if unknown."""
    outcome = row["outcome"]
    if outcome["kind"] == OutcomeKind.UNKNOWN:
        return ""
    words = [outcome["kind"]]
    words += [f"by {_word(outcome['fix'])}"] if outcome["fix"] else []
    words += [f"in {_word(outcome['release'])}"] if outcome["release"] else []
    words += [f"of {_word(citation(outcome['duplicate_of']))}"] if outcome["duplicate_of"] is not None else []
    quotation = f": {quote(outcome['quote'])}" if outcome["quote"] else ""
    return " ".join(words) + quotation


def _decision_line(decision: Row) -> str:
    who = " ".join(filter(None, (account(decision["author"]), decision["role"].lower(), decision["at"][:10])))
    later = f", superseded by {_word(decision['superseded_by'])}" if decision["superseded_by"] else ""
    done_in = f" in {_word(decision['done_in'])}" if decision["done_in"] else ""
    verb = f"proposed, and done{done_in}" if decision["is_proposal"] else "decided"
    return f"{verb} ({who}){later}: {quote(decision['text'])}"


def _passage_lines(passage: Row) -> Iterator[str]:
    who = author_label(passage["author"], passage["role"])
    quotation = f": {quote(passage['text'])}" if passage["text"] else ""
    yield f"said ({one_line(who)}, {passage['at'][:10]}){quotation}"
    if "#" in passage["url"]:
        yield passage["url"]


def _decisions_text(thread: Row) -> str:
    ending = _ending_text(thread)
    ended = [f"ended: {ending}\n"] if ending else []
    return "".join([*ended, *(f"{_decision_line(each)}\n" for each in thread["decisions"])])
