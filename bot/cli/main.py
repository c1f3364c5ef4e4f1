"""The command line: parse, call, print. Data goes to stdout, words go to stderr.

What a command needs is imported when it is given: a search is over before all of it would be loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib import import_module
from pathlib import Path

from bot import __version__
from bot.cli.arguments import (
    Subparsers,
    add_history,
    add_place,
    add_semantic,
    address,
    issue,
    login,
    named_repository,
    number,
    repository,
    share,
)
from bot.cli.output import CommandResult, forget_output, show
from bot.comment.clean_text import clean
from bot.errors import PrecedentError
from bot.questions.requests import DAYS, MAX_CHARS, MAX_DAYS, MIN_CHARS

ALIAS = "ss"
"""Of smart-search, which adds it with its options."""

WIDTH = 100
"""Columns of a help text at most."""

COMMANDS = {
    "search": ("bot.cli.commands.search.add_search", "bot.cli.commands.search.run_search"),
    "smart-search": (
        "bot.cli.commands.smart_search.add_smart_search",
        "bot.cli.commands.smart_search.run_smart_search",
    ),
    "ss": ("bot.cli.commands.smart_search.add_smart_search", "bot.cli.commands.smart_search.run_smart_search"),
    "what": ("bot.cli.commands.what.add_what", "bot.cli.commands.what.run_what"),
    "related": ("bot.cli.commands.related.add_related", "bot.cli.commands.related.run_related"),
    "show": ("bot.cli.main.add_show", "bot.cli.commands.show.run_show"),
    "context": ("bot.cli.main.add_context", "bot.cli.commands.context.run_context"),
    "mcp": ("bot.cli.commands.mcp.add_mcp", "bot.cli.commands.mcp.run_mcp"),
    "skill": ("bot.cli.commands.skill.add_skill", "bot.cli.commands.skill.run_skill"),
    "action": ("bot.cli.main.add_action", "bot.action.main.run_action"),
    "references": ("bot.cli.main.add_references", "bot.cli.commands.references.run_references"),
    "import": ("bot.cli.main.add_import", "bot.cli.commands.import_archive.run_import"),
    "answer": ("bot.cli.main.add_answer", "bot.cli.commands.answer.run_answer"),
    "outcomes": ("bot.cli.main.add_outcomes", "bot.cli.commands.outcomes.run_outcomes"),
    "learn": ("bot.cli.main.add_learn", "bot.cli.commands.learn.run_learn"),
    "eval": ("bot.cli.main.add_eval", "bot.cli.commands.evaluate.run_eval"),
    "backtest": ("bot.cli.main.add_backtest", "bot.cli.commands.backtest.run_backtest"),
    "calibrate": ("bot.cli.main.add_calibrate", "bot.cli.commands.calibrate.run_calibrate"),
    "doctor": ("bot.cli.main.add_doctor", "bot.cli.commands.doctor.run_doctor"),
    "serve": ("bot.cli.commands.serve.add_serve", "bot.cli.commands.serve.run_serve"),
    "worker": ("bot.cli.commands.worker.add_worker", "bot.cli.commands.worker.run_worker"),
    "jobs": ("bot.cli.commands.jobs.add_jobs", "bot.cli.commands.jobs.run_jobs"),
    "try": ("bot.cli.main.add_try", "bot.cli.commands.try_repository.run_try"),
    "init": ("bot.cli.commands.init.add_init", "bot.cli.commands.init.run_init"),
    "completion": ("bot.cli.commands.completion.add_completion", "bot.cli.commands.completion.run_completion"),
}
"""Each command: the function that adds its options, and the one that runs it. They are loaded when it is given."""


class _Help(argparse.HelpFormatter):
    """As wide as the terminal, and no wider than anybody reads."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(WIDTH, _columns()) - 2)


class _Parser(argparse.ArgumentParser):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, formatter_class=_Help, **options)  # type: ignore[arg-type,misc]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """A word that is nearly one of those that may stand there is told which."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as fault:
            from difflib import get_close_matches  # a command that is spelled right has no use for it

            if close := get_close_matches(str(value), [str(choice) for choice in action.choices or ()], n=1):
                meant = f"invalid choice: {value!r}; did you mean {close[0]!r}?"
                raise argparse.ArgumentError(action, meant) from fault
            raise


