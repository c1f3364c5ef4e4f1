"""The tools that read one thread: its conversation, and what the memory has to say about an issue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.answer import Context, Match, Mention
from bot.comment.history import Xml, render
from bot.comment.pack import as_xml
from bot.comment.visible import account
from bot.doors.agents import wording
from bot.doors.agents.desk import Desk, Told, now
from bot.doors.conversation import conversation
from bot.doors.located import Place
from bot.doors.own_settings import settings_of
from bot.doors.place import whole
from bot.doors.plain import bounded, indented, plain
from bot.doors.reading import card_named, thread_named
from bot.doors.rows import MAX_TITLE, Row, cited, row
from bot.doors.transcripts import sessions_of_issue
from bot.model import Thread, ThreadId
from bot.recall import mentioned
from bot.recall.answering import recall
from bot.recall.conversation import past
from bot.recall.library import WithoutWords
from bot.recall.tiers import MIN_CHARS, history_of
from bot.settings import Settings

HISTORY_SHARE = 0.5
"""Part of the characters that what was said lately may fill at most."""


def get_conversation(desk: Desk, given: Mapping[str, Any]) -> Told:
    """One thread, with as much of its conversation as there is room for."""
    name = given["id"]
    with desk.opened() as place:
        thread = thread_named(place, name)
        if thread is None:
            return _unknown(desk, place, wording.quoted(name, 80), conversation=[])
        said = conversation(thread, given["max_chars"])
        data = _known(place, thread) | {"conversation": said.messages, "omitted": said.omitted}
        data = plain(bounded(desk.answer(place, data, found=True)))
    left_out = f", {data['omitted']} left out as they did not fit" if data["omitted"] else ""
    spoken = "".join(f"\n{_speaker(each)}\n{indented(each['text'])}" for each in data["conversation"])
    line = f"{_head(data['thread'], name)}\n{len(thread.comments) + 1} messages{left_out}."
    return Told(data, wording.headed(line, data, f"{_decided(data['thread'])}{spoken}"))


def issue_context(desk: Desk, given: Mapping[str, Any]) -> Told:
    """What the bot would say about an issue, and what was said on it in the last days."""
    chars = given["max_chars"]
    with desk.opened() as place:
        number = given["number"].within(place.repo)
        settings = settings_of(place)
        with whole(place) as memory:
            thread = WithoutWords(memory, settings.ignore.people).records([number]).get(number)
            if not isinstance(thread, Thread):
                return _unknown(desk, place, f"#{number}", related=[], pages=[], elsewhere=[], quoted="")
            found = recall(thread, memory, _within(chars, settings), mentioned.Place(place.repo or None))
        talk = [thread, *sessions_of_issue(place, number)]
        history = _history(talk, desk.me or (settings.comment.author,), int(chars * HISTORY_SHARE))
        context, omitted = _fitted(found, chars - len(history))
        fields = _fields(context) | {"quoted": as_xml(context, history), "omitted": omitted}
        is_known = bool(fields["quoted"])
        data = plain(bounded(desk.answer(place, _known(place, thread) | fields, found=is_known)))
    head = _head(data["thread"], number)
    if not is_known:
        line = f"{head}\nNothing relevant to it: {data['searched']} issues, pull requests and pages searched."
        return Told(data, wording.headed(line, data, _decided(data["thread"])))
    return Told(data, wording.headed(head, data, f"{_decided(data['thread'])}\n{data['quoted']}"))


def _unknown(desk: Desk, place: Place, name: str, **fields: Any) -> Told:
    """There is no such thread: an answer, and no error, as the memory may be older than the thread."""
    data = plain(desk.answer(place, {"found": False, "thread": {}, "omitted": 0} | fields, found=False))
    return Told(
        data, wording.headed(f"No record of {name} among {data['searched']} issues, pull requests and pages.", data, "")
    )


def _known(place: Place, thread: Thread) -> Row:
    return {"found": True, "thread": row(card_named(place, thread), place.home)}


def _within(chars: int, known: Settings) -> Settings:
    """These settings, with conversations no longer than that."""
    most = chars // 3
    return replace(
        known,
        references=replace(known.references, chars=min(known.references.chars, most)),
        troubleshooting=replace(
            known.troubleshooting, total_budget_chars=min(known.troubleshooting.total_budget_chars, most)
        ),
    )


def _history(talk: Sequence[Thread], mine: Sequence[str], room: int) -> str:
    """What was said on the issue in the last days, as XML; "" where that is no more than its opening text."""
    said = past(talk, mine, now())
    if room < MIN_CHARS or sum(len(one.turns) for one in said.conversations) < 2:
        return ""
    form = Xml(is_part=True)
    return render(history_of(said, form, room), form)


def _fitted(context: Context, room: int) -> tuple[Context, int]:
    """The context without what there is no room for, least first; and how much that is."""
    omitted = 0
    for name in ("pages", "open_now", "also_mentioned", "seen_before", "mentioned"):
        while getattr(context, name) and len(as_xml(context)) > room:
            context = replace(context, **{name: getattr(context, name)[:-1]})
            omitted += 1
    return context, omitted


def _fields(context: Context) -> Row:
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


def _head(thread: Row, name: ThreadId) -> str:
    return wording.head(thread) if thread else wording.quoted(str(name), 80)


def _decided(thread: Row) -> str:
    if not thread:
        return ""
    told = wording.ending(thread)
    lines = [f"ended: {told}\n"] if told else []
    return "".join([*lines, *(f"{wording.decided(each)}\n" for each in thread["decisions"])])


def _speaker(message: Row) -> str:
    """Who speaks and when, on a line that is ours: it is not indented."""
    role = f", {message['role'].lower()}" if message["role"] not in ("", "NONE") else ""
    return f"[{account(message['author'])}{role}, {message['at'][:10]}]"
