"""The doctor finds each fault that is planted, names what mends it, and leaves everything as it was."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.cli.checks import github, memory
from bot.cli.checks.collect import _MOST_FILES, SetupFacts, _read_checkout
from bot.cli.checks.github import GitHubFacts
from bot.cli.checks.memory import InspectedMemory
from bot.cli.checks.result import CheckResult, RepositoryLinks, api_of, exit_code, parse_remote_url
from bot.cli.commands.doctor import Terminal, as_data, doctor_options, examine, judge, render_findings
from bot.cli.main import parser
from bot.errors import StoreError
from bot.git.errors import AuthFailed, RemoteUnreachable
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, Unauthorised, Unreachable
from bot.memory.branch_store import Growth, Tip
from bot.memory.manifest import MANIFEST_PATH as MANIFEST
from bot.memory.manifest import Manifest
from bot.settings.schema import Settings
from tests.cli.clinic import NOW, PATH, REPOSITORY, WORKFLOW, Clinic, newer, threads
from tests.cli.console import Run
from tools.address import address

ROOT = Path(__file__).resolve().parents[2]
VERSION = "@08c6903cd8c0fde910a37f88322edcfb5dd907a8"
RUN = "run: ${{ inputs.run }}"
CONFIG = ".github/precedent.yml"
COMMAND = re.compile(r"`((?:precedent|git) [^`]+)`")


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    made = Clinic(tmp_path)
    yield made
    made.close()


@pytest.fixture
def healthy(clinic: Clinic) -> Clinic:
    """One with nothing wrong: five threads in memory, all remembered an hour ago."""
    clinic.remember(*threads(5), cursor=NOW - timedelta(hours=1))
    return clinic


def problems(findings: list[CheckResult]) -> list[CheckResult]:
    return [finding for finding in findings if finding.is_problem]


def of(check: str, findings: list[CheckResult]) -> list[CheckResult]:
    return [finding for finding in findings if finding.check == check]


# The whole


@pytest.mark.slow
def test_where_nothing_is_wrong_nothing_is_found_and_nothing_is_written(healthy: Clinic) -> None:
    before = healthy.state()
    healthy.github.mark()
    healthy.git.mark()
    findings = healthy.examine()
    assert problems(findings) == []
    assert exit_code(findings) == 0
    checks = [finding.check for finding in findings]
    assert checks == ["repository", "rate limit", "rate limit", "settings", "workflow", "branch", "manifest", "index"]
    assert {request.method for request in healthy.github.recent} == {"GET"}
    assert healthy.github.writes == 0
    assert healthy.git.requests
    assert healthy.git.pushes == 0
    assert healthy.state() == before


ANSWERING = "discussions:\n  answer: true\n"
EVENTS = "discussion:\n  discussion_comment:\n"


@pytest.mark.parametrize(
    ("events", "permission", "config", "told"),
    [
        (
            EVENTS,
            "read",
            "",
            ["switched on, 2 in all; memory has not read them all yet; Precedent does not answer them"],
        ),
        (
            EVENTS,
            "write",
            ANSWERING,
            ["switched on, 2 in all; memory has not read them all yet; Precedent answers them"],
        ),
        (EVENTS, "read", ANSWERING, ["Precedent answers them", "may not write discussions, so it cannot answer"]),
        (EVENTS, "", "", ["does not answer them", "may not read discussions, so they are not remembered"]),
        ("", "read", "", ["does not answer them", "does not run on discussion and discussion_comment"]),
    ],
)
def test_what_becomes_of_discussions_is_told(
    clinic: Clinic, events: str, permission: str, config: str, told: list[str]
) -> None:
    clinic.github.discuss("hubot", "How do I keep the cookie?")
    clinic.github.discuss("hubot", "Printing in colour")
    workflow = WORKFLOW.replace("  issues:\n", f"  issues:\n  {events}", 1) if events else WORKFLOW
    if permission:
        workflow = re.sub(r"( +)issues: write", rf"\g<0>\n\1discussions: {permission}", workflow)
    clinic.put({PATH: workflow, CONFIG: config} if config else {PATH: workflow})
    clinic.remember(*threads(2))
    said = [each.says for each in clinic.examine() if "discussion" in f"{each.check} {each.says}"]
    assert len(said) == len(told)
    assert all(part in says for part, says in zip(told, said, strict=True))


def test_of_a_repository_without_discussions_only_a_setting_is_told(clinic: Clinic) -> None:
    assert of("discussions", clinic.examine()) == []
    clinic.put({PATH: WORKFLOW, CONFIG: ANSWERING})
    [finding] = of("discussions", clinic.examine())
    assert (finding.level, "the repository has no discussions" in finding.says) == ("note", True)


def test_a_store_is_looked_at_without_a_trace(tmp_path: Path, sample_store: Path, call: Run) -> None:
    checkout = Path(shutil.copytree(sample_store, tmp_path / "checkout"))
    shutil.rmtree(checkout / ".store")
    for folder in (sample_store, checkout):
        before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}
        told = call("doctor", "--store", folder, "--json")
        assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))} == before
        assert [finding["level"] for finding in told.data["findings"]] == ["ok", "ok"]


# Faults, each planted in a repository where nothing else is wrong


def _files(edits: dict[str, bytes | None]) -> Callable[[Clinic], None]:
    return lambda clinic: clinic.spoil(lambda _: edits)


def _lost_index(clinic: Clinic) -> None:
    clinic.spoil(lambda held: dict.fromkeys(held.paths("index")[:1]))


def _lost_part(clinic: Clinic) -> None:
    clinic.remember_in_parts(*threads(12))
    clinic.spoil(lambda held: dict.fromkeys(held.paths("index-parts")[:1]))


def _newer(clinic: Clinic) -> None:
    clinic.spoil(lambda held: {MANIFEST: newer(held.read([MANIFEST])[MANIFEST])})


def _limited(clinic: Clinic) -> None:
    clinic.github.limits.set(12, resource="graphql")
    clinic.github.limits.allowance(clinic.github.world.tokens[clinic.github.token], "graphql").used = 12


Plant = Callable[[Clinic], object]
Fault = tuple[Plant, str, str, str, str]
FAULTS: dict[str, Fault] = {
    "limit": (_limited, "rate limit", "warning", "graphql: 0 of 12", "after 2026-01-05 13:00 UTC"),
    "manifest lost": (_files({MANIFEST: None}), "manifest", "error", "missing", "rebuild"),
    "manifest damaged": (_files({MANIFEST: b"{"}), "manifest", "error", "damaged", "rebuild"),
    "newer format": (
        _newer,
        "format",
        "error",
        "format 2, which a newer Precedent wrote; this one",
        "`git pull` there",
    ),
    "index damaged": (_lost_index, "index", "warning", "damaged: index/", "rebuild"),
    "index that cannot be opened": (
        lambda c: c.with_index({"MAIN_1.toc": b"of nobody"}),
        *("index", "warning", "damaged: index (", "rebuild"),
    ),
    "part of the index lost": (_lost_part, "index", "warning", "damaged: index-parts/", "rebuild"),
    "bad setting": (
        lambda c: c.put({PATH: WORKFLOW, CONFIG: "mod: off"}),
        *("settings", "error", f"{CONFIG}:1: unknown setting 'mod'; did you mean \"mode\"", "--config"),
    ),
    "no workflow": (lambda c: c.put({"README.md": ""}), "workflow", "error", "none of the files", "README"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_with_what_mends_it(healthy: Clinic, fault: str) -> None:
    plant, check, level, says, remedy = FAULTS[fault]
    plant(healthy)
    is_told(healthy.examine(), (check, level, says, remedy))


def is_told(findings: list[CheckResult], expected: tuple[str, str, str, str]) -> None:
    """Exactly one problem of this check says this, at this level, with this remedy, whose commands are real ones."""
    check, level, says, remedy = expected
    found = [each for each in of(check, problems(findings)) if says in each.says]
    assert [each.level for each in found] == [level], findings
    assert remedy in found[0].remedy
    for command in COMMAND.findall(found[0].remedy):
        is_real(command)


def is_real(command: str) -> None:
    """A command of a remedy is taken by our own parser, or by git."""
    program, *arguments = shlex.split(command)
    if program == "precedent":
        assert parser().parse_args(arguments).command
    else:
        help_of = subprocess.run(["git", arguments[0], "-h"], capture_output=True, text=True, check=False)
        assert help_of.stdout.startswith(f"usage: git {arguments[0]}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "maker"),
    [({"layout": 0}, "made by an older version"), ({"analyser": "another"}, "made by another analyser")],
)
def test_an_index_of_another_version_is_no_problem_as_the_next_event_mends_it(
    healthy: Clinic, fields: dict[str, Any], maker: str
) -> None:
    """Even where its files are not what this version would expect of its own."""
    _lost_index(healthy)
    healthy.with_manifest(lambda manifest: replace(manifest, **fields))
    findings = healthy.examine()
    assert problems(findings) == []
    (told,) = of("index", findings)
    assert (told.level, maker in told.says, "rebuild" in told.remedy) == ("note", True, True)
    healthy.remember(*threads(6))
    (told,) = of("index", healthy.examine())
    assert told.level == "ok"


@pytest.mark.slow
def test_an_index_in_parts_that_is_whole_is_fine(healthy: Clinic) -> None:
    healthy.remember_in_parts(*threads(12))
    assert [told.level for told in of("index", healthy.examine())] == ["ok"]


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
    "broken": ("jobs:", "# precedent\njobs: [", ("workflow", "warning", "not valid YAML", PATH)),
}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_workflow_lacks_is_named_with_its_place(name: str) -> None:
    old, new, expected = WORKFLOWS[name]
    assert old in WORKFLOW
    steps, told = github.find_workflows({PATH: WORKFLOW.replace(old, new).encode()}, is_ours=False)
    is_told([*told, *github.check_workflow(steps, comments=True)], expected)


def test_a_workflow_that_is_as_it_should_be_has_no_problem() -> None:
    steps, told = github.find_workflows({PATH: WORKFLOW.encode(), "other.yml": b"jobs: {a: {steps: 5}}"}, is_ours=False)
    findings = [*told, *github.check_workflow(steps, comments=True)]
    assert problems(findings) == []
    assert of("workflow", findings)[0].level == "ok"


def test_our_own_workflow_and_that_of_the_readme_have_no_problem() -> None:
    readme = re.search(r"^```yaml\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert readme
    for text in (readme[1].replace(address(), "octo-org/precedent"), (ROOT / PATH).read_text("utf-8")):
        steps, told = github.find_workflows({PATH: text.encode()}, is_ours=True)
        assert len(steps) == 1
        findings = [*told, *github.check_workflow(steps, comments=True)]
        assert problems(findings) == []
        assert of("events", findings) == []
        assert of("workflow", findings)[0].level == "ok"


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "jobs: 1", "on: [1, {2: 3}]\njobs: {a: [b], c: {steps: {uses: x}}}", "a: &a [*a]", "\0"),
        *("jobs: {a: {steps: [{uses: [x]}, 5, null]}}", "[" * 60_000, "- " * 30_000, "x" * 70_000),
        "jobs: {a: {permissions: 5, concurrency: [], steps: [{uses: o/precedent@v1, with: [1], name: 2}]}}\non: 5",
        "jobs: {a: {permissions: {contents: []}, steps: [{uses: o/precedent@v1, with: {mode: [1], issue: {}}}]}}",
    ],
)
def test_any_workflow_is_read_without_a_crash(text: str) -> None:
    started = time.monotonic()
    steps, told = github.find_workflows({PATH: b"# precedent\n" + text.encode()}, is_ours=True)
    assert [*told, *github.check_workflow(steps, comments=False)]
    assert time.monotonic() - started < 1


# Settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mode: coment", ("settings", "error", f"{CONFIG}:1: mode", "precedent doctor --config")),
        ("\ncomment:\n  autor: x", ("settings", "error", f"{CONFIG}:3: unknown setting", "that line")),
    ],
)
def test_a_setting_that_is_wrong_is_named(text: str, expected: tuple[str, str, str, str]) -> None:
    is_told([github.read_config(text.encode(), CONFIG)[1]], expected)


# The token, the API


PLACE = RepositoryLinks(REPOSITORY, api="https://api.github.com")


@pytest.mark.parametrize(
    ("fault", "level", "outside"),
    [
        (Unauthorised("no"), "error", False),
        (Gone("no", certain=False), "error", False),
        (NotPermitted("no"), "error", False),
        (Unreachable("no"), "error", True),
        (RateLimited("no", until=NOW), "warning", True),
    ],
)
def test_why_a_repository_cannot_be_seen_decides_whose_fault_it_is(
    fault: ForgeError, level: str, outside: bool
) -> None:
    told = github.check_repository(GitHubFacts(True, fault=fault), PLACE)
    assert (told.level, told.outside, bool(told.remedy)) == (level, outside, True)


@pytest.mark.parametrize("fault", [Unauthorised("no"), Gone("no", certain=False), NotPermitted("no")])
def test_without_a_token_no_token_is_refused(fault: ForgeError) -> None:
    told = github.check_repository(GitHubFacts(fault=fault), PLACE)
    assert (told.check, told.level) == ("repository", "error")
    assert "without a token: it is private, or does not exist" in told.says
    told = github.check_repository(GitHubFacts(fault=fault), PLACE, git_reads=True)
    assert (told.level, "PRECEDENT_TOKEN" in told.remedy) == ("note", True)
    assert github.check_repository(GitHubFacts(True, fault=fault), PLACE, git_reads=True).level == "error"


def test_what_git_reads_is_no_wrong_name_though_there_is_no_branch_yet() -> None:
    unseen = GitHubFacts(fault=Gone("no", certain=False))
    for tip, level in ((None, "note"), (StoreError("no"), "error")):
        told = judge(SetupFacts(PLACE, NOW, tip=tip, api=unseen))
        assert of("repository", told)[0].level == level


@pytest.mark.slow
def test_a_workflow_that_cannot_be_read_is_one_finding(clinic: Clinic) -> None:
    clinic.put({PATH: "jobs:\n\tuses: octo-org/precedent@v1\n"})
    (told,) = of("workflow", clinic.examine())
    assert (told.level, "cannot be read" in told.says) == ("warning", True)


def test_a_server_without_limits_and_one_that_tells_nonsense_are_no_problem() -> None:
    assert problems(list(github.check_limits(GitHubFacts(), NOW))) == []
    for odd in ({}, {"resources": []}, {"resources": {"core": {"remaining": "1", "limit": -1, "reset": 10**30}}}):
        assert problems(list(github.check_limits(GitHubFacts(limits=odd), NOW))) == []


@pytest.mark.slow
def test_without_a_token_what_is_public_is_looked_at_and_the_rest_is_named(healthy: Clinic) -> None:
    findings = healthy.examine(token="")
    assert of("repository", findings)[0].level == "ok"
    (branch,) = of("branch", findings)
    assert (branch.level, "PRECEDENT_TOKEN" in branch.remedy) == ("error", True)
    assert of("settings", findings)[0].level == "note"


@pytest.mark.slow
def test_where_the_default_branch_cannot_be_reached_the_checkout_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    remote = "http://127.0.0.1:9/octo-org/hello-world.git"
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).write_text(WORKFLOW.replace("contents: write", "contents: read"), encoding="utf-8")
    (tmp_path / CONFIG).symlink_to("/etc/passwd")
    monkeypatch.chdir(tmp_path / ".github")
    findings = examine(parser().parse_args(["doctor", "--offline"]), {}, NOW)
    assert [each.check for each in problems(findings)] == ["permissions", "branch"]
    assert "this checkout" in of("settings", findings)[0].says
    for number in range(_MOST_FILES + 1):
        (tmp_path / f".github/workflows/z{number}.yml").touch()
    assert len(_read_checkout(tmp_path, ["action.yml", ".github/workflows/*.yml"])) == _MOST_FILES
    (tmp_path / ".github").rename(tmp_path / "elsewhere")
    (tmp_path / ".github").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    findings = examine(parser().parse_args(["doctor", "--offline"]), {}, NOW)
    assert [each.check for each in problems(findings)] == ["workflow", "branch"], "nothing is read through a link"


@pytest.mark.slow
def test_a_token_that_is_refused_is_told_and_never_shown(healthy: Clinic) -> None:
    findings = healthy.examine(token="ghp_canary_0123456789")
    assert exit_code(findings) == 2
    assert of("token", findings)[0].level == "error"
    assert "without a token" not in of("branch", findings)[0].says
    assert "canary" not in str(findings)


@pytest.mark.slow
def test_a_server_that_is_away_is_nobodys_mistake(clinic: Clinic) -> None:
    clinic.git.stop()
    clinic.github.faults.add("*", "drop", times=None)
    findings = clinic.examine()
    assert exit_code(findings) == 1
    assert {each.outside for each in problems(findings)} == {True}
    assert {each.check for each in problems(findings)} == {"repository", "branch"}
    assert not re.search(r"run again|next run", str(findings))


@pytest.mark.slow
def test_offline_asks_no_api(healthy: Clinic) -> None:
    healthy.github.mark()
    findings = healthy.examine("--offline")
    assert healthy.github.recent == []
    assert of("repository", findings)[0].level == "note"
    assert of("manifest", findings)[0].level == "ok"


# Memory


@pytest.mark.parametrize(
    ("tip", "level", "outside"),
    [
        (None, "warning", False),
        (RemoteUnreachable("away"), "error", True),
        (AuthFailed("no"), "error", False),
        (Tip("1" * 40, NOW, Growth(12, 3_000_000)), "ok", False),
        (Tip("1" * 40, None, Growth(201, 3_000_000)), "note", False),
    ],
)
def test_the_branch_is_judged_by_how_it_was_found(tip: Tip | StoreError | None, level: str, outside: bool) -> None:
    told = memory.check_branch(tip, PLACE, Settings(), NOW)
    assert (told.level, told.outside) == (level, outside)


def test_an_index_by_another_analyser_is_a_note() -> None:
    held = InspectedMemory(Manifest(index={"a": "b"}, analyser="1"))
    assert [each.level for each in memory.check_index(held, PLACE)] == ["note"]


# Where it looks


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
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
        ("https://git.example.com/group/octo-org/hello-world", None),
        ("https://[::1/octo-org/hello-world", None),
        ("https://git.example.com:port/octo-org/hello-world", None),
        ("ext::sh -c x% octo-org/hello-world", None),
        ("", None),
    ],
)
def test_the_remote_tells_server_and_repository(origin: str, expected: str | None) -> None:
    assert parse_remote_url(origin) == (expected and (expected, REPOSITORY))


def test_the_server_tells_where_its_api_is() -> None:
    assert api_of("https://github.com") == "https://api.github.com"
    assert api_of("https://octo.ghe.com") == "https://api.octo.ghe.com"
    assert api_of("https://git.example.com:8443") == "https://git.example.com:8443/api/v3"


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [((), False), (("--server", "http://127.0.0.1:9"), True), (("--api", "http://127.0.0.1:9/api/v3"), True)],
)
def test_a_token_goes_to_no_server_that_only_the_checkout_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sent: bool
) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    remote = "http://127.0.0.1:9/octo-org/hello-world.git"
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    monkeypatch.chdir(tmp_path)
    wanted, refused = doctor_options(parser().parse_args(["doctor", *arguments]), {"GH_TOKEN": "ghp_canary"})
    assert (wanted.token == "ghp_canary", bool(refused)) == (sent, not sent)
    assert (wanted.target.repository, wanted.checkout) == (REPOSITORY, tmp_path)


def test_a_token_is_looked_for_in_the_order_of_try() -> None:
    given = parser().parse_args(["doctor", "--repo", REPOSITORY])
    held = {"GITHUB_TOKEN": "third", "GH_TOKEN": "second", "PRECEDENT_TOKEN": "first"}
    for wanted in ("first", "second", "third", ""):
        assert doctor_options(given, held)[0].token == wanted
        held = dict(list(held.items())[:-1])


# What it prints


SOME = [
    CheckResult("git", "ok", "git version 2.39.5", "nothing"),
    CheckResult("index", "ok", "fine"),
    CheckResult("index", "warning", "damaged: a\x1b[2J\n::error::b \u202e\ud800", "`precedent doctor --verbose`"),
    CheckResult("mode", "note", "mode is off", "set `mode`"),
    CheckResult("records", "error", "gone: größe", "rebuild"),
]


def test_a_problem_has_its_remedy_below_and_nothing_else_has() -> None:
    lines = render_findings(SOME, Terminal()).splitlines()
    assert [line[0] for line in lines[:-2]] == ["✓", "!", " ", "·", "✗", " "]
    assert lines[2] == "  → `precedent doctor --verbose`"
    assert lines[-1] == "1 error and 1 warning."
    assert render_findings(SOME[:1], Terminal()).endswith("All is well.\n")


def test_in_full_everything_is_told() -> None:
    assert len(render_findings(SOME, Terminal(), verbose=True).splitlines()) == len(SOME) + 4 + 2


def test_what_strangers_wrote_moves_no_cursor_and_is_no_command() -> None:
    for screen in (Terminal(), Terminal(signs=False)):
        told = render_findings(SOME, screen)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\ud800]|::error", told)
    assert render_findings(SOME, Terminal(signs=False)).isascii()


def test_as_json_what_no_encoding_knows_is_replaced() -> None:
    data = as_data([CheckResult("index", "warning", "index/\ud800", "x\udcff")])
    assert json.dumps(data, ensure_ascii=False).encode("utf-8")
    assert data["ok"] is False


def test_colours_are_on_the_signs_only() -> None:
    assert render_findings(SOME[:1], Terminal(colours=True)).startswith("\033[32m✓\033[0m git")


def test_exit_codes_say_how_bad_it_is() -> None:
    assert exit_code(SOME) == 2
    assert exit_code(SOME[:4]) == 1
    assert exit_code([*SOME[:2], SOME[3]]) == 0
    assert exit_code([CheckResult("branch", "error", "away", outside=True)]) == 1


def test_as_json_it_has_findings_and_whether_all_is_well(tmp_path: Path, sample_store: Path, call: Run) -> None:
    store = Path(shutil.copytree(sample_store, tmp_path / "store"))
    (store / "manifest.json").write_text("{", encoding="utf-8")
    told = call("doctor", "--store", store, "--json")
    assert (told.code, told.err, set(told.data), told.data["ok"]) == (2, "", {"findings", "ok"}, False)
    assert {tuple(finding) for finding in told.data["findings"]} == {("check", "level", "says", "remedy", "outside")}
    wrong = [finding for finding in told.data["findings"] if finding["level"] == "error"]
    assert [finding["says"].partition(" (")[0] for finding in wrong] == ["manifest.json is damaged"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--server", "git.example.com"),
        ("--server", "https://octocat:secret@git.example.com"),
        ("--api", "https://x:port"),
        ("--repo", "hello-world"),
    ],
)
def test_arguments_that_name_no_place_end_with_2(call: Run, arguments: tuple[str, ...]) -> None:
    assert call("doctor", *arguments).code == 2


def test_outside_of_a_checkout_it_asks_where_to_look(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = call("doctor")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "--repo OWNER/NAME" in told.err


def test_every_remedy_that_is_a_command_of_ours_is_one() -> None:
    """Those in the source too, whatever they wait for; what is put in stands as a word."""
    sources = sorted((Path(__file__).parents[2] / "bot/cli").rglob("*.py"))
    texts = [path.read_text().split('"""', 2)[2] for path in sources]  # a module's own docstring names its command
    found = [c for text in texts for c in COMMAND.findall(re.sub(r"\{[^{}]*\}", "octocat/x", text))]
    assert len(found) >= 6
    for command in found:
        is_real(command if "--server" not in command else "precedent doctor --server https://git.example.com")
