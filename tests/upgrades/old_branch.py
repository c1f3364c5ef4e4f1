"""A repository as an earlier program left it: its branch on a git server, and the threads on the forge."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.domain.changes import AnswerRecord, Request
from bot.domain.thread import Record, ThreadId
from bot.memory import manifest as manifests
from bot.memory.records import decode_record
from bot.memory.shards import ANSWERS, REQUESTS
from tests.acceptance.stage import BOT, Stage
from tests.marker import find_marker
from tests.upgrades.save_branch import BRANCHES

BRANCH = "precedent"
NAMES = sorted(path.stem for path in BRANCHES.glob("*.bundle"))


@contextmanager
def restored(name: str, folder: Path) -> Iterator[Stage]:
    """The repository of this fixture, some minutes after the last run of its program."""
    folder.mkdir(exist_ok=True)
    forge = json.loads(gzip.decompress((BRANCHES / f"{name}.forge.json.gz").read_bytes()))
    stage = Stage(folder, forge["now"], validate=False)
    try:
        github = stage.github
        github.load_archive(forge["threads"])
        github.world._ids = itertools.count(2_000_001)  # above the ids of kept comments
        github.clock.now = forge["now"]
        github.clock.advance(300)
        github.set_permission("octocat", "write")
        git(stage, "fetch", "--quiet", str(BRANCHES / f"{name}.bundle"), f"{BRANCH}:{BRANCH}")
        yield stage
    finally:
        stage.close()


def git(stage: Stage, *words: str) -> str:
    """Run git in the bare repository; returns its output."""
    command = ["git", "-C", str(stage.bare), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tip(stage: Stage) -> str:
    """The newest commit of the branch."""
    return git(stage, "rev-parse", BRANCH).strip()


def files(stage: Stage) -> dict[str, bytes]:
    """All files of the branch."""
    archived = subprocess.run(["git", "-C", str(stage.bare), "archive", BRANCH], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archived)) as archive:
        return {each.name: content.read() for each in archive if (content := archive.extractfile(each))}


def records(branch_files: dict[str, bytes]) -> dict[ThreadId, Record]:
    """The records among these files."""
    decoded = (decode_record(data) for path, data in branch_files.items() if path.startswith("records/"))
    return {record.id: record for record in decoded}


def answers(branch_files: dict[str, bytes]) -> dict[ThreadId, AnswerRecord]:
    """The answers among these files."""
    shards = (ANSWERS.read(path, data, None)[0] for path, data in branch_files.items() if path.startswith("answers/"))
    return {key: answer for each in shards for key, answer in each.items()}


def requests(branch_files: dict[str, bytes]) -> dict[int, Request]:
    """The requests among these files, by comment."""
    read = (REQUESTS.read(path, data, None)[0] for path, data in branch_files.items() if path.startswith("wishes/"))
    return {
        request.comment_id: request for each in read for shard_requests in each.values() for request in shard_requests
    }


def manifest(branch_files: dict[str, bytes]) -> manifests.Manifest:
    """The manifest among these files."""
    return manifests.decode_manifest(branch_files[manifests.MANIFEST_PATH])


def count_comments(stage: Stage) -> Counter[tuple[int, str]]:
    """How many comments the bot has on each issue: its answers (""), and the replies to each comment."""
    counts: Counter[tuple[int, str]] = Counter()
    requests = [comment.id for issue in stage.github.repo.issues.values() for comment in issue.comments]
    for number, issue in stage.github.repo.issues.items():
        for comment in issue.comments:
            if comment.author and comment.author.login == BOT:
                body = comment.body
                request_id = next((str(key) for key in requests if find_marker(body, reply_to=key)), "")
                counts[number, request_id] += 1
    return counts
