"""What a run does to the machine: which programs it starts, which hosts it contacts, what it writes and passes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance.stage import DECISION, REPOSITORY
from tests.threats.action_process import SECRETS, ActionRun, Scene, leaks, open_scene
from tests.threats.runner import commands, read_outputs_file

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
TOKEN = "ghs_story.canary-0123456789_secret"
INSIDE = "http://169.254.169.254/latest/meta-data/iam http://[::1]:22/ file:///etc/passwd http://localhost:9/"
HOSTILE = f"As in #1.\n\n![a]({INSIDE}) <img src={INSIDE}> [b]: {INSIDE}\n::error::x\n##[error]x\nEVIL=1\n{INSIDE}"
API = "/repos/{owner}/{repo}"
CALLS = {
    "GET ",
    "GET /collaborators/N/permission",
    "GET /commits/N",
    "GET /compare/N",
    "GET /issues",
    "GET /issues/N",
    "GET /issues/N/comments",
    "GET /issues/N/timeline",
    "GET /issues/comments",
    "GET /issues/comments/N",
    "GET /issues/comments/N/reactions",
    "GET /pulls/N",
    "GET /pulls/N/files",
    "GET /releases",
    "GET /tags",
    "POST /issues/N/comments",
    "POST /issues/comments/N/reactions",
    "PATCH /issues/comments/N",
    "DELETE /issues/comments/N",
}
"""Every call of a run to the REST API of its repository; docs/security.md lists them."""


class Story:
    """One day of a repository: each kind of event that does something, with hostile text wherever a stranger writes."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.runs = scene, list[ActionRun]()
        github = scene.github
        github.set_permission("octocat", "write")
        scene.commit("docs/agents.md", f"# Sessions\n\n{HOSTILE}\n")
        self.act("schedule")
        number = github.open_issue("hubot", f"Logged out {INSIDE}\nEVIL=1", HOSTILE)
        github.label(number, "::error::label", actor="octocat")
        self.act("issues", "opened", number)
        self.answer = scene.comments(number)
        comment = github.comment(number, "stranger", f"/precedent search sessions {INSIDE}")
        self.act("issue_comment", "created", number, comment)
        comment = github.comment(number, "octocat", "/precedent wrong #1")
        self.act("issue_comment", "created", number, comment)
        github.edit_issue(number, body=f"{HOSTILE} As in #1 again.")
        self.act("issues", "edited", number)
        comment = github.comment(number, "octocat", "/precedent on")
        self.act("issue_comment", "created", number, comment)
        github.close(number, "octocat")
        self.act("issues", "closed", number)
        self.act("gollum")
        self.act("push")
        self.act("release", "published")
        scene.environment = {"INPUT_RUN": "rebuild"}
        self.act("workflow_dispatch")
        self.comments = scene.comments(number)
        scene.environment = {"INPUT_RUN": "forget", "INPUT_ISSUE": str(number)}
        self.act("workflow_dispatch")
        scene.environment = {"INPUT_RUN": "backtest"}
        self.act("workflow_dispatch")
        self.number = number

    def act(self, event: str, action: str | None = None, number: int | None = None, comment: int | None = None) -> None:
        result = self.scene.act(event, action, number, comment)
        assert result.code == 0, result.log
        self.runs.append(result)

    @property
    def programs(self) -> list[list[str]]:
        return [words for result in self.runs for words in result.programs]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with open_scene(tmp_path_factory.mktemp("story"), TOKEN) as scene:
        yield Story(scene)


@pytest.mark.night
def test_the_story_exercises_the_bot(story: Story) -> None:
    assert len(story.comments) >= 2
    assert story.scene.comments(story.number) == []  # forgotten at the end of the day
    assert DECISION in story.answer[0]
    assert len(story.programs) > 20
    assert story.scene.github.violations == []


