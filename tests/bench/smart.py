"""At which rank the work at hand brings the issue that its next commit will close.

``python -m tests.bench.smart [--json FILE] [--threads FILE] [--git DIR]``

Each case is the moment before a commit that says "Fixes #N": the branch's name, the messages of the commits before it,
and its files as they are changed in the working tree; never the commit's own message. Threads are as they stood then.
Without ``--git`` the commits are made up, always the same: for issues that were closed, branches with the number and
words, with words of the issue alone, and with names that say nothing, in a real repository, among commits about
something else. Words of a made-up branch are drawn from the issue, so these figures compare ways of searching with each
other and do not say how well branches are named.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from bot.domain.card import Worktree
from bot.domain.thread import Kind, Thread
from bot.domain.thread_json import thread_from_archive
from bot.questions.requests import SmartSearch, WorkRequest
from bot.questions.smart_search import smart
from bot.questions.what import find_what
from bot.ranking.fit import paired_interval
from bot.reading.analyzer import OTHER_STOP_WORDS, terms
from bot.reading.digest import digest
from bot.reading.references import find_references
from bot.recall.mentions import telling_files
from tests.questions.shelf import Shelf

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "history.jsonl"
SEED = 20261122
KINDS = ("number and words", "words", "says nothing", "no issue")
_DEEP = 20
_WORD = re.compile(r"[A-Za-z]{3,14}", re.ASCII)
_FOREIGN = ("handler", "cleanup", "crash", "bug", "regression", "edge", "helper")
_NOTHING = ("wip", "patch-1", "octocat-patch-2", "dev-test", "my-branch", "tmp", "fix")
_UNRELATED = ("bump-linter", "ci-cache-key", "spelling-in-readme", "pin-actions", "octocat/editorconfig", "coverage")
_STEPS = ("Start on it", "Add a failing test", "First try", "Move things around", "wip", "Make room for it")
_OTHERS = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    ".github/workflows/ci.yml",
    "docs/index.md",
    "tests/conftest.py",
)
_ROOT = re.compile(r"^(?:.*/site-packages/|/app/|/usr/src/|[A-Za-z]:|/home/[^/]*/|[/\\]|\.\.?/)+")


@dataclass(frozen=True)
class Commit:
    """A commit that was read from git; ``branch`` is the name under which it came to the main branch."""

    id: str
    parents: tuple[str, ...]
    at: datetime
    message: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """What was known right before a commit; ``target`` is the issue that it closes, None for one about none."""

    kind: str
    checkout: Worktree
    moment: datetime
    target: int | None


@dataclass(frozen=True)
class Row:
    """Figures for some cases and one way of searching. ``mrr`` and ``over_plain`` are of the reciprocal rank."""

    kind: str
    way: str
    cases: int
    at_1: float
    at_3: float
    at_10: float
    mrr: float
    answered: float
    over_plain: tuple[float, float, float] | None


def plain(case: Case, shelf: Shelf) -> list[object]:
    """A search with the branch's name and nothing else."""
    words = re.sub(r"[/\-_.#]+", " ", case.checkout.branch)
    return [one.card.id for one in shelf.search(dict.fromkeys(terms(words), 1.0), limit=_DEEP)]


def by_smart(case: Case, shelf: Shelf) -> list[object]:
    return [one.card.id for one in smart(SmartSearch("", case.checkout, case.moment), shelf).hits]


def by_what(case: Case, shelf: Shelf) -> list[object]:
    """What is related, then what is open."""
    found = find_what(WorkRequest(case.checkout, case.moment), shelf)
    return list(dict.fromkeys(one.card.id for one in (*found.related, *found.tasks)))


WAYS: dict[str, Callable[[Case, Shelf], list[object]]] = {"plain": plain, "ss": by_smart, "what": by_what}


def read_threads(path: Path) -> list[Thread]:
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
    return [thread_from_archive(json.loads(line)) for line in lines]


