"""Earlier programs and this one write one branch, in turns and at once: nothing is lost, nothing said twice."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

import pytest

from bot.action.main import run
from tests.acceptance.stage import Stage
from tests.examples import share
from tests.upgrades import fleet, past
from tests.upgrades.test_branches import is_the_fold, nothing_lost
from tests.upgrades.test_newer import newer

pytestmark = pytest.mark.slow
LOST = ("Sessions are lost after a restart", "As in #14: everybody is logged out.")
AGAIN = ("Everybody is logged out once more", "Since the restart, see #14.")
TITLE = "Where shall all the sessions live?"


def acts(stage: Stage, program: fleet.Program, *event: object) -> int:
    stage.program = program
    stage.github.clock.advance(300)
    return stage.act(*event)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", share(fleet.PROGRAMS, 2))
def test_old_and_new_runs_take_turns(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    old = fleet.OldAction(fleet.checkout(name, tmp_path_factory))
    with past.restored(name, tmp_path / "then") as then:
        before, stood, github = past.files(then), past.ours(then), then.github
        first = github.open_issue("hubot", *LOST)
        assert acts(then, run, "issues", "opened", first) == 0
        upgraded = past.files(then)
        second = github.open_issue("octocat", *AGAIN)
        github.clock.advance(300)
        github.edit_issue(14, title=TITLE)
        assert acts(then, old, "issues", "opened", second) == 0, old.log
        between = past.files(then)
        comment = github.comment(second, "hubot", "It happens with #14 too.")
        assert acts(then, run, "issue_comment", "created", second, comment) == 0
        assert acts(then, run, "schedule") == 0
        after = past.files(then)
        for earlier in (before, upgraded, between):
            nothing_lost(earlier, after, 14, first, second)
        is_the_fold(then, after)
        assert past.manifest(after).pending == ()
        assert set(past.ours(then).values()) == {1}
        assert past.ours(then).keys() >= stood.keys() | {(first, ""), (second, "")}
        assert TITLE in then.comments(first)[0], "it stays true, though the old program does not see to that"

        newer(then)
        tip = past.tip(then)
        third = github.open_issue("monalisa", *LOST)
        assert acts(then, old, "issues", "opened", third) in (1, 2)
        assert old.log.count("newer Precedent") == 1
        assert (past.tip(then), then.comments(third)) == (tip, [])


@pytest.mark.parametrize(("name", "loser"), share(product(fleet.PROGRAMS, ("old", "new"))))
def test_who_loses_a_push_goes_on_from_what_the_other_wrote(
    name: str, loser: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    old = fleet.OldAction(fleet.checkout(name, tmp_path_factory))
    programs: tuple[fleet.Program, fleet.Program] = (old, run) if loser == "old" else (run, old)
    with past.restored(name, tmp_path / "then") as then:
        before = past.files(then)
        assert acts(then, run, "schedule") == 0
        numbers = [then.github.open_issue("hubot", *LOST), then.github.open_issue("octocat", *AGAIN)]
        then.github.clock.advance(300)
        heard = (partial(fleet.hears, then, *each) for each in zip(programs, numbers, strict=True))
        assert fleet.lost(then, *heard) == (0, 0), old.log
        assert acts(then, run, "schedule") == 0
        after = past.files(then)
        nothing_lost(before, after)
        is_the_fold(then, after)
        assert past.manifest(after).pending == ()
        assert set(past.ours(then).values()) == {1}
        assert past.ours(then).keys() >= {(number, "") for number in numbers}
