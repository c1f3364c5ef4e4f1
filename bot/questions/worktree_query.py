"""Turns a checkout into a query: weighted words, the threads that it names, and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bot.domain.card import Worktree, WorktreeCommit
from bot.reading.analyzer import terms

MAX_MESSAGES = 3
"""Commit messages of a branch that are used."""

MAX_FILES = 100

_BRANCH_WEIGHT = 1.0
_OWNER_WEIGHT = 0.3
_SUBJECT_WEIGHT = 0.4
_INHERITED_WEIGHT = 0.1
_PROJECT_WEIGHT = 0.05
"""Weight of a word: of the branch; of the first part of its name, which may be a person's; of a commit's subject; of
the commit where the branch began; of the project and its language, which every thread is about."""

_TRUNK_DECAY = 0.75
"""On a clean trunk, what each commit counts compared with the next newer one: the fifth counts a third."""

_MAX_TRUNK_FILES = 20
"""A commit of a clean trunk with more files changed something everywhere: its files say nothing."""

_MIN_BRANCH_SHARE = 0.4
_MIN_BRANCH_TERMS = 2
"""How much of a branch's name a thread must hold, by rarity and in words, if there is no other evidence. On made-up
branches of three projects, 0.4 finds more than 0.5 and is no more often wrong where there is no issue; a single word
would be."""

_MIN_SUBJECT_SHARE = 0.7
_MIN_SUBJECT_TERMS = 3
"""The same for the subject of a commit on a clean trunk, which has more words. Of 178 subjects of another project, 6 %
find a thread among 11,109 and at most 4 % among a few hundred; with the figures for branches 59 % and 8 to 35 %. Titles
of duplicates find their original among the first three in 16 % of cases; with those figures in 28 %."""

_MAX_TERMS = 24
_MAX_LINE_CHARS = 200
_MAX_TICKETS = 8
_BRANCH_PREFIXES = (
    "bug bugfix build chore ci dependabot dev develop docs doc feat feature features fix fixes fixed bugs hotfix"
    " improvement misc perf refactor release revert style task test tests topic user users wip"
)
_VAGUE_WORDS = (
    "add added adds allow attempt branch change changes clean cleanup code commit debug experiment final first fixing"
    " handle improve initial into issue issues make merge minor more move new patch poc pr pull remove review rework"
    " small some spike start stuff support temp testing tmp try tweak update updates use using work working"
)
_BRANCH_KINDS = frozenset(_BRANCH_PREFIXES.split())
_GENERIC_TERMS = frozenset(terms(f"{_BRANCH_PREFIXES} {_VAGUE_WORDS}".replace(" ", " . ")))
"""Terms that say that something is done, but not to what."""

_RELEASE_WORDS = frozenset({"release", "releases", "version", "v", "rc", "python", "py", "node", "milestone", "sprint"})
_BRANCH_TOKEN = re.compile(r"[^\W\d_]+|\d+|[/#]|[-_.]+|[^\w]", re.ASCII)
_TICKET_WORDS = frozenset(
    {"#", "bug", "bugs", "fix", "fixes", "gh", "hotfix", "issue", "issues", "pr", "pull", "ticket", "feature", "feat"}
)
_YEARS = range(1990, 2100)
_SEPARATOR = re.compile(r"[/\-_.#]+")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_GENERATED_SUBJECT = re.compile(r"Merge |Revert |(?:fixup|squash|amend)! ")
_UPKEEP_WORDS = (
    "apply authors autoupdate back badge black build bump bumps bumped changelog changelogs ci clippy comments"
    " contributors copyright coverage cut deps dependency dependencies development docs eslint flake flaky fmt"
    " formatting gitignore imports isort iteration license lint linter linters linting lockfile md msrv mypy next notes"
    " pin post prepare prettier rc readme reformat regenerate requirements rst ruff run rustfmt screenshots set"
    " snapshot snapshots spelling suggestions tag trailing translations txt typo typos unused upgrade upgrades version"
    " versions whitespace year"
)
_UPKEEP_TERMS = frozenset(terms(f"releases {_UPKEEP_WORDS}".replace(" ", " . ")))
"""Words of commits that keep a project in order. A commit whose telling words are all among them says nothing."""

_UPKEEP_SUBJECT = re.compile(
    r"(?:ci|deps|release|style)(?:\([^)\n]{1,40}\))?!?: |[a-z]{2,12}\((?:deps|release)[^)\n]{0,40}\)!?: "
    r"|(?:bump|pin|update|upgrade) (?:the \S+ group|(?:dependency )?\S+ (?:from \S+ )?to v?[0-9]|\S+\.lock(?!\S))"
    r"|(?:bump|increase|raise|set) [^\n]{0,80}\bversion\b|(?:regenerate|update) (?:the )?lock ?files?\b"
    r"|v?[0-9]+(?:[.-][0-9a-z]+)+ *(?:\(|\n|\Z)|\[(?:pre-commit\.ci|maven-release-plugin)\] ",
    re.IGNORECASE,
)
_REFERENCE_HINT = re.compile(r"#[0-9]|gh-|/issues/|/pull/", re.IGNORECASE)
_COMMIT_TYPE = re.compile(r"\A[a-z]{2,12}(?:\([^)\n]{1,40}\))?!?: ")


_WeightedCommit = tuple[WorktreeCommit, float]
"""A commit and how much it counts, in 0..1."""


class WordEvidence(NamedTuple):
    """Words that tell which threads are about them: those that hold ``least`` of the terms, and this ``share`` of them
    by rarity. ``weights`` maps the terms to their weights (> 0)."""

    weights: Mapping[str, float]
    least: int
    share: float


@dataclass(frozen=True, slots=True)
class WorktreeQuery:
    """The query derived from a checkout.

    ``weights`` maps the terms to search for to their weights (> 0); ``distinctive`` has only those of the branch's
    name. ``evidence`` are the words that suffice to show a thread. ``tickets`` are the numbers that the branch names,
    ``mentioned`` those in the messages of its commits, and ``files`` the paths at work, those changed since the last
    commit first; both with how much they count, in 0..1. ``text`` has the words as they are written; ``used`` names the
    parts of the checkout that the query uses.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    distinctive: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[WordEvidence, ...] = ()
    tickets: tuple[int, ...] = ()
    mentioned: Mapping[int, float] = field(default_factory=dict)
    files: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    used: tuple[str, ...] = ()


