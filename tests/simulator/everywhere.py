"""A crash at every I/O point of one run, one after the other: whatever was left, the next run makes it good.

Every night all points are tried; for a change, of several of one kind in a row the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.examples import THOROUGH
from tests.simulator import invariants
from tests.simulator.people import SUBJECTS, TURNS, grow, settle_in
from tests.simulator.points import Points
from tests.simulator.scene import Delivery, Ground, Ran, Scene
from tests.simulator.story import SQUASH, make_start


@dataclass(frozen=True)
class Death:
    """A run that died at this point, and what was broken afterwards."""

    point: int
    kind: str
    broken: tuple[str, ...]


def opened(scene: Scene) -> Delivery:
    """An issue that points at an answered one."""
    number = scene.fake.open_issue("octocat", SUBJECTS[2][0], f"```\n{SUBJECTS[2][1]}\n```\nIs it #3 again?")
    return scene.deliver("issues", "opened", number)


def commented(scene: Scene) -> Delivery:
    """A comment that points at an answered issue, on one that was silent until then."""
    number = scene.fake.open_issue("octocat", "Something else entirely", "Nothing is known of this.")
    scene.act(scene.deliver("issues", "opened", number))
    scene.fake.clock.advance(60)
    return scene.deliver("issue_comment", "created", number, scene.fake.comment(number, "hubot", "See #1 and #4."))


def commanded(scene: Scene) -> Delivery:
    """A command that is replied to."""
    comment = scene.fake.comment(8, "hubot", "/precedent search white flashes in the dark theme")
    return scene.deliver("issue_comment", "created", 8, comment)


def squashed(scene: Scene) -> Delivery:
    """An issue whose run finds the branch full."""
    for turn in range(2 * SQUASH):
        if f"Precedent-Commits: {SQUASH}\n" in scene.bare.message(scene.bare.tip()):
            break
        scene.fake.clock.advance(10)
        scene.fake.label(1, f"more-{turn}", actor="monalisa")
        scene.act(scene.deliver("issues", "labeled", 1))
    return opened(scene)


def taken_back(scene: Scene) -> Delivery:
    """A deleted comment that a comment of ours quotes, and a reply."""
    scene.act(opened(scene))
    scene.fake.clock.advance(60)
    scene.act(commanded(scene))
    scene.fake.clock.advance(300)
    remedy = scene.fake.issue(3).comments[0].id
    scene.fake.delete_comment(remedy)
    return scene.deliver("issue_comment", "deleted", 3, remedy)


SCENARIOS: dict[str, tuple[str, Callable[[Scene], Delivery]]] = {
    "opened": ("warm", opened),
    "commented": ("warm", commented),
    "commanded": ("warm", commanded),
    "squashed": ("old", squashed),
    "taken back": ("warm", taken_back),
}


def die_everywhere(ground: Ground, name: str) -> Iterator[Death]:
    """The deaths of one scenario, until a run comes to its end."""
    start, prepare = SCENARIOS[name]
    make_start(ground, start)
    whole = Points()
    _, wanted = _once(ground, start, prepare, whole)
    for point, kind in enumerate(whole.seen, 1):
        if not THOROUGH and whole.seen[: point - 1][-1:] == [kind]:
            continue
        death, found = _once(ground, start, prepare, Points(dies_at=point))
        if death is None:
            return
        missing = () if found == wanted else (f"(8) comments of ours are on {sorted(found)}, not on {sorted(wanted)}",)
        yield Death(point, death.kind, (*death.broken, *missing))


def _once(
    ground: Ground, start: str, prepare: Callable[[Scene], Delivery], points: Points
) -> tuple[Death | None, set[tuple[int, int]]]:
    """One crash and what comes after it; None in place of the death when the run came to its end before."""
    point = points.dies_at
    scene, broken = Scene(ground, f"e{point or 0}", start), list[str]()
    try:
        settle_in(scene.fake, len(SUBJECTS))
        for turn in range(TURNS if start == "old" else 0):
            grow(scene.fake, turn)
        event = prepare(scene)
        scene.after = lambda ran: broken.extend(invariants.after_run(scene, ran))
        ran = scene.act(event, points)
        if point is not None and not ran.points.died:
            return None, set()
        if point is not None:
            scene.fake.clock.advance(900)
            scene.act(scene.deliver("schedule"))
        broken += _at_the_end(scene, start)
        return Death(point or 0, ran.points.kind, tuple(broken)), {
            key for key, made in scene.fake.created.items() if made
        }
    finally:
        scene.close()


def _at_the_end(scene: Scene, start: str) -> list[str]:
    broken = invariants.at_the_end(scene, set())
    broken += invariants.forced(scene.bare, SQUASH if start == "old" else 200)
    broken += invariants.secrets(scene)
    return broken + scene.fake.broken


def squashes(ground: Ground) -> bool:
    """Whether the run of the scenario ``squashed`` really gives up history when nothing disturbs it."""
    make_start(ground, "old")
    scene = Scene(ground, "squash", "old")
    try:
        settle_in(scene.fake, len(SUBJECTS))
        for turn in range(TURNS):
            grow(scene.fake, turn)
        ran: Ran = scene.act(squashed(scene))
        return ran.is_done and not scene.bare.parents(scene.bare.tip())
    finally:
        scene.close()
