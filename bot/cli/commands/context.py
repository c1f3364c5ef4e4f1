"""precedent context: what was said lately, or is known of a branch, as a text for an agent's prompt."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.cli.arguments import memory_options, moment_asked_for, worktree_of
from bot.cli.commands.search import run_what
from bot.cli.output import NOTHING, show_notes
from bot.comment.catalogue import count
from bot.comment.clean_text import one_line
from bot.comment.prompt import (
    DATA_NOTICE,
    FENCE_NOTICE,
    FORMS,
    attributes_of,
    bare,
    decision_label,
    element,
    fenced,
    render,
)
from bot.domain.thread import Thread, ThreadId
from bot.errors import UserError
from bot.local_cache.local_memory import settings_of
from bot.local_cache.location import open_memory
from bot.local_cache.session_answers import sessions_about_issue, sessions_about_work
from bot.local_cache.sessions import threads_of
from bot.local_cache.threads import open_records
from bot.questions.context import find_history, of_issue, of_participant
from bot.questions.requests import HistoryRequest, WorkRequest
from bot.questions.views import SESSIONS, SESSIONS_TITLE, WORK, Row, work_rows
from bot.questions.what import find_what
from bot.recall.library import WithoutWords
from bot.settings.schema import Settings
from bot.sources.clock import local_zone

_TITLES = {name: section.title for name, section in WORK.items()} | {SESSIONS: SESSIONS_TITLE}
"""The sections of `work_rows` with their titles."""


def branch_text(found: dict[str, list[Row]], form: str, chars: int) -> str:
    """These sections as XML or Markdown (``form``), the last threads left out where all are more than ``chars``; ""
    for nothing. Other people's words are marked as data, and nothing is hidden in them."""
    write = _xml if form == "xml" else _markdown
    kept = [(name, each) for name in _TITLES for each in found[name]]
    while kept:
        text = write(kept)
        if len(text) <= chars:
            return text
        kept.pop()
    return ""


def _xml(kept: list[tuple[str, Row]]) -> str:
    shown = ((name, "".join(map(_session if name == SESSIONS else _thread, rows))) for name, rows in _sections(kept))
    body = "".join(f"<{name}>\n{text}</{name}>\n" for name, text in shown)
    return f"<branch-context>\n{element('notice', DATA_NOTICE)}{body}</branch-context>\n"


def _thread(one: Row) -> str:
    attributes = attributes_of(
        id=one["id"], kind=one["kind"], state=one["state"], updated=one["updated_at"], url=one["url"], **_ending(one)
    )
    parts = [element("why", "; ".join(one["why"])), element("title", one["title"])]
    for each in one["decisions"]:
        named = attributes_of(**{key: each[key] for key in ("author", "role", "at", "superseded_by")})
        parts.append(element("decision", each["text"]).replace("<decision>", f"<decision{named}>", 1))
    parts += [element("outcome", one["outcome"]["quote"]), element("summary", one["summary"])]
    return f"<thread{attributes}>\n{''.join(parts)}</thread>\n"


def _session(one: Row) -> str:
    attributes = attributes_of(id=one["id"], ended=one["ended_at"], messages=one["messages"])
    return f"<session{attributes}>\n{element('why', '; '.join(one['why']))}{element('title', one['title'])}</session>\n"


def _markdown(kept: list[tuple[str, Row]]) -> str:
    shown = (
        (name, "".join(map(_session_paragraph if name == SESSIONS else _paragraph, rows)))
        for name, rows in _sections(kept)
    )
    body = "".join(f"\n## {_TITLES[name]}\n{text}" for name, text in shown)
    return f"# What is known of this branch\n\n{DATA_NOTICE} {FENCE_NOTICE}\n{body}"


def _paragraph(one: Row) -> str:
    facts = [f"state: {one['state']}", f"changed: {one['updated_at'][:10]}"]
    facts += [f"{name}: {bare(str(value))}" for name, value in _ending(one).items() if value not in (None, "")]
    words = [fenced("why", "; ".join(one["why"])), fenced("title", one["title"])]
    words += [fenced(decision_label(each["superseded_by"]), each["text"]) for each in one["decisions"]]
    words += [fenced("outcome", one["outcome"]["quote"]), fenced("summary", one["summary"])]
    listed = "".join(f"- {fact}\n" for fact in facts)
    return f"\n### {bare(one['cite'])}\n\n{listed}{''.join(words)}"


