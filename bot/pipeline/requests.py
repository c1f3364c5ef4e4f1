"""Finds requests: commands and recall questions in recent comments and opening texts, and any still waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from bot.domain.changes import CHANGE_REQUESTS, Changes, Request
from bot.domain.post import Post, reply_slot
from bot.domain.thread import Message, Record, Thread
from bot.domain.thread_json import thread_from_archive
from bot.github.errors import ForgeError
from bot.github.events import Event
from bot.github.threads import message_fields
from bot.pipeline.eligibility import matches, reason_to_ignore
from bot.pipeline.promises import deleted_post
from bot.pipeline.reconcile import find_in
from bot.pipeline.tools import Facts, ParsedRequest, Tools, is_in_progress
from bot.reading.questions import RecallQuestion, recall_question
from bot.reading.requests import commands
from bot.reading.signals import strip_boilerplate
from bot.recall.mentions import referenced_numbers

WAITING = "waiting"
"""The name of a request in memory until a run handles it."""


def find_requests(facts: Facts, run: Tools) -> list[ParsedRequest]:
    """The requests on changed threads, on the event's thread, and where a reply was promised, oldest first.

    Only recent, unedited comments by people count, each once. Stages the outcome of earlier promises.
    """
    waiting = (
        stored.id
        for stored in run.memory.state.manifest.requests_since(run.now - run.max_age)
        if stored.state == "pending"
    )
    hinted = [facts.event.number] if facts.event.number else []
    keys = list(dict.fromkeys([*(record.id for record in facts.updates.records), *hinted, *waiting]))
    stored_by_thread, parsed = run.memory.requests(keys), list[ParsedRequest]()
    for thread in run.memory.whole_records(keys).values():
        if isinstance(thread, Thread) and not reason_to_ignore(thread, run.settings):
            current = _with_event_comment(thread, facts.event, run)
            parsed += _open_requests(current, stored_by_thread.get(thread.id, ()), run, is_first=facts.is_first)
    return sorted(parsed, key=lambda request: (request.at, request.key))


def new_requests(thread: Thread, event: Event, run: Tools) -> list[ParsedRequest]:
    """The requests on a thread that memory does not know, the event's own comment included."""
    known_ids = {stored.comment_id for stored in run.memory.requests([thread.id]).get(thread.id, ())}
    return [
        request for request in _requests(_with_event_comment(thread, event, run), run) if request.key not in known_ids
    ]


def unread_requests(records: Iterable[Record], run: Tools) -> tuple[Request, ...]:
    """Unknown requests on threads read as history. They are stored with the threads, as no later list shows them."""
    threads = (
        record for record in records if isinstance(record, Thread) and not reason_to_ignore(record, run.settings)
    )
    found = [_waiting(request) for thread in threads for request in _requests(thread, run)]
    stored_by_thread = run.memory.requests(dict.fromkeys(stored.id for stored in found)) if found else {}
    stored_ids = {stored.comment_id for stored_requests in stored_by_thread.values() for stored in stored_requests}
    return tuple(stored for stored in found if stored.comment_id not in stored_ids)


def _with_event_comment(thread: Thread, event: Event, run: Tools) -> Thread:
    """The thread with the event's comment, which GitHub's list may not show yet."""
    is_new_comment = event.number == thread.id and (event.name, event.action) == ("issue_comment", "created")
    number, is_own = event.comment_id, event.comment_author.casefold() == run.own.login.casefold()
    if not (is_new_comment and number) or is_own or any(other.id == number for other in thread.comments):
        return thread
    return replace(thread, comments=(*thread.comments, *_read_comment(thread, number, run)))


def _read_comment(thread: Thread, number: int, run: Tools) -> tuple[Message, ...]:
    """The comment as GitHub has it; none if it cannot be read."""
    try:
        comment = run.forge.comment(number)
        at = comment["created_at"]
        return thread_from_archive({"id": thread.id, "created_at": at, "comments": [message_fields(comment)]}).comments
    except (ForgeError, KeyError, ValueError):
        return ()


def _open_requests(
    thread: Thread, stored_requests: Sequence[Request], run: Tools, *, is_first: bool
) -> list[ParsedRequest]:
    """The requests on a thread that wait for a reply. Stages the outcome of earlier ones.

    ``is_first``: memory was empty, so it does not know earlier replies. Nor does it for requests that are only waiting,
    as they may have been read as history.
    """
    stored_by_key = {stored.comment_id: stored for stored in stored_requests}
    current = {request.key: request for request in _requests(thread, run)}
    new = [request for key, request in current.items() if key not in stored_by_key]
    due = [
        pending
        for pending in stored_requests
        if pending.state == "pending" and not is_in_progress(pending.trying_since, run.now)
    ]
    gone = tuple(close_request(stored) for stored in due if stored.comment_id not in current)
    waiting = [stored for stored in due if stored.comment_id in current]
    is_unsure = is_first or any(stored.trying_since is None for stored in waiting)
    try:
        settled, posts = _find_settled(thread, [stored for stored in waiting if stored.trying_since], run)
        replied = {stored.comment_id for stored in settled}
        repeated = [
            replace(current[stored.comment_id], before=stored) for stored in waiting if stored.comment_id not in replied
        ]
        found = _mark_replied(thread, new + repeated, run) if is_unsure else new + repeated
        outcome = Changes(posts=posts, requests=(*settled, *gone))
    except ForgeError as error:
        run.note(f"The replies on issue {thread.id} could not be checked: {error}")
        found, left = ([], new) if is_first else (new, [])
        outcome = Changes(requests=(*gone, *map(_waiting, left)))
    if outcome.requests:
        run.memory.stage(outcome)
    return found


