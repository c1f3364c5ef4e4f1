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
from bot.server.organisation_changes import INDEX_HEARTBEAT, OrganisationChanges
from tests.examples import share
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server import postgres
from tests.server.server_process import APP, READY, ServerStage, until

DATABASES = [False, pytest.param(True, marks=pytest.mark.postgres)]
AGO = 100 * 24 * 3600
KILLS, ISSUES = 6, 24


def create_projects(stage: ServerStage, count: int) -> list[EventfulProject]:
    created = []
    for number in range(count):
        project = stage.github.add_project(f"octocat/shop-{number}")
        stage.git.create(project.repo.full_name)
        project.open_issue("octocat", "Session store 1", "It forgets.", at=from_epoch(stage.github.clock.epoch - AGO))
        stage.app.installations[APP].append(project.repo.id)
        created.append(project)
    return created


def start_worker(stage: ServerStage, number: int, index: Path) -> Popen[bytes]:
    data = {} if stage.database else {"DATA": str(stage.data)}
    return stage.start_worker(number, ORGANISATION=str(index), **data)


def waiting(stage: ServerStage) -> int:
    """Return how many changes wait, or 1 while the index is not switched on yet."""
    with stage.inbox() as inbox:
        backlog = OrganisationChanges(inbox.database, inbox.queue, inbox.now).backlog()
    return backlog[0] if backlog else 1


@pytest.mark.slow
@pytest.mark.parametrize("on_postgres", share(DATABASES, 2, 1), ids=lambda is_on: "postgres" if is_on else "sqlite")
def test_killed_workers_leave_no_thread_missing_from_the_index_or_duplicated(tmp_path: Path, on_postgres: bool) -> None:
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
    random_delay, projects = random.Random(7), create_projects(stage, 3)
    stage.start(0)
    workers = [start_worker(stage, number_of_worker, index) for number_of_worker in range(2)]
    until(lambda: is_on(stage), READY, stage.log_text)

    def send() -> None:
        for number in range(ISSUES):
            project = projects[number % len(projects)]
            stage.deliver("issues", "opened", project.open_issue("octocat", "Session store", "Again."), project=project)
            time.sleep(random_delay.uniform(0.2, 0.8))

    sending = threading.Thread(target=send)
    sending.start()
    for kill in range(KILLS):
        time.sleep(random_delay.uniform(2.0, 4.0))
        number_of_worker = kill % len(workers)
        workers[number_of_worker].kill()
        workers[number_of_worker].wait()
        workers[number_of_worker] = start_worker(stage, number_of_worker, index)
    sending.join()
    stage.settle(300)
    until(lambda: not waiting(stage), 300, stage.log_text)
    check_index(index, projects)


def is_on(stage: ServerStage) -> bool:
    with stage.inbox() as inbox:
        return INDEX_HEARTBEAT in inbox.heartbeats()


def check_index(index: Path, projects: list[EventfulProject]) -> None:
    numbers = {project.repo.id for project in projects}
    matches = open_candidates(str(index), str(APP)).search(terms("session store"), numbers, limit=1_000)
    count = Counter((one.thread.repository, one.thread.id) for one in matches)
    assert set(count.values()) == {1}
    assert set(count) == {
        (each.repo.id, number) for each in projects for number in range(1, 2 + ISSUES // len(projects))
    }
