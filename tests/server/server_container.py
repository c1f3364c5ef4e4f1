"""The server in its image, run as deploy/compose.yml says, with a PostgreSQL server of the tests."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import yaml

from tests.container.engine import ROOT, ContainerResult, Engine
from tests.server.server_process import APP, ServerStage, until

COMPOSE = ROOT / "deploy" / "compose.yml"
IMAGE = "localhost/precedent-server:test"
PASSWORD = "correct horse battery staple"


def service(name: str) -> dict[str, Any]:
    definition: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"][name]
    return definition


class ContainerStage(ServerStage):
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
        """A service of the compose file as engine options. It uses this machine's network, so it gets its own port,
        and the fakes in place of GitHub."""
        definition = service(name)
        environ = dict(definition["environment"]) | {
            "PRECEDENT_APP_ID": str(APP),
            "PRECEDENT_API_URL": self.github.url,
            "PRECEDENT_SERVER_URL": self.git.url,
            "PRECEDENT_PORT": str(self.port),
        }
        limits = [f"--pids-limit={definition['pids_limit']}", f"--user={definition['user']}", "--network=host"]
        limits += ["--read-only"] * definition["read_only"]
        limits += [f"--cap-drop={each}" for each in definition["cap_drop"]]
        limits += [f"--security-opt={each.removesuffix(':true')}" for each in definition["security_opt"]]
        limits += [f"--tmpfs={each}" for each in definition["tmpfs"]]
        mounts = [f"--volume={each.replace('data:', f'{self.volume}:', 1)}" for each in definition["volumes"]]
        mounts += [f"--volume={self.folder / each}:/run/secrets/{each}:ro" for each in definition["secrets"]]
        return [*limits, *mounts, *(f"--env={name}={value}" for name, value in environ.items())]

    def start(self, workers: int = 1, *, wait: bool = True) -> None:
        command = service("bot")["command"]
        result = self.engine.do("run", "--detach", "--name", self.name, *self.options(), self.engine.image, *command)
        assert result.code == 0, result.output
        if wait:
            until(lambda: self.get("/status.json")[0] == 200, 90, self.log_text)

    def run_inside(self, *words: str) -> ContainerResult:
        """Run a command in the running container."""
        return self.engine.do("exec", self.name, *words)

    def is_healthy(self) -> bool:
        """The result of the compose file's health check, at our port."""
        kind, *words = service("bot")["healthcheck"]["test"]
        assert kind == "CMD"
        return self.run_inside(*(word.replace("8080", str(self.port)) for word in words)).code == 0

    def stop_gracefully(self) -> int:
        """Stop it as compose does. Returns its exit code, which is 137 if it had to be killed."""
        grace = service("bot")["stop_grace_period"].removesuffix("s")
        assert self.engine.do("stop", "--time", grace, self.name).code == 0
        return int(self.engine.do("inspect", "--format", "{{.State.ExitCode}}", self.name).output)

    def log_text(self) -> str:
        return self.engine.do("logs", self.name).output

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_text().splitlines() if line.startswith("{")]

    def close(self) -> None:
        self.engine.do("rm", "--force", self.name)
        self.engine.do("volume", "rm", "--force", self.volume)
        super().close()
