"""The file system of the image: of Debian what Python, git and our libraries need, of Python what runs unattended.

python -I image_root.py FOLDER LIBRARIES

runs while the image is built, as root, where everything is installed. Debian's packages come whole, but for their
documentation and for those of which `PARTS` tells what is needed; a package is needed when a program or a library
that was taken links to a file of it. What was taken is told where a scanner looks for it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGES = ("base-files", "dash", "netbase", "tzdata")
"""What is needed and linked to by nothing. git has a shell start the other side of a repository that a path names."""

PARTS = {
    "coreutils": (r"usr/bin/(cat|env|id|ls|stat|touch)",),
    "git": (
        r"usr/bin/git(-(upload|receive)-pack)?",
        r"usr/lib/git-core/git-remote-https?",
        r"usr/share/git-core/templates",
    ),
    "openssl": (r"usr/lib/ssl/(certs|openssl\.cnf)",),
    "ca-certificates": (r"usr/share/ca-certificates/.*",),
}
LEFT_OUT = re.compile(
    r"usr/share/(?!doc/[^/]+/copyright$)(doc|man|locale|info|lintian|bug)/.*|usr/lib/[^/]*/gconv/.*|etc/update-motd\.d/.*"
)
SETTINGS = (
    *("passwd", "group", "nsswitch.conf", "os-release", "debian_version", "ca-certificates.conf", "ssl"),
    *("ld.so.conf", "ld.so.conf.d"),
)
"""In /etc, besides what the packages themselves bring."""

PYTHON = Path("usr/local/lib/python3.13")
NOT_OF_PYTHON = (
    *("config-*", "ensurepip", "idlelib", "pydoc_data", "site-packages", "test", "tkinter", "turtle*"),
    *("_tkinter.*.so", "_test*.so", "_ctypes_test.*.so", "xx*.so"),
)
STATUS = Path("var/lib/dpkg/status")


class Root:
    """What is copied from / into ``folder``, each file once, under the name that it has behind all links of folders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owners = dict(owned())
        self.packages: set[str] = set()

    def take(self, path: Path) -> None:
        """One file, link or empty folder, with what a link leads to."""
        path = path.parent.resolve() / path.name
        target = self._folder / path.relative_to("/")
        if os.path.lexists(target):
            return
        self._make_folder(path.parent)
        if path.is_symlink():
            target.symlink_to(path.readlink())
            if path.exists():
                self.take(path.resolve())
        elif path.is_dir():
            self._make_folder(path)
        elif path.exists():
            shutil.copy2(path, target)

    def take_package(self, name: str) -> None:
        """A Debian package, whole or the parts of it that are needed."""
        if name in self.packages:
            return
        self.packages.add(name)
        licence = Path("/usr/share/doc", name)  # often a link to that of another package
        self.take(licence)
        self.take(licence / "copyright")
        wanted = re.compile("|".join(PARTS.get(name, (".*",))))
        for path in listed(name):
            inside = str((path.parent.resolve() / path.name).relative_to("/"))
            if wanted.fullmatch(inside) and not LEFT_OUT.fullmatch(inside):
                self.take(path)

    def take_linked(self, programs: Iterable[Path]) -> None:
        """The packages of all libraries that these link to, and what those link to."""
        for library in sorted(set(linked(programs))):
            if library in self._owners:
                self.take_package(self._owners[library])

    def _make_folder(self, path: Path) -> None:
        target = self._folder / path.relative_to("/")
        if not target.exists():
            target.mkdir(parents=True)
            shutil.copystat(path, target)


def owned() -> Iterator[tuple[Path, str]]:
    """Each library of a Debian package, by the name behind all links, and the package."""
    for listing in Path("/var/lib/dpkg/info").glob("*.list"):
        name = listing.stem.split(":")[0]
        yield from ((path.resolve(), name) for path in listed(name) if ".so" in path.name)


def listed(package: str) -> list[Path]:
    told = subprocess.run(["dpkg-query", "--listfiles", package], check=True, capture_output=True, text=True).stdout
    return [Path(line) for line in told.splitlines() if line.startswith("/") and line != "/."]


def linked(programs: Iterable[Path]) -> Iterator[Path]:
    """What the loader would load for these; raises SystemExit for a library that is nowhere."""
    told = subprocess.run(["ldd", *map(str, programs)], check=False, capture_output=True, text=True).stdout
    if missing := re.findall(r"(\S+) => not found", told):
        raise SystemExit(f"libraries that are linked to and not installed: {' '.join(sorted(set(missing)))}")
    yield from (Path(found).resolve() for found in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", told, re.MULTILINE))


def is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def take_python(folder: Path) -> None:
    """The interpreter, and its library without what needs a screen, a network of its own or a test runner."""
    left_out = shutil.ignore_patterns(*NOT_OF_PYTHON)
    shutil.copytree(Path("/", PYTHON), folder / PYTHON, symlinks=True, ignore=left_out)
    (folder / PYTHON / "site-packages").mkdir()
    (folder / "usr/local/bin").mkdir(parents=True, exist_ok=True)
    for name in ("bin/python", "bin/python3", "bin/python3.13", *map(str, Path("/usr/local").glob("lib/libpython3*"))):
        place = Path("/usr/local", name)
        shutil.copy2(place, folder / place.relative_to("/"), follow_symlinks=False)


def write_status(folder: Path, packages: set[str]) -> None:
    """Tell what is installed, in Debian's own words, where scanners read it."""
    paragraphs = Path("/", STATUS).read_text(encoding="utf-8").split("\n\n")
    kept = [each for each in paragraphs if each.strip() and each.split("\n")[0].removeprefix("Package: ") in packages]
    (folder / STATUS).parent.mkdir(parents=True, exist_ok=True)
    (folder / STATUS).write_text("\n\n".join(kept) + "\n", encoding="utf-8")


def main() -> None:
    folder, libraries = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    root = Root(folder)
    for link in filter(Path.is_symlink, Path("/").iterdir()):
        root.take(link)
    for package in (*PACKAGES, *PARTS):
        root.take_package(package)
    for name in SETTINGS:
        place = Path("/etc", name)
        for path in (place, *place.rglob("*")):
            root.take(path)
    take_python(folder)
    before = -1
    while before != len(root.packages):
        before = len(root.packages)
        root.take_linked(filter(is_program, (*folder.rglob("*"), *libraries.rglob("*"))))
    subprocess.run(["ldconfig", "-r", str(folder)], check=True)
    write_status(folder, root.packages)
    print("Debian's packages:", *sorted(root.packages))


if __name__ == "__main__":
    main()
