"""What the doctor says of a memory that is behind, of a store in a folder, and of what fails while it looks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.doors.checkup import forge, memory
from bot.doors.checkup.finding import Finding
from bot.doors.checkup.forge import Forge
from bot.doors.checkup.held import Held
from bot.doors.checkup.place import Place
from bot.doors.checkup.runs import Runs, cause
from bot.doors.cli import parser
from bot.doors.doctor import examine
from bot.errors import PrecedentError
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError
from bot.github.meaning import meaning_of
from bot.memory.git_errors import AuthFailed, RemoteRefused, meaning
from bot.memory.learned import RANKING
from bot.memory.manifest import Manifest
from bot.settings import Settings
from tests.doors.clinic import NOW, PATH, REPOSITORY, WORKFLOW, Clinic, threads

PLACE = Place(REPOSITORY, api="https://api.github.com")
SCHEDULE = "  schedule:\n    - cron: '23 4 * * *'\n"
FILE = "precedent.yml"
SIXTY_DAYS = "GitHub stops schedules after 60 days"


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Clinic]:
    """A repository with a memory that is nine days old, and an issue that was opened three days ago."""
    clinic = Clinic(tmp_path)
    clinic.remember(*threads(3), cursor=NOW - timedelta(days=9))
    clinic.github.open_issue("octocat", "It fails", at="2026-01-02T12:00:00Z")
    yield clinic
    clinic.close()


def cursor_of(findings: list[Finding]) -> Finding:
    [finding] = [each for each in findings if each.check == "cursor"]
    assert finding.level == "warning"
    return finding


# Why memory is behind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "says", "remedy"),
    [
        (None, "no run has come to its end since", "if there is none, enable the workflow"),
        (
            {"conclusion": "failure", "at": "2026-01-04T04:23:00Z"},
            "of 2026-01-04 04:23 UTC, ended as failure",
            "see why at",
        ),
        ({"conclusion": "timed_out", "at": "2026-01-04T04:23:00Z"}, "ended as timed out", "see why at"),
        ({"conclusion": None, "at": "2026-01-04T04:23:00Z"}, "is not at its end", "see what it waits for at"),
        ({"at": "2026-01-04T04:23:00Z"}, "ended well and left them out", "see what it says at"),
        ({"at": "2025-12-27T04:23:00Z"}, "did not run since 2025-12-27 04:23 UTC", "enable the workflow"),
    ],
)
def test_the_newest_run_says_why_memory_is_behind(
    behind: Clinic, run: dict[str, Any] | None, says: str, remedy: str
) -> None:
    number = behind.github.add_run(FILE, **run) if run else 0
    behind.github.mark()
    finding = cursor_of(behind.examine())
    assert (says in finding.says, remedy in finding.remedy) == (True, True), finding
    assert ("enable" in remedy) == (SIXTY_DAYS in finding.remedy)
    assert ("enable" in remedy) or finding.remedy.count(f"/actions/runs/{number}") == 1
    asked = [each for each in behind.github.recent if each.path.endswith("/runs")]
    assert [each.status for each in asked] == [200 if run else 404]


@pytest.mark.slow
def test_a_workflow_without_a_run_has_to_be_enabled(behind: Clinic) -> None:
    behind.github.repo.runs[FILE] = []
    finding = cursor_of(behind.examine())
    assert "never ran" in finding.says
    assert finding.remedy.startswith("enable the workflow at")


@pytest.mark.slow
def test_where_the_token_may_not_see_runs_nothing_is_guessed(behind: Clinic) -> None:
    behind.github.add_run(FILE, conclusion="failure")
    allowed = {"contents": "read", "issues": "read", "metadata": "read"}
    behind.github.world.tokens[behind.github.token].permissions = allowed
    finding = cursor_of(behind.examine())
    assert "no run has come to its end since" in finding.says
    assert f"see the last run at {behind.git.url}/{REPOSITORY}/actions/workflows/{FILE};" in finding.remedy


@pytest.mark.slow
def test_no_schedule_is_spoken_of_where_there_is_none(behind: Clinic) -> None:
    behind.put({PATH: WORKFLOW.replace(SCHEDULE, "")})
    finding = cursor_of(behind.examine())
    assert SIXTY_DAYS not in finding.remedy
    assert "schedule" not in finding.says


@pytest.mark.slow
def test_without_a_workflow_it_is_no_run_that_is_missing(behind: Clinic) -> None:
    behind.put({"README.md": ""})
    finding = cursor_of(behind.examine())
    assert finding.says.endswith("no workflow runs it")
    assert finding.remedy == "put the workflow of the README on the default branch"


@pytest.mark.slow
def test_a_workflow_that_cannot_be_read_may_be_the_one(behind: Clinic) -> None:
    behind.put({PATH: "# precedent\njobs: ["})
    assert "no run has come to its end since" in cursor_of(behind.examine()).says


@pytest.mark.slow
def test_runs_are_asked_for_only_where_memory_is_behind(behind: Clinic) -> None:
    behind.with_manifest(lambda manifest: replace(manifest, cursor=NOW - timedelta(hours=1)))
    behind.github.mark()
    behind.examine()
    assert not [each for each in behind.github.recent if each.path.endswith("/runs")]


def test_a_cause_names_what_there_is_and_nothing_else() -> None:
    assert cause(Runs(False, True), NOW, PLACE) == (
        "no workflow runs it",
        "put the workflow of the README on the default branch",
    )
    for has_workflow in (True, None):
        for told in (None, {"workflow_runs": []}):
            assert SIXTY_DAYS in cause(Runs(has_workflow, True, told), NOW, PLACE)[1]
            assert SIXTY_DAYS not in cause(Runs(has_workflow, False, told), NOW, PLACE)[1]


@pytest.mark.parametrize(
    "odd",
    [
        *({}, {"workflow_runs": None}, {"workflow_runs": [5]}, {"workflow_runs": [{}]}),
        {"workflow_runs": [{"id": "1/../..", "conclusion": None, "created_at": "2026-01-01T00:00:00Z"}]},
        {"workflow_runs": [{"id": 1, "conclusion": None, "created_at": "soon"}]},
    ],
)
def test_what_is_no_list_of_runs_says_nothing(odd: dict[str, Any]) -> None:
    held = Held(Manifest(cursor=NOW - timedelta(days=9)))
    finding = memory.cursor(held, (NOW - timedelta(days=3),), Runs(True, False, odd), PLACE, NOW)
    assert "no run has come to its end since" in finding.says


# A store in a folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of a memory branch with a damaged record."""
    clinic = Clinic(tmp_path / "clinic")
    clinic.remember(*threads(3), cursor=NOW)
    folder = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--branch", "precedent", clinic.bare, folder], check=True)
    clinic.close()
    (folder / "records/0000/3.json").write_text("{}", encoding="utf-8")
    return folder


