"""Builds the page of a repository's digest, without any text of issues."""

from __future__ import annotations

from bot.comment.render import render_page
from bot.server.digests import SectionNumbers, StoredDigest
from bot.server.model import Instant
from bot.server.status_page import Values, counted, frame, moment


def server_digest_page(found: StoredDigest | None, name: str, home: str, now: Instant) -> str:
    """Return the page; None for a repository without a digest. ``home`` is the repository's address, "" if unknown."""
    total = sum(section.total for section in found.sections) if found else 0
    values: Values = {
        "name": name,
        "made": moment(found.made_at, now) if found else None,
        "since": moment(found.since) if found else None,
        "headline": f"{counted(total, 'thing')} to look at",
        "sections": [_section(one, home) for one in found.sections if one.total] if found else [],
    }
    return render_page("server_digest.html.j2", values | frame(now))


def _section(section: SectionNumbers, home: str) -> Values:
    links = [
        {"number": number, "url": f"{home}/{kind.traits.path}/{number}" if home else ""}
        for number, kind in section.numbers
    ]
    return {"title": section.title, "total": section.total, "links": links, "left": section.total - len(links)}
