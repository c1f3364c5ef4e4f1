"""The documentation is true: links lead somewhere, what is named exists, and the examples do what they show."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bot.doors.cli import parser
from bot.inputs import Inputs, given_inputs, read_inputs
from bot.settings import describe
from tools.settings_docs import WEIGHTS_BEGIN, WEIGHTS_END

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SETTINGS = {each.path: each for each in describe()}

LINK = re.compile(r"(?<!!)\[[^]\n]*\]\(([^)\s]+)\)")
IMAGE = re.compile(r'(?:src|srcset)="([^"]+)"|!\[[^]\n]*\]\(([^)\s]+)\)')
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
DECIMAL = re.compile(r"\d+\.\d+")
TIME = re.compile(r'(?:(?<= in )|(?<="seconds": )|(?<="ms": )|(?<=^ms_p50 {12})|(?<=^ms_p95 {12})|(?<=^seconds {11}))'
                  r"\d+\.\d+", re.MULTILINE)  # fmt: skip
"""What differs from run to run in an output."""


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: str | Path, *languages: str) -> list[str]:
    """The fenced blocks of a page that are in one of these languages ("" for none)."""
    content = (ROOT / page).read_text(encoding="utf-8")
    return [body for language, body in FENCE.findall(content) if language in languages]


def anchors(page: Path) -> set[str]:
    """The fragments that GitHub gives the headings of a page."""
    headings = re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> dict[str, argparse.ArgumentParser]:
    """Name → parser of all commands; a second name of one is left out."""
    (group,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return {command: one for command, one in group.choices.items() if one.prog.split()[-1] == command}


def section(page: str, heading: str) -> str:
    """The part of a page below a heading of the second level."""
    parts = re.split(r"^## (.+)$", text(page), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def table(markdown: str) -> set[str]:
    """What stands as code in the first column of the tables."""
    first = [line.split("|")[1] for line in markdown.splitlines() if line.startswith("| `")]
    return {name for cell in first for name in CODE.findall(cell)}


# -- links ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_or_heading_leads_somewhere(page: Path) -> None:
    content = prose(page)
    images = [one or other for one, other in IMAGE.findall(content)]
    for target in [*LINK.findall(content), *images]:
        if target.startswith("https://"):
            continue
        name, _, fragment = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not fragment or fragment in anchors(file), target


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = (target.partition("#")[0] for target in LINK.findall(page.read_text(encoding="utf-8")))
        waiting += [(page.parent / t).resolve() for t in targets if t.endswith(".md") and "://" not in t]
    assert set(PAGES) <= reached


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_and_folders_that_a_page_names_are_there(page: Path) -> None:
    shapes = re.compile(r"(?:bot|tests|tools|docs|sample|templates|\.ci)/[\w./-]*\w|\w+\.example\.yml|action\.yml")
    named = [code for code in CODE.findall(prose(page)) if shapes.fullmatch(code)]
    assert [code for code in named if not (ROOT / code).exists()] == []


# -- workflows -----------------------------------------------------------------------------------------------------


def test_an_event_that_gives_no_such_input_is_no_dry_run() -> None:
    environ = {"INPUT_DRY-RUN": "", "INPUT_RUN": "", "INPUT_ISSUE": ""}
    assert read_inputs(given_inputs(environ)) == Inputs()
    assert not read_inputs({"dry-run": ""}).dry_run
    assert not read_inputs({"dry-run": "false"}).dry_run
    assert read_inputs({"dry-run": "true"}).dry_run


# -- commands ------------------------------------------------------------------------------------------------------


def test_what_the_pages_tell_to_make_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## \S", text("Makefile"), re.MULTILINE))
    told = {name for page in PAGES for name in re.findall(r"\bmake ([a-z][a-z-]*)\b", code_of(page))}
    assert {"demo", "test"} <= told
    assert told <= targets


def code_of(page: Path) -> str:
    """All code of a page, in blocks and in lines."""
    fenced = FENCE.findall(page.read_text(encoding="utf-8"))
    return "\n".join([*(body for _, body in fenced), *CODE.findall(prose(page))])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_precedent_command_that_a_page_shows_is_accepted(page: Path) -> None:
    typed = re.findall(r"^\$ (.+)$", "\n".join(blocks(page, "console")), re.MULTILINE)
    typed += "\n".join(blocks(page, "")).splitlines()
    for line in typed:
        for arguments in re.findall(r"(?:^|\| )precedent ([^|\n]*)", line):
            words = shlex.split(re.sub(r" 2?>.*| &&.*", "", arguments))
            assert parser().parse_args(words).command in {*commands(), "ss"}


@pytest.mark.parametrize("name", commands())
def test_every_command_and_option_is_documented(name: str) -> None:
    told = section("docs/command-line.md", name)
    documented = {entry.split()[0] for entry in table(told)}
    actions = [action for action in commands()[name]._actions if not isinstance(action, argparse._HelpAction)]
    expected = {action.option_strings[0] if action.option_strings else str(action.metavar) for action in actions}
    assert documented == expected


def test_no_command_is_documented_that_is_not_there() -> None:
    headings = set(re.findall(r"^## (\S+)$", text("docs/command-line.md"), re.MULTILINE))
    assert headings == set(commands())


# -- settings, inputs, outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    sections = {path for path, each in SETTINGS.items() if each.default is None}
    shape = re.compile(rf"(?:{'|'.join(sorted(sections))})\.[a-z_]+")
    codes = CODE.findall(prose(page))
    assert [code for code in codes if shape.fullmatch(code) and code not in SETTINGS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_setting_with_a_value_is_one_that_is_allowed(page: Path) -> None:
    codes = CODE.findall(prose(page))
    modes = {code.removeprefix("mode: ") for code in codes if code.startswith("mode: ")}
    assert modes - {"comment | summary | off"} <= {"comment", "summary", "off"}


@pytest.mark.parametrize("part", ["inputs", "outputs"])
def test_getting_started_explains_all_inputs_and_outputs(part: str) -> None:
    declared = yaml.safe_load(text("action.yml"))[part]
    assert table(section("docs/getting-started.md", part.capitalize())) == set(declared)


def test_the_threshold_is_that_of_the_code() -> None:
    threshold = SETTINGS["troubleshooting.similarity_threshold"].default
    assert f"`troubleshooting.similarity_threshold` of {threshold} " in text("docs/evaluation.md")
    assert f"similarity of {threshold}," in text("README.md")


@pytest.mark.parametrize("part", ["order", "confidence"])
def test_the_weights_are_those_that_are_shipped(part: str) -> None:
    tables = text("docs/evaluation.md").partition(WEIGHTS_BEGIN)[2].partition(WEIGHTS_END)[0]
    assert tables, f"docs/evaluation.md has no {WEIGHTS_BEGIN} … {WEIGHTS_END} for `make docs` to fill"
    told = tables.split("The confidence in a hit:")[part == "confidence"]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in told.splitlines() if line.startswith("| `")]
    models = json.loads(text("bot/ranking.json"))
    one, other = models["with_vectors"][part], models["by_words"][part]
    assert {name.strip("`"): tuple(cells) for name, *cells in rows} == {
        name: tuple(f"{model[name]:.2f}".replace("-", "−") if name in model else "–" for model in (one, other))
        for name in {*one, *other}
    }


# -- examples ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout, with `precedent` on the PATH of what `run` starts there."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "sample").symlink_to(ROOT / "sample")
    program = folder / "bin" / "precedent"
    program.parent.mkdir()
    command = shlex.join([sys.executable, "-m", "bot"])
    program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


def run(command: str, folder: Path) -> str:
    """What a terminal shows of a command; times, which differ from run to run, as 0.0."""
    environ = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return TIME.sub("0.0", done.stdout)


def differences(shown: str, given: str) -> list[str]:
    """Where two outputs differ in more than times and in the last digit of a figure, which another processor may round
    in another way."""
    shown, given = TIME.sub("0.0", shown).strip("\n"), TIME.sub("0.0", given).strip("\n")
    if DECIMAL.sub("0.0", shown) != DECIMAL.sub("0.0", given):
        return [f"shown: {shown}", f"given: {given}"]
    pairs = zip(DECIMAL.findall(shown), DECIMAL.findall(given), strict=True)
    return [f"{one} is shown, {other} given" for one, other in pairs if not is_alike(one, other)]


def is_alike(one: str, other: str) -> bool:
    last_digit = 10.0 ** -len(one.partition(".")[2])
    return math.isclose(float(one), float(other), rel_tol=1e-4, abs_tol=1.5 * last_digit)


@pytest.mark.parametrize(
    ("shown", "given", "alike"),
    [
        ("auc               0.977\n", "auc               1.000\n", False),
        ("a confidence of 0.097", "a confidence of 0.092", False),
        ("a confidence of 0.097", "a confidence of 0.098", True),
        (' "score": 20.4636,', ' "score": 45.4308,', False),
        ("seconds           0.4\n", "seconds           1.9\n", True),
        ("ms_p50            5.37\nms_p95            10.58", "ms_p50            2.45\nms_p95            2.87", True),
        ("73 threads read in 0.5 s", "73 threads read in 0.17 s", True),
        ("73 threads read in 0.5 s", "72 threads read in 0.5 s", False),
    ],
)
def test_figures_are_compared_and_times_are_not(shown: str, given: str, alike: bool) -> None:
    assert (differences(shown, given) == []) is alike


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/command-line.md", "docs/asking.md"])
def test_the_examples_of_the_command_line_print_what_is_shown(shell: Path, page: str) -> None:
    shown = "\n".join(blocks(page, "console"))
    examples = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n?)*)", shown, re.MULTILINE)
    assert len(examples) >= 8
    for command, expected in examples:
        assert differences(expected, run(command, shell)) == [], command


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "eval --threads sample/history.jsonl --queries keys.jsonl",
        "backtest --store keys --last 20",
        "calibrate --store keys --last 20",
    ],
)
def test_every_key_of_what_proves_is_explained(shell: Path, command: str) -> None:
    (shell / "keys.jsonl").write_text('{"id": 42, "relevant": [26]}', encoding="utf-8")
    run("precedent import sample/history.jsonl --store keys", shell)
    run("precedent eval --threads sample/history.jsonl --queries keys.jsonl --json > before.json", shell)
    against = " --against before.json" if command.startswith("eval") else ""
    run(f"precedent {command}{against} --json > given.json", shell)
    given = json.loads((shell / "given.json").read_text(encoding="utf-8"))
    told = set(CODE.findall(section("docs/command-line.md", command.partition(" ")[0])))
    assert {*given, *given.get("grades", ())} <= told


def test_the_answer_as_json_is_what_is_shown(shell: Path) -> None:
    (shown,) = (json.loads(body) for body in blocks("docs/command-line.md", "json"))
    (command,) = (code for code in CODE.findall(prose(ROOT / "docs/command-line.md")) if "answer 42" in code)
    run("precedent import sample/history.jsonl --store memory", shell)
    given = json.loads(run(command, shell))
    (hit,), (example,) = given["seen_before"], shown["seen_before"]
    for ours, printed, field in ((shown, given, "markdown"), (example["outcome"], hit["outcome"], "quote")):
        assert printed[field].startswith(ours.pop(field).rstrip("…").rstrip("- "))
        del printed[field]
    assert is_alike(str(example.pop("similarity")), str(hit.pop("similarity")))
    del shown["ms"], given["ms"]
    assert given == shown


def test_an_example_finds_the_digest_where_the_readme_says_it_is(shell: Path) -> None:
    run("precedent import sample/history.jsonl --store readme", shell)
    shard = (shell / "readme/digests/0000.jsonl").read_text(encoding="utf-8")
    digests = [json.loads(line) for line in shard.splitlines()]
    assert [digest["title"] for digest in digests if digest["id"] == 48] == ["Login loop after the upgrade to 2.2"]
    assert [digest for digest in digests if digest.get("outcome", {}).get("kind") == "workaround"]
    assert [decision["text"] for digest in digests for decision in digest.get("decisions", [])]
