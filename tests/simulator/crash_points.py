"""A crash at every I/O point of one run, one after the other: the next run repairs whatever was left.

The nightly run tries all points; a run for a change tries only the first of several of one kind in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.examples import THOROUGH
from tests.simulator import invariants
from tests.simulator.people import SUBJECTS
from tests.simulator.points import Points
from tests.simulator.scene import Delivery, RunResult, Scene
from tests.simulator.story import SQUASH, STARTS


@dataclass(frozen=True)
class CrashResult:
    """A run that crashed at this point, and the invariants broken afterwards."""

    point: int
    kind: str
    broken: tuple[str, ...]


def open_related_issue(scene: Scene) -> Delivery:
    """An issue that refers to an answered one."""
    number = scene.fake.open_issue("octocat", SUBJECTS[2][0], f"```\n{SUBJECTS[2][1]}\n```\nIs it #3 again?")
    return scene.make_delivery("issues", "opened", number)


def comment_on_silent_issue(scene: Scene) -> Delivery:
    """A comment that refers to an answered issue, on an issue without our comment so far."""
    number = scene.fake.open_issue("octocat", "Something else entirely", "Nothing is known of this.")
    scene.run_action(scene.make_delivery("issues", "opened", number))
    scene.fake.clock.advance(60)
    return scene.make_delivery(
        "issue_comment", "created", number, scene.fake.comment(number, "hubot", "See #1 and #4.")
    )


def post_command(scene: Scene) -> Delivery:
    """A command that gets a reply."""
    comment = scene.fake.comment(8, "hubot", "/precedent search white flashes in the dark theme")
    return scene.make_delivery("issue_comment", "created", 8, comment)


def fill_branch(scene: Scene) -> Delivery:
    """An issue whose run finds the branch ready to be squashed."""
    for turn in range(10):
        if f"Precedent-Commits: {SQUASH}\n" in scene.branch.message(scene.branch.tip()):
            break
        scene.fake.clock.advance(10)
        scene.fake.label(1, f"more-{turn}", actor="monalisa")
        scene.run_action(scene.make_delivery("issues", "labeled", 1))
    return open_related_issue(scene)


def delete_quoted_comment(scene: Scene) -> Delivery:
    """The deletion of a comment that a comment of ours quotes, after a reply of ours."""
    scene.run_action(open_related_issue(scene))
    scene.fake.clock.advance(60)
    scene.run_action(post_command(scene))
    scene.fake.clock.advance(300)
    remedy = scene.fake.issue(3).comments[0].id
    scene.fake.delete_comment(remedy)
    return scene.make_delivery("issue_comment", "deleted", 3, remedy)


SCENARIOS: dict[str, tuple[str, Callable[[Scene], Delivery]]] = {
    "opened": ("warm", open_related_issue),
    "commented": ("warm", comment_on_silent_issue),
    "commanded": ("warm", post_command),
    "squashed": ("old", fill_branch),
    "taken back": ("warm", delete_quoted_comment),
}


def crash_everywhere(scene: Scene, name: str) -> Iterator[CrashResult]:
    """The crashes of one scenario, until a run completes."""
    start, prepare = SCENARIOS[name]
    undisturbed = Points()
    _, expected = _crash_once(scene, start, prepare, undisturbed)
    for point, kind in enumerate(undisturbed.passed, 1):
        if not THOROUGH and undisturbed.passed[: point - 1][-1:] == [kind]:
            continue
        crash, actual = _crash_once(scene, start, prepare, Points(dies_at=point))
        if crash is None:
            return
        missing = (
            () if actual == expected else (f"(8) comments of ours are on {sorted(actual)}, not on {sorted(expected)}",)
        )
        yield CrashResult(point, crash.kind, (*crash.broken, *missing))


def _crash_once(
    scene: Scene, start: str, prepare: Callable[[Scene], Delivery], points: Points
) -> tuple[CrashResult | None, set[tuple[int, int]]]:
    """One crash and the run after it; None instead of the crash if the run completed before."""
    point, broken = points.dies_at, list[str]()
    scene.start(f"e{point or 0}", *STARTS[start])
    event = prepare(scene)
    scene.on_result = lambda result: broken.extend(invariants.after_run(scene))
    result = scene.run_action(event, points)
    if point is not None and not result.points.died:
        return None, set()
    if point is not None:
        scene.fake.clock.advance(900)
        scene.run_action(scene.make_delivery("schedule"))
    broken += _end_faults(scene, start)
    return CrashResult(point or 0, result.points.kind, tuple(broken)), {
        key for key, ids in scene.fake.created.items() if ids
    }


def _end_faults(scene: Scene, start: str) -> list[str]:
    broken = invariants.after_history(scene, set())
    broken += invariants.forced_moves(scene.branch, SQUASH if start == "old" else 200)
    broken += invariants.leaked_secrets(scene)
    return broken + scene.fake.broken


def is_squashed(scene: Scene) -> bool:
    """Whether the run of the scenario ``squashed`` really squashes the branch when nothing disturbs it."""
    scene.start("squash", *STARTS["old"])
    result: RunResult = scene.run_action(fill_branch(scene))
    return result.is_done and not scene.branch.parents(scene.branch.tip())
