"""Runs pytest in this folder repeatedly, each time in a fork that has loaded the libraries but none of our code.

Reads a JSON list of arguments from each line; answers with the exit code and the output, as one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

LIBRARIES = ("pytest", "hypothesis", "yaml", "jinja2", "openapi_core", "graphql", "mcp.server", "sqlalchemy", "psycopg")
"""The libraries that take longest to load."""

SECONDS = 600


def run(arguments: list[str]) -> tuple[int, str]:
    with tempfile.TemporaryFile() as output:
        if not (child := os.fork()):
            signal.alarm(SECONDS)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            code = importlib.import_module("pytest").main(arguments)
            sys.stdout.flush()
            os._exit(int(code))
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode()


def main() -> None:
    sys.path[0] = str(Path.cwd())
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
