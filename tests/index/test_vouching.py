"""Who vouches for a thread: its author if known, else the first other person who takes part."""

from typing import Any

import pytest

from bot.domain.digest import FOREVER
from bot.domain.thread import Kind, TimelineEvent
from bot.index.document import unvouched_until
from tests.recall.samples import at, closed, message, thread

ALONE = {"after": 1, "closed_by": "monalisa", "days": 0}


@pytest.mark.parametrize("role", ["OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR"])
def test_a_known_author_vouches_for_a_thread_from_the_beginning(role: str) -> None:
    assert unvouched_until(thread(1, role=role, days=0)) is None


@pytest.mark.parametrize("role", ["NONE", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "MANNEQUIN", ""])
def test_an_unknown_author_does_not_vouch_for_a_thread(role: str) -> None:
    assert unvouched_until(thread(1, role=role, days=0)) == FOREVER


@pytest.mark.parametrize(
    "activity",
    [
        {"comments": (message("Me too.", 3, "octocat"), message("And me.", 2, "hubot"))},
        {"after": 2, "closed_by": "octocat"},
        {
            "events": (TimelineEvent("closed", at(1), "monalisa"), TimelineEvent("reopened", at(2), "octocat")),
            "after": 5,
        },
        {"events": (TimelineEvent("marked_as_duplicate", at(2), "octocat", source=7),)},
    ],
    ids=["wrote", "closed it", "reopened it", "marked it"],
)
def test_the_first_other_person_vouches_for_a_thread(activity: dict[str, Any]) -> None:
    assert unvouched_until(closed(1, **(ALONE | activity))) == at(2)


NOBODY_ELSE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "its author": {"comments": (message("Any news?", 2, "monalisa"), message("Solved.", 3, "MonaLisa"))},
    "a bot": {"comments": (message("Seen before: …", 2, "precedent[bot]", is_bot=True),)},
    "a bot's closing": {"after": 2, "closed_by": "stale[bot]"},
    "an unknown closing": {"after": 2, "closed_by": None},
    "forks": {
        "events": (TimelineEvent("closed", at(2)), TimelineEvent("referenced", at(2), "octocat", commit="abc1234"))
    },
    "swept": {"after": 2, "closed_by": "octocat", "state_reason": "not_planned"},
    "a form": {"labels": ("bug",)},
    "lost accounts": {"author": "ghost", "closed_by": "ghost", "comments": (message("Solved.", 2, "ghost"),)},
}


@pytest.mark.parametrize("activity", NOBODY_ELSE.values(), ids=NOBODY_ELSE)
def test_nobody_else_vouches_for_a_thread(activity: dict[str, Any]) -> None:
    assert unvouched_until(closed(1, **({"author": "monalisa"} | ALONE | activity))) == FOREVER


def test_only_issues_need_somebody_to_vouch_for_them() -> None:
    assert unvouched_until(thread(1, kind=Kind.PAGE)) is None
    assert unvouched_until(thread(1, kind=Kind.PULL)) is None
