"""Runs the Action on the shipped sample: a fake GitHub and a git remote on loopback, two events, and the comment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.fakes.archive import read_archive
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tools.preview import PageComment, page

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample"
OUT = ROOT / ".demo"
HIDDEN = "<!-- precedent"
FOLDED = re.compile(r"<details><summary>(.*?)</summary>.*?</details>", re.DOTALL)


class Stage:
    """A repository with the sample's history, and the Action as a runner would start it."""

    def __init__(self, folder: Path) -> None:
        self.story = json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))
        self.repository: str = self.story["repository"]
        self.folder = folder
        self.git = GitServer(folder / "git")
        self.git.create(self.repository)
        self.git.commit(self.repository, "README.md", "# Linkbarn\n")
        self.github = FakeGitHub(self.repository, self.story["issue"]["created_at"], validate=False, site=self.git.url)
        self.github.load_archive(read_archive(SAMPLE / "history.jsonl"))

    def act(self, event: str, action: str, number: int, comment: int | None = None) -> None:
        """Run the Action on one event, as its container would; its log goes to stderr."""
        self.github.ahead = time.time() - self.github.clock.epoch  # the Action runs by this machine's clock
        self.github.write_event(self.folder / "event.json", event, action, number, comment)
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment |= self.github.environment(event, self.folder)
        command = [sys.executable, "-m", "bot", "action"]
        finished = subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=sys.stderr)
        if finished.returncode:
            raise SystemExit(f"the demo failed: the Action ended with exit code {finished.returncode}")

    def comment(self, number: int) -> str:
        """The bot's one comment on an issue."""
        (reply,) = self.github.comments_by("github-actions[bot]", number)
        return str(reply.body)

    def close(self) -> None:
        self.github.stop()
        self.git.stop()


def main() -> int:
    """Play the story; returns 0 if the second event changed the comment."""
    with tempfile.TemporaryDirectory(prefix="precedent-demo-") as folder:
        stage = Stage(Path(folder))
        try:
            return play(stage)
        finally:
            stage.close()


def play(stage: Stage) -> int:
    issue, remark = stage.story["issue"], stage.story["comment"]
    kinds = [thread.pull is not None for thread in stage.github.repo.issues.values()]
    print_heading(
        f"A repository with {kinds.count(False)} issues and {kinds.count(True)} pull requests; a new issue is opened:"
    )
    print_quoted(f"{issue['title']}\n\n{issue['body']}")
    number = stage.github.open_issue(issue["author"], issue["title"], issue["body"], at=issue["created_at"])
    print_heading("The Action runs, on its first event, so that it reads the history before; its log:")
    stage.act("issues", "opened", number)
    first = stage.comment(number)
    print_heading("Precedent's comment, with what opens at a click folded (▸):")
    print_quoted(folded(first))
    print_heading("The author comments, and points at another issue:")
    print_quoted(remark["body"])
    comment = stage.github.comment(number, remark["author"], remark["body"], at=remark["created_at"])
    print_heading("The Action runs:")
    stage.act("issue_comment", "created", number, comment)
    second = stage.comment(number)
    print_heading("The same comment, brought up to date:")
    print_quoted(folded(second))
    file = write_page(stage, number, second)
    print_heading(f"As GitHub would show it: {file}")
    return 0 if first != second else 1


def write_page(stage: Stage, number: int, text: str) -> Path:
    """The issue with its comments as an HTML file."""
    issue, remark = stage.story["issue"], stage.story["comment"]
    opened, commented = (datetime.fromisoformat(part["created_at"]) for part in (issue, remark))
    posts = [
        PageComment(issue["author"], issue["body"], opened),
        PageComment("github-actions", visible(text), opened, is_bot=True),
        PageComment(remark["author"], remark["body"], commented),
    ]
    OUT.mkdir(exist_ok=True)
    file = OUT / "comment.html"
    file.write_text(page(posts, issue["title"], number, stage.repository), encoding="utf-8")
    (OUT / "comment.md").write_text(text, encoding="utf-8")
    return file


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
