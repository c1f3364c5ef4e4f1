"""Programs of earlier states and this one write one branch, in turns and at once: nothing is lost, nothing said twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bot.action.main import run
from tests.acceptance.stage import Stage
from tests.upgrades import fleet, past
from tests.upgrades.test_branches import is_the_fold, nothing_lost

pytestmark = pytest.mark.slow


@pytest.fixture(params=fleet.PROGRAMS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old(name: str, tmp_path: Path) -> fleet.OldAction:
    return fleet.OldAction(fleet.checkout(name, tmp_path / "old"))


@pytest.fixture
def then(name: str, tmp_path: Path) -> Iterator[Stage]:
    with past.restored(name, tmp_path / "then") as stage:
        yield stage


def act(stage: Stage, program: object, *event: object) -> None:
    stage.program = program
    stage.github.clock.advance(300)
    code = stage.act(*event)
    assert code == 0, getattr(program, "log", "")


def test_old_and_new_runs_take_turns(then: Stage, old: fleet.OldAction) -> None:
    before, stood = past.files(then), past.ours(then)
    github = then.github
    first = github.open_issue("hubot", "Sessions are lost after a restart", "As in #14: everybody is logged out.")
    act(then, run, "issues", "opened", first)
    upgraded = past.files(then)
    second = github.open_issue("octocat", "Everybody is logged out once more", "Since the restart, see #14.")
    act(then, old, "issues", "opened", second)
    github.edit_issue(12, "octocat", body="It is another text now.")
    comment = github.comment(second, "hubot", "It happens with #14 too.")
    act(then, run, "issue_comment", "created", second, comment)
    between = past.files(then)
    act(then, old, "schedule")
    act(then, run, "schedule")
    after = past.files(then)
    nothing_lost(before, after, 12)
    nothing_lost(upgraded, after, 12, first, second)
    nothing_lost(between, after, 12, first, second)
    is_the_fold(then, after)
    assert past.manifest(after).pending == ()
    assert set(past.ours(then).values()) == {1}
    assert past.ours(then).keys() >= stood.keys() | {(first, ""), (second, "")}


@pytest.mark.parametrize("loser", ["old", "new"])
def test_whoever_loses_a_push_goes_on_from_what_the_other_wrote(loser: str, then: Stage, old: fleet.OldAction) -> None:
    before = past.files(then)
    act(then, run, "schedule")
    first = then.github.open_issue("hubot", "Sessions are lost after a restart", "As in #14: everybody is logged out.")
    second = then.github.open_issue("octocat", "Everybody is logged out once more", "Since the restart, see #14.")
    programs = (old, run) if loser == "old" else (run, old)
    then.github.clock.advance(300)
    codes = fleet.lost(then, *(partial(fleet.hears, then, *each) for each in zip(programs, (first, second))))
    assert codes == (0, 0), old.log
    act(then, run, "schedule")
    after = past.files(then)
    nothing_lost(before, after)
    is_the_fold(then, after)
    print(old.log)
    assert past.manifest(after).pending == ()
    assert set(past.ours(then).values()) == {1}
    assert past.ours(then).keys() >= {(first, ""), (second, "")}


def test_an_old_program_leaves_a_newer_format_alone(then: Stage, old: fleet.OldAction) -> None:
    from tests.upgrades.test_newer import newer
    newer(then)
    before = past.tip(then)
    first = then.github.open_issue("hubot", "Sessions are lost after a restart", "As in #14: everybody is logged out.")
    then.program = old
    then.github.clock.advance(300)
    code = then.act("issues", "opened", first)
    print(code, old.log)
    assert past.tip(then) == before
    assert then.comments(first) == []
    assert code == 2
