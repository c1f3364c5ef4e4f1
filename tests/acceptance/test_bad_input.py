"""Bad input and failures get one clear line and the right exit code; nothing is lost and no secret leaks."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from bot.domain.thread import Thread
from bot.errors import bug_report
from tests.acceptance.bare_repository import Bare
from tests.acceptance.stage import BOT, REPOSITORY, Stage, with_decision
from tests.comment.detector import report

pytestmark = pytest.mark.slow

CANARY = "ghs_canary0123456789secret"


class Scenario:
    """A repository with a decision (1); `open_issue` adds an issue that refers to it and waits for its answer."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.github, self.git = stage.github, stage.git
        self.environment: dict[str, str] = {"INPUT_TOKEN": CANARY}
        self.github.add_token(CANARY, BOT)
        self.git.tokens[CANARY] = "write"
        self.log = ""

    def open_issue(
        self, body: str | None = "As in #1.", author: str | None = "hubot", title: str = "Logged out"
    ) -> int:
        return self.github.open_issue(author, title, body)

    def act(self, event: str, action: str | None = None, number: int | None = None) -> int:
        self.github.clock.advance(20)
        self.github.mark()
        self.github.write_event(self.stage.folder / "event.json", event, action, number)
        return self.run(event)

    def run(self, event: str) -> int:
        """Run on the event file as it is."""
        return self.stage.run(event, **self.environment)

    def commit(self, path: str, content: str | bytes | None, branch: str = "main") -> None:
        """Commit a file to a branch, or delete it with None, as anybody with write access can."""
        self.git.commit(REPOSITORY, path, content, f"refs/heads/{branch}")

    def is_answered(self, number: int) -> bool:
        return len(self.stage.comments(number)) == 1

    def recovers(self, number: int) -> bool:
        """Whether the next good run catches up, with exactly one comment."""
        self.github.faults.clear()
        self.git.faults.clear()
        self.environment = {"INPUT_TOKEN": CANARY}
        codes = [self.act("schedule"), self.act("schedule")]
        return codes == [0, 0] and self.is_answered(number) and self.stage.memory().state.manifest.threads >= 2


@pytest.fixture
def scenario(empty_stage: Stage, capfd: pytest.CaptureFixture[str]) -> Iterator[Scenario]:
    scenario = Scenario(empty_stage.begin(with_decision))
    yield scenario
    scenario.github.violations.clear()  # what is sent here need not be what GitHub describes
    log = "".join(capfd.readouterr()) + scenario.log
    files = [
        file.read_text(encoding="utf-8") for file in (scenario.stage.summary, scenario.stage.output) if file.exists()
    ]
    for text in (log, *files):
        assert CANARY not in text
        assert base64.b64encode(f"x-access-token:{CANARY}".encode()).decode() not in text
        assert "Traceback" not in text
        assert "this is a bug" not in text


