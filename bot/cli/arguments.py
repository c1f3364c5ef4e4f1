"""Types of arguments on the command line, and options that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.cli.output import progress, warn
from bot.comment.clean_text import visible_text
from bot.errors import UserError
from bot.local_cache.local_memory import LocalMemory, MemoryOptions
from bot.questions.requests import SLUG, Issue, parse_issue
from bot.reading.search_query import moment_of

if TYPE_CHECKING:
    from bot.domain.card import Worktree


# Patterns are compiled on use, so that a search, which needs none, starts faster.
_LOGIN = r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,60}(?:\[bot\])?)"
_URL = r"(https?://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)/([^?#]{1,400})(?:[?#].*)?"
_ACTION = (
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/precedent@(?![./])[A-Za-z0-9._/-]{1,200}"
    r"|docker://(?:[A-Za-z0-9][A-Za-z0-9._-]{0,100}(?::[0-9]{1,5})?/){1,4}precedent"
    r"(?:@sha256:[0-9a-f]{64}|:[A-Za-z0-9._-]{1,100})"
)
"""A repository at a commit, tag or branch, or an image; only characters that are not special in YAML."""


class PathArgument(argparse.Action):
    """An argument that names a file or a folder. The shell completes it as ``complete`` says, in terms of shtab."""

    metavar_name: str
    complete: Mapping[str, object]

    def __init__(self, option_strings: Sequence[str], dest: str, type: Callable[[str], Any] = Path, **settings: Any):
        super().__init__(option_strings, dest, type=type, metavar=self.metavar_name, **settings)

    def __call__(self, _parser: object, namespace: argparse.Namespace, values: Any, _option: str | None = None) -> None:
        setattr(namespace, self.dest, values)


class FileArgument(PathArgument):
    metavar_name = "FILE"


class FolderArgument(PathArgument):
    metavar_name = "DIR"


def one_of(*choices: str) -> dict[str, Any]:
    """Settings of an argument with these choices: suggests the closest one for a misspelt word."""

    def check(text: str) -> str:
        if text in choices:
            return text
        close = closest(text, choices)
        hint = f"; did you mean {close!r}?" if close else f" (choose from {', '.join(choices)})"
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r}{hint}")

    return {"choices": choices, "type": check}


def closest(word: str, choices: Iterable[str]) -> str:
    """The most similar of the choices, "" if none is similar."""
    from difflib import get_close_matches  # loaded for a mistake only

    return next(iter(get_close_matches(word, choices, n=1)), "")


def is_action(text: str) -> bool:
    """Whether a step can use this Action."""
    return re.fullmatch(_ACTION, text, re.ASCII) is not None


def action_name(text: str) -> str:
    if not is_action(text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/precedent@COMMIT (or a tag)")
    return text


def issue(text: str) -> Issue:
    """An issue in any common notation."""
    named = parse_issue(text)
    if named is None:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not an issue such as 42, #42, OWNER/NAME#42 or its address")
    return named


def repository(text: str) -> str:
    if not re.fullmatch(SLUG, text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME")
    return text


def login(text: str) -> str:
    """An account's login, with or without an @ before it."""
    match = re.fullmatch(_LOGIN, text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not an account's login")
    return match[1]


def number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {low:,} to {high:,}")
        return int(text)

    return parse


def history_size(text: str) -> int:
    """How many issues; 0 and ``all`` for all of them."""
    return 0 if text.lower() in ("all", "0") else number(1, 1_000_000)(text)


def non_empty(text: str) -> str:
    """A text that is not empty: with an unset variable, a filter would select, and could drop, everything."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def delivery_name(text: str) -> int | str:
    """The number of a delivery, or GitHub's GUID of it in lower case."""
    return text.lower() if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4,12}){4}", text) else positive(text)


def positive(text: str) -> int:
    """A positive integer of up to 15 digits."""
    if not re.fullmatch(r"[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a positive whole number")
    return int(text)


