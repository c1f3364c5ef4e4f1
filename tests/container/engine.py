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
GIVEN = "PRECEDENT_TEST_IMAGE"
"""The environment variable that names an image which is tested in place of one that is built here: a release's."""

CONTAINERS_CONF = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
netns = "host"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
"""
"""What podman needs on a machine without systemd, itself often a container."""


@dataclass(frozen=True)
class Ended:
    """A program in the container that has ended. ``said`` is stdout and stderr, as a runner shows them."""

    code: int
    said: str


def has_docker() -> bool:
    """Whether a Docker engine answers; its client alone is none."""
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=30, check=False).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


class Engine:
    """Builds our image once, and runs it. ``built_with`` are arguments of the build, for an image of another name.

    Where the environment names an image, our own is not built: that one is run.
    """

    def __init__(self, scratch: Path, image: str = IMAGE, built_with: Sequence[str] = ()) -> None:
        self._is_given = image == IMAGE and bool(os.environ.get(GIVEN))
        self.image = os.environ[GIVEN] if self._is_given else image
        self._built_with = [part for each in built_with for part in ("--build-arg", each)]
        self._docker = has_docker()
        self._conf = scratch / "containers.conf"
        self._conf.write_text(CONTAINERS_CONF, encoding="utf-8")
        self._program = ["docker"] if self._docker else ["env", f"CONTAINERS_CONF={self._conf}", "podman"]

    def build(self) -> str:
        """Build the image from the checkout, unless one was given; its id."""
        if self._is_given:
            return self.inspect("{{.Id}}")
        if self._docker:
            run(["docker", "build", "--quiet", *self._built_with, "-t", self.image, ROOT], timeout=1800)
        else:
            self._have_base()
            options = ["--isolation", "chroot", "--network", "host", "--pull-never", "--layers"]
            run(["buildah", "bud", *options, *self._built_with, "-t", self.image, ROOT], timeout=1800)
        return self.inspect("{{.Id}}")

    def inspect(self, what: str) -> str:
        """A part of the image's description, by a Go template."""
        return run([*self._program, "image", "inspect", "--format", what, self.image]).strip()

    def run(self, *arguments: str, options: list[str] | None = None) -> Ended:
        """Run the image with these arguments; ``options`` go before its name."""
        return self._ended(self.command(*arguments, options=options))

    def command(self, *arguments: str, options: list[str] | None = None) -> list[str]:
        """What `run` starts."""
        return [*self._program, "run", "--rm", *(options or []), self.image, *arguments]

    def do(self, *words: str) -> Ended:
        """A command of the engine itself, such as ``exec``."""
        return self._ended([*self._program, *words])

    @staticmethod
    def _ended(command: Sequence[str]) -> Ended:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        noise = [line for line in (done.stdout + done.stderr).splitlines() if "level=warning" not in line]
        return Ended(done.returncode, "\n".join(noise))

    def shell(self, script: str) -> str:
        """What a shell script prints inside the image."""
        done = self.run("-c", script, options=["--network", "none", "--entrypoint", "/bin/sh"])
        assert done.code == 0, done.said
        return done.said

    def _have_base(self) -> None:
        if not base_image.is_made():
            with tempfile.TemporaryDirectory(prefix="base-image-") as scratch:
                base_image.build(Path(scratch))
