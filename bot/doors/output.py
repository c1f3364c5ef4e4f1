"""Data on stdout."""

from __future__ import annotations

import io
import json
import sys


def show(result: object) -> None:
    """Print text as it is, anything else as JSON, in UTF-8 whatever the terminal's language."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=1) + "\n"
    sys.stdout.write(text)
    sys.stdout.flush()
