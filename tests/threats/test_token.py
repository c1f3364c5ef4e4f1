"""The token never leaks: runs fail in every way, and everything they leave is searched for it."""

from __future__ import annotations

import json
import random
import shutil
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import share
from tests.threats.action_process import SECRETS, ActionRun, Scene, leaks, open_scene, spellings
from tests.threats.echo import ANSWERS, EchoServer

pytestmark = pytest.mark.slow

LONG = "ghs_123456_" + "".join(random.Random(5).choices(string.ascii_letters + string.digits + "-_.", k=509))
"""A token of 520 characters, as installations have them since April 2026."""

CASES = {
    "a broken payload": ({}, b'{"issue": '),
    "no payload": ({"GITHUB_EVENT_PATH": "/nowhere"}, None),
    "a wrong input": ({"INPUT_MODE": "loud"}, None),
    "no repository": ({"GITHUB_REPOSITORY": "none"}, None),
    "a strange repository": ({"GITHUB_REPOSITORY": "octo-org/hello-world\n::error::x"}, None),
    "another repository": ({"GITHUB_REPOSITORY": "octo-org/absent"}, None),
    "no temporary folder": ({"TMPDIR": "/nowhere", "RUNNER_TEMP": "/nowhere"}, None),
    "no output file": ({"GITHUB_OUTPUT": "/nowhere/output"}, None),
    "no summary file": ({"GITHUB_STEP_SUMMARY": "/nowhere/summary"}, None),
    "no workspace": ({"GITHUB_WORKSPACE": "/nowhere"}, None),
    "a bad branch": ({"INPUT_BRANCH": "--upload-pack=touch x"}, None),
    "a closed port": ({"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_SERVER_URL": "http://127.0.0.1:9"}, None),
    "an address that is none": ({"GITHUB_SERVER_URL": "ext::sh -c id"}, None),
    "an address with a password": ({"GITHUB_SERVER_URL": "http://user:hunter2@127.0.0.1:9"}, None),
    "no git": ({"PATH": "/nowhere"}, None),
    "a dry run": ({"INPUT_DRY-RUN": "true"}, None),
}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with open_scene(tmp_path, LONG) as opened_scene:
        yield opened_scene


def run_on_new_issue(scene: Scene, payload: bytes | None = None) -> ActionRun:
    """One run on a new issue, after which the token is found nowhere."""
    number = scene.github.open_issue("hubot", "Logged out", "As in #1.")
    scene.github.clock.advance(20)
    event = scene.folder / "runner" / "event.json"
    scene.github.write_event(event, "issues", "opened", number)
    if payload is not None:
        event.write_bytes(payload)
    result = scene.run("issues")
    places = dict(scene.leftovers()) | {
        "log": result.log.encode(),
        "arguments": json.dumps([result.programs, result.started]).encode(),
    }
    assert leaks(scene.token, places) == []
    assert not any(secret.encode() in text for secret in SECRETS.values() for text in places.values())
    assert "Traceback" not in result.log
    assert result.code in (0, 1, 2)
    return result


def test_the_search_finds_every_spelling_of_the_token() -> None:
    for form in spellings(LONG).values():
        assert leaks(LONG, {"log": b"x" + form + b"y"})


@pytest.mark.night
@pytest.mark.parametrize("name", share(CASES, 2))
def test_no_token_leaks_when_the_environment_is_wrong(scene: Scene, name: str) -> None:
    environment, payload = CASES[name]
    scene.environment = dict(environment)
    result = run_on_new_issue(scene, payload)
    assert "hunter2" not in result.log
    assert result.code != 0 or name in ("a dry run", "no temporary folder", "no workspace")


@pytest.mark.parametrize("kind", ["401", "permission", "secondary403", "limit200", "422", "5xx", "drop", "html"])
def test_no_token_leaks_when_the_api_fails(scene: Scene, kind: str) -> None:
    scene.github.faults.add("*", kind, None, seconds=0)
    run_on_new_issue(scene)


@pytest.mark.night
@pytest.mark.parametrize("kind", ["401", "5xx", "drop", "read only", "absent", "hook"])
def test_no_token_leaks_when_git_fails(scene: Scene, kind: str) -> None:
    match kind:
        case "read only":
            scene.git.tokens[LONG] = "read"
        case "absent":
            scene.bare = Path(shutil.move(scene.bare, scene.bare.with_name("gone.git")))
        case "hook":
            hook = scene.bare / "hooks" / "pre-receive"
            hook.parent.mkdir(exist_ok=True)
            hook.write_text('#!/bin/sh\necho "##[error]no ::error::no $(env)" >&2\nexit 1\n', encoding="utf-8")
            hook.chmod(0o755)
        case _:
            scene.git.faults.add("*", kind, None)
    assert run_on_new_issue(scene).code != 0


@pytest.mark.night
@pytest.mark.parametrize("answer", share(ANSWERS, 2, 0))
def test_no_token_leaks_when_the_api_repeats_it(scene: Scene, answer: str) -> None:
    with EchoServer(answer) as echo:
        scene.environment = {"GITHUB_API_URL": echo.url}
        run_on_new_issue(scene)
        assert any(LONG in sent for _, _, sent in echo.requests)


@pytest.mark.night
@pytest.mark.parametrize("answer", share(ANSWERS, 2, 1))
def test_no_token_leaks_when_the_git_server_repeats_it(scene: Scene, answer: str) -> None:
    with EchoServer(answer) as echo:
        scene.environment = {"GITHUB_SERVER_URL": echo.url}
        run_on_new_issue(scene)
        assert echo.requests
        assert [path for _, path, sent in echo.requests if sent and not path.startswith("/octo-org/")] == []


