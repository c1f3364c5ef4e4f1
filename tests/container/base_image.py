"""A local `python:3.13-slim` for machines that cannot pull it: debootstrap's Debian and this machine's Python 3.13.

Like the official one it has no documentation, translations, debugging symbols, tests or package lists, so that
measurements of our image hold for both. What the machine needs to reach its package registries (certificates, pip's
configuration) goes in here, so that our Dockerfile need not know about it.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

NAME = "docker.io/library/python:3.13-slim"
LABEL = "precedent.base-image"
VERSION = "2"
"""The version of this module's image, stored as a label: an image of another version is built again."""

SUITE = "trixie"
LIBRARIES = (
    *("ca-certificates", "netbase", "tzdata", "libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libncursesw6"),
    *("libreadline8t64", "libsqlite3-0", "libssl3t64", "libuuid1", "zlib1g"),
)
LEFT_OUT = """\
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/groff/*
path-exclude /usr/share/info/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
"""
"""What the slim images of Debian tell dpkg not to install."""

SLIMMED = """\
find /usr/share/doc -type f ! -name copyright -delete
rm -rf /usr/share/groff/* /usr/share/info/* /usr/share/lintian/* /usr/share/locale/* /usr/share/man/*
rm -rf /var/cache/apt/archives/*.deb /var/cache/apt/*.bin /var/lib/apt/lists/* /var/log/* /var/cache/ldconfig/*
ldconfig
python -m ensurepip
ln -sf pip3 /usr/local/bin/pip
find /usr/local -depth -type d -name __pycache__ -exec rm -rf {} +
"""
MACHINE_FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


class PartMissing(Exception):
    """This machine lacks something that the container tests need; the message says what to install."""


def run(command: Sequence[str | Path], timeout: float = 600) -> str:
    """The output of a program; raises PartMissing when there is no such program, AssertionError when it fails."""
    try:
        result = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False
        )
    except FileNotFoundError:
        raise PartMissing(
            f"{command[0]} is not here: apt-get install buildah podman runc debootstrap binutils"
        ) from None
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def find_python() -> Path:
    """The prefix of a relocatable Python 3.13 on this machine: one with its own standard library."""
    candidates = [
        shutil.which("python3.13"),
        *sorted(map(str, Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13"))),
    ]
    for program in filter(None, candidates):
        probe = subprocess.run(
            [program, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=False
        )
        prefix = Path(probe.stdout.strip() or "/nowhere")
        if (prefix / "lib/python3.13/os.py").exists() and (prefix / "bin/python3.13").exists():
            return prefix
    raise PartMissing("no Python 3.13 is here to make the base image of, and there is no Docker to pull it")


def copy_python(prefix: Path, root: Path) -> None:
    """Put Python where the official image has it, without tests, bytecode and symbols, which that also leaves out."""
    for folder in ("bin", "lib"):
        (root / "usr/local" / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy2(prefix / "bin/python3.13", root / "usr/local/bin")
    for library in (prefix / "lib").glob("libpython3*.so*"):
        shutil.copy2(library, root / "usr/local/lib", follow_symlinks=False)
    left_out = shutil.ignore_patterns("__pycache__", "site-packages", "test", "tests", "idle_test", "libpython*.a")
    shutil.copytree(prefix / "lib/python3.13", root / "usr/local/lib/python3.13", ignore=left_out, symlinks=True)
    (root / "usr/local/lib/python3.13/site-packages").mkdir()
    shutil.copytree(prefix / "include", root / "usr/local/include", dirs_exist_ok=True)
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to("python3.13")
    compiled = [each for each in (root / "usr/local/lib").rglob("*.so*") if each.is_file() and not each.is_symlink()]
    run(["strip", "--strip-all", root / "usr/local/bin/python3.13", *compiled])


def exists() -> bool:
    """Whether the local storage has the official image, or the current one of this module."""
    if NAME not in run(["buildah", "images", "--format", "{{.Name}}:{{.Tag}}"]).split():
        return False
    config = run(["podman", "image", "inspect", "--format", "{{json .Config}}", NAME])
    return f'"{LABEL}":"{VERSION}"' in config or "PYTHON_VERSION=" in config


def build(folder: Path) -> None:
    """Build the image in the local storage; ``folder`` is scratch space of about 500 MB. Takes a minute or two."""
    root = folder / "root"
    prefix = find_python()
    run(["debootstrap", "--variant=minbase", f"--include={','.join(LIBRARIES)}", SUITE, root], timeout=1200)
    (root / "etc/dpkg/dpkg.cfg.d/docker").write_text(LEFT_OUT, encoding="ascii")
    copy_python(prefix, root)
    run(["env", "-i", f"PATH={PATH}", "chroot", root, "/bin/sh", "-e", "-c", SLIMMED])
    for file in filter(Path.exists, map(Path, MACHINE_FILES)):
        shutil.copy2(file, root / str(file).lstrip("/"))
    archive = folder / "root.tar"
    run(["tar", "-C", root, "-cf", archive, "."])
    container = run(["buildah", "from", "scratch"]).strip()
    run(["buildah", "add", "--quiet", container, archive, "/"])
    run(["buildah", "config", "--env", f"PATH={PATH}", "--label", f"{LABEL}={VERSION}", container])
    run(["buildah", "commit", "--quiet", "--rm", container, NAME])
