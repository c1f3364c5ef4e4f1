"""A memory in a folder of the test's own."""

from tests.recall.conftest import remember

__all__ = ["remember"]
