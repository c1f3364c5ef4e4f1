"""Builds the page of one delivery, and its entry in a list, without any text of issues."""

from __future__ import annotations

from bot.comment.render import render_page
from bot.server.model import (
    Delivery,
    Instant,
    RunRow,
)
from bot.server.pages.parts import (
    Values,
    badge,
    count_of,
    dead_link,
    describe_event,
    format_duration,
    frame,
    moment,
    repository_of,
)


def delivery_page(details: tuple[Delivery, RunRow | None] | None, now: Instant, name: str = "") -> str:
    """Return the page of one delivery and its last run; None for an unknown or deleted one.

    ``name`` is the name of the repository if the delivery has none.
    """
    if details is None:
        return render_page("delivery.html.j2", {"entry": None} | frame(now))
    delivery, run = details
    values: Values = {
        "entry": delivery_entry(delivery, now, name),
        "group": dead_link(delivery.reason) if delivery.state == "dead" else "",
        "steps": _steps(delivery, run, now),
        "stages": _stages(run),
        "notes": run.notes if run else (),
        "facts": _facts(delivery, run),
    }
    return render_page("delivery.html.j2", values | frame(now))


def delivery_entry(delivery: Delivery, now: Instant, name: str) -> Values:
    event = delivery.event
    shown = {number for number, _ in delivery.matches}
    return {
        "link": f"/deliveries/{delivery.seq}",
        "seq": delivery.seq,
        "badge": badge(delivery),
        "name": repository_of(delivery, name),
        "number": event.number,
        "happened": describe_event(event),
        "came": moment(delivery.received_at, now),
        "next": moment(delivery.next_at, now) if delivery.state == "waiting" and delivery.next_at > now else None,
        "reason": delivery.reason,
        "goes_without_saying": bool(delivery.matches) and badge(delivery).kind == "spoke",
        "url": delivery.url if delivery.url.startswith(("https://", "http://")) else "",
        "matches": [
            {"number": number, "percent": f"{100 * similarity:.0f}", "width": round(100 * similarity, 1)}
            for number, similarity in delivery.matches
        ],
        "nearest": [
            {
                "number": number,
                "similarity": f"{similarity:.2f}",
                "why": why.replace("both name", "the same names").replace("both speak of", "words in common"),
                "shown": number in shown,
            }
            for number, similarity, why in delivery.nearest
        ],
    }


def _steps(delivery: Delivery, run: RunRow | None, now: Instant) -> list[Values]:
    steps: list[Values] = [{"at": moment(delivery.received_at), "name": "Received and stored", "about": ""}]
    if delivery.attempts:
        tries = count_of(delivery.attempts, "try", "tries")
        steps.append({"at": None, "name": f"{tries} failed", "about": "each was followed by a longer pause"})
    if run and delivery.run == run.id:
        waited = format_duration((run.began - delivery.received_at) / 1000)
        about = f"{waited} after it arrived, by worker {run.worker}"
        steps.append({"at": moment(run.began), "name": "A run of its repository began", "about": about})
        if run.ended:
            took = f"it took {format_duration((run.ended - run.began) / 1000)}"
            steps.append({"at": moment(run.ended), "name": "The run ended", "about": took})
    if delivery.state == "waiting":
        later = delivery.next_at > now
        steps.append(
            {"at": moment(delivery.next_at) if later else None, "name": "Next try", "about": "" if later else "due"}
        )
    elif delivery.finished_at:
        steps.append({"at": moment(delivery.finished_at), "name": badge(delivery).name, "about": delivery.reason})
    return steps


def _stages(run: RunRow | None) -> list[Values]:
    """The duration of each stage of the run, with a bar of width 100 for the longest."""
    longest = max((seconds for _, seconds in run.stages), default=0) if run else 0
    return [
        {"name": name, "took": format_duration(seconds), "width": round(100 * seconds / longest, 1) if longest else 0}
        for name, seconds in (run.stages if run else ())
    ]


def _facts(delivery: Delivery, run: RunRow | None) -> list[tuple[str, str]]:
    repository, event = delivery.repository, delivery.event
    facts = [
        ("Delivery", delivery.id),
        ("Request", delivery.request),
        ("Event", f"{event.name}.{event.action}" if event.action else event.name),
        ("Installation and repository", f"{repository.installation} and {repository.number}"),
        ("Related comment", str(event.comment_id or "")),
        ("Moved to", event.moved_to or ""),
        *((f"Of the {key}" if key == "account" else key.capitalize(), value) for key, value in delivery.extra),
        ("Run", delivery.run),
    ]
    if run:
        pushes = count_of(len(run.pushes), "push", "pushes")
        facts.append(("Requests of the run", f"{run.reads:,} read, {run.writes:,} written, {pushes}"))
    return [(name, value) for name, value in facts if value]
