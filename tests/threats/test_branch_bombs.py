"""A server with one repository whose memory branch is a bomb: it answers the others as before, and goes on."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.model import Delivery
from tests.fakes.payloads import EventfulProject
from tests.server.server_process import APP, REPOSITORY, ServerStage, until
from tests.threats.bombs import BOMBS, lay

pytestmark = pytest.mark.night

PEAK_MB = 600
OTHERS = ("octo-org/first", "octo-org/second")


class BombedServer:
    """A server of three repositories, each with a memory of its own."""

    def __init__(self, folder: Path) -> None:
        self.stage = ServerStage(folder)
        self.others = [self._create(name) for name in OTHERS]
        for project in (self.stage.github, *self.others):
            for number in range(3):
                project.open_issue("octocat", f"Sessions {number} get lost", "Files are slow, and lose sessions.")
        self.stage.start()
        self.stage.wait_for_resync()
        (self.worker,) = self.stage.children()

    def _create(self, name: str) -> EventfulProject:
        project = self.stage.github.add_project(name)
        self.stage.git.create(name)
        self.stage.app.installations[APP].append(project.repo.id)
        return project

    def lay(self, bomb: str) -> None:
        lay(self.stage.git.folder / f"{REPOSITORY}.git", BOMBS[bomb])
        Path(f"/proc/{self.worker}/clear_refs").write_text("5", encoding="ascii")  # measures the peak from now on

    def peak_mb(self) -> int:
        lines = Path(f"/proc/{self.worker}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024

    def open_issue(self, project: EventfulProject) -> int:
        number = project.open_issue("monalisa", "Sessions get lost again", "We lose sessions in files.")
        assert self.stage.deliver("issues", "opened", number, project=project) == 202
        return number

    def row(self, project: EventfulProject, number: int) -> Delivery:
        key = project.repo.id
        rows = (row for row in self.stage.rows() if (row.repository.number, row.event.number) == (key, number))
        return next(row for row in rows if row.event.name == "issues")

    def seconds_of_others(self) -> tuple[float, Delivery]:
        """The median time until the others get an answer, while the first repository has issues to answer too; and
        what became of the first one."""
        first, times = self.open_issue(self.stage.github), list[float]()
        for project in (*self.others, *self.others):
            number, began = self.open_issue(project), time.monotonic()
            until(lambda n=number, p=project: self.row(p, n).state == "done", 600, self.stage.log_text)  # type: ignore[misc]
            times.append(time.monotonic() - began)
        until(lambda: self._has_ended(first), 900, self.stage.log_text)
        return statistics.median(times), self.row(self.stage.github, first)

    def _has_ended(self, number: int) -> bool:
        row = self.row(self.stage.github, number)
        return row.state in ("done", "dead") or row.attempts > 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BombedServer]:
    bombed = BombedServer(tmp_path)
    yield bombed
    bombed.stage.close()


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_on_one_memory_branch_delays_no_other_repository(server: BombedServer, bomb: str) -> None:
    control, ordinary = server.seconds_of_others()
    assert ordinary.state == "done"
    server.lay(bomb)
    seconds, own = server.seconds_of_others()
    print(f"{bomb}: {seconds:.1f} s, control {control:.1f} s, {server.peak_mb()} MB, {own.state}: {own.reason}")
    assert server.stage.children() == [server.worker], "it is the same process"
    assert server.peak_mb() <= PEAK_MB
    assert seconds <= 1.5 * control + 1
    assert "bug" not in own.reason
    assert own.reason
