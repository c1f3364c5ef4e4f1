"""Finds the wiki and documentation pages that answer a thread if no other thread is similar."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from math import fsum, sqrt
from operator import mul

from bot.domain.answer import PageHit
from bot.domain.thread import Kind, RepositoryAddress, Thread, ThreadId
from bot.ranking.rarity import idf
from bot.reading.analyzer import body_terms, terms
from bot.reading.pages import MarkdownSection, first_sentences, page_url, sections, source_of
from bot.reading.signals import find_errors, keywords, quotations
from bot.reading.text_edges import cut_at_edge
from bot.recall.library import Library, similar_query, threads

MAX_PAGES = 2
"""How many pages a comment shows."""

MIN_PAGE_SIMILARITY = 0.65
"""The least similarity of a page that is shown."""

MAX_READ = 8
"""How many pages are read for each query."""

MAX_PASSAGE_CHARS = 800
"""Characters of one passage. Words further apart do not suggest one answer."""

MAX_COMPARED = 8
"""How many passages a text model reads. Of 40 questions about this project, the right page is first for 23 by words, 27
with five passages, and 29 with eight as with all."""

TITLE_WEIGHT = 3.0
"""Weight of a word in the question's title, relative to one in its text."""

MAX_UNSEEN_RARITY = 0.6
"""Maximum rarity of a word that no candidate holds: usually such a word is just somebody's way of talking."""

MIN_SHARED_TERMS = 4
"""Fewer shared terms are a coincidence, unless a whole quotation is shared."""

QUOTATION_BONUS = 0.15
"""Coverage added if the passage contains a quotation from the question word for word."""

MIN_QUOTATION_CHARS = 12
"""Quotations of fewer characters prove nothing, unless they are error codes."""

STEEPNESS = 3.0
"""Maps a coverage of 0.295 to a similarity of 0.65."""

MAX_TITLE = 120
ABSENT_TERM = "\0"
"""A term that no text has."""

_BLOCKS = re.compile(r"\n[ \t]*\n")
_ERROR_CODE = re.compile(r"[A-Z][A-Z0-9_-]{3,80}", re.ASCII)
"""An error code; the name of an exception does not count, as many errors share it."""

