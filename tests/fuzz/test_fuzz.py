"""Runs each target for a moment, and checks that the fuzzer finds what it should."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.examples import THOROUGH
from tests.fuzz.__main__ import main, replay, table
from tests.fuzz.engine import Campaign, TargetState, fuzz
from tests.fuzz.execution import Fault, fault_of, steps_of
from tests.fuzz.findings import load, save, shrink
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import MAX_CHARS, Target, Violated, require, require_storable
from tests.fuzz.targets import TARGETS
from tests.fuzz.targets.comment import require_harmless

SEED = 5
MOMENT = (2 if THOROUGH else 0.5) / 60
"""Minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_moment_of_fuzzing_finds_nothing(name: str, tmp_path: Path) -> None:
    (state,) = fuzz([TARGETS[name]], Campaign(MOMENT, SEED, tmp_path))
    assert state.inputs
    assert {key: finding.what for key, finding in state.findings.items()} == {}


def crash(text: str) -> None:
    require(len(text) < 30_000, "too long to be true")
    if "\0" in text or "\n" in text:
        raise IndexError(f"at {len(text)}")


@pytest.mark.slow
def test_a_crash_is_found_shrunk_saved_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target("crash", "text", lambda: ["some words"], crash)
    state = TargetState(target, random.Random(SEED), tmp_path)
    for _ in range(300):
        state.step()
    inputs = {key.partition(" ")[0]: finding.input for key, finding in state.findings.items()}
    assert inputs["IndexError"] in ("\0", "\n")
    assert set(inputs) == {"IndexError", "Violated"}
    (file, *_) = sorted(tmp_path.glob("crash-*.json"))
    monkeypatch.setitem(TARGETS, "crash", target)
    assert replay(file) == 1


def test_only_an_error_that_the_contract_does_not_name_is_a_fault() -> None:
    def refuse() -> None:
        raise ValueError("no")

    assert fault_of(refuse, (ValueError,))[0] is None
    fault = fault_of(refuse, (KeyError,))[0]
    assert fault
    assert fault.key.startswith("ValueError")


@pytest.mark.slow
def test_a_hang_is_detected_by_processor_time_and_cannot_be_caught() -> None:
    def spin() -> None:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001 - as the product does when it reads strangers' bytes
            return

    assert fault_of(lambda: time.sleep(0.1), (), limit=0.05)[0] is None
    fault = fault_of(spin, (), limit=0.02)[0]
    assert fault
    assert fault.key == "hang"


def test_endless_recursion_is_reported_with_the_place_where_it_began() -> None:
    def deeper() -> None:
        deeper()

    assert fault_of(deeper, ())[0] == Fault(
        "RecursionError in the target itself", "RecursionError from the target itself"
    )


@pytest.mark.parametrize("kind", ["text", "bytes", "json bytes", "json", "texts"])
def test_the_same_seed_gives_the_same_inputs_within_bounds(kind: str) -> None:
    start = {"text": "a b", "bytes": b"abc", "json bytes": b'{"a": [1]}', "json": {"a": ["b"]}, "texts": ["a", "b"]}[
        kind
    ]

    def inputs(seed: int) -> list[object]:
        mutator = Mutator(random.Random(seed), ["other words"])
        return [mutator.mutate(kind, start) for _ in range(200)]

    assert repr(inputs(1)) == repr(inputs(1)) != repr(inputs(2))
    if kind in ("text", "bytes"):
        assert all(len(value) <= 4 * MAX_CHARS for value in inputs(3))  # type: ignore[arg-type]
    assert len({repr(value) for value in inputs(1)}) > 100


def test_an_input_that_takes_new_steps_joins_the_corpus(tmp_path: Path) -> None:
    target = TARGETS["references"]
    assert steps_of(lambda: target.run("see #1")) - steps_of(lambda: target.run("nothing"))
    state = TargetState(replace(target, seeds=lambda: ["see #1"] * 3), random.Random(SEED), tmp_path)
    state.step()
    assert state.reached
    before = list(state.corpus)
    state.corpus.clear()
    state.reached.clear()
    state._try("fixes octo-org/linkbarn#3", traced=True)
    state._try("fixes octo-org/linkbarn#4", traced=True)
    assert (before, state.corpus) == (["see #1"], ["fixes octo-org/linkbarn#3"])


def test_any_finding_survives_the_round_trip_through_its_file(tmp_path: Path) -> None:
    from tests.fuzz.findings import Finding

    for value in ("\ud800\0", b"\xff\0", {"a": [1e400, None, 10**40, "\udfff"]}):
        finding = Finding("markdown", "key", "what", value)
        assert load(save(finding, tmp_path)) == finding


def test_a_shrunk_input_still_shows_the_fault() -> None:
    until = time.monotonic() + 5
    assert shrink("a" * 500 + "!" + "b" * 500, lambda text: "!" in text, until) == "!"
    assert shrink({"a": ["xx!", 1], "b": 2}, lambda value: "!" in repr(value), until) in ({"a": ["!"]}, ["!"])


@pytest.mark.parametrize("text", ["@octocat", "see #1", "[x](https://evil.example)", "![](i)", "# x", "<h1>x</h1>"])
def test_a_comment_with_a_mention_link_image_or_heading_is_not_harmless(text: str) -> None:
    with pytest.raises(Violated):
        require_harmless(f"x\n\n{text}\n")


def test_a_text_that_cannot_be_stored_is_found_at_any_depth() -> None:
    require_storable(("a", {"b": ["c"]}))
    with pytest.raises(Violated):
        require_storable(("a", {"b": ["\ud800"]}))


def test_the_program_reports_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--minutes", "0.01", "--seed", "1", "--target", "growth", "--out", str(tmp_path)])
    assert code == 0
    output = capsys.readouterr().out
    assert output.startswith("seed 1, 0.01 minutes, 1 targets")
    assert "0 findings" in output
    row = {"target": "x", "inputs": 3, "steps": 1, "kept": 1, "slowest": 0.1, "seconds": 1.0}
    assert "  x: bad" in table([row | {"findings": [{"key": "hang", "what": "bad"}]}])


@pytest.mark.slow
def test_targets_in_two_processes_are_all_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--target", "defang", "--target", "wording", "--processes", "2"]
    assert main(["--minutes", "0.01", "--seed", str(SEED), "--out", str(tmp_path), *options]) == 0
    assert {line.split()[0] for line in capfd.readouterr().out.splitlines() if " s " in line} == {"defang", "wording"}
