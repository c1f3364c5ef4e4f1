"""Runs commands from a small separate process and measures them.

A process inherits the peak memory of the one that starts it, so a benchmark with an archive in memory must not start
what it measures. Create the `Launcher` before anything is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of one command, and the peak memory in MB of it and all its children."""

    seconds: float
    peak_mb: float


class Launcher:
    """A process that runs commands one after another."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Measured:
        """Run a command to its end. Raises SystemExit with the log if it fails."""
        request = {"command": list(command), "env": dict(environment), "cwd": str(cwd)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        result = json.loads(self._process.stdout.readline())
        if result["code"]:
            raise SystemExit(f"{command} failed:\n{result['log']}")
        return Measured(result["seconds"], result["peak_kb"] / 1024)

    def close(self) -> None:
        self._process.communicate("")


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as log:
            started = time.perf_counter()
            process = subprocess.Popen(
                request["command"], env=request["env"], cwd=request["cwd"], stdout=log, stderr=log
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            result = {"code": process.returncode, "seconds": seconds, "peak_kb": usage.ru_maxrss}
            print(json.dumps(result | {"log": log.read().decode(errors="replace")}), flush=True)


if __name__ == "__main__":
    serve()