def looked_at(store: Path) -> dict[str, Finding]:
    return {each.check: each for each in examine(parser().parse_args(["doctor", "--store", str(store)]), {}, NOW)}


def test_a_checkout_of_the_branch_is_mended_by_its_workflow(checkout: Path) -> None:
    remedy = looked_at(checkout)["records"].remedy
    assert remedy == "start the workflow by hand (Run workflow) with rebuild, then fetch the branch again"
    subprocess.run(["rm", "-rf", checkout / ".git"], check=True)
    assert "precedent import FILE --store NEW_FOLDER" in looked_at(checkout)["records"].remedy


LOCAL = Place(store="memory")


@pytest.mark.parametrize(
    ("manifest", "place", "level", "remedy"),
    [
        (Manifest(threads=49), LOCAL, "ok", ""),
        (Manifest(threads=73), LOCAL, "note", "precedent learn --store memory"),
        (Manifest(threads=73, learned_from=73), LOCAL, "ok", ""),
        (Manifest(threads=200, learned_from=100), LOCAL, "note", "precedent learn --store memory"),
        (Manifest(threads=100, model={RANKING: "x"}), LOCAL, "ok", ""),
        (Manifest(threads=73), replace(LOCAL, is_checkout=True), "note", "fetch the branch again"),
        (Manifest(threads=200, learned_from=100), replace(LOCAL, is_checkout=True), "note", "fetch the branch again"),
    ],
)
def test_learning_is_advised_only_where_it_changes_something(
    manifest: Manifest, place: Place, level: str, remedy: str
) -> None:
    [finding] = memory.learned(Held(manifest), place)
    assert (finding.level, remedy in finding.remedy, bool(finding.remedy)) == (level, True, bool(remedy))


