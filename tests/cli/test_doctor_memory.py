"""What the doctor says about a store in a folder, and about failures during the examination."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bot.cli.checks import github, memory
from bot.cli.checks.github import GitHubFacts
from bot.cli.checks.result import CheckResult, RepositoryLinks
from bot.cli.commands.doctor import examine
from bot.cli.parser import parse
from bot.errors import PrecedentError
from bot.git.errors import AuthFailed, RemoteRefused, parse_error
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, error_for_status
from tests.cli.examined_repository import NOW, REPOSITORY, ExaminedRepository, threads

LINKS = RepositoryLinks(REPOSITORY, api="https://api.github.com")

# A store in a folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of a memory branch with a damaged manifest."""
    repository = ExaminedRepository(tmp_path / "examined")
    repository.remember(*threads(3), cursor=NOW)
    folder = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--branch", "precedent", repository.bare, folder], check=True)
    repository.close()
    (folder / "manifest.json").write_text("{", encoding="utf-8")
    return folder


def examine_store(store: Path) -> dict[str, CheckResult]:
    return {result.check: result for result in examine(parse(["doctor", "--store", str(store)]), {}, NOW)}


def test_a_checkout_of_the_branch_is_repaired_by_its_workflow(checkout: Path) -> None:
    remedy = examine_store(checkout)["manifest"].remedy
    assert remedy == "start the workflow by hand (Run workflow) with rebuild, then fetch the branch again"
    subprocess.run(["rm", "-rf", checkout / ".git"], check=True)
    assert "precedent import FILE --store NEW_FOLDER" in examine_store(checkout)["manifest"].remedy


# Failures during the examination


REFUSALS = [
    *(error_for_status(status, {}, {"message": "Server Error"}) for status in (403, 500, 503)),
    error_for_status(403, {"x-accepted-github-permissions": "issues=read"}, {"message": "no"}, "/repos/o/r/issues"),
    error_for_status(403, {"x-ratelimit-remaining": "0"}, {"message": "API rate limit exceeded"}),
    error_for_status(429, {}, {"message": "You have exceeded a secondary rate limit."}),
    parse_error("fetch", "fatal: unable to access 'https://github.com/o/r.git/': Could not resolve host: github.com"),
    parse_error("fetch", "fatal: could not read Username for 'https://github.com': terminal prompts disabled"),
    parse_error("push", "remote: error: GH013: Repository rule violations found for refs/heads/precedent."),
]


def assert_no_advice(error: PrecedentError) -> None:
    cause = error.cause
    assert cause
    assert cause != str(error)
    assert str(error).startswith(cause)
    for advice in ("next run", "run again", "give the job", "contents: write", "check the", "bypass"):
        assert advice not in cause
    assert re.search(r"[\w.)]\Z", cause)


def test_the_cause_of_a_failure_contains_no_advice_meant_for_a_run() -> None:
    for error in REFUSALS:
        assert_no_advice(error)


def test_the_cause_of_an_unreachable_server_contains_no_advice_meant_for_a_run() -> None:
    with pytest.raises(ForgeError) as caught:
        GitHubClient("http://127.0.0.1:9", "", REPOSITORY, write_gap=0).get("/meta", {})
    assert_no_advice(caught.value)


def test_after_a_server_error_the_remedy_is_to_run_the_doctor_again_later() -> None:
    finding = github.check_repository(GitHubFacts(fault=error_for_status(502, {}, None)), LINKS)
    assert finding.says.endswith("does not answer: GitHub answered 502")
    assert finding.remedy.startswith("run it again later")


@pytest.mark.slow
def test_without_a_token_an_invisible_repository_is_called_private_or_missing(tmp_path: Path) -> None:
    repository = ExaminedRepository(tmp_path)
    repository.github.repo.private = True
    findings = {finding.check: finding for finding in repository.examine(token="")}
    for check in ("repository", "branch"):
        assert findings[check].level == "error"
        assert "without a token: it is private, or does not exist" in findings[check].says
        assert f"set PRECEDENT_TOKEN to a token that may read {REPOSITORY}" in findings[check].remedy
        assert "Username" not in findings[check].says
    repository.close()


def test_a_token_without_read_access_is_reported_without_advice_meant_for_a_run() -> None:
    refusal = parse_error(
        "fetch", "remote: Repository not found.\nfatal: repository 'https://github.com/o/r/' not found"
    )
    assert isinstance(refusal, AuthFailed)
    finding = memory.check_branch(refusal, LINKS, NOW)
    assert finding.says.endswith("not found")
    assert "permissions" not in f"{finding.says} {finding.remedy}"


def test_the_remedy_for_a_refused_push_is_to_leave_the_branch_out_of_the_rule() -> None:
    assert RemoteRefused.usual_remedy.startswith("leave `precedent` out of the rule, ")
