"""The server with runs that only wait: `python -m tests.server.stub_server serve`.

The issue's number selects how its run goes: below 100 it ends at once, 1xx takes xx tenths of a second, 200 waits until
the process is stopped and is then given back, 300 never ends.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path

from bot.cli.output import CommandResult
from bot.errors import PrecedentError
from bot.server import processes
from bot.server.dependencies import RunDependencies
from bot.server.model import Delivery, Lease, PendingWork, Result, RunReport
from bot.server.options import WORKER_NAME_KEY, WORKER_REQUIRED, forget_secrets, read_options
from bot.server.processes import spawn

RUNS = "runs.jsonl"


def run(lease: Lease, run: RunDependencies) -> None:
    """Run, and log to DATA/runs.jsonl: "begin" or "end", repository, issue numbers, process id."""
    file = run.options.data / RUNS
    if work := run.inbox.begin(lease):
        _record(file, "begin", work)
        run.inbox.end(work, [_result(run, each) for each in work.deliveries], RunReport())
        _record(file, "end", work)


def _result(run: RunDependencies, delivery: Delivery) -> Result:
    number = delivery.event.number or 0
    if 100 <= number < 200:
        time.sleep((number - 100) / 10)
    if number == 200:
        run.stop.wait()
        return Result(delivery.seq, "waiting", "the server stopped", run.inbox.now(), counts=False)
    while number == 300:
        time.sleep(1)
    return Result(delivery.seq, "done", "nothing related", said="silent")


def _record(file: Path, kind: str, work: PendingWork) -> None:
    record = [kind, work.repository.text, [each.event.number for each in work.deliveries], os.getpid()]
    with file.open("a", encoding="utf-8") as log:
        log.write(json.dumps(record) + "\n")


def main() -> int | CommandResult:
    if sys.argv[1] == "worker":
        parser = argparse.ArgumentParser()
        parser.add_argument("--parent", type=int, default=0)
        arguments = parser.parse_args(sys.argv[2:])
        environ = json.load(sys.stdin) if arguments.parent else dict(os.environ)
        name = environ.pop(WORKER_NAME_KEY, "")
        processes.work(read_options(environ, None, WORKER_REQUIRED), run, arguments.parent, name)
    options = read_options(os.environ)
    forget_secrets(os.environ)
    try:
        return processes.serve(options, partial(spawn, module="tests.server.stub_server"))
    except PrecedentError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
