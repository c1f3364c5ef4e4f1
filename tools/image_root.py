"""Makes the file system of the image: the parts of Debian and Python that Python, git and our libraries need.

python -I image_root.py FOLDER LIBRARIES

runs during the build, as root, where everything is installed. Debian's packages are copied whole, except for their
documentation, and except those for which `PARTS` lists the needed parts. A package is needed if a copied program or
library links to one of its files. The copied packages are listed where a scanner looks for them.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGES = ("base-files", "dash", "netbase", "tzdata")
"""Needed although nothing links to them. For a repository given as a path, git has a shell start the other side."""

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
"""In /etc, besides the packages' own files."""

PYTHON = Path("usr/local/lib/python3.13")
NOT_OF_PYTHON = (
    *("config-*", "ensurepip", "idlelib", "pydoc_data", "site-packages", "test", "tkinter", "turtle*"),
    *("_tkinter.*.so", "_test*.so", "_ctypes_test.*.so", "xx*.so"),
)
STATUS = Path("var/lib/dpkg/status")


class Root:
    """Copies from / into ``folder``, each file once, under its path with all links of folders resolved."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owners = dict(library_owners())
        self.packages: set[str] = set()

    def take(self, path: Path) -> None:
        """Copy one file, link or empty folder, with the target of a link."""
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
        """Copy a Debian package, whole or only the needed parts."""
        if name in self.packages:
            return
        self.packages.add(name)
        licence = Path("/usr/share/doc", name)  # often a link to another package's
        self.take(licence)
        self.take(licence / "copyright")
        needed = re.compile("|".join(PARTS.get(name, (".*",))))
        for path in files_of(name):
            inside = str((path.parent.resolve() / path.name).relative_to("/"))
            if needed.fullmatch(inside) and not LEFT_OUT.fullmatch(inside):
                self.take(path)

    def take_linked(self, programs: Iterable[Path]) -> None:
        """Copy the packages of all libraries that these programs link to, directly or not."""
        for library in sorted(set(linked_libraries(programs))):
            if library in self._owners:
                self.take_package(self._owners[library])

    def _make_folder(self, path: Path) -> None:
        target = self._folder / path.relative_to("/")
        if not target.exists():
            target.mkdir(parents=True)
            shutil.copystat(path, target)


def library_owners() -> Iterator[tuple[Path, str]]:
    """Each library of a Debian package, by its resolved path, and the package."""
    for listing in Path("/var/lib/dpkg/info").glob("*.list"):
        name = listing.stem.split(":")[0]
        yield from ((path.resolve(), name) for path in files_of(name) if ".so" in path.name)


def files_of(package: str) -> list[Path]:
    output = subprocess.run(["dpkg-query", "--listfiles", package], check=True, capture_output=True, text=True).stdout
    return [Path(line) for line in output.splitlines() if line.startswith("/") and line != "/."]


def linked_libraries(programs: Iterable[Path]) -> Iterator[Path]:
    """The libraries that the loader would load for these. Raises SystemExit if one is missing."""
    output = subprocess.run(["ldd", *map(str, programs)], check=False, capture_output=True, text=True).stdout
    if missing := re.findall(r"(\S+) => not found", output):
        raise SystemExit(f"libraries that are linked to and not installed: {' '.join(sorted(set(missing)))}")
    yield from (Path(library).resolve() for library in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", output, re.MULTILINE))


def is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def take_python(folder: Path) -> None:
    """The interpreter and its library, without what needs a screen, an installer or a test runner."""
    left_out = shutil.ignore_patterns(*NOT_OF_PYTHON)
    shutil.copytree(Path("/", PYTHON), folder / PYTHON, symlinks=True, ignore=left_out)
    (folder / PYTHON / "site-packages").mkdir()
    (folder / "usr/local/bin").mkdir(parents=True, exist_ok=True)
    for name in ("bin/python", "bin/python3", "bin/python3.13", *map(str, Path("/usr/local").glob("lib/libpython3*"))):
        path = Path("/usr/local", name)
        shutil.copy2(path, folder / path.relative_to("/"), follow_symlinks=False)


def write_status(folder: Path, packages: set[str]) -> None:
    """List the installed packages as Debian does, where scanners read them."""
    paragraphs = Path("/", STATUS).read_text(encoding="utf-8").split("\n\n")
    installed = [
        each for each in paragraphs if each.strip() and each.split("\n")[0].removeprefix("Package: ") in packages
    ]
    (folder / STATUS).parent.mkdir(parents=True, exist_ok=True)
    (folder / STATUS).write_text("\n\n".join(installed) + "\n", encoding="utf-8")


def main() -> None:
    folder, libraries = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    root = Root(folder)
    for link in filter(Path.is_symlink, Path("/").iterdir()):
        root.take(link)
    for package in (*PACKAGES, *PARTS):
        root.take_package(package)
    for name in SETTINGS:
        setting = Path("/etc", name)
        for path in (setting, *setting.rglob("*")):
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
