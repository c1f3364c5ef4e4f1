"""What an index of sessions holds."""

from __future__ import annotations

from bot.domain.card import SessionOutline
from bot.local_cache.session_index import SessionIndex


def all_outlines(index: SessionIndex) -> list[SessionOutline]:
    """The sessions of an index, by their ids."""
    names = index._database.execute("SELECT id FROM sessions ORDER BY id").fetchall()
    return [outline for (name,) in names if (outline := index.outline(name))]
