"""The digest for maintainers in a run: a page for an artifact, and Markdown for the job summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.action.environment import RunnerEnvironment, write_file
from bot.comment.catalogue import thread_label
from bot.comment.defang import inline, link, prose
from bot.domain.card import Card
from bot.evaluation.digest_page import render_digest
from bot.pipeline.digest import digest_of_memory
from bot.pipeline.tools import Tools
from bot.questions.addresses import message_url, url_of
from bot.questions.digest import DigestItem, DigestRequest, DigestSection
from bot.questions.digest_views import quote_source, section_title, summary_sentence
from bot.reading.search_query import moment_of

DIGEST_FILE = "digest.html"
_TEXT_CHARS = 300


def write_digest(run: Tools, environment: RunnerEnvironment, since: str) -> list[str]:
    """Write the page for the next steps. Returns the digest as Markdown entries; it may be cut off after any."""
    request = DigestRequest(moment_of(since, run.started), run.started)  # nothing is asked of GitHub, nor stored
    report = digest_of_memory(run.memory.open(), run.settings, run.address, request, clock=run.clock.seconds)
    home = f"{run.address.server}/{run.address.repo}"
    path = write_file(environment, DIGEST_FILE, render_digest(report, home))
    run.note(f"The digest page is {path}, which is lost when the job ends unless a step uploads it: docs/digest.md.")
    for note in (*report.notes, *run.memory.notes):
        run.note(note)
    return [f"\n{inline(summary_sentence(report), _TEXT_CHARS)}\n", *_entries(report.sections, home)]


def _entries(sections: Iterable[DigestSection], home: str) -> Iterator[str]:
    for section in sections:
        if section.items:
            yield f"\n**{section_title(section)}**\n\n"
            yield from (_entry(item, home) for item in section.items)


def _entry(item: DigestItem, home: str) -> str:
    facts = f" · {_inline_text(' · '.join(item.facts))}" if item.facts else ""
    lines = [f"- {_card_link(item.card, home)}{facts}"]
    if quote := item.quote:
        lines.append(
            f"  > {prose(quote.text, _TEXT_CHARS)}\\\n  > {link(quote_source(item), message_url(quote, home))}"
        )
    if item.evidence:
        lines.append("")
        lines += [f"  - {_card_link(other.card, home)}" for other in item.evidence]
        lines += [f"  - and {item.left:,} more"] if item.left else []
    return "\n".join([*lines, "", ""])


def _card_link(card: Card, home: str) -> str:
    return link(f"{thread_label(card.id, card.kind)}: {card.title}", url_of(card, home))


def _inline_text(text: str) -> str:
    return inline(text.replace("`", ""), _TEXT_CHARS)
