"""The commands, in the order of the help: what each is for, in one line, and an example.

A command's module has its arguments, as a class, and its function. It is imported when the command is parsed, so that a
search does not load what other commands need.
"""

from __future__ import annotations

from typing import NamedTuple


class CommandSpec(NamedTuple):
    """A command: what it does, an example of its arguments, its module here if it is not named like it, an alias."""

    help: str
    example: str = ""
    module: str = ""
    alias: str = ""


GROUPS: dict[str, dict[str, CommandSpec]] = {
    "Start": {
        "try": CommandSpec(
            "Preview the comments on a repository's newest issues, as a local page",
            "OWNER/NAME --open",
            "try_repository",
        ),
        "init": CommandSpec("Show or write the workflow and the settings", "--write"),
        "doctor": CommandSpec("Say what is wrong with a setup and how to fix it"),
    },
    "Ask the memory": {
        "search": CommandSpec("Find threads by words", "login loop"),
        "smart-search": CommandSpec(
            "Find threads by words, ranked by your current work", "session timeout", "search", "ss"
        ),
        "what": CommandSpec("List threads, decisions and tasks related to your branch", module="search"),
        "related": CommandSpec("Find threads that name files or folders, and their decisions", "auth/*.py", "search"),
        "show": CommandSpec("Print one thread: ending, decisions, messages", "42"),
        "check": CommandSpec("Show what the bot would say about an issue before you file it", "draft.md"),
        "digest": CommandSpec(
            "List what maintainers should look at, as lists or as a page", "--since 30d --html digest.html"
        ),
        "org": CommandSpec(
            "Keep the memories of many repositories together, for search --org", "add octo-org/sdk ../server"
        ),
    },
    "Connect agents and shells": {
        "context": CommandSpec("Write recent conversations, for an agent's prompt", "--issue 42"),
        "mcp": CommandSpec("Serve the memory to coding agents as read-only tools (MCP)", "--offline"),
        "skill": CommandSpec("Teach coding agents to search the memory", "install"),
        "completion": CommandSpec("Print a completion script for a shell", "bash"),
    },
    "Run the bot": {
        "action": CommandSpec("Handle the event of a GitHub Actions runner"),
        "serve": CommandSpec("Run as a GitHub App: receive webhooks and handle them", "--check"),
        "worker": CommandSpec(
            "Handle webhooks that another machine received, from the shared database", "--jobs 8", "serve"
        ),
        "deliveries": CommandSpec("List a server's deliveries; replay or drop some", "list --state dead"),
        "repos": CommandSpec("List a server's repositories, and how far their histories are read", "'octo-org/*'"),
    },
    "Measure": {
        "import": CommandSpec(
            "Read thread archives (.jsonl, .jsonl.gz) into a store", "history.jsonl --store DIR", "import_archive"
        ),
        "learn": CommandSpec("Learn from a store's history, as the Action does", "--store DIR"),
        "answer": CommandSpec("Print the comment that a thread of a store would get", "42 --store DIR"),
        "outcomes": CommandSpec("Show how closed threads ended, with the evidence", "--store DIR"),
        "references": CommandSpec("List the issues that a text on stdin mentions, as JSON", "< comment.md"),
        "eval": CommandSpec(
            "Measure how well an archive's known duplicates are found",
            "--threads history.jsonl --queries queries.jsonl",
            "evaluate",
        ),
        "backtest": CommandSpec(
            "Replay a store's newest issues, and measure the comments", "--store DIR --html report.html"
        ),
        "calibrate": CommandSpec("Set the confidence from which a store's hits are shown", "--store DIR", "backtest"),
    },
}

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
ALIASES = {command.alias: name for name, command in COMMANDS.items() if command.alias}
