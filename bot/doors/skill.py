"""The command that gives coding agents the page that teaches them to search this memory."""

from __future__ import annotations

import argparse
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bot.comment.visible import clean, one_line
from bot.doors.output import show
from bot.errors import UserError, WorldError
from bot.memory.checkout_git import top_of

SHIPPED = tuple(Path(__file__).resolve().parents[up] / "skills" for up in (1, 2))
"""Where the page stands: in a wheel inside the package, in a checkout and in the image beside it."""

PAGE = Path("cross-reference/SKILL.md")
MAX_BYTES = 65_536

_SEAL = re.compile(rb"\n<!-- written by precedent skill install, sha256 ([0-9a-f]{64}) -->\n\Z")


class Agent(NamedTuple):
    """Where an agent looks for skills, in a checkout and at ``home``; any of ``signs`` tells that it is used there."""

    here: str
    home: str
    signs: tuple[str, ...]
    home_sign: str


AGENTS = {
    "agents": Agent(".agents/skills", ".agents/skills", (".agents",), ".agents"),
    "claude": Agent(".claude/skills", ".claude/skills", (".claude",), ".claude"),
    # https://developers.openai.com/codex/skills
    "codex": Agent(".agents/skills", ".agents/skills", (".codex",), ".codex"),
    # https://docs.github.com/en/copilot/concepts/customizations/agent-skills; .github alone is no sign of Copilot
    "copilot": Agent(
        ".github/skills", ".copilot/skills", (".github/skills", ".github/copilot-instructions.md"), ".copilot"
    ),
    "cursor": Agent(".cursor/skills", ".cursor/skills", (".cursor",), ".cursor"),
    "gemini": Agent(".gemini/skills", ".gemini/skills", (".gemini",), ".gemini"),
    # https://opencode.ai/docs/skills
    "opencode": Agent(".opencode/skills", ".config/opencode/skills", (".opencode",), ".config/opencode"),
}
USUAL = ("agents", "claude")
"""For whom it is written where there is no sign of anybody."""


class Written(NamedTuple):
    """What became of one file. ``path`` is below the checkout or the home folder; ``fault`` why it was left alone."""

    path: str
    state: str
    fault: str = ""


def add_skill(doors: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The parser of this command."""
    command = doors.add_parser("skill", help="teach the coding agents of a checkout to search the memory")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION", help="what to do with it")
    actions.add_parser("show", help="print the page that teaches them")
    install = actions.add_parser("install", help="write it to where agents look for skills")
    install.add_argument(
        "--agent",
        action="append",
        choices=sorted(AGENTS),
        metavar="NAME",
        help=f"for this one, may be repeated: {', '.join(sorted(AGENTS))} (default: those that are used here)",
    )
    install.add_argument("--global", dest="at_home", action="store_true", help="in the home folder, for all checkouts")
    install.add_argument("--dry-run", action="store_true", help="write nothing, say what would be written")
    install.add_argument("--force", action="store_true", help="replace a page that was changed by hand")
    install.add_argument("--json", action="store_true", help="print what became of each file as JSON")


def run_skill(given: argparse.Namespace) -> object:
    """Print the page, or write it to each place.

    Files that are left alone are told on stderr, and make the command fail once the others are written.
    """
    text = _page()
    if given.action == "show":
        return text.decode("utf-8")
    root = Path.home() if given.at_home else _checkout(Path.cwd())
    places = _places(root, given.agent or _used(root, given.at_home), given.at_home)
    done = [_install(root, place, text, given) for place in places]
    faults = [f"{each.path} is left as it is: {each.fault}" for each in done if each.fault]
    result = _as_data(root, done, given.dry_run) if given.json else "".join(_lines(done, given.dry_run))
    if not faults:
        return result
    show(result)
    for fault in faults[:-1]:
        print(f"precedent skill: {fault}", file=sys.stderr)
    raise UserError(faults[-1])


def _page() -> bytes:
    for folder in SHIPPED:
        with suppress(OSError):
            return (folder / PAGE).read_bytes()
    raise WorldError(f"this installation lacks skills/{PAGE}", "install precedent again")


def _checkout(folder: Path) -> Path:
    top = top_of(folder)
    if top is None:
        raise UserError("this is no git checkout: go into one, or write to your home folder with --global")
    return top


def _used(root: Path, at_home: bool) -> Sequence[str]:
    found = [
        name
        for name, agent in AGENTS.items()
        if any((root / sign).exists() for sign in ((agent.home_sign,) if at_home else agent.signs))
    ]
    return found or USUAL


def _places(root: Path, names: Sequence[str], at_home: bool) -> list[Path]:
    """The files to write. Folders that are the same one, by name or by a link, are written to once."""
    found: dict[Path, Path] = {}
    for name in names:
        place = root / (AGENTS[name].home if at_home else AGENTS[name].here) / PAGE
        found.setdefault(_real(place), place)
    return list(found.values())


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        return path


def _install(root: Path, place: Path, text: bytes, given: argparse.Namespace) -> Written:
    name = place.relative_to(root).as_posix()
    if not _real(place).is_relative_to(_real(root)) or place.is_symlink():
        led = one_line(str(_real(place)))
        return Written(name, "left", f"a link leads to {led}: remove the link, or name other agents with --agent")
    try:
        there = _read(place)
        if there in (_sealed(text), text):
            return Written(name, "unchanged")
        if there and not _is_ours(there) and not given.force:
            return Written(name, "left", "it was changed by hand: keep it so, or replace it with --force")
        if not given.dry_run:
            _write(place, _sealed(text))
    except OSError as error:
        raise WorldError(f"{name} cannot be written: {error.strerror or error}", "make its folder writable") from error
    return Written(name, "updated" if there else "written")


def _read(place: Path) -> bytes:
    """What is there, b"" for nothing. What is no file of a reasonable size is somebody else's."""
    try:
        if not stat.S_ISREG(place.lstat().st_mode):
            return b"no file"
        with place.open("rb") as file:
            return file.read(MAX_BYTES) or b"\n"
    except FileNotFoundError:
        return b""


def _hash(text: bytes) -> str:
    import hashlib  # loads a library of ciphers, which takes its time

    return hashlib.sha256(text).hexdigest()


def _sealed(text: bytes) -> bytes:
    """With a last line that tells a page of an older version, which may be replaced, from one that somebody edited."""
    return text + f"\n<!-- written by precedent skill install, sha256 {_hash(text)} -->\n".encode()


def _is_ours(there: bytes) -> bool:
    seal = _SEAL.search(there)
    return seal is not None and _hash(there[: seal.start()]).encode() == seal[1]


def _write(place: Path, text: bytes) -> None:
    """In one step: who looks meanwhile sees the old page or the new one."""
    import tempfile

    place.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=place.parent, prefix=".SKILL-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        Path(draft).chmod(0o644)
        Path(draft).replace(place)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise


def _as_data(root: Path, done: Sequence[Written], is_dry: bool) -> dict[str, object]:
    return {"dry_run": is_dry, "root": clean(str(root)), "files": [each._asdict() for each in done]}


def _lines(done: Sequence[Written], is_dry: bool) -> Iterator[str]:
    words = {"written": "would write", "updated": "would update"} if is_dry else {"written": "wrote"}
    yield from (f"{words.get(each.state, each.state)} {each.path}\n" for each in done if not each.fault)
