"""The sample's events, run in the image as a runner does and by Python on this machine, with the same results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.bare_repository import Bare
from tests.acceptance.replay import apply_event, archive_events
from tests.acceptance.stage import Stage
from tests.container.base_image import find_python, run
from tests.container.engine import ROOT, Engine
from tests.container.runner import Runner
from tests.fakes.archive import read_archive
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.container

SAMPLE = ROOT / "sample"
STORY = json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))
REPLAYED = int(os.environ.get("SAMPLE_EVENTS", "12"))
"""How many events of the sample's history are run one by one, the last ones; earlier ones exist from the start. Running
all of them takes ten minutes."""

TIME = re.compile(r'\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|"(?:seconds|ms_p\d+)": ?[\d.]+')

MODEL = "model-of-the-image"
"""A folder of the workspace, with the image's model: the same for a run outside, which has no /models."""

Event = tuple[str, str | None, int | None, int | None]


class SampleWorld(Stage):
    """The sample's repository, at ports that the second instance gets again, so that no address differs."""

    def __init__(self, folder: Path, ports: tuple[int, int] = (0, 0)) -> None:
        self._began = datetime.now(UTC).replace(microsecond=0, tzinfo=None).isoformat()
        servers = {"git": partial(GitServer, port=ports[0]), "github": partial(FakeGitHub, port=ports[1])}
        super().__init__(folder, "2024-01-01T00:00:00Z", validate=False, repository=STORY["repository"], **servers)
        self.git.create(f"{self.repository}.wiki")
        for page in sorted(SAMPLE.glob("*/*.md")):
            is_wiki = page.parent.name == "wiki"
            repository, path = (
                (f"{self.repository}.wiki", page.name) if is_wiki else (self.repository, f"docs/{page.name}")
            )
            self.git.commit(repository, path, page.read_bytes())
        self.configure(f"similar: {{model: {MODEL}}}")
        self.ports = (self.git.server_port, int(self.github.url.rpartition(":")[2]))

    def events(self) -> Iterator[Event]:
        """Make each event happen, and yield it."""
        threads: Mapping[int, Any] = {thread["id"]: thread for thread in read_archive(SAMPLE / "history.jsonl")}
        past = sorted(archive_events(threads.values()))
        for index, event in enumerate(past):
            name, action, comment = apply_event(self, event, threads[event.number])
            if index >= len(past) - REPLAYED:
                yield name, action, event.number, comment
        yield from self._story()
        yield "schedule", None, None, None

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
        """Our comments on each issue, and the files of the memory branch except the indexes, whose names are random.

        Times after the start are all replaced: they depend on when the test ran, and how long it took.
        """
        comments = {number: self.comments(number) for number in self.github.repo.issues}
        snapshot = Bare(self.bare).snapshot()
        stable = [path for path in snapshot.files if not path.startswith(("index/", "messages/", "manifest.json"))]
        texts = {path: data.decode("utf-8", "backslashreplace") for path, data in snapshot.read(stable).items()}
        return comments, {path: TIME.sub(self._timeless, text) for path, text in texts.items()}

    def _timeless(self, match: re.Match[str]) -> str:
        return "today" if match[0] >= self._began or match[0].startswith('"') else match[0]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of the image's version with the image's libraries: with another version of numpy, the last digits of
    what is learned from the history differ."""
    if sys.version_info[:2] == (3, 13):
        return Path(sys.executable)
    folder = tmp_path_factory.mktemp("outside")
    run([find_python() / "bin/python3.13", "-m", "venv", folder])
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", ROOT / "requirements.lock")
    run([folder / "bin/python", *install])
    return folder / "bin/python"


def copy_model(runner: Runner) -> None:
    """Copy the image's model into the workspace."""
    script = f"import shutil; shutil.copytree('/models', '/github/workspace/{MODEL}')"
    volume = f"{runner.folder / 'workspace'}:/github/workspace"
    result = runner.engine.run("-I", "-c", script, options=["-v", volume, "--entrypoint", "/opt/precedent/bin/python"])
    assert result.code == 0, result.output


def replay_events(runner: Runner, world: SampleWorld, run_event: Callable[[str], str]) -> Any:
    """Run all events and return the state of the repository; ``run_event`` returns what is wrong with a run."""
    runner.connect(world.github, world.git)
    for event, action, number, comment in world.events():
        world.github.ahead = time.time() - world.github.clock.epoch  # a run goes by GitHub's clock
        world.github.write_event(runner.folder / "workflow/event.json", event, action, number, comment)
        assert run_event(event) == ""
    return world.result()


def differences(name: str, text: str, other_text: str) -> list[str]:
    return [f"{name}: {line}" for line in unified_diff(text.splitlines(), other_text.splitlines(), lineterm="", n=0)]


def test_each_event_has_the_same_result_inside_and_outside_the_container(
    engine: Engine, tmp_path: Path, python: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    inside, outside = Runner(engine, tmp_path / "a"), Runner(engine, tmp_path / "b")
    for runner in (inside, outside):
        copy_model(runner)

    def in_container(event: str) -> str:
        result = inside.run(event, "--network", "host")
        return "" if result.code == 0 else result.output

    def on_this_machine(event: str) -> str:
        command = [python, "-m", "bot", "action"]
        environment = outside.environment_outside(event, python)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return done.stderr + done.stdout if done.returncode else ""

    first = SampleWorld(tmp_path / "first")
    try:
        actual = replay_events(inside, first, in_container)
    finally:
        first.close()
    second = SampleWorld(tmp_path / "second", first.ports)
    try:
        expected = replay_events(outside, second, on_this_machine)
    finally:
        second.close()
    comments, files = actual
    assert sum(map(bool, comments.values())) >= 3, "the sample has something to say"
    assert comments == expected[0]
    assert sorted(files) == sorted(expected[1])
    assert [difference for name in files for difference in differences(name, files[name], expected[1][name])] == []
