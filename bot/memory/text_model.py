"""The text model that the settings name (docs/semantic.md)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from bot.memory.model_store import Embedder
from bot.settings.schema import SimilarSettings

MODEL_OF_THE_IMAGE = SimilarSettings().model
"""The folder of the model that comes with the image. Without it, issues are compared by words, which is no fault."""


def names_model(named: str) -> bool:
    """Whether the setting ``similar.model`` names a model: any folder but the image's, and that one if it has one and
    its tokenizer is installed."""
    if named != MODEL_OF_THE_IMAGE:
        return bool(named)
    return any(Path(named).glob("*.safetensors")) and find_spec("tokenizers") is not None


def open_text_model(named: str, workspace: Path) -> Embedder | None:
    """The model that the setting ``similar.model`` names, to be opened when it is needed; None if it names none.

    Raises EmbeddingsUnavailable if it cannot be used, UserError for a folder outside ``workspace`` and the image's.
    """
    if not names_model(named):
        return None
    from bot.ranking.embedder import LazyEmbedder, model_folder  # slow to load

    return LazyEmbedder(model_folder(named, workspace))
