"""What is asked for while the program is loaded: the same as without it, asked once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.doors.ahead import Ahead, begin
from bot.errors import PrecedentError
from bot.memory.head import read_head
from tests.fakes.git_http import GitServer
from tests.memory.remotes import bare_repository, commit

PATHS = [".github/precedent.yml"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "git") as one:
        one.create("octocat/hello-world")
        yield one


def environ(server: GitServer, **others: str) -> dict[str, str]:
    return {
        "GITHUB_REPOSITORY": "octocat/hello-world",
        "GITHUB_SERVER_URL": server.url,
        "GITHUB_EVENT_NAME": "issues",
        "INPUT_TOKEN": server.token,
        **others,
    }


def settings(place: Path, first: bytes, other: bytes = b"") -> None:
    commit(place, {PATHS[0]: ("100644", first), "other.yml": ("100644", other)}, "refs/heads/main")


def test_what_was_read_ahead_is_what_is_read_without_and_only_once(tmp_path: Path) -> None:
    place = bare_repository(tmp_path / "remote.git")
    settings(place, b"mode: off\n")
    ahead = Ahead()
    ahead.begin(str(place), "", PATHS)
    first = ahead.read(str(place), "", PATHS)
    assert first == read_head(str(place), "", PATHS)
    assert first[1] == {PATHS[0]: b"mode: off\n"}
    settings(place, b"mode: comment\n")
    assert ahead.read(str(place), "", PATHS)[1] == {PATHS[0]: b"mode: comment\n"}, (
        "whoever asks again wants to know it now"
    )


def test_what_is_asked_for_otherwise_is_read_then(tmp_path: Path) -> None:
    place = bare_repository(tmp_path / "remote.git")
    settings(place, b"mode: off\n", b"mode: summary\n")
    ahead = Ahead()
    ahead.begin(str(place), "", PATHS)
    assert ahead.read(str(place), "", ["other.yml"])[1] == {"other.yml": b"mode: summary\n"}
    ahead.end()


def test_what_failed_ahead_is_asked_again_and_told(tmp_path: Path) -> None:
    ahead = Ahead()
    ahead.begin(str(tmp_path / "nowhere"), "", PATHS)
    with pytest.raises(PrecedentError):
        ahead.read(str(tmp_path / "nowhere"), "", PATHS)


def test_only_an_event_that_is_ours_with_a_token_and_good_inputs_begins(server: GitServer) -> None:
    assert begin(environ(server))._thread
    for wrong in (
        {"GITHUB_EVENT_NAME": "watch"},
        {"INPUT_TOKEN": ""},
        {"GITHUB_REPOSITORY": ""},
        {"GITHUB_SERVER_URL": ""},
        {"INPUT_DRY-RUN": "perhaps"},
    ):
        assert begin(environ(server, **wrong))._thread is None, wrong


@pytest.mark.slow
def test_git_is_asked_before_the_index_or_arrays_are_loaded() -> None:
    script = (
        "import sys, bot.doors.ahead; early = set(sys.modules); import bot.doors.action;"
        "print([name for name in ('github', 'jinja2', 'bot.recall') if name in early],"
        " [name for name in ('numpy', 'whoosh', 'bot.evaluation.report') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"
