"""Builds the status page and that of a digest, without any text of issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bot.comment.render import render_page
from bot.domain.organisation import Visibility
from bot.github.errors import CORE, GRAPHQL
from bot.server.model import (
    ALL_REPOSITORIES,
    MAX_COUNT,
    MINUTE,
    Counters,
    Instant,
    RepositoryRow,
    RepositoryScope,
    State,
)
from bot.server.pages.deliveries import delivery_entry
from bot.server.pages.health import Check
from bot.server.pages.parts import (
    DEAD_PATH,
    DIGESTS_PATH,
    OUTCOME_BADGES,
    PAGE_SIZE,
    STATE_BADGES,
    Values,
    count_of,
    format_duration,
    frame,
    join_names,
    moment,
)
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.github_access import ScarcestLimit
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import RepositoryStatus, SectionNumbers, StoredDigest, repository_list

MAX_REPOSITORIES = 100
"""Most repositories listed: those with the latest runs."""

MAX_REASONS = 5
"""Most reasons for silence shown."""

MIN_WIDTH = 0.015
"""The smallest visible part of a bar, given to every value above zero."""

REFUSAL_MEANINGS = {
    400: "not a delivery of an App",
    403: "a wrong signature: enter the server's webhook secret in the App",
    415: "the App's webhook sends forms, not JSON",
    503: "they could not be stored: see the log",
}
"""What the status of a refused delivery means."""

ANSWERS_METRIC = "precedent_answers_total"


def status_page(
    inbox: Inbox,
    checks: Sequence[Check],
    now: Instant,
    selection: DeliveryFilter | None = None,
    scope: RepositoryScope = ALL_REPOSITORIES,
    refused: Mapping[int, int] = MappingProxyType({}),
) -> str:
    """Return the page. ``refused``: how many deliveries this process refused in the last hour, by status."""
    selection = selection or DeliveryFilter()
    rows = inbox.deliveries(selection, PAGE_SIZE + 1)
    counts, oldest = inbox.counts(), inbox.oldest_waiting()
    repositories = sorted(inbox.installations.repositories(), key=lambda row: (-row.last_run, row.name))
    names = {row.repository: row.name for row in repositories}
    left, digests = inbox.limits.remaining(CORE), inbox.digests.repositories()
    values: Values = {
        "state": _state(checks, counts, refused),
        "headline": _headline(checks, counts, refused),
        "lead": _lead(repositories, counts),
        "checks": checks,
        "refused": _refusals(refused),
        "tiles": _tiles(counts, moment(oldest, now).ago if oldest else ""),
        "limits": _limits(inbox.limits.scarcest()),
        "said": _answer_summary(inbox.counters.read()),
        "filters": _filters(selection, counts),
        "filtered": _current_filter(selection, repositories),
        "entries": [delivery_entry(row, now, names.get(row.repository, "")) for row in rows[:PAGE_SIZE]],
        "older": _link(selection, rows[PAGE_SIZE - 1].seq) if len(rows) > PAGE_SIZE else "",
        "newest": _link(selection) if selection.before else "",
        "repositories": [
            _repository(
                each, left.get(each.row.repository.installation), now, has_digest=each.row.repository.text in digests
            )
            for each in repository_list(repositories[:MAX_REPOSITORIES], inbox.installations, inbox.limits, scope)
        ],
        "more": max(0, len(repositories) - MAX_REPOSITORIES),
    }
    return render_page("status.html.j2", values | frame(now))


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


def _headline(checks: Sequence[Check], counts: Mapping[State, int], refused: Mapping[int, int]) -> str:
    """Whether somebody must act, and on what."""
    if bad := [check.name for check in checks if not check.ok]:
        return f"Please act: {join_names(bad)} {'is' if len(bad) == 1 else 'are'} not well"
    dead = counts.get("dead", 0)
    if dead:
        return f"Please act: {count_of(dead, 'delivery was', 'deliveries were')} put aside"
    return "Please look: deliveries were refused" if refused else "All is well: there is nothing to do"


def _state(checks: Sequence[Check], counts: Mapping[State, int], refused: Mapping[int, int]) -> str:
    if not all(check.ok for check in checks):
        return "bad"
    return "fair" if counts.get("dead", 0) or refused else "good"


def _refusals(refused: Mapping[int, int]) -> str:
    parts = [f"{many:,} with {status} ({REFUSAL_MEANINGS.get(status, 'see the log')})"
             for status, many in sorted(refused.items())]  # fmt: skip
    return f"Refused by this process in the last hour: {', '.join(parts)}." if parts else ""


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


def _repository(status: RepositoryStatus, requests_left: int | None, now: Instant, *, has_digest: bool) -> Values:
    row = status.row
    pushes = sum(1 for at in row.pushes if now - at <= MINUTE)
    tags = ["" if row.visibility is Visibility.PUBLIC else "private", "observed" if status.is_observed else ""]
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
