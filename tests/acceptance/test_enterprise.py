"""On GitHub Enterprise Server, every request goes to the addresses that the runner names, and so does every link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.github.app import App
from tests.acceptance.stage import BOT, REPOSITORY, Stage, with_past
from tests.cli.program_result import Run
from tests.fakes.github import EnterpriseGitHub
from tests.github.keys import key_pair

ADDRESS = re.compile(r"https?://[^/\s)]+")


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Stage]:
    """A repository on Enterprise Server, with a decision and a declined request."""
    (tmp_path / "stage").mkdir()
    with Stage(tmp_path / "stage", github=EnterpriseGitHub) as stage:
        yield stage.begin(with_past)


def test_a_rebuild_an_answer_an_edit_and_a_command_need_no_other_address(company: Stage) -> None:
    github = company.github
    company.deliver("workflow_dispatch", run="rebuild")
    number = github.open_issue("hubot", "Logged out", "As in #1.")
    company.deliver("issues", "opened", number)
    (text,) = company.comments(number)
    assert "PostgreSQL" in text
    assert f"{company.git.url}/{REPOSITORY}/issues/1" in text
    assert set(ADDRESS.findall(text)) == {company.git.url}
    command = github.comment(number, "octocat", "/precedent search printer")
    company.deliver("issue_comment", "created", number, command)
    assert "Dark mode for the printer" in company.comments(number)[-1]
    github.edit_issue(number, body="zyx wvu tsr")
    company.deliver("issues", "edited", number)
    assert "no longer applies" in company.comments(number)[0]
    company.deliver("schedule")
    paths = {request.path for request in github.requests}
    assert {"/graphql", "/repos/{owner}/{repo}/issues/{issue_number}/comments"} <= paths


def test_the_fake_notices_a_request_to_an_address_of_github_com(company: Stage) -> None:
    number = company.github.open_issue("hubot", "Logged out", "As in #1.")
    company.github.write_event(company.folder / "event.json", "issues", "opened", number)
    assert company.run("issues", GITHUB_API_URL=company.github.url) == 1
    assert "is not an address of Enterprise Server's API" in company.github.violations[0]
    company.github.violations.clear()
    assert company.github.comments_by(BOT, number) == []


def test_the_command_line_finds_the_api_of_the_server_that_it_is_given(
    company: Stage, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("GITHUB_API_URL", "GITHUB_SERVER_URL", "PRECEDENT_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GH_TOKEN", company.github.token)
    assert call("try", REPOSITORY, "--server", company.github.url).code == 0
    monkeypatch.setenv("GITHUB_SERVER_URL", company.git.url)
    monkeypatch.setenv("GITHUB_API_URL", company.github.api_url)
    assert call("try", REPOSITORY).code == 0
    doctor = call("doctor", "--repo", REPOSITORY, "--server", company.git.url, "--api", company.github.api_url)
    assert "✓ rate limit    core: " in doctor.out


def test_the_app_of_a_server_is_reached_below_the_api_path(company: Stage) -> None:
    company.github.clock.now = None
    company.github.add_app(77, "precedent", public_key=key_pair()[1])
    with App(77, key_pair()[0], company.github.api_url) as app:
        assert app.about().login == "precedent[bot]"
        assert list(app.installations())
