"""The parts of a release that are more than one command: `python3 -m tools.release check|tag|move|notes …`.

A release is a commit on no branch, on top of the one that was built: its action.yml names the image by digest. The
same release gives the same commit, so a second run finds what the first one left. See docs/upgrades.md.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.address import address

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")
IMAGE = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
BUILT_HERE = "  image: Dockerfile\n"
NAMED = re.compile(r"^  image: docker://(?P<image>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})\n", re.MULTILINE)
BOT = ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")
MAIN = "refs/heads/main"


class ReleaseError(Exception):
    """Why there is no release, in one line that says what to do."""


def image_name(registry: str, repository: str) -> str:
    """The image of a repository, in lower case as registries require."""
    name = f"{registry}/{repository}".lower()
    if not registry:
        raise ReleaseError("set the repository variable IMAGE_REGISTRY to the host of the registry")
    if not IMAGE.fullmatch(name):
        raise ReleaseError(f"{name!r} is not the name of an image: check the repository variable IMAGE_REGISTRY")
    return name


def notes(changelog: str, version: str) -> str:
    """The section of the changelog about a version."""
    parts = re.split(r"^## (.+)\n", changelog, flags=re.MULTILINE)
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        if heading.split()[0] == version and body.strip():
            return str(body.strip()) + "\n"
    raise ReleaseError(f"CHANGELOG.md has nothing below '## {version}': write what changes for users")


def check(root: Path, version: str, repository: str, ref: str = MAIN) -> None:
    """Check the version against the code and the changelog, and the address; raises the first mistake."""
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is not a version: write three numbers with dots, without a v")
    if ref != MAIN:
        raise ReleaseError(f"a release is made of main, not of {ref}: start the workflow there")
    if (current_address := address(root)).lower() != repository.lower():
        raise ReleaseError(f"the pages name {current_address}: run make address REPOSITORY={repository} on main first")
    code = (root / "bot" / "__init__.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"\n' not in code:
        raise ReleaseError(f"bot/__init__.py does not say {version}: change it on main first")
    notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    pinned(git(root, "show", "HEAD:action.yml"), "example.org/any/image", f"sha256:{'0' * 64}")


def pinned(action: str, image: str, digest: str) -> str:
    """The text of action.yml that names the image by its digest."""
    if not IMAGE.fullmatch(image) or not DIGEST.fullmatch(digest):
        raise ReleaseError(f"'{image}@{digest}' names no image by its digest")
    if action.count(BUILT_HERE) != 1:
        raise ReleaseError("action.yml does not have the line 'image: Dockerfile' once: correct it on main")
    return action.replace(BUILT_HERE, f"  image: docker://{image}@{digest}\n")


def git(root: Path, *arguments: str, input_: str = "", environ: Mapping[str, str] | None = None) -> str:
    """What a git command prints. Raises ReleaseError with its last line if it fails."""
    command = ["git", "-C", str(root), *arguments]
    result = subprocess.run(
        command, input=input_, capture_output=True, text=True, check=False, env={**os.environ, **(environ or {})}
    )
    if result.returncode:
        reason = next(iter(result.stderr.strip().splitlines()[-1:]), "it said nothing")
        raise ReleaseError(f"git {arguments[0]}: {reason}")
    return result.stdout


def commit(root: Path, version: str, image: str, digest: str) -> str:
    """The release's commit on top of HEAD, the same for the same release; the working copy is not changed."""
    action = pinned(git(root, "show", "HEAD:action.yml"), image, digest)
    blob = git(root, "hash-object", "-w", "--stdin", input_=action).strip()
    when = f"{git(root, 'show', '--no-patch', '--format=%ct', 'HEAD').strip()} +0000"
    name, mail = BOT
    people = {f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in (
        ("NAME", name), ("EMAIL", mail), ("DATE", when))}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        index = {"GIT_INDEX_FILE": f"{scratch}/index"}
        git(root, "read-tree", "HEAD", environ=index)
        git(root, "update-index", "--cacheinfo", f"100644,{blob},action.yml", environ=index)
        tree = git(root, "write-tree", environ=index).strip()
    message = f"Release v{version}\n\nImage: {image}@{digest}\n"
    return git(root, "commit-tree", tree, "-p", "HEAD", input_=message, environ=people).strip()


