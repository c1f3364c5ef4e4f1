"""`precedent worker`: handles what a server elsewhere has received."""

from __future__ import annotations

import argparse
import json
import os
import sys

from bot.cli.commands.serve import server_flags, server_libraries
from bot.cli.output import CommandResult
from bot.server.options import WORKER_NAME, WORKING, forget_secrets, read_options


def run_worker(given: argparse.Namespace) -> CommandResult:
    """Work until a signal. Never returns: the process ends with whatever still runs in it."""
    sent: dict[str, str] = json.load(sys.stdin) if given.parent else {}
    name = sent.pop(WORKER_NAME, "")
    options = read_options(sent or os.environ, server_flags(given), WORKING)
    forget_secrets(os.environ)
    with server_libraries():
        from bot.server import processes
        from bot.server.dispatch import work_on
    processes.work(options, work_on, given.parent, name, given.alive)
