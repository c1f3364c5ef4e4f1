"""The command line, as the tests of the doors call it."""

from tests.doors.conftest import call

__all__ = ["call"]
