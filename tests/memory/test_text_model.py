"""The setting for the text model: a folder, the image's folder, or none."""

from pathlib import Path

import pytest

from bot.memory.text_model import MODEL_OF_THE_IMAGE, names_model, open_text_model
from bot.ranking.embedder import IMAGE_FOLDER, EmbeddingsUnavailable
from tests.ranking.tiny_model import write_folder


def test_the_default_is_the_folder_of_the_image() -> None:
    assert Path(MODEL_OF_THE_IMAGE) == IMAGE_FOLDER


@pytest.mark.skipif(IMAGE_FOLDER.exists(), reason="this machine has a text model")
@pytest.mark.parametrize("named", ["", MODEL_OF_THE_IMAGE])
def test_without_a_model_none_is_opened_and_that_is_no_fault(tmp_path: Path, named: str) -> None:
    assert not names_model(named)
    assert open_text_model(named, tmp_path) is None


@pytest.mark.parametrize("named", ["mine", "/models/mine"])
def test_a_folder_that_was_named_and_is_missing_is_reported(tmp_path: Path, named: str) -> None:
    with pytest.raises(EmbeddingsUnavailable, match="/mine: no such folder"):
        open_text_model(named, tmp_path)


def test_a_folder_of_the_workspace_is_opened(tmp_path: Path) -> None:
    write_folder(tmp_path / "mine")
    assert open_text_model("mine", tmp_path) is not None
