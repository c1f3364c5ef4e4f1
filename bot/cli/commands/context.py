"""precedent context: recent conversations, or what is known about a branch, as text for an agent's prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import NamedTuple

from bot.cli.arguments import issue, login, moment, number, one_of, worktree_of, zone
from bot.cli.commands.search import WhatArguments, run_what
from bot.cli.options import Alternatives, MemoryArguments, flag, folder_option, me_option, option
from bot.cli.output import NO_RESULTS, show_notes, warn
from bot.comment.catalogue import count
from bot.comment.prompt import (
    DATA_NOTICE,
    FENCE_NOTICE,
    FORMATS,
    attributes_of,
    decision_label,
    element,
    fence_text,
    render,
    safe_word,
)
from bot.domain.thread import Thread, ThreadId
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.local_cache.location import open_memory
from bot.local_cache.session_answers import also_at_work, records_about_issue
from bot.local_cache.sync import memory_of
from bot.local_cache.threads import card_at
from bot.memory.memory import Memory
from bot.questions.context import history_of, recent_conversations, threads_of_issue, threads_of_participant
from bot.questions.fields import SHOWN_FIELDS, Row, item_of, row_of
from bot.questions.requests import DAYS, MAX_CHARS, MAX_DAYS, MIN_CHARS, Issue, WorkRequest
from bot.questions.thread import visible_data
from bot.questions.views import SESSIONS_SECTION, SESSIONS_TITLE, WORK_SECTIONS, work_rows
from bot.questions.work import find_for_work
from bot.settings.schema import Settings
from bot.sources.sessions.times import local_zone

_SECTION_TITLES = {name: section.title for name, section in WORK_SECTIONS.items()} | {SESSIONS_SECTION: SESSIONS_TITLE}
"""The sections of `work_rows` with their titles."""


_SCOPE = Alternatives(required=True)


class ContextArguments(MemoryArguments):
    issue: Issue | None = option("on this issue or pull request", among=_SCOPE, type=issue, metavar="N")
    participant: str | None = option(
        "in threads in which this account wrote", among=_SCOPE, type=login, metavar="LOGIN"
    )
    sessions: Path | None = folder_option("in the agent transcripts in this folder", among=_SCOPE)
    branch: bool = flag("instead of conversations, the output of precedent what", among=_SCOPE)
    format: str = option("the output format (default xml)", **one_of("xml", "markdown", "json"), default="xml")
    as_json: None = option(
        "the same as --format json", name="--json", action="store_const", const="json", dest="format"
    )
    chars: int = option("at most N characters", type=number(MIN_CHARS, MAX_CHARS), default=MAX_CHARS, metavar="N")
    days: int = option(f"how many days back (default {DAYS})", type=number(1, MAX_DAYS), default=DAYS, metavar="N")
    me: list[str] | None = me_option()
    timezone: tzinfo | None = option("such as Europe/Berlin (default: this machine's)", type=zone, metavar="NAME")
    as_of: datetime | None = option("answer as of this time, such as 2026-05-03T09:30Z", type=moment, metavar="TIME")


def branch_text(sections: dict[str, list[Row]], form: str, chars: int) -> str:
    """The sections as XML or Markdown (``form``), without the last threads if all do not fit in ``chars``; "" if none
    fits. Other people's words are marked as data, and nothing is hidden in them."""
    write = _xml if form == "xml" else _markdown
    entries = [(name, row) for name in _SECTION_TITLES for row in sections[name]]
    while entries:
        text = write(entries)
        if len(text) <= chars:
            return text
        entries.pop()
    return ""


def _xml(entries: list[tuple[str, Row]]) -> str:
    sections = _sections(entries, _thread, _session)
    body = "".join(f"<{name}>\n{text}</{name}>\n" for name, text in sections)
    return f"<branch-context>\n{element('notice', DATA_NOTICE)}{body}</branch-context>\n"


