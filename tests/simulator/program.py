"""Playing histories: one by its seed with all that must hold, or many in several processes with a summary."""

from __future__ import annotations

import hashlib
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path

from tests.simulator import invariants
from tests.simulator.bare import Bare
from tests.simulator.scene import FOLDER, Ground, Ran
from tests.simulator.story import SQUASH, Story

SAMPLE = 50
"""One history in so many is played twice, and must end with the same bytes."""

REPEATED = 5
"""In one history of so many the last event is repeated at the end, and must change nothing."""

MAX_TOLD = 4

_GROUNDS: list[Ground] = []
"""The ground of this process, once it is made."""


@dataclass(frozen=True)
class Played:
    """One history: what was broken in it, what it was made of, and what it left behind."""

    seed: int
    broken: tuple[str, ...]
    counts: Counter[str]
    left: tuple[str, tuple[tuple[int, str], ...]] = ("", ())


@dataclass
class Summary:
    """Many histories."""

    histories: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    broken: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def add(self, played: Played) -> None:
        self.histories += 1
        self.counts += played.counts
        if played.broken:
            self.broken[played.seed] = played.broken

    def lines(self) -> Iterator[str]:
        """What a reader wants to know, a line each."""
        yield f"{self.histories:,} histories in {self.seconds:,.0f} s, {len(self.broken)} with violations"
        for name, count in sorted(self.counts.items()):
            yield f"  {count:8,}  {name}"
        for seed, broken in sorted(self.broken.items()):
            yield f"  seed {seed}: {broken[0][:300]}" + (f" (and {len(broken) - 1} more)" if broken[1:] else "")


def play(ground: Ground, seed: int, tell: Callable[[str], None] = lambda line: None) -> Played:
    """One history and its invariants. The same seed gives the same history."""
    story = Story(ground, seed, tell)
    scene, broken = story.scene, list[str]()

    def after(ran: Ran) -> None:
        found = [told for told in invariants.after_run(scene, ran) if told not in broken]
        for told in found:
            tell(f"    BROKEN {told}")
        broken.extend(found)

    scene.after = after
    try:
        story.play()
        repeats = seed % REPEATED == 0
        settled = story.settle(fully=repeats)
        broken += invariants.at_the_end(scene, story.told_gone())
        broken += invariants.forced(scene.bare, SQUASH if story.squashes else 200)
        if repeats:
            broken += repeat_last(story, settled)
        broken += invariants.secrets(scene)
        broken += [told for told in (*scene.fake.broken, *story.costly) if told not in broken]
    except Exception:  # noqa: BLE001 - whatever breaks here is told with its seed
        broken.append(f"(simulator) {traceback.format_exc()[-1500:]}")
    finally:
        scene.close()
    story.count_comments()
    return Played(seed, tuple(broken[:MAX_TOLD]), story.count_up.counts, _left(story, scene.bare))


def repeat_last(story: Story, settled: Sequence[Ran]) -> Iterator[str]:
    """(7) Another look, when nothing has happened since the last one, changes nothing and says nothing."""
    scene = story.scene
    again = [ran.delivery for ran in scene.runs[-len(settled) - 1 : -len(settled)] if ran.may_be_repeated]
    if again and (story.since or (again[0].name, again[0].action) == ("issue_comment", "edited")):
        # No event told of what happened last, or of what points at a thread that is read anew: the first look finds it.
        scene.act(again[0])
        settled = story.settle(fully=True)
    for delivery in (*again, settled[-1].delivery):
        tip, ran = scene.bare.tip(), scene.act(delivery)
        if scene.bare.tip() != tip:
            yield f"(7) {delivery.label} again changed the branch: {scene.bare.message(scene.bare.tip())[:60]!r}"
        if ran.seen.writes:
            yield f"(7) {delivery.label} again wrote {dict(ran.seen.sent)}"[:400]


def play_twice(ground: Ground, seed: int) -> Played:
    """A history, and for some seeds once more: the same comments, the same tree on the branch."""
    played = play(ground, seed)
    if seed % SAMPLE or played.broken:
        return played
    again = play(ground, seed)
    counts = played.counts + Counter({"histories played twice": 1})
    told = () if again.left == played.left else (f"(7) played again it ends otherwise: {_apart(played, again)}",)
    return Played(seed, told, counts, played.left)


def _apart(first: Played, second: Played) -> str:
    if first.left[1] != second.left[1]:
        return f"comments {first.left[1]!r:.300} and {second.left[1]!r:.300}"
    return f"trees {first.left[0]} and {second.left[0]}"


def _left(story: Story, bare: Bare) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The branch and the comments. What was learned holds how long that took, and the manifest the hash of it."""
    tip = bare.tip()
    files = bare.files(bare.tree_of(tip)) if tip else {}
    kept = sorted((path, oid) for path, oid in files.items() if not path.startswith(("model/", "manifest.json")))
    comments = story.fake.comments_by("github-actions[bot]")
    tree = hashlib.sha256(repr(kept).encode()).hexdigest() if story.count_up.counts["rebuilds"] else bare.tree_of(tip)
    return tree if tip else "", tuple((c.issue.number, c.body) for c in comments)


def ground_here() -> Ground:
    """The ground of this process, made once."""
    if not _GROUNDS:
        _GROUNDS.append(Ground(Path(tempfile.mkdtemp(prefix="simulator-", dir=FOLDER))))
        Finalize(None, give_back, exitpriority=10)  # a process of a pool ends without `atexit`
    return _GROUNDS[0]


def give_back() -> None:
    """Remove the ground of this process."""
    while _GROUNDS:
        _GROUNDS.pop().close()


def _some(seeds: Sequence[int], first_only: bool) -> list[Played]:
    """A few histories in a process of the pool, on the ground that this process keeps."""
    played: list[Played] = []
    for seed in seeds:
        played.append(play_twice(ground_here(), seed))
        if first_only and played[-1].broken:
            break
    return played


def play_all(
    seeds: Sequence[int],
    processes: int,
    seconds: float,
    tell: Callable[[Summary, list[Played]], None],
    *,
    first_only: bool = False,
) -> Summary:
    """Many histories, until ``seconds`` are over; ``tell`` is called with the summary so far and what is new in it.

    ``first_only``: none are begun after a violation.
    """
    summary, began = Summary(), time.monotonic()
    parts = [seeds[at : at + PART] for at in range(0, len(seeds), PART)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[list[Played]]] = set()
        while parts or waiting:
            late = time.monotonic() - began > seconds or (first_only and bool(summary.broken))
            while parts and len(waiting) < processes + (not first_only) and not late:
                waiting.add(pool.submit(_some, parts.pop(0), first_only))
            if not waiting:
                break
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            new = [played for future in done for played in future.result()]
            for played in new:
                summary.add(played)
            summary.seconds = time.monotonic() - began
            tell(summary, new)
    return summary


PART = 10
"""Histories that a process plays before it reports."""
