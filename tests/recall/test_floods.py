"""A flood by one account: an issue for which nobody vouches but the stranger who opened it is no answer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bot.domain.thread import Thread
from bot.memory.memory import Memory
from bot.recall.similar import find_candidates
from tests.recall.conftest import Remember
from tests.recall.samples import closed, message, thread
from tests.recall.test_similar import BODY, FILLER, TITLE, ask, ids

ANSWER = closed(1, TITLE, BODY, author="octocat")
"""The issue that people should see: a maintainer closed it."""

FIRST = 201
WORDS = ["session", "cookie", "refused", "proxy", "login", "upgrade", "loops", "auth/cookie.py", "SESSION_PATH"]


def unvouched(key: int, title: str = TITLE, body: str = BODY, **rest: Any) -> Thread:
    """An issue that a stranger opened and closed as completed at once."""
    return closed(key, title, body, **({"author": "mona", "closed_by": "mona", "after": 0.001, "days": 150} | rest))


def flood(count: int = 30, **rest: Any) -> list[Thread]:
    return [unvouched(FIRST + n, **rest) for n in range(count)]


def spread_over_accounts(issues: Iterable[Thread], count: int) -> list[Thread]:
    """The same issues by ``count`` accounts, which take turns."""
    return [
        unvouched(issue.id, issue.title, issue.body, **_account_fields(f"mona{n % count}"))  # type: ignore[arg-type]
        for n, issue in enumerate(issues)
    ]


def _account_fields(account: str) -> dict[str, str]:
    return {"author": account, "closed_by": account}


STUFFED = flood(title=" ".join(WORDS[:6]), body=" ".join(WORDS * 4))
BOOSTED = flood(comments=tuple(message("Solved, works for me!", 150 + n, "mona") for n in range(9)))
FOLDED = flood(comments=(message(f"Duplicate of #{FIRST}.", 150, "mona"),))
FOLDED_AWAY = flood(comments=(message("Duplicate of #101.", 150, "mona"),))
OPEN = [thread(FIRST + n, TITLE, BODY, author="mona", days=150) for n in range(30)]
ATTACKS = {
    "stuffed with words": STUFFED,
    "copies": flood(),
    "one copy": flood(1),
    "ten accounts": spread_over_accounts(flood(), 10),
    "an account for each": spread_over_accounts(flood(), 30),
    "boosted by its own author": BOOSTED,
    "folded into one": FOLDED,
    "folded into an innocent one": FOLDED_AWAY,
    "left open": OPEN,
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_flood_of_closed_or_open_issues_displaces_the_answer(remember: Remember, attack: list[Thread]) -> None:
    assert ids(ask(remember(ANSWER, *FILLER, *attack))) == [[1], []]


def test_a_flood_does_not_displace_the_other_candidates(remember: Remember) -> None:
    expected = [c.entry.id for c in find(remember(ANSWER, *FILLER))]
    assert [
        c.entry.id for c in find(remember(ANSWER, *FILLER, *flood(), *spread_over_accounts(flood(9), 3)))
    ] == expected


def test_duplicates_that_only_a_stranger_claims_do_not_count(remember: Remember) -> None:
    own = flood(comments=(message("Duplicate of #1.", 150, "mona"),))
    confirmed = flood(comments=(message("Duplicate of #1.", 150, "hubot", "MEMBER"),))
    assert {c.entry.id: c.hit.duplicates for c in find(remember(ANSWER, *FILLER, *own))}[1] == 0
    assert {c.entry.id: c.hit.duplicates for c in find(remember(ANSWER, *FILLER, *confirmed))}[1] == len(confirmed)


def find(memory: Memory) -> Sequence[Any]:
    return find_candidates(thread(500, TITLE, BODY), memory, None, ()).candidates


# What is not an attack


@pytest.mark.parametrize(
    "voucher",
    [
        {"role": "MEMBER"},
        {"role": "CONTRIBUTOR"},
        {"closed_by": "hubot"},
        {"comments": (message("Same here, 2.3 mended it.", 150, "hubot"),)},
    ],
    ids=["of a member", "of a contributor", "closed by another", "others replied"],
)
def test_an_issue_that_somebody_vouches_for_is_shown(remember: Remember, voucher: dict[str, Any]) -> None:
    assert ids(ask(remember(unvouched(FIRST, **voucher), *FILLER))) == [[FIRST], []]


def test_an_issue_that_only_its_stranger_closed_is_not_shown_even_if_it_is_the_only_match(remember: Remember) -> None:
    assert ids(ask(remember(unvouched(FIRST), *FILLER))) == [[], []]


def test_one_unanswered_open_issue_of_each_account_is_shown(remember: Remember) -> None:
    copies = [thread(n, TITLE, BODY, author=name, days=150) for n, name in enumerate(("mona", "lisa", "mona"), FIRST)]
    assert ids(ask(remember(*copies, *FILLER)))[1] == [FIRST, FIRST + 1]


def test_an_issue_is_judged_by_the_answers_that_it_had_at_the_time(remember: Remember) -> None:
    answer = message("The proxy was it: fixed in 2.3.", 300, "hubot", "MEMBER")
    memory = remember(unvouched(FIRST, comments=(answer,)), *FILLER)
    assert [ids(ask(memory, thread(500, TITLE, BODY, days=days)))[0] for days in (299, 301)] == [[], [FIRST]]


# A tracker without roles


@pytest.mark.parametrize("state", ["open", "closed"])
@pytest.mark.parametrize(("role", "is_found"), [("", True), ("NONE", False)])
def test_a_busy_author_is_no_flood_if_roles_are_unknown(
    remember: Remember, state: str, role: str, is_found: bool
) -> None:
    others = [replace(issue, role=role) for issue in (ANSWER, *FILLER)]
    copy = unvouched(FIRST, author="octocat", closed_by="octocat", days=120, role=role)
    busy = [unvouched(400 + n, f"Subject {n}", author="octocat", closed_by="octocat", role=role) for n in range(60)]
    if state == "open":
        copy, *busy = (
            thread(issue.id, issue.title, issue.body, author="octocat", role=role, days=120) for issue in [copy, *busy]
        )
    memory = remember(*others, copy, *busy)
    assert (FIRST in [c.entry.id for c in find(memory)]) is is_found
    assert (FIRST in [key for part in ids(ask(memory)) for key in part]) is is_found