def make_history(threads: Sequence[Thread], folder: Path, most: int = 60) -> None:
    """A repository with branches that close these threads' issues, and others, merged in order of time."""
    chance = Random(SEED)
    issues = [each for each in threads if each.kind is Kind.ISSUE and each.closed_at and isinstance(each.id, int)]
    ended = [(each, digest(each)) for each in issues]
    fixed = [each for each, brief in ended if brief.duplicate_of is None and brief.outcome.kind.value == "fixed"]
    fixed = sorted(chance.sample(fixed, min(most, len(fixed))), key=lambda each: each.created_at)
    named = {each.id: files_of(each, threads) for each in fixed}
    pool = sorted({path for each in threads for path in files_of(each, ())})
    stream: list[str] = []
    moments = {
        each.id: each.created_at + 0.6 * ((each.closed_at or each.created_at) - each.created_at) for each in fixed
    }
    mark = main = 1
    stream.append(_commit(mark, 0, "Begin", ["README.md"], []))
    for issue in sorted(fixed, key=lambda each: moments[each.id]):
        for kind in KINDS:
            branch = _branch(issue, kind, chance)
            noise = chance.sample(pool, min(len(pool), chance.randint(0, 2))) + chance.sample(_OTHERS, 1)
            files = noise if kind == "no issue" else [*named[issue.id], *noise]
            at = int(moments[issue.id].timestamp())
            fixes = "" if kind == "no issue" else f"\n\nFixes #{issue.id}"
            steps = [(chance.choice(_STEPS), chance.sample(_OTHERS, 1)), (f"Make it so{fixes}", files)]
            tip = main
            for message, paths in steps:
                mark += 1
                stream.append(_commit(mark, at, message, paths, [tip]))
                tip = mark
            mark += 1
            merge = f"Merge pull request #{90_000 + mark} from octocat:{branch}\n\nkind: {kind}"
            stream.append(_commit(mark, at + 60, merge, [], [main, tip]))
            main = mark
    _git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    _git(folder, "fast-import", "--quiet", stdin="".join(stream).encode())


def files_of(thread: Thread, threads: Iterable[Thread]) -> list[str]:
    """The files of the repository that the thread, or the pull request that it was fixed by, names."""
    brief = digest(thread)
    fix = brief.outcome.fix or ""
    paths = list(brief.files) + [path for each in threads if f"#{each.id}" == fix for path in digest(each).files]
    return [path for path in telling_files(_ROOT.sub("", path) for path in paths) if path and ".." not in path][:4]


def _branch(issue: Thread, kind: str, chance: Random) -> str:
    if kind == "no issue":
        return chance.choice(_UNRELATED)
    if kind == "says nothing":
        return chance.choice(_NOTHING)
    title, body = ([word.lower() for word in _WORD.findall(text)] for text in (issue.title, issue.body[:600]))
    words = [word for word in dict.fromkeys(title) if word not in OTHER_STOP_WORDS and terms(word)]
    more = [word for word in dict.fromkeys(body) if word not in OTHER_STOP_WORDS and word not in words and terms(word)]
    drawn = chance.sample(words, min(2, len(words))) + chance.sample(more, min(1, len(more)))
    name = "-".join([*drawn, *([chance.choice(_FOREIGN)] if chance.random() < 0.5 else [])])
    prefix = chance.choice(["fix/", "feature/", "octocat/", "", "bugfix/"])
    return f"{prefix}{issue.id}-{name}" if kind == KINDS[0] else f"{prefix}{name}"


def _commit(mark: int, at: int, message: str, paths: Iterable[str], parents: Sequence[int]) -> str:
    text = [f"commit refs/heads/main\nmark :{mark}\ncommitter octocat <octocat@example.org> {at} +0000\n"]
    text.append(f"data {len(message.encode())}\n{message}\n")
    text += [f"{word} :{parent}\n" for word, parent in zip(("from", "merge"), parents, strict=False)]
    for path in paths:
        text.append(f"M 100644 inline {json.dumps(path, ensure_ascii=False)}\ndata {len(str(mark))}\n{mark}\n")
    return "".join([*text, "\n"])


