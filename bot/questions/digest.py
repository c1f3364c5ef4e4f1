"""What maintainers should look at: six lists, each with its evidence.

The report depends only on memory and on the given time, so the same memory gives the same report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, zip_longest
from typing import NamedTuple, TypeVar

from bot.comment.catalogue import count
from bot.domain.answer import Context, Match
from bot.domain.card import Card, CardId, Passage, settled_card
from bot.domain.changes import FixInfo, wrong_matches_for
from bot.domain.cluster import Cluster, ClusterMember
from bot.domain.duplicates import duplicate_chain
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.thread import KNOWN_ROLES, Message, RepositoryAddress, Thread
from bot.questions.addresses import citation
from bot.questions.views import decision_note, decision_passage, ending
from bot.reading.references import find_references
from bot.reading.versions import compare_versions, reported_version
from bot.recall.answer import with_endings
from bot.recall.library import Library, threads
from bot.recall.pages import MIN_SHARED_TERMS, PageQuery, find_pages
from bot.recall.similar import Limits, find_similar
from bot.settings.schema import Settings

SECTION_LIMIT = 10
"""Items shown in a section."""

MAX_EVIDENCE = 6
"""Issues shown below an item."""

MAX_HIGHLIGHTS = 3
COUNTED_WEEKS = 26
"""Weeks in which the reports of a cluster are counted."""

MAX_COMPARED = 300
"""Newest reports with a version that are compared with older issues. Each takes some hundredths of a second."""

MAX_LOOKUPS = 100
"""Clusters of questions that are looked up in the pages, the largest ones."""

MIN_REPORTS = 3
"""Minimum reports of one thing to count as many, and minimum issues for a question asked often."""

_WEEK = timedelta(weeks=1)
_ANSWER_KINDS = (OutcomeKind.ANSWERED, OutcomeKind.WORKAROUND)


class DigestRequest(NamedTuple):
    """The period of a report, and the maximum number of items in a section."""

    since: datetime
    until: datetime
    limit: int = SECTION_LIMIT


class EvidenceIssue(NamedTuple):
    """An issue that supports an item. ``why`` says in plain words what links them."""

    card: Card
    why: tuple[str, ...] = ()


class DigestItem(NamedTuple):
    """One thing to look at. ``at`` is when it last happened; ``facts`` are short phrases that may contain a stranger's
    words.

    ``left`` counts issues beyond those in ``evidence``. ``weeks`` counts the reports of the last weeks, oldest first.
    """

    card: Card
    at: datetime
    facts: tuple[str, ...]
    evidence: tuple[EvidenceIssue, ...] = ()
    left: int = 0
    quote: Passage | None = None
    weeks: tuple[int, ...] = ()


class SectionName(NamedTuple):
    """A section: its name for programs, its title, phrases for one and for several of its items, and what it lists."""

    name: str
    title: str
    one: str
    many: str
    about: str


POSSIBLY_BACK = SectionName(
    "possibly_back",
    "Possibly back",
    "fix may not hold",
    "fixes may not hold",
    "Reports on a version that has the fix already, each similar to the fixed issue.",
)
MANY_REPORTS = SectionName(
    "many_reports",
    "Many reports of one thing",
    "thing was reported again",
    "things were reported again",
    "Things that several issues report and that were reported again in this period, those of the most people first.",
)
UNRELEASED = SectionName(
    "fixed_not_released",
    "Fixed, not released",
    "fix waits for a release",
    "fixes wait for a release",
    "Closed issues whose fix is merged and was not in any release when last looked up.",
)
DECIDED = SectionName(
    "decided_since",
    "Decided since",
    "decision was made",
    "decisions were made",
    "What was decided in issues, pull requests and discussions in this period, in the words of whoever decided it.",
)
UNDOCUMENTED = SectionName(
    "asked_not_documented",
    "Asked often and not documented",
    "answered question is not on any page",
    "answered questions are not on any page",
    "Questions that were answered in issues, asked again in this period, and that no remembered page covers.",
)
DUPLICATES = SectionName(
    "duplicates_of_closed",
    "Duplicates of something closed",
    "open issue repeats a closed one",
    "open issues repeat closed ones",
    "Open issues that are marked as duplicates of a closed one, or said to be.",
)

HIGHLIGHT_ORDER = (POSSIBLY_BACK, MANY_REPORTS, DUPLICATES, UNDOCUMENTED, UNRELEASED, DECIDED)
"""The order in which sections contribute to the highlights."""


class DigestSection(NamedTuple):
    """A section of the report. ``total`` counts everything found; ``items`` are the first of it."""

    name: SectionName
    items: tuple[DigestItem, ...]
    total: int

    @property
    def left(self) -> int:
        return self.total - len(self.items)


class MaintainerReport(NamedTuple):
    """What happened from ``since`` to ``until``, in sections that may be empty. ``threads`` is the number of threads in
    memory; ``notes`` say what could not be checked."""

    repo: str
    since: datetime
    until: datetime
    threads: int
    sections: tuple[DigestSection, ...]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(section.total for section in self.sections)

    @property
    def highlights(self) -> list[tuple[SectionName, DigestItem]]:
        """What to look at first: the first item of each section, then the second ones; each issue once."""
        items_by_section = {section.name: section.items for section in self.sections}
        rows = zip_longest(*([(name, item) for item in items_by_section.get(name, ())] for name in HIGHLIGHT_ORDER))
        seen: dict[CardId, tuple[SectionName, DigestItem]] = {}
        for highlight in (highlight for row in rows for highlight in row if highlight):
            seen.setdefault(highlight[1].card.id, highlight)
        return list(islice(seen.values(), MAX_HIGHLIGHTS))


@dataclass(frozen=True, slots=True)
class DigestSource:
    """What a report is made from: the memory, the settings, and the period.

    ``cards`` holds all threads that may be shown; ``repeats`` maps an issue to the one that somebody calls its
    original; ``uncompared`` counts threads that no run has compared with others for clusters.
    """

    cards: Mapping[CardId, Card]
    repeats: Mapping[CardId, CardId]
    fixes: Mapping[CardId, FixInfo]
    clusters: tuple[Cluster, ...]
    library: Library
    settings: Settings
    address: RepositoryAddress
    request: DigestRequest
    uncompared: int = 0

    def prepare(self) -> DigestSource:
        """The source with endings corrected by the state of the changes."""
        return replace(self, cards={key: self._settled(card) for key, card in self.cards.items()})

    def issues(self) -> Iterator[Card]:
        return (card for card in self.cards.values() if card.kind is Kind.ISSUE)

    def is_recent(self, moment: datetime | None) -> bool:
        return moment is not None and self.request.since <= moment <= self.request.until

    def members(self, cluster: Cluster) -> list[ClusterMember]:
        """The members of a cluster that may be shown, newest first."""
        shown = [member for member in cluster.members if member.id in self.cards]
        return sorted(shown, key=lambda member: (-member.at.timestamp(), str(member.id)))

    def _settled(self, card: Card) -> Card:
        named = card.ending.change
        return settled_card(card, self.cards.get(named.number or 0), self.fixes.get(card.id)) if named else card


def maintainer_report(source: DigestSource, tick: Callable[[int], None] = lambda _: None) -> MaintainerReport:
    """The whole report. ``tick`` is called as issues are compared."""
    source = source.prepare()
    items_by_section = {name: list(find_items(source, tick)) for name, find_items in _SECTIONS.items()}
    return MaintainerReport(
        repo=source.address.repo or "",
        since=source.request.since,
        until=source.request.until,
        threads=len(source.cards),
        sections=tuple(
            DigestSection(name, tuple(items[: source.request.limit]), len(items))
            for name, items in items_by_section.items()
        ),
        notes=tuple(_notes(source)),
    )


def _notes(source: DigestSource) -> Iterator[str]:
    if not _has_pages(source):
        yield "No page is remembered, so answered questions were not looked up."
    if source.uncompared:
        threads_left = count(source.uncompared, "thread")
        remedy = "The next runs do that; for a store, run precedent learn"
        yield f"Groups may be missing: {threads_left} not yet compared with older ones. {remedy}."


Tick = Callable[[int], None]


def _possibly_back(source: DigestSource, tick: Tick) -> Iterator[DigestItem]:
    undecided = (OutcomeKind.UNKNOWN, OutcomeKind.DUPLICATE)
    releases, first_fixed = _releases(source)
    recent = [card for card in source.issues() if source.is_recent(card.created_at)]
    candidates = [card for card in recent if card.state == "open" or card.ending.kind in undecided]
    for card in islice(_newest(candidates, lambda card: card.created_at), MAX_COMPARED):
        tick(1)
        thread = threads(source.library, [card.id], None).get(card.id)
        version = reported_version(thread, source.address.repo) if thread else ""
        has_fixes = version and any(
            compare_versions(version, release, None, first_fixed) == "same or newer" for release in releases
        )
        if thread and has_fixes and (matches := _find_fixed_matches(thread, source)):
            yield _fix_item(card, version, matches, source)


def _releases(source: DigestSource) -> tuple[frozenset[str], datetime | None]:
    """The releases that are known to contain a fix, and when the first of these fixes was made.

    A nightly is compared with that day only: if it lacks the first fix, it lacks the later ones.
    """
    releases, days = set[str](), list[datetime]()
    for card in source.issues():
        fix = source.fixes.get(card.id)
        if release := (fix.release if fix else None) or card.ending.release:
            releases.add(release)
            if fix and (day := fix.merged_at or fix.released_at):
                days.append(day)
    return frozenset(releases), min(days, default=None)


def _find_fixed_matches(thread: Thread, source: DigestSource) -> list[Match]:
    """The similar issues whose fix is in this issue's version, the most similar first."""
    library, settings = source.library, source.settings
    wrong = wrong_matches_for(library.requests([thread.id]).get(thread.id, ()))
    limits = Limits(settings.similar.threshold, MAX_EVIDENCE, 0, settings.comment.chars)
    similar = find_similar(thread, library, None, wrong, limits, source.address.repo)
    context = with_endings(Context(seen_before=similar.seen), thread, library, source.address)
    matches = [match for match in context.seen_before if match.may_be_back and match.id in source.cards]
    requests = library.requests([match.id for match in matches])
    return [match for match in matches if thread.id not in wrong_matches_for(requests.get(match.id, ()))]


