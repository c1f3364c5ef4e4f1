"""A run needs nothing but GitHub and its git server: it works in a network with only these two."""

import json
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.container.engine import Engine
from tests.container.isolated_network import IsolatedNetwork
from tests.container.runner import Runner
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.container

PROBE = """
import json, socket, sys
def reached(host, port):
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError as error:
        return type(error).__name__
    return True
def resolved(name):
    try:
        return socket.getaddrinfo(name, 443)[0][4][0]
    except OSError as error:
        return type(error).__name__
github, git, own, other = map(int, sys.argv[2:])
print(json.dumps({
    'github': reached('127.0.0.1', github), 'git': reached('127.0.0.1', git),
    'this machine': reached(sys.argv[1], own), 'another port': reached('127.0.0.1', other),
    'elsewhere': reached('192.0.2.1', 443), 'name': resolved('api.github.com'),
}))
"""
"""Prints what can be reached from where it runs."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[FakeGitHub, GitServer]]:
    with ExitStack() as stack:
        git = stack.enter_context(GitServer(tmp_path / "git"))
        github = stack.enter_context(FakeGitHub(site=git.url))
        git.create(github.repo.full_name)
        yield github, git


@pytest.fixture
def network(engine: Engine, servers: tuple[FakeGitHub, GitServer]) -> Iterator[IsolatedNetwork]:
    github, git = servers
    with (
        tempfile.TemporaryDirectory() as folder,
        IsolatedNetwork(engine, Path(folder), github.url, git.url) as isolated,
    ):
        yield isolated


def port(url: str) -> str:
    return url.rpartition(":")[2]


def own_address() -> str:
    """The outside address of this machine. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp_socket:
        udp_socket.connect(("192.0.2.1", 9))
        return str(udp_socket.getsockname()[0])


def test_only_the_two_servers_can_be_reached_from_the_isolated_network(
    engine: Engine, network: IsolatedNetwork, servers: tuple[FakeGitHub, GitServer]
) -> None:
    github, git = servers
    with socket.create_server(("0.0.0.0", 0)) as outside:
        ports = [port(github.url), port(git.url), *2 * [str(outside.getsockname()[1])]]
        python = ["--entrypoint", "/opt/precedent/bin/python"]
        probe = ("-I", "-c", PROBE, own_address(), *ports)
        inside = engine.run(*probe, options=[*python, *network.options])
        on_host = engine.run(*probe, options=[*python, "--network", "host"])
    assert inside.code == on_host.code == 0, inside.output + on_host.output
    open_to_all = json.loads(on_host.output)
    assert open_to_all["this machine"] is open_to_all["another port"] is True, "the question itself is of no use"
    reachable = json.loads(inside.output)
    assert reachable.pop("github") is reachable.pop("git") is True
    assert reachable == {
        "this machine": "OSError",
        "another port": "ConnectionRefusedError",
        "elsewhere": "OSError",
        "name": "gaierror",
    }


def test_an_issue_is_answered_when_only_github_can_be_reached(
    runner: Runner, network: IsolatedNetwork, servers: tuple[FakeGitHub, GitServer]
) -> None:
    github, git = servers
    first = github.open_issue("hubot", "Session lost behind a proxy", "The cookie is dropped by the proxy.")
    github.close(first, "hubot")
    number = github.open_issue("octocat", "Login loops after the upgrade", f"It looks like #{first}, since 2.3.0.")
    github.write_event(runner.folder / "workflow/event.json", "issues", "opened", number)
    runner.connect(github, git)
    result = runner.run("issues", *network.options, "--read-only", "--cap-drop=all")
    assert result.code == 0, result.output
    (comment,) = github.comments_by("github-actions[bot]", number)
    assert "Session lost behind a proxy" in comment.body
    assert git.pushes >= 1
    assert github.violations == []
