"""What maintainers should look at: six lists, each with its evidence.

Everything follows from what is remembered and from the moment that is given, so the same memory gives the same report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, zip_longest
from typing import NamedTuple, TypeVar

from bot.comment.catalogue import count
from bot.domain.answer import Context, Match
from bot.domain.card import Card, CardId, Passage, is_change, number_of, proven
from bot.domain.changes import FixInfo, wrong_matches_for
from bot.domain.cluster import Cluster, ClusterMember
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.thread import KNOWN_ROLES, Message, RepositoryAddress, Thread
from bot.questions.views import cited, ending
from bot.reading.references import find_references
from bot.reading.versions import asked_version, stands
from bot.recall.answer import with_endings
from bot.recall.library import Library, WithoutWords, threads
from bot.recall.pages import LEAST_TERMS, PageQuery, find_pages
from bot.recall.similar import Limits, find_similar
from bot.settings.schema import Settings

SHOWN = 10
"""Items of a section that are shown."""

EVIDENCE = 6
"""Issues shown below an item."""

HIGHLIGHTS = 3
WEEKS = 26
"""Weeks in which the reports of a cluster are counted."""

COMPARED = 300
"""The newest reports with a version that are compared with older issues; each takes some hundredths of a second."""

LOOKED_UP = 100
"""The largest clusters of questions that are looked up in the pages."""

SEVERAL = 3
"""Fewer reports of one thing are not many, and a question in fewer is not asked often."""

_WEEK = timedelta(weeks=1)
_ANSWERS = (OutcomeKind.ANSWERED, OutcomeKind.WORKAROUND)


class DigestRequest(NamedTuple):
    """The time that a report is about, and how many items a section has at most."""

    since: datetime
    until: datetime
    limit: int = SHOWN


class EvidenceIssue(NamedTuple):
    """An issue that supports an item. ``why`` says in plain words what links them."""

    card: Card
    why: tuple[str, ...] = ()


class DigestItem(NamedTuple):
    """One thing to look at. ``at`` is when it happened last; ``facts`` are short phrases that may hold a stranger's
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
    """A section: its name for programs, its title, what a person may call one and several of its items, and what it
    lists."""

    name: str
    title: str
    one: str
    many: str
    about: str


BACK = SectionName(
    "possibly_back",
    "Possibly back",
    "fix may not hold",
    "fixes may not hold",
    "Reports on a version that has the fix already, each similar to the fixed issue.",
)
MANY = SectionName(
    "many_reports",
    "Many reports of one thing",
    "thing was reported again",
    "things were reported again",
    "Issues that report one thing and got another report in this period, those of most people first.",
)
UNRELEASED = SectionName(
    "fixed_not_released",
    "Fixed, not released",
    "fix waits for a release",
    "fixes wait for a release",
    "Closed issues whose fix is merged and was in no release when it was last looked up.",
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
    "answered question is on no page",
    "answered questions are on no page",
    "Questions that were answered in issues, asked again in this period, and that no remembered page covers.",
)
DUPLICATES = SectionName(
    "duplicates_of_closed",
    "Duplicates of something closed",
    "open issue repeats a closed one",
    "open issues repeat closed ones",
    "Open issues that are marked as duplicates of a closed one, or said to be.",
)

URGENCY = (BACK, MANY, DUPLICATES, UNDOCUMENTED, UNRELEASED, DECIDED)
"""The order in which sections give the things to look at first."""


class DigestSection(NamedTuple):
    """A section of the report. ``total`` counts all that was found, of which ``items`` are the first."""

    name: SectionName
    items: tuple[DigestItem, ...]
    total: int

    @property
    def left(self) -> int:
        return self.total - len(self.items)