def errors(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The lines since the last call that the runner shows as errors."""
    out, err = capfd.readouterr()
    scenario.log += out + err
    return [line.removeprefix("::error::") for line in out.splitlines() if line.startswith("::error::")]


# -- what a stranger can write -------------------------------------------------------------------------------------


def test_an_issue_without_body_and_author_is_answered(scenario: Scenario) -> None:
    number = scenario.open_issue(None, None)
    assert scenario.act("issues", "opened", number) == 0
    scenario.github.comment(number, None, "As in #1.")
    assert scenario.act("issue_comment", "created", number) == 0
    thread = scenario.stage.memory().records([number])[number]
    assert isinstance(thread, Thread)
    assert (thread.author, thread.body, thread.comments[0].author) == ("ghost", "", "ghost")
    assert scenario.is_answered(number)


@pytest.mark.night
@pytest.mark.parametrize("mark", ["[", "*", ">", "<", "#1 "])
def test_a_body_that_repeats_one_mark_65536_times_is_answered(scenario: Scenario, mark: str) -> None:
    number = scenario.open_issue(("As in #1.\n\n" + mark * 65_536)[:65_536])
    assert scenario.act("issues", "opened", number) == 0
    assert scenario.is_answered(number)


def test_an_issue_with_two_thousand_comments_is_read_completely(scenario: Scenario) -> None:
    scenario.github.validate = False
    number = scenario.open_issue("zyx", "hubot")
    scenario.act("schedule")
    for count in range(2_000):
        scenario.github.comment(number, "monalisa", f"Me too, for the {count}th time.")
    last = scenario.github.comment(number, "hubot", "Like #1?")
    scenario.github.write_event(scenario.stage.folder / "event.json", "issue_comment", "created", number, last)
    scenario.github.mark()
    assert scenario.run("issue_comment") == 0
    assert scenario.github.reads <= 25, "one for each hundred comments, and a few"
    thread = scenario.stage.memory().records([number])[number]
    assert isinstance(thread, Thread)
    assert len(thread.comments) == 2_001
    assert scenario.is_answered(number)


def test_nul_and_lone_surrogates_do_no_harm(scenario: Scenario) -> None:
    hostile = "\x00 \ud800 \udfff \u202e \u2066 \x1b[31m ::set-output name=x::y ##[error] %0A"
    scenario.github.open_issue("hubot", f"Old {hostile}", f"About it {hostile}", at="2025-08-01T10:00:00Z")
    number = scenario.open_issue(f"As in #1 and #2. {hostile}", title=f"Logged out {hostile}")
    assert scenario.act("issues", "opened", number) == 0
    (text,) = scenario.stage.comments(number)
    assert "\x00" not in text
    assert text.encode("utf-8")
    detected = report(text)
    assert (detected.mentions, detected.references, detected.images) == ([], [], [])
    assert scenario.act("issues", "edited", number) == 0


# -- what a user can get wrong -------------------------------------------------------------------------------------


def test_an_unknown_event_is_ignored(scenario: Scenario) -> None:
    assert scenario.act("watch", "started") == 0
    assert "Precedent does not handle the event" in scenario.stage.summary.read_text(encoding="utf-8")
    assert scenario.github.requests == []


@pytest.mark.parametrize("payload", [b"", b"no json", b"[1]", b'"issue"', b"[" * 100_000, b"\xff\xfe{}", b"null"])
def test_a_payload_that_is_not_a_json_object_is_reported_in_one_line(
    scenario: Scenario, payload: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    (scenario.stage.folder / "event.json").write_bytes(payload)
    assert scenario.run("issues") == 2
    (line,) = errors(scenario, capfd)
    assert "payload of the issues event" in line
    assert "GITHUB_EVENT_PATH" in line


@pytest.mark.parametrize(
    "payload",
    [b"{}", b'{"issue": null}', b'{"issue": {"number": "7"}}', b'{"issue": {"number": -1}, "comment": []}',
     b'{"action": {"a": 1}, "issue": {"number": true}}', b'{"issue": {"number": 1e400}, "changes": 5}'],
)  # fmt: skip
def test_a_payload_without_the_expected_fields_does_no_harm(scenario: Scenario, payload: bytes) -> None:
    number = scenario.open_issue()
    (scenario.stage.folder / "event.json").write_bytes(payload)
    assert scenario.run("issues") == 0
    assert scenario.recovers(number) or not scenario.stage.comments(number)
    assert scenario.stage.memory().state.manifest.threads == 2


def test_a_missing_payload_file_is_reported_in_one_line(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    scenario.environment["GITHUB_EVENT_PATH"] = str(scenario.stage.folder / "absent.json")
    assert scenario.run("issues") == 2
    assert errors(scenario, capfd) == ["GITHUB_EVENT_PATH cannot be read: No such file or directory"]


@pytest.mark.parametrize("name", ["GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY", "INPUT_TOKEN"])
def test_a_missing_variable_is_named(scenario: Scenario, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    number = scenario.open_issue()
    scenario.github.write_event(scenario.stage.folder / "event.json", "issues", "opened", number)
    scenario.environment[name] = ""
    assert scenario.run("issues") == 2
    (line,) = errors(scenario, capfd)
    assert name.removeprefix("INPUT_").lower() in line.lower()


def test_a_config_with_a_typo_posts_nothing_and_a_later_run_catches_up(
    scenario: Scenario, capfd: pytest.CaptureFixture[str]
) -> None:
    scenario.commit(".github/precedent.yml", "mode: comment\nsimilr:\n  max: 1\n")
    number = scenario.open_issue()
    assert scenario.act("issues", "opened", number) == 2
    (line,) = errors(scenario, capfd)
    assert line.startswith(".github/precedent.yml:2: unknown setting")
    assert 'did you mean "similar"?' in line
    assert "similar" in scenario.stage.summary.read_text(encoding="utf-8")
    assert scenario.stage.comments(number) == []
    assert isinstance(scenario.stage.memory().records([number])[number], Thread)
    scenario.commit(".github/precedent.yml", "mode: comment\n")
    assert scenario.recovers(number)


def test_an_invalid_input_is_named(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    nonsense = {"INPUT_MODE": "loud", "INPUT_RUN": "fast", "INPUT_ISSUE": "x", "INPUT_DRY-RUN": "maybe"}
    for name, value in nonsense.items():
        scenario.environment = {"INPUT_TOKEN": CANARY, name: value}
        assert scenario.act("schedule") == 2
        (line,) = errors(scenario, capfd)
        assert name.removeprefix("INPUT_").lower() in line


@pytest.mark.parametrize("inputs", ['{"mode": "answer"}', '{"mode": "answer", "issue": "x"}', '{"mode": "sing"}'])
def test_a_manual_run_with_invalid_inputs_gets_one_error(
    scenario: Scenario, inputs: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (scenario.stage.folder / "event.json").write_text(f'{{"inputs": {inputs}}}', encoding="utf-8")
    assert scenario.run("workflow_dispatch") == 2
    assert len(errors(scenario, capfd)) == 1


def test_a_manual_run_for_a_missing_issue_gets_one_error(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    scenario.environment |= {"INPUT_RUN": "answer", "INPUT_ISSUE": "77"}
    assert scenario.act("workflow_dispatch") == 2
    (line,) = errors(scenario, capfd)
    assert line.startswith("issue 77 cannot be answered")


@pytest.mark.parametrize(
    "template",
    ["{% for i in range(1000000000) %}x{% endfor %}", "{{ nothing.at.all }}", "{% if", "no marker at all",
     "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "{{ 'x' * 10**9 }}"],
)  # fmt: skip
def test_a_template_that_loops_or_fails_falls_back_to_the_shipped_one(scenario: Scenario, template: str) -> None:
    scenario.commit(".github/precedent/context.md.j2", template)
    number = scenario.open_issue()
    assert scenario.act("issues", "opened", number) == 0
    assert "Where should sessions live?" in scenario.stage.comments(number)[0]
    assert "shipped template was used" in scenario.stage.summary.read_text(encoding="utf-8")


def test_a_missing_settings_file_that_the_workflow_names_is_reported(scenario: Scenario) -> None:
    scenario.environment |= {"INPUT_CONFIG": ".github/other.yml"}
    assert scenario.act("schedule") == 0
    message = "There is no .github/other.yml on the default branch: the default settings apply."
    assert message in scenario.stage.summary.read_text(encoding="utf-8")
    scenario.commit(".github/other.yml", "mode: summary\n")
    assert scenario.act("schedule") == 0
    assert "There is no" not in scenario.stage.summary.read_text(encoding="utf-8")


# -- what can happen to the branch ---------------------------------------------------------------------------------


@pytest.mark.night
@pytest.mark.parametrize("damage", ["cut", "poisoned", "strange file", "no manifest", "bad manifest", "bad record"])
def test_a_damaged_branch_is_repaired_and_the_event_answered(scenario: Scenario, damage: str) -> None:
    scenario.act("schedule")
    snapshot = Bare(scenario.stage.bare).snapshot()
    segment = next(name for name in snapshot.files if name.endswith(".seg"))
    content = snapshot.read([segment])[segment]
    match damage:
        case "cut":
            scenario.commit(segment, content[: len(content) // 2], "precedent")
        case "poisoned":
            scenario.commit(segment, b"\x80\x04cposix\nsystem\n\x8c\x02id\x85R." + content, "precedent")
        case "strange file":
            scenario.commit("index/_MAIN_1.toc.swp", b"\x80\x04.", "precedent")
        case "no manifest":
            scenario.commit("manifest.json", None, "precedent")
        case "bad manifest":
            scenario.commit("manifest.json", '{"format": "x"', "precedent")
        case "bad record":
            scenario.commit("records/0000/1.json", '{"id": 1', "precedent")
    number = scenario.open_issue()
    assert scenario.act("issues", "opened", number) == 0
    assert scenario.is_answered(number) or damage == "bad record"
    assert "damaged" in scenario.stage.summary.read_text(encoding="utf-8") or damage == "no manifest"
    scenario.environment["INPUT_RUN"] = "rebuild"
    assert scenario.act("workflow_dispatch") == 0
    assert scenario.stage.memory().state.manifest.threads == 2
    assert scenario.recovers(number) or damage == "bad record"


FUTURE = "8999-01-01T00:00:00Z"


def forge(scenario: Scenario, path: str, **changed: object) -> None:
    """Change fields of a JSON file on the memory branch, as anybody with write access can."""
    snapshot = Bare(scenario.stage.bare).snapshot()
    fields = json.loads(snapshot.read([path])[path]) | changed
    scenario.commit(path, json.dumps(fields), "precedent")


def title_of(scenario: Scenario, number: int) -> str:
    record = scenario.stage.memory().records([number]).get(number)
    return record.title if isinstance(record, Thread) else ""


def test_a_record_of_the_year_8999_is_replaced_by_the_next_event(scenario: Scenario) -> None:
    assert scenario.act("schedule") == 0
    forge(scenario, "records/0000/1.json", updated_at=FUTURE, title="Forged")
    scenario.github.edit_issue(1, title="Where do sessions live?")
    assert scenario.act("issues", "edited", 1) == 0
    assert title_of(scenario, 1) == "Where do sessions live?"


def test_a_cursor_of_the_year_8999_hides_no_later_issue(scenario: Scenario) -> None:
    assert scenario.act("schedule") == 0
    forge(scenario, "manifest.json", cursor=FUTURE, read_whole=FUTURE)
    number = scenario.open_issue(title="Which store?")
    assert scenario.act("schedule") == 0
    assert title_of(scenario, number) == "Which store?"
    cursor = scenario.stage.memory().state.manifest.cursor
    assert cursor is not None
    assert cursor.year < 8999


def test_a_rebuild_replaces_a_forged_record(scenario: Scenario) -> None:
    assert scenario.act("schedule") == 0
    title, path = title_of(scenario, 1), "records/0000/1.json"
    scenario.environment["INPUT_RUN"] = "rebuild"
    for changed in ({"title": "Forged"}, {"title": "Forged", "updated_at": scenario.github.clock.now}):
        forge(scenario, path, **changed)
        assert scenario.act("workflow_dispatch") == 0
        assert title_of(scenario, 1) == title


# -- what GitHub can refuse ----------------------------------------------------------------------------------------


def test_a_token_that_may_not_read_issues_is_reported(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    weak_token = f"{CANARY}_weak"
    scenario.github.add_token(weak_token, BOT, {"contents": "write"})
    scenario.git.tokens[weak_token] = "write"
    number = scenario.open_issue()
    for _ in range(2):  # once reading history, once the list of what changed
        scenario.environment["INPUT_TOKEN"] = weak_token
        assert scenario.act("issues", "opened", number) == 1
        (line,) = errors(scenario, capfd)
        assert "issues: write" in line
        assert scenario.recovers(number)


def test_a_wrong_token_is_reported_but_not_shown(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    number = scenario.open_issue()
    scenario.environment["INPUT_TOKEN"] = "ghs_wrong"
    assert scenario.act("issues", "opened", number) == 1
    (line,) = errors(scenario, capfd)
    assert "token" in line
    assert "ghs_wrong" not in line
    assert scenario.recovers(number)


def test_an_issue_that_is_hidden_for_now_is_left_as_it_is(scenario: Scenario) -> None:
    scenario.act("schedule")
    number = scenario.open_issue()
    scenario.github.hide_issue(number)
    (scenario.stage.folder / "event.json").write_text(f'{{"action": "opened", "issue": {{"number": {number}}}}}')
    assert scenario.run("issues") == 0
    assert "is not visible now" in scenario.stage.summary.read_text(encoding="utf-8")
    scenario.github.show_issue(number)
    assert scenario.recovers(number)


def test_a_reference_that_cannot_be_read_is_requested_once(scenario: Scenario) -> None:
    deleted = scenario.open_issue("zyx")
    scenario.github.delete_issue(deleted)
    number = scenario.open_issue(f"As in #1 and #{deleted}.")
    assert scenario.act("issues", "opened", number) == 0
    assert scenario.is_answered(number)
    scenario.github.comment(number, "hubot", "More.")
    assert scenario.act("issue_comment", "created", number) == 0
    assert scenario.github.reads <= 2


# -- what the runner can refuse ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
def test_a_runner_file_that_cannot_be_written_is_an_error_after_the_answer(
    scenario: Scenario, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    number = scenario.open_issue()
    scenario.environment[name] = str(scenario.stage.folder)
    assert scenario.act("issues", "opened", number) == 1
    assert len(errors(scenario, capfd)) == 1
    assert scenario.is_answered(number)


def test_a_missing_folder_for_the_context_file_is_an_error_after_the_answer(
    scenario: Scenario, capfd: pytest.CaptureFixture[str]
) -> None:
    number = scenario.open_issue()
    scenario.environment["RUNNER_TEMP"] = str(scenario.stage.folder / "absent")
    assert scenario.act("issues", "opened", number) == 1
    (line,) = errors(scenario, capfd)
    assert f"context-{number}.md cannot be written" in line
    assert scenario.is_answered(number)


def test_a_bug_is_reported_in_one_line_without_the_text_that_caused_it() -> None:
    try:
        int("a stranger's words\n::error::x")
    except ValueError as error:
        line = bug_report(error)
    assert "ValueError" in line
    assert "test_bad_input.py" in line
    assert "stranger" not in line
    assert "\n" not in line
