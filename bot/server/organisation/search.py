"""Searches the organisation's other repositories for one run, and checks each match on GitHub before it is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from bot.domain.answer import Context, Match, OrganisationMatch
from bot.domain.hidden_people import HiddenPeople
from bot.domain.kinds import Kind
from bot.domain.post import OrganisationKey
from bot.domain.thread import Thread
from bot.github.errors import ForgeError, Gone, NotInstalled, NotPermitted, Suspended, Unauthorised
from bot.github.foreign_thread import ForeignRepository
from bot.organisation.scope import OrganisationRepository, visible_to
from bot.reading.endings.outcome import outcome
from bot.recall.candidates import OrganisationUnavailable
from bot.server.model import ALL_REPOSITORIES, Grant, Instant, RepositoryKey, RepositoryScope
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.github_access import TokenCache
from bot.server.storage.installations import MOVED
from bot.settings.schema import Settings

MAX_CHECKED = 3
"""Most threads of other repositories read for one answer; with this repository's visibility, four requests."""


Ranking = Callable[
    [Thread, Context, Collection[int], Collection[OrganisationKey], Settings], Sequence[OrganisationMatch]
]
"""(thread, what its comment says, repositories, kept, settings) → threads of the organisation's index that are like it.

Kept ones come first if they are found, then the others in the order to show. Raises OrganisationUnavailable.
"""

ForeignReader = Callable[[Grant, int, Kind], ForeignRepository]
"""(grant, number, kind) → the repository, read with its own token, and the thread of this number (0 for none), in one
request. Raises Gone if the repository is out of sight, else ForgeError."""


