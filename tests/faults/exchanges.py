# ruff: noqa: E501 - a trouble is a row
"""Git: what can go wrong when memory is read and written, and what is to come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
NOTHING = "Nothing is written and nothing is said; the next run lists the same and makes up for it."

ROWS = (
    Row("fetch: 401", struck(FETCH, "401"), later(1, "git fetch"), "The remedy. " + NOTHING),
    Row("fetch: 403", struck(FETCH, "permission"), later(1, "contents: write"), "The permission is named. " + NOTHING),
    Row("fetch: 404", struck(FETCH, "404"), later(1, "git fetch"), "A private repository for a token that may not see it."),
    Row("fetch: 5xx", struck(FETCH, "5xx"), later(1, "git fetch"), "Three tries with growing pauses. " + NOTHING),
    Row("fetch: 5xx once", struck(FETCH, "5xx", 1), FINE, "Tried again."),
    Row("fetch: dropped", struck(FETCH, "drop"), later(1, "git fetch"), NOTHING),
    Row("fetch: dropped once", struck(FETCH, "drop", 1), FINE, "Tried again."),
    Row("fetch: slow", struck(FETCH, "slow", 2), FINE, "Up to 300 seconds a call, and not below 1,000 bytes a second."),
    Row("push: 401", struck(PUSH, "401"), later(1, "git push"), "What is not saved is not posted: no comment. " + NOTHING),
    Row("push: 403", struck(PUSH, "permission"), later(1, "contents: write"), "The permission is named; no comment."),
    Row("push: 404", struck(PUSH, "404"), later(1, "git push"), NOTHING),
    Row("push: 429", struck(PUSH, "429"), later(1, "git push"), "Three tries with pauses, then the next run."),
    Row("push: 5xx", struck(PUSH, "5xx"), later(1, "git push"), "Three tries with pauses, then the next run."),
    Row("push: 5xx once", struck(PUSH, "5xx", 1), FINE, "Tried again: a push that arrived twice moves the branch once."),
    Row("push: dropped once", struck("POST " + PUSH, "drop", 1), FINE, "Tried again."),
    Row("push: lost reply", struck("POST " + PUSH, "dup", 1), FINE,
        "The push was done and nobody said so: where the branch stands tells it."),
    Row("push: slow", struck(PUSH, "slow", 2), FINE, "Waited for."),
    Row("push: page of a proxy", struck(PUSH, "html"), later(1, "git push"), NOTHING),
    Row("protected branch (GH006)", ruled("GH006"), later(1, "GH006"), "The rule, and the two ways out of it. " + NOTHING),
    Row("ruleset (GH013)", ruled("GH013"), later(1, "GH013"), "The rule, and the two ways out of it. " + NOTHING),
    Row("archived repository", archived, later(0, "archived"), "The run ends well with a notice; no second try."),
    Row("somebody pushed first", meanwhile(raced), FINE, "The changes of the run are put on the new tip, and pushed again."),
    Row("branch deleted in the run", meanwhile(deleted), FINE, "It is made anew from what the run holds."),
    Row("branch squashed in the run", meanwhile(foreign), FINE, "Its manifest is valid: the changes are put on it."),
    Row("branch set back in the run", meanwhile(set_to_first), FINE, "Likewise; what is missing is caught up with."),
    Row("branch deleted before", deleted, FINE, "History is read again; a comment that stands is found by its marker."),
    Row("branch set back before", set_to_first, FINE, "Its cursor is older, and so is what is asked for."),
    Row("branch of another past", foreign, FINE, "Its manifest is valid: it is taken, and caught up with from its cursor."),
    Row("branch of another project", strange, later(1, "choose another branch"), "Somebody's files are not written over.", deleted),
    Row("manifest missing", no_manifest, FINE, "Read again from the records, and said."),
    Row("index file cut", cut("index"), FINE, "The index is made anew from the records, and the run says so."),
    Row("record cut", cut("records"), FINE, "That one thread is read again from GitHub."),
    Row("newer format", newer, later(2, "newer Precedent"),
        "It is not touched, and nothing is posted until this version is updated. "
        "The way back is by hand: delete the branch, and history is read again.", one_back),
)  # fmt: skip


def play(row: Row, on: Stages) -> Played:
    """The run that meets the trouble, and the next one, which meets none."""
    scene = SCENES["opened"]
    theatre, event = on.at(scene)
    row.make(theatre)
    code = theatre.act(*event)
    return after(code, scene, theatre, [], scene.due, row.mend)


def chapter() -> Iterator[str]:
    """The part of the page about git."""
    yield "### Git\n"
    yield "An issue was opened that points at a decision.\n"
    yield "| trouble | exit | what was due | remembered | why |"
    yield "|---|---|---|---|---|"
    for row in ROWS:
        when = {"now": "this run", "later": "next run", "never": "never"}[row.outcome.done]
        yield f"| {row.name} | {row.outcome.code} | {when} | {'yes' if row.outcome.remembers else 'next run'} | {row.why} |"