def _thread(row: Row) -> str:
    attributes = attributes_of(
        id=row["id"], kind=row["kind"], state=row["state"], closed=row["closed_at"], updated=row["updated_at"],
        url=row["url"], **_ending(row),
    )  # fmt: skip
    parts = [element("why", "; ".join(row["why"])), element("title", row["title"])]
    for each in row["decisions"]:
        decision_attributes = attributes_of(**{key: each[key] for key in ("author", "role", "at", "superseded_by")})
        parts.append(element("decision", each["text"]).replace("<decision>", f"<decision{decision_attributes}>", 1))
    parts += [element("outcome", row["outcome"]["quote"]), element("summary", row["summary"])]
    return f"<thread{attributes}>\n{''.join(parts)}</thread>\n"


def _session(row: Row) -> str:
    attributes = attributes_of(id=row["id"], ended=row["ended_at"], messages=row["messages"])
    return f"<session{attributes}>\n{element('why', '; '.join(row['why']))}{element('title', row['title'])}</session>\n"


def _markdown(entries: list[tuple[str, Row]]) -> str:
    sections = _sections(entries, _paragraph, _session_paragraph)
    body = "".join(f"\n## {_SECTION_TITLES[name]}\n{text}" for name, text in sections)
    return f"# What is known about this branch\n\n{DATA_NOTICE} {FENCE_NOTICE}\n{body}"


def _paragraph(row: Row, level: int = 3) -> str:
    facts = [f"state: {row['state']}", *([f"closed: {row['closed_at'][:10]}"] if row["closed_at"] else [])]
    facts.append(f"changed: {row['updated_at'][:10]}")
    facts += [f"{name}: {safe_word(str(value))}" for name, value in _ending(row).items() if value not in (None, "")]
    words = [fence_text("why", "; ".join(row["why"])), fence_text("title", row["title"])]
    words += [fence_text(_decision_label(each), each["text"]) for each in row["decisions"]]
    words += [fence_text("outcome", row["outcome"]["quote"]), fence_text("summary", row["summary"])]
    listed = "".join(f"- {fact}\n" for fact in facts)
    return f"\n{'#' * level} {safe_word(row['cite'])}\n\n{listed}{''.join(words)}"


def _decision_label(row: Row) -> str:
    day, later = row["at"][:10], row["superseded_by"]
    return decision_label(row["author"], row["role"], day, later, is_proposal=row["is_proposal"])


def _session_paragraph(row: Row) -> str:
    facts = f"- ended: {row['ended_at'][:10]}\n- messages: {row['messages']}\n"
    words = fence_text("why", "; ".join(row["why"])) + fence_text("title", row["title"])
    return f"\n### {safe_word(row['id'])}\n\n{facts}{words}"


def _ending(row: Row) -> dict[str, object]:
    outcome = row["outcome"]
    kind = "" if outcome["kind"] == "unknown" else outcome["kind"].replace(" ", "-")
    return {name: outcome[name] for name in ("fix", "release", "duplicate_of")} | {"outcome": kind}


def _sections(
    entries: list[tuple[str, Row]], of_thread: Callable[[Row], str], of_session: Callable[[Row], str]
) -> Iterator[tuple[str, str]]:
    """The name and the text of each section that has entries."""
    for name in _SECTION_TITLES:
        write = of_session if name == SESSIONS_SECTION else of_thread
        if text := "".join(write(row) for section, row in entries if section == name):
            yield name, text


MAX_HEAD_SHARE = 0.4
"""Largest share of the text that the issue itself may fill."""


def issue_head(row: Row, form: str, chars: int) -> str:
    """An issue with its ending, decisions and summary as XML, Markdown or JSON, in at most 40 % of ``chars``.

    If it is too long, its earliest decisions are left out, then its summary and the words of its ending; "" if that is
    not enough.
    """
    write = {"xml": _thread, "markdown": _issue_section, "json": _json}[form]
    texts = (write(shorter) for shorter in _shorter_rows(row))
    return next((text for text in texts if len(text) <= chars * MAX_HEAD_SHARE), "")


def _shorter_rows(row: Row) -> Iterator[Row]:
    for dropped in range(len(row["decisions"]) + 1):
        yield row | {"decisions": row["decisions"][dropped:]}
    bare = row | {"decisions": [], "summary": ""}
    yield bare
    yield bare | {"outcome": row["outcome"] | {"quote": ""}}


def _issue_section(row: Row) -> str:
    return _paragraph(row, level=2)


def _json(row: Row) -> str:
    return json.dumps(visible_data(row), ensure_ascii=False)


