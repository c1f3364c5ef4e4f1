"""precedent show: one thread."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from bot.cli.arguments import memory_options
from bot.cli.output import SCHEMA, CommandResult, command_result, show_notes
from bot.comment.clean_text import clean, one_line
from bot.domain.answer import Earlier
from bot.domain.card import is_change, number_of
from bot.domain.thread import OutcomeKind, Thread
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.local_cache.session_answers import sessions_about_issue
from bot.local_cache.threads import card_named, thread_named
from bot.questions.addresses import later_url, url_of
from bot.questions.requests import MAX_NAME, ThreadRequest, issue_named
from bot.questions.thread import ThreadAnswer, indented, read_thread, signed
from bot.questions.views import (
    Row,
    cited,
    ending,
    full_row,
    how,
    linked_rows,
    session_facts,
    session_rows,
)
from bot.recall.answer import proven
from bot.recall.mentions import earlier_ending

MOST = 100_000_000


def run_show(given: argparse.Namespace) -> CommandResult:
    with open_memory(memory_options(given)) as place:
        thread = _thread(place, given.id)
        request = ThreadRequest(given.id, MOST if given.full else given.chars, expand=True)
        found = read_thread(request, thread, card_named(place, thread), place.local_cache)
        near = linked_rows(found.near, place.home, full_row)
        sessions = session_rows(sessions_about_issue(place, thread.id) if isinstance(thread.id, int) else ())
        show_notes(place if not place.missing else place._replace(missing=""))
        if given.json:
            fields = {
                "linked": near,
                "sessions": sessions,
                "conversation": found.said.messages,
                "omitted": found.said.omitted,
            }
            shown: object = {"schema": SCHEMA, **full_row(found.card, place.home), **fields}
        else:
            shown = "".join(f"{line}\n" for line in _lines(found, near, sessions, place))
    return command_result(shown, given, found=True)


def _thread(place: LocalMemory, text: str) -> Thread:
    thread = thread_named(place, text)
    if thread is None:
        place.demand()
        named = issue_named(text)
        if named:
            named.within(place.repo)
        name = one_line(clean(text)[:MAX_NAME].removeprefix("#"))
        lacks = ", which may lack pull requests" if named else ""
        raise UserError(f"no thread {name} in this memory{lacks}: `precedent search WORDS` finds what there is")
    return thread


def _lines(found: ThreadAnswer, near: Sequence[Row], sessions: Sequence[Row], place: LocalMemory) -> Iterator[str]:
    card, said = found.card, found.said
    yield f"{one_line(cited(card.id))}  {one_line(card.title)}"
    facts = [ending(card), f"opened {card.created_at:%Y-%m-%d} by {one_line(card.author)}"]
    facts += [f"closed {card.closed_at:%Y-%m-%d}"] if card.closed_at else []
    facts += [", ".join(map(one_line, card.labels))] if card.labels else []
    yield " · ".join(facts)
    if earlier := earlier_ending(found.thread, place.repo or None):
        yield _reopened(earlier, place)
    if url := url_of(card, place.home):
        yield url
    for ruling in card.decisions:
        later = one_line(later_url(card, ruling, place.home))
        decided = f"decided, superseded by {later}" if later else "decided"
        yield f"{decided}: {one_line(ruling.text)} ({signed(ruling.author, ruling.role)})"
    if card.ending.quote:
        yield f"ended: {one_line(card.ending.quote)} ({signed(card.ending.author, card.ending.role)})"
    if card.files:
        yield f"files: {one_line(', '.join(card.files))}"
    for each in near:
        yield f"linked: {one_line(each['cite'])} {one_line(each['title'])} ({one_line('; '.join(each['why']))})"
    for each in sessions:
        yield f"session: {one_line(each['id'])} {one_line(each['title'])} ({one_line(session_facts(each))})"
    yield ""
    # the line with author and time cannot be forged: messages are indented
    heads = [f"{signed(one['author'], one['role'])}, {one['at'][:10]}:\n" for one in said.messages]
    yield "\n".join(head + indented(one["text"]) for head, one in zip(heads, said.messages, strict=True)).rstrip()
    if said.omitted:
        yield f"\n{said.omitted} of {len(said.messages) + said.omitted} messages are left out: --full has all."


def _reopened(earlier: Earlier, place: LocalMemory) -> str:
    number = number_of(earlier.outcome.fix or earlier.outcome.claimed)
    named = place.local_cache.cards([number]).get(number) if number else None
    ended = proven(earlier.outcome, is_change(named.kind, named.state, named.merged_at) if named else None)
    told = (
        "" if ended.kind is OutcomeKind.UNKNOWN else f" ({one_line(how(ended.kind.value, ended.fix, ended.release))})"
    )
    return f"reopened {earlier.reopened_at:%Y-%m-%d}, after it was closed {earlier.closed_at:%Y-%m-%d}{told}"
