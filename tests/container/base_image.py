"""A local `python:3.13-slim` for machines that cannot pull it: debootstrap's Debian and this machine's Python 3.13.

What the machine needs to reach its package registries (certificates, pip's configuration) goes in here, so that our
Dockerfile needs to know nothing of it.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

NAME = "docker.io/library/python:3.13-slim"
SUITE = "bookworm"
LIBRARIES = (
    *("ca-certificates", "libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libncursesw6", "libreadline8"),
    *("libsqlite3-0", "libssl3", "libuuid1", "zlib1g"),
)
MACHINE_FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


class PartMissing(Exception):
    """This machine lacks something that the container tests need; the message says what to install."""


def run(command: Sequence[str | Path], timeout: float = 600) -> str:
    """The output of a program; raises PartMissing when there is no such program, AssertionError when it fails."""
    try:
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False
        )
    except FileNotFoundError:
        raise PartMissing(f"{command[0]} is not here: apt-get install buildah podman runc debootstrap") from None
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def find_python() -> Path:
    """The prefix of a Python 3.13 of this machine that can be moved: it brings its own standard library."""
    found = [shutil.which("python3.13"), *sorted(map(str, Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13")))]
    for program in filter(None, found):
        asked = subprocess.run(
            [program, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=False
        )
        prefix = Path(asked.stdout.strip() or "/nowhere")
        if (prefix / "lib/python3.13/os.py").exists() and (prefix / "bin/python3.13").exists():
            return prefix
    raise PartMissing("no Python 3.13 is here to make the base image of, and there is no Docker to pull it")


def copy_python(prefix: Path, root: Path) -> None:
    """Put Python where the official image has it, without what that leaves out: its tests and all bytecode."""
    for folder in ("bin", "lib"):
        (root / "usr/local" / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy2(prefix / "bin/python3.13", root / "usr/local/bin")
    for library in (prefix / "lib").glob("libpython3*.so*"):
        shutil.copy2(library, root / "usr/local/lib")
    left_out = shutil.ignore_patterns("__pycache__", "site-packages", "test", "config-*")
    shutil.copytree(prefix / "lib/python3.13", root / "usr/local/lib/python3.13", ignore=left_out, symlinks=True)
    (root / "usr/local/lib/python3.13/site-packages").mkdir()
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to("python3.13")


def build(folder: Path) -> None:
    """Make the image in the local storage; ``folder`` is scratch space of about 500 MB. Takes a minute or two."""
    root = folder / "root"
    prefix = find_python()
    run(["debootstrap", "--variant=minbase", f"--include={','.join(LIBRARIES)}", SUITE, root], timeout=1200)
    copy_python(prefix, root)
    inside = "ldconfig && python -m ensurepip && ln -sf pip3 /usr/local/bin/pip"
    run(["env", "-i", f"PATH={PATH}", "chroot", root, "/bin/sh", "-c", inside])
    for file in filter(Path.exists, map(Path, MACHINE_FILES)):
        shutil.copy2(file, root / str(file).lstrip("/"))
    archive = folder / "root.tar"
    run(["tar", "-C", root, "-cf", archive, "."])
    container = run(["buildah", "from", "scratch"]).strip()
    run(["buildah", "add", "--quiet", container, archive, "/"])
    run(["buildah", "config", "--env", f"PATH={PATH}", container])
    run(["buildah", "commit", "--quiet", "--rm", container, NAME])
