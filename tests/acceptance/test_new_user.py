"""A new user's first day with the README alone: its workflow, its words, each row of what switches it off."""

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
from bot.settings.yaml_file import TEMPLATES
from tests.acceptance.stage import BOT, DECISION, REPOSITORY, Stage, summary
from tests.docs.pages import CODE, blocks, section, text
from tools.address import address

pytestmark = pytest.mark.slow
PLACE = ".github/workflows/precedent.yml"
SETTINGS = ".github/precedent.yml"
COMMIT = "1f0c2d9e8b7a6f5e4d3c2b1a09f8e7d6c5b4a392"
HEADING = "Switch it off, or remove it"


def as_the_readme_says() -> str:
    """Its workflow, of the account that it is used from, with a commit instead of the tag, as long as there is none."""
    (shown,) = (block for block in blocks("README.md", "yaml") if "\njobs:" in block)
    assert "replace `v1` with the full id of a commit" in " ".join(text("README.md").split())
    return shown.replace(f"{address()}@v1", f"octo-org/precedent@{COMMIT}")


def rows() -> dict[str, str]:
    """What one may want, and what the README says to do."""
    lines = [line for line in section("README.md", HEADING).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {wish: done for wish, done in cells if wish not in ("to", "---")}


class Newcomer:
    """Somebody who set it up, in a repository with a past. What happens there starts a run where the file says so."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.github = stage.github
        self.clone = stage.folder / "clone"
        self.git(stage.folder, "clone", "-q", stage.git.remote(REPOSITORY), str(self.clone))
        self.runs = 0

    def git(self, folder: Path, *words: str) -> str:
        identity = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.com")
        done = subprocess.run(("git", *identity, *words), cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout

    def put(self, path: str, content: str) -> None:
        """Write a file, commit it and push it to the default branch."""
        (self.clone / path).parent.mkdir(parents=True, exist_ok=True)
        (self.clone / path).write_text(content, encoding="utf-8")
        self.git(self.clone, "add", path)
        self.git(self.clone, "commit", "-q", "-m", f"Change {path}")
        self.git(self.clone, "push", "-q", "origin", "HEAD:main")

    def written(self) -> dict[Any, Any]:
        """The workflow as it stands on the default branch."""
        found: dict[Any, Any] = yaml.safe_load(self.git(self.stage.bare, "show", f"main:{PLACE}"))
        return found

    def happens(self, event: str, action: str, number: int, comment: int | None = None) -> None:
        """GitHub starts a run, if the workflow listens, with the inputs and the rights that it names."""
        told = self.written()
        assert action in told[True][event]["types"], f"the workflow does not hear of {event}.{action}"
        (job,) = told["jobs"].values()
        rights = {"metadata": "read", **job["permissions"]}
        token = f"token-{len(self.stage.git.tokens)}"
        self.github.add_token(token, BOT, rights)
        self.stage.git.tokens[token] = rights["contents"]
        given = {name: "" if "${{" in str(value) else str(value) for name, value in job["steps"][0]["with"].items()}
        self.github.clock.advance(20)
        assert self.stage.act(event, action, number, comment, {**given, "token": token}) == 0
        self.runs += 1

    def opens(self, body: str = "As in #1, but worse.", author: str = "hubot", title: str = "Logged out") -> int:
        number = self.github.open_issue(author, title, body)
        self.happens("issues", "opened", number)
        return number

    def edits(self, number: int, body: str) -> None:
        self.github.edit_issue(number, body=body)
        self.happens("issues", "edited", number)

    def says(self, number: int, words: str, author: str = "hubot") -> int:
        comment = self.github.comment(number, author, words)
        self.happens("issue_comment", "created", number, comment)
        return comment

    def comment(self, number: int) -> str:
        """What stands there; it never wrote two."""
        mine = self.stage.comments(number)
        ours = [each for each in mine if "reply" not in each.splitlines()[0]]
        assert len(ours) <= 1
        return ours[0] if ours else ""


@pytest.fixture
def day(stage: Stage) -> Newcomer:
    """The README's workflow is pushed as it stands, watched for an issue, and let speak by taking out its line."""
    found = Newcomer(stage)
    found.put(PLACE, as_the_readme_says())
    return found


def let_speak(day: Newcomer) -> None:
    (line,) = (line for line in as_the_readme_says().splitlines() if line.strip().startswith("mode: summary"))
    assert "remove this line to let it comment" in line
    day.put(PLACE, as_the_readme_says().replace(f"{line}\n", ""))


def test_it_is_watched_first_and_comments_when_the_line_is_taken_out(day: Newcomer) -> None:
    watched = day.opens()
    assert day.stage.comments(watched) == []
    assert "Where should sessions live?" in summary(day.stage)
    let_speak(day)
    number = day.opens()
    assert DECISION in day.comment(number)
    assert day.stage.comments(watched) == []


def test_the_checkout_answers_as_the_readme_says(
    day: Newcomer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With the git that the person has, which knows a password for the server; the address has none."""
    home, remote = tmp_path / "home", urlsplit(day.stage.git.remote(REPOSITORY))
    home.mkdir()
    day.opens()
    day.git(day.clone, "remote", "set-url", "origin", remote._replace(netloc=f"127.0.0.1:{remote.port}").geturl())
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.chdir(day.clone)
    assert precedent(["what"]) == 0
    assert "check that git can reach it" in capsys.readouterr().err
    day.git(home, "config", "--global", "credential.helper", "store")
    (home / ".git-credentials").write_text(f"{remote.scheme}://{remote.netloc}\n", encoding="utf-8")
    for words in (["what", "--refresh"], ["search", "where", "do", "sessions", "live"], ["show", "1"]):
        code, (out, err) = precedent(words), capsys.readouterr()
        assert (code, "Where should sessions live?" in out) == (0, True), f"{words}: {out}{err}"
    for name in ("PRECEDENT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    day.github.repo.private = True
    precedent(["doctor", "--json", "--api", day.github.url])
    told = {each["check"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert [told[check]["level"] for check in ("repository", "settings", "branch", "manifest")] == ["note", *3 * ["ok"]]
    assert "without a token" in told["repository"]["says"]


# -- switch it off -------------------------------------------------------------------------------------------------


def delete_it(day: Newcomer) -> None:
    number = day.opens()
    assert day.comment(number)
    (mine,) = day.github.comments_by(BOT, number)
    day.github.delete_comment(mine.id, by="octocat")
    day.edits(number, "As in #1, and much worse.")
    assert day.comment(number) == ""


def silence_one_issue(day: Newcomer) -> None:
    off, on = (each for each in CODE.findall(rows()["silence it on one issue"]) if each.startswith("/precedent"))
    number = day.opens()
    day.says(number, off)
    assert DECISION not in day.comment(number)
    day.edits(number, "As in #1, and much worse.")
    assert DECISION not in day.comment(number)
    assert DECISION in day.comment(day.opens())
    day.says(number, on)
    assert DECISION in day.comment(number)


def keep_one_out(day: Newcomer) -> None:
    (wrong,) = CODE.findall(rows()["keep one issue from being shown on another"])
    number = day.opens("As in #1 and in #2.")
    assert DECISION in day.comment(number)
    day.says(number, wrong.replace("#N", "#1"))
    assert DECISION not in day.comment(number)
    assert "Dark mode" in day.comment(number)


def forget_one(day: Newcomer) -> None:
    (command,) = CODE.findall(rows()["have an issue forgotten, such as one that contains a secret"])
    day.github.set_permission("monalisa", "admin")
    number = day.opens("As in #1. My secret is zebrafinch7731.")
    assert DECISION in day.comment(number)
    day.says(number, command, author="monalisa")
    assert day.comment(number) == ""
    assert all(is_forgotten(record) for record in day.stage.memory().records([number]).values())


def leave_some_alone(day: Newcomer) -> None:
    labels, authors, place = CODE.findall(rows()["leave some issues alone"])
    assert (labels, authors, place) == ("ignore.labels", "ignore.authors", SETTINGS)
    day.put(place, "ignore:\n  labels: [question]\n  authors: [hubot]\n")
    assert day.comment(day.opens(author="hubot")) == ""
    number = day.github.open_issue("monalisa", "Logged out", "As in #1.", labels=["question"])
    day.happens("issues", "opened", number)
    assert day.comment(number) == ""
    assert DECISION in day.comment(day.opens(author="monalisa"))


def keep_it_silent(day: Newcomer) -> None:
    mode, place = CODE.findall(rows()["keep it silent but remembering"])
    day.put(place, mode)
    number = day.opens()
    assert day.comment(number) == ""
    assert number in day.stage.memory().records([number])


def stop_it(day: Newcomer) -> None:
    name = day.written()["name"]
    assert f"*Actions › {name} › ⋯ › Disable workflow*" in rows()["stop it"]


def remove_it(day: Newcomer) -> None:
    day.opens()
    *left, push = CODE.findall(rows()["remove it"])
    day.put(".github/precedent/words.yml", 'why: "Because"\n')
    assert all(path.startswith(tuple(left)) for path in (SETTINGS, *TEMPLATES))
    day.git(day.clone, "rm", "-q", "-r", "--ignore-unmatch", PLACE, *left)
    assert day.git(day.clone, "ls-files", ".github") == ""
    day.git(day.clone, "commit", "-q", "-m", "No precedent any more")
    day.git(day.clone, "push", "-q", "origin", "HEAD:main")
    assert push.startswith("git push ")
    day.git(day.clone, *push.split()[1:])
    assert day.git(day.stage.bare, "for-each-ref", "--format=%(refname:short)").split() == ["main"]


PLAYED: dict[str, Callable[[Newcomer], None]] = {
    "get rid of one comment": delete_it,
    "silence it on one issue": silence_one_issue,
    "keep one issue from being shown on another": keep_one_out,
    "have an issue forgotten, such as one that contains a secret": forget_one,
    "leave some issues alone": leave_some_alone,
    "keep it silent but remembering": keep_it_silent,
    "stop it": stop_it,
    "remove it": remove_it,
}


def test_every_row_of_the_table_is_played() -> None:
    assert list(rows()) == list(PLAYED)


@pytest.mark.parametrize("wish", PLAYED)
def test_what_the_readme_says_switches_it_off_does(day: Newcomer, wish: str) -> None:
    let_speak(day)
    PLAYED[wish](day)
