"""The digest for maintainers in a run: a page for an artifact, and Markdown for the job summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.action.environment import RunnerEnvironment, leave
from bot.comment.catalogue import numbered
from bot.comment.defang import inline, link, prose
from bot.domain.card import Card
from bot.evaluation.digest_page import render_digest
from bot.pipeline.digest import digest_of_memory
from bot.pipeline.run_context import RunContext
from bot.questions.addresses import said_url, url_of
from bot.questions.digest import DigestItem, DigestRequest, DigestSection
from bot.questions.digest_views import quoted_by, section_title, summary_sentence
from bot.reading.search_query import moment_of

FILE = "digest.html"
_TEXT_CHARS = 300


def write_digest(run: RunContext, around: RunnerEnvironment, since: str) -> list[str]:
    """Leave the page for the next steps. Returns the digest as Markdown, in entries that may be cut off after any."""
    asked = DigestRequest(moment_of(since, run.now), run.now)
    report = digest_of_memory(run.memory.open(), run.settings, run.place, asked, clock=run.clock.seconds)
    home = f"{run.place.server}/{run.place.repo}"
    path = leave(around, FILE, render_digest(report, home))
    run.note(f"The digest as a page is in {path}, which goes with the job unless a step uploads it: docs/digest.md.")
    for note in (*report.notes, *run.memory.notes):
        run.note(note)
    return [f"\n{inline(summary_sentence(report), _TEXT_CHARS)}\n", *_entries(report.sections, home)]


def _entries(sections: Iterable[DigestSection], home: str) -> Iterator[str]:
    for section in sections:
        if section.items:
            yield f"\n**{section_title(section)}**\n\n"
            yield from (_entry(item, home) for item in section.items)


def _entry(item: DigestItem, home: str) -> str:
    facts = f" · {_inline(' · '.join(item.facts))}" if item.facts else ""
    lines = [f"- {_named(item.card, home)}{facts}"]
    if quote := item.quote:
        lines.append(f"  > {prose(quote.text, _TEXT_CHARS)}\\\n  > {link(quoted_by(item), said_url(quote, home))}")
    if item.evidence:
        lines.append("")
        lines += [f"  - {_named(one.card, home)}" for one in item.evidence]
        lines += [f"  - and {item.left:,} more"] if item.left else []
    return "\n".join([*lines, "", ""])


def _named(card: Card, home: str) -> str:
    return link(f"{numbered(card.id, card.kind)}: {card.title}", url_of(card, home))


def _inline(text: str) -> str:
    return inline(text.replace("`", ""), _TEXT_CHARS)
