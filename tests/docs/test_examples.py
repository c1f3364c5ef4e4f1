"""Runs the examples of the documentation: they print the output shown; only times may differ."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli.main import main
from tests.docs.pages import CODE, ROOT, blocks, prose, section

DECIMAL = re.compile(r"\d+\.\d+")
TIME = re.compile(r'(?:(?<= in )|(?<="seconds": )|(?<="ms": )|(?<=^ms_p50 {12})|(?<=^ms_p95 {12})|(?<=^seconds {11}))'
                  r"\d+\.\d+", re.MULTILINE)  # fmt: skip
"""The part of an output that differs from run to run."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout; commands that `run` starts in it find `precedent` on the PATH."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "sample").symlink_to(ROOT / "sample")
    program = folder / "bin" / "precedent"
    program.parent.mkdir()
    command = shlex.join([sys.executable, "-m", "bot"])
    program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def stored(shell: Path) -> Path:
    """Such a folder with a memory of the sample."""
    folder = shell / "stored"
    folder.mkdir()
    for name in ("bin", "sample"):
        (folder / name).symlink_to(shell / name)
    assert main(["import", str(ROOT / "sample/history.jsonl"), "--store", str(folder / "memory"), "--no-learn"]) == 0
    return folder


def run(command: str, folder: Path) -> str:
    """The terminal output of a command; times, which differ from run to run, become 0.0."""
    environ = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return TIME.sub("0.0", result.stdout)


def differences(shown: str, printed: str) -> list[str]:
    """Where two outputs differ, except in times and in the last digit of a figure, which another processor may round
    differently."""
    shown, printed = TIME.sub("0.0", shown).strip("\n"), TIME.sub("0.0", printed).strip("\n")
    if DECIMAL.sub("0.0", shown) != DECIMAL.sub("0.0", printed):
        return [f"shown: {shown}", f"given: {printed}"]
    pairs = zip(DECIMAL.findall(shown), DECIMAL.findall(printed), strict=True)
    return [f"{expected} is shown, {actual} given" for expected, actual in pairs if not is_alike(expected, actual)]


def is_alike(first: str, second: str) -> bool:
    last_digit = 10.0 ** -len(first.partition(".")[2])
    return math.isclose(float(first), float(second), rel_tol=1e-4, abs_tol=1.5 * last_digit)


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param("docs/command-line.md", marks=pytest.mark.night), "docs/asking.md"])
def test_the_examples_of_the_command_line_print_the_output_shown(shell: Path, page: str) -> None:
    shown = "\n".join(blocks(page, "console"))
    examples = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n?)*)", shown, re.MULTILINE)
    assert len(examples) >= 8
    for command, expected in examples:
        assert differences(expected, run(command, shell)) == [], command


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "eval --threads sample/history.jsonl --queries keys.jsonl",
        "backtest --store memory --last 20",
        "calibrate --store memory --last 20",
    ],
)
def test_every_json_key_of_an_evaluation_is_explained(stored: Path, command: str) -> None:
    (stored / "keys.jsonl").write_text('{"id": 42, "relevant": [26]}', encoding="utf-8")
    run("precedent eval --threads sample/history.jsonl --queries keys.jsonl --json > before.json", stored)
    against = " --against before.json" if command.startswith("eval") else ""
    run(f"precedent {command}{against} --json > given.json", stored)
    printed = json.loads((stored / "given.json").read_text(encoding="utf-8"))
    explained = set(CODE.findall(section("docs/command-line.md", command.partition(" ")[0])))
    assert {*printed, *printed.get("grades", ())} <= explained


@pytest.mark.slow
def test_the_json_answer_is_the_documented_one(stored: Path) -> None:
    (expected,) = (json.loads(body) for body in blocks("docs/command-line.md", "json"))
    (command,) = (code for code in CODE.findall(prose(ROOT / "docs/command-line.md")) if "answer 42" in code)
    actual = json.loads(run(command, stored))
    (hit,), (example,) = actual["seen_before"], expected["seen_before"]
    for documented, printed, field in ((expected, actual, "markdown"), (example["outcome"], hit["outcome"], "quote")):
        assert printed[field].startswith(documented.pop(field).rstrip("…").rstrip("- "))
        del printed[field]
    (near, *_), (shown_near,) = actual["nearest"], expected["nearest"]
    actual["nearest"] = [near]
    for documented, printed in ((example, hit), (shown_near, near)):
        assert is_alike(str(documented.pop("similarity")), str(printed.pop("similarity")))
    del expected["ms"], actual["ms"]
    assert actual == expected
