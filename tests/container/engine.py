"""Building and running the image: with Docker where it runs, else with buildah and podman."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.container import base_image
from tests.container.base_image import run

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/precedent:test"
IMAGE_VARIABLE = "PRECEDENT_TEST_IMAGE"
"""The environment variable that names an image, such as a release's, to test instead of building one here."""

CONTAINERS_CONF = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
netns = "host"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
"""
"""What podman needs on a machine without systemd, which is often a container itself."""


@dataclass(frozen=True)
class ContainerResult:
    """A program in the container that has ended. ``output`` is stdout and stderr, as a runner shows them."""

    code: int
    output: str


def has_docker() -> bool:
    """Whether a Docker engine answers; a client alone is not enough."""
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=30, check=False).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


class Engine:
    """Builds our image once, and runs it. ``build_arguments`` are for an image with another name.

    If the environment names an image, that one is run and none is built.
    """

    def __init__(self, scratch: Path, image: str = IMAGE, build_arguments: Sequence[str] = ()) -> None:
        self._is_prebuilt = image == IMAGE and bool(os.environ.get(IMAGE_VARIABLE))
        self.image = os.environ[IMAGE_VARIABLE] if self._is_prebuilt else image
        self._build_arguments = [part for argument in build_arguments for part in ("--build-arg", argument)]
        self._docker = has_docker()
        self._conf = scratch / "containers.conf"
        self._conf.write_text(CONTAINERS_CONF, encoding="utf-8")
        self._program = ["docker"] if self._docker else ["env", f"CONTAINERS_CONF={self._conf}", "podman"]

    def build(self) -> str:
        """Build the image from the checkout, unless one was given. Returns its id."""
        if self._is_prebuilt:
            return self.inspect("{{.Id}}")
        if self._docker:
            run(["docker", "build", "--quiet", *self._build_arguments, "-t", self.image, ROOT], timeout=1800)
        else:
            self._ensure_base_image()
            options = ["--isolation", "chroot", "--network", "host", "--pull-never", "--layers"]
            run(["buildah", "bud", *options, *self._build_arguments, "-t", self.image, ROOT], timeout=1800)
        return self.inspect("{{.Id}}")

    def inspect(self, what: str) -> str:
        """A part of the image's description, selected by a Go template."""
        return run([*self._program, "image", "inspect", "--format", what, self.image]).strip()

    def run(self, *arguments: str, options: list[str] | None = None) -> ContainerResult:
        """Run the image with these arguments; ``options`` go before its name."""
        return self._run_command(self.command(*arguments, options=options))

    def command(self, *arguments: str, options: list[str] | None = None) -> list[str]:
        """The command that `run` starts."""
        return [*self._program, "run", "--rm", *(options or []), self.image, *arguments]

    def do(self, *words: str) -> ContainerResult:
        """A command of the engine itself, such as ``exec``."""
        return self._run_command([*self._program, *words])

    @staticmethod
    def _run_command(command: Sequence[str]) -> ContainerResult:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "level=warning" not in line]
        return ContainerResult(done.returncode, "\n".join(lines))

    def shell(self, script: str) -> str:
        """What a shell script prints inside the image."""
        done = self.run("-c", script, options=["--network", "none", "--entrypoint", "/bin/sh"])
        assert done.code == 0, done.output
        return done.output

    def _ensure_base_image(self) -> None:
        if not base_image.exists():
            with tempfile.TemporaryDirectory(prefix="base-image-") as scratch:
                base_image.build(Path(scratch))