class MaintainerReport(NamedTuple):
    """What happened from ``since`` to ``until``, in sections that may be empty. ``threads`` counts what is remembered;
    ``notes`` say what could not be looked at."""

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
        """The things to look at first: the first item of each section, then the second ones; each issue once."""
        found = {section.name: section.items for section in self.sections}
        rows = zip_longest(*([(name, item) for item in found.get(name, ())] for name in URGENCY))
        seen: dict[CardId, tuple[SectionName, DigestItem]] = {}
        for one in (one for row in rows for one in row if one):
            seen.setdefault(one[1].card.id, one)
        return list(islice(seen.values(), HIGHLIGHTS))


@dataclass(frozen=True, slots=True)
class DigestSource:
    """What a report is made from: all that is remembered, the settings, and the time that it is about.

    ``cards`` holds all threads that may be shown; ``repeats`` maps one to the issue that somebody calls its original;
    ``uncompared`` counts those that no run compared with others for clusters.
    """

    cards: Mapping[CardId, Card]
    repeats: Mapping[CardId, CardId]
    fixes: Mapping[CardId, FixInfo]
    clusters: tuple[Cluster, ...]
    library: Library
    settings: Settings
    place: RepositoryAddress
    asked: DigestRequest
    uncompared: int = 0

    def ready(self) -> DigestSource:
        """The source with the endings that follow from what is known of the changes, and without the words of people
        who are never quoted."""
        quiet = frozenset(login.casefold() for login in self.settings.ignore.people)
        cards = {key: _without(proven(card, self._is_merged(card)), quiet) for key, card in self.cards.items()}
        return replace(self, cards=cards, library=WithoutWords(self.library, quiet) if quiet else self.library)

    def issues(self) -> Iterator[Card]:
        return (card for card in self.cards.values() if card.kind is Kind.ISSUE)

    def is_recent(self, moment: datetime | None) -> bool:
        return moment is not None and self.asked.since <= moment <= self.asked.until

    def members(self, cluster: Cluster) -> list[ClusterMember]:
        """The members of a cluster that may be shown, newest first."""
        known = [one for one in cluster.members if one.id in self.cards]
        return sorted(known, key=lambda one: (-one.at.timestamp(), str(one.id)))

    def _is_merged(self, card: Card) -> bool | None:
        ref = card.ending.fix or card.ending.claimed
        change = self.cards.get(number_of(ref) or 0)
        fix = self.fixes.get(card.id)
        is_merged = is_change(change.kind, change.state, change.merged_at) if change else None
        if not is_merged and fix and fix.ref == ref and (fix.commit or fix.refuted):
            return not fix.refuted
        return is_merged


def maintainer_report(source: DigestSource, tick: Callable[[int], None] = lambda _: None) -> MaintainerReport:
    """The whole report. ``tick`` is called as issues are compared."""
    source = source.ready()
    found = {name: list(make(source, tick)) for name, make in _SECTIONS.items()}
    return MaintainerReport(
        repo=source.place.repo or "",
        since=source.asked.since,
        until=source.asked.until,
        threads=len(source.cards),
        sections=tuple(
            DigestSection(name, tuple(items[: source.asked.limit]), len(items)) for name, items in found.items()
        ),
        notes=tuple(_notes(source)),
    )


def _notes(source: DigestSource) -> Iterator[str]:
    if not _has_pages(source):
        yield "No page is remembered, so answered questions were not looked up."
    if source.uncompared:
        left = count(source.uncompared, "thread")
        how = "The next runs do that; in a store, precedent learn does"
        yield f"Groups may be missing: {left} still to be compared with older ones. {how}."


Tick = Callable[[int], None]


def _possibly_back(source: DigestSource, tick: Tick) -> Iterator[DigestItem]:
    ended_alike = (OutcomeKind.UNKNOWN, OutcomeKind.DUPLICATE)
    releases, first_fixed = _releases(source)
    recent = [card for card in source.issues() if source.is_recent(card.created_at)]
    asked = [card for card in recent if card.state == "open" or card.ending.kind in ended_alike]
    for card in islice(_newest(asked, lambda card: card.created_at), COMPARED):
        tick(1)
        thread = threads(source.library, [card.id], None).get(card.id)
        version = asked_version(thread, source.place.repo) if thread else ""
        has_fixes = version and any(stands(version, one, None, first_fixed) == "same or newer" for one in releases)
        if thread and has_fixes and (found := _fixed_before(thread, source)):
            yield _back_item(card, version, found, source)


