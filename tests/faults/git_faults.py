# ruff: noqa: E501 - a trouble is a row
"""Git: what can go wrong when memory is read and written, and the expected outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.acceptance.bare_repository import Bare
from tests.acceptance.stage import BRANCH, REPOSITORY
from tests.fakes.faults import Fault, FaultPlan
from tests.faults.fault_runs import CellResult, Outcome, Playhouse, finish_cell
from tests.faults.logged_stage import LoggedStage
from tests.faults.scenes import SCENES

FETCH, PUSH = "*git-upload-pack*", "*git-receive-pack*"
Trouble = Callable[[LoggedStage], None]


@dataclass(frozen=True)
class Row:
    """A trouble, how to cause it, and the expected outcome in the scene in which an issue was opened."""

    name: str
    cause: Trouble
    outcome: Outcome
    why: str
    repair: Trouble = LoggedStage.clear_faults


class BeforePush(FaultPlan):
    """No fault, but an action of somebody else just before our first push arrives."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__()
        self._action: Callable[[], None] | None = action

    def strike(self, request: str) -> Fault | None:
        if self._action and request.startswith("POST") and request.endswith("git-receive-pack"):
            action, self._action = self._action, None
            action()
        return super().strike(request)


def git_fault(match: str, kind: str, times: int | None = None, seconds: float = 0.3) -> Trouble:
    def cause(t: LoggedStage) -> None:
        t.git.faults.add(match, kind, times, seconds=seconds)

    return cause


def before_push(action: Trouble) -> Trouble:
    def cause(t: LoggedStage) -> None:
        t.git.faults = BeforePush(lambda: action(t))

    return cause


def branch_rule(rule: str) -> Trouble:
    return lambda t: t.git.protect(REPOSITORY, "precedent", rule)


def archive_repository(t: LoggedStage) -> None:
    t.git.protect(REPOSITORY, "precedent", "archived")


def delete_branch(t: LoggedStage) -> None:
    t.run_git("update-ref", "-d", BRANCH)


def commit_again(*options: str) -> Trouble:
    """Somebody else's commit with the same files."""

    def cause(t: LoggedStage) -> None:
        commit = t.run_git("commit-tree", f"{BRANCH}^{{tree}}", *options, "-m", "Somebody else")
        t.run_git("update-ref", BRANCH, commit)

    return cause


push_another_commit, replace_history = commit_again("-p", BRANCH), commit_again()


def replace_with_other_project(t: LoggedStage) -> None:
    delete_branch(t)
    t.git.commit(REPOSITORY, "README", b"Not a memory.\n", BRANCH)


def reset_to_first_commit(t: LoggedStage) -> None:
    """Back to the first commit of the branch."""
    t.run_git("update-ref", BRANCH, t.run_git("rev-list", "--max-parents=0", BRANCH))


def reset_one_commit(t: LoggedStage) -> None:
    t.run_git("update-ref", BRANCH, f"{BRANCH}^")


def write_manifest(content: bytes | None) -> Trouble:
    return lambda t: t.git.commit(REPOSITORY, "manifest.json", content, BRANCH)