def worktree_query(checkout: Worktree) -> WorktreeQuery:
    """The query of a checkout; empty for an empty one.

    Commits that were pushed to a main branch are finished work: they count little, and the threads and files in them
    are left out. Only on a clean trunk, where nothing newer is known, do they tell what the work is about, unless they
    merely bump a version or the like.
    """
    branch = checkout.branch[:_MAX_LINE_CHARS]
    tickets = ticket_numbers(branch)
    project_terms = set(terms(_split_name(f"{checkout.project} {checkout.language}")))
    telling = {term: weight for term, weight in _branch_terms(branch) if term not in project_terms}
    commits = _telling_commits(checkout, project_terms)
    committed = _committed_files(checkout, commits)
    is_current = checkout.is_own or checkout.is_clean_trunk
    subjects = [(_subject(commit), weight) for commit, weight in commits]
    weights = dict.fromkeys(project_terms, _PROJECT_WEIGHT)
    for term, weight in _subject_terms(subjects):
        weights.setdefault(term, weight * (_SUBJECT_WEIGHT if is_current else _INHERITED_WEIGHT))
    weights |= telling
    mentioned = _mentioned_numbers(commits) if is_current else {}
    evidence = [WordEvidence(telling, _MIN_BRANCH_TERMS, _MIN_BRANCH_SHARE)]
    if checkout.is_clean_trunk:
        evidence += _subject_evidence(subjects, project_terms)
    files = dict.fromkeys((*checkout.modified, *checkout.staged), 1.0) | committed
    return WorktreeQuery(
        weights=dict(list(weights.items())[-2 * _MAX_TERMS :]),
        distinctive=telling,
        evidence=tuple(each for each in evidence if len(each.weights) >= each.least),
        tickets=tickets,
        mentioned={number: weight for number, weight in mentioned.items() if number not in tickets},
        files=dict(list(files.items())[:MAX_FILES]),
        text=" ; ".join([_split_name(branch), *(subject for subject, _ in subjects)]),
        used=tuple(_used_signals(checkout, len(commits), len(committed))),
    )


def ticket_numbers(branch: str) -> tuple[int, ...]:
    """The issue numbers in a branch's name, in order: ``fix/42-timeout``, ``gh-42``, ``issue_42``, ``#42``.

    A number counts after a word that names a ticket, and at the beginning of a part between slashes. Versions
    (``release-2.3``), dates and years, and numbers of other trackers (``ABC-12``) do not count.
    """
    tokens = _BRANCH_TOKEN.findall(branch[:_MAX_LINE_CHARS])
    numbers: dict[int, None] = {}
    for position, token in enumerate(tokens):
        if token.isdecimal() and not token.startswith("0") and len(token) <= 9 and _is_ticket(tokens, position):
            numbers[int(token)] = None
    return tuple(numbers)[:_MAX_TICKETS]


def _is_ticket(tokens: list[str], position: int) -> bool:
    following = "".join(tokens[position + 1 : position + 3])
    if (
        (following[:1] == "." and (following[1:].isdigit() or following[1:] in ("", "x")))
        or (following[:1] in ("-", "_", "/") and following[1:].isdigit())
        or following[:1].isalpha()
    ):
        return False  # a version, a date, "2fa"
    before = [token for token in tokens[:position] if token not in ("-", "_")]
    last = before[-1].lower() if before else ""
    if last in _TICKET_WORDS and tokens[position - 1].lower() in (last, "-", "_", "#"):
        return True
    if before and last != "/":
        return False
    folder = before[-2].lower() if len(before) > 1 else ""
    if folder.isdigit() or folder in _RELEASE_WORDS:
        return False
    return int(tokens[position]) not in _YEARS or folder in _BRANCH_KINDS | _TICKET_WORDS


