"""Measures at which rank the current work brings up the issue that its next commit will close.

``python -m bench.smart_search [--json FILE] [--threads FILE] [--git DIR]``

Each case is the moment before a commit that says "Fixes #N": the branch's name, the messages of earlier commits, and
the commit's files as changes in the working tree, but never its message. Threads are as they were then. Without
``--git`` the commits are generated, always the same ones: for closed issues, branches with the number and words, with
words of the issue alone, and with meaningless names, in a real repository, among commits about other topics. Words of a
generated branch are drawn from the issue, so these figures compare search methods with each other and do not say how
well branches are named.
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

from bench.archives import ROOT
from bot.domain.card import Worktree, WorktreeCommit
from bot.domain.thread import Kind, Thread
from bot.domain.thread_json import thread_from_archive
from bot.questions.requests import WorkRequest
from bot.questions.work import find_for_work
from bot.ranking.fit import paired_interval
from bot.reading.analyzer import FOREIGN_STOP_WORDS, terms
from bot.reading.digest import digest
from bot.reading.references import find_references
from bot.recall.mentions import telling_files
from tests.questions.in_memory_cards import InMemoryCards

SAMPLE = ROOT / "sample" / "history.jsonl"
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
    """A commit read from git."""

    id: str
    parents: tuple[str, ...]
    at: datetime
    message: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """What was known right before a commit; ``target`` is the issue that it closes, if any."""

    kind: str
    checkout: Worktree
    moment: datetime
    target: int | None


@dataclass(frozen=True)
class Row:
    """Figures for some cases and one search method. ``mrr`` and ``over_plain`` are of the reciprocal rank."""

    kind: str
    way: str
    cases: int
    at_1: float
    at_3: float
    at_10: float
    mrr: float
    answered: float
    over_plain: tuple[float, float, float] | None


def plain(case: Case, shelf: InMemoryCards) -> list[object]:
    """A search with only the branch's name."""
    words = re.sub(r"[/\-_.#]+", " ", case.checkout.branch)
    return [hit.card.id for hit in shelf.search(dict.fromkeys(terms(words), 1.0), limit=_DEEP)]


def by_smart(case: Case, shelf: InMemoryCards) -> list[object]:
    request = WorkRequest(case.checkout, case.moment, is_search=True)
    return [hit.card.id for hit in find_for_work(request, shelf).threads]


def by_what(case: Case, shelf: InMemoryCards) -> list[object]:
    """Related threads, then open tasks near the work."""
    work = find_for_work(WorkRequest(case.checkout, case.moment), shelf)
    tasks = work.tasks if work.has_near_tasks else ()
    return list(dict.fromkeys(hit.card.id for hit in (*work.threads, *tasks)))


METHODS: dict[str, Callable[[Case, InMemoryCards], list[object]]] = {"plain": plain, "ss": by_smart, "what": by_what}


def read_threads(path: Path) -> list[Thread]:
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
    return [thread_from_archive(json.loads(line)) for line in lines]


def make_history(threads: Sequence[Thread], folder: Path, most: int = 60) -> None:
    """Write a repository with branches that close these threads' issues, and others, merged in order of time."""
    rng = Random(SEED)
    issues = [each for each in threads if each.kind is Kind.ISSUE and each.closed_at and isinstance(each.id, int)]
    digested = [(each, digest(each)) for each in issues]
    fixed = [each for each, brief in digested if brief.duplicate_of is None and brief.outcome.kind.value == "fixed"]
    fixed = sorted(rng.sample(fixed, min(most, len(fixed))), key=lambda each: each.created_at)
    issue_files = {each.id: files_of(each, threads) for each in fixed}
    pool = sorted({path for each in threads for path in files_of(each, ())})
    stream: list[str] = []
    moments = {
        each.id: each.created_at + 0.6 * ((each.closed_at or each.created_at) - each.created_at) for each in fixed
    }
    mark = main = 1
    stream.append(_commit(mark, 0, "Begin", ["README.md"], []))
    for issue in sorted(fixed, key=lambda each: moments[each.id]):
        for kind in KINDS:
            branch = _branch(issue, kind, rng)
            noise = rng.sample(pool, min(len(pool), rng.randint(0, 2))) + rng.sample(_OTHERS, 1)
            files = noise if kind == "no issue" else [*issue_files[issue.id], *noise]
            at = int(moments[issue.id].timestamp())
            fixes = "" if kind == "no issue" else f"\n\nFixes #{issue.id}"
            steps = [(rng.choice(_STEPS), rng.sample(_OTHERS, 1)), (f"Make it so{fixes}", files)]
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
    """The files of the repository that the thread, or the pull request that fixed it, names."""
    brief = digest(thread)
    fix = brief.outcome.fix or ""
    paths = list(brief.files) + [path for each in threads if f"#{each.id}" == fix for path in digest(each).files]
    return [path for path in telling_files(_ROOT.sub("", path) for path in paths) if path and ".." not in path][:4]


