"""The loop: tries inputs for each target in turn, keeps those that take new steps, and records what is wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.fuzz.execution import Step, check_input, steps_of
from tests.fuzz.findings import Finding, save, shrink, size_of
from tests.fuzz.mutate import Mutator
from tests.fuzz.seeds import texts
from tests.fuzz.target import Input, Target
from tests.fuzz.targets.index import mutate as mutate_files

SLICE = 2.0
"""Seconds for a target before the next one's turn."""

MIN_SEEDS, MAX_CORPUS = 20, 400
"""Seeds that are kept whatever they reach, and the most inputs that are kept."""

TRACE_EVERY = 12
"""One input in so many is traced in a second run, which takes several times as long."""

SLOW = 0.5
"""Seconds of processor time above which a target's slowest input is saved, though not as a finding."""

MAX_SHRINKING = 20.0
"""Seconds at most for shrinking the input of a finding."""


@dataclass
class TargetState:
    """One target at work: its corpus, the steps it reached, its findings."""

    target: Target
    rng: random.Random
    out: Path
    corpus: list[Input] = field(default_factory=list)
    reached: set[Step] = field(default_factory=set)
    findings: dict[str, Finding] = field(default_factory=dict)
    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def __post_init__(self) -> None:
        self.mutator = Mutator(self.rng, texts(), self.target.tokens)
        self._untried_seeds: list[Input] = list(self.target.seeds())
        self.rng.shuffle(self._untried_seeds)

    def work(self, seconds: float) -> None:
        """Try inputs for this many seconds."""
        end = time.monotonic() + seconds
        started = time.process_time()
        while time.monotonic() < end:
            self.step()
        self.seconds += time.process_time() - started

    def step(self) -> None:
        """Try one input: first the seeds, then mutations of the corpus."""
        if self._untried_seeds:
            candidate = self._untried_seeds.pop()
            self.corpus += [candidate] if len(self.corpus) < MIN_SEEDS else []
            self._try(candidate, traced=True)
        else:
            candidate = self._mutate(self._choose())
            self._try(candidate, traced=self.rng.randrange(TRACE_EVERY) == 0)

    def _choose(self) -> Input:
        """An input from the corpus; the newer half and small inputs are preferred."""
        half = self.corpus[len(self.corpus) // 2 :] if self.rng.random() < 0.5 else self.corpus
        return min(self.rng.choice(half), self.rng.choice(half), key=size_of)

    def _mutate(self, value: Input) -> Input:
        if self.target.kind == "files":
            return mutate_files(value, self.mutator.data, self.rng)
        return self.mutator.mutate(self.target.kind, value)

    def _try(self, candidate: Input, *, traced: bool) -> None:
        self.inputs += 1
        fault, seconds = check_input(self.target, candidate)
        if seconds > self.slowest:
            self.slowest = seconds
            if seconds > SLOW and not fault:
                save(Finding(self.target.name, "slow", f"{seconds:.2f} s", candidate), self.out / "slow")
        if fault and fault.key not in self.findings:
            self._record(candidate, fault.key, fault.what)
        if traced and not fault:
            new = steps_of(partial(self.target.all, candidate)) - self.reached
            self.reached |= new
            if new and candidate not in self.corpus:
                self._add_to_corpus(candidate)

    def _add_to_corpus(self, candidate: Input) -> None:
        if len(self.corpus) >= MAX_CORPUS:
            self.corpus.pop(self.rng.randrange(MAX_CORPUS // 2))
        self.corpus.append(candidate)

    def _record(self, candidate: Input, key: str, what: str) -> None:
        def still_fails(value: Input) -> bool:
            fault, _ = check_input(self.target, value)
            return fault is not None and fault.key == key

        until = time.monotonic() + (MAX_SHRINKING if key != "hang" else 0)
        smallest = shrink(candidate, still_fails, until)
        finding = Finding(self.target.name, key, what, smallest)
        self.findings[key] = finding
        save(finding, self.out)


@dataclass(frozen=True)
class Campaign:
    """The time, the seed, and where findings go. The same seed tries the same inputs as far as time allows."""

    minutes: float
    seed: int
    out: Path
    report_progress: Callable[[list[TargetState], float], None] = lambda states, left: None


def fuzz(targets: list[Target], campaign: Campaign) -> list[TargetState]:
    """Fuzz the targets in turn until the time is over; returns the state of each."""
    end = time.monotonic() + campaign.minutes * 60
    states = [TargetState(target, random.Random(f"{campaign.seed} {target.name}"), campaign.out) for target in targets]
    for state, left in _turns(states, end):
        state.work(min(SLICE, left))
        campaign.report_progress(states, end - time.monotonic())
    return states


def _turns(states: list[TargetState], end: float) -> Iterator[tuple[TargetState, float]]:
    while True:
        for state in states:
            left = end - time.monotonic()
            if left <= 0:
                return
            yield state, max(left / len(states), 0.05) if left < SLICE * len(states) else SLICE
