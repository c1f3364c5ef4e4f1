"""What the doctor says of a store in a folder, and of what fails while it looks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bot.cli.checks import github, memory
from bot.cli.checks.github import GitHubFacts
from bot.cli.checks.result import CheckResult, RepositoryLinks
from bot.cli.commands.doctor import examine
from bot.cli.main import parser
from bot.errors import PrecedentError
from bot.git.errors import AuthFailed, RemoteRefused, parse_error
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, error_for_status
from bot.settings.schema import Settings
from tests.cli.clinic import NOW, REPOSITORY, Clinic, threads

PLACE = RepositoryLinks(REPOSITORY, api="https://api.github.com")

# A store in a folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of a memory branch with a damaged manifest."""
    clinic = Clinic(tmp_path / "clinic")
    clinic.remember(*threads(3), cursor=NOW)
    folder = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--branch", "precedent", clinic.bare, folder], check=True)
    clinic.close()
    (folder / "manifest.json").write_text("{", encoding="utf-8")
    return folder


def looked_at(store: Path) -> dict[str, CheckResult]:
    return {each.check: each for each in examine(parser().parse_args(["doctor", "--store", str(store)]), {}, NOW)}


def test_a_checkout_of_the_branch_is_mended_by_its_workflow(checkout: Path) -> None:
    remedy = looked_at(checkout)["manifest"].remedy
    assert remedy == "start the workflow by hand (Run workflow) with rebuild, then fetch the branch again"
    subprocess.run(["rm", "-rf", checkout / ".git"], check=True)
    assert "precedent import FILE --store NEW_FOLDER" in looked_at(checkout)["manifest"].remedy


# What fails while it looks


REFUSALS = [
    *(error_for_status(status, {}, {"message": "Server Error"}) for status in (403, 500, 503)),
    error_for_status(403, {"x-accepted-github-permissions": "issues=read"}, {"message": "no"}, "/repos/o/r/issues"),
    error_for_status(403, {"x-ratelimit-remaining": "0"}, {"message": "API rate limit exceeded"}),
    error_for_status(429, {}, {"message": "You have exceeded a secondary rate limit."}),
    parse_error("fetch", "fatal: unable to access 'https://github.com/o/r.git/': Could not resolve host: github.com"),
    parse_error("fetch", "fatal: could not read Username for 'https://github.com': terminal prompts disabled"),
    parse_error("push", "remote: error: GH013: Repository rule violations found for refs/heads/precedent."),
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
    told = github.check_repository(GitHubFacts(fault=error_for_status(502, {}, None)), PLACE)
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
    refusal = parse_error(
        "fetch", "remote: Repository not found.\nfatal: repository 'https://github.com/o/r/' not found"
    )
    assert isinstance(refusal, AuthFailed)
    told = memory.check_branch(refusal, PLACE, Settings(), NOW)
    assert told.says.endswith("not found")
    assert "permissions" not in f"{told.says} {told.remedy}"


def test_a_rule_that_refuses_a_push_is_best_left_without_the_branch() -> None:
    assert RemoteRefused.usual_remedy.startswith("leave `precedent` out of the rule, ")
