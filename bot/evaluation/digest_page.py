"""Renders the digest for maintainers as one self-contained HTML file: counts, highlights and six lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape

from bot.comment.catalogue import count, day
from bot.comment.clean_text import one_line, truncate
from bot.comment.render import render_page
from bot.domain.card import Card
from bot.evaluation.plots import bar, line
from bot.questions.addresses import citation, message_url, url_of
from bot.questions.digest import DigestItem, DigestSection, EvidenceIssue, MaintainerReport, SectionName
from bot.questions.digest_views import period_of, quote_source

_MAX_LINE_CHARS = 300
_BAR_WIDTH, _BAR_GAP, _MAX_BAR_HEIGHT = 8, 2, 36
"""Width of a week's bar, the gap after it, and the height of the highest bar, in units of the drawing."""


def render_digest(report: MaintainerReport, home: str) -> str:
    """The page as HTML in valid Unicode that loads nothing; the same report gives the same bytes.

    ``home`` is the address of the repository, "" if unknown. All texts are escaped.
    """
    values = {
        "repo": report.repo,
        "lead": f"{period_of(report)}: {count(report.total, 'thing')} to look at.",
        "threads": count(report.threads, "thread"),
        "tiles": [_tile(section) for section in report.sections],
        "first": [_highlight(name, item, home) for name, item in report.highlights],
        "sections": [_section(section, report.until, home) for section in report.sections if section.total],
        "empty": [section.name.title for section in report.sections if not section.total],
        "notes": report.notes,
    }
    return render_page("digest.html.j2", values)


def _tile(section: DigestSection) -> dict[str, object]:
    return {"name": section.name.title, "key": section.name.name, "count": section.total}


def _highlight(name: SectionName, item: DigestItem, home: str) -> dict[str, object]:
    excerpt = "" if item.facts or item.quote is None else item.quote.text
    return _thread_link(item.card, home) | {"section": name.title, "facts": _join_parts([*item.facts, excerpt])}


def _section(section: DigestSection, until: datetime, home: str) -> dict[str, object]:
    return {
        "key": section.name.name,
        "title": section.name.title,
        "about": section.name.about,
        "total": section.total,
        "items": [_item(item, until, home) for item in section.items],
        "left": count(section.left, "other") if section.left else "",
    }


def _item(item: DigestItem, until: datetime, home: str) -> dict[str, object]:
    quote = item.quote
    quotation = (
        {"text": _short(quote.text), "by": quote_source(item), "url": message_url(quote, home)} if quote else None
    )
    return _thread_link(item.card, home) | {
        "state": item.card.state,
        "day": day(item.at),
        "iso": item.at.date().isoformat(),
        "facts": _join_parts(item.facts),
        "quote": quotation,
        "evidence": [_evidence(issue, home) for issue in item.evidence],
        "left": f"{item.left:,}" if item.left else "",
        "plot": plot_weeks(item.weeks, until) if any(item.weeks) else "",
        "weeks": weeks_in_words(item.weeks, until) if any(item.weeks) else "",
    }


def _evidence(issue: EvidenceIssue, home: str) -> dict[str, object]:
    return _thread_link(issue.card, home) | {"why": _join_parts(issue.why)}


def _thread_link(card: Card, home: str) -> dict[str, object]:
    title = _short(card.title) or "(no title)"
    return {"id": _short(citation(card.id)), "title": title, "url": url_of(card, home)}


def plot_weeks(weeks: Sequence[int], until: datetime) -> str:
    """A drawing of the number of reports per week, the last week on the right."""
    width, most = len(weeks) * (_BAR_WIDTH + _BAR_GAP) - _BAR_GAP, max(weeks)
    name = escape(weeks_in_words(weeks, until))
    parts = [f'<svg class="weeks" viewBox="0 0 {width} {_MAX_BAR_HEIGHT + 1}" role="img" aria-label="{name}">']
    for index, reports in enumerate(weeks):
        if reports:
            height = _MAX_BAR_HEIGHT * reports / most
            parts.append(
                bar(index * (_BAR_WIDTH + _BAR_GAP), _MAX_BAR_HEIGHT - height, (_BAR_WIDTH, height), "bar-full")
            )
    return "".join([*parts, line((0, _MAX_BAR_HEIGHT + 0.5), (width, _MAX_BAR_HEIGHT + 0.5), "axis"), "</svg>"])


def weeks_in_words(weeks: Sequence[int], until: datetime) -> str:
    most = max(weeks)
    last = max(index for index, reports in enumerate(weeks) if reports == most)
    end = until - timedelta(weeks=len(weeks) - 1 - last)
    busiest = f"most in the week to {day(end)} ({most:,})"
    return f"{count(sum(weeks), 'report')} in the last {len(weeks)} weeks, {busiest}"


def _join_parts(parts: Sequence[str]) -> str:
    return " · ".join(_short(part).replace("`", "") for part in parts if part)


def _short(text: str) -> str:
    return truncate(one_line(text), _MAX_LINE_CHARS)