def _session_paragraph(one: Row) -> str:
    facts = f"- ended: {one['ended_at'][:10]}\n- messages: {one['messages']}\n"
    words = fenced("why", "; ".join(one["why"])) + fenced("title", one["title"])
    return f"\n### {bare(one['id'])}\n\n{facts}{words}"


def _ending(one: Row) -> dict[str, object]:
    outcome = one["outcome"]
    kind = "" if outcome["kind"] == "unknown" else outcome["kind"].replace(" ", "-")
    return {name: outcome[name] for name in ("fix", "release", "duplicate_of")} | {"outcome": kind}


def _sections(kept: list[tuple[str, Row]]) -> Iterator[tuple[str, list[Row]]]:
    for name in _TITLES:
        if rows := [each for section, each in kept if section == name]:
            yield name, rows


MOST = 10_000
"""Threads of one scope that are read, the newest ones."""


def run_context(given: argparse.Namespace) -> object:
    if given.branch:
        return run_what(given) if given.format == "json" else _branch(given)
    zone = given.timezone or local_zone()
    now = (given.as_of or datetime.now(UTC)).astimezone(zone)
    threads, own = _scope(given, now)
    form = FORMS[given.format](zone)
    request = HistoryRequest(now, tuple(given.me or [own]), given.days, given.chars)
    text = render(find_history(request, threads, form), form)
    if not text:
        print(f"Nothing was said in the last {count(given.days, 'day')}.", file=sys.stderr)
    return text


def _branch(given: argparse.Namespace) -> str:
    with open_memory(memory_options(given)) as place:
        worktree = worktree_of(place)
        request = WorkRequest(worktree, moment_asked_for(given))
        found = find_what(request, place.local_cache, sessions_about_work(place, worktree))
        show_notes(place, found.unused)
        text = branch_text(work_rows(found, place.home), given.format, given.chars)
    if not found.is_relevant and not place.missing:
        print(NOTHING, file=sys.stderr)
    return text


def _scope(given: argparse.Namespace, now: datetime) -> tuple[list[Thread], str]:
    """The threads of the scope, which may have more in them than the last days, and the account of the bot there."""
    since = now - timedelta(days=given.days)
    if given.sessions is not None:
        return _sessions(given.sessions, since), Settings().comment.author
    with open_memory(memory_options(given)) as place:
        settings = settings_of(place.demand())
        with open_records(place) as memory:
            library = WithoutWords(memory, settings.ignore.people)
            if given.issue:
                number = given.issue.within(place.repo)
                sessions = threads_of(place, sessions_about_issue(place, number), number)
                told = [*_threads(library, [number]), *sessions]
                if not told:  # it may be newer than the memory: no error
                    print(f"No thread #{number} in this memory.", file=sys.stderr)
                found = of_issue(told, number)
            else:
                changed = [
                    card.id for card in place.local_cache.updated_since(since) if card.kind.traits.is_conversation
                ][:MOST]
                found = of_participant(_threads(library, changed), given.participant)
    return found, settings.comment.author


def _threads(library: WithoutWords, keys: Sequence[ThreadId]) -> list[Thread]:
    return [record for record in library.records(keys).values() if isinstance(record, Thread)]


def _sessions(folder: Path, since: datetime) -> list[Thread]:
    """The sessions in files of a folder changed since then; unreadable files are reported."""
    from bot.sources.session import thread_of
    from bot.sources.session_files import find_sessions
    from bot.sources.session_issues import issues_of_sessions
    from bot.sources.session_reader import read_sessions

    if not folder.is_dir():
        raise UserError(f"no folder {folder}: --sessions takes the folder of the transcripts")
    found = find_sessions(["."], str(folder))
    notes, threads = list(found.notes), list[Thread]()
    zone = local_zone()
    issue_of = issues_of_sessions(found.mappings, found.sessions)
    for file in found.sessions:
        if file.mtime_ns < since.timestamp() * 1e9:
            continue
        try:
            threads += [thread_of(one._replace(issue=issue_of.get(file.path))) for one in read_sessions(file, zone)]
        except OSError as error:
            notes.append(f"{file.name} cannot be read: {error.strerror}")
    for note in notes:
        print(one_line(note), file=sys.stderr)
    return threads
