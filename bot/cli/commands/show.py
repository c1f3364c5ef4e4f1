"""precedent show: one thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.cli.arguments import number
from bot.cli.options import Alternatives, QuestionArguments, argument, flag, option
from bot.cli.output import SCHEMA_VERSION, CommandResult, show_notes
from bot.comment.clean_text import one_line, visible_text
from bot.domain.change_state import change_state
from bot.domain.thread import OutcomeKind, Thread
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.location import open_memory
from bot.local_cache.session_answers import sessions_about
from bot.local_cache.threads import card_named, thread_named
from bot.questions.addresses import citation, url_of
from bot.questions.fields import (
    LINKED_FIELDS,
    SESSION_FIELDS,
    THREAD_FIELDS,
    Item,
    Row,
    item_of,
    labelled_texts,
    row_of,
    rows_of,
)
from bot.questions.requests import MAX_NAME, ThreadRequest, parse_issue
from bot.questions.thread import ThreadAnswer, author_label, indent, read_thread
from bot.questions.views import decision_line, ending, linked_items, outcome_phrase, session_facts

UNLIMITED_CHARS = 100_000_000


_LENGTH = Alternatives()


class ShowArguments(QuestionArguments):
    id: str = argument("ID", "an issue (42, #42, OWNER/NAME#42 or its URL), or the id of a page or session")
    chars: int = option(
        "at most N characters of the conversation (at least 1,000; default 12,000)",
        among=_LENGTH,
        type=number(1_000, 1_000_000),
        default=12_000,
        metavar="N",
    )
    full: bool = flag("the whole conversation", among=_LENGTH)


def run_show(args: ShowArguments) -> CommandResult:
    with open_memory(args.memory) as memory:
        thread = _find_thread(memory, args.id)
        request = ThreadRequest(args.id, UNLIMITED_CHARS if args.full else args.chars, expand=True)
        answer = read_thread(request, thread, card_named(memory, thread), memory.local_cache)
        linked = linked_items(answer.neighbours, memory.home)
        on_it = sessions_about(memory, thread.id)
        sessions = rows_of(SESSION_FIELDS, on_it.found)
        show_notes(memory if not memory.missing else memory._replace(missing=""), notes=on_it.notes)
        if args.json:
            fields = {
                "linked": rows_of(LINKED_FIELDS, linked, memory.home),
                "sessions": sessions,
                "conversation": answer.conversation.messages,
                "omitted": answer.conversation.omitted,
            }
            row = row_of(THREAD_FIELDS, item_of(answer.card, memory.home), memory.home)
            shown: object = {"schema": SCHEMA_VERSION, **row, **fields}
        else:
            shown = "".join(f"{line}\n" for line in _format_lines(answer, linked, sessions, memory))
    return CommandResult(shown, 0)


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
    answer: ThreadAnswer, linked: Sequence[Item], sessions: Sequence[Row], memory: LocalMemory
) -> Iterator[str]:
    card, excerpt = answer.card, answer.conversation
    yield f"{one_line(citation(card.id))}  {one_line(card.title)}"
    facts = [ending(card), f"opened {card.created_at:%Y-%m-%d} by {one_line(card.author)}"]
    facts += [f"closed {card.closed_at:%Y-%m-%d}"] if card.closed_at else []
    facts += [", ".join(map(one_line, card.labels))] if card.labels else []
    yield " · ".join(facts)
    if len(answer.thread.state_changes) > 1:
        yield from _reopened_line(answer.thread, memory)
    if url := url_of(card, memory.home):
        yield url
    for ruling in card.decisions:
        yield f"decided: {decision_line(card, ruling, memory.home)}"
    if card.ending.quote:
        yield f"ended: {one_line(card.ending.quote)} ({author_label(card.ending.author, card.ending.role)})"
    for label, value in labelled_texts(row_of(THREAD_FIELDS, item_of(card, memory.home))):
        yield f"{label}: {one_line(value)}"
    for item in linked:
        name, why = citation(item.card.id), "; ".join(item.why)
        yield f"linked: {one_line(name)} {one_line(item.card.title)} ({one_line(why)})"
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


def _reopened_line(thread: Thread, memory: LocalMemory) -> Iterator[str]:
    from bot.recall.answer import with_change_state  # slow to load, and few threads were reopened
    from bot.recall.mentions import earlier_ending

    earlier = earlier_ending(thread, memory.repo or None)
    if earlier is None:
        return
    named, ended = earlier.outcome.change, earlier.outcome
    if named and (number := named.number):
        pull = memory.local_cache.cards([number]).get(number)
        ended = with_change_state(ended, change_state(thread.id, named, pull, None))
    outcome_text = (
        ""
        if ended.kind is OutcomeKind.UNKNOWN
        else f" ({one_line(outcome_phrase(ended.kind.value, ended.fix, ended.release))})"
    )
    yield f"reopened {earlier.reopened_at:%Y-%m-%d}, after it was closed {earlier.closed_at:%Y-%m-%d}{outcome_text}"
