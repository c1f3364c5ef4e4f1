"""How far GitHub's clock is ahead of ours, asked as nobody: by a clock that is off it does not know us."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from http.client import HTTPException

from bot.github.app import seconds_ahead

TIMEOUT = 20.0
"""Seconds for each part of the request."""


def ahead(api_url: str) -> float:
    """Seconds; 0 where GitHub does not answer, or does not say what time it is. Its limits do not count it."""
    asked = f"{api_url}/rate_limit"
    request = urllib.request.Request(asked, headers={"User-Agent": "precedent"})  # noqa: S310 - as the options took it
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            date = answer.headers.get("Date")
    except urllib.error.HTTPError as error:
        with error:
            date = error.headers.get("Date")
    except (OSError, HTTPException):
        return 0.0
    return seconds_ahead(date or "", time.time())