def name_pattern(text: str) -> str:
    """A pattern of "owner/name", as `bot.server.scope` reads it."""
    if not re.fullmatch(r"[^/\s]{1,100}/[^/\s]{1,100}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a pattern such as octo-org/docs-*")
    return text


def share(text: str) -> float:
    """A number above 0, at most 1."""
    if not re.fullmatch(r"[01]?\.?[0-9]{1,9}", text) or not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number above 0 and at most 1")
    return float(text)


def address(text: str) -> str:
    """The address of a server, without a trailing slash."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or not re.fullmatch(r"[\x21-\x3e\x41-\x7e]{1,300}", text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not an address such as https://git.example.com")
    return text.rstrip("/")


def since(text: str) -> datetime:
    """A moment as `bot.reading.search_query.moment_of` reads it."""
    try:
        return moment_of(text, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is neither a day such as 2026-05-03 nor an age such as 7d"
        ) from None


def zone(text: str) -> tzinfo:
    from bot.sources.sessions.times import MAX_ZONE_CHARS, zone_named  # other commands do not need it

    zone = zone_named(text)
    if zone is None:
        raise argparse.ArgumentTypeError(
            f"{visible_text(text)[:MAX_ZONE_CHARS]!r} is not a time zone such as Europe/Berlin"
        )
    return zone


def moment(text: str) -> datetime:
    """An ISO 8601 time; UTC unless it names a zone."""
    try:
        parsed = datetime.fromisoformat(text)
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(
            f"{visible_text(text)[:40]!r} is not a time such as 2026-05-03T09:30Z"
        ) from error


TOKEN_VARIABLES = ("PRECEDENT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""Variables that may hold a token: first our own, then those of GitHub's command line in its order
(``gh help environment``)."""


class NamedRepository(NamedTuple):
    """A repository: OWNER/NAME, and its server if a URL was given."""

    repository: str
    server: str = ""


def named_repository(text: str) -> NamedRepository:
    """OWNER/NAME, or the address of any page of the repository."""
    server, path = "", text.strip()
    if match := re.fullmatch(_URL, path, re.ASCII | re.IGNORECASE):
        server = match[1].lower().replace("://www.github.com", "://github.com")
        path = "/".join(match[2].split("/")[:2])
    name = re.fullmatch(SLUG, path.removesuffix("/").removesuffix(".git"), re.ASCII)
    if name is None or not name[0].partition("/")[2].strip("."):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/NAME")
    return NamedRepository(name[0], server)


class Token(NamedTuple):
    """A token and the variable that held it, both "" if there is none."""

    variable: str = ""
    text: str = ""


def token_of(environ: Mapping[str, str]) -> Token:
    """The first token in ``environ``. UserError if it has characters that no token has."""
    name = next((name for name in TOKEN_VARIABLES if environ.get(name, "").strip()), "")
    text = environ.get(name, "").strip()
    if not re.fullmatch(r"[\x21-\x7e]*", text):
        raise UserError(f"{name} contains characters that no token has: copy it again")
    return Token(name, text)


def memory_options(args: argparse.Namespace) -> MemoryOptions:
    location = args.store, args.repo or "", args.memory_branch or ""
    return MemoryOptions(Path.cwd(), *location, args.refresh, args.offline, progress, warn)


def worktree_of(memory: LocalMemory) -> Worktree:
    """The state of the current checkout, empty if there is none."""
    from bot.git.checkout import read_worktree

    return read_worktree(memory.top or Path.cwd())


def reference_time(args: argparse.Namespace) -> datetime:
    """The time that the answer refers to: now, or that of `context --as-of`."""
    return getattr(args, "as_of", None) or datetime.now(UTC)


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", required=True, action=FolderArgument, help="the folder of the store")


def add_repo(command: argparse.ArgumentParser, help: str = "for links and full references") -> None:
    command.add_argument("--repo", type=repository, metavar="OWNER/NAME", help=help)