def _fix_item(card: Card, version: str, matches: list[Match], source: DigestSource) -> DigestItem:
    first = matches[0]
    release = (first.fix.release if first.fix else None) or first.outcome.release
    facts = (f"reported on {version}", f"{citation(first.id)} was fixed in {release}")
    evidence = tuple(EvidenceIssue(source.cards[match.id], match.why) for match in matches)
    return DigestItem(card, card.created_at, facts, evidence, quote=_ending_quote(source.cards[first.id]))


def _many_reports(source: DigestSource, _: Tick) -> Iterator[DigestItem]:
    active = (cluster for cluster in source.clusters if source.is_recent(cluster.last))
    for cluster in _largest(active):
        if cluster.canonical in source.cards and len(source.members(cluster)) >= MIN_REPORTS:
            new = sum(map(source.is_recent, cluster.times))
            facts = (_size(cluster), f"{new:,} of them in this period", f"since {cluster.first:%Y-%m-%d}")
            yield _cluster_item(cluster, facts, source)


def _cluster_item(cluster: Cluster, facts: tuple[str, ...], source: DigestSource) -> DigestItem:
    card = source.cards[cluster.canonical]
    others = [member for member in source.members(cluster) if member.id != cluster.canonical]
    evidence = tuple(EvidenceIssue(source.cards[member.id], member.why) for member in others[:MAX_EVIDENCE])
    left = len(others) - len(evidence) + cluster.total - len(cluster.members)
    weeks = count_by_week(cluster.times, source.request.until)
    return DigestItem(card, cluster.last, facts, evidence, left, _ending_quote(card), weeks)