def _branch_terms(branch: str) -> Iterator[tuple[str, float]]:
    """The distinctive words of a branch, each once, with their weights. Numbers do not count."""
    first, slash, rest = branch.partition("/")
    has_owner = bool(slash) and first.lower() not in _BRANCH_KINDS and not _SEPARATOR.search(first)
    weights = dict.fromkeys(_distinctive_terms(first), _OWNER_WEIGHT) if has_owner else {}
    weights |= dict.fromkeys(_distinctive_terms(_split_name(rest if has_owner else branch)), _BRANCH_WEIGHT)
    yield from list(weights.items())[:_MAX_TERMS]


def _distinctive_terms(text: str) -> list[str]:
    names = ((term, term.rstrip("0123456789")) for term in dict.fromkeys(terms(text)))
    return [term for term, name in names if name and not {term, name} & _GENERIC_TERMS][:_MAX_TERMS]


def _split_name(name: str) -> str:
    return _SEPARATOR.sub(" ", name)


def _subject(commit: WorktreeCommit) -> str:
    return _COMMIT_TYPE.sub("", commit.message.partition("\n")[0], count=1)[:_MAX_LINE_CHARS]


def _telling_commits(checkout: Worktree, project_terms: set[str]) -> list[_WeightedCommit]:
    """The commits whose messages are used, newest first."""
    telling = [
        (commit, _TRUNK_DECAY**age if checkout.is_clean_trunk else 1.0)
        for age, commit in enumerate(checkout.commits)
        if not _GENERATED_SUBJECT.match(commit.message)
    ]
    if checkout.is_clean_trunk:
        return [(commit, weight) for commit, weight in telling if not _is_upkeep(commit, project_terms)]
    return telling[:MAX_MESSAGES]


def _is_upkeep(commit: WorktreeCommit, project_terms: set[str]) -> bool:
    """Whether a commit bumps a version, renews a dependency, corrects the style, and the like."""
    if _UPKEEP_SUBJECT.match(commit.message):
        return True
    words = _NO_LETTERS.sub(" ", _subject(commit))
    upkeep_terms = _UPKEEP_TERMS | project_terms
    return not _UPKEEP_TERMS.isdisjoint(terms(words)) and upkeep_terms.issuperset(_distinctive_terms(words))


def _subject_terms(subjects: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    found: dict[str, float] = {}
    for subject, weight in subjects:
        for term in _distinctive_terms(subject):
            found.setdefault(term, weight)
    yield from list(found.items())[:_MAX_TERMS]


def _subject_evidence(subjects: Iterable[tuple[str, float]], project_terms: set[str]) -> Iterator[WordEvidence]:
    for subject, _ in subjects:
        distinctive = [term for term in _distinctive_terms(subject) if term not in project_terms]
        yield WordEvidence(dict.fromkeys(distinctive, 1.0), _MIN_SUBJECT_TERMS, _MIN_SUBJECT_SHARE)


def _committed_files(checkout: Worktree, commits: Iterable[_WeightedCommit]) -> dict[str, float]:
    """The paths in the commits at work, each with how much it counts."""
    if checkout.is_own:
        return {path: 1.0 for commit in checkout.commits for path in commit.files}
    files: dict[str, float] = {}
    for commit, weight in commits if checkout.is_clean_trunk else ():
        for path in commit.files if len(commit.files) <= _MAX_TRUNK_FILES else ():
            files.setdefault(path, weight)
    return files


def _mentioned_numbers(commits: Iterable[_WeightedCommit]) -> dict[int, float]:
    candidates = [(commit.message, weight) for commit, weight in commits if _REFERENCE_HINT.search(commit.message)]
    if not candidates:
        return {}
    from bot.reading.references import find_references  # loads the Markdown reader, which most searches do not need

    found: dict[int, float] = {}
    for text, weight in candidates:
        for reference in find_references(text):
            if reference.owner is None and reference.kind is None:
                found.setdefault(reference.number, weight)
    return dict(list(found.items())[:_MAX_TICKETS])


def _used_signals(checkout: Worktree, messages: int, files: int) -> Iterator[str]:
    """The parts of the checkout that the query uses; of its commits, so many messages and files."""
    if checkout.branch:
        yield f"branch {checkout.branch}"
    counts = (
        (messages, "commit message", ""),
        (len(checkout.modified), "modified file", ""),
        (len(checkout.staged), "staged file", ""),
        (files, "file", " of the last commits"),
    )
    for count, noun, more in counts:
        if count:
            yield f"{count} {noun}{'s' * (count > 1)}{more}"
    if checkout.project or checkout.language:
        yield "project " + " ".join(filter(None, (checkout.project, checkout.language and f"({checkout.language})")))
