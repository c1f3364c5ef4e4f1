"""Two workers are killed while issues come in: the index ends up with what the memory branches have, once each."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from pathlib import Path
from subprocess import Popen

import pytest

from bot.organisation.lance import open_candidates
from bot.reading.analyzer import terms
from bot.server.organisation_changes import PLACE, OrganisationChanges
from tests.examples import share
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server import postgres
from tests.server.stage import APP, READY, ServerStage, until

DATABASES = [False, pytest.param(True, marks=pytest.mark.postgres)]
AGO = 100 * 24 * 3600
KILLS, ISSUES = 6, 24


def projects(stage: ServerStage, count: int) -> list[EventfulProject]:
    found = []
    for number in range(count):
        project = stage.github.add_project(f"octocat/shop-{number}")
        stage.git.create(project.repo.full_name)
        project.open_issue("octocat", "Session store 1", "It forgets.", at=from_epoch(stage.github.clock.epoch - AGO))
        stage.app.installations[APP].append(project.repo.id)
        found.append(project)
    return found


def started(stage: ServerStage, place: int, index: Path) -> Popen[bytes]:
    data = {} if stage.database else {"DATA": str(stage.data)}
    return stage.worker(place, ORGANISATION=str(index), **data)


def waiting(stage: ServerStage) -> int:
    """How many changes wait; one while the index is not switched on yet."""
    with stage.inbox() as inbox:
        found = OrganisationChanges(inbox.database, inbox.queue, inbox.now).backlog()
    return found[0] if found else 1


@pytest.mark.slow
@pytest.mark.parametrize("on_postgres", share(DATABASES, 2, 1), ids=lambda on: "postgres" if on else "sqlite")
def test_nothing_is_lost_or_twice_when_workers_are_killed(tmp_path: Path, on_postgres: bool) -> None:
    with contextlib.ExitStack() as stack:
        url = ""
        if on_postgres:
            server = postgres.start()
            stack.callback(server.stop)
            url = stack.enter_context(server.database())
        stage = ServerStage(tmp_path / "stage", database=url)
        stack.callback(stage.close)
        campaign(stage, tmp_path / "index")


def campaign(stage: ServerStage, index: Path) -> None:
    chance, made = random.Random(7), projects(stage, 3)
    stage.start(0)
    workers = [started(stage, place, index) for place in range(2)]
    until(lambda: on(stage), READY, stage.told)

    def send() -> None:
        for number in range(ISSUES):
            project = made[number % len(made)]
            stage.deliver("issues", "opened", project.open_issue("octocat", "Session store", "Again."), project=project)
            time.sleep(chance.uniform(0.2, 0.8))

    sending = threading.Thread(target=send)
    sending.start()
    for kill in range(KILLS):
        time.sleep(chance.uniform(2.0, 4.0))
        place = kill % len(workers)
        workers[place].kill()
        workers[place].wait()
        workers[place] = started(stage, place, index)
    sending.join()
    stage.settle(300)
    until(lambda: not waiting(stage), 300, stage.told)
    check(index, made)


def on(stage: ServerStage) -> bool:
    with stage.inbox() as inbox:
        return PLACE in inbox.heartbeats()


def check(index: Path, made: list[EventfulProject]) -> None:
    numbers = {project.repo.id for project in made}
    found = open_candidates(str(index), str(APP)).search(terms("session store"), numbers, limit=1_000)
    count = Counter((one.thread.repository, one.thread.id) for one in found)
    assert set(count.values()) == {1}
    assert set(count) == {(each.repo.id, number) for each in made for number in range(1, 2 + ISSUES // len(made))}
