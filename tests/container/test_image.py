"""The image, built and run as GitHub's runner does."""

import hashlib
import json
import zlib
from functools import partial
from pathlib import Path

import pytest

from tests.container.engine import ROOT, Engine
from tests.container.runner import Runner
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.container

LIMIT, DOWNLOAD_LIMIT = 220_000_000, 95_000_000
"""Maximum bytes of the image, unpacked and compressed."""

NOT_IN_THIS_IMAGE = {
    *("githubkit", "sqlalchemy", "starlette", "uvicorn", "prometheus_client", "lancedb"),
    *("mcp", "mcp_types", "anyio", "pydantic"),
}
"""What the webhook server, the tools for agents and an organisation's index need: separate extras."""


def test_the_image_runs_the_command_line(engine: Engine) -> None:
    result = engine.run("--help", options=["--network", "none"])
    assert result.code == 0
    assert "usage: precedent" in result.output


def test_the_entry_point_is_absolute_and_leaves_the_user_and_the_folder_to_the_runner(engine: Engine) -> None:
    entry = json.loads(engine.inspect("{{json .Config.Entrypoint}}"))
    assert entry == ["/opt/precedent/bin/python", "-I", "-m", "bot"]
    assert json.loads(engine.inspect("{{json .Config.Cmd}}")) == ["action"]
    assert engine.inspect("{{.Config.User}}") == ""
    assert engine.inspect("{{.Config.WorkingDir}}") in ("", "/")


def test_the_image_has_git_but_neither_a_compiler_nor_an_installer(engine: Engine) -> None:
    tools = "git pip pip3 gcc cc g++ make ld curl wget perl apt-get dpkg bash"
    paths = engine.shell(f"for tool in {tools}; do command -v $tool || true; done")
    assert paths.split() == ["/usr/bin/git"]
    script = "for m in ('pip', 'ensurepip', 'setuptools'):\n    print(m, importlib.util.find_spec(m))"
    for python in ("/usr/local/bin/python", "/opt/precedent/bin/python"):
        specs = engine.shell(f'{python} -I -c "import importlib.util\n{script}"')
        assert specs.split() == ["pip", "None", "ensurepip", "None", "setuptools", "None"]


def test_every_module_is_compiled_and_never_checked_against_its_source(engine: Engine) -> None:
    script = """
import importlib.util, pathlib
top = pathlib.Path(pathlib.__file__).parents[1 if pathlib.__file__.endswith('__init__.py') else 0]
roots = [pathlib.Path('/opt/precedent/lib'), top / 'json', top / 'email', top / 'http', top / 'concurrent']
sources = [source for root in roots for source in root.rglob('*.py')]
print(len(sources) > 500)
for source in sources:
    code = pathlib.Path(importlib.util.cache_from_source(source))
    unchecked_hash = code.exists() and code.read_bytes()[4:8] == bytes([1, 0, 0, 0])
    if not unchecked_hash:
        print(source)
"""
    assert engine.shell(f'/opt/precedent/bin/python -I -c "{script}"') == "True"


