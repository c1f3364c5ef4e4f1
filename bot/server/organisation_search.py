"""Searches the organisation's other repositories for one run, and checks each find on GitHub before it is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from bot.domain.answer import Context, Match, OrganisationKey, OrganisationMatch
from bot.domain.kinds import Kind
from bot.domain.thread import Outcome, Thread
from bot.github.errors import ForgeError, Gone, NotInstalled, NotPermitted, Unauthorised
from bot.github.foreign_thread import ForeignRepository, ForeignThread
from bot.organisation.scope import OrganisationRepository, visible_to
from bot.recall.candidates import OrganisationUnavailable
from bot.server.installations import TokenCache
from bot.server.model import Grant, Instant, RepositoryKey
from bot.server.organisation_register import OrganisationRegister
from bot.server.scope import EVERYTHING, RepositoryScope
from bot.settings.schema import Settings

MOST_CHECKED = 3
"""Threads of other repositories that are read for one answer; with this repository's visibility four requests."""


Ranking = Callable[
    [Thread, Context, Collection[int], Collection[OrganisationKey], Settings], Sequence[OrganisationMatch]
]
"""(thread, what its comment says, repositories, kept, settings) → threads of the organisation's index that are like it.

Those that are kept come first if they are found; the others as they should be shown. Raises OrganisationUnavailable.
"""

ForeignReader = Callable[[Grant, int, Kind], ForeignRepository]
"""(grant, number, kind) → the repository, read with its own token, and the thread of this number (0 for none), in one
request. Raises Gone if the repository is out of sight, else ForgeError."""


@dataclass(frozen=True, slots=True)
class CheckedSearch:
    """The `bot.pipeline.organisation.OrganisationSearch` of one run in ``repository``, which has these ``settings``.

    The database says what may be looked for; GitHub, asked for each answer, what may be shown.
    """

    repository: RepositoryKey
    settings: Settings
    register: OrganisationRegister
    tokens: TokenCache
    now: Instant
    rank: Ranking
    read: ForeignReader
    included: RepositoryScope = EVERYTHING

    def find(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey] = ()
    ) -> tuple[OrganisationMatch, ...]:
        """As `OrganisationSearch.find`."""
        if not isinstance(thread.id, int):
            return ()
        if kept:  # not what its repository has forgotten: GitHub still has that
            kept = self.register.remembered(self.repository, thread.id, kept)
        wanted = self._wanted(thread, context, kept)
        # Stored first: a change that comes after the check then finds this comment, and one before it is seen there.
        self.register.show(self.repository, thread.id, [one.key for one in wanted if one.key not in kept])
        reader = self._reader(is_needed=bool(kept)) if wanted else None
        shown: list[OrganisationMatch] = []
        for one in wanted if reader else ():
            if len(shown) < self.settings.organisation.results and reader:
                found = self._checked(one, reader, is_kept=one.key in kept)
                if found is None:  # nor what was read of it a moment ago
                    shown = [each for each in shown if each.key.repository != one.key.repository]
                shown += found or ()
        self.register.show_only(self.repository, thread.id, {*kept, *(one.key for one in shown)})
        return tuple(shown)

    def _wanted(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey]
    ) -> tuple[OrganisationMatch, ...]:
        """What would be shown if it may be, those in ``kept`` first. The engine's trouble loses nothing of those."""
        others = {each.id: each for each in self._repositories()}
        reader = others.pop(self.repository.number, None)
        scope = visible_to(self._with_settings(reader), others.values()) if reader else frozenset[int]()
        kept = [key for key in kept if key.repository in scope]
        try:
            found = self.rank(thread, context, scope, kept, self.settings) if scope else ()
        except OrganisationUnavailable:  # told where the engine is called
            found = ()
        known = {one.key: one for one in found if one.key.repository in scope}
        stay = [known.get(key) or _unknown(key, others[key.repository], thread) for key in kept]
        new = [one for one in known.values() if one.key not in kept]
        return tuple([*stay, *new][:MOST_CHECKED])

    def _repositories(self) -> list[OrganisationRepository]:
        known = self.register.repositories(self.repository.installation)
        return [each for each in known if self.included.includes(each.name)]

    def _with_settings(self, reader: OrganisationRepository) -> OrganisationRepository:
        return replace(reader, shares=self.settings.organisation.share_with)

    def _reader(self, *, is_needed: bool) -> OrganisationRepository | None:
        """This repository as it is on GitHub now. If that cannot be known: an error if it ``is_needed``, else None."""
        try:
            now = self._look(self.repository, 0, Kind.ISSUE)
        except ForgeError:
            if is_needed:
                raise
            return None
        return self._with_settings(now[0]) if now else None

    def _checked(
        self, one: OrganisationMatch, reader: OrganisationRepository, *, is_kept: bool
    ) -> list[OrganisationMatch] | None:
        """The match as it is on GitHub now; empty where it is not there, or that cannot be known. None where nothing of
        its repository may be shown."""
        if not isinstance(one.match.id, int):
            return []
        try:
            there = RepositoryKey(self.repository.installation, one.key.repository)
            found = self._look(there, one.match.id, one.match.kind)
        except ForgeError:
            if is_kept:
                raise
            return []
        if found is None or not visible_to(reader, [found[0]]):
            return None
        return [self._without_words(_as_it_is(one, found[0].name, found[1]))] if found[1] else []

    def _without_words(self, one: OrganisationMatch) -> OrganisationMatch:
        """The match without a quotation of those whom the settings here say not to quote."""
        people = {login.casefold() for login in self.settings.ignore.people}
        if (one.match.outcome.author or "").casefold() not in people:
            return one
        ending = replace(one.match.outcome, quote="", author=None, role=None, comment=None, comment_id=None)
        return replace(one, match=replace(one.match, outcome=ending))

    def _look(
        self, repository: RepositoryKey, number: int, kind: Kind
    ) -> tuple[OrganisationRepository, ForeignThread | None] | None:
        """A repository and a thread as they are now; None if it is not this installation's any more.

        Its settings are those of its last run. If its visibility is not the one that was known, the new one is stored,
        and the comments that it concerns are worked out again.
        """
        try:
            grant = self.tokens.grant(repository, self.now)
            found = self.read(grant, number, kind)
        except (NotInstalled, NotPermitted, Gone):
            return None
        except Unauthorised:
            self.tokens.forget(repository)
            raise
        if found.id != repository.number or _owner(found.name) != _owner(grant.name):
            return None  # it went to another account, where everybody may read it
        private = found.visibility != "public"
        self.register.saw(repository, found.name, private=private, visibility=found.visibility)
        known = self.register.repository(repository)
        if known is None or not self.included.includes(found.name):
            return None
        return replace(known, name=found.name, visibility=found.visibility), found.thread


def _owner(name: str) -> str:
    return name.partition("/")[0].casefold()


def _unknown(key: OrganisationKey, other: OrganisationRepository, thread: Thread) -> OrganisationMatch:
    """A thread of which the index says nothing; GitHub will."""
    return OrganisationMatch(key, other.name, Match(key.thread, "", 0.0, "", thread.created_at))


def _as_it_is(one: OrganisationMatch, name: str, now: ForeignThread) -> OrganisationMatch:
    """The match with what GitHub says; the ending that the index knows only if it is still that one."""
    match = replace(
        one.match,
        title=now.title,
        state=now.state,
        state_reason=now.state_reason,
        created_at=now.created_at,
        closed_at=now.closed_at,
    )
    if now.closed_at != one.match.closed_at:
        match = replace(match, outcome=Outcome(), fix=None)
    return replace(one, repository=name, match=match)