def _releases(source: DigestSource) -> tuple[frozenset[str], datetime | None]:
    """The releases that are known to have a fix, each once, and when the first of these fixes was made.

    A nightly is compared with that day alone: one without the first fix has no later one.
    """
    releases, days = set[str](), list[datetime]()
    for card in source.issues():
        fix = source.fixes.get(card.id)
        if release := (fix.release if fix else None) or card.ending.release:
            releases.add(release)
            if fix and (day := fix.merged_at or fix.released_at):
                days.append(day)
    return frozenset(releases), min(days, default=None)


def _fixed_before(thread: Thread, source: DigestSource) -> list[Match]:
    """The similar issues whose fix is in the version of this one, the most similar first."""
    library, wanted = source.library, source.settings.troubleshooting
    wrong = wrong_matches_for(library.requests([thread.id]).get(thread.id, ()))
    limits = Limits(wanted.similarity_threshold, EVIDENCE, 0, wanted.total_budget_chars)
    alike = find_similar(thread, library, None, wrong, limits, source.place.repo)
    known = with_endings(Context(seen_before=alike.seen), thread, library, source.place)
    back = [match for match in known.seen_before if match.may_be_back and match.id in source.cards]
    against = library.requests([match.id for match in back])
    return [match for match in back if thread.id not in wrong_matches_for(against.get(match.id, ()))]


def _back_item(card: Card, version: str, found: list[Match], source: DigestSource) -> DigestItem:
    first = found[0]
    release = (first.fix.release if first.fix else None) or first.outcome.release
    facts = (f"reported on {version}", f"{cited(first.id)} was fixed in {release}")
    evidence = tuple(EvidenceIssue(source.cards[match.id], match.why) for match in found)
    return DigestItem(card, card.created_at, facts, evidence, quote=_ending_words(source.cards[first.id]))


def _many_reports(source: DigestSource, _: Tick) -> Iterator[DigestItem]:
    active = (cluster for cluster in source.clusters if source.is_recent(cluster.last))
    for cluster in _largest(active):
        if cluster.canonical in source.cards and len(source.members(cluster)) >= SEVERAL:
            new = sum(map(source.is_recent, cluster.times))
            facts = (_size(cluster), f"{new:,} of them in this period", f"since {cluster.first:%Y-%m-%d}")
            yield _cluster_item(cluster, facts, source)


def _cluster_item(cluster: Cluster, facts: tuple[str, ...], source: DigestSource) -> DigestItem:
    card = source.cards[cluster.canonical]
    others = [one for one in source.members(cluster) if one.id != cluster.canonical]
    evidence = tuple(EvidenceIssue(source.cards[one.id], one.why) for one in others[:EVIDENCE])
    left = len(others) - len(evidence) + cluster.total - len(cluster.members)
    weeks = weekly(cluster.times, source.asked.until)
    return DigestItem(card, cluster.last, facts, evidence, left, _ending_words(card), weeks)


def weekly(moments: Iterable[datetime], until: datetime) -> tuple[int, ...]:
    """How many of these moments are in each of the last `WEEKS` weeks before ``until``, the last week last."""
    counts = [0] * WEEKS
    for moment in moments:
        ago = (until - moment) // _WEEK
        if 0 <= ago < WEEKS:
            counts[WEEKS - 1 - ago] += 1
    return tuple(counts)


