# ruff: noqa: E501 - a trouble is a row
"""Git: what can go wrong when memory is read and written, and what is to come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.acceptance.stage import REPOSITORY
from tests.fakes.faults import Fault, FaultPlan
from tests.faults.cells import Outcome, Played, Stages, after
from tests.faults.scenes import SCENES
from tests.faults.theatre import Theatre

BRANCH = "refs/heads/precedent"
FETCH, PUSH = "*git-upload-pack*", "*git-receive-pack*"
Trouble = Callable[[Theatre], None]


@dataclass(frozen=True)
class Row:
    """A trouble, how it is made, and what is to come of it in the scene in which an issue was opened."""

    name: str
    make: Trouble
    outcome: Outcome
    why: str
    mend: Trouble = Theatre.calm


class Meanwhile(FaultPlan):
    """No fault, but something that somebody else does just before our first push arrives."""

    def __init__(self, deed: Callable[[], None]) -> None:
        super().__init__()
        self._deed: Callable[[], None] | None = deed

    def strike(self, request: str) -> Fault | None:
        if self._deed and request.startswith("POST") and request.endswith("git-receive-pack"):
            deed, self._deed = self._deed, None
            deed()
        return super().strike(request)


def struck(match: str, kind: str, times: int | None = None, seconds: float = 0.3) -> Trouble:
    def make(t: Theatre) -> None:
        t.git.faults.add(match, kind, times, seconds=seconds)

    return make


def meanwhile(deed: Trouble) -> Trouble:
    def make(t: Theatre) -> None:
        t.git.faults = Meanwhile(lambda: deed(t))

    return make


def ruled(rule: str) -> Trouble:
    return lambda t: t.git.protect(REPOSITORY, "precedent", rule)


def archived(t: Theatre) -> None:
    t.refuse_pushes("This repository was archived so it is read-only.")


def deleted(t: Theatre) -> None:
    t.run_git("update-ref", "-d", BRANCH)


def raced(t: Theatre) -> None:
    """Somebody else's commit on the tip, with all that is there."""
    t.put(parents=[BRANCH])


def foreign(t: Theatre) -> None:
    """The same files, with another past."""
    t.put(parents=[])


def strange(t: Theatre) -> None:
    """Another project's files."""
    t.put({"README": b"Not a memory.\n"}, parents=[], anew=True)


def set_to_first(t: Theatre) -> None:
    """Back to the first commit of the branch."""
    t.run_git("update-ref", BRANCH, t.run_git("rev-list", "--max-parents=0", BRANCH))


def newer(t: Theatre) -> None:
    t.put({"manifest.json": b'{"format": 99}'}, parents=[BRANCH])


def one_back(t: Theatre) -> None:
    t.run_git("update-ref", BRANCH, f"{BRANCH}^")


def no_manifest(t: Theatre) -> None:
    t.put({"manifest.json": None}, parents=[BRANCH])