def test_the_code_is_that_of_the_checkout(engine: Engine) -> None:
    script = """
import hashlib, pathlib
place = pathlib.Path('/opt/precedent/lib/python3.13/site-packages')
for top in ('bot', 'templates'):
    for path in (place / top).rglob('*'):
        if path.is_file() and path.suffix != '.pyc':
            print(hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(place))
"""
    inside = engine.shell(f'/opt/precedent/bin/python -I -c "{script}"')
    assert len(inside.splitlines()) > 20
    assert {tuple(line.split(" ", 1)) for line in inside.splitlines()} == {
        (hashlib.sha256(path.read_bytes()).hexdigest(), str(path.relative_to(ROOT)))
        for top in ("bot", "templates")
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_no_file_has_a_hard_link_or_a_setuid_bit(engine: Engine) -> None:
    """A hard link is copied as a separate file; no program here needs another user's rights."""
    script = """
import os, pathlib, stat
for top in ('/usr', '/opt', '/etc', '/var'):
    for folder, _, files in os.walk(top):
        for name in files:
            found = os.lstat(os.path.join(folder, name))
            if stat.S_ISREG(found.st_mode) and (found.st_nlink > 1 or found.st_mode & 0o6000):
                print(folder, name)
"""
    assert engine.shell(f'/opt/precedent/bin/python -I -c "{script}"') == ""


def test_every_module_of_ours_can_be_imported(engine: Engine) -> None:
    """The server's modules, and what they need, are in the image built for it."""
    script = """
import importlib, pkgutil, bot
for found in pkgutil.walk_packages(bot.__path__, 'bot.'):
    if not found.name.endswith('__main__'):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            print(found.name, error.name)
"""
    missing = [line.split() for line in engine.shell(f'/opt/precedent/bin/python -I -c "{script}"').splitlines()]
    assert {lacking for _, lacking in missing} <= NOT_IN_THIS_IMAGE, missing


def test_the_image_is_small(engine: Engine) -> None:
    """The unpacked size by the engine: what GitHub's runner has to have on its disk before a run begins."""
    assert int(engine.inspect("{{.Size}}")) <= LIMIT


def test_the_image_is_a_small_download(engine: Engine, tmp_path: Path) -> None:
    """Registries keep layers compressed: every job on GitHub's runners downloads them."""
    saved = engine.do("save", "--output", str(tmp_path / "image.tar"), engine.image)
    assert saved.code == 0, saved.output
    deflate = zlib.compressobj(6)
    with (tmp_path / "image.tar").open("rb") as archive:
        size = sum(len(deflate.compress(part)) for part in iter(partial(archive.read, 1 << 20), b""))
    assert size + len(deflate.flush()) <= DOWNLOAD_LIMIT


def test_an_irrelevant_event_succeeds_without_network_privileges_or_a_writable_disk(runner: Runner) -> None:
    runner.write_event("{}")
    result = runner.run("watch", "--network", "none", "--read-only", "--cap-drop=all")
    assert result.code == 0, result.output
    assert "Traceback" not in result.output
    assert "spoke" in runner.file("output")


def test_a_payload_that_is_not_json_is_one_line_and_no_traceback(runner: Runner) -> None:
    runner.write_event("{")
    result = runner.run("issues", "--network", "none")
    assert result.code in (1, 2), result.output
    assert "Traceback" not in result.output
    assert "workspace was imported" not in result.output


def test_a_run_without_network_fails_without_a_traceback_or_the_token(runner: Runner) -> None:
    runner.environ["INPUT_TOKEN"] = "canary-token"
    runner.environ["GITHUB_SERVER_URL"] = "http://127.0.0.1:9"
    runner.environ["GITHUB_API_URL"] = "http://127.0.0.1:9"
    with FakeGitHub() as github:
        number = github.open_issue("octocat", "Login loops after the upgrade", "It loops since 2.3.0.")
        github.write_event(runner.folder / "workflow/event.json", "issues", "opened", number)
    result = runner.run("issues", "--network", "none")
    assert result.code == 1, result.output
    assert "Traceback" not in result.output
    assert "canary-token" not in result.output + runner.file("output") + runner.file("summary")


def answer_an_issue(runner: Runner) -> str:
    """Run the action on an issue that mentions an earlier one, and return its comment."""
    with FakeGitHub() as github, GitServer(runner.folder / "git") as server:
        server.create("octocat/hello-world")
        github.set_permission("hubot", "write")
        first = github.open_issue("hubot", "Session lost behind a proxy", "The cookie is dropped by the proxy.")
        github.comment(first, "hubot", "Fixed in 2.3.1, please upgrade.")
        github.close(first, "hubot")
        number = github.open_issue("octocat", "Login loops after the upgrade", f"It looks like #{first}, since 2.3.0.")
        github.write_event(runner.folder / "workflow/event.json", "issues", "opened", number)
        runner.connect(github, server)
        result = runner.run("issues", "--network", "host", "--read-only", "--cap-drop=all")
        assert result.code == 0, result.output
        (comment,) = github.comments_by("github-actions[bot]", number)
        assert github.violations == []
        return comment.body


def test_an_issue_is_answered_without_privileges_or_a_writable_disk(runner: Runner) -> None:
    assert "Session lost behind a proxy" in answer_an_issue(runner)
    assert "true" in runner.file("output")