def _fixed_not_released(source: DigestSource, _: Tick) -> Iterator[DigestItem]:
    waiting = [
        fix for fix in source.fixes.values() if fix.commit and fix.unreleased and not (fix.release or fix.refuted)
    ]
    cluster_of = {member.id: cluster for cluster in source.clusters for member in cluster.members}
    for fix in _newest(waiting, lambda fix: fix.merged_at or fix.looked_at):
        card = source.cards.get(fix.id)
        if card is None or card.kind is not Kind.ISSUE or card.state != "closed":
            continue
        merged = f", merged on {fix.merged_at:%Y-%m-%d}" if fix.merged_at else ""
        ref = fix.ref if fix.ref.startswith("#") else fix.ref[:10]
        cluster = cluster_of.get(fix.id)
        facts = (
            f"fixed by {ref}{merged}",
            *([_size(cluster)] if cluster else []),
            f"looked up on {fix.looked_at:%Y-%m-%d}",
        )
        yield DigestItem(card, fix.merged_at or fix.looked_at, facts, quote=_ending_words(card))


def _decided_since(source: DigestSource, _: Tick) -> Iterator[DigestItem]:
    kinds = (card for card in source.cards.values() if card.kind.is_on_github)
    made = [(card, one) for card in kinds for one in card.decisions if one.at and source.is_recent(one.at)]
    for card, ruling in _newest(made, lambda made: made[1].at or source.asked.since):
        later = (f"superseded by {ruling.superseded_by}",) if ruling.superseded_by else ()
        quote = Passage(card.id, ruling.author, ruling.role, ruling.at, ruling.text, ruling.comment_id, card.kind)
        yield DigestItem(card, ruling.at or source.asked.since, later, quote=quote)


def _not_documented(source: DigestSource, tick: Tick) -> Iterator[DigestItem]:
    if not _has_pages(source):
        return
    often = [one for one in source.clusters if source.is_recent(one.last) and _is_question(one, source)]
    for cluster in islice(_largest(often), LOOKED_UP):
        tick(1)
        if not _is_covered(cluster, source):
            answered = [one for one in source.members(cluster) if source.cards[one.id].ending.kind in _ANSWERS]
            looked = "them" if cluster.total == len(cluster.members) else f"the newest {len(cluster.members):,}"
            facts = (_size(cluster), f"{len(answered):,} of {looked} answered")
            quote = next(filter(None, (_ending_words(source.cards[one.id]) for one in answered)), None)
            yield _cluster_item(cluster, facts, source)._replace(quote=quote)


def _is_question(cluster: Cluster, source: DigestSource) -> bool:
    """Whether it was asked often, and most of what ended was answered rather than fixed or declined."""
    members = source.members(cluster)
    kinds = [source.cards[one.id].ending.kind for one in members]
    ended = [kind for kind in kinds if kind not in (OutcomeKind.UNKNOWN, OutcomeKind.DUPLICATE, OutcomeKind.STALE)]
    answered = sum(kind in _ANSWERS for kind in ended)
    return cluster.canonical in source.cards and len(members) >= SEVERAL and 2 * answered > len(ended)


def _is_covered(cluster: Cluster, source: DigestSource) -> bool:
    """Whether a page answers the canonical issue or one of the newest. Questions of a few words count as answered, as
    no page can be found for them."""
    wanted = replace(source.settings.pages, max_results=1)
    ids = dict.fromkeys([cluster.canonical, *(one.id for one in source.members(cluster)[:EVIDENCE])])
    asked = [one for one in threads(source.library, ids, None).values() if len(PageQuery.of(one).terms) >= LEAST_TERMS]
    return not asked or any(find_pages(thread, source.library, wanted, source.place) for thread in asked)


def _has_pages(source: DigestSource) -> bool:
    return any(card.kind is Kind.PAGE for card in source.cards.values())


