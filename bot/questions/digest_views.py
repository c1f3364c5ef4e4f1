"""The digest for maintainers as rows of data, as lists of threads, as Markdown, and as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from html import escape

from bot.comment.catalogue import count, day, thread_label
from bot.comment.clean_text import one_line, quoted, truncate
from bot.comment.defang import inline, link, prose
from bot.comment.render import render_page
from bot.comment.svg import bar, line
from bot.domain.card import Card
from bot.questions.addresses import citation, message_url, url_of
from bot.questions.digest import DigestItem, DigestSection, EvidenceIssue, MaintainerReport, SectionName
from bot.questions.fields import MAX_TITLE, PASSAGE, Item, Row, row_of, row_stamp
from bot.questions.views import ItemSection, attribution

_MAX_CHARS = 300
"""Characters of a stranger's text that Markdown and the page show."""

_BAR_WIDTH, _BAR_GAP, _MAX_BAR_HEIGHT = 8, 2, 36
"""Width of a week's bar, the gap after it, and the height of the highest bar, in units of the drawing."""


def report_row(report: MaintainerReport, home: str) -> Row:
    """The report as data. ``home``: the address of its repository, "" if unknown."""
    return {
        "repository": report.repo,
        "since": row_stamp(report.since),
        "until": row_stamp(report.until),
        "threads": report.threads,
        "first": [{"section": name.name, "id": item.card.id} for name, item in report.highlights],
        "sections": {section.name.name: _section_row(section, home) for section in report.sections},
        "notes": list(report.notes),
    }


def report_items(report: MaintainerReport, home: str) -> list[ItemSection]:
    """The sections as lists, each with the number of items in its title."""
    return [
        ItemSection(section.name.name, section_title(section), [_item(one, home) for one in section.items])
        for section in report.sections
    ]


def section_title(section: DigestSection) -> str:
    """The title with the number of items: ``Decided since: 10 of 25``."""
    shown = f"{len(section.items):,} of {section.total:,}" if section.left else f"{section.total:,}"
    return f"{section.name.title}: {shown}"


def summary_sentence(report: MaintainerReport) -> str:
    parts = [
        f"{one.total:,} {one.name.one if one.total == 1 else one.name.many}" for one in report.sections if one.total
    ]
    days = f"From {period_of(report)}"
    if not parts:
        return f"{days}: nothing to look at in {count(report.threads, 'thread')}."
    *most, last = parts
    return f"{days}: {', '.join(most)}{' and ' if most else ''}{last}."


def quote_source(item: DigestItem) -> str:
    """Who said the quote and when, and in which thread if it is another one; "" without a quote."""
    quote = item.quote
    if quote is None:
        return ""
    return attribution(quote) if quote.thread == item.card.id else f"{attribution(quote)}, in {citation(quote.thread)}"


def period_of(report: MaintainerReport) -> str:
    """The period of the report: ``1 May 2025 to 8 May 2025``."""
    return f"{day(report.since)} to {day(report.until)}"


def _item(item: DigestItem, home: str) -> Item:
    issues = [citation(issue.card.id) for issue in item.evidence]
    more = f" and {item.left:,} more" if item.left else ""
    evidence = (f"{', '.join(issues)}{more}",) if issues else ()
    quote = f"{quote_source(item)}: {quoted(item.quote.text)}" if item.quote else ""
    return Item(item.card, url_of(item.card, home), why=(*item.facts, *evidence), decision=quote)


def _section_row(section: DigestSection, home: str) -> Row:
    return {"total": section.total, "items": [_item_row(one, home) for one in section.items]}


def _item_row(item: DigestItem, home: str) -> Row:
    return {
        **_card_row(item.card, home),
        "at": row_stamp(item.at),
        "facts": list(item.facts),
        "evidence": [_card_row(issue.card, home) | {"why": list(issue.why)} for issue in item.evidence],
        "left": item.left,
        "quote": row_of(PASSAGE.fields, item.quote, home) if item.quote else None,
        "weeks": list(item.weeks),
    }


def _card_row(card: Card, home: str) -> Row:
    shown = {"cite": citation(card.id), "state": card.state, "title": card.title[:MAX_TITLE], "url": url_of(card, home)}
    return {"id": card.id, **shown}


# -- Markdown ----------------------------------------------------------------------------------------------------------


def report_markdown(report: MaintainerReport, home: str) -> Iterator[str]:
    """The report as entries of Markdown, harmless whatever strangers wrote; it may be cut off after any."""
    yield f"\n{inline(summary_sentence(report), _MAX_CHARS)}\n"
    for section in report.sections:
        if section.items:
            yield f"\n**{section_title(section)}**\n\n"
            yield from (_entry(item, home) for item in section.items)


def _entry(item: DigestItem, home: str) -> str:
    facts = f" · {inline(' · '.join(item.facts).replace('`', ''), _MAX_CHARS)}" if item.facts else ""
    lines = [f"- {_card_link(item.card, home)}{facts}"]
    if quote := item.quote:
        lines.append(f"  > {prose(quote.text, _MAX_CHARS)}\\\n  > {link(quote_source(item), message_url(quote, home))}")
    if item.evidence:
        lines.append("")
        lines += [f"  - {_card_link(other.card, home)}" for other in item.evidence]
        lines += [f"  - and {item.left:,} more"] if item.left else []
    return "\n".join([*lines, "", ""])


def _card_link(card: Card, home: str) -> str:
    return link(f"{thread_label(card.id, card.kind)}: {card.title}", url_of(card, home))


# -- the page ----------------------------------------------------------------------------------------------------------


def report_page(report: MaintainerReport, home: str) -> str:
    """The page as HTML in valid Unicode that loads nothing; the same report gives the same bytes.

    ``home`` is the address of the repository, "" if unknown. All texts are escaped.
    """
    values = {
        "repo": report.repo,
        "lead": f"{period_of(report)}: {count(report.total, 'thing')} to look at.",
        "threads": count(report.threads, "thread"),
        "tiles": [_tile(section) for section in report.sections],
        "first": [_highlight(name, item, home) for name, item in report.highlights],
        "sections": [_page_section(section, report.until, home) for section in report.sections if section.total],
        "empty": [section.name.title for section in report.sections if not section.total],
        "notes": report.notes,
    }
    return render_page("digest.html.j2", values)


def _tile(section: DigestSection) -> dict[str, object]:
    return {"name": section.name.title, "key": section.name.name, "count": section.total}


def _highlight(name: SectionName, item: DigestItem, home: str) -> dict[str, object]:
    excerpt = "" if item.facts or item.quote is None else item.quote.text
    return _thread_link(item.card, home) | {"section": name.title, "facts": _join_parts([*item.facts, excerpt])}


def _page_section(section: DigestSection, until: datetime, home: str) -> dict[str, object]:
    return {
        "key": section.name.name,
        "title": section.name.title,
        "about": section.name.about,
        "total": section.total,
        "items": [_page_item(item, until, home) for item in section.items],
        "left": count(section.left, "other") if section.left else "",
    }


def _page_item(item: DigestItem, until: datetime, home: str) -> dict[str, object]:
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
    return truncate(one_line(text), _MAX_CHARS)
