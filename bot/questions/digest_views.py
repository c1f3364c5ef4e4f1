"""The digest for maintainers as rows of data, and as lists of threads."""

from __future__ import annotations

from bot.comment.catalogue import count, day
from bot.comment.clean_text import quoted
from bot.domain.card import Card
from bot.questions.addresses import citation, url_of
from bot.questions.digest import DigestItem, DigestSection, MaintainerReport
from bot.questions.fields import MAX_TITLE, PASSAGE, Item, Row, row_of, row_stamp
from bot.questions.views import ItemSection, attribution


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