def test_git_is_the_only_program_that_is_started(story: Story) -> None:
    assert {words[0] for words in story.programs} == {"git"}
    event_kinds = {kind for result in story.runs for kind, _ in result.events}
    assert event_kinds.isdisjoint(
        {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn"}
    )


def test_git_starts_only_parts_of_itself(story: Story) -> None:
    started = {Path(words[0]).name for result in story.runs for words in result.started}
    assert started
    assert {name for name in started if name != "git" and not name.startswith("git-")} == set()


def test_the_only_hosts_are_the_api_and_the_git_server(story: Story) -> None:
    ports = {
        args[1][1] for result in story.runs for args in result.events_of("socket.connect") if isinstance(args[1], list)
    }
    assert ports == {urlsplit(story.scene.github.url).port}
    hosts = {args[0] for result in story.runs for args in result.events_of("socket.getaddrinfo")}
    assert hosts <= {"127.0.0.1"}
    assert all(
        isinstance(args[1], list) for result in story.runs for args in result.events_of("socket.connect")
    )  # not Docker's socket
    urls = {word for result in story.runs for words in result.started for word in words if "://" in word}
    assert {url.removesuffix("/").removesuffix(".git") for url in urls} == {
        f"{story.scene.git.url}/{REPOSITORY}",
        f"{story.scene.git.url}/{REPOSITORY}.wiki",
    }


def test_files_are_written_only_where_a_run_may_write(story: Story) -> None:
    folder = story.scene.folder
    allowed = (
        folder / "temp",
        folder / "workspace" / ".precedent",
        folder / "runner" / "output",
        folder / "runner" / "summary",
    )
    leftovers = {
        Path(args[0])
        for result in story.runs
        for args in result.events_of("open", "os.mkdir", "os.rename", "os.symlink")
    }
    unexpected = {path for path in leftovers if not any(path.is_relative_to(allowed_path) for allowed_path in allowed)}
    assert unexpected - {Path("/dev/null")} == set()
    assert list((folder / "temp").iterdir()) == []
    assert list((folder / "home").iterdir()) == []
    assert {path.name for path in (folder / "workspace").iterdir()} == {".precedent"}
    assert not any(args for result in story.runs for args in result.events_of("os.symlink", "os.link"))


def test_nothing_is_written_to_the_runners_own_files(story: Story) -> None:
    for name in ("env", "path", "state"):
        assert (story.scene.folder / "runner" / name).read_bytes() == b""


def test_a_token_with_the_documented_permissions_is_enough_and_no_other_call_is_made(story: Story) -> None:
    calls = {f"{request.method} {request.path}" for request in story.scene.github.requests}
    calls -= {"POST /graphql", "GET /rate_limit"}  # the limits are free, and need no permission
    assert calls
    assert {call for call in calls if not call.partition(" ")[2].startswith(API)} == set()
    assert {generic_call(call.replace(API, "")) for call in calls} <= CALLS
    assert [request for request in story.scene.github.requests if request.status in (401, 403)] == []


def test_the_list_holds_every_call_that_the_code_can_make() -> None:
    paths = {""}
    for file in [*(ROOT / "bot" / "github").glob("*.py"), *(ROOT / "bot" / "sources").glob("*.py")]:
        text = file.read_text(encoding="utf-8")
        matches = re.findall(r"""(?:self\._repo\}|/repos/\{self\.repo\}|_get\(f?"|path = f")(/[^"]*)\"""", text)
        paths |= {generic_call(path) for path in matches}
    assert paths == {re.sub("^[A-Z]+ ", "", call) for call in CALLS}


def test_the_documents_list_every_call() -> None:
    page = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `((?:GET|POST|PATCH|DELETE)\b[^`]*)`", page, re.MULTILINE))
    assert {generic_call(call.replace(API, "")) for call in listed} == {call.strip() for call in CALLS} | {
        "POST /graphql"
    }


def test_the_token_is_only_in_the_environment_of_git_and_in_nothing_left_behind(story: Story) -> None:
    places = dict(story.scene.leftovers())
    for at, result in enumerate(story.runs):
        places[f"log {at}"] = result.log.encode()
        places[f"arguments {at}"] = json.dumps([result.programs, result.started]).encode()
    assert leaks(TOKEN, places) == []


def test_child_processes_get_none_of_the_runners_secrets(story: Story) -> None:
    environments = story.scene.environments()
    assert len(environments) > 20
    names = {name for environment in environments for name in environment}
    assert names.isdisjoint(SECRETS)
    assert {
        name for name in names if name.startswith(("ACTIONS_", "GITHUB_", "INPUT_", "RUNNER_", "AWS_", "PYTHON"))
    } == set()
    values = "\n".join(value for environment in environments for value in environment.values())
    assert not any(secret in values for secret in SECRETS.values())
    holders = {
        name
        for environment in environments
        for name, value in environment.items()
        if leaks(TOKEN, {"": value.encode()})
    }
    assert holders
    assert all(name.startswith("GIT_CONFIG_VALUE_") for name in holders)


def test_no_program_gets_text_that_somebody_wrote(story: Story) -> None:
    arguments = json.dumps([[result.programs, result.started] for result in story.runs])
    values = json.dumps(story.scene.environments())
    assert [text for text in ("169.254", "EVIL", "::error", "[error]", "stranger") if text in arguments + values] == []


def test_the_log_of_the_story_holds_no_command_of_a_stranger(story: Story) -> None:
    logs = [result.log for result in story.runs]
    assert any("Issue " in log for log in logs)
    assert {name for log in logs for name in commands(log)} <= {"notice"}


def test_the_outputs_of_the_story_are_ours(story: Story) -> None:
    for result in story.runs:
        read = read_outputs_file(result.outputs)
        assert set(read) == {
            *("matches", "context", "report", "comment-id", "comment-url", "spoke", "would-speak", "reason"),
        }
        assert read["report"] in ("", ".precedent/backtest.html")
        assert re.fullmatch(r"|\.precedent/context-[0-9]+\.md", read["context"])
        assert re.fullmatch(r"[0-9]*", read["comment-id"])
        assert read["spoke"] in ("true", "false")
        assert "169.254.169.254" not in result.outputs


def generic_call(call: str) -> str:
    """A call with N for every parameter: ``GET /issues/N/comments``."""
    return re.sub(r"N\.\.\.N", "N", re.sub(r"\{[^}]*\}", "N", call))
