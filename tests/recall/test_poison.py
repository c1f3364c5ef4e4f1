"""A flood by one account: what nobody stands behind but the stranger who opened it is no answer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bot.domain.thread import Thread
from bot.memory.memory import Memory
from bot.recall.similar import find_candidates
from tests.recall.conftest import Remember
from tests.recall.samples import closed, said, thread
from tests.recall.test_similar import BODY, FILLER, TITLE, ask, ids

TRUE = closed(1, TITLE, BODY, author="octocat")
"""What people are to be shown: a maintainer closed it."""

FIRST = 201
WORDS = ["session", "cookie", "refused", "proxy", "login", "upgrade", "loops", "auth/cookie.py", "SESSION_PATH"]


def lone(key: int, title: str = TITLE, body: str = BODY, **rest: Any) -> Thread:
    """An issue that a stranger opened and closed as completed at once."""
    return closed(key, title, body, **({"author": "mona", "closed_by": "mona", "after": 0.001, "days": 150} | rest))


def flood(count: int = 30, **rest: Any) -> list[Thread]:
    return [lone(FIRST + n, **rest) for n in range(count)]


def accounts(found: Iterable[Thread], count: int) -> list[Thread]:
    """The same by so many accounts, which take turns."""
    return [lone(one.id, one.title, one.body, **_by(f"mona{n % count}")) for n, one in enumerate(found)]  # type: ignore[arg-type]


def _by(account: str) -> dict[str, str]:
    return {"author": account, "closed_by": account}


STUFFED = flood(title=" ".join(WORDS[:6]), body=" ".join(WORDS * 4))
BOOSTED = flood(
    comments=tuple(said("Solved, works for me!", 150 + n, "mona") for n in range(9)), reactions=(("+1", 99),)
)
FOLDED = flood(comments=(said(f"Duplicate of #{FIRST}.", 150, "mona"),))
FOLDED_AWAY = flood(comments=(said("Duplicate of #101.", 150, "mona"),))
OPEN = [thread(FIRST + n, TITLE, BODY, author="mona", days=150) for n in range(30)]
ATTACKS = {
    "stuffed with words": STUFFED,
    "copies": flood(),
    "one copy": flood(1),
    "ten accounts": accounts(flood(), 10),
    "an account for each": accounts(flood(), 30),
    "boosted by its own author": BOOSTED,
    "folded into one": FOLDED,
    "folded into an innocent one": FOLDED_AWAY,
    "left open": OPEN,
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_flood_of_closed_or_open_issues_displaces_the_answer(remember: Remember, attack: list[Thread]) -> None:
    assert ids(ask(remember(TRUE, *FILLER, *attack))) == [[1], []]


def test_a_flood_leaves_the_candidates_to_the_others(remember: Remember) -> None:
    calm = [c.entry.id for c in found(remember(TRUE, *FILLER))]
    assert [c.entry.id for c in found(remember(TRUE, *FILLER, *flood(), *accounts(flood(9), 3)))] == calm


def test_duplicates_by_a_strangers_word_alone_do_not_count_for_anything(remember: Remember) -> None:
    own = flood(comments=(said("Duplicate of #1.", 150, "mona"),))
    heard = flood(comments=(said("Duplicate of #1.", 150, "hubot", "MEMBER"),))
    assert {c.entry.id: c.hit.duplicates for c in found(remember(TRUE, *FILLER, *own))}[1] == 0
    assert {c.entry.id: c.hit.duplicates for c in found(remember(TRUE, *FILLER, *heard))}[1] == len(heard)


def found(memory: Memory) -> Sequence[Any]:
    return find_candidates(thread(500, TITLE, BODY), memory, None, ()).candidates


# What is no attack


@pytest.mark.parametrize(
    "stands_behind",
    [
        {"role": "MEMBER"},
        {"role": "CONTRIBUTOR"},
        {"closed_by": "hubot"},
        {"comments": (said("Same here, 2.3 mended it.", 150, "hubot"),)},
    ],
    ids=["of a member", "of a contributor", "closed by another", "others replied"],
)
def test_what_somebody_stands_behind_is_shown(remember: Remember, stands_behind: dict[str, Any]) -> None:
    assert ids(ask(remember(lone(FIRST, **stands_behind), *FILLER))) == [[FIRST], []]


def test_what_a_stranger_closed_alone_is_not_shown_though_nothing_else_is_alike(remember: Remember) -> None:
    assert ids(ask(remember(lone(FIRST), *FILLER))) == [[], []]


def test_of_the_open_ones_that_nobody_answered_one_by_each_account_is_shown(remember: Remember) -> None:
    alike = [thread(n, TITLE, BODY, author=name, days=150) for n, name in enumerate(("mona", "lisa", "mona"), FIRST)]
    assert ids(ask(remember(*alike, *FILLER)))[1] == [FIRST, FIRST + 1]


def test_what_nobody_had_answered_then_is_judged_as_it_stood_then(remember: Remember) -> None:
    late = said("The proxy was it: fixed in 2.3.", 300, "hubot", "MEMBER")
    memory = remember(lone(FIRST, comments=(late,)), *FILLER)
    assert [ids(ask(memory, thread(500, TITLE, BODY, days=days)))[0] for days in (299, 301)] == [[], [FIRST]]


# A tracker without roles


@pytest.mark.parametrize("state", ["open", "closed"])
@pytest.mark.parametrize(("role", "there"), [("", True), ("NONE", False)])
def test_a_busy_author_is_no_flood_where_nobody_told_a_role(
    remember: Remember, state: str, role: str, there: bool
) -> None:
    others = [replace(one, role=role) for one in (TRUE, *FILLER)]
    alike = lone(FIRST, author="octocat", closed_by="octocat", days=120, role=role)
    busy = [lone(400 + n, f"Subject {n}", author="octocat", closed_by="octocat", role=role) for n in range(60)]
    if state == "open":
        alike, *busy = (
            thread(one.id, one.title, one.body, author="octocat", role=role, days=120) for one in [alike, *busy]
        )
    memory = remember(*others, alike, *busy)
    assert (FIRST in [c.entry.id for c in found(memory)]) is there
    assert (FIRST in [key for part in ids(ask(memory)) for key in part]) is there
