"""A worker for the queue alone, to be killed: python -m tests.server.lone_worker URL FOLDER NAME MODE.

It leases what is due, and logs what it does to FOLDER/log, one JSON list per line. In the MODE "work" a run takes a
tenth of a second; in "hang" it begins and never ends.
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
"""Deliveries about issues whose number is a multiple of this fail once."""


class EventLog:
    """A log file that several processes append to."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", buffering=1, encoding="utf-8")

    def write(self, *words: object) -> None:
        self.file.write(json.dumps([time.time(), os.getpid(), *words]) + "\n")


def results(work: PendingWork) -> list[Result]:
    all_results = []
    for each in work.deliveries:
        is_retried = (each.event.number or 0) % FAILS == 0 and not each.attempts
        all_results.append(
            Result(each.seq, "waiting", "the world failed", next_at=clock() + random.randint(100, 900))
            if is_retried
            else Result(each.seq, "done", "")
        )
    return all_results


def work(url: str, folder: Path, name: str, mode: str) -> int:
    database, event_log = Database(url), EventLog(folder / "log")
    inbox = Inbox(database, name, clock)

    def run(lease: Lease) -> None:
        pending = inbox.begin(lease)
        if pending is None:
            return
        seqs = [each.seq for each in pending.deliveries]
        event_log.write("begin", lease.key, seqs, [each.attempts for each in pending.deliveries])
        time.sleep(SECONDS)
        if mode == "hang":
            threading.Event().wait(600)
        event_log.write("end", lease.key, seqs, [each.attempts for each in pending.deliveries])
        inbox.end(pending, results(pending), RunReport())

    event_log.write("up", name)
    try:
        Worker(inbox, run, threading.Event(), jobs=8).run_until_stopped()
    except WorkerExit as error:
        event_log.write("lost its place", name)
        os._exit(error.code)
    return 0


if __name__ == "__main__":
    sys.exit(work(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