def _branch(issue: Thread, kind: str, rng: Random) -> str:
    if kind == "no issue":
        return rng.choice(_UNRELATED)
    if kind == "says nothing":
        return rng.choice(_NOTHING)
    title, body = ([word.lower() for word in _WORD.findall(text)] for text in (issue.title, issue.body[:600]))
    words = [word for word in dict.fromkeys(title) if word not in FOREIGN_STOP_WORDS and terms(word)]
    more = [
        word for word in dict.fromkeys(body) if word not in FOREIGN_STOP_WORDS and word not in words and terms(word)
    ]
    drawn = rng.sample(words, min(2, len(words))) + rng.sample(more, min(1, len(more)))
    name = "-".join([*drawn, *([rng.choice(_FOREIGN)] if rng.random() < 0.5 else [])])
    prefix = rng.choice(["fix/", "feature/", "octocat/", "", "bugfix/"])
    return f"{prefix}{issue.id}-{name}" if kind == KINDS[0] else f"{prefix}{name}"


def _commit(mark: int, at: int, message: str, paths: Iterable[str], parents: Sequence[int]) -> str:
    text = [f"commit refs/heads/main\nmark :{mark}\ncommitter octocat <octocat@example.org> {at} +0000\n"]
    text.append(f"data {len(message.encode())}\n{message}\n")
    text += [f"{word} :{parent}\n" for word, parent in zip(("from", "merge"), parents, strict=False)]
    for path in paths:
        text.append(f"M 100644 inline {json.dumps(path, ensure_ascii=False)}\ndata {len(str(mark))}\n{mark}\n")
    return "".join([*text, "\n"])


def _git(folder: Path, *args: str, stdin: bytes = b"") -> str:
    result = subprocess.run(("git", *args), cwd=folder, input=stdin, capture_output=True, check=True)
    return result.stdout.decode("utf-8", "replace")


def commits(folder: Path) -> dict[str, Commit]:
    """All commits of the current branch by id."""
    log_arguments = ("log", "-z", "--no-renames", "--name-only", "--format=%x00%H %ct %P%x00%B", "HEAD")
    items = _git(folder, *log_arguments).split("\0")
    head = re.compile(r"[0-9a-f]{40} \d+(?: [0-9a-f]{40})* ?")
    starts = [index for index in range(len(items) - 1) if head.fullmatch(items[index]) and not items[index - 1]]
    by_id = {}
    for start, end in zip(starts, [*starts[1:], len(items)], strict=True):
        commit_id, timestamp, *parents = items[start].split()
        files = tuple(path.strip("\n") for path in items[start + 2 : end] if path.strip("\n"))
        moment = datetime.fromtimestamp(int(timestamp), UTC)
        by_id[commit_id] = Commit(commit_id, tuple(parents), moment, items[start + 1].strip(), files)
    return by_id


def cases(folder: Path) -> Iterator[Case]:
    """A case for each commit of a merged branch that closes an issue, or for a branch's last commit if none does."""
    by_id = commits(folder)
    for merge in by_id.values():
        merged = re.match(r"Merge (?:pull request #\d+ from [^\s:/]+[:/]|branch ')([^\s']+)", merge.message)
        if not merged or len(merge.parents) != 2:
            continue
        before, main = [], set(_line(by_id, merge.parents[0]))
        for commit_id in _line(by_id, merge.parents[1]):
            if commit_id in main:
                break
            before.append(by_id[commit_id])
        closing: list[tuple[int, int | None]] = [
            (position, number) for position, commit in enumerate(before) if (number := _closes(commit.message))
        ]
        for position, number in closing or ([(0, None)] if before else []):
            yield _case(merged[1], before[position:], number, merge.message)


