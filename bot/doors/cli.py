"""The command line: parse, call, print. Data goes to stdout, words go to stderr."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bot import __version__
from bot.doors import commands
from bot.errors import PrecedentError

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}", re.ASCII)


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    top = argparse.ArgumentParser(
        prog="precedent", description="A repository's memory of its issues and how they ended."
    )
    top.add_argument("--version", action="version", version=f"precedent {__version__}")
    doors = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doors.add_parser("action", help="handle the event of a GitHub Actions runner")
    references = doors.add_parser("references", help="the issues that a text on stdin points at, as JSON")
    references.add_argument(
        "--repo", type=_repository, metavar="OWNER/NAME", help="the repository that the text belongs to"
    )
    references.add_argument("--number", type=int, help="the issue that the text belongs to; it is left out")
    references.add_argument(
        "--autolink", action="append", default=[], metavar="PREFIX", help="a custom autolink prefix"
    )
    _add_import(doors)
    _add_answer(doors)
    _add_search(doors)
    return top


def _repository(text: str) -> str:
    if not _REPOSITORY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME")
    return text


def _add_import(doors: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("import", help="read thread archives (.jsonl, .jsonl.gz) into a store")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--repo", type=_repository, metavar="OWNER/NAME", help="the repository that the threads come from"
    )
    command.add_argument("--json", action="store_true", help="print counts as JSON")


def _add_answer(doors: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("answer", help="the comment that would be written on a thread of a store")
    command.add_argument("id", metavar="ID")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--as-of",
        choices=("created", "now"),
        default="now",
        help="created: see nothing from after the thread's creation",
    )
    command.add_argument("--repo", type=_repository, metavar="OWNER/NAME", help="for links and full references")
    command.add_argument("--json", action="store_true", help="print the whole answer as JSON")


def _add_search(doors: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("search", help="the threads of a store that speak of some words")
    command.add_argument("words", nargs="+", metavar="WORDS")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument("--state", choices=("open", "closed", "all"), default="all")
    command.add_argument("--limit", type=int, default=10, metavar="N", help="how many, at most 1000 (default 10)")
    command.add_argument("--json", action="store_true", help="print the hits as JSON")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 2 for a mistake of the user, 1 for a fault outside."""
    given = parser().parse_args(arguments)
    try:
        _print(getattr(commands, f"run_{given.command}")(given))
    except PrecedentError as error:
        print(f"precedent {given.command}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read this has seen enough; what is still buffered must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _print(result: object) -> None:
    """Text as it is, anything else as JSON, in UTF-8 whatever the terminal's language."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=1) + "\n"
    sys.stdout.write(text)
    sys.stdout.flush()
