"""A separate network for containers, from which only two servers of this machine can be reached.

A container without a network holds the loopback address, and ours share it. That works with every engine, without
rights to change the machine's network. The ports are the servers' own, so that their addresses are valid inside too.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.container.bridge import Bridge
from tests.container.engine import Engine

SCRIPT = Path(__file__).with_name("bridge.py")
START_TIMEOUT = 30


class IsolatedNetwork:
    """Use as a context manager; ``options`` are for the containers that run in it. ``folder`` has a short name."""

    def __init__(self, engine: Engine, folder: Path, *urls: str) -> None:
        self._engine = engine
        self._name = f"precedent-{uuid.uuid4().hex[:8]}"
        self._ports = [urlsplit(url).port or 80 for url in urls]
        self._folder = folder
        self._bridges: list[Bridge] = []
        self.options = ["--network", f"container:{self._name}"]

    def __enter__(self) -> Self:
        self._bridges = [Bridge(self._folder / f"{port}", port) for port in self._ports]
        arguments = [word for port in self._ports for word in (str(port), f"/bridge/{port}")]
        mounts = ["-v", f"{self._folder}:/bridge", "-v", f"{SCRIPT}:/bridge.py:ro"]
        python = ["--entrypoint", "/opt/precedent/bin/python", self._engine.image, "-I", "/bridge.py"]
        result = self._engine.do("run", "-d", "--name", self._name, "--network", "none", *mounts, *python, *arguments)
        assert result.code == 0, result.output
        deadline = time.monotonic() + START_TIMEOUT
        while "ready" not in self._engine.do("logs", self._name).output:
            assert time.monotonic() < deadline, self._engine.do("logs", self._name).output
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.do("kill", self._name)
        self._engine.do("rm", self._name)
        for bridge in self._bridges:
            bridge.close()
