"""What bad input and a bad day get: one clear line, the right exit code, nothing lost, and no secret anywhere."""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from bot.action.main import run
from bot.domain.thread import Thread
from bot.errors import bug_report
from tests.acceptance.stage import BOT, REPOSITORY, Stage
from tests.comment.detector import report

pytestmark = pytest.mark.slow

CANARY = "ghs_canary0123456789secret"
DECISION = "We decided to go with PostgreSQL; Redis lost every session on restart."


class Day:
    """A repository with a decision (1), and an issue (2) that points at it and waits for its answer."""

    def __init__(self, folder: Path) -> None:
        self.stage = stage = Stage(folder)
        self.github, self.git = stage.github, stage.git
        self.environment: dict[str, str] = {"INPUT_TOKEN": CANARY}
        self.github.add_token(CANARY, BOT)
        self.git.tokens[CANARY] = "write"
        self.github.open_issue("monalisa", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
        self.github.close(1, "octocat", at="2025-07-23T10:00:00Z")
        self.log = ""

    def open(self, body: str | None = "As in #1.", author: str | None = "hubot", title: str = "Logged out") -> int:
        return self.github.open_issue(author, title, body)

    def act(self, event: str, action: str | None = None, number: int | None = None) -> int:
        self.github.clock.advance(20)
        self.github.mark()
        self.github.write_event(self.stage.folder / "event.json", event, action, number)
        return self.run(event)

    def run(self, event: str) -> int:
        """Run on the event file as it is."""
        for file in (self.stage.output, self.stage.summary):
            file.write_text("", encoding="utf-8")
        return run(
            self.stage.environment(event) | self.environment, datetime.fromisoformat(self.github.clock.now), write_gap=0
        )

    def commit(self, path: str, content: str | bytes | None, branch: str = "main") -> None:
        """Put a file onto a branch, None to take it off, as anybody with write access can."""
        self.git.commit(REPOSITORY, path, content, f"refs/heads/{branch}")

    def answered(self, number: int) -> bool:
        return len(self.stage.comments(number)) == 1

    def recovers(self, number: int) -> bool:
        """Whether the next good run makes up for everything, once."""
        self.github.faults.clear()
        self.git.faults.clear()
        self.environment = {"INPUT_TOKEN": CANARY}
        codes = [self.act("schedule"), self.act("schedule")]
        return codes == [0, 0] and self.answered(number) and self.stage.memory().state.manifest.threads >= 2


@pytest.fixture
def day(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Day]:
    day = Day(tmp_path)
    yield day
    day.stage.close()
    shown = "".join(capfd.readouterr()) + day.log
    told = [file.read_text(encoding="utf-8") for file in (day.stage.summary, day.stage.output) if file.exists()]
    for text in (shown, *told):
        assert CANARY not in text
        assert base64.b64encode(f"x-access-token:{CANARY}".encode()).decode() not in text
        assert "Traceback" not in text
        assert "this is a bug" not in text


def errors(day: Day, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that the runner shows as errors since the last look."""
    out, err = capfd.readouterr()
    day.log += out + err
    return [line.removeprefix("::error::") for line in out.splitlines() if line.startswith("::error::")]


# -- what a stranger can write -------------------------------------------------------------------------------------


def test_no_body_and_no_author(day: Day) -> None:
    number = day.open(None, None)
    assert day.act("issues", "opened", number) == 0
    day.github.comment(number, None, "As in #1.")
    assert day.act("issue_comment", "created", number) == 0
    thread = day.stage.memory().records([number])[number]
    assert isinstance(thread, Thread)
    assert (thread.author, thread.body, thread.comments[0].author) == ("ghost", "", "ghost")
    assert day.answered(number)


@pytest.mark.parametrize("mark", ["[", "*", ">", "<", "#1 "])
def test_a_body_of_65536_times_the_same(day: Day, mark: str) -> None:
    number = day.open(("As in #1.\n\n" + mark * 65_536)[:65_536])
    started = time.monotonic()
    assert day.act("issues", "opened", number) == 0
    assert time.monotonic() - started < 15
    assert day.answered(number)


def test_two_thousand_comments(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.github.validate = False
    number = day.open("zyx", "hubot")
    day.act("schedule")
    for count in range(2_000):
        day.github.comment(number, "monalisa", f"Me too, for the {count}th time.")
    last = day.github.comment(number, "hubot", "Like #1?")
    day.github.write_event(tmp_path / "event.json", "issue_comment", "created", number, last)
    started = time.monotonic()
    assert day.run("issue_comment") == 0
    assert time.monotonic() - started < 30
    thread = day.stage.memory().records([number])[number]
    assert isinstance(thread, Thread)
    assert len(thread.comments) == 2_001
    assert day.answered(number)
    day.stage.close()


def test_nul_and_lone_surrogates(day: Day) -> None:
    hostile = "\x00 \ud800 \udfff \u202e \u2066 \x1b[31m ::set-output name=x::y ##[error] %0A"
    day.github.open_issue("hubot", f"Old {hostile}", f"About it {hostile}", at="2025-08-01T10:00:00Z")
    number = day.open(f"As in #1 and #2. {hostile}", title=f"Logged out {hostile}")
    assert day.act("issues", "opened", number) == 0
    (text,) = day.stage.comments(number)
    assert "\x00" not in text
    assert text.encode("utf-8")
    found = report(text)
    assert (found.mentions, found.references, found.images) == ([], [], [])
    assert day.act("issues", "edited", number) == 0


# -- what a user can get wrong -------------------------------------------------------------------------------------


def test_an_unknown_event_is_left_alone(day: Day) -> None:
    assert day.act("watch", "started") == 0
    assert "Precedent does not handle the event" in day.stage.summary.read_text(encoding="utf-8")
    assert day.github.requests == []


@pytest.mark.parametrize("payload", [b"", b"no json", b"[1]", b'"issue"', b"[" * 100_000, b"\xff\xfe{}", b"null"])
def test_a_payload_that_is_no_json_object(day: Day, payload: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    (day.stage.folder / "event.json").write_bytes(payload)
    assert day.run("issues") == 2
    (line,) = errors(day, capfd)
    assert "payload of the issues event" in line
    assert "GITHUB_EVENT_PATH" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    "payload",
    [b"{}", b'{"issue": null}', b'{"issue": {"number": "7"}}', b'{"issue": {"number": -1}, "comment": []}',
     b'{"action": {"a": 1}, "issue": {"number": true}}', b'{"issue": {"number": 1e400}, "changes": 5}'],
)  # fmt: skip
def test_a_payload_without_what_it_should_have_is_a_hint_at_nothing(day: Day, payload: bytes) -> None:
    number = day.open()
    (day.stage.folder / "event.json").write_bytes(payload)
    assert day.run("issues") == 0
    assert day.recovers(number) or not day.stage.comments(number)
    assert day.stage.memory().state.manifest.threads == 2


def test_a_payload_file_that_is_not_there(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    day.environment["GITHUB_EVENT_PATH"] = str(day.stage.folder / "absent.json")
    assert day.run("issues") == 2
    assert errors(day, capfd) == ["GITHUB_EVENT_PATH cannot be read: No such file or directory"]


@pytest.mark.parametrize("name", ["GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY", "INPUT_TOKEN"])
def test_a_variable_that_is_missing(day: Day, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    number = day.open()
    day.github.write_event(day.stage.folder / "event.json", "issues", "opened", number)
    day.environment[name] = ""
    assert day.run("issues") == 2
    (line,) = errors(day, capfd)
    assert name.removeprefix("INPUT_").lower() in line.lower()


def test_a_config_with_a_typo_says_nothing_remembers_all_and_is_made_up_for(
    day: Day, capfd: pytest.CaptureFixture[str]
) -> None:
    day.commit(".github/precedent.yml", "mode: comment\ntroubleshoting:\n  max_results: 1\n")
    number = day.open()
    assert day.act("issues", "opened", number) == 2
    (line,) = errors(day, capfd)
    assert line.startswith(".github/precedent.yml:2: unknown setting")
    assert 'did you mean "troubleshooting"?' in line
    assert "troubleshooting" in day.stage.summary.read_text(encoding="utf-8")
    assert day.stage.comments(number) == []
    assert isinstance(day.stage.memory().records([number])[number], Thread)
    day.commit(".github/precedent.yml", "mode: comment\n")
    assert day.recovers(number)


@pytest.mark.parametrize("settings", ["mode: [", "a: &a [*a]", "mode: loud"])
def test_a_config_that_makes_no_sense(day: Day, settings: str, capfd: pytest.CaptureFixture[str]) -> None:
    day.commit(".github/precedent.yml", settings)
    number = day.open()
    assert day.act("issues", "opened", number) == 2
    (line,) = errors(day, capfd)
    assert line.startswith(".github/precedent.yml")
    assert day.stage.comments(number) == []


def test_inputs_that_make_no_sense(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    nonsense = {"INPUT_MODE": "loud", "INPUT_RUN": "fast", "INPUT_ISSUE": "x", "INPUT_DRY-RUN": "maybe"}
    for name, value in nonsense.items():
        day.environment = {"INPUT_TOKEN": CANARY, name: value}
        assert day.act("schedule") == 2
        (line,) = errors(day, capfd)
        assert name.removeprefix("INPUT_").lower() in line


@pytest.mark.parametrize("inputs", ['{"mode": "answer"}', '{"mode": "answer", "issue": "x"}', '{"mode": "sing"}'])
def test_a_run_by_hand_that_asks_for_nonsense(day: Day, inputs: str, capfd: pytest.CaptureFixture[str]) -> None:
    (day.stage.folder / "event.json").write_text(f'{{"inputs": {inputs}}}', encoding="utf-8")
    assert day.run("workflow_dispatch") == 2
    assert len(errors(day, capfd)) == 1


def test_a_run_by_hand_for_an_issue_that_is_not_there(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    day.environment |= {"INPUT_RUN": "answer", "INPUT_ISSUE": "77"}
    assert day.act("workflow_dispatch") == 2
    (line,) = errors(day, capfd)
    assert line.startswith("issue 77 cannot be answered")


@pytest.mark.parametrize(
    "template",
    ["{% for i in range(1000000000) %}x{% endfor %}", "{{ nothing.at.all }}", "{% if", "no marker at all",
     "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "{{ 'x' * 10**9 }}"],
)  # fmt: skip
def test_a_template_that_loops_or_fails_falls_back_to_the_shipped_one(day: Day, template: str) -> None:
    day.commit(".github/precedent/context.md.j2", template)
    number = day.open()
    started = time.monotonic()
    assert day.act("issues", "opened", number) == 0
    assert time.monotonic() - started < 10
    assert "Where should sessions live?" in day.stage.comments(number)[0]
    assert "shipped template was used" in day.stage.summary.read_text(encoding="utf-8")


def test_settings_that_are_not_where_the_workflow_says_are_told(day: Day) -> None:
    day.environment |= {"INPUT_CONFIG": ".github/other.yml"}
    assert day.act("schedule") == 0
    told = "There is no .github/other.yml on the default branch: the default settings apply."
    assert told in day.stage.summary.read_text(encoding="utf-8")
    day.commit(".github/other.yml", "mode: summary\n")
    assert day.act("schedule") == 0
    assert "There is no" not in day.stage.summary.read_text(encoding="utf-8")


# -- what can happen to the branch ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "poisoned", "strange file", "no manifest", "bad manifest", "bad record"])
def test_a_damaged_branch_is_mended_and_the_event_answered(day: Day, damage: str) -> None:
    day.act("schedule")
    git = ["git", "-C", str(day.stage.bare)]
    names = subprocess.check_output([*git, "ls-tree", "-r", "--name-only", "precedent"], text=True).split()
    segment = next(name for name in names if name.endswith(".seg"))
    whole = subprocess.check_output([*git, "show", f"precedent:{segment}"])
    match damage:
        case "cut":
            day.commit(segment, whole[: len(whole) // 2], "precedent")
        case "poisoned":
            day.commit(segment, b"\x80\x04cposix\nsystem\n\x8c\x02id\x85R." + whole, "precedent")
        case "strange file":
            day.commit("index/_MAIN_1.toc.swp", b"\x80\x04.", "precedent")
        case "no manifest":
            day.commit("manifest.json", None, "precedent")
        case "bad manifest":
            day.commit("manifest.json", '{"format": "x"', "precedent")
        case "bad record":
            day.commit("records/0000/1.json", '{"id": 1', "precedent")
    number = day.open()
    assert day.act("issues", "opened", number) == 0
    assert day.answered(number) or damage == "bad record"
    assert "damaged" in day.stage.summary.read_text(encoding="utf-8") or damage == "no manifest"
    day.environment["INPUT_RUN"] = "rebuild"
    assert day.act("workflow_dispatch") == 0
    assert day.stage.memory().state.manifest.threads == 2
    assert day.recovers(number) or damage == "bad record"


def test_a_branch_that_is_gone_is_made_anew_and_nothing_said_twice(day: Day) -> None:
    number = day.open()
    day.act("issues", "opened", number)
    subprocess.run(["git", "-C", str(day.stage.bare), "update-ref", "-d", "refs/heads/precedent"], check=True)
    assert day.act("issues", "opened", number) == 0
    day.github.edit_issue(number, body="As in #1, still.")
    assert day.act("issues", "edited", number) == 0
    assert day.answered(number)
    assert day.stage.memory().state.manifest.threads == 2


def test_a_branch_of_a_newer_version_is_left_as_it_is(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    day.act("schedule")
    day.commit("manifest.json", '{"format": 99}', "precedent")
    number = day.open()
    assert day.act("issues", "opened", number) == 2
    (line,) = errors(day, capfd)
    assert "newer Precedent" in line
    assert day.stage.comments(number) == []


# -- what the world can refuse -------------------------------------------------------------------------------------


def test_a_locked_issue_is_remembered_and_not_answered(day: Day) -> None:
    number = day.open()
    day.github.lock(number)
    assert day.act("issues", "opened", number) == 0
    assert (day.stage.comments(number), day.github.writes) == ([], 0)
    assert isinstance(day.stage.memory().records([number])[number], Thread)


def test_a_token_that_may_not_comment(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    weak = f"{CANARY}_weak"
    day.github.add_token(weak, BOT, {"issues": "read", "contents": "write"})
    day.git.tokens[weak] = "write"
    day.environment["INPUT_TOKEN"] = weak
    number = day.open()
    assert day.act("issues", "opened", number) == 1
    (line,) = errors(day, capfd)
    assert "issues: write" in line
    assert day.recovers(number)


def test_a_token_that_may_not_see_issues(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    weak = f"{CANARY}_weak"
    day.github.add_token(weak, BOT, {"contents": "write"})
    day.git.tokens[weak] = "write"
    number = day.open()
    for _ in range(2):  # once reading history, once the list of what changed
        day.environment["INPUT_TOKEN"] = weak
        assert day.act("issues", "opened", number) == 1
        (line,) = errors(day, capfd)
        assert "issues: write" in line
        assert day.recovers(number)


def test_a_token_that_may_not_push(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    day.git.tokens[CANARY] = "read"
    number = day.open()
    assert day.act("issues", "opened", number) == 1
    (line,) = errors(day, capfd)
    assert "contents: write" in line
    assert day.stage.comments(number) == []
    day.git.tokens[CANARY] = "write"
    assert day.recovers(number)


def test_a_wrong_token(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    number = day.open()
    day.environment["INPUT_TOKEN"] = "ghs_wrong"
    assert day.act("issues", "opened", number) == 1
    (line,) = errors(day, capfd)
    assert "token" in line
    assert "ghs_wrong" not in line
    assert day.recovers(number)


def test_a_real_limit_that_is_used_up_half_way(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    day.act("schedule")
    number = day.open()
    day.github.limits.set(1)
    assert day.act("issues", "opened", number) == 0
    assert errors(day, capfd) == []
    assert "::notice::GitHub's rate limit is exhausted until" in day.log
    assert "rate limit is exhausted until" in day.stage.summary.read_text(encoding="utf-8")
    assert isinstance(day.stage.memory().records([number])[number], Thread)
    day.github.limits.set(1000)
    assert day.recovers(number)


def test_an_issue_that_is_out_of_sight_is_left_as_it_is(day: Day) -> None:
    day.act("schedule")
    number = day.open()
    day.github.hide_issue(number)
    (day.stage.folder / "event.json").write_text(f'{{"action": "opened", "issue": {{"number": {number}}}}}')
    assert day.run("issues") == 0
    assert "is not visible now" in day.stage.summary.read_text(encoding="utf-8")
    day.github.show_issue(number)
    assert day.recovers(number)


def test_a_reference_that_cannot_be_had_is_asked_for_once(day: Day) -> None:
    gone = day.open("zyx")
    day.github.delete_issue(gone)
    number = day.open(f"As in #1 and #{gone}.")
    assert day.act("issues", "opened", number) == 0
    assert day.answered(number)
    day.github.comment(number, "hubot", "More.")
    assert day.act("issue_comment", "created", number) == 0
    assert day.github.reads <= 2


# -- what the runner can refuse ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
def test_a_runners_file_that_cannot_be_written(day: Day, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    number = day.open()
    day.environment[name] = str(day.stage.folder)
    assert day.act("issues", "opened", number) == 1
    assert len(errors(day, capfd)) == 1
    assert day.answered(number)


def test_a_folder_for_the_context_that_is_not_there(day: Day, capfd: pytest.CaptureFixture[str]) -> None:
    number = day.open()
    day.environment["RUNNER_TEMP"] = str(day.stage.folder / "absent")
    assert day.act("issues", "opened", number) == 1
    (line,) = errors(day, capfd)
    assert f"context-{number}.md cannot be written" in line
    assert day.answered(number)


def test_a_bug_is_told_in_one_line_without_what_it_was_about() -> None:
    try:
        int("a stranger's words\n::error::x")
    except ValueError as error:
        line = bug_report(error)
    assert "ValueError" in line
    assert "test_bad_input.py" in line
    assert "stranger" not in line
    assert "\n" not in line
