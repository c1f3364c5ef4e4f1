"""The tools that search: by words, with the work at hand in mind, and without any question."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.doors.agents import wording
from bot.doors.agents.desk import Desk, Told, now
from bot.doors.agents.parameters import moment_or_none
from bot.doors.choosing import Choice, by_words
from bot.doors.located import Place
from bot.doors.plain import bounded, plain
from bot.doors.rows import Row, holds, linked, passage, row, work_rows


def search(desk: Desk, given: Mapping[str, Any]) -> Told:
    """The threads that hold these words."""
    from bot.recall.hop import expand

    since, label = moment_or_none(given["since"], now()), given["label"].strip()
    choice = Choice(given["state"], given["kind"], frozenset([label] if label else []), since=since)
    with desk.opened() as place:
        found = by_words(given["query"], place.glance, given["limit"], choice)
        hits = [
            row(one.card, place.home, score=round(one.score, 2), why=holds(one.terms, given["query"])) for one in found
        ]
        near = expand([one.card.id for one in found], place.glance) if given["expand"] else ()
        said = _passages(place, given, since)
        fields = {"hits": hits, "linked": linked(near, place.home), "passages": said}
        data = plain(bounded(desk.answer(place, fields, found=bool(hits or said))))
    return _told(data, f"for {wording.quoted(given['query'], 80)}", given["limit"])


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
        is_found = bool(found.related or found.decisions or found.tasks)
        data = plain(bounded(desk.answer(place, fields, found=is_found)))
    sections = (
        ("Related to the branch", "related"),
        ("Decided about the files at hand", "decisions"),
        ("Open tasks", "tasks"),
        ("Decided last, about anything", "recent"),
    )
    body = "".join(f"\n{title}:\n{wording.rows(data[name])}" for title, name in sections if data[name])
    line = "What the memory has on the work at hand." if is_found else "Nothing relevant to the work at hand."
    return Told(data, wording.headed(f"{line} {data['searched']} threads searched.{_signals(data)}", data, body))


def _passages(place: Place, given: Mapping[str, Any], since: datetime | None) -> list[Row]:
    """What was said in the transcripts on this machine, where sessions are asked for and the settings name some."""
    if given["kind"] != "session":
        return []
    from bot.doors.transcripts import opened_logs

    with opened_logs(place.top) as logs:
        return [passage(one) for one in logs.search(given["query"], given["limit"], since)] if logs else []


def _told(data: dict[str, Any], about: str, limit: int) -> Told:
    """Hits, and what is linked to them, with their text."""
    signals = _signals(data)
    if data["nothing_relevant"]:
        line = f"Nothing relevant {about}: {data['searched']} threads searched.{signals}"
        return Told(data, wording.headed(line, data, ""))
    near, said = data.get("linked"), data.get("passages")
    body = wording.rows(data["hits"]) + (f"\nLinked to these:\n{wording.rows(near)}" if near else "")
    body += f"\nSaid in sessions on this machine:\n{wording.passages(said)}" if said else ""
    more = ", and there may be more" if len(data["hits"]) == limit else ""
    line = f"{len(data['hits'])} of {data['searched']} threads are relevant {about}{more}.{signals}"
    return Told(data, wording.headed(line, data, body))


def _signals(data: Mapping[str, Any]) -> str:
    """What of the checkout counted, and what did not, in a line of its own."""
    used, unused = data.get("used", ()), data.get("unused", ())
    parts = [f"Used: {', '.join(map(wording.quoted, used))}."] if used else []
    parts += [f"Not used: {'; '.join(map(wording.quoted, unused))}."] if unused else []
    return "".join(f"\n{wording.plain_line(part)}" for part in parts)