def count_by_week(moments: Iterable[datetime], until: datetime) -> tuple[int, ...]:
    """How many of these times fall in each of the `COUNTED_WEEKS` weeks before ``until``, the oldest week first."""
    counts = [0] * COUNTED_WEEKS
    for moment in moments:
        ago = (until - moment) // _WEEK
        if 0 <= ago < COUNTED_WEEKS:
            counts[COUNTED_WEEKS - 1 - ago] += 1
    return tuple(counts)


def _fixed_not_released(source: DigestSource, _: Tick) -> Iterator[DigestItem]:
    waiting = [
        fix for fix in source.fixes.values() if fix.commit and fix.unreleased and not (fix.release or fix.refuted)
    ]
    cluster_of = {member.id: cluster for cluster in source.clusters for member in cluster.members}
    for fix in _newest(waiting, lambda fix: fix.merged_at or fix.looked_at):
        card = source.cards.get(fix.id)
        if card is None or card.kind is not Kind.ISSUE or card.ending.kind != OutcomeKind.FIXED:
            continue
        merged = f", merged on {fix.merged_at:%Y-%m-%d}" if fix.merged_at else ""
        ref = fix.change if fix.change.startswith("#") else fix.change[:10]
        cluster = cluster_of.get(fix.id)
        facts = (
            f"fixed by {ref}{merged}",
            *([_size(cluster)] if cluster else []),
            f"looked up on {fix.looked_at:%Y-%m-%d}",
        )
        yield DigestItem(card, fix.merged_at or fix.looked_at, facts, quote=_ending_quote(card))


