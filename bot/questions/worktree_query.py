"""Turns a checkout into a query: weighted words, the threads that it names, and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bot.domain.card import Worktree
from bot.reading.analyzer import terms

MAX_MESSAGES = 3
"""Commit messages that are used."""

MAX_FILES = 100

_BRANCH_WEIGHT = 1.0
_OWNER_WEIGHT = 0.3
_SUBJECT_WEIGHT = 0.4
_INHERITED_WEIGHT = 0.1
_PROJECT_WEIGHT = 0.05
"""Weight of a word: of the branch; of the first part of its name, which may be a person's; of a commit's subject; of
the commit where the branch began; of the project and its language, which every thread is about."""

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
_COMMON_FILES = frozenset(
    {"__init__.py", "cargo.toml", "changelog.md", "go.mod", "index.html", "index.js", "index.ts", "license", "main.py"}
    | {"makefile", "mod.rs", "package-lock.json", "package.json", "pyproject.toml", "readme.md", "setup.py"}
)
_MAX_FILE_THREADS = 5
"""A file named by more threads is not distinctive; in a large memory the limit is a twentieth of all threads."""

_MAX_FILE_SHARE = 0.05
_SEPARATOR = re.compile(r"[/\-_.#]+")
_GENERATED_SUBJECT = re.compile(r"Merge |Revert |(?:fixup|squash|amend)! ")
_REFERENCE_HINT = re.compile(r"#[0-9]|gh-|/issues/|/pull/", re.IGNORECASE)
_COMMIT_TYPE = re.compile(r"[a-z]{2,12}(?:\([^)\n]{1,40}\))?!?: ")


@dataclass(frozen=True, slots=True)
class WorktreeQuery:
    """The query derived from a checkout.

    ``weights`` maps the terms to search for to their weights (> 0); ``distinctive`` has only those of the branch's
    name. ``tickets`` are the numbers that the branch names, ``mentioned`` those in the messages of its own commits.
    ``files`` are the paths at work, those changed since the last commit first. ``text`` has the words as they are
    written; ``used`` names the parts of the checkout that the query uses.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    distinctive: Mapping[str, float] = field(default_factory=dict)
    tickets: tuple[int, ...] = ()
    mentioned: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    text: str = ""
    used: tuple[str, ...] = ()


def worktree_query(checkout: Worktree) -> WorktreeQuery:
    """The query of a checkout; empty for an empty one.

    Commits that were pushed to a main branch are finished work: they count little, and the threads and files in them
    are left out.
    """
    branch = checkout.branch[:_MAX_LINE_CHARS]
    tickets = ticket_numbers(branch)
    project_terms = set(terms(_split_name(f"{checkout.project} {checkout.language}")))
    telling = {term: weight for term, weight in _branch_terms(branch) if term not in project_terms}
    messages = [text for text in checkout.messages if not _GENERATED_SUBJECT.match(text)][:MAX_MESSAGES]
    subjects = [_COMMIT_TYPE.sub("", text.partition("\n")[0], count=1)[:_MAX_LINE_CHARS] for text in messages]
    weights = dict.fromkeys(project_terms, _PROJECT_WEIGHT)
    for term in _distinctive_terms(" ; ".join(subjects)):
        weights.setdefault(term, _SUBJECT_WEIGHT if checkout.is_own else _INHERITED_WEIGHT)
    weights |= telling
    mentioned = _mentioned_numbers(messages) if checkout.is_own else ()
    files = (*checkout.modified, *checkout.staged, *(checkout.recent if checkout.is_own else ()))
    return WorktreeQuery(
        weights=dict(list(weights.items())[-2 * _MAX_TERMS :]),
        distinctive=telling,
        tickets=tickets,
        mentioned=tuple(number for number in mentioned if number not in tickets),
        files=tuple(dict.fromkeys(files))[:MAX_FILES],
        text=" ; ".join([_split_name(branch), *subjects]),
        used=tuple(_used_signals(checkout, messages)),
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


def is_telling(path: str, spelling: str, count: int, size: int) -> bool:
    """Whether this ``spelling`` of a file sets a thread apart, if ``count`` of ``size`` threads name the file."""
    is_common = path.rpartition("/")[2].casefold() in _COMMON_FILES
    has_no_folder = "/" not in path or "/" not in spelling.replace("\\", "/").strip("/")
    return count <= max(_MAX_FILE_THREADS, size * _MAX_FILE_SHARE) and not (is_common and has_no_folder)


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


def _mentioned_numbers(messages: Iterable[str]) -> tuple[int, ...]:
    candidates = [text for text in messages if _REFERENCE_HINT.search(text)]
    if not candidates:
        return ()
    from bot.reading.references import find_references  # loads the Markdown reader, which most searches do not need

    references = (
        reference
        for text in candidates
        for reference in find_references(text)
        if reference.owner is None and reference.kind is None
    )
    return tuple(dict.fromkeys(reference.number for reference in references))[:_MAX_TICKETS]


def _used_signals(checkout: Worktree, messages: list[str]) -> Iterator[str]:
    if checkout.branch:
        yield f"branch {checkout.branch}"
    counts = ((len(checkout.modified), "modified file"), (len(checkout.staged), "staged file"))
    for count, noun in ((len(messages), "commit message"), *counts):
        if count:
            yield f"{count} {noun}{'s' * (count > 1)}"
    if checkout.is_own and checkout.recent:
        yield f"{len(checkout.recent)} file{'s' * (len(checkout.recent) > 1)} of the last commits"
    if checkout.project or checkout.language:
        yield "project " + " ".join(filter(None, (checkout.project, checkout.language and f"({checkout.language})")))