class _Scope(NamedTuple):
    """Threads, whose messages may be older than the days in question, the bot's account there, and the issue that they
    are about, if there is one."""

    threads: list[Thread]
    own: str
    issue: Row | None = None


MAX_THREADS = 10_000
"""Maximum threads to read for one scope, newest first."""


def run_context(args: ContextArguments) -> object:
    if args.branch:
        if args.format == "json":
            return run_what(WhatArguments(**vars(args), json=True, exit_code=False)).output
        return _branch_context(args)
    zone = args.timezone or local_zone()
    now = (args.as_of or datetime.now(UTC)).astimezone(zone)
    scope = _threads_in_scope(args, now)
    head = issue_head(scope.issue, args.format, args.chars) if scope.issue else ""
    form = FORMATS[args.format](zone, head=head)
    me = tuple(args.me or [scope.own])
    recent = recent_conversations(scope.threads, me, now, args.days, keeps_newest=args.issue is not None)
    text = render(history_of(recent, form, args.chars), form)
    if not text:
        warn(f"Nothing was said in the last {count(args.days, 'day')}.")
    return text


def _branch_context(args: ContextArguments) -> str:
    with open_memory(args.memory) as memory:
        request = WorkRequest(worktree_of(memory), args.now)
        answer, sessions = find_for_work(request, memory.local_cache), also_at_work(request, memory)
        show_notes(memory, answer.unused, sessions.notes)
        rows = work_rows(answer, request, sessions.found, memory.home, agents=True)
        text = branch_text(rows, args.format, args.chars)
    if not (answer.is_relevant or sessions.found or memory.missing):
        warn(NO_RESULTS)
    return text


def _threads_in_scope(args: ContextArguments, now: datetime) -> _Scope:
    since = now - timedelta(days=args.days)
    if args.sessions is not None:
        return _Scope(_session_threads(args.sessions, since), Settings().comment.author)
    with open_memory(args.memory) as memory:
        own = settings_of(memory.require()).comment.author
        with memory_of(memory) as records:
            if args.issue:
                return _issue_scope(memory, records, args.issue.within(memory.repo), now)._replace(own=own)
            changed = [card.id for card in memory.local_cache.updated_since(since) if card.kind.traits.is_conversation][
                :MAX_THREADS
            ]
            return _Scope(threads_of_participant(_threads(records, changed), args.participant or ""), own)


def _issue_scope(memory: LocalMemory, records: Memory, number: int, now: datetime) -> _Scope:
    """An issue, and the sessions that worked on it."""
    found, sessions = _threads(records, [number]), records_about_issue(memory, number)
    threads = [*found, *(session.thread for session in sessions.found)]
    for note in sessions.notes:
        warn(note)
    if not threads:  # it may be newer than the memory: no error
        warn(f"No thread #{number} in this memory.")
    card = card_at(memory, found[0], now) if found else None
    row = row_of(SHOWN_FIELDS, item_of(card, memory.home), memory.home, agents=True) if card else None
    return _Scope(threads_of_issue(threads, number), "", row)


def _threads(library: Memory, keys: Sequence[ThreadId]) -> list[Thread]:
    return [record for record in library.records(keys).values() if isinstance(record, Thread)]


def _session_threads(folder: Path, since: datetime) -> list[Thread]:
    """The sessions in files changed since then; reports unreadable files."""
    from bot.sources.sessions.files import find_sessions
    from bot.sources.sessions.issues import issues_of_sessions
    from bot.sources.sessions.reader import read_sessions
    from bot.sources.sessions.session import thread_of

    if not folder.is_dir():
        raise UserError(f"no folder {folder}: --sessions takes the folder of the transcripts")
    listing = find_sessions(["."], str(folder))
    notes, threads = list(listing.notes), list[Thread]()
    zone = local_zone()
    issue_of = issues_of_sessions(listing.mappings, listing.sessions)
    for file in listing.sessions:
        if file.mtime_ns < since.timestamp() * 1e9:
            continue
        try:
            threads += [
                thread_of(session._replace(issue=issue_of.get(file.path))) for session in read_sessions(file, zone)
            ]
        except OSError as error:
            notes.append(f"{file.name} cannot be read: {error.strerror or error}")
    for note in notes:
        warn(note)
    return threads
