"""`precedent doctor` finds each planted fault, names its remedy, and changes nothing."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.cli.checks import github, memory
from bot.cli.checks.collect import _MAX_FILES, SetupFacts, _read_checkout
from bot.cli.checks.github import GitHubFacts
from bot.cli.checks.memory import InspectedMemory
from bot.cli.checks.result import CheckResult, RepositoryLinks, api_of, exit_code
from bot.cli.commands.doctor import (
    GAIN,
    Terminal,
    as_data,
    check_text_model,
    doctor_options,
    examine,
    judge,
    render_findings,
)
from bot.cli.parser import parse
from bot.domain.hosts import parse_remote_url
from bot.errors import StoreError
from bot.git.errors import AuthFailed, RemoteUnreachable
from bot.github.errors import Gone, NotPermitted, RateLimited, Unauthorised, Unreachable
from bot.memory.branch_store import Growth, Tip
from bot.memory.manifest import MANIFEST_PATH as MANIFEST
from bot.memory.manifest import Manifest
from tests.cli.examined_repository import (
    NOW,
    REPOSITORY,
    WORKFLOW,
    WORKFLOW_PATH,
    ExaminedRepository,
    threads,
    with_newer_format,
)
from tests.cli.program_result import Run
from tests.reading.linear_time import assert_linear_time

ROOT = Path(__file__).resolve().parents[2]
VERSION = "@08c6903cd8c0fde910a37f88322edcfb5dd907a8"
RUN = "run: ${{ inputs.run }}"
CONFIG = ".github/precedent.yml"
COMMAND = re.compile(r"`((?:precedent|git) [^`]+)`")


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[ExaminedRepository]:
    examined = ExaminedRepository(tmp_path)
    yield examined
    examined.close()


@pytest.fixture
def healthy(repository: ExaminedRepository) -> ExaminedRepository:
    """A repository without problems: five threads in memory, all remembered an hour ago."""
    repository.remember(*threads(5), cursor=NOW - timedelta(hours=1))
    return repository


def problems(findings: list[CheckResult]) -> list[CheckResult]:
    return [finding for finding in findings if finding.is_problem]


def findings_of(check: str, findings: list[CheckResult]) -> list[CheckResult]:
    return [finding for finding in findings if finding.check == check]


# The whole examination


@pytest.mark.slow
def test_a_healthy_repository_has_no_problems_and_nothing_is_written(healthy: ExaminedRepository) -> None:
    before = healthy.refs()
    healthy.github.mark()
    healthy.git.mark()
    findings = healthy.examine()
    assert problems(findings) == []
    assert exit_code(findings) == 0
    checks = [finding.check for finding in findings]
    settings = ["settings", "workflow", "next issue", "text model"]
    assert checks == ["repository", "rate limit", "rate limit", *settings, "branch", "manifest", "index"]
    assert {request.method for request in healthy.github.recent} == {"GET"}
    assert healthy.github.writes == 0
    assert healthy.git.requests
    assert healthy.git.pushes == 0
    assert healthy.refs() == before


@pytest.mark.parametrize(
    ("named", "is_here", "level", "says"),
    [
        ("/models", True, "ok", "/models has one: issues are compared by words and by meaning"),
        ("/models", False, "note", f"none in /models: this installation compares issues by words. With one, {GAIN}"),
        ("", True, "ok", "similar.model switches it off: issues are compared by words"),
        ("mine", False, "ok", "similar.model names mine"),
    ],
)
def test_the_doctor_says_whether_this_installation_has_a_text_model(
    named: str, is_here: bool, level: str, says: str
) -> None:
    result = check_text_model(named, is_here=is_here)
    assert (result.check, result.level, result.says) == ("text model", level, says)
    assert ("tools/minilm.py /models" in result.remedy) == (level == "note")


ANSWERING = "discussions:\n  answer: true\n"
EVENTS = "discussion:\n  discussion_comment:\n"


@pytest.mark.slow
def test_the_doctor_says_how_discussions_are_handled(repository: ExaminedRepository) -> None:
    unread = "switched on, 2 in all; memory has not read them all yet; Precedent"
    cases = [
        (EVENTS, "read", "", [f"{unread} does not answer them"]),
        (EVENTS, "write", ANSWERING, [f"{unread} answers them"]),
        (EVENTS, "read", ANSWERING, ["Precedent answers them", "may not write discussions, so it cannot answer"]),
        (EVENTS, "", "", ["does not answer them", "may not read discussions, so they are not remembered"]),
        ("", "read", "", ["does not answer them", "does not run on discussion and discussion_comment"]),
    ]
    repository.github.discuss("hubot", "How do I keep the cookie?")
    repository.github.discuss("hubot", "Printing in colour")
    repository.remember(*threads(2))
    for events, permission, config, expected in cases:
        workflow = WORKFLOW.replace("  issues:\n", f"  issues:\n  {events}", 1) if events else WORKFLOW
        if permission:
            workflow = re.sub(r"( +)issues: write", rf"\g<0>\n\1discussions: {permission}", workflow)
        repository.put_files({WORKFLOW_PATH: workflow, CONFIG: config} if config else {WORKFLOW_PATH: workflow})
        texts = [finding.says for finding in repository.examine() if "discussion" in f"{finding.check} {finding.says}"]
        assert len(texts) == len(expected), (events, permission)
        assert all(part in says for part, says in zip(expected, texts, strict=True)), texts


def test_without_discussions_only_a_setting_for_them_is_reported(repository: ExaminedRepository) -> None:
    assert findings_of("discussions", repository.examine()) == []
    repository.put_files({WORKFLOW_PATH: WORKFLOW, CONFIG: ANSWERING})
    [finding] = findings_of("discussions", repository.examine())
    assert (finding.level, "the repository has no discussions" in finding.says) == ("note", True)


def test_examining_a_store_leaves_no_trace(tmp_path: Path, sample_store: Path, call: Run) -> None:
    checkout = Path(shutil.copytree(sample_store, tmp_path / "checkout"))
    shutil.rmtree(checkout / ".store")
    for folder in (sample_store, checkout):
        before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}
        result = call("doctor", "--store", folder, "--json")
        assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))} == before
        assert [finding["level"] for finding in result.data["findings"]] == ["ok", "ok"]


# Faults, each planted in an otherwise healthy repository


def _overwrite_files(edits: dict[str, bytes | None]) -> Callable[[ExaminedRepository], None]:
    return lambda repository: repository.overwrite(lambda _: edits)


def _delete_index_file(repository: ExaminedRepository) -> None:
    repository.overwrite(lambda snapshot: dict.fromkeys(snapshot.paths("index")[:1]))


def _set_newer_format(repository: ExaminedRepository) -> None:
    repository.overwrite(lambda snapshot: {MANIFEST: with_newer_format(snapshot.read([MANIFEST])[MANIFEST])})


def _exhaust_rate_limit(repository: ExaminedRepository) -> None:
    repository.github.limits.set(12, resource="graphql")
    repository.github.limits.allowance(repository.github.world.tokens[repository.github.token], "graphql").used = 12


Plant = Callable[[ExaminedRepository], object]
Fault = tuple[Plant, str, str, str, str]
FAULTS: dict[str, Fault] = {
    "limit": (_exhaust_rate_limit, "rate limit", "warning", "graphql: 0 of 12", "after 2026-01-05 13:00 UTC"),
    "manifest lost": (_overwrite_files({MANIFEST: None}), "manifest", "error", "missing", "rebuild"),
    "manifest damaged": (_overwrite_files({MANIFEST: b"{"}), "manifest", "error", "damaged", "rebuild"),
    "newer format": (
        _set_newer_format,
        "format",
        "error",
        "format 3, which a newer Precedent wrote; this one",
        "`git pull` there",
    ),
    "index damaged": (_delete_index_file, "index", "warning", "damaged: index/", "rebuild"),
    "index that cannot be opened": (
        lambda c: c.replace_index({"MAIN_1.toc": b"of nobody"}),
        *("index", "warning", "damaged: index (", "rebuild"),
    ),
    "bad setting": (
        lambda c: c.put_files({WORKFLOW_PATH: WORKFLOW, CONFIG: "mod: off"}),
        *("settings", "error", f"{CONFIG}:1: unknown setting 'mod'; did you mean \"mode\"", "--config"),
    ),
    "no workflow": (lambda c: c.put_files({"README.md": ""}), "workflow", "error", "none of the files", "README"),
}


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_with_its_remedy(healthy: ExaminedRepository, fault: str) -> None:
    plant, check, level, says, remedy = FAULTS[fault]
    plant(healthy)
    assert_reported(healthy.examine(), (check, level, says, remedy))


def assert_reported(findings: list[CheckResult], expected: tuple[str, str, str, str]) -> None:
    """Exactly one problem of this check says this, at this level, with this remedy, whose commands exist."""
    check, level, says, remedy = expected
    matches = [finding for finding in findings_of(check, problems(findings)) if says in finding.says]
    assert [finding.level for finding in matches] == [level], findings
    assert remedy in matches[0].remedy
    for command in COMMAND.findall(matches[0].remedy):
        assert_command_exists(command)


def assert_command_exists(command: str) -> None:
    """Our own parser, or git, accepts the command."""
    program, *arguments = shlex.split(command)
    if program == "precedent":
        assert parse(arguments).command
    else:
        help_of = subprocess.run(["git", arguments[0], "-h"], capture_output=True, text=True, check=False)
        assert help_of.stdout.startswith(f"usage: git {arguments[0]}")


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "maker"),
    [({"layout": 0}, "made by an older version"), ({"analyser": "another"}, "made by another analyser")],
)
def test_an_index_of_another_version_is_a_note_because_the_next_event_rebuilds_it(
    healthy: ExaminedRepository, fields: dict[str, Any], maker: str
) -> None:
    """Even if its files differ from what this version would expect."""
    _delete_index_file(healthy)
    healthy.edit_manifest(lambda manifest: replace(manifest, **fields))
    findings = healthy.examine()
    assert problems(findings) == []
    (finding,) = findings_of("index", findings)
    assert (finding.level, maker in finding.says, "rebuild" in finding.remedy) == ("note", True, True)
    healthy.remember(*threads(6))
    (finding,) = findings_of("index", healthy.examine())
    assert finding.level == "ok"


WORKFLOWS: dict[str, tuple[str, str, tuple[str, str, str, str]]] = {
    "no comments": ("  issue_comment:\n", "", ("events", "warning", "run on issue_comment", "`issue_comment:`")),
    "few types": ("issues:\n", "issues: {types: [opened]}\n", ("events", "warning", "edited, closed", "`types`")),
    "no night": ("  schedule:\n    - cron: '23 4 * * *'\n", "", ("events", "warning", "no schedule", "cron")),
    "reads only": ("contents: write", "contents: read", ("permissions", "error", "contents", "`contents: write`")),
    "mute": ("      issues: write\n", "", ("permissions", "error", "write issues", "`issues: write`")),
    "cancels": ("progress: false", "progress: true", ("concurrency", "warning", "cancels", "progress: false")),
    "crowd": ("concurrency:", "unknown:", ("concurrency", "warning", "has none", "`concurrency:")),
    "typo": (RUN, "mod: off", ("inputs", "warning", "mod", 'mean "mode"')),
    "value": (RUN, "run: rebild", ("inputs", "error", "rebild", "`with:`")),
    "broken": ("jobs:", "# precedent\njobs: [", ("workflow", "warning", "not valid YAML", WORKFLOW_PATH)),
}


def test_each_flaw_of_a_workflow_is_reported_with_its_remedy() -> None:
    for old, new, expected in WORKFLOWS.values():
        assert old in WORKFLOW
        steps, file_findings = github.find_workflows(
            {WORKFLOW_PATH: WORKFLOW.replace(old, new).encode()}, is_ours=False
        )
        assert_reported([*file_findings, *github.check_workflow(steps, comments=True)], expected)


def test_a_correct_workflow_has_no_problems() -> None:
    steps, file_findings = github.find_workflows(
        {WORKFLOW_PATH: WORKFLOW.encode(), "other.yml": b"jobs: {a: {steps: 5}}"}, is_ours=False
    )
    findings = [*file_findings, *github.check_workflow(steps, comments=True)]
    assert problems(findings) == []
    assert findings_of("workflow", findings)[0].level == "ok"


def test_our_own_workflow_has_no_problems() -> None:
    steps, file_findings = github.find_workflows({WORKFLOW_PATH: (ROOT / WORKFLOW_PATH).read_bytes()}, is_ours=True)
    assert len(steps) == 1
    findings = [*file_findings, *github.check_workflow(steps, comments=True)]
    assert problems(findings) == []
    assert findings_of("events", findings) == []
    assert findings_of("workflow", findings)[0].level == "ok"


def test_any_workflow_is_read_without_a_crash_and_in_linear_time() -> None:
    texts = [
        *("", "[", "jobs: 1", "on: [1, {2: 3}]\njobs: {a: [b], c: {steps: {uses: x}}}", "a: &a [*a]", "\0"),
        *("jobs: {a: {steps: [{uses: [x]}, 5, null]}}", "[" * 60_000, "- " * 30_000, "x" * 70_000),
        "jobs: {a: {permissions: 5, concurrency: [], steps: [{uses: o/precedent@v1, with: [1], name: 2}]}}\non: 5",
        "jobs: {a: {permissions: {contents: []}, steps: [{uses: o/precedent@v1, with: {mode: [1], issue: {}}}]}}",
    ]

    def read(text: str) -> list[CheckResult]:
        steps, findings = github.find_workflows({WORKFLOW_PATH: b"# precedent\n" + text.encode()}, is_ours=True)
        return [*findings, *github.check_workflow(steps, comments=False)]

    assert [text[:60] for text in texts if not read(text)] == []
    assert_linear_time(read, "[", "- ", "x")


# Settings


def test_a_wrong_setting_is_reported_with_its_line() -> None:
    cases = [
        ("mode: coment", ("settings", "error", f"{CONFIG}:1: mode", "precedent doctor --config")),
        ("\ncomment:\n  autor: x", ("settings", "error", f"{CONFIG}:3: unknown setting", "that line")),
    ]
    for text, expected in cases:
        assert_reported([github.read_config(text.encode(), CONFIG)[1]], expected)


# The token, the API


LINKS = RepositoryLinks(REPOSITORY, api="https://api.github.com")


def test_the_error_decides_the_level_and_whether_the_cause_is_outside() -> None:
    cases = [
        (Unauthorised("no"), "error", False),
        (Gone("no", certain=False), "error", False),
        (NotPermitted("no"), "error", False),
        (Unreachable("no"), "error", True),
        (RateLimited("no", until=NOW), "warning", True),
    ]
    for fault, level, outside in cases:
        finding = github.check_repository(GitHubFacts(True, fault=fault), LINKS)
        assert (finding.level, finding.outside, bool(finding.remedy)) == (level, outside, True), fault


def test_without_a_token_a_refusal_does_not_blame_the_token() -> None:
    cases = [Unauthorised("no"), Gone("no", certain=False), NotPermitted("no")]
    for fault in cases:
        finding = github.check_repository(GitHubFacts(fault=fault), LINKS)
        assert (finding.check, finding.level) == ("repository", "error"), fault
        assert "without a token: it is private, or does not exist" in finding.says, fault
        finding = github.check_repository(GitHubFacts(fault=fault), LINKS, git_reads=True)
        assert (finding.level, "PRECEDENT_TOKEN" in finding.remedy) == ("note", True), fault
        assert github.check_repository(GitHubFacts(True, fault=fault), LINKS, git_reads=True).level == "error", fault


def test_a_repository_that_git_can_read_is_not_an_error_even_without_a_memory_branch() -> None:
    unseen = GitHubFacts(fault=Gone("no", certain=False))
    for tip, level in ((None, "note"), (StoreError("no"), "error")):
        findings = judge(SetupFacts(LINKS, NOW, tip=tip, api=unseen))
        assert findings_of("repository", findings)[0].level == level


@pytest.mark.slow
def test_a_workflow_that_cannot_be_read_is_one_finding(repository: ExaminedRepository) -> None:
    repository.put_files({WORKFLOW_PATH: "jobs:\n\tuses: octo-org/precedent@v1\n"})
    (finding,) = findings_of("workflow", repository.examine())
    assert (finding.level, "cannot be read" in finding.says) == ("warning", True)


def test_missing_or_nonsensical_rate_limits_are_no_problem() -> None:
    assert problems(list(github.check_limits(GitHubFacts(), NOW))) == []
    for limits in ({}, {"resources": []}, {"resources": {"core": {"remaining": "1", "limit": -1, "reset": 10**30}}}):
        assert problems(list(github.check_limits(GitHubFacts(limits=limits), NOW))) == []


@pytest.mark.slow
def test_without_a_token_public_data_is_examined_and_the_rest_is_reported(healthy: ExaminedRepository) -> None:
    findings = healthy.examine(token="")
    assert findings_of("repository", findings)[0].level == "ok"
    (branch,) = findings_of("branch", findings)
    assert (branch.level, "PRECEDENT_TOKEN" in branch.remedy) == ("error", True)
    assert findings_of("settings", findings)[0].level == "note"


@pytest.mark.slow
def test_the_checkout_is_read_if_the_default_branch_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    remote = "http://127.0.0.1:9/octo-org/hello-world.git"
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    (tmp_path / WORKFLOW_PATH).parent.mkdir(parents=True)
    (tmp_path / WORKFLOW_PATH).write_text(WORKFLOW.replace("contents: write", "contents: read"), encoding="utf-8")
    (tmp_path / CONFIG).symlink_to("/etc/passwd")
    monkeypatch.chdir(tmp_path / ".github")
    findings = examine(parse(["doctor", "--offline"]), {}, NOW)
    assert [finding.check for finding in problems(findings)] == ["permissions", "branch"]
    assert "this checkout" in findings_of("settings", findings)[0].says
    for number in range(_MAX_FILES + 1):
        (tmp_path / f".github/workflows/z{number}.yml").touch()
    assert len(_read_checkout(tmp_path, ["action.yml", ".github/workflows/*.yml"])) == _MAX_FILES
    (tmp_path / ".github").rename(tmp_path / "elsewhere")
    (tmp_path / ".github").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    findings = examine(parse(["doctor", "--offline"]), {}, NOW)
    assert [finding.check for finding in problems(findings)] == ["workflow", "branch"], "nothing is read through a link"


@pytest.mark.slow
def test_a_refused_token_is_reported_but_never_shown(healthy: ExaminedRepository) -> None:
    findings = healthy.examine(token="ghp_canary_0123456789")
    assert exit_code(findings) == 2
    assert findings_of("token", findings)[0].level == "error"
    assert "without a token" not in findings_of("branch", findings)[0].says
    assert "canary" not in str(findings)


@pytest.mark.night
@pytest.mark.slow
def test_an_unreachable_server_is_not_the_users_mistake(repository: ExaminedRepository) -> None:
    repository.git.stop()
    repository.github.faults.add("*", "drop", times=None)
    findings = repository.examine()
    assert exit_code(findings) == 1
    assert {finding.outside for finding in problems(findings)} == {True}
    assert {finding.check for finding in problems(findings)} == {"repository", "branch"}
    assert not re.search(r"run again|next run", str(findings))


@pytest.mark.night
@pytest.mark.slow
def test_offline_makes_no_api_requests(healthy: ExaminedRepository) -> None:
    healthy.github.mark()
    findings = healthy.examine("--offline")
    assert healthy.github.recent == []
    assert findings_of("repository", findings)[0].level == "note"
    assert findings_of("manifest", findings)[0].level == "ok"


# Memory


def test_the_level_of_the_branch_depends_on_what_was_found() -> None:
    cases = [
        (None, "warning", False),
        (RemoteUnreachable("away"), "error", True),
        (AuthFailed("no"), "error", False),
        (Tip("1" * 40, NOW, Growth(12, 3_000_000)), "ok", False),
        (Tip("1" * 40, None, Growth(201, 3_000_000)), "note", False),
    ]
    for tip, level, outside in cases:
        finding = memory.check_branch(tip, LINKS, NOW)
        assert (finding.level, finding.outside) == (level, outside), tip


def test_an_index_by_another_analyser_is_a_note() -> None:
    inspected = InspectedMemory(Manifest(index={"a": "b"}, analyser="1"))
    assert [finding.level for finding in memory.check_index(inspected, LINKS)] == ["note"]


# Server, repository and token


def test_server_and_repository_are_parsed_from_the_remote() -> None:
    cases = [
        ("https://github.com/octo-org/hello-world.git", "https://github.com"),
        ("https://octocat:secret@github.com/octo-org/hello-world", "https://github.com"),
        ("git@github.com:octo-org/hello-world.git", "https://github.com"),
        ("ssh://git@ssh.github.com:443/octo-org/hello-world.git", "https://github.com"),
        ("ssh://git@git.example.com:2222/octo-org/hello-world.git", "https://git.example.com"),
        ("https://git.example.com:8443/octo-org/hello-world/", "https://git.example.com:8443"),
        ("octo.ghe.com:octo-org/hello-world", "https://octo.ghe.com"),
        ("/srv/git/octo-org/hello-world.git", None),
        ("../hello-world", None),
        ("file:///octo-org/hello-world", None),
        ("https://github.com/octo-org", None),
        ("git://github.com/octo-org/hello-world", "https://github.com"),
        ("git@GitHub.com:octo-org/hello-world.git", "https://github.com"),
        ("git@altssh.gitlab.com:octo-org/hello-world.git", "https://gitlab.com"),
        ("http://localhost:8080/octo-org/hello-world", "http://localhost:8080"),
        ("gh:octo-org/hello-world", None),
        ("https://git.example.com/group/octo-org/hello-world", None),
        ("git@git.example.com:group/octo-org/hello-world", None),
        ("https://[::1/octo-org/hello-world", None),
        ("https://git.example.com:port/octo-org/hello-world", None),
        ("ext::sh -c x% octo-org/hello-world", None),
        ("", None),
    ]
    assert [
        origin for origin, expected in cases if parse_remote_url(origin) != (expected and (expected, REPOSITORY))
    ] == []


def test_the_api_address_follows_from_the_server() -> None:
    assert api_of("https://github.com") == "https://api.github.com"
    assert api_of("https://octo.ghe.com") == "https://api.octo.ghe.com"
    assert api_of("https://git.example.com:8443") == "https://git.example.com:8443/api/v3"


def test_a_token_is_never_sent_to_a_server_named_only_by_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [((), False), (("--server", "http://127.0.0.1:9"), True), (("--api", "http://127.0.0.1:9/api/v3"), True)]
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    remote = "http://127.0.0.1:9/octo-org/hello-world.git"
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    monkeypatch.chdir(tmp_path)
    for arguments, is_sent in cases:
        options, refusals = doctor_options(parse(["doctor", *arguments]), {"GH_TOKEN": "ghp_canary"})
        assert (options.token == "ghp_canary", bool(refusals)) == (is_sent, not is_sent), arguments
        assert (options.target.repository, options.checkout) == (REPOSITORY, tmp_path), arguments


def test_the_token_is_looked_up_in_the_same_order_as_by_try() -> None:
    arguments = parse(["doctor", "--repo", REPOSITORY])
    environ = {"GITHUB_TOKEN": "third", "GH_TOKEN": "second", "PRECEDENT_TOKEN": "first"}
    for token in ("first", "second", "third", ""):
        assert doctor_options(arguments, environ)[0].token == token
        environ = dict(list(environ.items())[:-1])


# What it prints


RESULTS = [
    CheckResult("git", "ok", "git version 2.39.5", "nothing"),
    CheckResult("index", "ok", "fine"),
    CheckResult("index", "warning", "damaged: a\x1b[2J\n::error::b \u202e\ud800", "`precedent doctor --verbose`"),
    CheckResult("mode", "note", "mode is off", "set `mode`"),
    CheckResult("records", "error", "gone: größe", "rebuild"),
]


def test_only_problems_are_followed_by_a_remedy() -> None:
    lines = render_findings(RESULTS, Terminal()).splitlines()
    assert [line[0] for line in lines[:-2]] == ["✓", "!", " ", "·", "✗", " "]
    assert lines[2] == "  → `precedent doctor --verbose`"
    assert lines[-1] == "1 error and 1 warning."
    assert render_findings(RESULTS[:1], Terminal()).endswith("All is well.\n")


def test_verbose_shows_everything() -> None:
    assert len(render_findings(RESULTS, Terminal(), verbose=True).splitlines()) == len(RESULTS) + 4 + 2


def test_control_characters_and_workflow_commands_by_strangers_are_neutralised() -> None:
    for terminal in (Terminal(), Terminal(signs=False)):
        text = render_findings(RESULTS, terminal)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\ud800]|::error", text)
    assert render_findings(RESULTS, Terminal(signs=False)).isascii()


def test_unencodable_characters_are_replaced_in_the_json() -> None:
    data = as_data([CheckResult("index", "warning", "index/\ud800", "x\udcff")])
    assert json.dumps(data, ensure_ascii=False).encode("utf-8")
    assert data["ok"] is False


def test_only_the_signs_are_coloured() -> None:
    assert render_findings(RESULTS[:1], Terminal(colours=True)).startswith("\033[38;5;29m✓\033[0m git")


def test_the_exit_code_reflects_the_worst_finding() -> None:
    assert exit_code(RESULTS) == 2
    assert exit_code(RESULTS[:4]) == 1
    assert exit_code([*RESULTS[:2], RESULTS[3]]) == 0
    assert exit_code([CheckResult("branch", "error", "away", outside=True)]) == 1


def test_the_json_has_the_findings_and_whether_all_is_well(tmp_path: Path, sample_store: Path, call: Run) -> None:
    store = Path(shutil.copytree(sample_store, tmp_path / "store"))
    (store / "manifest.json").write_text("{", encoding="utf-8")
    result = call("doctor", "--store", store, "--json")
    assert (result.code, result.err, set(result.data), result.data["ok"]) == (2, "", {"findings", "ok"}, False)
    assert {tuple(finding) for finding in result.data["findings"]} == {("check", "level", "says", "remedy", "outside")}
    errors = [finding for finding in result.data["findings"] if finding["level"] == "error"]
    assert [finding["says"].partition(" (")[0] for finding in errors] == ["manifest.json is damaged"]


def test_invalid_addresses_exit_with_2(call: Run) -> None:
    commands = [
        ("--server", "git.example.com"),
        ("--server", "https://octocat:secret@git.example.com"),
        ("--api", "https://x:port"),
        ("--repo", "hello-world"),
    ]
    assert [arguments for arguments in commands if call("doctor", *arguments).code != 2] == []


def test_outside_a_checkout_the_doctor_asks_for_a_repository(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("doctor")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "--repo OWNER/NAME" in result.err


def test_every_command_in_a_remedy_exists() -> None:
    """Checks all remedies in the source, with a word in place of each inserted value."""
    sources = sorted((Path(__file__).parents[2] / "bot/cli").rglob("*.py"))
    texts = [path.read_text().split('"""', 2)[2] for path in sources]  # a module's own docstring names its command
    commands = [command for text in texts for command in COMMAND.findall(re.sub(r"\{[^{}]*\}", "octocat/x", text))]
    assert len(commands) >= 6
    for command in commands:
        assert_command_exists(
            command if "--server" not in command else "precedent doctor --server https://git.example.com"
        )
