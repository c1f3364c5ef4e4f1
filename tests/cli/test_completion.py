"""Completion in real shells: what each shell offers for a line typed so far."""

import argparse
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cli.commands.completion import SHELLS, run_completion, script
from bot.cli.parser import parse, parser

Complete = Callable[..., set[str]]
ZSH = """
zmodload zsh/zpty
zpty type zsh -f -i
zpty -w type 'PS1=; autoload -Uz compinit; compinit -u -D; eval "$(<'"$1"')"; cd '"$2"
zpty -w type 'LISTMAX=9999; bindkey "^I" list-choices; echo RE""ADY'
zpty -r type shown '*READY*'
zpty -w -n type "$3"$'\\t'
for turn in {1..100}; do
  zpty -r -t type shown && print -rn -- "$shown" && [[ $shown == *$4* ]] && break
  sleep 0.05
done
zpty -d type
"""
"""Types a line and a tab into a new shell and prints the screen; waits up to five seconds for the expected text."""


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"needs {shell}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the scripts, and a working folder with a file and a folder."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/archive.jsonl").touch()
    (tmp_path / "here/memory").mkdir()
    for shell in SHELLS:
        (tmp_path / shell).write_text(script(shell), encoding="utf-8")
    return tmp_path


def shell(folder: Path, *command: str) -> str:
    process = subprocess.run(command, cwd=folder / "here", capture_output=True, text=True, timeout=30, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout


@pytest.fixture
def bash(folder: Path) -> Complete:
    """Gives a function that completes the last word as bash does."""
    completion_code = (
        'source ../bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        'on=$(complete -p precedent); [[ $on =~ -F\\ ([^ ]+) ]]; "${BASH_REMATCH[1]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return lambda *words: set(shell(folder, "bash", "-c", completion_code, "bash", "precedent", *words).split())


@pytest.fixture
def fish(folder: Path) -> Complete:
    """Gives a function that completes the last word as fish does."""

    def complete(*words: str) -> set[str]:
        line = " ".join(("precedent", *words))
        output = shell(folder, "fish", "--no-config", "-c", f"source ../fish; complete -C '{line}'")
        return {candidate.partition("\t")[0] for candidate in output.splitlines()}

    return complete


EXAMPLES = [
    (("doc",), {"doctor"}),
    (("search", "--sta"), {"--state"}),
    (("search", "words", "--state", ""), {"open", "closed", "all"}),
    (("deliveries", "dr"), {"drop"}),
    (("import", "arch"), {"archive.jsonl"}),
]


@needs("bash")
@pytest.mark.parametrize(("words", "offered"), EXAMPLES)
def test_bash_completes(bash: Complete, words: tuple[str, ...], offered: set[str]) -> None:
    assert bash(*words) == offered


@needs("fish")
@pytest.mark.parametrize(("words", "offered"), EXAMPLES)
def test_fish_completes(fish: Complete, words: tuple[str, ...], offered: set[str]) -> None:
    assert fish(*words) == offered


@needs("bash")
def test_bash_offers_folders_and_no_files_for_a_folder(bash: Complete) -> None:
    assert bash("search", "words", "--store", "") == {"memory"}


@needs("fish")
def test_fish_offers_folders_for_a_folder(fish: Complete) -> None:
    assert fish("search", "words", "--store", "mem") == {"memory/"}


@needs("bash")
def test_bash_offers_every_command(bash: Complete) -> None:
    (group,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert set(group.choices) <= bash("")


@needs("bash")
@pytest.mark.parametrize("word", ["$(touch ran)", "`touch ran`", "'", "--state=$(touch ran)", "*"])
def test_bash_never_runs_what_was_typed(bash: Complete, folder: Path, word: str) -> None:
    bash("search", word)
    bash("search", word, "--st")
    assert not (folder / "here/ran").exists()


@pytest.mark.slow
@needs("zsh")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("precedent ", "doctor"),
        ("precedent search --", "--state"),
        ("precedent search w --state ", "closed"),
        ("precedent import ", "archive.jsonl"),
    ],
)
def test_zsh_offers(folder: Path, line: str, offered: str) -> None:
    screen = shell(folder, "zsh", "-f", "-c", ZSH, "zsh", str(folder / "zsh"), str(folder / "here"), line, offered)
    assert offered in screen


def test_the_command_prints_a_script_that_knows_all_commands() -> None:
    for name in SHELLS:
        printed = run_completion(parse(["completion", name]))
        assert printed == script(name), name
        assert all(word in printed for word in ("doctor", "offline", "completion", "zsh")), name
