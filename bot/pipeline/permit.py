"""What a run may write on GitHub, decided in one place."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from bot.pipeline.draft import Draft


class Permit(NamedTuple):
    """What a run may write on GitHub.

    ``writes``: texts are posted and changed; else they are only shown in the job summary, as with ``mode: summary``.
    ``waits``: why everything is left to a later run, "" if it is not. In both cases what may no longer be shown is
    taken out, unless this is a dry run (``takes_out``).
    """

    writes: bool
    waits: str = ""
    takes_out: bool = True

    @property
    def is_full(self) -> bool:
        """Whether this run may post and change comments."""
        return self.writes and not self.waits

    def allows(self, draft: Draft) -> bool:
        """Whether this draft is written, not only shown."""
        return self.writes or (draft.takes_out and self.takes_out)

    def restrict(self, draft: Draft) -> Draft:
        """The draft, left to a later run if everything is."""
        is_held = self.waits and not (draft.is_left or draft.takes_out)
        return replace(draft, waits=self.waits) if is_held else draft