def _duplicates_of_closed(source: DigestSource, tick: Tick) -> Iterator[DigestItem]:
    """Those that people of the project name first: a stranger may say anything."""
    open_cards = [card for card in source.issues() if card.state == "open" and card.id in source.repeats]
    found: list[tuple[bool, DigestItem]] = []
    for card in islice(_newest(open_cards, lambda card: card.created_at), COMPARED):
        tick(1)
        original = _original(source.repeats[card.id], source.cards)
        if original is None or original.id == card.id or original.state != "closed":
            continue
        thread = threads(source.library, [card.id], None).get(card.id)
        quote = _said_duplicate(thread, source) if thread else None
        if quote:
            at = f" on {original.closed_at:%Y-%m-%d}" if original.closed_at else ""
            facts = (f"said to be a duplicate of {cited(original.id)}, which was closed{at}",)
            evidence = (EvidenceIssue(original, (ending(original),)),)
            item = DigestItem(card, quote.at or card.created_at, facts, evidence, quote=quote)
            found.append((quote.role not in KNOWN_ROLES, item))
    return (item for _, item in sorted(found, key=lambda one: one[0]))


def _original(key: CardId, cards: Mapping[CardId, Card]) -> Card | None:
    """The end of a chain of duplicates; None if that is not remembered, or the chain is a circle."""
    walked = set[CardId]()
    while (found := cards.get(key)) and found.duplicate_of is not None and key not in walked:
        walked.add(key)
        key = found.duplicate_of
    return found if found and key not in walked and found.kind.traits.has_state else None


def _said_duplicate(thread: Thread, source: DigestSource) -> Passage | None:
    """The last line of the thread that calls it a duplicate; None if it was unmarked later."""
    target = source.repeats[thread.id]
    opening = Message(thread.author, thread.role, thread.created_at, thread.body)
    for message in reversed((opening, *thread.comments)):
        line = next((one for one in message.text.split("\n") if _names_original(one, target, source.place.repo)), "")
        if line and not message.is_bot:
            unmarked = any(e.name == "unmarked_as_duplicate" and e.at >= message.created_at for e in thread.events)
            said = line.strip()
            told = Passage(thread.id, message.author, message.role, message.created_at, said, message.id, thread.kind)
            return None if unmarked else told
    return None


def _names_original(line: str, target: CardId, repo: str | None) -> bool:
    found = find_references(line, repo=repo) if "uplicate" in line or "UPLICATE" in line else []
    return any(one.action == "duplicate" and one.owner is None and one.number == target for one in found)


def _ending_words(card: Card) -> Passage | None:
    said = card.ending
    if not said.quote:
        return None
    return Passage(card.id, said.author, said.role, said.at, said.quote, said.comment_id, card.kind)


def _size(cluster: Cluster) -> str:
    people = f"{cluster.people:,} {'person' if cluster.people == 1 else 'people'}"
    return f"{count(cluster.total, 'report')} by {people}"


def _largest(clusters: Iterable[Cluster]) -> list[Cluster]:
    return sorted(clusters, key=lambda one: (-one.people, -one.total, -one.last.timestamp(), one.id))


Item = TypeVar("Item")


def _newest(items: Iterable[Item], at: Callable[[Item], datetime]) -> list[Item]:
    """The items by time, the newest first; those of one moment in their own order."""
    return sorted(items, key=at, reverse=True)


def _without(card: Card, people: frozenset[str]) -> Card:
    """The card without the words of these people."""
    said = tuple(one for one in card.decisions if one.author.casefold() not in people)
    quote = "" if card.ending.author.casefold() in people else card.ending.quote
    return card._replace(decisions=said, ending=card.ending._replace(quote=quote))


_SECTIONS: Mapping[SectionName, Callable[[DigestSource, Tick], Iterator[DigestItem]]] = {
    BACK: _possibly_back,
    MANY: _many_reports,
    UNRELEASED: _fixed_not_released,
    DECIDED: _decided_since,
    UNDOCUMENTED: _not_documented,
    DUPLICATES: _duplicates_of_closed,
}