def parser(only: str = "") -> argparse.ArgumentParser:
    """All commands with their options; with the name of one, that one alone, which is there sooner."""
    top = _Parser(prog="precedent", description="A repository's memory of its issues and how they ended.")
    top.add_argument("--version", action="version", version=f"precedent {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for command in [only] if only in COMMANDS else [name for name in COMMANDS if name != ALIAS]:
        add = _loaded(COMMANDS[command][0])
        add(commands, top) if command == "completion" else add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 2 for a mistake of the user, 1 for a fault outside, or that of its
    `CommandResult`."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    first = words[0] if words else ""
    given = parser(first if first != "completion" else "").parse_args(words)
    try:
        return show(_runner(given.command)(given))
    except PrecedentError as error:
        from bot.comment.clean_text import one_line  # what a stranger named may be part of it

        print(f"precedent {given.command}: {one_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        forget_output()  # whoever read this has seen enough
        return 1


def _runner(command: str) -> Callable[[argparse.Namespace], object]:
    if command == "action":
        from bot.action.main import run_action

        return lambda _: CommandResult("", run_action())
    return _loaded(COMMANDS[command][1])


def _loaded(place: str) -> Callable[..., object]:
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


@cache
def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        try:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else WIDTH
        except (OSError, ValueError):
            return WIDTH


def add_action(commands: Subparsers[argparse.ArgumentParser]) -> None:
    commands.add_parser("action", help="handle the event of a GitHub Actions runner")


def add_references(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("references", help="the issues that a text on stdin points at, as JSON")
    command.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="the repository that the text belongs to"
    )
    command.add_argument("--number", type=issue, metavar="N", help="the issue that the text belongs to; it is left out")
    command.add_argument("--autolink", action="append", default=[], metavar="PREFIX", help="a custom autolink prefix")


def add_import(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("import", help="read thread archives (.jsonl, .jsonl.gz) into a store")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an archive")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="the repository that the threads come from"
    )
    add_semantic(command)
    command.add_argument("--no-learn", dest="learn", action="store_false", help="do not learn from them at the end")
    command.add_argument("--json", action="store_true", help="print counts as JSON")


def add_learn(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("learn", help="have a store learn from its own history, as the Action does")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--seconds",
        type=number(1, 86_400),
        default=60,
        metavar="N",
        help="how long beside the training of words (default 60)",
    )
    command.add_argument("--repo", type=repository, metavar="OWNER/NAME", help="for links and full references")
    add_semantic(command)
    command.add_argument("--json", action="store_true", help="print the figures as JSON")


def add_answer(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("answer", help="the comment that would be written on a thread of a store")
    command.add_argument(
        "id", metavar="ID", help="an issue (42, #42, OWNER/NAME#42 or its address), or the text that is the thread's id"
    )
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--as-of",
        choices=("created", "now"),
        default="now",
        help="created: see nothing from after the thread's creation",
    )
    command.add_argument("--repo", type=repository, metavar="OWNER/NAME", help="for links and full references")
    add_semantic(command)
    command.add_argument("--json", action="store_true", help="print the whole answer as JSON")


def add_outcomes(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("outcomes", help="how the closed threads of a store ended, and by what evidence")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    wanted = command.add_mutually_exclusive_group()
    wanted.add_argument("--ids", metavar="ID,…", help="these threads, with commas between them (default: all closed)")
    wanted.add_argument("--sample", type=number(1, 1_000_000), metavar="N", help="N closed threads at random")
    command.add_argument("--seed", type=number(0, 999_999_999), default=1, metavar="S", help="which (default 1)")
    command.add_argument("--repo", type=repository, metavar="OWNER/NAME", help="tells links to it from others")
    command.add_argument("--json", action="store_true", help="print the outcomes as JSON")


def add_eval(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "eval", help="how well known duplicates of an archive are found, each as of its creation"
    )
    command.add_argument("--threads", required=True, type=Path, metavar="FILE", help="the archive (.jsonl, .jsonl.gz)")
    command.add_argument(
        "--queries",
        required=True,
        type=Path,
        metavar="FILE",
        help="one JSON object a line: id, relevant (a list of ids)",
    )
    command.add_argument("--window-days", type=number(1, 100_000), metavar="N", help="candidates no older than N days")
    command.add_argument("--limit", type=number(1, 1_000_000), metavar="N", help="N queries, spread evenly over all")
    command.add_argument(
        "--ranking",
        choices=("own", "shipped"),
        default="own",
        help="own: refitted on the way, as a repository does once it has 100 marked duplicates (default)",
    )
    command.add_argument(
        "--folds", type=number(2, 50), metavar="N", help="weights fitted to the other folds of the queries, by time"
    )
    add_semantic(command)
    command.add_argument("--against", type=Path, metavar="FILE", help="an earlier result (--json) to compare with")
    command.add_argument("--json", action="store_true", help="print the figures and all ranks as JSON")


def add_backtest(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("backtest", help="what would have been said on the newest issues of a store")
    add_history(command)
    command.add_argument("--html", type=Path, metavar="FILE", help="write a report with plots and the comments")


def add_calibrate(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("calibrate", help="set from which confidence on a store's hits are shown")
    add_history(command)
    wanted = command.add_mutually_exclusive_group()
    wanted.add_argument(
        "--share", type=share, default=0.125, metavar="X", help="the share of issues that get a hit (default 0.125)"
    )
    wanted.add_argument(
        "--precision", type=share, metavar="X", help="the share of comments with a hit that people linked later"
    )


def add_doctor(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "doctor",
        help="what is wrong with a memory and the setup around it, and what mends it",
        description="Looks at everything and writes nothing. A token is taken from PRECEDENT_TOKEN, GH_TOKEN "
        "or GITHUB_TOKEN in the environment. Exit codes: 0 all is well, notes included; 1 there are warnings, or "
        "something outside failed; 2 there is an error that you can mend.",
    )
    command.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="the repository (default: that of the remote origin here)"
    )
    command.add_argument("--server", type=address, metavar="URL", help="its server, to which the token may go")
    command.add_argument("--api", type=address, metavar="URL", help="where that server has its API")
    command.add_argument("--branch", metavar="NAME", help="the branch of the memory (default: that of the settings)")
    command.add_argument("--config", type=Path, metavar="FILE", help="settings to check before they are pushed")
    command.add_argument("--store", type=Path, metavar="DIR", help="check a store instead")
    command.add_argument("--offline", action="store_true", help="ask git and no API")
    command.add_argument("--verbose", action="store_true", help="show what is fine in full too")
    command.add_argument("--json", action="store_true", help="print the findings as JSON")


HISTORY = 3_000
"""Issues that are read where nobody says how many: 120 of the 5,000 points of an hour."""

MOST = 1_000_000


def add_try(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "try",
        help="what would have been said on the newest issues of a repository, as a local page",
        description="Reads the issues of a repository and shows in a local page what Precedent would have said on the "
        "newest ones, each against older ones only. Nothing is written to the repository: a token without any scope "
        "is enough for a public one. It is taken from PRECEDENT_TOKEN, GH_TOKEN or GITHUB_TOKEN in the environment.",
    )
    add = command.add_argument
    add("repository", type=named_repository, metavar="OWNER/NAME", help="the repository, or its address")
    add("--last", type=number(1, MOST), default=50, metavar="N", help="how many issues are shown (default 50)")
    read = f"how many of the issues that changed last are read; all: every one (default {HISTORY:,})"
    add("--history", type=_history_size, default=HISTORY, metavar="N", help=read)
    add("--config", type=Path, metavar="FILE", help="settings to try (default: those of the program)")
    add("--out", type=Path, metavar="FILE", help="the page (default: precedent-OWNER-NAME.html in this folder)")
    add("--open", action="store_true", help="open the page in the browser")
    add("--server", type=address, metavar="URL", help="a server of one's own, to which the token goes")
    again = command.add_mutually_exclusive_group()
    again.add_argument("--fresh", action="store_true", help="forget what was read before")
    again.add_argument("--offline", action="store_true", help="go by what was read before, and ask no server")
    add("--json", action="store_true", help="print figures and the path of the page as JSON")


def _history_size(text: str) -> int:
    """How many issues; 0 and ``all`` for all of them."""
    return 0 if text.lower() in ("all", "0") else number(1, MOST)(text)


def add_show(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "show", help="one thread: how it ended, what was decided, what it links to, what was said"
    )
    command.add_argument(
        "id", metavar="ID", help="an issue (42, #42, OWNER/NAME#42 or its address), or the id of a page or session"
    )
    length = command.add_mutually_exclusive_group()
    length.add_argument(
        "--chars", type=number(1_000, 1_000_000), default=12_000, metavar="N",
        help="characters of the conversation at most (default 12,000)",
    )  # fmt: skip
    length.add_argument("--full", action="store_true", help="the whole conversation")
    add_place(command)


def add_context(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("context", help="what was said in the last days, for an agent's prompt")
    scope = command.add_mutually_exclusive_group(required=True)
    scope.add_argument("--issue", type=issue, metavar="N", help="on this issue or pull request")
    scope.add_argument("--participant", type=login, metavar="LOGIN", help="in the threads in which this account wrote")
    scope.add_argument("--sessions", type=Path, metavar="DIR", help="in the transcripts of agents in this folder")
    scope.add_argument("--branch", action="store_true", help="what is related to the branch here: precedent what")
    add_place(command, answers=False)
    command.add_argument(
        "--format", choices=("xml", "markdown", "json"), default="xml", help="how it is written down (default xml)"
    )
    command.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    command.add_argument(
        "--chars", type=number(MIN_CHARS, MAX_CHARS), default=MAX_CHARS, metavar="N", help="at most so many characters"
    )
    command.add_argument(
        "--days", type=number(1, MAX_DAYS), default=DAYS, metavar="N", help=f"how far back (default {DAYS})"
    )
    command.add_argument(
        "--me",
        type=login,
        action="append",
        metavar="LOGIN",
        help="an account of the agent's own; again for more (default: that of the bot)",
    )
    command.add_argument("--timezone", type=_zone, metavar="NAME", help="such as Europe/Berlin (default: that of here)")
    command.add_argument("--as-of", type=_moment, metavar="TIME", help="as if it were then, such as 2026-05-03T09:30Z")


def _zone(text: str) -> tzinfo:
    from bot.sources.clock import MAX_ZONE, zone_named  # it loads what other commands do without

    zone = zone_named(text)
    if zone is None:
        raise argparse.ArgumentTypeError(f"{clean(text)[:MAX_ZONE]!r} is not a time zone such as Europe/Berlin")
    return zone


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{clean(text)[:40]!r} is not a time such as 2026-05-03T09:30Z") from error