def _case(branch: str, commits_: list[Commit], target: int | None, merge_message: str) -> Case:
    commit, *earlier = commits_
    known = tuple(WorktreeCommit(earlier_commit.message, earlier_commit.files) for earlier_commit in earlier[:5])
    name = "" if branch in ("main", "master") else branch
    named_kind = merge_message.rpartition("\nkind: ")[2]
    kind = named_kind if named_kind in KINDS else _kind(name, target)
    checkout = Worktree(name, known, modified=commit.files, is_own=bool(earlier))
    return Case(kind, checkout, commit.at - timedelta(seconds=1), target)


def _kind(branch: str, target: int | None) -> str:
    if target is None:
        return "no issue"
    return KINDS[0] if str(target) in re.findall(r"\d+", branch) else KINDS[1]


def _line(by_id: dict[str, Commit], tip: str) -> Iterator[str]:
    """A commit and its first parents."""
    while tip in by_id:
        yield tip
        tip = by_id[tip].parents[0] if by_id[tip].parents else ""


def _closes(message: str) -> int | None:
    return next((each.number for each in find_references(message) if each.action == "closes" and not each.owner), None)


def ranks(threads: Sequence[Thread], all_cases: Iterable[Case]) -> dict[str, list[tuple[Case, int, bool]]]:
    """For each method, each case with the rank of its issue (0 if it was not found) and whether anything was found."""
    results: dict[str, list[tuple[Case, int, bool]]] = defaultdict(list)
    shelves: dict[datetime, InMemoryCards] = {}
    for case in all_cases:
        if case.moment not in shelves:
            shelves = {case.moment: InMemoryCards.of(threads, case.moment)}
        shelf = shelves[case.moment]
        if case.target is not None and not shelf.cards([case.target]):
            continue
        for name, method in METHODS.items():
            ids = method(case, shelf)
            results[name].append((case, ids.index(case.target) + 1 if case.target in ids else 0, bool(ids)))
    return results


def rows(results: dict[str, list[tuple[Case, int, bool]]]) -> Iterator[Row]:
    for kind in (*KINDS, "all with an issue"):
        base: list[float] = []
        for name, each in results.items():
            part = [row for row in each if row[0].kind == kind or (kind == "all with an issue" and row[0].target)]
            if not part:
                continue
            credit = [1 / rank if rank else 0.0 for _, rank, _ in part]
            base = credit if name == "plain" else base
            gain = paired_interval(credit, base, SEED) if name != "plain" and kind != "no issue" else None
            at = [sum(0 < rank <= top for _, rank, _ in part) / len(part) for top in (1, 3, 10)]
            answered = sum(is_answered for _, _, is_answered in part) / len(part)
            yield Row(kind, name, len(part), at[0], at[1], at[2], sum(credit) / len(part), answered, gain)


def table(figure_rows: Iterable[Row]) -> str:
    lines = ["| branch | way | cases | @1 | @3 | @10 | MRR | answers | MRR over plain (95 %) |", "|---" * 9 + "|"]
    for row in figure_rows:
        gain = "{:+.3f} ({:+.3f} to {:+.3f})".format(*row.over_plain) if row.over_plain else ""
        figures = " | ".join(f"{value:.3f}" for value in (row.at_1, row.at_3, row.at_10, row.mrr, row.answered))
        lines.append(f"| {row.kind} | {row.way} | {row.cases} | {figures} | {gain} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=Path, default=SAMPLE, help="an archive of threads (.jsonl or .jsonl.gz)")
    parser.add_argument("--git", type=Path, help="a repository whose threads these are")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    threads = read_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        if not options.git:
            make_history(threads, Path(folder))
        found_cases = sorted(cases(options.git or Path(folder)), key=lambda case: case.moment)
    figure_rows = list(rows(ranks(threads, found_cases)))
    print(table(figure_rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in figure_rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
