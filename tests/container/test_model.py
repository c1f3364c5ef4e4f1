"""The text model of the image is the published one, and the image that is built without it works too."""

import os

import pytest

from tests.container.engine import IMAGE_VARIABLE, Engine
from tests.container.runner import Runner
from tests.container.test_image import answer_an_issue

pytestmark = pytest.mark.container

SENTENCES = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
EXPECTED_COSINES = (0.666, 0.105, 0.141)
"""Their cosines on the model card: the first with the second, the first with the third, the second with the third."""


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    if os.environ.get(IMAGE_VARIABLE):
        pytest.skip("an image was given: no other is built")
    built = Engine(tmp_path_factory.mktemp("engine"), "localhost/precedent-without-model:test", ["MODEL=0"])
    built.build()
    return built


def test_by_default_the_cosines_of_the_model_card_sentences_are_those_on_the_card(engine: Engine) -> None:
    script = f"""
import numpy as np
from pathlib import Path
from bot.memory.text_model import open_text_model
from bot.settings.schema import Settings
model = open_text_model(Settings().similar.model, Path('/github/workspace'))
vectors = [np.frombuffer(one, np.int8).astype(float) for one in model.encode({SENTENCES!r})]
a, b, c = (one / np.linalg.norm(one) for one in vectors)
print(a @ b, a @ c, b @ c)
"""
    options = ["--network", "none", "--read-only", "--entrypoint", "/opt/precedent/bin/python"]
    result = engine.run("-I", "-c", script, options=options)
    assert result.code == 0, result.output
    assert [float(one) for one in result.output.splitlines()[0].split()] == pytest.approx(EXPECTED_COSINES, abs=0.02)


@pytest.mark.night
def test_an_image_without_the_model_answers_by_words_and_reports_no_fault(
    without_model: Engine, engine: Engine, runner: Runner
) -> None:
    assert without_model.shell("ls /models") == ""
    assert "model.safetensors" not in without_model.shell("cat /usr/share/precedent/sbom.cdx.json")
    assert int(without_model.inspect("{{.Size}}")) < int(engine.inspect("{{.Size}}")) - 20_000_000
    runner.engine = without_model
    comment = answer_an_issue(runner)
    assert "Session lost behind a proxy" in comment
    assert "true" in runner.file("output")
    assert "model" not in runner.file("summary")
