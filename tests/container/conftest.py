"""The image, built once for all tests in this folder."""

from pathlib import Path

import pytest

from tests.container.engine import Engine
from tests.container.runner import Runner


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    built = Engine(tmp_path_factory.mktemp("engine"))
    built.build()
    return built


@pytest.fixture
def runner(engine: Engine, tmp_path: Path) -> Runner:
    return Runner(engine, tmp_path)