def cut(folder: str) -> Trouble:
    """The first file of a folder ends in its middle."""

    def make(t: Theatre) -> None:
        path = t.run_git("ls-tree", "-r", "--name-only", BRANCH, f"{folder}/").split("\n")[0]
        whole = t.run_git("cat-file", "blob", f"{BRANCH}:{path}", raw=True)
        assert isinstance(whole, bytes)
        t.put({path: whole[: len(whole) // 2]}, parents=[BRANCH])

    return make


def later(code: int, says: str) -> Outcome:
    return Outcome(code, says, "later", False)


FINE = Outcome(0, "", "now", True)
NOTHING = "Nothing is written or posted."

ROWS = (
    Row("fetch: 401", struck(FETCH, "401"), later(1, "git fetch"), "The error names the remedy. " + NOTHING),
    Row("fetch: 403", struck(FETCH, "permission"), later(1, "contents: write"), "The error names the remedy. " + NOTHING),
    Row("fetch: 404", struck(FETCH, "404"), later(1, "git fetch"), NOTHING),
    Row("fetch: 5xx", struck(FETCH, "5xx"), later(1, "git fetch"), "Three tries with growing pauses. " + NOTHING),
    Row("fetch: 5xx once", struck(FETCH, "5xx", 1), FINE, "The request is repeated."),
    Row("fetch: dropped", struck(FETCH, "drop"), later(1, "git fetch"), NOTHING),
    Row("fetch: dropped once", struck(FETCH, "drop", 1), FINE, "The request is repeated."),
    Row("fetch: slow", struck(FETCH, "slow", 2), FINE, "Allowed: up to 300 seconds, and at least 1,000 bytes per second."),
    Row("push: 401", struck(PUSH, "401"), later(1, "git push"), "The error names the remedy. " + NOTHING),
    Row("push: 403", struck(PUSH, "permission"), later(1, "contents: write"), "The error names the remedy. " + NOTHING),
    Row("push: 404", struck(PUSH, "404"), later(1, "git push"), NOTHING),
    Row("push: 429", struck(PUSH, "429"), later(1, "git push"), "Three tries with growing pauses. " + NOTHING),
    Row("push: 5xx", struck(PUSH, "5xx"), later(1, "git push"), "Three tries with growing pauses. " + NOTHING),
    Row("push: 5xx once", struck(PUSH, "5xx", 1), FINE, "The request is repeated."),
    Row("push: dropped once", struck("POST " + PUSH, "drop", 1), FINE, "The request is repeated."),
    Row("push: lost reply", struck("POST " + PUSH, "dup", 1), FINE, "The run sees from the branch that the push arrived."),
    Row("push: slow", struck(PUSH, "slow", 2), FINE, "Allowed: up to 300 seconds, and at least 1,000 bytes per second."),
    Row("push: page of a proxy", struck(PUSH, "html"), later(1, "git push"), NOTHING),
    Row("protected branch (GH006)", ruled("GH006"), later(1, "GH006"), "The error names the remedy. " + NOTHING),
    Row("ruleset (GH013)", ruled("GH013"), later(1, "GH013"), "The error names the remedy. " + NOTHING),
    Row("archived repository", archived, later(0, "archived"), "The run succeeds with a notice, and does not try again."),
    Row("somebody pushed first", meanwhile(raced), FINE, "The run applies its changes to the new tip and pushes again."),
    Row("branch deleted in the run", meanwhile(deleted), FINE, "The run creates it again from what it holds."),
    Row("branch squashed in the run", meanwhile(foreign), FINE, "The changes are applied to it; later runs read what is missing."),
    Row("branch set back in the run", meanwhile(set_to_first), FINE, "The changes are applied to it; later runs read what is missing."),
    Row("branch deleted before", deleted, FINE, "History is read again; existing comments are found by their marker."),
    Row("branch set back before", set_to_first, FINE, "Its cursor is older, so the run reads more."),
    Row("branch of another past", foreign, FINE, "Its manifest is valid, so the run continues from its cursor."),
    Row("branch of another project", strange, later(1, "choose another branch"), "Foreign files are never overwritten.", deleted),
    Row("manifest missing", no_manifest, FINE, "It is rebuilt from the records, and the run says so."),
    Row("index file cut", cut("index"), FINE, "The index is rebuilt from the records, and the run says so."),
    Row("record cut", cut("records"), FINE, "That one thread is read again from GitHub."),
    Row("newer format", newer, later(2, "newer Precedent"),
        "The branch is not touched and nothing is posted until you upgrade. To go back, delete the branch; history is read again.", one_back),
)  # fmt: skip


def play(row: Row, on: Stages) -> Played:
    """The run that meets the trouble, and the next one, which meets none."""
    scene = SCENES["opened"]
    theatre, event = on.at(scene)
    row.make(theatre)
    code = theatre.act(*event)
    return after(code, scene, theatre, [], scene.due, row.mend)


def chapter(when: Mapping[str, str]) -> Iterator[str]:
    """The part of the page about git."""
    yield "## Git\n"
    yield "A new issue mentions a decision.\n"
    yield "| trouble | exit | comment posted by | why |"
    yield "|---|---|---|---|"
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in ROWS:
        groups.setdefault((f"{row.outcome.code}", when[row.outcome.done], row.why), []).append(row.name)
    yield from (f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in groups.items())
