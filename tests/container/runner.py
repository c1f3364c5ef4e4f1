"""What GitHub's runner gives to the container of an action: its folders, its variables, its user."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from tests.container.engine import ROOT, Ended, Engine
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

MOUNTS = ("workspace", "home", "workflow", "file_commands", "runner_temp")
HOSTILE = "raise SystemExit('a file of the workspace was imported')\n"
PLACES = {
    "HOME": "/github/home",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
    "GITHUB_OUTPUT": "/github/file_commands/output",
    "GITHUB_ENV": "/github/file_commands/env",
    "GITHUB_PATH": "/github/file_commands/path",
    "GITHUB_STATE": "/github/file_commands/state",
    "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
    "RUNNER_TEMP": "/github/runner_temp",
    "PYTHONPATH": "/github/workspace",
}
SAID = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTOR": "octocat",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_RUN_ID": "1",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_SHA": "0" * 40,
    "GITHUB_WORKFLOW": "Precedent",
    "RUNNER_OS": "Linux",
    "RUNNER_TOOL_CACHE": "/opt/hostedtoolcache",
}


class Runner:
    """A runner's folders and variables. https://docs.github.com/actions/reference/workflows-and-actions/variables

    The socket of the engine is not mounted, which a runner of GitHub's would do: nothing of ours may ask for it.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.environ = {**PLACES, **SAID, "GITHUB_REPOSITORY": "octocat/hello-world"}
        inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
        for name, given in inputs.items():
            self.environ[f"INPUT_{name.upper().replace(' ', '_')}"] = given["default"]
        for mount in MOUNTS:
            (folder / mount).mkdir()
            (folder / mount).chmod(0o777)  # a container without any capability is root only by its name
        for name in ("output", "summary", "env", "path", "state"):
            (folder / "file_commands" / name).touch()
            (folder / "file_commands" / name).chmod(0o666)
        for name in ("bot", "yaml", "json"):
            (folder / "workspace" / name).mkdir()
            (folder / "workspace" / name / "__init__.py").write_text(HOSTILE, encoding="utf-8")

    def talk_to(self, github: FakeGitHub, git: GitServer) -> None:
        """Have the action use these as GitHub."""
        self.environ |= {
            "GITHUB_REPOSITORY": github.repo.full_name,
            "INPUT_TOKEN": github.token,
            "GITHUB_API_URL": github.url,
            "GITHUB_GRAPHQL_URL": github.graphql_url,
            "GITHUB_SERVER_URL": git.url,
        }

    def options(self, event: str) -> list[str]:
        """The options of an engine, as the runner gives them but for the network."""
        mounts = [option for mount in MOUNTS for option in ("-v", f"{self.folder / mount}:/github/{mount}")]
        variables = {**self.environ, "GITHUB_EVENT_NAME": event}
        given = [option for name, value in variables.items() for option in ("-e", f"{name}={value}")]
        return ["--workdir", "/github/workspace", *mounts, *given]

    def run(self, event: str, *options: str) -> Ended:
        """Run the action on the event that was written."""
        return self.engine.run(options=[*self.options(event), *options])

    def outside(self, event: str, python: Path) -> dict[str, str]:
        """The same variables for a run of ``python`` on this machine, whose places are the mounted ones."""
        given = {**self.environ, "GITHUB_EVENT_NAME": event, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        del given["PYTHONPATH"]
        return {
            name: value.replace("/github/", f"{self.folder}/", 1) if name in PLACES else value
            for name, value in given.items()
        }

    def write_event(self, text: str) -> None:
        (self.folder / "workflow/event.json").write_text(text, encoding="utf-8")

    def file(self, name: str) -> str:
        return (self.folder / "file_commands" / name).read_text(encoding="utf-8")
