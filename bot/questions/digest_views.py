"""The digest for maintainers as rows of data, and as lists of threads."""

from __future__ import annotations

from bot.comment.catalogue import count, day
from bot.comment.clean_text import one_line
from bot.domain.card import Card
from bot.questions.addresses import url_of
from bot.questions.digest import DigestItem, DigestSection, MaintainerReport
from bot.questions.views import MAX_TITLE, SAID, Item, ItemSection, Row, cited, row_of, row_stamp, said_by


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
    """The sections as lists, each with its number of items in the title."""
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
    days = f"From {days_of(report)}"
    if not parts:
        return f"{days}: nothing to look at in {count(report.threads, 'thread')}."
    *most, last = parts
    return f"{days}: {', '.join(most)}{' and ' if most else ''}{last}."


def quoted_by(item: DigestItem) -> str:
    """Who said the quotation and when, and in which other thread; "" without a quotation."""
    quote = item.quote
    if quote is None:
        return ""
    return said_by(quote) if quote.thread == item.card.id else f"{said_by(quote)}, in {cited(quote.thread)}"


def days_of(report: MaintainerReport) -> str:
    """The time that the report is about."""
    return f"{day(report.since)} to {day(report.until)}"


def _item(one: DigestItem, home: str) -> Item:
    issues = [cited(each.card.id) for each in one.evidence]
    more = f" and {one.left:,} more" if one.left else ""
    evidence = (f"{', '.join(issues)}{more}",) if issues else ()
    said = f"{quoted_by(one)}: “{one_line(one.quote.text)}”" if one.quote else ""
    return Item(one.card, url_of(one.card, home), why=(*one.facts, *evidence), said=said)


def _section_row(section: DigestSection, home: str) -> Row:
    return {"total": section.total, "items": [_item_row(one, home) for one in section.items]}


def _item_row(one: DigestItem, home: str) -> Row:
    return {
        **_card_row(one.card, home),
        "at": row_stamp(one.at),
        "facts": list(one.facts),
        "evidence": [_card_row(each.card, home) | {"why": list(each.why)} for each in one.evidence],
        "left": one.left,
        "quote": row_of(SAID, one.quote, home) if one.quote else None,
        "weeks": list(one.weeks),
    }


def _card_row(card: Card, home: str) -> Row:
    shown = {"cite": cited(card.id), "state": card.state, "title": card.title[:MAX_TITLE], "url": url_of(card, home)}
    return {"id": card.id, **shown}