def add_logs(command: argparse.ArgumentParser) -> None:
    help_text = "also search the transcripts in this file, folder or glob; may be repeated"
    command.add_argument("--logs", action="append", default=[], metavar="PATH", help=help_text)


def add_repositories(command: argparse.ArgumentParser) -> None:
    add, actions = command.add_argument, ("add", "list", "update", "remove", "rebuild")
    help_text = "add repositories, list them, update (read what changed), remove some, or rebuild the index of all"
    add("action", **one_of(*actions), metavar="ACTION", help=help_text)
    help_text = "OWNER/NAME, or the path of a checkout or store; update without one: all"
    add("repositories", nargs="*", default=[], metavar="REPOSITORY", help=help_text)
    add_org(command, help="the folder (default: that in PRECEDENT_ORG, else one in your home folder)")
    add_memory_branch(command)
    add_server(command, "data", "database_url", "organisation")
    help_text = "rebuild on a server: only this installation; may be repeated"
    add("--installation", type=positive, action="append", default=[], metavar="NUMBER", help=help_text)
    add_json(command, "the repositories")
    add_header(command)


def add_org(command: argparse.ArgumentParser, help: str, **options: Any) -> None:
    command.add_argument("--org", type=str, action=FolderArgument, help=help, **options)


def add_json(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def add_semantic(command: argparse.ArgumentParser) -> None:
    command.add_argument("--semantic", action=FolderArgument, help="the folder of a text model, for embeddings")


def add_header(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--header", action="store_true", help="begin with a line of column names, if the output is piped"
    )


def add_me(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--me",
        type=login,
        action="append",
        metavar="LOGIN",
        help="an account of the agent; may be repeated (default: the bot's)",
    )


def add_memory_branch(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--memory-branch", metavar="NAME", help="the branch of the memory (default: as in the settings)"
    )


def add_memory(command: argparse.ArgumentParser) -> None:
    location = command.add_mutually_exclusive_group()
    location.add_argument(
        "--store",
        action=FolderArgument,
        help="the folder of a store, or a checkout of the branch",
    )
    location.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="a repository (default: that of the current checkout)"
    )
    add_memory_branch(command)
    fetching = command.add_mutually_exclusive_group()
    fetching.add_argument("--refresh", action="store_true", help="fetch the branch even if it was just fetched")
    fetching.add_argument("--offline", action="store_true", help="fetch nothing: use the memory as last fetched")


def add_answer(command: argparse.ArgumentParser) -> None:
    add_memory(command)
    command.add_argument("--json", action="store_true", help="print the answer as JSON (docs/asking.md)")
    command.add_argument("--exit-code", action="store_true", help="exit with code 1 if nothing is relevant")


def add_replay(command: argparse.ArgumentParser) -> None:
    add_store(command)
    command.add_argument(
        "--last", type=number(1, 1_000_000), default=300, metavar="N", help="how many issues are replayed (default 300)"
    )
    command.add_argument(
        "--seconds", type=number(1, 86_400), metavar="N", help="stop after N seconds; the newest issues come first"
    )
    add_repo(command)
    add_semantic(command)
    add_json(command, "the figures")


_SERVER_OPTIONS = {
    "data": ("DIR", "the folder for the queue and the clones (default: ./data)"),
    "database_url": ("URL", "a PostgreSQL database instead of a file there; if it has a password, use the variable"),
    "organisation": ("PLACE", "the index of all repositories: a folder, s3://, gs:// or az:// (default: none)"),
    "host": ("ADDRESS", "the address to listen on (default: 127.0.0.1)"),
    "port": ("PORT", "the port to listen on (default: 8080)"),
    "workers": ("N", "worker processes to start; 0: receive only (default: 1)"),
    "jobs": ("N", "repositories that one worker handles at once (default: 4)"),
}


def add_server(command: argparse.ArgumentParser, *names: str) -> None:
    for name in names:
        metavar, explanation = _SERVER_OPTIONS[name]
        command.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=explanation)
