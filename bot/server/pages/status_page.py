"""Builds the status page and those of one delivery and of a digest, without any text of issues."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from urllib.parse import urlencode

from bot.comment.render import render_page
from bot.github.errors import CORE, GRAPHQL
from bot.github.events import Event
from bot.server.model import (
    DAY,
    HOUR,
    MAX_COUNT,
    MINUTE,
    Counters,
    Delivery,
    Instant,
    RepositoryRow,
    RunRow,
    State,
)
from bot.server.pages.health import Check
from bot.server.pages.repository_list import RepositoryStatus, repository_list
from bot.server.scope import ALL_REPOSITORIES, RepositoryScope
from bot.server.storage.budgets import Budgets, ScarcestLimit
from bot.server.storage.counters import CounterTable
from bot.server.storage.delivery_filter import DeliveryFilter
from bot.server.storage.digests import Digests, SectionNumbers, StoredDigest
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import Installations

PAGE_SIZE = 25
"""Deliveries per page."""

MAX_REPOSITORIES = 100
"""Most repositories listed: those with the latest runs."""

MAX_REASONS = 5
"""Most reasons for silence shown."""

MIN_WIDTH = 0.015
"""The smallest visible part of a bar, given to every value above zero."""

DEAD_PATH = "/dead"
"""The address of the page of dead deliveries."""

DIGESTS_PATH = "/digests"
"""The folder of the addresses of digests; each ends in the key of its repository."""

ANSWERS_METRIC = "precedent_answers_total"

Values = dict[str, object]


@cache
def style() -> str:
    return render_page("status.css", {})


@cache
def policy(*, has_forms: bool = False) -> str:
    """Return the content security policy: nothing may be loaded, except the style of the page.

    Forms may be sent only from a page that has some, and only to this server.
    """
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    target = "'self'" if has_forms else "'none'"
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action {target}"


def status_page(
    inbox: Inbox,
    checks: Sequence[Check],
    now: Instant,
    selection: DeliveryFilter | None = None,
    scope: RepositoryScope = ALL_REPOSITORIES,
) -> str:
    selection = selection or DeliveryFilter()
    rows = inbox.deliveries(
        state=selection.state, repository=selection.repository, before=selection.before, limit=PAGE_SIZE + 1
    )
    counts, oldest = inbox.counts(), inbox.oldest_waiting()
    repositories = sorted(
        Installations(inbox.database, inbox.now).repositories(), key=lambda row: (-row.last_run, row.name)
    )
    names = {row.repository: row.name for row in repositories}
    left, digests = (
        Budgets(inbox.database, inbox.now).remaining(CORE),
        Digests(inbox.database, inbox.now).repositories(),
    )
    values: Values = {
        "state": _state(checks, counts),
        "headline": _headline(checks, counts),
        "lead": _lead(repositories, counts),
        "checks": checks,
        "tiles": _tiles(counts, moment(oldest, now).ago if oldest else ""),
        "limits": _limits(Budgets(inbox.database, inbox.now).scarcest()),
        "said": _answer_summary(CounterTable(inbox.database, inbox.now).read()),
        "filters": _filters(selection, counts),
        "filtered": _current_filter(selection, repositories),
        "entries": [_entry(row, now, names.get(row.repository, "")) for row in rows[:PAGE_SIZE]],
        "older": _link(selection, rows[PAGE_SIZE - 1].seq) if len(rows) > PAGE_SIZE else "",
        "newest": _link(selection) if selection.before else "",
        "repositories": [
            _repository(
                each,
                left.get(each.row.repository.installation),
                now,
                has_digest=each.row.repository.text in digests,
            )
            for each in repository_list(
                repositories[:MAX_REPOSITORIES], Installations(inbox.database, inbox.now), scope, now
            )
        ],
        "more": max(0, len(repositories) - MAX_REPOSITORIES),
    }
    return render_page("status.html.j2", values | frame(now, has_forms=True))


def delivery_page(details: tuple[Delivery, RunRow | None] | None, now: Instant, name: str = "") -> str:
    """Return the page of one delivery and its last run; None for an unknown or deleted one.

    ``name`` is the name of the repository if the delivery has none.
    """
    if details is None:
        return render_page("delivery.html.j2", {"entry": None} | frame(now))
    delivery, run = details
    values: Values = {
        "entry": _entry(delivery, now, name),
        "group": dead_link(delivery.reason) if delivery.state == "dead" else "",
        "steps": _steps(delivery, run, now),
        "stages": _stages(run),
        "notes": run.notes if run else (),
        "facts": _facts(delivery, run),
    }
    return render_page("delivery.html.j2", values | frame(now))


def server_digest_page(stored: StoredDigest | None, name: str, home: str, now: Instant) -> str:
    """Return the page of a digest, None for a repository without one. ``home`` is its address, "" if unknown."""
    total = sum(section.total for section in stored.sections) if stored else 0
    values: Values = {
        "name": name,
        "made": moment(stored.made_at, now) if stored else None,
        "since": moment(stored.since) if stored else None,
        "headline": f"{count_of(total, 'thing')} to look at",
        "sections": [_digest_section(section, home) for section in stored.sections if section.total] if stored else [],
    }
    return render_page("server_digest.html.j2", values | frame(now))


def _digest_section(section: SectionNumbers, home: str) -> Values:
    links = [
        {"number": number, "url": f"{home}/{kind.traits.path}/{number}" if home else ""}
        for number, kind in section.numbers
    ]
    return {"title": section.title, "total": section.total, "links": links, "left": section.total - len(links)}


def frame(now: Instant, *, has_forms: bool = False) -> Values:
    return {"style": style(), "policy": policy(has_forms=has_forms), "now": moment(now)}


def _headline(checks: Sequence[Check], counts: Mapping[State, int]) -> str:
    """Whether somebody must act, and on what."""
    if bad := [check.name for check in checks if not check.ok]:
        return f"Please act: {join_names(bad)} {'is' if len(bad) == 1 else 'are'} not well"
    dead = counts.get("dead", 0)
    if dead:
        return f"Please act: {count_of(dead, 'delivery was', 'deliveries were')} put aside"
    return "All is well: there is nothing to do"


def _state(checks: Sequence[Check], counts: Mapping[State, int]) -> str:
    if not all(check.ok for check in checks):
        return "bad"
    return "fair" if counts.get("dead", 0) else "good"


def _lead(repositories: Sequence[RepositoryRow], counts: Mapping[State, int]) -> str:
    busy = counts.get("waiting", 0) + counts.get("working", 0)
    text = f"It looks after {count_of(len(repositories), 'repository', 'repositories')}." if repositories else ""
    text = text or "It looks after no repositories."
    return (
        f"{text} {count_of(busy, 'delivery is', 'deliveries are')} in hand." if busy else f"{text} Nothing is waiting."
    )


def _tiles(counts: Mapping[State, int], oldest: str) -> list[Values]:
    abouts: Mapping[State, str] = {
        "waiting": f"the oldest due one arrived {oldest}" if oldest else "none is due",
        "working": "in current runs",
        "done": "with a comment, or silently",
        "dead": "given up for now; see why" if counts.get("dead", 0) else "none was given up",
    }
    return [
        {
            "name": STATE_BADGES[state][1],
            "value": _format_count(counts.get(state, 0)),
            "about": about,
            "link": DEAD_PATH if state == "dead" and counts.get(state, 0) else "",
        }
        for state, about in abouts.items()
    ]


def _limits(scarcest: Sequence[ScarcestLimit]) -> str:
    """What is left of GitHub's limits, in one line; empty if no limit is known for this hour."""
    units = {each.resource: "GraphQL points" if each.resource == GRAPHQL else "requests" for each in scarcest}
    left = join_names([f"{each.left:,} of {each.limit:,} {units[each.resource]}" for each in scarcest])
    most = max((each.installations for each in scarcest), default=0)
    qualifier = " for the installation that has the fewest" if most > 1 else ""
    return f"Left of GitHub's limits this hour{qualifier}: {left}." if scarcest else ""