_HEX_STATUS = re.compile(r"\b0[xX][0-9A-Fa-f]{4,16}\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class PagePassage:
    """A part of a section: the terms of its headings and text, their scripts, and the heading and text in lower case on
    one line."""

    section: MarkdownSection
    terms: frozenset[str]
    scripts: frozenset[str]
    text: str

    @classmethod
    def of(cls, title: str, section: MarkdownSection, text: str) -> PagePassage:
        found = frozenset(terms(f"{title}\n{' '.join(section.path)}\n{text}"))
        heading = " ".join(section.path[-1:])
        return cls(section, found, frozenset(map(_script, found)), _plain(f"{heading}\n{text}"))


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A question to look up: the terms of its title, all its terms, and a pattern for anything that it quotes."""

    title: frozenset[str]
    terms: frozenset[str]
    quotation: re.Pattern[str]

    @classmethod
    def of(cls, thread: Thread) -> PageQuery:
        title = frozenset(terms(thread.title))
        quoted = quotations(f"{thread.title}\n{thread.body}")
        phrases = (text for text in map(_plain, quoted) if len(text) >= MIN_QUOTATION_CHARS and " " in text)
        codes = (_plain(code) for text in quoted for code in _codes(text))
        alternatives = "|".join(map(re.escape, dict.fromkeys((*phrases, *codes)))) or r"(?!)"
        pattern = re.compile(rf"(?<![a-z0-9_])(?:{alternatives})(?![a-z0-9_])")
        return cls(title, title | frozenset(body_terms(thread.body)), pattern)

    def in_scripts(self, scripts: frozenset[str]) -> PageQuery:
        """The part of the question that a text in these scripts could contain; names and codes fit any script."""
        return replace(self, terms=frozenset(term for term in self.terms if term.isascii() or _script(term) in scripts))


def find_pages(
    thread: Thread, library: Library, address: RepositoryAddress, before: datetime | None = None, limit: int = MAX_PAGES
) -> tuple[PageHit, ...]:
    """The pages that answer ``thread``, each with its best section, best first; ``before``: as they stood then.

    Similarity in 0..1 is how much of the question one passage covers, by the weight of its words. It is comparable
    between pages and repositories, but not with the similarity of threads. Among the passages that cover enough, a text
    model, if there is one, prefers those that mean the same.
    """
    if not terms(thread.title):
        return ()
    pages = _candidates([thread, replace(thread, body="\n".join(keywords(thread.body)))], library, before)
    passages = [(key, passage) for key, page in pages.items() for passage in _passages(page.title, page.body)]
    query = PageQuery.of(thread)
    rarity = Rarity.among([passage for _, passage in passages], query, library, before)
    parts = {scripts: query.in_scripts(scripts) for scripts in {passage.scripts for _, passage in passages}}
    found = [(_similarity(query, parts[passage.scripts], passage, rarity), key, passage) for key, passage in passages]
    found = [one for one in found if one[0] > 0 and one[0] >= MIN_PAGE_SIMILARITY]
    found.sort(key=lambda one: (-one[0], str(one[1])))
    best: dict[ThreadId, tuple[float, float, MarkdownSection]] = {}
    for (similarity, key, passage), cosine in zip(found, _cosines(thread, found, library), strict=True):
        if key not in best or similarity + cosine > best[key][0]:
            best[key] = similarity + cosine, similarity, passage.section
    ranked = sorted(best, key=lambda key: (-best[key][0], str(key)))[:limit]
    return tuple(_hit(pages[key], best[key][2], best[key][1], address) for key in ranked)


def _cosines(thread: Thread, found: Sequence[tuple[float, ThreadId, PagePassage]], library: Library) -> list[float]:
    """How near the first passages are to the question by a text model; 0 without one, and for the others."""
    ours = library.vector(thread) if len(found) > 1 else b""
    if not ours:
        return [0.0] * len(found)
    passages = (replace(thread, title="", body=passage.text) for _, _, passage in found[:MAX_COMPARED])
    cosines = [_cosine(ours, library.vector(each)) for each in passages]
    return [*cosines, *[0.0] * (len(found) - len(cosines))]


def _cosine(ours: bytes, theirs: bytes) -> float:
    """The cosine of two vectors of signed bytes; 0 if one is missing."""
    one, other = memoryview(ours).cast("b"), memoryview(theirs).cast("b")
    lengths = sqrt(sum(number * number for number in one) * sum(number * number for number in other))
    return sum(map(mul, one, other)) / lengths if lengths else 0.0


@dataclass(frozen=True, slots=True)
class Rarity:
    """How rare each term of a question is, in 0..1: the smaller of its rarities in the library and in the passages."""

    library: Mapping[str, float]
    holders: Mapping[str, int]
    passages: int

    @classmethod
    def among(
        cls, passages: Sequence[PagePassage], query: PageQuery, library: Library, before: datetime | None
    ) -> Rarity:
        rarities = library.rarity([*sorted(query.terms), ABSENT_TERM], before=before)
        rarest = rarities.get(ABSENT_TERM, 0.0)
        shares = {term: rarities.get(term, rarest) / rarest if rarest else 1.0 for term in query.terms}
        return cls(shares, Counter(term for passage in passages for term in passage.terms & query.terms), len(passages))

    def of_shared_term(self, term: str) -> float:
        """The rarity of a term in a passage, judged by the other passages."""
        return min(self.library[term], self._local(self.holders[term] - 1))

    def of_question_term(self, term: str) -> float:
        """The rarity of any term of the question."""
        if not self.holders[term]:
            return min(self.library[term], MAX_UNSEEN_RARITY)
        return min(self.library[term], self._local(self.holders[term]))

    def _local(self, holders: int) -> float:
        """The inverse document frequency, divided by that of a term in no passage."""
        return idf(holders, self.passages) / idf(0, self.passages)


def _candidates(questions: Iterable[Thread], library: Library, before: datetime | None) -> dict[ThreadId, Thread]:
    ids: dict[ThreadId, None] = {}
    for question in questions:
        query = replace(similar_query(question), kinds=frozenset({Kind.PAGE}))
        hits = library.search(query, limit=MAX_READ, before=before)
        ids |= dict.fromkeys(hit.entry.id for hit in hits if source_of(hit.entry.id))
    return threads(library, ids, before)


@lru_cache(maxsize=64)
def _passages(title: str, body: str) -> tuple[PagePassage, ...]:
    return tuple(
        PagePassage.of(title, section, text) for section in sections(body) for text in _split_text(section.text)
    )


def _split_text(text: str) -> Iterator[str]:
    """The text in parts of up to MAX_PASSAGE_CHARS where possible: whole blocks, or whole lines of a long block."""
    part = ""
    for block in _BLOCKS.split(text):
        for piece in [block] if len(block) <= MAX_PASSAGE_CHARS else block.split("\n"):
            if part and len(part) + len(piece) > MAX_PASSAGE_CHARS:
                yield part
                part = ""
            part = f"{part}\n{piece}" if part else piece
    if part:
        yield part


def _similarity(whole_question: PageQuery, part: PageQuery, passage: PagePassage, rarity: Rarity) -> float:
    """How much of the question the passage covers. A passage with a quotation from the question may be in another
    language: then only the ``part`` of the question that its scripts can express counts."""
    has_quotation = bool(whole_question.quotation.search(passage.text))
    query = part if has_quotation else whole_question
    shared = query.terms & passage.terms
    if len(shared) < MIN_SHARED_TERMS and not has_quotation:
        return 0.0
    total = fsum(_weight(term, query) * rarity.of_question_term(term) for term in query.terms)
    covered = fsum(_weight(term, query) * rarity.of_shared_term(term) for term in shared)
    coverage = min(1.0, (covered / total if total else 0.0) + QUOTATION_BONUS * has_quotation)
    return round(1.0 - float((1.0 - coverage) ** STEEPNESS), 4)


def _codes(quotation: str) -> Iterator[str]:
    yield from filter(_ERROR_CODE.fullmatch, find_errors(quotation))
    yield from _HEX_STATUS.findall(quotation)


def _script(term: str) -> str:
    """The script of a term as Unicode names it, empty for ASCII."""
    return "" if term.isascii() else unicodedata.name(term[0], "").partition(" ")[0]


def _weight(term: str, query: PageQuery) -> float:
    return TITLE_WEIGHT if term in query.title else 1.0


def _hit(page: Thread, section: MarkdownSection, similarity: float, address: RepositoryAddress) -> PageHit:
    heading = section.path[-1] if section.path else ""
    is_whole = not heading or heading == page.title
    title = cut_at_edge(page.title, MAX_TITLE)
    return PageHit(
        title=title if is_whole else f"{title}: {cut_at_edge(heading, MAX_TITLE)}",
        url=page_url(page.id, address.server, address.repo, "" if is_whole else section.anchor),
        excerpt=first_sentences(section),
        similarity=similarity,
    )


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
