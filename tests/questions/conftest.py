"""A memory in a temporary folder."""

from tests.recall.conftest import remember

__all__ = ["remember"]
