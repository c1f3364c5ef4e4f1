"""A new user's first day with the README alone: its workflow, its commands, and each way to switch it off."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from bot.cli.main import main as precedent
from bot.domain.thread import is_forgotten
from bot.settings.yaml_file import TEMPLATE_PATHS
from tests.acceptance.stage import BOT, DECISION, REPOSITORY, Stage, summary
from tests.docs.pages import CODE, blocks, section, text
from tools.address import address

pytestmark = pytest.mark.slow
WORKFLOW = ".github/workflows/precedent.yml"
SETTINGS = ".github/precedent.yml"
COMMIT = "1f0c2d9e8b7a6f5e4d3c2b1a09f8e7d6c5b4a392"
HEADING = "Switch it off, or remove it"


def readme_workflow() -> str:
    """The README's workflow, but from a test account and with a commit instead of the tag."""
    (workflow,) = (block for block in blocks("README.md", "yaml") if "\njobs:" in block)
    assert "the full id of a commit in place of `OWNER` and `v1`" in " ".join(text("README.md").split())
    return workflow.replace(f"{address()}@v1", f"octo-org/precedent@{COMMIT}")


def readme_rows() -> dict[str, str]:
    """What a user may want, and what the README says to do."""
    lines = [line for line in section("README.md", HEADING).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {goal: remedy for goal, remedy in cells if goal not in ("to", "---")}


class Newcomer:
    """A user who set it up in a repository with a history. Events start a run if the workflow listens for them."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.github = stage.github
        self.clone = stage.folder / "clone"
        self.git(stage.folder, "clone", "-q", stage.git.remote(REPOSITORY), str(self.clone))
        self.runs = 0

    def git(self, folder: Path, *words: str) -> str:
        identity = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.com")
        process = subprocess.run(("git", *identity, *words), cwd=folder, capture_output=True, text=True, check=True)
        return process.stdout

    def push_file(self, path: str, content: str) -> None:
        """Write a file, commit it and push it to the default branch."""
        (self.clone / path).parent.mkdir(parents=True, exist_ok=True)
        (self.clone / path).write_text(content, encoding="utf-8")
        self.git(self.clone, "add", path)
        self.git(self.clone, "commit", "-q", "-m", f"Change {path}")
        self.git(self.clone, "push", "-q", "origin", "HEAD:main")

    def read_workflow(self) -> dict[Any, Any]:
        """The workflow on the default branch."""
        workflow: dict[Any, Any] = yaml.safe_load(self.stage.run_git("show", f"main:{WORKFLOW}"))
        return workflow

    def trigger(self, event: str, action: str, number: int, comment: int | None = None) -> None:
        """Start a run as GitHub does, with the inputs and permissions of the workflow, if it listens for the event."""
        workflow = self.read_workflow()
        assert action in workflow[True][event]["types"], f"the workflow does not hear of {event}.{action}"
        (job,) = workflow["jobs"].values()
        permissions = {"metadata": "read", **job["permissions"]}
        token = f"token-{len(self.stage.git.tokens)}"
        self.github.add_token(token, BOT, permissions)
        self.stage.git.tokens[token] = permissions["contents"]
        inputs = {name: "" if "${{" in str(value) else str(value) for name, value in job["steps"][0]["with"].items()}
        self.github.clock.advance(20)
        assert self.stage.act(event, action, number, comment, {**inputs, "token": token}) == 0
        self.runs += 1

    def open_issue(self, body: str = "As in #1, but worse.", author: str = "hubot", title: str = "Logged out") -> int:
        number = self.github.open_issue(author, title, body)
        self.trigger("issues", "opened", number)
        return number

    def edit_issue(self, number: int, body: str) -> None:
        self.github.edit_issue(number, body=body)
        self.trigger("issues", "edited", number)

    def post_comment(self, number: int, words: str, author: str = "hubot") -> int:
        comment = self.github.comment(number, author, words)
        self.trigger("issue_comment", "created", number, comment)
        return comment

    def our_comment(self, number: int) -> str:
        """Our comment on the issue, "" if there is none; there are never two."""
        texts = self.stage.comments(number)
        main_comments = [body for body in texts if "reply" not in body.splitlines()[0]]
        assert len(main_comments) <= 1
        return main_comments[0] if main_comments else ""


@pytest.fixture
def newcomer(stage: Stage) -> Newcomer:
    """A user who pushed the README's workflow as it is."""
    new_user = Newcomer(stage)
    new_user.push_file(WORKFLOW, readme_workflow())
    return new_user


def enable_comments(newcomer: Newcomer) -> None:
    assert "remove `mode: summary`, and it comments" in " ".join(text("README.md").split())
    newcomer.push_file(WORKFLOW, readme_workflow().replace("mode: summary, ", ""))


def test_it_writes_summaries_first_and_comments_once_the_mode_is_removed(newcomer: Newcomer) -> None:
    watched = newcomer.open_issue()
    assert newcomer.stage.comments(watched) == []
    assert "Where should sessions live?" in summary(newcomer.stage)
    enable_comments(newcomer)
    number = newcomer.open_issue()
    assert DECISION in newcomer.our_comment(number)
    assert newcomer.stage.comments(watched) == []


def test_commands_in_a_clone_answer_as_the_readme_says(
    newcomer: Newcomer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With the user's own git, which knows a password for the server; the address of the remote has none."""
    home, remote = tmp_path / "home", urlsplit(newcomer.stage.git.remote(REPOSITORY))
    home.mkdir()
    newcomer.open_issue()
    newcomer.git(
        newcomer.clone, "remote", "set-url", "origin", remote._replace(netloc=f"127.0.0.1:{remote.port}").geturl()
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.chdir(newcomer.clone)
    assert precedent(["what"]) == 2
    assert "check that git can reach it" in capsys.readouterr().err
    newcomer.git(home, "config", "--global", "credential.helper", "store")
    (home / ".git-credentials").write_text(f"{remote.scheme}://{remote.netloc}\n", encoding="utf-8")
    for words in (["what", "--refresh"], ["search", "where", "do", "sessions", "live"], ["show", "1"]):
        code, (out, err) = precedent(words), capsys.readouterr()
        assert (code, "Where should sessions live?" in out) == (0, True), f"{words}: {out}{err}"
    for name in ("PRECEDENT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    newcomer.github.repo.private = True
    precedent(["doctor", "--json", "--api", newcomer.github.url])
    findings = {finding["check"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert [findings[check]["level"] for check in ("repository", "settings", "branch", "manifest")] == [
        "note",
        *3 * ["ok"],
    ]
    assert "without a token" in findings["repository"]["says"]


# -- switch it off -------------------------------------------------------------------------------------------------


def delete_one_comment(newcomer: Newcomer) -> None:
    number = newcomer.open_issue()
    assert newcomer.our_comment(number)
    (mine,) = newcomer.github.comments_by(BOT, number)
    newcomer.github.delete_comment(mine.id, by="octocat")
    newcomer.edit_issue(number, "As in #1, and much worse.")
    assert newcomer.our_comment(number) == ""


def silence_one_issue(newcomer: Newcomer) -> None:
    off, on = (code for code in CODE.findall(readme_rows()["silence it on one issue"]) if code.startswith("/precedent"))
    number = newcomer.open_issue()
    newcomer.post_comment(number, off)
    assert DECISION not in newcomer.our_comment(number)
    newcomer.edit_issue(number, "As in #1, and much worse.")
    assert DECISION not in newcomer.our_comment(number)
    assert DECISION in newcomer.our_comment(newcomer.open_issue())
    newcomer.post_comment(number, on)
    assert DECISION in newcomer.our_comment(number)


def keep_one_issue_out(newcomer: Newcomer) -> None:
    (wrong,) = CODE.findall(readme_rows()["keep one issue from being shown on another"])
    newcomer.push_file(SETTINGS, "mentions: {speak: always}\n")
    number = newcomer.open_issue("As in #1 and in #2.")
    assert DECISION in newcomer.our_comment(number)
    newcomer.post_comment(number, wrong.replace("#N", "1"))
    assert DECISION not in newcomer.our_comment(number)
    assert "Dark mode" in newcomer.our_comment(number)


def forget_one_issue(newcomer: Newcomer) -> None:
    (command,) = CODE.findall(readme_rows()["have an issue forgotten, such as one that contains a secret"])
    newcomer.github.set_permission("monalisa", "admin")
    number = newcomer.open_issue("As in #1. My secret is zebrafinch7731.")
    assert DECISION in newcomer.our_comment(number)
    newcomer.post_comment(number, command, author="monalisa")
    assert newcomer.our_comment(number) == ""
    assert all(is_forgotten(record) for record in newcomer.stage.memory().records([number]).values())


def leave_some_issues_alone(newcomer: Newcomer) -> None:
    labels, authors, path = CODE.findall(readme_rows()["leave some issues alone"])
    assert (labels, authors, path) == ("ignore.labels", "ignore.authors", SETTINGS)
    newcomer.push_file(path, "ignore:\n  labels: [question]\n  authors: [hubot]\n")
    assert newcomer.our_comment(newcomer.open_issue(author="hubot")) == ""
    number = newcomer.github.open_issue("monalisa", "Logged out", "As in #1.", labels=["question"])
    newcomer.trigger("issues", "opened", number)
    assert newcomer.our_comment(number) == ""
    assert DECISION in newcomer.our_comment(newcomer.open_issue(author="monalisa"))


def keep_it_silent(newcomer: Newcomer) -> None:
    mode, path = CODE.findall(readme_rows()["keep it silent but remembering"])
    newcomer.push_file(path, mode)
    number = newcomer.open_issue()
    assert newcomer.our_comment(number) == ""
    assert number in newcomer.stage.memory().records([number])


def stop_it(newcomer: Newcomer) -> None:
    name = newcomer.read_workflow()["name"]
    assert f"*Actions › {name} › ⋯ › Disable workflow*" in readme_rows()["stop it"]


def remove_it(newcomer: Newcomer) -> None:
    newcomer.open_issue()
    *paths, command = CODE.findall(readme_rows()["remove it"])
    newcomer.push_file(".github/precedent/words.yml", 'why: "Because"\n')
    assert all(path.startswith(tuple(paths)) for path in (SETTINGS, *TEMPLATE_PATHS))
    newcomer.git(newcomer.clone, "rm", "-q", "-r", "--ignore-unmatch", WORKFLOW, *paths)
    assert newcomer.git(newcomer.clone, "ls-files", ".github") == ""
    newcomer.git(newcomer.clone, "commit", "-q", "-m", "No precedent any more")
    newcomer.git(newcomer.clone, "push", "-q", "origin", "HEAD:main")
    assert command.startswith("git push ")
    newcomer.git(newcomer.clone, *command.split()[1:])
    assert newcomer.stage.run_git("for-each-ref", "--format=%(refname:short)").split() == ["main"]


PROCEDURES: dict[str, Callable[[Newcomer], None]] = {
    "get rid of one comment": delete_one_comment,
    "silence it on one issue": silence_one_issue,
    "keep one issue from being shown on another": keep_one_issue_out,
    "have an issue forgotten, such as one that contains a secret": forget_one_issue,
    "leave some issues alone": leave_some_issues_alone,
    "keep it silent but remembering": keep_it_silent,
    "stop it": stop_it,
    "remove it": remove_it,
}


def test_every_row_of_the_table_has_a_procedure() -> None:
    assert list(readme_rows()) == list(PROCEDURES)


@pytest.mark.night
@pytest.mark.parametrize("goal", PROCEDURES)
def test_each_way_to_switch_it_off_works_as_the_readme_says(newcomer: Newcomer, goal: str) -> None:
    enable_comments(newcomer)
    PROCEDURES[goal](newcomer)
