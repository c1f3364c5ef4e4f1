"""``python -m tests.upgrades.save_branch NAME [CHECKOUT]`` saves the branch that the program of a checkout (default:
this one) writes; ``--shape`` notes the current shape of the branch that this program writes."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.upgrades import complete_branch, shape

HERE = Path(__file__).parent
BRANCHES = HERE / "branches"
ROOT = HERE.parents[1]
LARGEST = 150_000
"""Bytes of one bundle: each release adds one."""


PORT = "42917"
"""Of the git server of a kept branch, so that the links in its comments are the same each time."""


def play_story(checkout: Path, folder: Path, port: str = "0") -> None:
    """Play the story with the program of this checkout in a separate process; the results are in ``folder``."""
    command = [sys.executable, str(HERE / "story.py"), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1", "STORY_PORT": port}
    finished = subprocess.run(command, cwd=checkout, env=environment, check=False, capture_output=True, text=True)
    if finished.returncode:
        raise SystemExit(f"the story came to no end:\n{finished.stdout}{finished.stderr}")


def keep_branch(name: str, folder: Path) -> None:
    """Store the results of the story with the branches of other releases."""
    bundle = (folder / "branch.bundle").read_bytes()
    if len(bundle) > LARGEST:
        raise SystemExit(f"the bundle has {len(bundle):,} bytes: more than {LARGEST:,} are too many to keep")
    (BRANCHES / f"{name}.bundle").write_bytes(bundle)
    forge = gzip.compress((folder / "forge.json").read_bytes(), 9, mtime=0)
    (BRANCHES / f"{name}.forge.json.gz").write_bytes(forge)
    print(f"{name}: a branch of {len(bundle):,} bytes, a forge of {len(forge):,}")


def main(arguments: list[str]) -> int:
    """Do what the arguments ask for."""
    with tempfile.TemporaryDirectory() as folder:
        if arguments == ["--shape"]:
            play_story(ROOT, Path(folder))
            everything = shape.of_files(complete_branch.files(Path(folder) / "store"))
            shape.note(everything, shape.of_bundle(Path(folder) / "branch.bundle"))
        elif arguments and not arguments[0].startswith("-") and len(arguments) < 3:
            play_story(Path(arguments[1]).resolve() if arguments[1:] else ROOT, Path(folder), PORT)
            keep_branch(arguments[0], Path(folder))
        else:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
