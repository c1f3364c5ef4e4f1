"""A settings file that breaks in the middle of a life: one memory, no second comment, one clear line."""

import pytest

from bot.domain.thread import Thread
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from tests.acceptance.stage import REPOSITORY, Stage, with_past

pytestmark = pytest.mark.slow

VALID = """branch: memory
mentions: {speak: always}
comment:
  answer_within_hours: 100
  daily_limit: 40
ignore:
  people: [shy-person]
  labels: [quiet]
"""
BROKEN = {
    "a misspelt name": VALID.replace("branch", "brnach"),
    "a misspelt section": VALID.replace("ignore:", "ingore:"),
    "a value that is not allowed": VALID.replace("always", "sometimes"),
    "a number out of bounds": VALID.replace("40", "4000"),
    "a tab": VALID.replace("  daily", "\tdaily"),
    "an open quote": VALID + 'pages:\n  docs: ["README.md]\n',
    "a setting twice": VALID + "branch: other\n",
    "an unresolved merge": f"<<<<<<< HEAD\n{VALID}=======\nmode: summary\n>>>>>>> other\n",
    "a colon too many": VALID + "mode: comment: please\n",
    "an anchor": VALID + "pulls: &yes true\n",
    "an unknown name": VALID + "colour: red\n",
    "an open bracket": VALID.replace("[quiet]", "[quiet"),
}
UNREADABLE = {
    "a list": "- branch\n- memory\n",
    "a page": "<html><body>Not found</body></html>\n",
    "no text": "\0",
    "too many bytes": VALID + "#" * 70_000,
}


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """Issue 1 is old, 3 mentions it and has our comment; the memory is on another branch than by default."""
    return empty_stage.begin(with_past, with_settings, with_comment)


def with_settings(stage: Stage) -> None:
    stage.configure(VALID)


def with_comment(stage: Stage) -> None:
    stage.deliver("issues", "opened", stage.github.open_issue("hubot", "Everybody is logged out", "As in #1."))
    assert len(stage.comments(3)) == 1


def branches(stage: Stage) -> set[str]:
    return set(stage.run_git("for-each-ref", "--format=%(refname:short)", "refs/heads").split())


def errors(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("::error::")]


@pytest.mark.parametrize("how", BROKEN)
def test_broken_settings_move_nothing_and_one_line_says_what_is_wrong(
    stage: Stage, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before, text = branches(stage), stage.comments(3)
    stage.configure(BROKEN[how])
    shy = stage.github.comment(3, "shy-person", "I saw it too.")
    stage.deliver("issue_comment", "created", 3, shy, code=2)
    number = stage.github.open_issue("octocat", "Logged out, too", "See #1.")
    stage.deliver("issues", "opened", number, code=2)
    assert [".github/precedent.yml" in line for line in errors(capfd.readouterr().out)] == [True, True]
    assert (branches(stage), stage.comments(3), stage.comments(number)) == (before, text, [])
    with BranchStore(f"{stage.git.url}/{REPOSITORY}.git", "memory", stage.git.token) as store:
        records = Memory(store, repo=REPOSITORY).open().records([3, number])
        assert [type(record) for record in records.values()] == [Thread, Thread]
    stage.configure(VALID)
    stage.deliver("schedule", after=600)
    assert (branches(stage), len(stage.comments(3)), len(stage.comments(number))) == (before, 1, 1)


@pytest.mark.parametrize("how", UNREADABLE)
def test_while_no_setting_can_be_read_the_last_ones_count(
    stage: Stage, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    stage.run_git("update-ref", "refs/heads/precedent", "memory")  # a copy, which says that it is not the memory
    stage.git.commit(REPOSITORY, "records/0000/1.json", "{", "refs/heads/not-a-memory")
    before = branches(stage)
    stage.configure(UNREADABLE[how])
    numbers = [stage.github.open_issue(author, "Logged out, too", "See #1.") for author in ("octocat", "shy-person")]
    for number in numbers:
        stage.deliver("issues", "opened", number, code=2)
    assert [".github/precedent.yml" in line for line in errors(capfd.readouterr().out)] == [True, True]
    assert (branches(stage), [stage.comments(number) for number in numbers]) == (before, [[], []])
    with BranchStore(f"{stage.git.url}/{REPOSITORY}.git", "memory", stage.git.token) as store:
        answers = Memory(store, repo=REPOSITORY).open().state.comments(numbers)
        assert [answers[number].state for number in numbers] == ["pending", "silent"]
    stage.configure(VALID)
    stage.deliver("schedule", after=600)
    assert [len(stage.comments(number)) for number in (3, *numbers)] == [1, 1, 0]
    assert branches(stage) == before


@pytest.mark.parametrize("stored", ["- branch\n- memory\n", "\0", "branch: other\n"])
def test_without_a_memory_that_says_what_the_settings_were_nothing_begins(
    empty_stage: Stage, stored: str, capfd: pytest.CaptureFixture[str]
) -> None:
    empty_stage.configure("- branch\n- memory\n")
    empty_stage.git.commit(REPOSITORY, "settings.yml", stored, "refs/heads/memory")
    words = ("commit-tree", "memory^{tree}", "-m", "Remember\n\nPrecedent-Commits: 1\nPrecedent-Bytes: 1")
    empty_stage.run_git("update-ref", "refs/heads/memory", empty_stage.run_git(*words))
    before = branches(empty_stage)
    empty_stage.deliver("schedule", code=2)
    assert [".github/precedent.yml" in line for line in errors(capfd.readouterr().out)] == [True]
    assert branches(empty_stage) == before
