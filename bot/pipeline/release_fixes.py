"""Finds the remembered issues that new releases fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.card import Card, settled_card
from bot.domain.changes import Changes, FixInfo
from bot.domain.duplicates import duplicate_chain
from bot.domain.thread import MAINTAINER_ROLES, Kind, OutcomeKind, Thread, ThreadId
from bot.domain.turns import in_turns
from bot.github.fixes import Release, main_releases
from bot.memory.shards import FIXES
from bot.pipeline.tools import Tools
from bot.reading.endings.outcome import FIX_WITNESSES, outcome
from bot.reading.endings.stated_release import stated_release
from bot.reading.pages import RELEASES, page_key, source_of
from bot.reading.versions import Version, read_version
from bot.sources.pages import PRE_RELEASE_LABEL

LOOKBACK = timedelta(days=365)
"""How long before a release an issue may have been closed. Older ones are found only if the fix is already known."""

EXTRA_READS = 100
"""Extra requests to GitHub that a run may use to look up fixes: enough for about thirty."""

_VERSION = re.compile(r"(?<![\w.])v?\d{1,6}(?:\.\d{1,6}){1,3}(?:-?[a-z]{1,8}\.?\d{0,4})?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReleasedFix:
    """The fix ``ref`` of a thread, which ``release`` contains.

    ``known`` is what the forge knows about the fix; None if a maintainer or a release bot stated, at ``stated_at``,
    that this release contains it.
    """

    id: ThreadId
    ref: str
    release: str
    known: FixInfo | None = None
    stated_at: datetime | None = None


@dataclass(slots=True)
class ReleasedFixes:
    """The threads that new releases fix, and their closed ``duplicates``. ``is_all``: no fix is left to look up."""

    fixes: list[ReleasedFix] = field(default_factory=list)
    duplicates: dict[ThreadId, list[ThreadId]] = field(default_factory=dict)
    is_all: bool = True


def project_releases(run: Tools) -> list[Release]:
    """The remembered releases of the project itself, oldest first."""
    ids = [key for key in run.memory.page_ids() if source_of(key) == RELEASES]
    releases = []
    for key, entry in run.memory.entries(ids).items():
        tag = str(key).partition(":")[2]
        version = read_version(tag)
        if version and not version.day:
            is_early = version.is_early or PRE_RELEASE_LABEL in entry.labels
            releases.append(Release(tag, version, entry.created_at, is_early))
    own = main_releases(releases, (run.address.repo or "").rpartition("/")[2].lower())
    return sorted(own, key=lambda release: (release.at or run.now, release.version))


def find_released(new: Mapping[str, Release], since: datetime, run: Tools) -> ReleasedFixes:
    """The threads that one of the ``new`` releases (by tag) fixes: those closed ``since`` then, and those whose fix
    waited for a release. Each is looked up once; one run looks up a few, later runs the others."""
    cards = _closed_issues(run)
    fixes = run.memory.state.all_values(FIXES)
    newest = max(release.at for release in new.values() if release.at)
    due = [card for card in cards.values() if _is_due(card, fixes.get(card.id), since, newest)]
    released = ReleasedFixes(is_all=_look_up(latest_in_turns(due), fixes, run))
    likely = {
        card.id: fix
        for card in cards.values()
        if (fix := fixes.get(card.id)) and fix.release in new and _is_fixed_by(card, fix)
    }
    for key, thread in run.memory.whole_records(likely).items():
        fix = likely[key]
        if isinstance(thread, Thread) and (fix.closed_by or _is_witnessed(thread, run)):
            released.fixes.append(ReleasedFix(key, fix.change, fix.release or "", known=fix))
    released.fixes += _find_stated(cards, new, since, run)
    released.duplicates = _duplicates(cards, {fix.id for fix in released.fixes})
    return released


def release_page(tag: str, run: Tools) -> Thread | None:
    key = page_key(RELEASES, tag)
    page = run.memory.records([key]).get(key) if key else None
    return page if isinstance(page, Thread) else None


def _closed_issues(run: Tools) -> dict[ThreadId, Card]:
    hidden = set(run.memory.state.manifest.hidden_by_github)
    closed = (card for card in run.memory.state.cards() if card.kind is Kind.ISSUE and card.state == "closed")
    return {card.id: card for card in closed if card.id not in hidden}


def latest_in_turns(due: Iterable[Card]) -> list[Card]:
    """The threads by the time of their closing, latest first, with their authors taking turns."""
    return in_turns(sorted(due, key=_closed_at, reverse=True), lambda card: card.author.casefold())


def _is_due(card: Card, fix: FixInfo | None, since: datetime, newest: datetime) -> bool:
    """Whether to look up the fix of a closed thread, as a newer release may contain it."""
    if card.ending.change is None or card.ending.kind not in (OutcomeKind.FIXED, OutcomeKind.UNKNOWN):
        return False
    if fix is None or fix.ref != card.ending.change.ref:
        return _closed_at(card) > since
    if fix.release:
        version = read_version(fix.release)
        return version is not None and version.is_early and fix.looked_at < newest
    return fix.looked_at < newest and (fix.commit is not None or _closed_at(card) > since)


def _look_up(due: Iterable[Card], fixes: dict[ThreadId, FixInfo], run: Tools) -> bool:
    """Look up these fixes, and keep them in ``fixes``. Returns whether all were looked up.

    If GitHub fails for a fix, it is not kept, and stays due.
    """
    run.fixes.allow(EXTRA_READS)
    is_all = True
    for card in due:
        assert card.ending.change  # see `_is_due`
        fix = run.fixes.find(card.id, card.ending.change, fixes.get(card.id), run.now)
        if run.fixes.fault:
            if is_all:
                run.report_fault(run.fixes.fault)
            is_all = False
        if fix is None:
            return False
        if run.fixes.fault:
            continue
        run.memory.stage(Changes(fixes=(fix,)))
        fixes[card.id] = fix
        if fix.looked_at < run.now and fix.commit:  # no reads were left for its release
            return False
    return is_all


def _is_fixed_by(card: Card, fix: FixInfo) -> bool:
    named = card.ending.change
    if named is None or named.ref != fix.ref:
        return False
    ending = settled_card(card, None, fix).ending
    return ending.kind == OutcomeKind.FIXED and bool(ending.fix)


def _is_witnessed(thread: Thread, run: Tools) -> bool:
    """Whether GitHub or a merged change says that the change closed the thread; or else a maintainer, or whoever closed
    somebody else's thread, and it was closed as completed."""
    ending = outcome(thread, run.address.repo)
    if not FIX_WITNESSES.isdisjoint(ending.evidence):
        return True
    is_closer = ending.author == thread.closed_by != thread.author
    return thread.state_reason in (None, "completed") and (ending.role in MAINTAINER_ROLES or is_closer)