# What fails while it looks


REFUSALS = [
    *(meaning_of(status, {}, {"message": "Server Error"}) for status in (403, 500, 503)),
    meaning_of(403, {"x-accepted-github-permissions": "issues=read"}, {"message": "no"}, "/repos/o/r/issues"),
    meaning_of(403, {"x-ratelimit-remaining": "0"}, {"message": "API rate limit exceeded"}),
    meaning_of(429, {}, {"message": "You have exceeded a secondary rate limit."}),
    meaning("fetch", "fatal: unable to access 'https://github.com/o/r.git/': Could not resolve host: github.com"),
    meaning("fetch", "fatal: could not read Username for 'https://github.com': terminal prompts disabled"),
    meaning("push", "remote: error: GH013: Repository rule violations found for refs/heads/precedent."),
]


def is_no_advice(error: PrecedentError) -> None:
    told = error.cause
    assert told
    assert told != str(error)
    assert str(error).startswith(told)
    for advice in ("next run", "run again", "give the job", "contents: write", "check the", "bypass"):
        assert advice not in told
    assert re.search(r"[\w.)]\Z", told)


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: re.sub(r" until .*", "", error.cause))
def test_what_a_run_does_about_a_failure_is_no_advice_of_the_doctor(error: PrecedentError) -> None:
    is_no_advice(error)


def test_nor_is_what_it_does_where_nobody_answers() -> None:
    with pytest.raises(ForgeError) as caught:
        GitHubClient("http://127.0.0.1:9", "", REPOSITORY, write_gap=0).get("/meta", {})
    is_no_advice(caught.value)


def test_a_server_that_fails_is_asked_again_later_and_not_by_the_next_run() -> None:
    told = forge.repository(Forge(fault=meaning_of(502, {}, None)), PLACE)
    assert told.says.endswith("does not answer: GitHub answered 502")
    assert told.remedy.startswith("run it again later")


@pytest.mark.slow
def test_a_repository_that_cannot_be_seen_without_a_token_is_private_or_not_there(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.github.repo.private = True
    findings = {each.check: each for each in clinic.examine(token="")}
    for check in ("repository", "branch"):
        assert findings[check].level == "error"
        assert "without a token: it is private, or does not exist" in findings[check].says
        assert f"set PRECEDENT_TOKEN to a token that may read {REPOSITORY}" in findings[check].remedy
        assert "Username" not in findings[check].says
    clinic.close()


def test_a_token_that_may_not_read_is_told_without_the_advice_of_a_run() -> None:
    refusal = meaning("fetch", "remote: Repository not found.\nfatal: repository 'https://github.com/o/r/' not found")
    assert isinstance(refusal, AuthFailed)
    told = memory.branch(refusal, PLACE, Settings(), NOW)
    assert told.says.endswith("not found")
    assert "permissions" not in f"{told.says} {told.remedy}"


def test_a_rule_that_refuses_a_push_is_best_left_without_the_branch() -> None:
    assert RemoteRefused.usual_remedy.startswith("leave `precedent` out of the rule, ")
