"""The git server of these tests."""

from tests.memory.conftest import hosted

__all__ = ["hosted"]
