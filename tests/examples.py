"""How many examples a property test tries: few in the quick run, all where PRECEDENT_THOROUGH is set, as in CI."""

import os

QUICK_SHARE = 5


def examples(count: int) -> int:
    """``count`` in a thorough run, a fifth of it in a quick one, but never fewer than five (or than ``count``)."""
    return count if os.environ.get("PRECEDENT_THOROUGH") else max(min(5, count), count // QUICK_SHARE)
