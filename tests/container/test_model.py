"""The image with a text model inside: it is the published model, and needs nothing from outside."""

import os
from pathlib import Path

import pytest

from tests.container.engine import IMAGE_VARIABLE, Engine

pytestmark = [pytest.mark.container, pytest.mark.night]

SENTENCES = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
EXPECTED_COSINES = (0.666, 0.105, 0.141)
"""Their cosines on the model card: the first with the second, the first with the third, the second with the third."""


@pytest.fixture(scope="module")
def semantic(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """The image under test if it has a model, else one that is built here."""
    if engine.shell("ls /models"):
        return engine
    if os.environ.get(IMAGE_VARIABLE):
        pytest.skip("the image that was given has no text model")
    built = Engine(Path(tmp_path_factory.mktemp("engine")), "localhost/precedent-semantic:test", ["SEMANTIC=1"])
    built.build()
    return built


def test_the_cosines_of_the_model_card_sentences_are_those_on_the_card(semantic: Engine) -> None:
    script = f"""
import numpy as np
from bot.ranking.embedder import IMAGE_FOLDER, open_embedder
vectors = [np.frombuffer(one, np.int8).astype(float) for one in open_embedder(IMAGE_FOLDER).encode({SENTENCES!r})]
a, b, c = (one / np.linalg.norm(one) for one in vectors)
print(a @ b, a @ c, b @ c)
"""
    options = ["--network", "none", "--read-only", "--entrypoint", "/opt/precedent/bin/python"]
    result = semantic.run("-I", "-c", script, options=options)
    assert result.code == 0, result.output
    assert [float(one) for one in result.output.splitlines()[0].split()] == pytest.approx(EXPECTED_COSINES, abs=0.02)
