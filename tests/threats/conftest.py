"""The git server for these tests."""

from tests.memory.conftest import hosted

__all__ = ["hosted"]
