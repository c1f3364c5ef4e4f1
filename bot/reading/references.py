"""Finds the issues, pull requests and discussions that a text refers to: what GitHub links, where a person typed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, reduce

from bot.domain.hosts import GITHUB_HOSTS
from bot.domain.thread import Reference
from bot.reading.html import TextRun, split_urls
from bot.reading.lookalikes import plain, without_quotation_marks
from bot.reading.markdown import read, statements
from bot.reading.typed_numbers import is_typed, without_pasted_lines

MAX_NUMBER = 2**31 - 1
"""GitHub's numbers are 32-bit: a larger one is not the number of an issue."""

_SLUG_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/@"
_MAX_SLUG_CHARS = 141
_OWNER = r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}+"
_REPO = r"[A-Za-z0-9_.-]{1,100}"
_NUMBER_END = r"(?![A-Za-z0-9_])"
_SLUG = re.compile(f"({_OWNER})/({_REPO})", re.ASCII)
_MAY_REFER = re.compile(r"#[0-9&]|gh-|/issues/|/pull/|/discussions/|&(?:num|sol);", re.IGNORECASE)
_NOT_KERNEL_BUILD = r"(?!(?:-\w{1,40})? {1,4}(?:SMP|PREEMPT)\b)"
"""Must not follow a number: the build number printed by ``uname -a`` is no issue."""

_ACTION = re.compile(
    r"(?<![A-Za-z0-9_/-])(?:(?P<closes>close[sd]?|fix(?:e[sd])?|resolve[sd]?)|(?P<duplicate>duplicate\s{1,8}of))"
    r"\s{0,8}:?\s{0,8}\Z",
    re.IGNORECASE | re.ASCII,
)
_NEGATION = re.compile(r"(?:\bno[tn]?|n't|\bnever)(?:\s(?:a|an|the|exact|exactly|really))?\s\Z", re.IGNORECASE)
_CLOSING_DOUBT = re.compile(
    r"(?:\b(?:not|never|cannot|no longer|without|would|could|may|might|should|partial(?:ly)?|partly|half|almost"
    r"|mostly|attempts?|attempting|tr(?:y|ies|ied|ying)|helps?|towards?|if|unless|before|until|once|when|instead of"
    r"|rather than|reverts?|reverted|reverting|need(?:s|ed)?|pretends?|fail(?:s|ed)?|how|part of|step)\b|n't\b)"
    r"[^.;:!?\n]{0,50}\Z|\b(?:that|which|who|previously|already|earlier|originally|was|were|been)\s{1,4}\Z"
    r"|[\"'`]\Z",
    re.IGNORECASE,
)
"""Before a closing keyword: a denial, a doubt, another change, or the beginning of a quotation. GitHub closes the issue
all the same, which its own events tell."""
_TAIL_CHARS = 60
_ACTION_STRENGTH = {None: 0, "closes": 1, "duplicate": 2}


def find_references(
    text: str,
    *,
    repo: str | None = None,
    number: int | None = None,
    autolinks: Sequence[str] = (),
    hosts: Sequence[str] = GITHUB_HOSTS,
) -> list[Reference]:
    """The references in a Markdown text in order of first mention, each once, with its strongest action.

    ``repo`` (``owner/name``) and ``number`` say where the text is from: references to that repository get no owner,
    and the issue itself is left out. ``autolinks`` are configured prefixes of other trackers (``JIRA-``); ``hosts`` are
    the host names of GitHub. The references are well formed, but need not exist. Ordinals (``step #2``) and what was
    pasted are none.
    """
    if not _MAY_REFER.search(text) and not any(prefix in text for prefix in autolinks):
        return []
    return _collect(read(without_pasted_lines(text)).runs, repo, number, _grammar(tuple(hosts), tuple(autolinks)))


def find_title_references(
    title: str, *, repo: str | None = None, number: int | None = None, hosts: Sequence[str] = GITHUB_HOSTS
) -> list[Reference]:
    """The references in a title. Like ``find_references``, but for plain text."""
    return _collect(split_urls(title), repo, number, _grammar(tuple(hosts), ()))


_Grammar = tuple[re.Pattern[str], re.Pattern[str]]
"""The patterns of a reference in a text and of a link target, for one set of hosts and prefixes."""


@lru_cache(maxsize=64)
def _grammar(hosts: tuple[str, ...], autolinks: tuple[str, ...]) -> _Grammar:
    host = "|".join(re.escape(name) for name in hosts) or r"(?!)"
    prefix = "|".join(re.escape(name) for name in autolinks if name) or r"(?!)"
    page = rf"(?:issues|pull|discussions)/(?P<page>[0-9]+){_NUMBER_END}"
    path = rf"(?i:www\.)?(?i:{host})/(?P<owner>{_OWNER})/(?P<repo>{_REPO})/{page}"
    token = (
        rf"#(?P<hash>[0-9]+){_NUMBER_END}{_NOT_KERNEL_BUILD}"
        rf"|(?<![A-Za-z0-9_@])[Gg][Hh]-(?P<gh>[0-9]+){_NUMBER_END}"
        rf"|(?<![A-Za-z0-9_/@-])(?P<prefix>{prefix})(?P<external>[0-9]+){_NUMBER_END}"
        rf"|(?<![A-Za-z0-9_./@:-]){path}"
    )
    return re.compile(token, re.ASCII), re.compile(rf"(?i:https?://)?{path}", re.ASCII)