def _format_count(count: int) -> str:
    """A number of deliveries, counted only up to a limit."""
    return f"{count:,}+" if count >= MAX_COUNT else f"{count:,}"


def _answer_summary(totals: Counters) -> Values:
    kinds, reasons = {"spoke": 0, "silent": 0, "failed": 0}, dict[str, int]()
    for (name, labels), amount in totals.items():
        if name == ANSWERS_METRIC and len(labels) == 2:
            kind = "failed" if labels[0] == "dead" else OUTCOME_BADGES.get(labels[0], ("silent", ""))[0]
            kinds[kind] += int(amount)
            if kind == "silent" and labels[1] not in ("", "other"):
                reasons[labels[1]] = reasons.get(labels[1], 0) + int(amount)
    most_common = sorted(reasons.items(), key=lambda found: (-found[1], found[0]))[:MAX_REASONS]
    return {
        "total": sum(kinds.values()),
        "shares": _shares(kinds),
        "reasons": [f"{why} ({n:,})" for why, n in most_common],
    }


def _shares(kinds: Mapping[str, int]) -> list[Values]:
    """Parts of a bar of width 100."""
    names = {"spoke": "It spoke", "silent": "It kept silent", "failed": "It gave up"}
    total = sum(kinds.values()) or 1
    parts = {kind: max(count / total, MIN_WIDTH) if count else 0 for kind, count in kinds.items()}
    parts_sum, start = sum(parts.values()) or 1, 0.0
    shares: list[Values] = []
    for kind, part in parts.items():
        width = round(100 * part / parts_sum, 2)
        shares.append({"kind": kind, "name": names[kind], "count": f"{kinds[kind]:,}", "start": start, "width": width})
        start = round(start + width, 2)
    return shares


