"""The image with a text model inside: it is the model that was published, and needs nothing from outside."""

import os
from pathlib import Path

import pytest

from tests.container.engine import GIVEN, Engine

pytestmark = pytest.mark.container

SENTENCES = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
KNOWN = (0.666, 0.105, 0.141)
"""Their cosines, as the makers of the model show them: the first with the second and third, and these two."""


@pytest.fixture(scope="module")
def semantic(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """The image that is tested, where that has a model; else one that is built here."""
    if engine.shell("ls /models"):
        return engine
    if os.environ.get(GIVEN):
        pytest.skip("the image that was given has no text model")
    built = Engine(Path(tmp_path_factory.mktemp("engine")), "localhost/precedent-semantic:test", ["SEMANTIC=1"])
    built.build()
    return built


def test_texts_are_as_near_as_the_makers_of_the_model_say(semantic: Engine) -> None:
    script = f"""
import numpy as np
from bot.ranking.embedder import IMAGE_FOLDER, open_embedder
vectors = [np.frombuffer(one, np.int8).astype(float) for one in open_embedder(IMAGE_FOLDER).encode({SENTENCES!r})]
a, b, c = (one / np.linalg.norm(one) for one in vectors)
print(a @ b, a @ c, b @ c)
"""
    options = ["--network", "none", "--read-only", "--entrypoint", "/opt/precedent/bin/python"]
    ended = semantic.run("-I", "-c", script, options=options)
    assert ended.code == 0, ended.said
    assert [float(one) for one in ended.said.splitlines()[0].split()] == pytest.approx(KNOWN, abs=0.02)
