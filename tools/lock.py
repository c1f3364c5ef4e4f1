"""Pins what pyproject.toml asks for, with hashes, for every platform and Python that we support: `make lock`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGE = ["pyproject.toml", "--extra=semantic"]
"""What every image has: the tokenizer of the text model, too."""

LOCKS = {
    "requirements.lock": IMAGE,
    "requirements-server.lock": [*IMAGE, "--extra=server"],
    "requirements-org.lock": [*IMAGE, "--extra=server", "--extra=org"],
    "requirements-dev.lock": ["pyproject.toml", "--extra=dev"],
    "requirements-checks.lock": ["--group=checks"],
}
OPTIONS = (
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-strip-extras",
    "--no-annotate",
    "--no-header",
)
HEADER = "# Made by `make lock` from pyproject.toml; not edited by hand.\n"


def write(name: str, requirements: list[str], options: list[str]) -> None:
    """Resolve ``requirements`` into the file ``name``; without ``--upgrade``, versions in it are kept."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run(
        [uv, "pip", "compile", "--quiet", *OPTIONS, *options, *requirements, "-o", name], cwd=ROOT, check=True
    )
    target = ROOT / name
    target.write_text(HEADER + target.read_text(encoding="utf-8"), encoding="utf-8")


def main() -> None:
    """Write all lock files; the arguments go to the resolver."""
    for name, requirements in LOCKS.items():
        write(name, requirements, sys.argv[1:])


if __name__ == "__main__":
    main()
