"""Notes under a name, with their time: signs of life of the processes, and how far a regular task has come."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bot.github.app import App, AppInfo
from bot.github.errors import Unauthorised
from bot.server.model import WORKER_PREFIX, Instant, Note
from bot.server.storage.database import SCHEMA_HEARTBEAT, DatabasePart, to_json

APP_HEARTBEAT = "app"
"""The heartbeat of the last request as the App: ``ahead``, seconds of GitHub's clock before ours; ``fault``, if any."""

WORKER_TIMEOUT = 30_000
"""Milliseconds without a heartbeat after which a worker counts as dead."""

OBSTACLE = "obstacle"
"""The field in a worker's heartbeats: why it begins no run."""

LastNotes = Mapping[str, tuple[Instant, Note]]
"""The last note under each name, and when it was written."""


class Heartbeats(DatabasePart):
    """The table ``heartbeats``."""

    def store(self, name: str, note: Note) -> None:
        """Replace the note of a worker, the App, the clock or the resync."""
        self.database.change(
            "insert into heartbeats (name, said_at, note) values (:name, :now, :note)"
            " on conflict (name) do update set said_at = excluded.said_at, note = excluded.note",
            name=name,
            now=self.now(),
            note=to_json(dict(note)),
        )

    def all(self) -> LastNotes:
        rows = self.database.rows("select * from heartbeats where name <> :schema", schema=SCHEMA_HEARTBEAT)
        return {row["name"]: (row["said_at"], json.loads(row["note"])) for row in rows}

    def get(self, name: str) -> tuple[Instant, Note]:
        """The last note under this name, and when it was written; an empty one of time 0 if there is none."""
        row = self.database.row("select said_at, note from heartbeats where name = :name", name=name)
        return (row["said_at"], json.loads(row["note"])) if row else (0, {})

    def try_lead(self, name: str, process: str, seconds: float) -> bool:
        """Try to become or stay the one process with this name, for ``seconds`` after each call."""
        sql = (
            "insert into heartbeats (name, said_at, note) values (:name, :now, :note) on conflict (name) do update set"
            " said_at = excluded.said_at, note = excluded.note"
            " where heartbeats.note = excluded.note or heartbeats.said_at < :before"
        )
        now, note = self.now(), to_json({"process": process})
        return bool(self.database.change(sql, name=name, now=now, note=note, before=now - round(1000 * seconds)))

    def refresh_app(self, app: App) -> AppInfo:
        """Ask GitHub about the App, and store the answer for all processes. Raises ForgeError, WorldError."""
        try:
            info = app.about()
        except Unauthorised as error:
            self.store(APP_HEARTBEAT, {**self.get(APP_HEARTBEAT)[1], "fault": str(error)})
            raise
        self.store(APP_HEARTBEAT, {"slug": info.slug, "ahead": round(info.ahead), "fault": ""})
        return info

    def purge(self, before: Instant) -> None:
        """Delete the notes of workers that are gone."""
        self.database.change(
            "delete from heartbeats where name like :workers and said_at < :before",
            workers=f"{WORKER_PREFIX}%",
            before=before,
        )


def live_workers(notes: LastNotes, now: Instant) -> list[Note]:
    """Return the last notes of the live workers."""
    return [
        note
        for name, (at, note) in sorted(notes.items())
        if name.startswith(WORKER_PREFIX) and now - at <= WORKER_TIMEOUT
    ]
