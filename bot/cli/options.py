"""The options of all commands. Loads nothing that only a running command needs: help and completion are fast."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bot.cli.arguments import (
    FileArgument,
    FolderArgument,
    action_name,
    add_answer,
    add_header,
    add_json,
    add_logs,
    add_me,
    add_memory,
    add_memory_branch,
    add_org,
    add_replay,
    add_repo,
    add_repositories,
    add_semantic,
    add_server,
    add_store,
    address,
    delivery_name,
    history_size,
    issue,
    login,
    moment,
    name_pattern,
    named_repository,
    non_empty,
    number,
    one_of,
    positive,
    share,
    since,
    zone,
)
from bot.domain.kinds import Kind
from bot.questions.requests import DAYS, MAX_CHARS, MAX_DAYS, MIN_CHARS

Options = Callable[[argparse.ArgumentParser], None]
MAX_LIMIT = 1_000
DEFAULT_HISTORY = 3_000
"""Issues that `try` reads by default; they cost 120 of the 5,000 points per hour."""

MAX_COUNT = 1_000_000
SHELLS = ("bash", "zsh", "fish")
DELIVERY_STATES = ("waiting", "working", "done", "dead", "dropped")
"""States of deliveries, copied from `bot.server.model.State`, which is slow to load."""


class CommandSpec(NamedTuple):
    """A command: the function that adds its options and describes it, its purpose, an example, and an alias.

    ``module`` is a module of `bot.cli.commands` with a function ``run_NAME``, by default named like ``options``.
    """

    options: Options
    purpose: str
    example: str
    alias: str = ""
    module: str = ""

    @property
    def help(self) -> str:
        """One line on what the command does."""
        return (self.options.__doc__ or "").partition("\n")[0].removesuffix(".")


ASK, SET_UP, CONNECT = "Ask the memory", "Set up a repository", "Connect agents and shells"
STORE, MEASURE, SERVER = "Work with a store", "Measure", "Run a server"

COMMANDS: dict[str, CommandSpec] = {}
"""All commands by name, in listing order."""


def command(purpose: str, example: str, alias: str = "", module: str = "") -> Callable[[Options], Options]:
    """Register a command; its name is the first word of the example."""

    def register(options: Options) -> Options:
        COMMANDS[example.split(maxsplit=1)[0]] = CommandSpec(
            options, purpose, example, alias, module or options.__name__
        )
        return options

    return register


@command(ASK, "search login loop")
def search(command: argparse.ArgumentParser) -> None:
    """Find threads by words."""
    add = command.add_argument
    add("words", nargs="+", metavar="WORDS", help="the words to look for")
    add("--state", **one_of("open", "closed", "all"), default="all", help="only threads in this state (default all)")
    add("--kind", **one_of(*(kind.value for kind in Kind)), help="only this kind (default: all)")
    add("--label", action="append", default=[], help="only threads with this label; if repeated, with all of them")
    add("--author", metavar="LOGIN", help="only threads that this account opened")
    add(
        "--since",
        type=since,
        metavar="WHEN",
        help="only threads changed since 2026-05-03, or in the last 7d, 4w, 6m, 1y",
    )
    add("--limit", type=number(1, MAX_LIMIT), default=10, metavar="N", help="how many, 1 to 1000 (default 10)")
    add("--expand", action="store_true", help="add threads that link to the hits or are linked from them")
    add_org(command, nargs="?", const="", help="search many repositories: those of this folder (`precedent org list`)")
    add_logs(command)
    add_answer(command)
    add_header(command)


@command(ASK, "smart-search session timeout", alias="ss", module="search")
def smart_search(command: argparse.ArgumentParser) -> None:
    """Find threads by words, ranked by your current work."""
    add = command.add_argument
    add("words", nargs="*", metavar="WORDS", help="the words to look for (none: your current work)")
    add("--state", **one_of("open", "closed", "all"), default="all", help="only threads in this state (default all)")
    add("--limit", type=number(1, 50), default=20, metavar="N", help="how many, 1 to 50 (default 20)")
    add_answer(command)
    add_header(command)


@command(ASK, "what", module="search")
def what(command: argparse.ArgumentParser) -> None:
    """List threads, decisions and tasks related to your branch."""
    add_answer(command)
    add_header(command)


@command(ASK, "related auth/*.py", module="search")
def related(command: argparse.ArgumentParser) -> None:
    """Find threads that name files or folders, and their decisions."""
    help_text = "a file or folder, relative to this folder or as threads write it"
    command.add_argument("files", nargs="+", type=str, action=FileArgument, help=help_text)
    add_answer(command)
    add_header(command)


@command(ASK, "show 42")
def show(command: argparse.ArgumentParser) -> None:
    """Print one thread: ending, decisions, messages."""
    command.add_argument(
        "id", metavar="ID", help="an issue (42, #42, OWNER/NAME#42 or its URL), or the id of a page or session"
    )
    length = command.add_mutually_exclusive_group()
    length.add_argument(
        "--chars",
        type=number(1_000, 1_000_000),
        default=12_000,
        metavar="N",
        help="at most N characters of the conversation (at least 1,000; default 12,000)",
    )
    length.add_argument("--full", action="store_true", help="the whole conversation")
    add_answer(command)


@command(ASK, "check draft.md")
def check(command: argparse.ArgumentParser) -> None:
    """Show what the bot would say about an issue before you file it.

    Reads a draft from a file or from stdin. Exit codes: 0 nothing similar is remembered; 3 there is something to read.
    """
    add = command.add_argument
    add("file", nargs="?", action=FileArgument, help="the draft, whose first line is the title (default stdin)")
    add("--title", metavar="TEXT", help="the title, if the draft has only the body")
    add("--comment", action="store_true", help="print the whole comment, with conversations")
    add_memory(command)
    add_json(command, "the comment and the threads in it")


@command(ASK, "context --issue 42")
def context(command: argparse.ArgumentParser) -> None:
    """Write recent conversations, for an agent's prompt."""
    scope = command.add_mutually_exclusive_group(required=True)
    scope.add_argument("--issue", type=issue, metavar="N", help="on this issue or pull request")
    scope.add_argument("--participant", type=login, metavar="LOGIN", help="in threads in which this account wrote")
    scope.add_argument("--sessions", action=FolderArgument, help="in the agent transcripts in this folder")
    scope.add_argument("--branch", action="store_true", help="instead of conversations, the output of precedent what")
    add_memory(command)
    add = command.add_argument
    add("--format", **one_of("xml", "markdown", "json"), default="xml", help="the output format (default xml)")
    add("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    add("--chars", type=number(MIN_CHARS, MAX_CHARS), default=MAX_CHARS, metavar="N", help="at most N characters")
    add("--days", type=number(1, MAX_DAYS), default=DAYS, metavar="N", help=f"how many days back (default {DAYS})")
    add_me(command)
    add("--timezone", type=zone, metavar="NAME", help="such as Europe/Berlin (default: this machine's)")
    add("--as-of", type=moment, metavar="TIME", help="answer as of this time, such as 2026-05-03T09:30Z")


@command(ASK, "digest --since 30d --html digest.html")
def digest(command: argparse.ArgumentParser) -> None:
    """List what maintainers should look at, as lists or as a page.

    Six lists: reports of something that may be back, many reports of one thing, fixes that no release has, decisions,
    answered questions that no page covers, and open duplicates of closed issues. It reads the whole memory.
    """
    add = command.add_argument
    when = "since 2026-05-03, or in the last 7d, 4w, 6m, 1y (default: the last 30d)"
    add("--since", type=since, default="30d", metavar="WHEN", help=f"what happened {when}")
    add("--limit", type=number(1, 100), default=10, metavar="N", help="how many in a list, 1 to 100 (default 10)")
    add("--html", action=FileArgument, help="write a page too")
    add_memory(command)
    add_json(command, "the digest")
    add_header(command)


@command(ASK, "org add octo-org/sdk ../server")
def org(command: argparse.ArgumentParser) -> None:
    """Keep the memories of many repositories together, for search --org.

    Exit code 1: a repository could not be read, and stays as it was.
    """
    add_repositories(command)


@command(SET_UP, "init --write")
def init(command: argparse.ArgumentParser) -> None:
    """Show or write the workflow and the settings.

    Only shows the files, unless --write is given. It replaces nothing, except a workflow with --force, and fetches,
    commits and pushes nothing.
    """
    add = command.add_argument
    add(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="a folder of the checkout (default: here)",
    )
    add("--write", action="store_true", help="write the files")
    add(
        "--action",
        type=action_name,
        metavar="NAME@REF",
        help="the Action to use: OWNER/precedent@ and a commit or tag, or docker:// and an image",
    )
    add("--mode", **one_of("summary", "comment"), help="report in job summaries only, or comment (default: summary)")
    add("--branch", metavar="NAME", help="the memory branch (default: precedent)")
    add("--force", action="store_true", help="replace a workflow that differs, or add one next to another")
    add_json(command, "the files and the next step")


@command(SET_UP, "doctor")
def doctor(command: argparse.ArgumentParser) -> None:
    """Say what is wrong with a setup and how to fix it.

    Checks everything and writes nothing. Reads a token from PRECEDENT_TOKEN, GH_TOKEN or GITHUB_TOKEN in the
    environment. Exit codes: 0 all is well, notes included; 1 there are warnings, or something outside failed; 2
    there is an error that you can fix.
    """
    add_repo(command, "the repository (default: that of the remote upstream here, else origin)")
    add = command.add_argument
    add("--server", type=address, metavar="URL", help="its server, which then receives the token")
    add("--api", type=address, metavar="URL", help="the address of that server's API")
    add("--branch", metavar="NAME", help="the memory branch (default: that of the workflow or settings)")
    add("--config", action=FileArgument, help="settings to check before you push them")
    add("--store", action=FolderArgument, help="check this store instead of a repository")
    add("--offline", action="store_true", help="ask git, but not the API")
    add("--verbose", action="store_true", help="show every check in full")
    add_json(command, "the findings")


@command(SET_UP, "try OWNER/NAME --open")
def try_repository(command: argparse.ArgumentParser) -> None:
    """Preview the comments on a repository's newest issues, as a local page.

    Reads the issues of a repository and writes a local page that shows what Precedent would have said on each of the
    newest ones, knowing only older ones. It writes nothing to the repository, so a token without scopes is enough for
    a public one. Reads the token from PRECEDENT_TOKEN, GH_TOKEN or GITHUB_TOKEN in the environment.
    """
    add = command.add_argument
    add(
        "repository", type=named_repository, metavar="OWNER/NAME", help="the repository, or the URL of one of its pages"
    )
    add("--last", type=number(1, MAX_COUNT), default=50, metavar="N", help="how many issues are shown (default 50)")
    help_text = f"read at least this many issues, most recently changed first, or all (default {DEFAULT_HISTORY:,})"
    add("--history", type=history_size, default=DEFAULT_HISTORY, metavar="N", help=help_text)
    add("--config", action=FileArgument, help="settings to try (default: the built-in ones)")
    add("--out", action=FileArgument, help="the page (default: precedent-OWNER-NAME.html in this folder)")
    add("--open", action="store_true", help="open the page in the browser")
    add("--server", type=address, metavar="URL", help="your own server, which receives the token")
    downloads = command.add_mutually_exclusive_group()
    downloads.add_argument("--fresh", action="store_true", help="discard earlier downloads")
    downloads.add_argument("--offline", action="store_true", help="use only earlier downloads")
    add_json(command, "figures and the path of the page")


@command(SET_UP, "action")
def action(command: argparse.ArgumentParser) -> None:
    """Handle the event of a GitHub Actions runner."""


@command(CONNECT, "mcp --offline")
def mcp(command: argparse.ArgumentParser) -> None:
    """Serve the memory to coding agents as read-only tools (MCP).

    A server of the Model Context Protocol. An agent starts it, talks to it over stdin and stdout, and ends it by
    closing stdin; docs/agents.md shows how to register it.
    """
    command.add_argument("--store", action=FolderArgument, help="the folder of a store")
    add_repo(command, "the repository (default: that of the current checkout)")
    add_memory_branch(command)
    command.add_argument("--offline", action="store_true", help="fetch nothing: use the memory as last fetched")
    add_me(command)


@command(CONNECT, "skill install")
def skill(command: argparse.ArgumentParser) -> None:
    """Teach coding agents to search the memory."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION", help="show or install it")
    actions.add_parser("show", help="print the page")
    install = actions.add_parser("install", help="write it to .agents/skills/cross-reference/SKILL.md")
    add = install.add_argument
    add("--print", action="store_true", help="print the page instead, for agents that look in another folder")
    add("--dry-run", action="store_true", help="say what would be written, and write nothing")
    add("--force", action="store_true", help="replace a page that was edited by hand")
    add_json(install, "what happened to the file")


@command(CONNECT, "completion bash")
def completion(command: argparse.ArgumentParser) -> None:
    """Print a completion script for a shell.

    For bash, put eval "$(precedent completion bash)" into ~/.bashrc. docs/command-line.md has the other shells.
    """
    command.add_argument("shell", **one_of(*SHELLS), metavar="SHELL", help=", ".join(SHELLS))


@command(STORE, "import history.jsonl --store DIR")
def import_archive(command: argparse.ArgumentParser) -> None:
    """Read thread archives (.jsonl, .jsonl.gz) into a store."""
    command.add_argument("files", nargs="+", action=FileArgument, help="an archive")
    add_store(command)
    add_repo(command, "the repository that the threads come from")
    add_semantic(command)
    command.add_argument("--no-learn", dest="learn", action="store_false", help="do not learn from them at the end")
    add_json(command, "counts")


@command(STORE, "learn --store DIR")
def learn(command: argparse.ArgumentParser) -> None:
    """Learn from a store's history, as the Action does."""
    add_store(command)
    command.add_argument(
        "--seconds",
        type=number(1, 86_400),
        default=60,
        metavar="N",
        help="time limit; clusters get as much again (default 60)",
    )
    add_repo(command)
    add_semantic(command)
    add_json(command, "the figures")


@command(STORE, "answer 42 --store DIR")
def answer(command: argparse.ArgumentParser) -> None:
    """Print the comment that a thread of a store would get."""
    command.add_argument(
        "id", metavar="ID", help="an issue (42, #42, OWNER/NAME#42 or its URL), or a thread id such as ABC-123"
    )
    add_store(command)
    command.add_argument(
        "--as-of",
        **one_of("created", "now"),
        default="now",
        help="created: use nothing newer than the thread (default now)",
    )
    add_repo(command)
    add_semantic(command)
    add_json(command, "the whole answer")


@command(STORE, "outcomes --store DIR")
def outcomes(command: argparse.ArgumentParser) -> None:
    """Show how closed threads ended, with the evidence."""
    add_store(command)
    selection = command.add_mutually_exclusive_group()
    selection.add_argument("--ids", metavar="ID,…", help="these threads, separated by commas (default: all closed)")
    selection.add_argument("--sample", type=number(1, MAX_COUNT), metavar="N", help="N random closed threads")
    command.add_argument("--seed", type=number(0, 999_999_999), default=1, metavar="S", help="random seed (default 1)")
    add_repo(command, "the repository, for links and full references")
    add_json(command, "the outcomes")
    add_header(command)


@command(STORE, "references < comment.md")
def references(command: argparse.ArgumentParser) -> None:
    """List the issues that a text on stdin mentions, as JSON."""
    add_repo(command, "the repository that the text belongs to")
    add = command.add_argument
    add("--number", type=issue, metavar="N", help="the text's own issue, which is left out")
    add("--autolink", action="append", default=[], metavar="PREFIX", help="a prefix of custom links; may be repeated")


@command(MEASURE, "eval --threads history.jsonl --queries queries.jsonl")
def evaluate(command: argparse.ArgumentParser) -> None:
    """Measure how well an archive's known duplicates are found."""
    add = command.add_argument
    add("--threads", required=True, action=FileArgument, help="the archive (.jsonl, .jsonl.gz)")
    add("--queries", required=True, action=FileArgument, help="one JSON object per line: id, and relevant (ids)")
    add("--window-days", type=number(1, 100_000), metavar="N", help="candidates at most N days older than the query")
    add("--limit", type=number(1, MAX_COUNT), metavar="N", help="N queries, spread evenly over all")
    add(
        "--ranking",
        **one_of("own", "shipped"),
        default="own",
        help="own: refit along the way, as a repository with 100 marked duplicates does (default)",
    )
    add(
        "--folds",
        type=number(2, 50),
        metavar="N",
        help="fit the weights to the other N - 1 folds of the queries, by time",
    )
    add_semantic(command)
    add("--against", action=FileArgument, help="an earlier result (--json) to compare with")
    add_json(command, "the figures and all ranks")


@command(MEASURE, "backtest --store DIR --html report.html")
def backtest(command: argparse.ArgumentParser) -> None:
    """Replay a store's newest issues, and measure the comments."""
    add_replay(command)
    command.add_argument("--html", action=FileArgument, help="write a report with plots and the comments")


@command(MEASURE, "calibrate --store DIR", module="backtest")
def calibrate(command: argparse.ArgumentParser) -> None:
    """Set the confidence from which a store's hits are shown."""
    add_replay(command)
    goal = command.add_mutually_exclusive_group()
    goal.add_argument(
        "--share", type=share, default=0.125, metavar="X", help="the share of issues that get a hit (default 0.125)"
    )
    goal.add_argument(
        "--precision", type=share, metavar="X", help="the share of comments whose hit people linked later"
    )


@command(SERVER, "serve --check")
def serve(command: argparse.ArgumentParser) -> None:
    """Run as a GitHub App: receive webhooks and handle them.

    Most options are environment variables, such as PRECEDENT_APP_ID; docs/self-hosting.md lists them. These flags
    override their variables.
    """
    add_server(command, "data", "database_url", "organisation", "host", "port", "workers", "jobs")
    command.add_argument("--check", action="store_true", help="report everything that is missing, and exit")


@command(SERVER, "worker --jobs 8", module="serve")
def worker(command: argparse.ArgumentParser) -> None:
    """Handle webhooks that another machine received, from the shared database."""
    add_server(command, "data", "database_url", "organisation", "jobs")
    command.add_argument("--alive", action=FileArgument, help="touch this file every second, for a probe")
    command.add_argument("--parent", type=int, default=0, metavar="PID", help="used by serve: options come from stdin")


@command(SERVER, "deliveries list --state dead")
def deliveries(command: argparse.ArgumentParser) -> None:
    """List a server's deliveries; replay or drop some.

    Actions: list them; show one in full; replay dead ones; drop dead or waiting ones; audit: list who replayed or
    dropped some.
    """
    add = command.add_argument
    actions = ("list", "show", "replay", "drop", "audit")
    add("action", **one_of(*actions), metavar="ACTION", help=f"{', '.join(actions[:-1])} or {actions[-1]}")
    help_text = "which to show, replay or drop; show also takes GitHub's GUID"
    add("numbers", nargs="*", default=[], type=delivery_name, metavar="NUMBER", help=help_text)
    add("--all-dead", action="store_true", help="replay, drop: all dead deliveries that match the filters")
    add("--state", **one_of(*DELIVERY_STATES), help="filter: only deliveries in this state")
    add("--reason", type=non_empty, metavar="TEXT", help="filter: only those whose reason contains this")
    add("--repo", type=non_empty, metavar="REPOSITORY", help="filter: only those of this OWNER/NAME, or key as listed")
    when = "2026-05-03, or 7d, 4w, 6m, 1y ago"
    add("--since", type=since, metavar="WHEN", help=f"filter: only those received since {when}; audit: done since")
    add("--until", type=since, metavar="WHEN", help="filter: only those received before then; audit: done before")
    add("--before", type=positive, metavar="NUMBER", help="list, audit: only what is older than this one")
    add("--limit", type=positive, metavar="N", help="list, audit: at most 1000 (default 50)")
    add("--why", metavar="TEXT", help="replay, drop: the reason, which is stored")
    add_server(command, "data", "database_url")
    add_json(command, "the answer")
    add_header(command)


@command(SERVER, "repos 'octo-org/*'")
def repos(command: argparse.ArgumentParser) -> None:
    """List a server's repositories, and how far their histories are read."""
    help_text = "only these, such as 'octo-org/docs-*'"
    command.add_argument("patterns", nargs="*", type=name_pattern, metavar="PATTERN", help=help_text)
    add_server(command, "data", "database_url")
    add_json(command, "the answer")
    add_header(command)
