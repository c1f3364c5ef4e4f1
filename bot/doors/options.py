"""The options of the commands that work on stores and archives, of those that measure, and of the doctor."""

from __future__ import annotations

import argparse
from pathlib import Path

from bot.doors.given import address, issue, number, repository, share

Doors = argparse._SubParsersAction


def add_action(doors: Doors[argparse.ArgumentParser]) -> None:
    doors.add_parser("action", help="handle the event of a GitHub Actions runner")


def add_references(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("references", help="the issues that a text on stdin points at, as JSON")
    command.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="the repository that the text belongs to"
    )
    command.add_argument("--number", type=issue, metavar="N", help="the issue that the text belongs to; it is left out")
    command.add_argument("--autolink", action="append", default=[], metavar="PREFIX", help="a custom autolink prefix")


def add_import(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("import", help="read thread archives (.jsonl, .jsonl.gz) into a store")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an archive")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="the repository that the threads come from"
    )
    _add_semantic(command)
    command.add_argument("--no-learn", dest="learn", action="store_false", help="do not learn from them at the end")
    command.add_argument("--json", action="store_true", help="print counts as JSON")


def add_learn(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("learn", help="have a store learn from its own history, as the Action does")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--seconds",
        type=number(1, 86_400),
        default=60,
        metavar="N",
        help="how long beside the training of words (default 60)",
    )
    command.add_argument("--repo", type=repository, metavar="OWNER/NAME", help="for links and full references")
    _add_semantic(command)
    command.add_argument("--json", action="store_true", help="print the figures as JSON")


def add_answer(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("answer", help="the comment that would be written on a thread of a store")
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
    _add_semantic(command)
    command.add_argument("--json", action="store_true", help="print the whole answer as JSON")


def add_outcomes(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("outcomes", help="how the closed threads of a store ended, and by what evidence")
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    wanted = command.add_mutually_exclusive_group()
    wanted.add_argument("--ids", metavar="ID,…", help="these threads, with commas between them (default: all closed)")
    wanted.add_argument("--sample", type=number(1, 1_000_000), metavar="N", help="N closed threads at random")
    command.add_argument("--seed", type=number(0, 999_999_999), default=1, metavar="S", help="which (default 1)")
    command.add_argument("--repo", type=repository, metavar="OWNER/NAME", help="tells links to it from others")
    command.add_argument("--json", action="store_true", help="print the outcomes as JSON")


def add_eval(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser(
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
    _add_semantic(command)
    command.add_argument("--against", type=Path, metavar="FILE", help="an earlier result (--json) to compare with")
    command.add_argument("--json", action="store_true", help="print the figures and all ranks as JSON")


def add_backtest(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("backtest", help="what would have been said on the newest issues of a store")
    _add_history(command)
    command.add_argument("--html", type=Path, metavar="FILE", help="write a report with plots and the comments")


def add_calibrate(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("calibrate", help="set from which confidence on a store's hits are shown")
    _add_history(command)
    wanted = command.add_mutually_exclusive_group()
    wanted.add_argument(
        "--share", type=share, default=0.125, metavar="X", help="the share of issues that get a hit (default 0.125)"
    )
    wanted.add_argument(
        "--precision", type=share, metavar="X", help="the share of comments with a hit that people linked later"
    )


def _add_history(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", required=True, type=Path, metavar="DIR", help="the folder of the store")
    command.add_argument(
        "--last",
        type=number(1, 1_000_000),
        default=300,
        metavar="N",
        help="how many issues are replayed (default 300)",
    )
    command.add_argument(
        "--seconds", type=number(1, 86_400), metavar="N", help="stop after so long, newest issues first"
    )
    command.add_argument("--repo", type=repository, metavar="OWNER/NAME", help="for links and full references")
    _add_semantic(command)
    command.add_argument("--json", action="store_true", help="print the figures as JSON")


def add_doctor(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser(
        "doctor",
        help="what is wrong with a memory and the setup around it, and what mends it",
        description="Looks at everything and writes nothing. A token is taken from PRECEDENT_TOKEN, GH_TOKEN "
        "or GITHUB_TOKEN in the environment. Exit codes: 0 all is well, notes included; 1 there are warnings, or "
        "something outside failed; 2 there is an error that you can mend.",
    )
    command.add_argument(
        "--repo",
        type=repository,
        metavar="OWNER/NAME",
        help="the repository (default: that of the remote origin here)",
    )
    command.add_argument("--server", type=address, metavar="URL", help="its server, to which the token may go")
    command.add_argument("--api", type=address, metavar="URL", help="where that server has its API")
    command.add_argument("--branch", metavar="NAME", help="the branch of the memory (default: that of the settings)")
    command.add_argument("--config", type=Path, metavar="FILE", help="settings to check before they are pushed")
    command.add_argument("--store", type=Path, metavar="DIR", help="check a store instead")
    command.add_argument("--offline", action="store_true", help="ask git and no API")
    command.add_argument("--verbose", action="store_true", help="show what is fine in full too")
    command.add_argument("--json", action="store_true", help="print the findings as JSON")


def _add_semantic(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--semantic", type=Path, metavar="DIR", help="the folder of a text model, for embeddings beside the words"
    )
