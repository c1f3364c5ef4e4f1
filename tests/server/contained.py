"""The server in its image, run with what deploy/compose.yml says of it, beside a PostgreSQL server of the tests."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import yaml

from tests.container.engine import ROOT, Ended, Engine
from tests.server.stage import APP, ServerStage, until

COMPOSE = ROOT / "deploy" / "compose.yml"
IMAGE = "localhost/precedent-server:test"
PASSWORD = "correct horse battery staple"


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"][name]
    return found


class Contained(ServerStage):
    """A stage whose server runs in a container. ``database`` is reached over the network of this machine."""

    def __init__(self, folder: Path, engine: Engine, database: str) -> None:
        super().__init__(folder, database=database)
        self.engine = engine
        self.name = f"precedent-{uuid.uuid4().hex[:8]}"
        self.volume = f"{self.name}-data"
        self.secrets |= {"status-password": PASSWORD, "database-url": database}
        for name, value in self.secrets.items():
            (folder / name).write_text(value, encoding="utf-8")
            (folder / name).chmod(0o444)

    def options(self, name: str = "bot") -> list[str]:
        """What the compose file says of a service, as options of an engine. The network is this machine's, so that
        a port of our own is told, and the fakes in place of GitHub."""
        said = service(name)
        environ = dict(said["environment"]) | {
            "PRECEDENT_APP_ID": str(APP),
            "PRECEDENT_API_URL": self.github.url,
            "PRECEDENT_SERVER_URL": self.git.url,
            "PRECEDENT_PORT": str(self.port),
        }
        limits = [f"--pids-limit={said['pids_limit']}", f"--user={said['user']}", "--network=host"]
        limits += ["--read-only"] * said["read_only"]
        limits += [f"--cap-drop={each}" for each in said["cap_drop"]]
        limits += [f"--security-opt={each.removesuffix(':true')}" for each in said["security_opt"]]
        limits += [f"--tmpfs={each}" for each in said["tmpfs"]]
        mounts = [f"--volume={each.replace('data:', f'{self.volume}:', 1)}" for each in said["volumes"]]
        mounts += [f"--volume={self.folder / each}:/run/secrets/{each}:ro" for each in said["secrets"]]
        return [*limits, *mounts, *(f"--env={name}={value}" for name, value in environ.items())]

    def start(self, workers: int = 1, *, wait: bool = True) -> None:
        command = service("bot")["command"]
        ran = self.engine.do("run", "--detach", "--name", self.name, *self.options(), self.engine.image, *command)
        assert ran.code == 0, ran.said
        if wait:
            until(lambda: self.get("/status.json")[0] == 200, 90, self.told)

    def inside(self, *words: str) -> Ended:
        """A command in the container that runs."""
        return self.engine.do("exec", self.name, *words)

    def is_healthy(self) -> bool:
        """What the compose file's own health check says, at our port."""
        kind, *words = service("bot")["healthcheck"]["test"]
        assert kind == "CMD"
        return self.inside(*(word.replace("8080", str(self.port)) for word in words)).code == 0

    def halted(self) -> tuple[int, float]:
        """Stop it as compose does; its exit code, and the seconds that it took."""
        began = time.monotonic()
        grace = service("bot")["stop_grace_period"].removesuffix("s")
        assert self.engine.do("stop", "--time", grace, self.name).code == 0
        took = time.monotonic() - began
        return int(self.engine.do("inspect", "--format", "{{.State.ExitCode}}", self.name).said), took

    def told(self) -> str:
        return self.engine.do("logs", self.name).said

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.told().splitlines() if line.startswith("{")]

    def close(self) -> None:
        self.engine.do("rm", "--force", self.name)
        self.engine.do("volume", "rm", "--force", self.volume)
        super().close()
