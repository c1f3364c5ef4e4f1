"""Plays histories: one by its seed with all invariants, or many in several processes with a summary."""

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

from tests.acceptance.bare_repository import Bare
from tests.simulator import invariants
from tests.simulator.scene import FOLDER, RunResult, Scene
from tests.simulator.story import SQUASH, Story

SAMPLE = 50
"""One history in so many is played twice and must end with the same bytes."""

REPEATED = 5
"""In one history in so many the last event is repeated at the end and must change nothing."""

MAX_REPORTED = 4

_SCENES: list[Scene] = []
"""The scene of this process, once it is made."""


@dataclass(frozen=True)
class HistoryResult:
    """One history: the broken invariants, the counts of what happened, and the final state."""

    seed: int
    broken: tuple[str, ...]
    counts: Counter[str]
    final_state: tuple[str, tuple[tuple[int, str], ...]] = ("", ())


@dataclass
class Summary:
    """Many histories."""

    histories: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    broken: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def add(self, played: HistoryResult) -> None:
        self.histories += 1
        self.counts += played.counts
        if played.broken:
            self.broken[played.seed] = played.broken

    def lines(self) -> Iterator[str]:
        """The summary for a reader, line by line."""
        yield f"{self.histories:,} histories in {self.seconds:,.0f} s, {len(self.broken)} with violations"
        for name, count in sorted(self.counts.items()):
            yield f"  {count:8,}  {name}"
        for seed, broken in sorted(self.broken.items()):
            yield f"  seed {seed}: {broken[0][:300]}" + (f" (and {len(broken) - 1} more)" if broken[1:] else "")


def play(scene: Scene, seed: int, report: Callable[[str], None] = lambda line: None) -> HistoryResult:
    """One history and its invariants. The same seed gives the same history."""
    story, broken = Story(scene, seed, report), list[str]()

    def check_run(result: RunResult) -> None:
        faults = [fault for fault in invariants.after_run(scene) if fault not in broken]
        for fault in faults:
            report(f"    BROKEN {fault}")
        broken.extend(faults)

    scene.on_result = check_run
    try:
        story.play()
        repeats = seed % REPEATED == 0
        settled = story.settle(fully=repeats)
        broken += invariants.after_history(scene, story.reported_gone())
        broken += invariants.forced_moves(scene.branch, SQUASH if story.squashes else 200)
        if repeats:
            broken += repeat_last(story, settled)
        broken += invariants.leaked_secrets(scene)
        broken += [fault for fault in (*scene.fake.broken, *story.costly) if fault not in broken]
    except Exception:  # noqa: BLE001 - any error here is reported with its seed
        broken.append(f"(simulator) {traceback.format_exc()[-1500:]}")
    story.count_comments()
    return HistoryResult(seed, tuple(broken[:MAX_REPORTED]), story.counts, _final_state(story, scene.branch))


def repeat_last(story: Story, settled: Sequence[RunResult]) -> Iterator[str]:
    """(7) A run that finds nothing new changes nothing and posts nothing."""
    scene = story.scene
    again = [result.delivery for result in scene.runs[-len(settled) - 1 : -len(settled)] if result.is_repeatable]
    if again and (story.changes_since_run or (again[0].name, again[0].action) == ("issue_comment", "edited")):
        # No event reported the last change, or what refers to a thread that is read again: the first run finds it.
        scene.run_action(again[0])
        settled = story.settle(fully=True)
    for delivery in (*again, settled[-1].delivery):
        tip, result = scene.branch.tip(), scene.run_action(delivery)
        if scene.branch.tip() != tip:
            yield f"(7) {delivery.label} again changed the branch: {scene.branch.message(scene.branch.tip())[:60]!r}"
        if result.requests.writes:
            yield f"(7) {delivery.label} again wrote {dict(result.requests.sent)}"[:400]


def play_twice(scene: Scene, seed: int) -> HistoryResult:
    """Play a history, for some seeds twice: both must end with the same comments and the same tree on the branch."""
    played = play(scene, seed)
    if seed % SAMPLE or played.broken:
        return played
    again = play(scene, seed)
    counts = played.counts + Counter({"histories played twice": 1})
    faults = (
        ()
        if again.final_state == played.final_state
        else (f"(7) played again it ends otherwise: {_describe_difference(played, again)}",)
    )
    return HistoryResult(seed, faults, counts, played.final_state)


def _describe_difference(first: HistoryResult, second: HistoryResult) -> str:
    if first.final_state[1] != second.final_state[1]:
        return f"comments {first.final_state[1]!r:.300} and {second.final_state[1]!r:.300}"
    return f"trees {first.final_state[0]} and {second.final_state[0]}"


def _final_state(story: Story, bare: Bare) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The branch and the comments. After a rebuild, models and manifest are left out: they hold its duration."""
    tip = bare.tip()
    files = bare.files(bare.tree_of(tip)) if tip else {}
    stable_files = sorted(
        (path, oid) for path, oid in files.items() if not path.startswith(("model/", "manifest.json"))
    )
    comments = story.fake.comments_by("github-actions[bot]")
    tree = hashlib.sha256(repr(stable_files).encode()).hexdigest() if story.counts["rebuilds"] else bare.tree_of(tip)
    return tree if tip else "", tuple((c.issue.number, c.body) for c in comments)


def get_scene() -> Scene:
    """The scene of this process, made once."""
    if not _SCENES:
        _SCENES.append(Scene(Path(tempfile.mkdtemp(prefix="simulator-", dir=FOLDER))))
        Finalize(None, remove_scene, exitpriority=10)  # a process of a pool ends without `atexit`
    return _SCENES[0]


def remove_scene() -> None:
    """Remove the scene of this process."""
    while _SCENES:
        _SCENES.pop().close()


def _play_seeds(seeds: Sequence[int], first_only: bool) -> list[HistoryResult]:
    """Play a few histories in a process of the pool, on the scene of that process."""
    played: list[HistoryResult] = []
    for seed in seeds:
        played.append(play_twice(get_scene(), seed))
        if first_only and played[-1].broken:
            break
    return played


def play_all(
    seeds: Sequence[int],
    processes: int,
    seconds: float,
    report: Callable[[Summary, list[HistoryResult]], None],
    *,
    first_only: bool = False,
) -> Summary:
    """Play many histories, until ``seconds`` are over; ``report`` gets the summary so far and the new results.

    ``first_only``: start none after a violation.
    """
    summary, started = Summary(), time.monotonic()
    parts = [seeds[at : at + PART] for at in range(0, len(seeds), PART)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[list[HistoryResult]]] = set()
        while parts or waiting:
            is_over = time.monotonic() - started > seconds or (first_only and bool(summary.broken))
            while parts and len(waiting) < processes + (not first_only) and not is_over:
                waiting.add(pool.submit(_play_seeds, parts.pop(0), first_only))
            if not waiting:
                break
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            new = [played for future in done for played in future.result()]
            for played in new:
                summary.add(played)
            summary.seconds = time.monotonic() - started
            report(summary, new)
    return summary


PART = 10
"""How many histories a process plays before it reports."""
