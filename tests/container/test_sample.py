"""The sample's events, run in the image as a runner does it and by Python on this machine: the results are the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.replay import Happening, happen, happenings
from tests.container.base_image import find_python, run
from tests.container.engine import ROOT, Engine
from tests.container.runner import Runner
from tests.fakes.archive import read_archive
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.container

SAMPLE = ROOT / "sample"
STORY = json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))
LIVED = int(os.environ.get("SAMPLE_EVENTS", "12"))
"""Events of the sample's history that are run one by one, the last ones; what was before is there from the start. All
of them take ten minutes."""

TIME = re.compile(r'\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|"(?:seconds|ms_p\d+)": ?[\d.]+')

Event = tuple[str, str | None, int | None, int | None]


class Village:
    """The sample's repository, at ports that the second one gets again, so that no address differs."""

    def __init__(self, folder: Path, ports: tuple[int, int] = (0, 0)) -> None:
        folder.mkdir()
        self._began = datetime.now(UTC).replace(microsecond=0, tzinfo=None).isoformat()
        self.git = GitServer(folder / "git", port=ports[0])
        self.bare = self.git.create(STORY["repository"])
        self.git.create(f"{STORY['repository']}.wiki")
        for page in sorted(SAMPLE.glob("*/*.md")):
            repository, place = STORY["repository"], f"docs/{page.name}"
            if page.parent.name == "wiki":
                repository, place = f"{repository}.wiki", page.name
            self.git.commit(repository, place, page.read_bytes())
        start = "2024-01-01T00:00:00Z"
        self.github = FakeGitHub(STORY["repository"], start, validate=False, site=self.git.url, port=ports[1])
        self.ports = (self.git.server_port, int(self.github.url.rpartition(":")[2]))

    def close(self) -> None:
        self.github.stop()
        self.git.stop()

    def events(self) -> Iterator[Event]:
        """Each event, when it has happened."""
        threads: Mapping[int, Any] = {thread["id"]: thread for thread in read_archive(SAMPLE / "history.jsonl")}
        past = sorted(happenings(threads.values()))
        for place, event in enumerate(past):
            name, action, comment = self._happen(event, threads[event.number])
            if place >= len(past) - LIVED:
                yield name, action, event.number, comment
        yield from self._story()
        yield "schedule", None, None, None

    def _happen(self, event: Happening, thread: Mapping[str, Any]) -> tuple[str, str, int | None]:
        return happen(self, event, thread)  # type: ignore[arg-type]

    def _story(self) -> Iterator[Event]:
        remark = STORY["comment"]
        number = self._open(STORY["issue"])
        yield "issues", "opened", number, None
        yield (
            "issue_comment",
            "created",
            number,
            self.github.comment(number, remark["author"], remark["body"], at=remark["created_at"]),
        )
        for more in STORY["more"]:
            yield "issues", "opened", self._open(more["issue"]), None
        self.github.close(number, STORY["issue"]["author"])
        yield "issues", "closed", number, None

    def _open(self, issue: Mapping[str, Any]) -> int:
        self.github.repo.next_number = issue["number"]
        return self.github.open_issue(issue["author"], issue["title"], issue["body"], at=issue["created_at"])

    def result(self) -> tuple[dict[int, list[str]], dict[str, str]]:
        """Our comments on each issue, and the files of the memory branch but for the indexes, whose names are random.

        Times after the village was made are all the same: they tell when the test ran, and how long it took.
        """
        told = {number: self.github.comments_by("github-actions[bot]", number) for number in self.github.repo.issues}
        comments = {number: [str(comment.body) for comment in found] for number, found in told.items()}
        names = self._git("ls-tree", "-r", "--name-only", "precedent").splitlines()
        kept = [name for name in names if not name.startswith(("index/", "messages/")) and name != "manifest.json"]
        return comments, {name: TIME.sub(self._timeless, self._git("show", f"precedent:{name}")) for name in kept}

    def _timeless(self, found: re.Match[str]) -> str:
        return "today" if found[0] >= self._began or found[0].startswith('"') else found[0]

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", "-C", str(self.bare), *words], capture_output=True, check=True)
        return done.stdout.decode("utf-8", "backslashreplace")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of the image's version with the image's libraries: what is learned from the history has other last
    digits with another version of numpy."""
    if sys.version_info[:2] == (3, 13):
        return Path(sys.executable)
    folder = tmp_path_factory.mktemp("outside")
    run([find_python() / "bin/python3.13", "-m", "venv", folder])
    install = ("-m", "pip", "install", "--quiet", "--require-hashes", "-r", ROOT / "requirements.lock")
    run([folder / "bin/python", *install])
    return folder / "bin/python"


def lived(runner: Runner, village: Village, act: Callable[[str], str]) -> Any:
    """What the repository is like after all events; ``act`` gives what is wrong with a run."""
    runner.talk_to(village.github, village.git)
    for event, action, number, comment in village.events():
        village.github.write_event(runner.folder / "workflow/event.json", event, action, number, comment)
        assert act(event) == ""
    return village.result()


def differences(name: str, one: str, other: str) -> list[str]:
    return [f"{name}: {line}" for line in unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0)]


def test_each_event_leads_to_the_same_inside_and_outside(engine: Engine, tmp_path: Path, python: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    inside, outside = Runner(engine, tmp_path / "a"), Runner(engine, tmp_path / "b")

    def in_container(event: str) -> str:
        ended = inside.run(event, "--network", "host")
        return "" if ended.code == 0 else ended.said

    def on_this_machine(event: str) -> str:
        command = [python, "-m", "bot", "action"]
        environment = outside.outside(event, python)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return done.stderr + done.stdout if done.returncode else ""

    first = Village(tmp_path / "first")
    try:
        found = lived(inside, first, in_container)
    finally:
        first.close()
    second = Village(tmp_path / "second", first.ports)
    try:
        wanted = lived(outside, second, on_this_machine)
    finally:
        second.close()
    comments, files = found
    assert sum(map(bool, comments.values())) >= 3, "the sample has something to say"
    assert comments == wanted[0]
    assert sorted(files) == sorted(wanted[1])
    assert [differing for name in files for differing in differences(name, files[name], wanted[1][name])] == []