def _filters(selection: DeliveryFilter, counts: Mapping[State, int]) -> list[Values]:
    """Links to the deliveries of each state; counts are of all repositories, and left out for a single one."""
    every: list[State | None] = [None, *STATE_BADGES]
    return [
        {
            "name": STATE_BADGES[state][1] if state else "All",
            "link": _link(DeliveryFilter(state, selection.repository)),
            "is_current": state == selection.state,
            "count": _format_count(counts.get(state, 0) if state else sum(counts.values()))
            if not selection.repository
            else "",
        }
        for state in every
    ]


def _current_filter(selection: DeliveryFilter, repositories: Sequence[RepositoryRow]) -> Values | None:
    if selection.repository is None:
        return None
    name = next((row.name for row in repositories if row.repository == selection.repository), "")
    return {"name": name or selection.repository.text, "everything": _link(DeliveryFilter(selection.state))}


def _link(selection: DeliveryFilter, before: int = 0) -> str:
    parts = {
        "state": selection.state,
        "repository": selection.repository.text if selection.repository else "",
        "before": before,
    }
    query = "&".join(f"{name}={value}" for name, value in parts.items() if value)
    return f"/?{query}#deliveries" if query else "/#deliveries"


def dead_link(reason: str, before: int = 0) -> str:
    return f"{DEAD_PATH}?{urlencode({'reason': reason} | ({'before': before} if before else {}))}"


def _entry(delivery: Delivery, now: Instant, name: str) -> Values:
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


def repository_of(delivery: Delivery, name: str = "") -> str:
    """Return the name of the delivery's repository, else ``name``, else its numbers."""
    repository = delivery.repository
    return (
        delivery.name or name or (repository.text if repository.number else f"installation {repository.installation}")
    )


