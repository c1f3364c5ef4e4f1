"""How a command declares its options, and the options that several commands share.

A command's options are the fields of a class next to its function. Each field has its type, so what the function takes
from its arguments is checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bot.cli.arguments import login, number, one_of, repository
from bot.cli.output import NO_RESULTS, CommandResult, progress, warn
from bot.errors import UserError
from bot.local_cache.local_memory import MemoryOptions

MAX_COUNT = 1_000_000


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


class Alternatives:
    """Options of which at most one may be given, or exactly one if ``required``."""

    def __init__(self, *, required: bool = False) -> None:
        self.required = required


class Option(NamedTuple):
    """An option, or an argument without a name, as argparse takes it."""

    settings: dict[str, Any]
    is_named: bool = True
    name: str = ""
    among: Alternatives | None = None


def option(help: str, *, name: str = "", among: Alternatives | None = None, **settings: Any) -> Any:
    """An option, named like its field unless it has a ``name``."""
    return Option({"help": help, **settings}, name=name, among=among)


def flag(help: str, *, among: Alternatives | None = None) -> Any:
    return option(help, among=among, action="store_true")


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """An argument without a name before it."""
    return Option({"help": help, "metavar": metavar, **settings}, is_named=False)


def path_argument(help: str, **settings: Any) -> Any:
    """An argument without a name that is a file."""
    return Option({"help": help, "action": FileArgument, **settings}, is_named=False)


def file_option(help: str) -> Any:
    return option(help, action=FileArgument)


def folder_option(help: str, **settings: Any) -> Any:
    return option(help, action=FolderArgument, **settings)


class Arguments:
    """The arguments of one run of a command. Its docstring says in the help what one line cannot."""

    def __init__(self, **values: Any) -> None:
        vars(self).update({field: declared.settings.get("default") for field, declared in self._declared()} | values)

    @classmethod
    def _declared(cls) -> Iterator[tuple[str, Option]]:
        """The options of this class, then those of its bases."""
        for base in cls.__mro__:
            yield from ((field, declared) for field, declared in vars(base).items() if isinstance(declared, Option))

    @classmethod
    def add_to(cls, parser: argparse.ArgumentParser) -> None:
        groups: dict[Alternatives | None, Any] = {None: parser}
        for field, declared in cls._declared():
            if (among := declared.among) and among not in groups:
                groups[among] = parser.add_mutually_exclusive_group(required=among.required)
            target = groups[among]
            if declared.is_named:
                name = declared.name or f"--{field.replace('_', '-')}"
                target.add_argument(name, **{"dest": field, **declared.settings})
            else:
                target.add_argument(field, **declared.settings)


# Options that several commands share


def json_option(what: str) -> Any:
    return flag(f"print {what} as JSON")


def repo_option(help: str = "for links and full references") -> Any:
    return option(help, type=repository, metavar="OWNER/NAME")


def store_option() -> Any:
    return folder_option("the folder of the store", required=True)


def semantic_option() -> Any:
    return folder_option("the folder of a text model, for embeddings")


def branch_option() -> Any:
    return option("the branch of the memory (default: as in the settings)", metavar="NAME")


def offline_option(among: Alternatives | None = None) -> Any:
    return flag("fetch nothing: use the memory as last fetched", among=among)


def header_option() -> Any:
    return flag("begin with a line of column names, if the output is piped")


def org_option(help: str, **settings: Any) -> Any:
    return folder_option(help, type=str, **settings)


def state_option() -> Any:
    return option("only threads in this state (default all)", **one_of("open", "closed", "all"), default="all")


def me_option() -> Any:
    return option(
        "an account of the agent; may be repeated (default: the bot's)", type=login, action="append", metavar="LOGIN"
    )


def organisation_option() -> Any:
    return option("the index of all repositories: a folder, s3://, gs:// or az:// (default: none)", metavar="PLACE")


_SOURCE, _FETCHING = Alternatives(), Alternatives()


class MemoryArguments(Arguments):
    """Which memory to ask."""

    store: Path | None = folder_option("the folder of a store, or a checkout of the branch", among=_SOURCE)
    repo: str | None = option(
        "a repository (default: that of the current checkout)", among=_SOURCE, type=repository, metavar="OWNER/NAME"
    )
    memory_branch: str | None = branch_option()
    refresh: bool = flag("fetch the branch even if it was just fetched", among=_FETCHING)
    offline: bool = offline_option(_FETCHING)
    as_of: datetime | None = None
    """The time that the answer refers to; None for now."""

    @property
    def memory(self) -> MemoryOptions:
        location = self.store, self.repo or "", self.memory_branch or ""
        return MemoryOptions(Path.cwd(), *location, self.refresh, self.offline, progress, warn)

    @property
    def now(self) -> datetime:
        return self.as_of or datetime.now(UTC)


class QuestionArguments(MemoryArguments):
    """Which memory to ask, and in what form to answer."""

    json: bool = flag("print the answer as JSON (docs/asking.md)")
    exit_code: bool = flag("exit with code 1 if nothing is relevant")

    def result(self, shown: object, *, found: bool, has_memory: bool = True, coverage: str = "") -> CommandResult:
        """The answer and its exit code. ``has_memory``: there is one to search; ``coverage``: what was searched."""
        if has_memory and not found and not self.json:
            warn(f"{NO_RESULTS} {coverage}." if coverage else NO_RESULTS)
        if not has_memory and not found:
            return CommandResult(shown, UserError.exit_code)
        return CommandResult(shown, 1 if self.exit_code and not found else 0)


class TableArguments(QuestionArguments):
    """An answer that is a table if it is piped."""

    header: bool = header_option()


class ServerArguments(Arguments):
    """Which server to ask, or to be; the environment has the other options."""

    data: str | None = option("the folder for the queue and the clones (default: ./data)", metavar="DIR")
    database_url: str | None = option(
        "a PostgreSQL database instead of a file there; if it has a password, use the variable", metavar="URL"
    )


class ReplayArguments(Arguments):
    """Which store to replay, and how much of it."""

    store: Path = store_option()
    last: int = option(
        "how many issues are replayed (default 300)", type=number(1, MAX_COUNT), default=300, metavar="N"
    )
    seconds: int | None = option(
        "stop after N seconds; the newest issues come first", type=number(1, 86_400), metavar="N"
    )
    repo: str | None = repo_option()
    semantic: Path | None = semantic_option()
    json: bool = json_option("the figures")
