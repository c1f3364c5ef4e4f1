"""Earlier programs and this one write to one branch, in turns and at once: nothing is lost or posted twice."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

import pytest

from bot.action.main import run
from tests.acceptance.stage import Stage
from tests.examples import share
from tests.upgrades import old_branch, old_programs
from tests.upgrades.test_branches import check_memory_matches, check_nothing_lost
from tests.upgrades.test_newer import write_newer_format

pytestmark = pytest.mark.slow
LOST = ("Sessions are lost after a restart", "As in #14: everybody is logged out.")
AGAIN = ("Everybody is logged out once more", "Since the restart, see #14.")
TITLE = "Where shall all the sessions live?"


def act_later(stage: Stage, program: old_programs.Program, *event: object) -> int:
    stage.program = program
    stage.github.clock.advance(300)
    return stage.act(*event)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", share(old_programs.PROGRAMS, 2))
def test_old_and_new_runs_take_turns(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    old = old_programs.OldAction(old_programs.checkout(name, tmp_path_factory))
    with old_branch.restored(name, tmp_path / "then") as old_stage:
        before, comments_before, github = (
            old_branch.files(old_stage),
            old_branch.count_comments(old_stage),
            old_stage.github,
        )
        first = github.open_issue("hubot", *LOST)
        assert act_later(old_stage, run, "issues", "opened", first) == 0
        upgraded = old_branch.files(old_stage)
        second = github.open_issue("octocat", *AGAIN)
        github.clock.advance(300)
        github.edit_issue(14, title=TITLE)
        assert act_later(old_stage, old, "issues", "opened", second) == 0, old.log
        between = old_branch.files(old_stage)
        comment = github.comment(second, "hubot", "It happens with #14 too.")
        assert act_later(old_stage, run, "issue_comment", "created", second, comment) == 0
        assert act_later(old_stage, run, "schedule") == 0
        after = old_branch.files(old_stage)
        for earlier in (before, upgraded, between):
            check_nothing_lost(earlier, after, 14, first, second)
        check_memory_matches(old_stage, after)
        assert old_branch.manifest(after).pending == ()
        assert set(old_branch.count_comments(old_stage).values()) == {1}
        assert old_branch.count_comments(old_stage).keys() >= comments_before.keys() | {(first, ""), (second, "")}
        assert TITLE in old_stage.comments(first)[0], "it stays true, though the old program does not see to that"

        write_newer_format(old_stage)
        tip = old_branch.tip(old_stage)
        third = github.open_issue("monalisa", *LOST)
        assert act_later(old_stage, old, "issues", "opened", third) in (1, 2)
        assert old.log.count("newer Precedent") == 1
        assert (old_branch.tip(old_stage), old_stage.comments(third)) == (tip, [])


@pytest.mark.parametrize(("name", "loser"), share(product(old_programs.PROGRAMS, ("old", "new"))))
def test_a_run_that_loses_a_push_continues_from_what_the_other_wrote(
    name: str, loser: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    old = old_programs.OldAction(old_programs.checkout(name, tmp_path_factory))
    programs: tuple[old_programs.Program, old_programs.Program] = (old, run) if loser == "old" else (run, old)
    with old_branch.restored(name, tmp_path / "then") as old_stage:
        before = old_branch.files(old_stage)
        assert act_later(old_stage, run, "schedule") == 0
        numbers = [old_stage.github.open_issue("hubot", *LOST), old_stage.github.open_issue("octocat", *AGAIN)]
        old_stage.github.clock.advance(300)
        runs = (
            partial(old_programs.handle_new_issue, old_stage, *each) for each in zip(programs, numbers, strict=True)
        )
        assert old_programs.race(old_stage, *runs) == (0, 0), old.log
        assert act_later(old_stage, run, "schedule") == 0
        after = old_branch.files(old_stage)
        check_nothing_lost(before, after)
        check_memory_matches(old_stage, after)
        assert old_branch.manifest(after).pending == ()
        assert set(old_branch.count_comments(old_stage).values()) == {1}
        assert old_branch.count_comments(old_stage).keys() >= {(number, "") for number in numbers}