def _repository(status: RepositoryStatus, requests_left: int | None, now: Instant, *, has_digest: bool) -> Values:
    row = status.row
    pushes = sum(1 for at in row.pushes if now - at <= MINUTE)
    tags = ["private" if row.private else "", "observed" if status.is_observed else ""]
    return {
        "name": status.name,
        "tags": [*filter(None, tags), *([status.state] if status.state in ("excluded", "suspended") else [])],
        "history": _history(status, now),
        "link": _link(DeliveryFilter(repository=row.repository)),
        "digest": f"{DIGESTS_PATH}/{row.repository.text}" if has_digest else "",
        "worked": moment(row.last_run, now) if row.last_run else None,
        "read": moment(row.cursor, now) if row.cursor else None,
        "pushes": str(pushes) if pushes else "none",
        "left": "not known" if requests_left is None else f"{requests_left:,}",
    }


def _history(status: RepositoryStatus, now: Instant) -> str:
    """How much of its history is read, and when all will be."""
    if status.state == "reading" and status.estimate:
        percent, done = status.estimate.percent, status.done_at
        progress = f"{percent} % read" if percent >= 0 else f"{count_of(status.estimate.read, 'thread')} read"
        return progress + (f", all in about {format_duration((done - now) / 1000)}" if done > now else "")
    return "not read yet" if status.row.is_unread else "read"


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


OUTCOME_BADGES = {
    "created": ("spoke", "Commented"),
    "updated": ("spoke", "Comment updated"),
    "unchanged": ("spoke", "Unchanged"),
    "replied": ("spoke", "Replied"),
    "withdrawn": ("spoke", "Comment withdrawn"),
    "would say": ("spoke", "Would comment"),
    "silent": ("silent", "Silent"),
    "failed": ("failed", "Failed"),
}
"""The outcome of a run → its style and name."""

STATE_BADGES: Mapping[State, tuple[str, str]] = {
    "waiting": ("waiting", "Waiting"),
    "working": ("waiting", "In progress"),
    "done": ("silent", "Done"),
    "dead": ("failed", "Put aside"),
    "dropped": ("silent", "Dropped"),
}

EVENT_NOUNS = {
    "issues": "issue",
    "issue_comment": "comment",
    "discussion": "discussion",
    "discussion_comment": "comment on a discussion",
    "push": "push to the default branch",
    "gollum": "wiki edited",
    "catch-up": "automatic check",
    "schedule": "daily check",
    "installation": "App",
    "installation_repositories": "repositories",
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A word for the outcome of a delivery, and its kind: spoke, silent, waiting or failed."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A time for people and, as ``iso``, for machines. ``ago`` is relative to now."""

    iso: str
    text: str
    ago: str = ""


def badge(delivery: Delivery) -> Badge:
    if delivery.state == "done" and delivery.said in OUTCOME_BADGES:
        return Badge(*OUTCOME_BADGES[delivery.said])
    if delivery.state == "waiting" and delivery.attempts:
        return Badge("waiting", "Retrying")
    return Badge(*STATE_BADGES[delivery.state])


def describe_event(event: Event) -> str:
    """The event in a few words: "issue opened"."""
    name = EVENT_NOUNS.get(event.name, event.name.replace("_", " "))
    return f"{name} {event.action.replace('_', ' ')}".strip()


def moment(at: Instant, now: Instant | None = None) -> Moment:
    """A time in UTC; ``ago`` is empty without a ``now``."""
    when = datetime.fromtimestamp(at / 1000, UTC)
    return Moment(when.isoformat(timespec="milliseconds"), f"{when:%-d %B %Y, %H:%M:%S}", _ago(at, now) if now else "")


def format_duration(seconds: float) -> str:
    if seconds < 0.001:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def count_of(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 repository", "2 repositories"."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def join_names(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _ago(at: Instant, now: Instant) -> str:
    past = max(0, now - at)
    if past < 2_000:
        return "just now"
    if past < MINUTE:
        return f"{past // 1000}\u00a0s ago"
    if past < HOUR:
        return f"{past // MINUTE}\u00a0min ago"
    return f"{past // HOUR}\u00a0h ago" if past < 2 * DAY else f"{past // DAY}\u00a0days ago"