def _git(folder: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(("git", *args), cwd=folder, input=stdin, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def commits(folder: Path) -> dict[str, Commit]:
    """All commits of the current branch by id."""
    asked = ("log", "-z", "--no-renames", "--name-only", "--format=%x00%H %ct %P%x00%B", "HEAD")
    items = _git(folder, *asked).split("\0")
    head = re.compile(r"[0-9a-f]{40} \d+(?: [0-9a-f]{40})* ?")
    starts = [at for at in range(len(items) - 1) if head.fullmatch(items[at]) and not items[at - 1]]
    found = {}
    for start, end in zip(starts, [*starts[1:], len(items)], strict=True):
        own, at, *parents = items[start].split()
        files = tuple(path.strip("\n") for path in items[start + 2 : end] if path.strip("\n"))
        moment = datetime.fromtimestamp(int(at), UTC)
        found[own] = Commit(own, tuple(parents), moment, items[start + 1].strip(), files)
    return found


def cases(folder: Path) -> Iterator[Case]:
    """One for each commit of a merged branch that closes an issue; and for branches that close none, their last."""
    known = commits(folder)
    for merge in known.values():
        named = re.match(r"Merge (?:pull request #\d+ from [^\s:/]+[:/]|branch ')([^\s']+)", merge.message)
        if not named or len(merge.parents) != 2:
            continue
        before, main = [], set(_line(known, merge.parents[0]))
        for own in _line(known, merge.parents[1]):
            if own in main:
                break
            before.append(known[own])
        closing: list[tuple[int, int | None]] = [
            (at, number) for at, commit in enumerate(before) if (number := _closes(commit.message))
        ]
        for at, number in closing or ([(0, None)] if before else []):
            yield _case(named[1], before[at:], number, merge.message)


def _case(branch: str, commits_: list[Commit], target: int | None, told: str) -> Case:
    commit, *earlier = commits_
    touched = tuple(dict.fromkeys(path for one in earlier[:5] for path in one.files))
    messages = tuple(one.message for one in earlier[:5])
    name = "" if branch in ("main", "master") else branch
    made = told.rpartition("\nkind: ")[2]
    kind = made if made in KINDS else _kind(name, target)
    checkout = Worktree(name, messages, modified=commit.files, recent=touched, is_own=bool(earlier))
    return Case(kind, checkout, commit.at - timedelta(seconds=1), target)


def _kind(branch: str, target: int | None) -> str:
    if target is None:
        return "no issue"
    return KINDS[0] if str(target) in re.findall(r"\d+", branch) else KINDS[1]


def _line(known: dict[str, Commit], tip: str) -> Iterator[str]:
    """A commit and its first parents."""
    while tip in known:
        yield tip
        tip = known[tip].parents[0] if known[tip].parents else ""


def _closes(message: str) -> int | None:
    return next((each.number for each in find_references(message) if each.action == "closes" and not each.owner), None)


def ranks(threads: Sequence[Thread], found: Iterable[Case]) -> dict[str, list[tuple[Case, int, bool]]]:
    """For each way each case with the rank of its issue (0 where it was not found) and whether anything was."""
    told: dict[str, list[tuple[Case, int, bool]]] = defaultdict(list)
    shelves: dict[datetime, Shelf] = {}
    for case in found:
        if case.moment not in shelves:
            shelves = {case.moment: Shelf.of(threads, case.moment)}
        shelf = shelves[case.moment]
        if case.target is not None and not shelf.cards([case.target]):
            continue
        for name, way in WAYS.items():
            ids = way(case, shelf)
            told[name].append((case, ids.index(case.target) + 1 if case.target in ids else 0, bool(ids)))
    return told


def rows(told: dict[str, list[tuple[Case, int, bool]]]) -> Iterator[Row]:
    for kind in (*KINDS, "all with an issue"):
        base: list[float] = []
        for name, each in told.items():
            part = [one for one in each if one[0].kind == kind or (kind == "all with an issue" and one[0].target)]
            if not part:
                continue
            credit = [1 / rank if rank else 0.0 for _, rank, _ in part]
            base = credit if name == "plain" else base
            over = paired_interval(credit, base, SEED) if name != "plain" and kind != "no issue" else None
            at = [sum(0 < rank <= top for _, rank, _ in part) / len(part) for top in (1, 3, 10)]
            answered = sum(is_answered for _, _, is_answered in part) / len(part)
            yield Row(kind, name, len(part), at[0], at[1], at[2], sum(credit) / len(part), answered, over)


def table(found: Iterable[Row]) -> str:
    lines = ["| branch | way | cases | @1 | @3 | @10 | MRR | answers | MRR over plain (95 %) |", "|---" * 9 + "|"]
    for row in found:
        over = "{:+.3f} ({:+.3f} to {:+.3f})".format(*row.over_plain) if row.over_plain else ""
        figures = " | ".join(f"{each:.3f}" for each in (row.at_1, row.at_3, row.at_10, row.mrr, row.answered))
        lines.append(f"| {row.kind} | {row.way} | {row.cases} | {figures} | {over} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=Path, default=SAMPLE, help="an archive of threads (.jsonl or .jsonl.gz)")
    parser.add_argument("--git", type=Path, help="a repository whose threads these are")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    threads = read_threads(given.threads)
    with tempfile.TemporaryDirectory() as folder:
        if not given.git:
            make_history(threads, Path(folder))
        found = sorted(cases(given.git or Path(folder)), key=lambda case: case.moment)
    measured = list(rows(ranks(threads, found)))
    print(table(measured))
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in measured], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
