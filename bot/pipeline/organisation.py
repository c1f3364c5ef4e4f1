"""What the pipeline needs from a search of the organisation's other repositories."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from bot.domain.answer import Context, OrganisationMatch
from bot.domain.post import OrganisationKey
from bot.domain.thread import Thread


class OrganisationSearch(Protocol):
    """Finds threads of other repositories that may be shown in this one."""

    def find(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey] = ()
    ) -> tuple[OrganisationMatch, ...]:
        """The threads to show with ``context``, the surest first; none if the context has something as sure itself.

        Each was read from GitHub in this call with its own repository's token, and every reader of this repository may
        read it. Those in ``kept`` are in the comment already, and stay if they may still be shown. Never raises because
        of the engine; raises ForgeError if it cannot find out whether a kept one may stay.
        """
