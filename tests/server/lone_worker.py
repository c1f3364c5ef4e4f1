"""A worker of nothing but the queue, to be killed: python -m tests.server.lone_worker URL FOLDER NAME MODE.

It leases what there is to do, and notes in FOLDER/log what it does, a JSON list a line. With the MODE
"work" it does each delivery in a tenth of a second; with "hang" it begins, and never ends.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from pathlib import Path

from bot.server.database import Database
from bot.server.database import machine_clock as clock
from bot.server.inbox import Inbox
from bot.server.model import Lease, PendingWork, Result, RunReport
from bot.server.worker import Worker, WorkerExit

SECONDS = 0.1
FAILS = 23
"""Each delivery of an issue with a number that this divides fails once."""


class Diary:
    """Lines in a file that several processes write to."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", buffering=1, encoding="utf-8")

    def note(self, *words: object) -> None:
        self.file.write(json.dumps([time.time(), os.getpid(), *words]) + "\n")


def results(work: PendingWork) -> list[Result]:
    found = []
    for each in work.deliveries:
        again = (each.event.number or 0) % FAILS == 0 and not each.attempts
        found.append(
            Result(each.seq, "waiting", "the world failed", next_at=clock() + random.randint(100, 900))
            if again
            else Result(each.seq, "done", "")
        )
    return found


def work(url: str, folder: Path, name: str, mode: str) -> int:
    database, diary = Database(url), Diary(folder / "log")
    inbox = Inbox(database, name, clock)

    def run(lease: Lease) -> None:
        begun = inbox.begin(lease)
        if begun is None:
            return
        seqs = [each.seq for each in begun.deliveries]
        diary.note("begin", lease.key, seqs, [each.attempts for each in begun.deliveries])
        time.sleep(SECONDS)
        if mode == "hang":
            threading.Event().wait(600)
        diary.note("end", lease.key, seqs, [each.attempts for each in begun.deliveries])
        inbox.end(begun, results(begun), RunReport())

    diary.note("up", name)
    try:
        Worker(inbox, run, threading.Event(), jobs=8).run_until_stopped()
    except WorkerExit as error:
        diary.note("lost its place", name)
        os._exit(error.code)
    return 0


if __name__ == "__main__":
    sys.exit(work(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
