"""Writes the workflows shown in the pages, and the scripts in them and in our own workflows, where checkers find them.

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
"""People's texts reach the bot as data, in the event's file: tests.threats checks that no step expands them."""

IGNORED = r"\1 # zizmor: ignore[dangerous-triggers]"
ELLIPSIS = ("@sha256:…", f"@sha256:{'0' * 64}")
"""How a page writes a digest that the reader fills in, and a digest that checkers accept."""

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
    """A fenced block of a page: its language, and its text without the fence's indentation."""

    language: str
    body: str


def pages() -> list[Path]:
    """All pages of the project, for users and contributors."""
    return sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sample/*.md"), *ROOT.glob("skills/**/*.md")]
    )


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, including those in lists."""
    for match in FENCE.finditer(text):
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        yield Block(match["language"].strip(), body)


def complete_workflow(shown: str) -> str | None:
    """A workflow that checkers accept, from a shown one or a part: jobs, steps or triggers. None for other texts."""
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
    """Whether the YAML has this key at the top level."""
    return re.search(rf"^{key}:", text, re.MULTILINE) is not None


def workflows() -> dict[str, str]:
    """The workflows of all pages by name (``README-1.yml``), with parts completed."""
    named: dict[str, str] = {}
    for page in pages():
        bodies = [block.body for block in blocks(page.read_text(encoding="utf-8")) if block.language in ("yaml", "yml")]
        complete = [text for body in bodies if (text := complete_workflow(body)) is not None]
        named |= {f"{_label(page)}-{at}.yml": text for at, text in enumerate(complete, 1)}
    return named


def _label(page: Path) -> str:
    """A unique name for a page: its own for pages of the root, and of docs/ unless the root has one of that name."""
    is_plain = page.parent in (ROOT, ROOT / "docs") and (page.parent == ROOT or not (ROOT / page.name).exists())
    return page.stem if is_plain else "-".join(page.relative_to(ROOT).with_suffix("").parts)


def scripts(name: str, workflow: str) -> dict[str, str]:
    """The scripts of a workflow's steps by name, as GitHub's runner starts them: in bash, until the first error."""
    named: dict[str, str] = {}
    for job, definition in yaml.safe_load(workflow)["jobs"].items():
        for index, step in enumerate(definition["steps"], 1):
            if "run" in step:
                named[f"{Path(name).stem}-{job}-{index}.sh"] = f"#!/usr/bin/env bash\nset -e\n{step['run']}\n"
    return named


def own_workflows() -> dict[str, str]:
    """The workflows of this repository by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}


def main(folder: Path) -> None:
    """Write them below ``folder``, workflows where GitHub would look for them, replacing older ones.

    Raises SystemExit if that would replace a repository's own workflows.
    """
    if (folder / ".git").exists():
        raise SystemExit(f"{folder} is a repository, whose workflows would be lost: name a folder for copies")
    shown = workflows()
    written = [script for name, text in (shown | own_workflows()).items() for script in scripts(name, text).items()]
    _fill(folder / ".github" / "workflows", shown)
    _fill(folder / "scripts", dict(written))
    (folder / "zizmor.yml").write_text(POLICY, encoding="utf-8")


def _fill(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.snippets FOLDER")
    main(Path(sys.argv[1]))