def remote_tags(root: Path) -> dict[str, str]:
    """The tags of origin and their commits."""
    rows = [row.split("\t") for row in git(root, "ls-remote", "--tags", "--refs", "origin").splitlines()]
    return {ref.removeprefix("refs/tags/"): sha for sha, ref in rows}


def released(root: Path, version: str, image: str) -> str:
    """The digest in this commit's existing tag, "" if there is none. Raises ReleaseError if the tag is another's."""
    tagged = remote_tags(root).get(f"v{version}")
    if tagged is None:
        return ""
    git(root, "fetch", "--quiet", "--no-tags", "--depth=2", "origin", f"refs/tags/v{version}")
    named = NAMED.search(git(root, "show", f"{tagged}:action.yml"))
    if named is None or commit(root, version, image, named["digest"]) != tagged:
        raise ReleaseError(f"the tag v{version} is there already and is not of this commit: raise the version on main")
    return named["digest"]


def tag(root: Path, version: str, image: str, digest: str) -> str:
    """Push the tag of a release; returns what was done. An existing tag is never moved."""
    existing = released(root, version, image)
    if existing and existing != digest:
        raise ReleaseError(f"the tag v{version} is there already with the image {existing}: raise the version on main")
    if existing:
        return f"v{version} is there already, as it should be"
    release_commit = commit(root, version, image, digest)
    git(root, "push", "--quiet", "origin", f"{release_commit}:refs/tags/v{version}")
    return f"v{version} is {release_commit}"


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def move(root: Path, version: str, image: str, digest: str) -> str:
    """Move the tag of the major version to this release, unless it is at a later one; returns what was done.

    The release's own tag must be at the commit of this image: users get what was tested, whoever pushed meanwhile.
    """
    tags = remote_tags(root)
    target, major = tags.get(f"v{version}"), f"v{numbers(version)[0]}"
    if target is None:
        raise ReleaseError(f"there is no tag v{version}: it comes before {major}")
    if target != commit(root, version, image, digest):
        raise ReleaseError(f"the tag v{version} is not of this commit and image: {major} is left; look who moved it")
    versions = [name[1:] for name in tags if VERSION.fullmatch(name[1:]) and name.startswith(f"{major}.")]
    newest = max(versions, key=numbers)
    if newest != version:
        return f"{major} is left to v{newest}, which is later than v{version}"
    if tags.get(major) == target:
        return f"{major} is at v{version} already"
    lease = f"--force-with-lease=refs/tags/{major}:{tags.get(major, '')}"
    git(root, "push", "--quiet", lease, "origin", f"{target}:refs/tags/{major}")
    return f"{major} is at v{version} now"


def _check(root: Path, options: argparse.Namespace) -> None:
    check(root, options.version, options.repository, options.ref)
    image = image_name(options.registry, options.repository)
    values = {"image": image, "tag": f"v{options.version}", "digest": released(root, options.version, image)}
    for name, value in values.items():
        print(f"{name}={value}")


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    top = argparse.ArgumentParser(prog="python3 -m tools.release", description="The parts of a release.")
    parts = top.add_subparsers(dest="part", required=True)
    options_of = {
        "check": ("registry", "repository", "ref"),
        "tag": ("image", "digest"),
        "move": ("image", "digest"),
        "notes": (),
    }
    for part, names in options_of.items():
        part_parser = parts.add_parser(part)
        for name in ("version", *names):
            part_parser.add_argument(f"--{name}", required=True)
    return top.parse_args(arguments)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Do one part; prints one line and returns 1 if that fails."""
    options = _arguments(arguments)
    try:
        if options.part == "check":
            _check(root, options)
        elif options.part == "tag":
            print(tag(root, options.version, options.image, options.digest))
        elif options.part == "move":
            print(move(root, options.version, options.image, options.digest))
        else:
            print(notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), options.version), end="")
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
