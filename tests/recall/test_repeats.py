"""The day on which everybody reports the same: repeats of one report do not hide how it was fixed."""

from datetime import timedelta
from pathlib import Path

import pytest

from bot.doors.archives import read_archive
from bot.memory.memory import Memory
from bot.recall.library import threads
from bot.recall.troubleshoot import Limits, similar
from tests.recall.conftest import Remember
from tests.recall.samples import thread

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "history.jsonl"
LIMITS = Limits(floor=0.65, closed=3, open=2, budget=12_000)
FIXED, FIRST, REPEATS = 48, 80, 30
TITLE = "Login comes back to the login page since 2.2"
BODY = """I log in and I am at the login page again. Since the upgrade to 2.2.

```
linkbarn.auth WARN SESSION_PATH_MISMATCH cookie path / != /bm
  File "/app/linkbarn/auth/cookie.py", line 41, in read_session
```
Version 2.2.1"""


@pytest.fixture
def outage(remember: Remember) -> Memory:
    """The sample, and after it the same report again and again, each by another account."""
    history = list(read_archive(SAMPLE))
    last = max(one.created_at for one in history)
    repeats = [
        thread(FIRST + n, TITLE, BODY, author=f"user-{n}", created_at=last + timedelta(minutes=1 + n))
        for n in range(REPEATS + 1)
    ]
    return remember(*history, *repeats)


@pytest.mark.slow
def test_the_fixed_one_is_shown_to_the_thirtieth_repeat_as_to_the_first(outage: Memory) -> None:
    reports = threads(outage, range(FIRST, FIRST + REPEATS + 1), None)
    shown = {}
    for before, (number, one) in enumerate(reports.items()):
        seen, still_open = similar(one, outage, None, (), LIMITS)
        reason = seen[0].why[0] if seen else ""
        shown[number] = ([match.id for match in seen], reason, len(still_open) == min(before, LIMITS.open))
    assert list(reports) == list(range(FIRST, FIRST + REPEATS + 1))
    assert shown == dict.fromkeys(reports, ([FIXED], "same error `SESSION_PATH_MISMATCH`", True))