def test_no_token_leaks_with_bad_settings_and_templates(scene: Scene) -> None:
    scene.commit(".github/precedent.yml", "mode: loud\n")
    scene.commit(".github/precedent/context.md.j2", "{{ token }}{{ self }}{% for %}")
    assert run_on_new_issue(scene).code == 2


DEBUGGING = {
    **dict.fromkeys(("ACTIONS_STEP_DEBUG", "ACTIONS_RUNNER_DEBUG"), "true"),
    **dict.fromkeys(("RUNNER_DEBUG", "PYTHONFAULTHANDLER", "PYTHONDEVMODE", "PYTHONVERBOSE", "CURL_VERBOSE"), "1"),
    **dict.fromkeys(("GIT_TRACE_CURL", "GIT_CURL_VERBOSE", "GIT_TRACE_PACKET", "GIT_TRACE_SETUP"), "1"),
    **dict.fromkeys(("GIT_TRACE_CURL_NO_DATA", "GIT_TRACE_REDACT"), "0"),
    "DEBUG": "*",
    "PYTHONTRACEMALLOC": "9",
}


@pytest.mark.night
@pytest.mark.parametrize("fails", [False, True])
def test_no_token_leaks_with_all_debugging_switched_on(scene: Scene, tmp_path: Path, fails: bool) -> None:
    scene.environment = DEBUGGING | {
        "GIT_TRACE": str(tmp_path / "home" / "trace"),
        "SSLKEYLOGFILE": str(tmp_path / "home" / "keys"),
    }
    if fails:
        scene.git.faults.add("*git-receive-pack*", "5xx", None)
        scene.github.faults.add("POST /graphql", "5xx", None)
    result = run_on_new_issue(scene)
    assert (result.code == 0) is not fails
    assert list((tmp_path / "home").iterdir()) == []


def test_a_hostile_environment_does_not_change_what_git_does(scene: Scene, tmp_path: Path) -> None:
    """Each of these would create the file ``canary`` if it had any effect."""
    canary, evil, home = tmp_path / "canary", tmp_path / "evil", tmp_path / "home"
    (evil / "hooks").mkdir(parents=True)
    (evil / "run").write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n", encoding="utf-8")
    (evil / "run").chmod(0o755)
    for hook in ("pre-push", "reference-transaction", "post-checkout", "pre-commit", "fsmonitor-watchman"):
        shutil.copy(evil / "run", evil / "hooks" / hook)
    for name in ("git-remote-http", "git-index-pack", "git-credential-x", "ssh"):
        shutil.copy(evil / "run", evil / name)
    run = str(evil / "run")
    config = (
        f"[core]\n\thooksPath = {evil}/hooks\n\tfsmonitor = {run}\n\tsshCommand = {run}\n\taskPass = {run}\n"
        f"\tgitProxy = {run}\n\tpager = {run}\n\teditor = {run}\n\talternateRefsCommand = {run}\n"
        f'[credential]\n\thelper = "!{run}"\n[init]\n\ttemplateDir = {evil}\n'
        f'[url "ext::{run} "]\n\tinsteadOf = http://\n\tpushInsteadOf = http://\n'
        f'[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n[gpg]\n\tprogram = {run}\n'
        f"[commit]\n\tgpgSign = true\n[push]\n\tgpgSign = if-asked\n[uploadpack]\n\tpackObjectsHook = {run}\n"
        f"[http]\n\tproxy = http://127.0.0.1:9\n[fetch]\n\trecurseSubmodules = true\n[include]\n\tpath = {evil}/more\n"
    )
    for file in (home / ".gitconfig", home / ".config" / "git" / "config", evil / "config"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(config, encoding="utf-8")
    (home / ".netrc").write_text("machine 127.0.0.1 login x password y\n", encoding="utf-8")
    folders = ("DIR", "WORK_TREE", "EXEC_PATH", "TEMPLATE_DIR", "OBJECT_DIRECTORY", "ALTERNATE_OBJECT_DIRECTORIES")
    programs = ("SSH", "SSH_COMMAND", "PROXY_COMMAND", "ASKPASS", "EDITOR", "PAGER", "EXTERNAL_DIFF")
    scene.environment = {
        **{f"GIT_{name}": str(evil) for name in folders},
        **{f"GIT_{name}": run for name in programs},
        **dict.fromkeys(("SSH_ASKPASS", "BASH_ENV", "ENV"), run),
        **dict.fromkeys(("GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), str(evil / "config")),
        "GIT_CONFIG_PARAMETERS": f"'core.hookspath={evil}/hooks' 'core.fsmonitor={run}'",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": f"{evil}/hooks",
        "GIT_CONFIG_KEY_1": "credential.helper",
        "GIT_CONFIG_VALUE_1": f"!{run}",
        "GIT_ALLOW_PROTOCOL": "ext:http:file",
        "GIT_NAMESPACE": "evil",
        "GIT_REDIRECT_STDERR": str(evil / "stderr"),
        "LD_PRELOAD": "",
        "XDG_CONFIG_HOME": str(home / ".config"),
    }
    result = run_on_new_issue(scene)
    assert result.code == 0, result.log
    assert not canary.exists()
    assert len(scene.comments(2)) == 1
    passed_on = {name for environment in scene.environments() for name in environment if name in scene.environment}
    assert passed_on <= {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_COUNT",
        *(f"GIT_CONFIG_{part}_{at}" for part in ("KEY", "VALUE") for at in (0, 1)),
    }
    assert not any(str(evil) in value for environment in scene.environments() for value in environment.values())