def _decided_since(source: DigestSource, _: Tick) -> Iterator[DigestItem]:
    on_github = (card for card in source.cards.values() if card.kind.is_on_github)
    decisions = [
        (card, ruling) for card in on_github for ruling in card.decisions if ruling.at and source.is_recent(ruling.at)
    ]
    for card, ruling in _newest(decisions, lambda pair: pair[1].at or source.request.since):
        note = decision_note(card, ruling)
        later = (note,) if note else ()
        yield DigestItem(card, ruling.at or source.request.since, later, quote=decision_passage(card, ruling))


def _not_documented(source: DigestSource, tick: Tick) -> Iterator[DigestItem]:
    if not _has_pages(source):
        return
    frequent = [one for one in source.clusters if source.is_recent(one.last) and _is_question(one, source)]
    for cluster in islice(_largest(frequent), MAX_LOOKUPS):
        tick(1)
        if not _is_documented(cluster, source):
            answered = [
                member for member in source.members(cluster) if source.cards[member.id].ending.kind in _ANSWER_KINDS
            ]
            scope = "them" if cluster.total == len(cluster.members) else f"the newest {len(cluster.members):,}"
            facts = (_size(cluster), f"{len(answered):,} of {scope} answered")
            quote = next(filter(None, (_ending_quote(source.cards[member.id]) for member in answered)), None)
            yield _cluster_item(cluster, facts, source)._replace(quote=quote)


def _is_question(cluster: Cluster, source: DigestSource) -> bool:
    """Whether it was asked often, and most issues that ended were answered rather than fixed or declined."""
    members = source.members(cluster)
    kinds = [source.cards[member.id].ending.kind for member in members]
    ended = [kind for kind in kinds if kind not in (OutcomeKind.UNKNOWN, OutcomeKind.DUPLICATE, OutcomeKind.STALE)]
    answered = sum(kind in _ANSWER_KINDS for kind in ended)
    return cluster.canonical in source.cards and len(members) >= MIN_REPORTS and 2 * answered > len(ended)


def _is_documented(cluster: Cluster, source: DigestSource) -> bool:
    """Whether a page answers the canonical issue or one of the newest. Questions of a few words count as answered,
    because no page can be found for them."""
    ids = dict.fromkeys([cluster.canonical, *(one.id for one in source.members(cluster)[:MAX_EVIDENCE])])
    questions = [
        one for one in threads(source.library, ids, None).values() if len(PageQuery.of(one).terms) >= MIN_SHARED_TERMS
    ]
    return not questions or any(find_pages(thread, source.library, source.address, limit=1) for thread in questions)


