"""The colours of text in a terminal, by their numbers among its 256."""

from __future__ import annotations

ACCENT, GOOD, BAD = 63, 29, 131
"""Three of the few with a contrast of 4.5 : 1 on black and on white."""
