"""What a run leaves to later ones, as a small value: a caller decides by it when to run again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from bot.domain.changes import HistoryProgress
from bot.pipeline.backfill import HistoryRead
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.tools import Tools


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a run leaves to later ones.

    ``cursor`` is how far memory has read, ``threads`` how many it holds. ``reading`` is an unfinished reading of the
    history, ``read`` the last part that this run read. ``owed``: for each post that is still owed, since when a run
    tries to write it, None if none does. ``is_cut_off``: GitHub failed, so that this run asks it nothing more.
    """

    cursor: datetime | None
    threads: int
    reading: HistoryProgress | None
    read: HistoryRead | None
    owed: tuple[datetime | None, ...]
    is_cut_off: bool


def outlook(run: Tools, results: Iterable[CommentResult], read: HistoryRead | None) -> Outlook:
    """The outlook of a run with these results, ``read`` being the last part of the history that it read."""
    state, oldest = run.memory.state, run.now - run.max_age
    settled = {result.id for result in results if not result.is_owed and not result.error}
    posts = state.comments([key for key in state.manifest.pending if key not in settled]).values()
    owed = [post.trying_since for post in posts if post.at > oldest]
    requests = state.manifest.requests_since(oldest)
    owed += [each.trying_since for each in requests if each.state == "pending" and each.id not in settled]
    if state.manifest.renewals_due and run.settings.mode == "comment":
        owed.append(None)
    manifest = state.manifest
    return Outlook(
        manifest.cursor, manifest.threads, manifest.reading, read, tuple(owed), is_cut_off=bool(run.forge.troubles)
    )
