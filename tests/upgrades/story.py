"""The story behind every branch in tests/upgrades/branches, played with the program of the checkout that this runs
in: ``python story.py FOLDER`` leaves the branch and the state of the forge there.

It imports only the stage of the checkout, and nothing from this package, so the program of any release can play it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.acceptance import stage as stages
from tests.acceptance.stage import Stage

PORT = int(os.environ.get("STORY_PORT", "0"))
"""Of the server that the links in the kept comments lead to; 0: any free port."""

SAMPLE = Path("sample")
NOW = "2026-11-03T19:12:00Z"
COMMENTS = "POST /repos/*/issues/*/comments"
BRANCH = "precedent"
FIXED_ENVIRONMENT = {
    **{f"GIT_{who}_{what}": name for who in ("AUTHOR", "COMMITTER") for what, name in (("NAME", "P"), ("EMAIL", "p"))},
    **{f"GIT_{who}_DATE": "2026-11-04T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def begin(folder: Path) -> Stage:
    """The sample's history on a forge, with an empty memory."""
    stages.GitServer = partial(stages.GitServer, port=PORT)
    stage = Stage(folder, NOW, validate=False)
    lines = (SAMPLE / "history.jsonl").read_text(encoding="utf-8").splitlines()
    stage.github.load_archive([json.loads(line) for line in lines])
    stage.github.clock.now = NOW
    stage.github.set_permission("octocat", "write")
    return stage


def play(stage: Stage) -> None:
    """Everything that leaves a trace on the branch: answers, an edited one, replies, a tombstone, a model update, and
    one answer and one request that are pending."""
    events = json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))
    first = _open_issue(stage, events["issue"])
    _comment(stage, first, events["comment"]["author"], events["comment"]["body"])
    _comment(stage, first, "octocat", "/precedent search sessions after a restart")
    silent = _open_issue(stage, events["more"][1]["issue"])
    _comment(stage, silent, "octocat", "/precedent off")
    stage.github.delete_issue(3)
    _act(stage, "issues", "deleted", 3)
    _act(stage, "schedule")
    _act(stage, "workflow_dispatch", inputs={"run": "rebuild"})
    stage.github.faults.add(COMMENTS, "drop", times=None)
    _open_issue(stage, events["more"][0]["issue"], code=1)
    _comment(stage, first, "octocat", "/precedent context #12", code=1)
    for _ in range(
        2
    ):  # until neither is in the changes since the last run: only the branch knows that they are pending
        stage.github.clock.advance(1200)
        _comment(stage, silent, "sample-user-2", "It is the same here.", code=1)
    stage.github.faults.clear()


def _open_issue(stage: Stage, issue: dict[str, str], code: int = 0) -> int:
    number = int(stage.github.open_issue(issue["author"], issue["title"], issue["body"]))
    _act(stage, "issues", "opened", number, code=code)
    return number


def _comment(stage: Stage, number: int, author: str, text: str, code: int = 0) -> None:
    comment = stage.github.comment(number, author, text)
    _act(stage, "issue_comment", "created", number, comment, code=code)


def _act(stage: Stage, *event: object, code: int = 0, **more: object) -> None:
    stage.github.clock.advance(180)
    exit_code = stage.act(*event, **more)
    if exit_code and not code:  # a program without commands fails at none
        raise SystemExit(f"{event} ended with exit code {exit_code}")


def leave(stage: Stage, folder: Path) -> None:
    """The branch as one commit in a bundle, the same bytes each time, and the forge as an archive with its ids."""
    tip = _git(stage.bare, "rev-parse", f"{BRANCH}^{{tree}}")
    message = _git(stage.bare, "log", "-1", "--format=%B", BRANCH)
    subject = "\n".join(line for line in message.splitlines() if not line.startswith("Precedent-Run:"))
    commit = _git(stage.bare, "commit-tree", tip, "-m", subject)
    _git(stage.bare, "update-ref", f"refs/heads/{BRANCH}", commit)
    pack = ("-c", "pack.threads=1", "-c", "pack.compression=9", "-c", "pack.window=50")
    _git(stage.bare, *pack, "bundle", "create", "--quiet", str(folder / "branch.bundle"), BRANCH)
    state = {"now": stage.github.clock.now, "threads": stage.github.export_archive()}
    text = json.dumps(state, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    (folder / "forge.json").write_text(text, encoding="utf-8")


def _git(bare: Path, *words: str) -> str:
    command = ["git", "-C", str(bare), *words]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | FIXED_ENVIRONMENT
    ).stdout.strip()


def main(folder: Path) -> int:
    """Play it in ``folder``, which exists and is empty."""
    stage = begin(folder)
    try:
        play(stage)
        leave(stage, folder)
    finally:
        stage.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