def _waiting(request: ParsedRequest) -> Request:
    """The request as memory keeps it for a later run."""
    return Request(request.thread.id, request.key, WAITING, request.by, request.at)


def _mark_replied(thread: Thread, requests: list[ParsedRequest], run: Tools) -> list[ParsedRequest]:
    if not requests or not isinstance(thread.id, int):
        return requests
    slots = {run.own.slot(comment) for comment in run.comments_on(thread.id).comments(thread.id)}
    return [replace(request, has_reply=reply_slot(request.key) in slots) for request in requests]


def _requests(thread: Thread, run: Tools) -> Iterator[ParsedRequest]:
    if opening := _opening_request(thread, run):
        yield opening
    for comment in thread.comments:
        is_as_written = comment.updated_at is None and _may_ask(comment.author, comment.is_bot, comment.created_at, run)
        has_commands = run.settings.commands.enabled
        if comment.id and is_as_written and (request := _parse_comment(thread, comment, comment.id, run, has_commands)):
            yield request


def request_of(thread: Thread, key: int, run: Tools) -> ParsedRequest | None:
    """The request in comment ``key``, or in the opening text if ``key`` is the thread's own number, whatever its age.
    None if the text has no request, is gone, or was edited."""
    if key == thread.id:
        return _parse_opening(thread, run)
    comment = next(
        (candidate for candidate in thread.comments if candidate.id == key and candidate.updated_at is None), None
    )
    if comment and comment.whole_text_id:  # memory may have cut off the request
        comment = next(iter(_read_comment(thread, key, run)), comment)
    return _parse_comment(thread, comment, key, run, True) if comment else None


def _opening_request(thread: Thread, run: Tools) -> ParsedRequest | None:
    is_over = thread.is_closed or thread.locked
    may_ask = _may_ask(thread.author, thread.is_bot, thread.created_at, run)
    return _parse_opening(thread, run) if may_ask and not is_over else None


def _parse_opening(thread: Thread, run: Tools) -> ParsedRequest | None:
    """The question in an issue's own text. If the text refers to issues, the main comment answers it."""
    if not isinstance(thread.id, int):
        return None
    texts = (strip_boilerplate(thread.body), thread.title)
    question = next((parsed for text in texts if (parsed := _parse_question(text, thread.author, run))), None)
    if question is None or not question.topic or referenced_numbers(replace(thread, comments=()), run.address):
        return None
    return ParsedRequest(thread, thread.id, thread.author, thread.created_at, question=question)


def _parse_comment(thread: Thread, comment: Message, key: int, run: Tools, has_commands: bool) -> ParsedRequest | None:
    """The request in a comment; commands count only if ``has_commands``."""
    place = run.address
    parsed = commands(comment.text, repo=place.repo, hosts=place.hosts) if has_commands else ()
    if parsed:
        same = [command for command in parsed if command.name == parsed[0].name and command.clear]
        numbers = dict.fromkeys(number for command in same for number in command.about)
        command = replace(parsed[0], about=tuple(numbers))
        is_alone = len(parsed) == 1 or (bool(numbers) and len(same) == len(parsed))
        return ParsedRequest(thread, key, comment.author, comment.created_at, command, others=not is_alone)
    question = _parse_question(comment.text, comment.author, run)
    if question is None:
        return None
    return ParsedRequest(thread, key, comment.author, comment.created_at, question=question, comment=comment.text)


def _parse_question(text: str, author: str, run: Tools) -> RecallQuestion | None:
    if author in run.settings.ignore.hidden:
        return None
    return recall_question(text, run.settings.commands.questions, repo=run.address.repo, hosts=run.address.hosts)


def _may_ask(author: str, is_bot: bool, at: datetime, run: Tools) -> bool:
    is_ignored = matches(author, (*run.settings.ignore.authors, run.own.login))
    return at > run.now - run.max_age and not (is_bot or is_ignored)


def _find_settled(
    thread: Thread, stored_requests: Sequence[Request], run: Tools
) -> tuple[list[Request], tuple[Post, ...]]:
    """The requests whose promised reply exists, or was deleted by a person, and these replies."""
    settled, replies = list[Request](), list[Post]()
    if not stored_requests or not isinstance(thread.id, int):
        return settled, ()
    items = run.comments_on(thread.id).timeline(thread.id)
    posts = run.memory.state.posts_on(thread.id)
    for stored in stored_requests:
        slot = reply_slot(stored.comment_id)
        own, is_deleted = find_in(items, slot, run.own, stored.trying_since or stored.at)
        post = posts.post(slot)
        if own or is_deleted:
            settled.append(replace(close_request(stored), state="done"))
            if post and own:
                replies.append(replace(post, state="said", comment_id=own.id, trying_since=None))
            elif post:
                replies.append(deleted_post(post))
    return settled, tuple(replies)


def close_request(stored: Request) -> Request:
    """The request, closed without a reply; the change that it asked for stays."""
    return replace(stored, state="done" if stored.name in CHANGE_REQUESTS else "refused", trying_since=None)