def truncate_first_file(folder: str) -> Trouble:
    """Cut the first file of a folder in half."""

    def cause(t: LoggedStage) -> None:
        snapshot = Bare(t.bare).snapshot()
        path, content = next(iter(snapshot.read(snapshot.paths(folder)).items()))
        t.git.commit(REPOSITORY, path, content[: len(content) // 2], BRANCH)

    return cause


def later(code: int, says: str) -> Outcome:
    return Outcome(code, says, "later", False)


FINE = Outcome(0, "", "now", True)
NOTHING = "Nothing is written or posted."

ROWS = (
    Row("fetch: 401", git_fault(FETCH, "401"), later(1, "git fetch"), "The error names the remedy. " + NOTHING),
    Row("fetch: 403", git_fault(FETCH, "permission"), later(1, "contents: write"), "The error names the remedy. " + NOTHING),
    Row("fetch: 404", git_fault(FETCH, "404"), later(1, "git fetch"), NOTHING),
    Row("fetch: 5xx", git_fault(FETCH, "5xx"), later(1, "git fetch"), "Three tries with growing pauses. " + NOTHING),
    Row("fetch: 5xx once", git_fault(FETCH, "5xx", 1), FINE, "The request is repeated."),
    Row("fetch: dropped", git_fault(FETCH, "drop"), later(1, "git fetch"), NOTHING),
    Row("fetch: dropped once", git_fault(FETCH, "drop", 1), FINE, "The request is repeated."),
    Row("fetch: slow", git_fault(FETCH, "slow", 2), FINE, "Allowed: up to 300 seconds, and at least 1,000 bytes per second."),
    Row("push: 401", git_fault(PUSH, "401"), later(1, "git push"), "The error names the remedy. " + NOTHING),
    Row("push: 403", git_fault(PUSH, "permission"), later(1, "contents: write"), "The error names the remedy. " + NOTHING),
    Row("push: 404", git_fault(PUSH, "404"), later(1, "git push"), NOTHING),
    Row("push: 429", git_fault(PUSH, "429"), later(1, "git push"), "Three tries with growing pauses. " + NOTHING),
    Row("push: 5xx", git_fault(PUSH, "5xx"), later(1, "git push"), "Three tries with growing pauses. " + NOTHING),
    Row("push: 5xx once", git_fault(PUSH, "5xx", 1), FINE, "The request is repeated."),
    Row("push: dropped once", git_fault("POST " + PUSH, "drop", 1), FINE, "The request is repeated."),
    Row("push: lost reply", git_fault("POST " + PUSH, "dup", 1), FINE, "The run sees from the branch that the push arrived."),
    Row("push: slow", git_fault(PUSH, "slow", 2), FINE, "Allowed: up to 300 seconds, and at least 1,000 bytes per second."),
    Row("push: page of a proxy", git_fault(PUSH, "html"), later(1, "git push"), NOTHING),
    Row("protected branch (GH006)", branch_rule("GH006"), later(1, "GH006"), "The error names the remedy. " + NOTHING),
    Row("ruleset (GH013)", branch_rule("GH013"), later(1, "GH013"), "The error names the remedy. " + NOTHING),
    Row("push protection", branch_rule("push protection"), later(1, "Push cannot contain secrets"), "A text that the error names is left out, and the push repeated. Else, the error names the remedy. " + NOTHING),
    Row("archived repository", archive_repository, later(0, "archived"), "The run succeeds with a notice, and does not try again."),
    Row("somebody pushed first", before_push(push_another_commit), FINE, "The run applies its changes to the new tip and pushes again."),
    Row("branch deleted in the run", before_push(delete_branch), FINE, "The run creates it again from what it holds."),
    Row("branch squashed in the run", before_push(replace_history), FINE, "The changes are applied to it; later runs read what is missing."),
    Row("branch set back in the run", before_push(reset_to_first_commit), FINE, "The changes are applied to it; later runs read what is missing."),
    Row("branch deleted before", delete_branch, FINE, "History is read again; existing comments are found by their marker."),
    Row("branch set back before", reset_to_first_commit, FINE, "Its cursor is older, so the run reads more."),
    Row("branch of another past", replace_history, FINE, "Its manifest is valid, so the run continues from its cursor."),
    Row("branch of another project", replace_with_other_project, later(1, "choose another branch"), "Foreign files are never overwritten.", delete_branch),
    Row("manifest missing", write_manifest(None), FINE, "It is rebuilt from the records, and the run says so."),
    Row("index file cut", truncate_first_file("index"), FINE, "The index is rebuilt from the records, and the run says so."),
    Row("record cut", truncate_first_file("records"), FINE, "That one thread is read again from GitHub."),
    Row("newer format", write_manifest(b'{"format": 99}'), later(2, "newer Precedent"),
        "The branch is not touched and nothing is posted until you upgrade. To go back, delete the branch; history is read again.", reset_one_commit),
)  # fmt: skip


def play(row: Row, house: Playhouse) -> CellResult:
    """Run the Action with the trouble, and then once without it."""
    scene = SCENES["opened"]
    stage, event = house.begin(scene)
    row.cause(stage)
    code = stage.act(*event)
    return finish_cell(code, scene, stage, [], scene.due, row.repair)
