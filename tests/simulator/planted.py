"""Plants bugs, one at a time, in a copy of the program: the simulator must catch each of them.

``python -m tests.simulator.planted [NAME …]`` prints after how many histories it did, and by which rule.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("bot", "templates", "tests")
PUSHING = "    run.memory.commit(_commit_message(event))\n"
SPEAKING = (
    "    if facts.is_first and run.memory.issues:\n        _note_first_run(run)\n"
    '    run.on_stage("say")\n'
    "    settlements = [carry_out(draft, promised.get(draft.key), run) for draft in still_ours(drafts, run)]\n"
)
MAX_HISTORIES = 400
"""A bug not caught after so many histories counts as missed. The rarest needs 240: few runs push at the same time."""


@dataclass(frozen=True)
class Bug:
    """One replacement in the text of one file."""

    name: str
    path: str
    old: str
    new: str
    first: int = 1
    """The seed at which the hunt begins: for a rare bug, shortly before the history that catches it."""


BUGS = (
    Bug(
        "the comment comes before memory",
        "bot/pipeline/handle.py",
        f"{PUSHING}{SPEAKING}",
        f"{SPEAKING}{PUSHING}",
    ),
    Bug(
        "a lost POST is repeated blindly",
        "bot/github/transport.py",
        "pauses, kind = RETRY_DELAYS if is_read and request.repeats else (), ",
        "pauses, kind = RETRY_DELAYS, ",
    ),
    Bug(
        "the push is forced",
        "bot/git/repository.py",
        'if lease else ()\n        move = ("origin", f"{oid}:{ref}")',
        'if lease else ()\n        move = ("origin", f"+{oid}:{ref}")',
    ),
    Bug(
        "the cursor moves first",
        "bot/pipeline/fetch.py",
        "    stored, comments = dict(memory.whole_records(ids)), memory.state.comments(ids)\n",
        "    stored, comments = dict(memory.whole_records(ids)), memory.state.comments(ids)\n"
        "    memory.stage(Changes(cursor=max((parse_time(issue[\"updated_at\"]) for issue in listed), default=None)))\n"
        '    memory.commit("Cursor")\n',
    ),
    Bug(
        "promises are forgotten",
        "bot/memory/manifest.py",
        "    return tuple(dict.fromkeys([*kept, *promised]))\n",
        "    return ()\n",
    ),
    Bug(
        "the marker counts whoever wrote it",
        "bot/github/threads.py",
        "        if not self._is_by_us(comment):\n            return None\n",
        "",
    ),
    Bug(
        "a tombstone loses to what is held",
        "bot/memory/records.py",
        "    if new.revised_at != old.revised_at:\n",
        "    if isinstance(new, Tombstone):\n        return False\n    if new.revised_at != old.revised_at:\n",
    ),
    Bug(
        "equal timestamps are taken for equal threads",
        "bot/github/updates.py",
        "if updated != stored.revised_at or not isinstance(stored, Thread):",
        "if True:",
    ),
    Bug(
        "a deleted comment is written again",
        "bot/pipeline/comments.py",
        'before.state == "removed":\n        return None, True\n',
        'before.state == "removed":\n        return None, False\n',
    ),
    Bug(
        "the later of two writers wins without looking",
        "bot/memory/memory.py",
        "        for changes in staged:\n            self.stage(",
        "        for changes in staged[:0]:\n            self.stage(",
        first=230,
    ),
    Bug(
        "a change is owed to no comment",
        "bot/memory/staged_state.py",
        "            if _is_visible(self._cached_record(key), new[key], self.repo):\n",
        "            if False:\n",
        first=45,
    ),
    Bug(
        "a comment stands as it did though what it quotes was taken back",
        "bot/domain/answer.py",
        "    return not marks.issuperset(post.quotes)\n",
        "    return False\n",
        first=45,
    ),
)  # fmt: skip


def plant(bug: Bug, folder: Path) -> None:
    """Copy the program with this bug in it; LookupError if the text that it replaces is no longer there."""
    for name in NEEDED:
        shutil.copytree(ROOT / name, folder / name)
    path = folder / bug.path
    text = path.read_text(encoding="utf-8")
    if text.count(bug.old) != 1:
        raise LookupError(f"{bug.name}: its place is in {bug.path} {text.count(bug.old)} times")
    path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")


def hunt(bug: Bug, histories: int = MAX_HISTORIES) -> tuple[int, str]:
    """After how many histories the bug was caught, and the broken rule; (0, "") if it was not."""
    with tempfile.TemporaryDirectory(prefix="planted-") as temporary:
        folder = Path(temporary)
        plant(bug, folder)
        report_file = folder / "found.json"
        seeds = ["--histories", str(histories), "--from", str(bug.first)]
        options = [*seeds, "--processes", "1", "--first-violation", "--json", str(report_file)]
        command = [sys.executable, "-m", "tests.simulator", *options]
        environment = os.environ | {"PYTHONPATH": str(folder)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if not report_file.exists():
            raise RuntimeError(f"{bug.name}: the simulator did not come to its end: {done.stderr[-800:]}")
        summary = json.loads(report_file.read_text())
        broken = next(iter(summary["broken"].values()), [""])
        return (summary["histories"] if broken[0] else 0), broken[0]


def main(names: list[str]) -> int:
    missed = 0
    for bug in BUGS:
        if names and not any(name in bug.name for name in names):
            continue
        after, fault = hunt(bug)
        print(f"{bug.name}: " + (f"caught after {after}: {fault[:160]}" if after else "MISSED"), flush=True)
        missed += not after
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
