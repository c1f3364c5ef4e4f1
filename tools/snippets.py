"""Writes the workflows that the pages show, and the scripts in them and in our own, to where checkers find them.

python -m tools.snippets FOLDER
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from tools.address import address

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+|~~~+) *(?P<language>[^\n`]*)\n(?P<body>.*?)^ *(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
POLICY = f"""rules:
  unpinned-uses:
    config:
      policies:
        {address()}: ref-pin # docs/upgrades.md explains how to pin it
        '*': hash-pin
"""
COMMENTS = re.compile(r"^(  issue_comment:[^#\n]*?) *(#.*)?$", re.MULTILINE)
"""What people write reaches the bot as data, by the event's file: tests.threats holds that no step expands it."""

IGNORED = r"\1 # zizmor: ignore[dangerous-triggers]"
ELLIPSIS = ("@sha256:…", f"@sha256:{'0' * 64}")
"""How a page writes a digest that is the reader's, and what checkers take for one."""

HEAD = """name: A part of one
on:
  workflow_dispatch:
    inputs:
      run:
        description: What to do
        type: string
      issue:
        description: The issue to answer
        type: string
      dry-run:
        description: Whether to write nothing
        type: boolean
concurrency:
  group: precedent
"""
PERMISSIONS = "permissions: {}\n"
JOB = """jobs:
  part:
    name: A part of one
    runs-on: ubuntu-latest
    timeout-minutes: 5
    permissions: {}
    steps:
"""


class Block(NamedTuple):
    """A fenced block of a page: what it is written in, and its text without the fence's indentation."""

    language: str
    body: str


def pages() -> list[Path]:
    """All pages of the project, for its users and for who works on it."""
    return sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sample/*.md"), *ROOT.glob("skills/**/*.md")]
    )


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, those in lists too."""
    for found in FENCE.finditer(text):
        body = re.sub(rf"^{found['indent']}", "", found["body"], flags=re.MULTILINE)
        yield Block(found["language"].strip(), body)


def whole(shown: str) -> str | None:
    """A workflow that checkers take, for one that is shown or for a part: jobs, steps or triggers. None for what is
    neither."""
    text = COMMENTS.sub(IGNORED, shown).replace(*ELLIPSIS)
    if has(text, "jobs") and has(text, "on"):
        return text
    if has(text, "jobs"):
        return HEAD + (text if has(text, "permissions") else PERMISSIONS + text)
    if re.match(r"- (name|id|if|uses|run|env|with):", text):
        return HEAD + PERMISSIONS + JOB + re.sub(r"^(?=.)", "      ", text, flags=re.MULTILINE)
    if has(text, "on"):
        rest = HEAD.partition("concurrency:")
        return f"name: A part of one\n{text}{''.join(rest[1:])}{PERMISSIONS}{JOB}      - run: 'true'\n"
    return None


def has(text: str, key: str) -> bool:
    """Whether the YAML has this key at its top."""
    return re.search(rf"^{key}:", text, re.MULTILINE) is not None


def workflows() -> dict[str, str]:
    """The workflows of all pages by name (``README-1.yml``), parts of one made whole."""
    found: dict[str, str] = {}
    for page in pages():
        shown = [block.body for block in blocks(page.read_text(encoding="utf-8")) if block.language in ("yaml", "yml")]
        made = [text for body in shown if (text := whole(body)) is not None]
        found |= {f"{_label(page)}-{at}.yml": text for at, text in enumerate(made, 1)}
    return found


def _label(page: Path) -> str:
    """A name that no other page has: those of docs/ go by their own, where that is not one of the root's too."""
    is_plain = page.parent in (ROOT, ROOT / "docs") and (page.parent == ROOT or not (ROOT / page.name).exists())
    return page.stem if is_plain else "-".join(page.relative_to(ROOT).with_suffix("").parts)


def scripts(name: str, workflow: str) -> dict[str, str]:
    """The scripts of a workflow's steps by name, as GitHub's runner starts them: in bash, ended by the first fault."""
    found: dict[str, str] = {}
    for job, told in yaml.safe_load(workflow)["jobs"].items():
        for at, step in enumerate(told["steps"], 1):
            if "run" in step:
                found[f"{Path(name).stem}-{job}-{at}.sh"] = f"#!/usr/bin/env bash\nset -e\n{step['run']}\n"
    return found


def own() -> dict[str, str]:
    """The workflows of this repository by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}


def main(folder: Path) -> None:
    """Write them below ``folder``, workflows in the place where GitHub would look for them, in place of older ones.

    SystemExit where that would be in the place of a repository's own.
    """
    if (folder / ".git").exists():
        raise SystemExit(f"{folder} is a repository, whose workflows would be lost: name a folder for copies")
    shown = workflows()
    written = [script for name, text in (shown | own()).items() for script in scripts(name, text).items()]
    _fill(folder / ".github" / "workflows", shown)
    _fill(folder / "scripts", dict(written))
    (folder / "zizmor.yml").write_text(POLICY, encoding="utf-8")


def _fill(place: Path, files: Mapping[str, str]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.snippets FOLDER")
    main(Path(sys.argv[1]))
