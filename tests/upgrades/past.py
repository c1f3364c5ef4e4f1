"""A repository as the program of an earlier state left it: its branch on a git server, and what stood on the forge."""

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
from tests.upgrades.make import BRANCHES

BRANCH = "precedent"
NAMES = sorted(path.stem for path in BRANCHES.glob("*.bundle"))


@contextmanager
def restored(name: str, folder: Path) -> Iterator[Stage]:
    """The repository of this fixture, some minutes after the last run of its program."""
    folder.mkdir(exist_ok=True)
    told = json.loads(gzip.decompress((BRANCHES / f"{name}.forge.json.gz").read_bytes()))
    stage = Stage(folder, told["now"], validate=False)
    try:
        github = stage.github
        github.load_archive(told["threads"])
        github.world._ids = itertools.count(2_000_001)  # none that a kept comment has
        github.clock.now = told["now"]
        github.clock.advance(300)
        github.set_permission("octocat", "write")
        git(stage, "fetch", "--quiet", str(BRANCHES / f"{name}.bundle"), f"{BRANCH}:{BRANCH}")
        yield stage
    finally:
        stage.close()


def git(stage: Stage, *words: str) -> str:
    """What git says of the bare repository."""
    command = ["git", "-C", str(stage.bare), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tip(stage: Stage) -> str:
    """The commit that the branch stands at."""
    return git(stage, "rev-parse", BRANCH).strip()


def files(stage: Stage) -> dict[str, bytes]:
    """All files of the branch."""
    packed = subprocess.run(["git", "-C", str(stage.bare), "archive", BRANCH], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        found = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in found.items() if file}


def records(held: dict[str, bytes]) -> dict[ThreadId, Record]:
    """The records among these files."""
    found = (decode_record(data) for path, data in held.items() if path.startswith("records/"))
    return {record.id: record for record in found}


def said(held: dict[str, bytes]) -> dict[ThreadId, AnswerRecord]:
    """What was said, among these files."""
    read = (ANSWERS.read(path, data, None)[0] for path, data in held.items() if path.startswith("answers/"))
    return {key: one for each in read for key, one in each.items()}


def requests(held: dict[str, bytes]) -> dict[int, Request]:
    """What was asked for, by comment, among these files."""
    read = (REQUESTS.read(path, data, None)[0] for path, data in held.items() if path.startswith("wishes/"))
    return {wish.comment_id: wish for each in read for told in each.values() for wish in told}


def manifest(held: dict[str, bytes]) -> manifests.Manifest:
    """The manifest among these files."""
    return manifests.decode_manifest(held[manifests.MANIFEST_PATH])


def ours(stage: Stage) -> Counter[tuple[int, str]]:
    """How many comments of ours stand on each issue: its own, and the replies to each comment."""
    found: Counter[tuple[int, str]] = Counter()
    requests = [comment.id for issue in stage.github.repo.issues.values() for comment in issue.comments]
    for number, issue in stage.github.repo.issues.items():
        for comment in issue.comments:
            if comment.author and comment.author.login == BOT:
                body = comment.body
                replied = next((str(key) for key in requests if find_marker(body, reply_to=key)), "")
                found[number, replied] += 1
    return found