@dataclass(frozen=True, slots=True)
class CheckedSearch:
    """The `bot.pipeline.tools.OrganisationSearch` of one run in ``repository``, which has these ``settings``.

    The database says what may be searched; GitHub, asked for each answer, what may be shown.
    """

    repository: RepositoryKey
    settings: Settings
    register: OrganisationRegister
    tokens: TokenCache
    now: Instant
    rank: Ranking
    read: ForeignReader
    included: RepositoryScope = ALL_REPOSITORIES

    def find(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey] = ()
    ) -> tuple[OrganisationMatch, ...]:
        """As `OrganisationSearch.find`."""
        if not isinstance(thread.id, int):
            return ()
        if kept:  # without what its repository has forgotten, as GitHub still has that
            kept = self.register.filter_shown(self.repository, thread.id, kept)
        candidates = self._find_candidates(thread, context, kept)
        # Stored first: a change after the check then finds this comment, and the check sees any earlier one.
        self.register.add_shown(
            self.repository, thread.id, [candidate.key for candidate in candidates if candidate.key not in kept]
        )
        reader = self._current_reader(is_needed=bool(kept)) if candidates else None
        shown: list[OrganisationMatch] = []
        for candidate in candidates if reader else ():
            if len(shown) < self.settings.organisation.results and reader:
                checked = self._check_match(candidate, reader, is_kept=candidate.key in kept)
                if checked is None:  # drop what was read of it a moment ago, too
                    shown = [each for each in shown if each.key.repository != candidate.key.repository]
                shown += checked or ()
        self.register.retain_shown(self.repository, thread.id, {*kept, *(candidate.key for candidate in shown)})
        return tuple(shown)

    def _find_candidates(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey]
    ) -> tuple[OrganisationMatch, ...]:
        """The matches to show if that is allowed, those in ``kept`` first; these stay even if the engine fails."""
        others = {each.id: each for each in self._repositories()}
        reader = others.pop(self.repository.number, None)
        scope = visible_to(reader, others.values()) if reader else frozenset[int]()
        kept = [key for key in kept if key.repository in scope]
        try:
            ranked = self.rank(thread, context, scope, kept, self.settings) if scope else ()
        except OrganisationUnavailable:  # reported where the engine is called
            ranked = ()
        by_key = {candidate.key: candidate for candidate in ranked if candidate.key.repository in scope}
        kept_matches = [by_key.get(key) or _placeholder(key, others[key.repository], thread) for key in kept]
        new_matches = [candidate for candidate in by_key.values() if candidate.key not in kept]
        return tuple([*kept_matches, *new_matches][:MAX_CHECKED])

    def _repositories(self) -> list[OrganisationRepository]:
        repositories = self.register.repositories(self.repository.installation)
        return [each for each in repositories if self.included.includes(each.name)]

    def _current_reader(self, *, is_needed: bool) -> OrganisationRepository | None:
        """This repository as it is on GitHub now. If that cannot be known: an error if it ``is_needed``, else None."""
        try:
            current = self._fetch_current(self.repository, 0, Kind.ISSUE)
        except ForgeError:
            if is_needed:
                raise
            return None
        return current[0] if current else None

    def _check_match(
        self, candidate: OrganisationMatch, reader: OrganisationRepository, *, is_kept: bool
    ) -> list[OrganisationMatch] | None:
        """The match as it is on GitHub now; empty if it is gone, or that cannot be known. None if nothing of its
        repository may be shown."""
        if not isinstance(candidate.match.id, int):
            return []
        try:
            other = RepositoryKey(self.repository.installation, candidate.key.repository)
            current = self._fetch_current(other, candidate.match.id, candidate.match.kind)
        except ForgeError:
            if is_kept:
                raise
            return []
        if current is None:
            self._note_moved(other)
        if current is None or not visible_to(reader, [current[0]]):
            return None
        repository, read = current
        return [_refresh(candidate, repository, read, self.settings.ignore.people)] if read else []

    def _note_moved(self, repository: RepositoryKey) -> None:
        """If GitHub gives no token for a repository any more, have the other comments that show it renewed, too."""
        self.tokens.forget(repository)
        try:
            self.tokens.grant(repository, self.now)
        except NotInstalled as error:
            if not isinstance(error, Suspended):
                self.register.mark_gone(repository, MOVED)
        except ForgeError:  # whoever shows it next asks again
            return

    def _fetch_current(
        self, repository: RepositoryKey, number: int, kind: Kind
    ) -> tuple[OrganisationRepository, Thread | None] | None:
        """A repository and a thread as they are now; None if it no longer belongs to this installation.

        Its settings are those of its last run. If its visibility has changed, the new one is stored and the affected
        comments are renewed.
        """
        try:
            grant = self.tokens.grant(repository, self.now)
            current = self.read(grant, number, kind)
        except (NotInstalled, NotPermitted, Gone):
            return None
        except Unauthorised:
            self.tokens.forget(repository)
            raise
        if current.id != repository.number or _owner(current.name) != _owner(grant.name):
            return None  # it went to another account, where everybody may read it
        self.register.store_repository(repository, current.name, current.visibility)
        known = self.register.repository(repository)
        if known is None or not self.included.includes(current.name):
            return None
        return replace(known, name=current.name, visibility=current.visibility), current.thread


def _owner(name: str) -> str:
    return name.partition("/")[0].casefold()


def _placeholder(key: OrganisationKey, other: OrganisationRepository, thread: Thread) -> OrganisationMatch:
    """A thread that the index does not have; GitHub will fill it in."""
    return OrganisationMatch(key, other.name, Match(key.thread, "", 0.0, "", thread.created_at))


def _refresh(
    candidate: OrganisationMatch, repository: OrganisationRepository, thread: Thread, people: Collection[str]
) -> OrganisationMatch:
    """The match with what GitHub says of the thread now. The index chose it, but whoever can write to the memory that
    it was made from can put words into it. Neither repository quotes the people whom it ignores."""
    match = Match(
        id=candidate.match.id,
        title=thread.title,
        similarity=candidate.match.similarity,
        state=thread.state,
        created_at=thread.created_at,
        state_reason=thread.state_reason,
        closed_at=thread.closed_at,
        outcome=outcome(thread.without(HiddenPeople({*people, *repository.people})), repository.name),
        why=candidate.match.why,
        kind=thread.kind,
    )
    return replace(candidate, repository=repository.name, match=match)