def _find_stated(
    cards: Mapping[ThreadId, Card], new: Mapping[str, Release], since: datetime, run: Tools
) -> list[ReleasedFix]:
    """The threads closed by hand for which a maintainer named one of these releases."""
    tags = {release.version: tag for tag, release in new.items()}
    by_hand = [
        card
        for card in cards.values()
        if not card.ending.fix and card.ending.kind not in (OutcomeKind.DUPLICATE, OutcomeKind.NOT_PLANNED)
    ]
    likely = [
        card.id for card in by_hand if _closed_at(card) > since or not tags.keys().isdisjoint(_named_versions(card))
    ]
    fixes = []
    for key, thread in run.memory.whole_records(likely).items():
        is_completed = isinstance(thread, Thread) and thread.state_reason in (None, "completed")
        stated = stated_release(thread, run.address.repo) if is_completed and isinstance(thread, Thread) else None
        if stated and stated.is_trusted and stated.version in tags:
            tag = tags[stated.version]
            fixes.append(ReleasedFix(key, tag, tag, stated_at=stated.at))
    return fixes


def _named_versions(card: Card) -> Iterator[Version | None]:
    """The versions that the ending of a thread names."""
    yield read_version(card.ending.release)
    yield from (
        read_version(version) for text in (card.ending.quote, card.summary) for version in _VERSION.findall(text)
    )


def _duplicates(cards: Mapping[ThreadId, Card], fixed: set[ThreadId]) -> dict[ThreadId, list[ThreadId]]:
    """The closed duplicates of each fixed thread, including duplicates of duplicates."""

    def original_of(key: ThreadId) -> ThreadId | None:
        return cards[key].duplicate_of if key in cards else None

    duplicates: dict[ThreadId, list[ThreadId]] = {}
    for key in cards:
        original = next((thread for thread in duplicate_chain(key, original_of) if thread in fixed), key)
        if original != key:
            duplicates.setdefault(original, []).append(key)
    return duplicates


def _closed_at(card: Card) -> datetime:
    return card.closed_at or card.updated_at