def _collect(runs: Iterable[TextRun], repo: str | None, number: int | None, grammar: _Grammar) -> list[Reference]:
    result = []
    for scanned in _scan(runs, grammar):
        is_here = repo and f"{scanned.owner}/{scanned.repo}".lower() == repo.lower()
        reference = replace(scanned, owner=None, repo=None) if is_here else scanned
        if reference.owner is not None or reference.kind is not None or reference.number != number:
            result.append(reference)
    return merge_references(result)


def merge_references(references: Iterable[Reference]) -> list[Reference]:
    """The references in order without repetitions, each as first written, with its strongest action."""
    merged: dict[tuple[str, str | None, int], Reference] = {}
    for reference in references:
        slug = f"{reference.owner}/{reference.repo}".lower()
        key = (slug, reference.prefix, reference.number)
        earlier = merged.setdefault(key, reference)
        if _ACTION_STRENGTH[reference.action] > _ACTION_STRENGTH[earlier.action]:
            merged[key] = replace(earlier, action=reference.action)
    return list(merged.values())


def _scan(runs: Iterable[TextRun], grammar: _Grammar) -> Iterator[Reference]:
    """All references in order. ``tail`` is the preceding text of the same block, which may end with a keyword."""
    token, address = grammar
    tail = ""
    for kind, value in runs:
        if kind == "text":
            previous: tuple[int, bool] | None = None
            for match in token.finditer(value):
                if located := _from_hash(value, match) if match["hash"] else _from_word(match):
                    start, reference = located
                    is_bare = start == match.start() and bool(match["hash"])
                    previous = match.end(), not is_bare or is_typed(value, *match.span(), previous)
                    if previous[1]:
                        yield replace(reference, action=_action(tail, value, start))
            tail = (tail + value)[-_TAIL_CHARS:]
        else:
            url = address.match(value) if kind == "link" else None
            linked = _from_path(url) if url else None
            if linked:
                yield replace(linked, action=_action(tail, "", 0))
            tail = ""


def _from_hash(text: str, token: re.Match[str]) -> tuple[int, Reference] | None:
    """``#N`` or ``owner/repo#N``, but not ``user#N``, which means that user's fork."""
    end = token.start()
    before = text[max(0, end - _MAX_SLUG_CHARS) : end]
    word = before[len(before.rstrip(_SLUG_CHARS)) :].lstrip(".")
    slug = _SLUG.fullmatch(word) if len(word) < _MAX_SLUG_CHARS else None
    if slug:
        return _with_start(end - len(word), _full_reference(slug[1], slug[2], token["hash"]))
    is_glued = before[-1:].isascii() and (before[-1:].isalnum() or before[-1:] == "_")
    return None if is_glued else _with_start(end, _bare_reference(token["hash"]))


def _from_word(token: re.Match[str]) -> tuple[int, Reference] | None:
    """``GH-N``, a configured prefix, or the address of an issue without its scheme."""
    if token["page"]:
        return _with_start(token.start(), _from_path(token))
    reference = _bare_reference(token["gh"] or token["external"])
    if reference and token["external"]:
        reference = replace(reference, kind="external", prefix=token["prefix"])
    return _with_start(token.start(), reference)


def _with_start(start: int, reference: Reference | None) -> tuple[int, Reference] | None:
    return (start, reference) if reference else None


def _from_path(path: re.Match[str]) -> Reference | None:
    return _full_reference(path["owner"], path["repo"], path["page"])


def _full_reference(owner: str, repo: str, digits: str) -> Reference | None:
    reference = _bare_reference(digits)
    if not reference or repo.lower().endswith(".git") or repo in (".", ".."):
        return None
    return replace(reference, owner=owner, repo=repo)


def _bare_reference(digits: str) -> Reference | None:
    if digits.startswith("0") or len(digits) > 10 or int(digits) > MAX_NUMBER:
        return None
    return Reference(int(digits))


def _action(tail: str, text: str, start: int) -> str | None:
    before = without_quotation_marks(plain((tail + text[max(0, start - _TAIL_CHARS) : start])[-_TAIL_CHARS:]))
    match = _ACTION.search(before)
    if not match:
        return None
    action, denial = ("closes", _CLOSING_DOUBT) if match["closes"] else ("duplicate", _NEGATION)
    return None if denial.search(before, 0, match.start()) else action


_FIRST_LINE_OF_OTHERS = re.compile(
    r"\W{0,4}(?:[\w()/!-]{1,40}: ?)?(?:revert\b(?!\W{1,4}revert\b)|bump\b|(?:prepare )?release v?\d|version packages"
    r"|(?:update|upgrade)s? (?:dependency |dependencies |module )?\S{1,80} (?:from \S{1,40} )?to v?\d)",
    re.IGNORECASE,
)
"""A revert, a new version of a dependency, a release: their texts quote what other changes closed."""


def closed_by_text(text: str, repo: str | None = None) -> frozenset[int]:
    """The issues of ``repo`` (``owner/name``) that a change closes according to its own text, with one of GitHub's
    keywords: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue

    ``text`` is the message of a commit, or the title and the description of a pull request. What is quoted, denied or
    doubted does not count, nor does the text of a revert, of a new version of a dependency, or of a release.
    """
    if not _MAY_REFER.search(text) or _FIRST_LINE_OF_OTHERS.match(text):
        return frozenset()
    code = [" ".join(span.split()) for span in read(text).inline_code if _MAY_REFER.search(span)]
    numbers = set[int]()
    for sentence in statements(text):
        without_code = reduce(lambda words, span: words.replace(span, "`"), code, sentence)
        found = find_title_references(without_code, repo=repo)
        numbers |= {each.number for each in found if each.action == "closes" and not (each.owner or each.kind)}
    return frozenset(numbers)
