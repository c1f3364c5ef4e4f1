"""The loop: inputs for one target after the other, those kept that take new steps, and what is wrong written down."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.fuzz.findings import Finding, save, size_of, smaller
from tests.fuzz.mutate import Mutator
from tests.fuzz.seeds import texts
from tests.fuzz.target import Input, Target
from tests.fuzz.targets.index import mutate as mutate_files
from tests.fuzz.watch import Step, steps_of, wrong_with

SLICE = 2.0
"""Seconds for a target before it is the next one's turn."""

FIRST_KEPT, MOST_KEPT = 20, 400
"""Seeds that are kept whatever they reach, and inputs that are kept at all."""

TRACED = 12
"""One input in so many is run again to see which steps it takes: tracing costs several times the run."""

WORTH_A_LOOK = 0.5
"""Seconds of the processor's time from which the slowest input of a target is written down, as no finding."""

SHRINKING = 20.0
"""Seconds at most for making the input of a finding smaller."""


@dataclass
class Field:
    """One target at work: its corpus, what was reached, what was found."""

    target: Target
    chance: random.Random
    out: Path
    corpus: list[Input] = field(default_factory=list)
    reached: set[Step] = field(default_factory=set)
    findings: dict[str, Finding] = field(default_factory=dict)
    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def __post_init__(self) -> None:
        self.mutator = Mutator(self.chance, texts(), self.target.tokens)
        self._fresh: list[Input] = list(self.target.seeds())
        self.chance.shuffle(self._fresh)

    def work(self, seconds: float) -> None:
        """Try inputs for so long."""
        end = time.monotonic() + seconds
        started = time.process_time()
        while time.monotonic() < end:
            self.step()
        self.seconds += time.process_time() - started

    def step(self) -> None:
        """Try one input: first the seeds, then neighbours of what is in the corpus."""
        if self._fresh:
            given = self._fresh.pop()
            self.corpus += [given] if len(self.corpus) < FIRST_KEPT else []
            self._try(given, traced=True)
        else:
            given = self._neighbour(self._chosen())
            self._try(given, traced=self.chance.randrange(TRACED) == 0)

    def _chosen(self) -> Input:
        """One of the corpus, the younger half as often as the other, small ones before large ones."""
        half = self.corpus[len(self.corpus) // 2 :] if self.chance.random() < 0.5 else self.corpus
        return min(self.chance.choice(half), self.chance.choice(half), key=size_of)

    def _neighbour(self, value: Input) -> Input:
        if self.target.kind == "files":
            return mutate_files(value, self.mutator.data, self.chance)
        return self.mutator.mutated(self.target.kind, value)

    def _try(self, given: Input, *, traced: bool) -> None:
        self.inputs += 1
        fault, seconds = wrong_with(self.target, given)
        if seconds > self.slowest:
            self.slowest = seconds
            if seconds > WORTH_A_LOOK and not fault:
                save(Finding(self.target.name, "slow", f"{seconds:.2f} s", given), self.out / "slow")
        if fault and fault.key not in self.findings:
            self._write(given, fault.key, fault.what)
        if traced and not fault:
            new = steps_of(partial(self.target.all, given)) - self.reached
            self.reached |= new
            if new and given not in self.corpus:
                self._keep(given)

    def _keep(self, given: Input) -> None:
        if len(self.corpus) >= MOST_KEPT:
            self.corpus.pop(self.chance.randrange(MOST_KEPT // 2))
        self.corpus.append(given)

    def _write(self, given: Input, key: str, what: str) -> None:
        def stays(value: Input) -> bool:
            fault, _ = wrong_with(self.target, value)
            return fault is not None and fault.key == key

        until = time.monotonic() + (SHRINKING if key != "hang" else 0)
        least = smaller(given, stays, until)
        found = Finding(self.target.name, key, what, least)
        self.findings[key] = found
        save(found, self.out)


@dataclass(frozen=True)
class Campaign:
    """How long, how, and where findings go. The same seed tries the same inputs as far as time allows."""

    minutes: float
    seed: int
    out: Path
    tell: Callable[[list[Field], float], None] = lambda fields, left: None


def fuzz(targets: list[Target], campaign: Campaign) -> list[Field]:
    """Turn by turn until the time is over; returns what was done for each target."""
    end = time.monotonic() + campaign.minutes * 60
    fields = [Field(target, random.Random(f"{campaign.seed} {target.name}"), campaign.out) for target in targets]
    for one, left in _turns(fields, end):
        one.work(min(SLICE, left))
        campaign.tell(fields, end - time.monotonic())
    return fields


def _turns(fields: list[Field], end: float) -> Iterator[tuple[Field, float]]:
    while True:
        for one in fields:
            left = end - time.monotonic()
            if left <= 0:
                return
            yield one, max(left / len(fields), 0.05) if left < SLICE * len(fields) else SLICE
