"""What GitHub's runner gives the container of an action: folders, variables and a user."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from tests.container.engine import ROOT, ContainerResult, Engine
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

MOUNTS = ("workspace", "home", "workflow", "file_commands", "runner_temp")
HOSTILE = "raise SystemExit('a file of the workspace was imported')\n"
PATHS = {
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
VARIABLES = {
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

    Unlike GitHub's runner, this does not mount the engine's socket: nothing of ours may ask for it.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.environ = {**PATHS, **VARIABLES, "GITHUB_REPOSITORY": "octocat/hello-world"}
        inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
        for name, declaration in inputs.items():
            self.environ[f"INPUT_{name.upper().replace(' ', '_')}"] = declaration["default"]
        for mount in MOUNTS:
            (folder / mount).mkdir()
            (folder / mount).chmod(0o777)  # a container without any capability is root in name only
        for name in ("output", "summary", "env", "path", "state"):
            (folder / "file_commands" / name).touch()
            (folder / "file_commands" / name).chmod(0o666)
        for name in ("bot", "yaml", "json"):
            (folder / "workspace" / name).mkdir()
            (folder / "workspace" / name / "__init__.py").write_text(HOSTILE, encoding="utf-8")

    def connect(self, github: FakeGitHub, git: GitServer) -> None:
        """Have the action use these fakes as GitHub."""
        self.environ |= {
            "GITHUB_REPOSITORY": github.repo.full_name,
            "INPUT_TOKEN": github.token,
            "GITHUB_API_URL": github.url,
            "GITHUB_GRAPHQL_URL": github.graphql_url,
            "GITHUB_SERVER_URL": git.url,
        }

    def options(self, event: str) -> list[str]:
        """The options for an engine, as the runner gives them except for the network."""
        mounts = [option for mount in MOUNTS for option in ("-v", f"{self.folder / mount}:/github/{mount}")]
        variables = {**self.environ, "GITHUB_EVENT_NAME": event}
        environment = [option for name, value in variables.items() for option in ("-e", f"{name}={value}")]
        return ["--workdir", "/github/workspace", *mounts, *environment]

    def run(self, event: str, *options: str) -> ContainerResult:
        """Run the action on the event that was written."""
        return self.engine.run(options=[*self.options(event), *options])

    def environment_outside(self, event: str, python: Path) -> dict[str, str]:
        """The same variables for a run of ``python`` on this machine, with the paths of the mounted folders."""
        environment = {**self.environ, "GITHUB_EVENT_NAME": event, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        del environment["PYTHONPATH"]
        return {
            name: value.replace("/github/", f"{self.folder}/", 1) if name in PATHS else value
            for name, value in environment.items()
        }

    def write_event(self, text: str) -> None:
        (self.folder / "workflow/event.json").write_text(text, encoding="utf-8")

    def file(self, name: str) -> str:
        return (self.folder / "file_commands" / name).read_text(encoding="utf-8")
