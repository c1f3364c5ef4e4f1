"""The tools that search: by words, with the work at hand in mind, and without any question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.comment.wording import count
from bot.doors.agents import wording
from bot.doors.agents.desk import Desk, Told, data_of, now
from bot.doors.agents.parameters import moment_or_none
from bot.doors.choosing import Choice, SessionHits, WordSearch, in_memory, in_sessions
from bot.doors.plain import bounded, plain
from bot.doors.rows import Row, holds, linked, passage, row, work_rows


def search(desk: Desk, given: Mapping[str, Any]) -> Told:
    """The threads that hold these words, or the messages of sessions."""
    label = given["label"].strip()
    labels, since = frozenset([label] if label else []), moment_or_none(given["since"], now())
    choice = Choice(given["state"], given["kind"], labels, since=since)
    asked = WordSearch(given["query"], choice, given["limit"], given["expand"])
    if asked.is_of_sessions:
        return _heard(in_sessions(asked, desk.folder, ""), asked)
    with desk.opened() as place:
        found = in_memory(asked, place.glance)
        hits = [
            row(one.card, place.home, score=round(one.score, 2), why=holds(one.terms, asked.words))
            for one in found.found
        ]
        fields = {"hits": hits, "linked": linked(found.near, place.home), "passages": []}
        data = plain(bounded(desk.answer(place, fields, found=bool(hits))))
    return _told(data, f"for {wording.quoted(asked.words, 80)}", asked.limit)


def smart_search(desk: Desk, given: Mapping[str, Any]) -> Told:
    """The threads that are related to these words, to the work at hand, or to both."""
    from bot.doors.worktree import look
    from bot.recall.smart import smart

    words = given["query"].strip()
    with desk.opened() as place:
        found = smart(words, look(desk.folder), place.glance, now(), limit=given["limit"])
        hits = [row(one.card, place.home, score=round(one.score, 2), why=list(one.why)) for one in found.hits]
        fields = {"hits": hits, "used": list(found.used), "unused": list(found.unused)}
        data = plain(bounded(desk.answer(place, fields, found=bool(hits))))
    return _told(data, f"for {wording.quoted(words, 80)}" if words else "to the work at hand", given["limit"])


def what(desk: Desk, _: Mapping[str, Any]) -> Told:
    """What is related to the work at hand, decided about its files, open near it, and was decided last."""
    from bot.doors.worktree import look
    from bot.recall import work

    with desk.opened() as place:
        found = work.what(look(desk.folder), place.glance, now())
        fields = {
            **work_rows(found, place.home),
            "used": list(found.used),
            "unused": list(found.unused),
        }
        data = plain(bounded(desk.answer(place, fields, found=found.is_relevant)))
    sections = (
        ("Related to the branch", "related"),
        ("Decided about the files at hand", "decisions"),
        ("Open tasks", "tasks"),
        ("Decided last, about anything", "recent"),
    )
    body = "".join(f"\n{title}:\n{wording.rows(data[name])}" for title, name in sections if data[name])
    line = "What the memory has on the work at hand." if found.is_relevant else "Nothing relevant to the work at hand."
    searched = f"{data['searched']} issues, pull requests and pages searched."
    return Told(data, wording.headed(f"{line} {searched}{_signals(data)}", data, body))


def _heard(found: SessionHits, asked: WordSearch) -> Told:
    """Messages of sessions, with their text."""
    said = [passage(one) for one in found.passages]
    fields: Row = {"hits": [], "linked": [], "passages": said}
    data = plain(bounded(data_of(fields, found=bool(said), searched=found.searched)))
    about = f"for {wording.quoted(asked.words, 80)}"
    looked = count(found.searched, "session")
    if not said:
        return Told(data, wording.headed(f"Nothing relevant {about}: {looked} searched.", data, ""))
    more = ", and there may be more" if len(said) == asked.limit else ""
    line = f"{count(len(data['passages']), 'message')} found {about}{more}: {looked} searched."
    body = f"\nSaid in sessions on this machine:\n{wording.passages(data['passages'])}"
    return Told(data, wording.headed(line, data, body))


def _told(data: dict[str, Any], about: str, limit: int) -> Told:
    """Hits, and what is linked to them, with their text."""
    signals = _signals(data)
    if data["nothing_relevant"]:
        line = f"Nothing relevant {about}: {data['searched']} issues, pull requests and pages searched.{signals}"
        return Told(data, wording.headed(line, data, ""))
    near = data.get("linked")
    body = wording.rows(data["hits"]) + (f"\nLinked to these:\n{wording.rows(near)}" if near else "")
    more = ", and there may be more" if len(data["hits"]) == limit else ""
    searched = f"{data['searched']} issues, pull requests and pages"
    line = f"{len(data['hits'])} of {searched} are relevant {about}{more}.{signals}"
    return Told(data, wording.headed(line, data, body))


def _signals(data: Mapping[str, Any]) -> str:
    """What of the checkout counted, and what did not, in a line of its own."""
    used, unused = data.get("used", ()), data.get("unused", ())
    parts = [f"Used: {', '.join(map(wording.quoted, used))}."] if used else []
    parts += [f"Not used: {'; '.join(map(wording.quoted, unused))}."] if unused else []
    return "".join(f"\n{wording.plain_line(part)}" for part in parts)
