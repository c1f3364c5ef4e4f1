"""Keeps the pages in memory up to date: documentation, wiki, releases."""

from __future__ import annotations

from bot.pipeline.room import Room
from bot.sources.pages import PAGE_EVENTS, refresh_pages


class Documents(Room):
    """Pages are read again after events that may have changed them, in scheduled runs, and if they never were."""

    def look(self) -> None:
        event, memory = self.facts.event, self.run.memory
        states = memory.state.manifest.pages
        if event.is_maintenance or event.name in PAGE_EVENTS or not states:
            memory.stage(refresh_pages(self.run.pages, memory, states, self.run.now, self.run.note))
