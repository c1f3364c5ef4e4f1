"""precedent show: one thread."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from bot.cli.arguments import memory_options
from bot.cli.output import SCHEMA_VERSION, CommandResult, command_result, show_notes
from bot.comment.clean_text import one_line, visible_text
from bot.domain.answer import EarlierClosing
from bot.domain.card import CardId
from bot.domain.change_state import change_state, number_of
from bot.domain.thread import OutcomeKind, Thread
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.local_cache.session_answers import sessions_about_issue
from bot.local_cache.session_sources import SessionAnswer
from bot.local_cache.threads import card_named, thread_named
from bot.questions.addresses import url_of
from bot.questions.requests import MAX_NAME, ThreadRequest, parse_issue
from bot.questions.thread import ThreadAnswer, author_label, indent, read_thread
from bot.questions.views import (
    Row,
    citation,
    decision_line,
    ending,
    full_row,
    linked_rows,
    outcome_phrase,
    session_facts,
    session_rows,
)
from bot.recall.answer import with_change_state
from bot.recall.mentions import earlier_ending

UNLIMITED_CHARS = 100_000_000


def run_show(args: argparse.Namespace) -> CommandResult:
    with open_memory(memory_options(args)) as memory:
        thread = _find_thread(memory, args.id)
        request = ThreadRequest(args.id, UNLIMITED_CHARS if args.full else args.chars, expand=True)
        answer = read_thread(request, thread, card_named(memory, thread), memory.local_cache)
        linked = linked_rows(answer.neighbours, memory.home, full_row)
        on_it = sessions_about_issue(memory, thread.id) if isinstance(thread.id, int) else SessionAnswer()
        sessions = session_rows(on_it.found)
        show_notes(memory if not memory.missing else memory._replace(missing=""), notes=on_it.notes)
        if args.json:
            fields = {
                "linked": linked,
                "sessions": sessions,
                "conversation": answer.conversation.messages,
                "omitted": answer.conversation.omitted,
            }
            shown: object = {"schema": SCHEMA_VERSION, **full_row(answer.card, memory.home), **fields}
        else:
            shown = "".join(f"{line}\n" for line in _format_lines(answer, linked, sessions, memory))
    return command_result(shown, args, found=True)


def _find_thread(memory: LocalMemory, text: str) -> Thread:
    thread = thread_named(memory, text)
    if thread is None:
        memory.require()
        named = parse_issue(text)
        if named:
            named.within(memory.repo)
        name = one_line(visible_text(text)[:MAX_NAME].removeprefix("#"))
        lacks = ", which may lack pull requests" if named else ""
        raise UserError(f"no thread {name} in this memory{lacks}: `precedent search WORDS` finds what there is")
    return thread


def _format_lines(
    answer: ThreadAnswer, linked: Sequence[Row], sessions: Sequence[Row], memory: LocalMemory
) -> Iterator[str]:
    card, excerpt = answer.card, answer.conversation
    yield f"{one_line(citation(card.id))}  {one_line(card.title)}"
    facts = [ending(card), f"opened {card.created_at:%Y-%m-%d} by {one_line(card.author)}"]
    facts += [f"closed {card.closed_at:%Y-%m-%d}"] if card.closed_at else []
    facts += [", ".join(map(one_line, card.labels))] if card.labels else []
    yield " · ".join(facts)
    if earlier := earlier_ending(answer.thread, memory.repo or None):
        yield _reopened_line(card.id, earlier, memory)
    if url := url_of(card, memory.home):
        yield url
    for ruling in card.decisions:
        yield f"decided: {decision_line(card, ruling, memory.home)}"
    if card.ending.quote:
        yield f"ended: {one_line(card.ending.quote)} ({author_label(card.ending.author, card.ending.role)})"
    if card.files:
        yield f"files: {one_line(', '.join(card.files))}"
    for each in linked:
        yield f"linked: {one_line(each['cite'])} {one_line(each['title'])} ({one_line('; '.join(each['why']))})"
    for each in sessions:
        yield f"session: {one_line(each['id'])} {one_line(each['title'])} ({one_line(session_facts(each))})"
    yield ""
    # the line with author and time cannot be forged: messages are indented
    heads = [
        f"{author_label(message['author'], message['role'])}, {message['at'][:10]}:\n" for message in excerpt.messages
    ]
    yield "\n".join(
        head + indent(message["text"]) for head, message in zip(heads, excerpt.messages, strict=True)
    ).rstrip()
    if excerpt.omitted:
        yield f"\n{excerpt.omitted} of {len(excerpt.messages) + excerpt.omitted} messages are left out: --full has all."


def _reopened_line(key: CardId, earlier: EarlierClosing, memory: LocalMemory) -> str:
    named, ended = earlier.outcome.change, earlier.outcome
    if named and (number := number_of(named.ref)):
        pull = memory.local_cache.cards([number]).get(number)
        ended = with_change_state(ended, change_state(key, named, pull, pull.closes if pull else (), None))
    outcome_text = (
        ""
        if ended.kind is OutcomeKind.UNKNOWN
        else f" ({one_line(outcome_phrase(ended.kind.value, ended.fix, ended.release))})"
    )
    return f"reopened {earlier.reopened_at:%Y-%m-%d}, after it was closed {earlier.closed_at:%Y-%m-%d}{outcome_text}"
