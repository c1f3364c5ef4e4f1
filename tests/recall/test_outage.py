"""The day on which everybody reports the same: the repeats do not hide the issue that has the fix."""

from datetime import timedelta
from pathlib import Path

import pytest

from bot.memory.memory import Memory
from bot.recall.library import threads
from bot.recall.similar import Limits
from bot.sources.archive_file import read_archive
from tests.recall.conftest import Remember
from tests.recall.samples import closed, message, similar, thread

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
    last = max(issue.created_at for issue in history)
    repeats = [
        thread(FIRST + n, TITLE, BODY, author=f"user-{n}", created_at=last + timedelta(minutes=1 + n))
        for n in range(REPEATS + 1)
    ]
    return remember(*history, *repeats)


@pytest.mark.slow
def test_the_thirtieth_repeat_is_shown_the_fixed_issue_like_the_first(outage: Memory) -> None:
    reports = threads(outage, range(FIRST, FIRST + REPEATS + 1), None)
    shown = {}
    for before, (number, report) in enumerate(reports.items()):
        seen, still_open = similar(report, outage, None, (), LIMITS)
        reason = seen[0].why[0] if seen else ""
        shown[number] = ([match.id for match in seen], reason, len(still_open) == min(before, LIMITS.open))
    assert list(reports) == list(range(FIRST, FIRST + REPEATS + 1))
    assert shown == dict.fromkeys(reports, ([FIXED], "same error `SESSION_PATH_MISMATCH`", True))


IN_OTHER_WORDS = (
    ("Login sends me back to the form after upgrading to 2.2.1", "Worked yesterday, today it throws me out at once."),
    ("Sign-in loops since 2.2", "Nobody here can get in any more. We run it with compose and nginx in front."),
    ("Authentication loops behind a path", "It takes the password, then asks for it again. My whole team has this."),
    ("Login is broken since 2.2", "Two browsers, the same result. A wrong password is refused."),
)
LINE = "linkbarn.auth WARNING SESSION_PATH_MISMATCH cookie path '/' but base path '/links'"


@pytest.mark.slow
@pytest.mark.parametrize("writers", [len(IN_OTHER_WORDS), 1])
def test_the_first_reports_of_an_outage_do_not_hide_the_fixed_issue(remember: Remember, writers: int) -> None:
    history = list(read_archive(SAMPLE))
    last = max(issue.created_at for issue in history)
    reports = [
        thread(
            FIRST + n, title, f"{body}\n\n```\n{LINE}\n```", author=f"user-{n % writers}",
            created_at=last + timedelta(hours=1 + n),
        )
        for n, (title, body) in enumerate(IN_OTHER_WORDS)
    ]  # fmt: skip
    memory = remember(*history, *reports)
    seen = [similar(issue, memory, None, (), LIMITS)[0] for issue in reports]
    assert [match.id for part in seen for match in part] == [FIXED] * len(reports)


OTHERS = (
    ("Dark mode for the settings page", "It is too bright at night, please add a dark theme."),
    ("Import from a browser fails", "The export has 12,000 bookmarks and the import stops at 10,000 with a timeout."),
    ("Docker image for arm64", "Would be nice to run it on a Raspberry Pi."),
    ("Search does not find umlauts", "Searching for `über` finds nothing although a bookmark has it in its title."),
    ("Tags with spaces are split", "A tag `to read` becomes two tags `to` and `read`."),
    ("API token cannot be revoked", "There is no button to revoke a token in the profile page."),
    ("Favicon is not fetched behind a proxy", "With HTTP_PROXY set the favicon fetcher does not use it."),
)
ERROR = "SESSION_PATH_MISMATCH cookie path / != /bm"


def test_an_open_copy_does_not_lower_the_similarity_of_the_fixed_issue(remember: Remember) -> None:
    """In a memory of a few threads, in which all others are measured by the best."""
    body = f"After the upgrade I am sent back to the login page every time. The log has `{ERROR}`."
    fix = message("Fixed in 2.3 by #30.", 1.4, "hubot", "MEMBER")
    fixed = closed(1, "Login loop after the upgrade to 2.2", body, comments=(fix,))
    others = [thread(number, *texts) for number, texts in enumerate(OTHERS, start=2)]
    body_again = (
        f"I log in and land on the login page again, since I did the upgrade to 2.2.1. I see `{ERROR}` in the log."
    )
    question = thread(12, "Login loops since the update to 2.2", body_again)

    def shown() -> list[list[float]]:
        return [[match.similarity for match in part] for part in similar(question, memory, None, (), LIMITS)]

    memory = remember(fixed, *others)
    [alone], nothing = shown()
    memory = remember(thread(10, question.title, question.body, author="octocat"))
    [beside], [copy] = shown()
    assert nothing == []
    assert beside == pytest.approx(alone, abs=0.03)
    assert copy > beside
