"""Each target for a moment, and that the fuzzer sees what it is there to see."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.examples import THOROUGH
from tests.fuzz.__main__ import main, replay, table
from tests.fuzz.engine import Campaign, Field, fuzz
from tests.fuzz.findings import load, save, smaller
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import MAX_CHARS, Target, Violated, require, storable
from tests.fuzz.targets import TARGETS
from tests.fuzz.targets.comment import harmless
from tests.fuzz.watch import Fault, fault_of, steps_of

SEED = 5
MOMENT = (2 if THOROUGH else 0.5) / 60
"""Minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_moment_of_fuzzing_finds_nothing(name: str, tmp_path: Path) -> None:
    (field,) = fuzz([TARGETS[name]], Campaign(MOMENT, SEED, tmp_path))
    assert field.inputs
    assert {key: found.what for key, found in field.findings.items()} == {}


def crash(text: str) -> None:
    require(len(text) < 30_000, "too long to be true")
    if "\0" in text or "\n" in text:
        raise IndexError(f"at {len(text)}")


@pytest.mark.slow
def test_what_is_wrong_is_found_made_small_written_down_and_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("crash", "text", lambda: ["some words"], crash)
    field = Field(target, random.Random(SEED), tmp_path)
    for _ in range(300):
        field.step()
    found = {key.partition(" ")[0]: finding.input for key, finding in field.findings.items()}
    assert found["IndexError"] in ("\0", "\n")
    assert set(found) == {"IndexError", "Violated"}
    (file, *_) = sorted(tmp_path.glob("crash-*.json"))
    monkeypatch.setitem(TARGETS, "crash", target)
    assert replay(file) == 1


def test_an_error_that_the_contract_names_is_none_and_another_one_is() -> None:
    def refuse() -> None:
        raise ValueError("no")

    assert fault_of(refuse, (ValueError,))[0] is None
    fault = fault_of(refuse, (KeyError,))[0]
    assert fault
    assert fault.key.startswith("ValueError")


@pytest.mark.slow
def test_a_hang_is_told_by_the_time_of_the_processor_and_nobody_can_catch_it() -> None:
    def spin() -> None:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001 - as the product has it where bytes of strangers are read
            return

    assert fault_of(lambda: time.sleep(0.1), (), limit=0.05)[0] is None
    fault = fault_of(spin, (), limit=0.02)[0]
    assert fault
    assert fault.key == "hang"


def test_no_end_of_recursion_is_told_by_where_it_began() -> None:
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
        return [mutator.mutated(kind, start) for _ in range(200)]

    assert repr(inputs(1)) == repr(inputs(1)) != repr(inputs(2))
    if kind in ("text", "bytes"):
        assert all(len(given) <= 4 * MAX_CHARS for given in inputs(3))  # type: ignore[arg-type]
    assert len({repr(given) for given in inputs(1)}) > 100


def test_an_input_that_takes_new_steps_joins_the_corpus(tmp_path: Path) -> None:
    target = TARGETS["references"]
    assert steps_of(lambda: target.run("see #1")) - steps_of(lambda: target.run("nothing"))
    field = Field(replace(target, seeds=lambda: ["see #1"] * 3), random.Random(SEED), tmp_path)
    field.step()
    assert field.reached
    before = list(field.corpus)
    field.corpus.clear()
    field.reached.clear()
    field._try("fixes octo-org/linkbarn#3", traced=True)
    field._try("fixes octo-org/linkbarn#4", traced=True)
    assert (before, field.corpus) == (["see #1"], ["fixes octo-org/linkbarn#3"])


def test_a_finding_comes_back_from_its_file_whatever_is_in_it(tmp_path: Path) -> None:
    from tests.fuzz.findings import Finding

    for given in ("\ud800\0", b"\xff\0", {"a": [1e400, None, 10**40, "\udfff"]}):
        found = Finding("markdown", "key", "what", given)
        assert load(save(found, tmp_path)) == found


def test_a_smaller_input_still_shows_the_same() -> None:
    until = time.monotonic() + 5
    assert smaller("a" * 500 + "!" + "b" * 500, lambda text: "!" in text, until) == "!"
    assert smaller({"a": ["xx!", 1], "b": 2}, lambda value: "!" in repr(value), until) in ({"a": ["!"]}, ["!"])


@pytest.mark.parametrize("text", ["@octocat", "see #1", "[x](https://evil.example)", "![](i)", "# x", "<h1>x</h1>"])
def test_a_comment_that_reaches_out_is_not_harmless(text: str) -> None:
    with pytest.raises(Violated):
        harmless(f"x\n\n{text}\n")


def test_a_text_that_cannot_be_stored_is_seen_wherever_it_is() -> None:
    storable(("a", {"b": ["c"]}))
    with pytest.raises(Violated):
        storable(("a", {"b": ["\ud800"]}))


def test_the_program_says_how_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--minutes", "0.01", "--seed", "1", "--target", "growth", "--out", str(tmp_path)])
    assert code == 0
    told = capsys.readouterr().out
    assert told.startswith("seed 1, 0.01 minutes, 1 targets")
    assert "0 findings" in told
    row = {"target": "x", "inputs": 3, "steps": 1, "kept": 1, "slowest": 0.1, "seconds": 1.0}
    assert "  x: bad" in table([row | {"findings": [{"key": "hang", "what": "bad"}]}])


@pytest.mark.slow
def test_targets_are_shared_out_among_processes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    chosen = ["--target", "defang", "--target", "wording", "--processes", "2"]
    assert main(["--minutes", "0.01", "--seed", str(SEED), "--out", str(tmp_path), *chosen]) == 0
    assert {line.split()[0] for line in capfd.readouterr().out.splitlines() if " s " in line} == {"defang", "wording"}
