"""Runs the Action on the shipped sample: a fake GitHub and a git remote on loopback, two events, and the comment."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from tests.acceptance.stage import Stage
from tests.fakes.archive import read_archive
from tools.preview import PageComment, page

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample"
OUT = ROOT / ".demo"
STORY = json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))
ISSUE, REMARK = STORY["issue"], STORY["comment"]
HIDDEN = "<!-- precedent"
FOLDED = re.compile(r"<details><summary>(.*?)</summary>.*?</details>", re.DOTALL)


def sample_stage(folder: Path) -> Stage:
    """The sample's repository with its history."""
    stage = Stage(folder, ISSUE["created_at"], validate=False, repository=STORY["repository"])
    stage.git.commit(stage.repository, "README.md", "# Linkbarn\n")
    stage.github.load_archive(read_archive(SAMPLE / "history.jsonl"))
    return stage


def open_issue(stage: Stage) -> int:
    """Open the sample's new issue; returns its number."""
    return stage.github.open_issue(ISSUE["author"], ISSUE["title"], ISSUE["body"], at=ISSUE["created_at"])


def comment_after(stage: Stage, event: str, action: str, number: int, comment: int | None = None) -> str:
    """The bot's comment on an issue after an event; the log of the Action goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        code = stage.act(event, action, number, comment)
    if code:
        raise SystemExit(f"the demo failed: the Action ended with exit code {code}")
    (text,) = stage.comments(number)
    return text


def issue_page(stage: Stage, number: int, text: str, remark: str = "") -> str:
    """The issue, the bot's comment and perhaps the author's remark, as an HTML page."""
    opened, remarked = (datetime.fromisoformat(part["created_at"]) for part in (ISSUE, REMARK))
    posts = [
        PageComment(ISSUE["author"], ISSUE["body"], opened),
        PageComment("github-actions", visible(text), opened, is_bot=True),
        *([PageComment(REMARK["author"], remark, remarked)] if remark else []),
    ]
    return page(posts, ISSUE["title"], number, stage.repository)


def main() -> int:
    """Play the story; returns 0 if the second event changed the comment."""
    with tempfile.TemporaryDirectory(prefix="precedent-demo-") as folder, sample_stage(Path(folder)) as stage:
        return play(stage)


def play(stage: Stage) -> int:
    kinds = [thread.pull is not None for thread in stage.github.repo.issues.values()]
    print_heading(
        f"A repository with {kinds.count(False)} issues and {kinds.count(True)} pull requests; a new issue is opened:"
    )
    print_quoted(f"{ISSUE['title']}\n\n{ISSUE['body']}")
    number = open_issue(stage)
    print_heading("The Action runs, on its first event, so that it reads the history before; its log:")
    first = comment_after(stage, "issues", "opened", number)
    print_heading("Precedent's comment, with what opens at a click folded (▸):")
    print_quoted(folded(first))
    print_heading("The author comments, and points at another issue:")
    print_quoted(REMARK["body"])
    comment = stage.github.comment(number, REMARK["author"], REMARK["body"], at=REMARK["created_at"])
    print_heading("The Action runs:")
    second = comment_after(stage, "issue_comment", "created", number, comment)
    print_heading("The same comment, brought up to date:")
    print_quoted(folded(second))
    OUT.mkdir(exist_ok=True)
    (OUT / "comment.md").write_text(second, encoding="utf-8")
    file = OUT / "comment.html"
    file.write_text(issue_page(stage, number, second, REMARK["body"]), encoding="utf-8")
    print_heading(f"As GitHub would show it: {file}")
    return 0 if first != second else 1


def visible(text: str) -> str:
    """A comment without its hidden lines."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(HIDDEN)).strip() + "\n"


def folded(text: str) -> str:
    """A comment before anybody clicks: only the summary of each ``details``."""
    return FOLDED.sub(r"▸ \1", text)


def print_heading(line: str) -> None:
    print(f"\n\033[1m{line}\033[0m" if sys.stdout.isatty() else f"\n== {line}", flush=True)


def print_quoted(text: str) -> None:
    print("\n".join(f"  | {line}" for line in visible(text).splitlines()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