def _has_pages(source: DigestSource) -> bool:
    return any(card.kind is Kind.PAGE for card in source.cards.values())


def _duplicates_of_closed(source: DigestSource, tick: Tick) -> Iterator[DigestItem]:
    """Duplicates named by people of the project come first: a stranger may say anything."""
    open_cards = [card for card in source.issues() if card.state == "open" and card.id in source.repeats]
    found: list[tuple[bool, DigestItem]] = []
    for card in islice(_newest(open_cards, lambda card: card.created_at), MAX_COMPARED):
        tick(1)
        original = _original_of(source.repeats[card.id], source.cards)
        if original is None or original.id == card.id or original.state != "closed":
            continue
        thread = threads(source.library, [card.id], None).get(card.id)
        quote = _duplicate_quote(thread, source) if thread else None
        if quote:
            at = f" on {original.closed_at:%Y-%m-%d}" if original.closed_at else ""
            facts = (f"said to be a duplicate of {citation(original.id)}, which was closed{at}",)
            evidence = (EvidenceIssue(original, (ending(original),)),)
            item = DigestItem(card, quote.at or card.created_at, facts, evidence, quote=quote)
            found.append((quote.role not in KNOWN_ROLES, item))
    return (item for _, item in sorted(found, key=lambda pair: pair[0]))


def _original_of(key: CardId, cards: Mapping[CardId, Card]) -> Card | None:
    """The end of a chain of duplicates; None if its beginning is not in memory, or the chain is a circle."""

    def original_of(duplicate: CardId) -> CardId | None:
        target = cards[duplicate].duplicate_of
        return target if target in cards else None

    chain = duplicate_chain(key, original_of) if key in cards else []
    card = cards[chain[-1]] if chain else None
    return card if card and card.duplicate_of not in chain and card.kind.is_on_github else None


def _duplicate_quote(thread: Thread, source: DigestSource) -> Passage | None:
    """The last line of the thread that calls it a duplicate; None if it was unmarked later."""
    target = source.repeats[thread.id]
    opening = Message(thread.author, thread.role, thread.created_at, thread.body)
    for message in reversed((opening, *thread.comments)):
        line = next((one for one in message.text.split("\n") if _names_original(one, target, source.address.repo)), "")
        if line and not message.is_bot:
            unmarked = any(e.name == "unmarked_as_duplicate" and e.at >= message.created_at for e in thread.events)
            words = line.strip()
            quote = Passage(thread.id, message.author, message.role, message.created_at, words, message.id, thread.kind)
            return None if unmarked else quote
    return None


def _names_original(line: str, target: CardId, repo: str | None) -> bool:
    references = find_references(line, repo=repo) if "uplicate" in line or "UPLICATE" in line else []
    return any(ref.action == "duplicate" and ref.owner is None and ref.number == target for ref in references)


def _ending_quote(card: Card) -> Passage | None:
    outcome = card.ending
    if not outcome.quote:
        return None
    return Passage(card.id, outcome.author, outcome.role, outcome.at, outcome.quote, outcome.comment_id, card.kind)


def _size(cluster: Cluster) -> str:
    people = f"{cluster.people:,} {'person' if cluster.people == 1 else 'people'}"
    return f"{count(cluster.total, 'report')} by {people}"


def _largest(clusters: Iterable[Cluster]) -> list[Cluster]:
    return sorted(
        clusters, key=lambda cluster: (-cluster.people, -cluster.total, -cluster.last.timestamp(), cluster.id)
    )


Item = TypeVar("Item")


def _newest(items: Iterable[Item], at: Callable[[Item], datetime]) -> list[Item]:
    """The items by time, the newest first; ties keep their order."""
    return sorted(items, key=at, reverse=True)


_SECTIONS: Mapping[SectionName, Callable[[DigestSource, Tick], Iterator[DigestItem]]] = {
    POSSIBLY_BACK: _possibly_back,
    MANY_REPORTS: _many_reports,
    UNRELEASED: _fixed_not_released,
    DECIDED: _decided_since,
    UNDOCUMENTED: _not_documented,
    DUPLICATES: _duplicates_of_closed,
}
