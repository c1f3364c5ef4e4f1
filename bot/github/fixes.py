"""Locates a fix: the merged pull request or commit, the files it touches, the first release with it, and its revert."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from bot.domain.change_state import NamedChange
from bot.domain.changes import FixInfo
from bot.domain.thread import ThreadId
from bot.domain.thread_json import parse_time, storable_text
from bot.github.client import GitHubClient
from bot.github.errors import (
    ForgeError,
    Gone,
    Invalid,
    NotPermitted,
    RateLimited,
    RequestSkipped,
    Unauthorised,
    Unreachable,
)
from bot.github.graphql_queries import CLOSING_PULL_QUERY, closing_pull
from bot.github.threads import object_in, objects_in
from bot.github.transport import PER_PAGE
from bot.reading.references import closed_by_text
from bot.reading.versions import Version, read_version

_COMMIT = re.compile(r"[0-9a-f]{7,40}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Release:
    """A release, or a tag if there are no releases. ``at`` is its publication, None if unknown."""

    tag: str
    version: Version
    at: datetime | None = None
    is_early: bool = False
    commit: str = ""

    @property
    def stored_tag(self) -> str:
        return storable_text(self.tag)


def first_by_date(releases: Sequence[Release], has: Callable[[str], bool]) -> Release | None:
    """Return the first of these releases, given in order of time, that has the commit.

    Within a line of releases (2.3.*) later ones contain what earlier ones contain. So if the first one of a line lacks
    the commit, the last one is tried next: a line that branched off before the fix costs two comparisons.
    """
    remaining = list(releases)
    while remaining:
        first = remaining.pop(0)
        if has(first.tag):
            return first
        later = [release for release in remaining if release.version.line == first.version.line]
        if later and not has(later[-1].tag):
            remaining = [release for release in remaining if release not in later]
    return None


def first_by_version(releases: Sequence[Release], has: Callable[[str], bool]) -> Release | None:
    """Return the first of these releases, given in order of version, that has the commit, by bisection."""
    if not releases or not has(releases[-1].tag):
        return None
    return releases[bisect_left(releases, True, hi=len(releases) - 1, key=lambda release: has(release.tag))]


def main_releases(releases: Iterable[Release], name: str) -> list[Release]:
    """Return the releases of the project itself, without those of other packages in the repository."""
    listed = list(releases)
    names = {release.version.name for release in listed}
    plain = {"", name} & names
    return [one for one in listed if one.version.name in plain] if plain else listed if len(names) == 1 else []


def read_release(fields: Mapping[str, Any]) -> Release | None:
    """Read a release of the REST API; None if its tag is not a version."""
    tag, at = str(fields.get("tag_name") or ""), time_in(fields.get("published_at"))
    version = read_version(tag)
    if version is None or version.day:
        return None
    return Release(tag, version, at, bool(fields.get("prerelease")) or version.is_early)


def read_tag(fields: Mapping[str, Any]) -> Release | None:
    """Read a tag of the REST API; None if it is not a version."""
    name, commit = str(fields.get("name") or ""), sha_in(object_in(fields.get("commit")).get("sha"))
    version = read_version(name)
    if version is None or version.day or commit is None:
        return None
    return Release(name, version, None, version.is_early, commit)


def sha_in(value: object) -> str | None:
    """Return ``value`` if it is a full or abbreviated SHA."""
    return value if isinstance(value, str) and _COMMIT.match(value) else None


def time_in(value: object) -> datetime | None:
    try:
        return parse_time(value)
    except ValueError:
        return None


MAX_FILES = 5
MAX_READS = 14
"""Reads per run, unless more are allowed: enough for the most expensive fix, or for four usual ones."""

MAX_COMPARES = 4
"""Releases that are compared with one fix."""

MAX_TAGS = 63
"""Newest tags to search for a fix if there are no releases, in seven comparisons."""

RECHECK_INTERVAL = timedelta(hours=24)
"""Time until an unreleased fix is looked up again."""

RETRY_INTERVAL = timedelta(hours=1)
"""Time until a fix is looked up again after GitHub did not answer. It is no shorter because a comparison that is too
large for the server stays too large."""

NO_FIX_INTERVAL = timedelta(days=30)
"""Time until a reference that was not a fix (an issue, a missing commit) is looked up again."""

NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_MAX_RELEASE_PAGES, _MAX_TAG_PAGES = 3, 2
_PULL = re.compile(r"#([1-9]\d{0,9})\Z", re.ASCII)
_GENERATED_FILE = re.compile(
    r"(?:^|/)(?:dist|vendor|node_modules|third_party|__snapshots__)/|\.min\.(?:js|css)$|\.(?:lock|snap|map|sum|pyc)$"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml)$|[._](?:generated|pb|pb2|g)\.\w{1,5}$",
    re.ASCII | re.IGNORECASE,
)
_TEST_OR_DOC = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|docs?|\.github|examples?|changelogs?|changes)/|(?:^|/)(?:test_[^/]{1,80}"
    r"|[^/]{1,80}[._](?:test|spec)s?\.\w{1,5}|(?:changelog|changes|history|news|releases?)[^/]{0,20})$|\.(?:md|rst|txt)$",
    re.ASCII | re.IGNORECASE,
)


class _NoReadsLeft(Exception):
    """The limit of reads for one fix, or for the run, is reached."""


def due_fixes(
    named: Mapping[ThreadId, NamedChange], known: Mapping[ThreadId, FixInfo], now: datetime
) -> dict[ThreadId, NamedChange]:
    """Return the changes to look up now, in the same order.

    Fixes with a known release and unreleased ones that were looked up within a day are left out.
    """
    return {key: change for key, change in named.items() if _is_due(known.get(key), change.ref, now)}


def _is_due(known: FixInfo | None, ref: str, now: datetime) -> bool:
    if known is None or known.ref != ref:
        return True
    if known.release:
        version = read_version(known.release)
        if version is None or not version.is_early:
            return False
    is_no_fix = known.commit is None and not known.is_pull
    return known.looked_at <= now - (NO_FIX_INTERVAL if is_no_fix else RECHECK_INTERVAL)


class FixFinder:
    """Looks up fixes with a bounded number of reads per run. Faults are not raised: a fix just stays unknown.

    ``fault``: why GitHub did not answer the requests for the last fix.
    """

    def __init__(self, api: GitHubClient, repo: str) -> None:
        self._api = api
        self._repo, self._home, self._name = repo, f"/repos/{repo}", repo.rpartition("/")[2].lower()
        self._may_query = True
        self._releases: list[dict[str, Any]] = []
        self._pages, self._are_all_listed = 0, False
        self._tags: list[Release] | None = None
        self._is_over = False
        self._max_reads = MAX_READS
        self.reads = 0
        self.fault: ForgeError | None = None

    def allow(self, more: int) -> None:
        self._max_reads += more

    def find(self, key: ThreadId, named: NamedChange, known: FixInfo | None, now: datetime) -> FixInfo | None:
        """Look up the change that a thread names as its fix. Returns None if nothing was learned.

        A reference that is no pull request or commit of this repository gives an empty FixInfo, refuted if GitHub says
        so. So does a claim that neither GitHub nor the text of the merged change confirms. For a ``known`` fix, only
        what may have changed is read again. Without an answer the fix waits for an hour.
        """
        self.fault = None
        ref = named.ref
        if self._is_over:
            return None
        try:
            is_known = known and known.ref == ref and known.commit and not known.refuted
            fix = known if known and is_known else self._read_change(key, named, now)
        except (_NoReadsLeft, RequestSkipped):
            return None
        except Unreachable as error:
            self.fault = error
            return _unread_fix(key, ref, now - RECHECK_INTERVAL + RETRY_INTERVAL)
        except ForgeError as error:
            return self._note_refusal(FixInfo(key, ref, now), error)
        return self._with_release(fix, now, is_new=fix is not known)

    def _with_release(self, fix: FixInfo, now: datetime, *, is_new: bool) -> FixInfo | None:
        """Add the release. If no reads are left for a new fix, it is due again at once."""
        if fix.commit is None or fix.merged_at is None:
            return fix
        unsure = replace(fix, looked_at=now, unreleased=False)
        try:
            found = replace(unsure, **self._release_fields(fix.commit, fix.merged_at))
            return replace(found, refuted=fix.refuted and not found.release)
        except (_NoReadsLeft, RequestSkipped) as error:
            if isinstance(error, _NoReadsLeft) and self.reads < self._max_reads:
                return unsure
            return replace(unsure, looked_at=NEVER) if is_new else None
        except Unreachable as error:
            self.fault = error
            return replace(unsure, looked_at=now - RECHECK_INTERVAL + RETRY_INTERVAL)
        except ForgeError as error:
            return self._note_refusal(unsure, error)

    def _note_refusal(self, fix: FixInfo, error: ForgeError) -> FixInfo | None:
        self._is_over = isinstance(error, RateLimited | Unauthorised)
        is_no_fix = fix.commit is None and isinstance(error, Gone | Invalid)
        self.fault = None if isinstance(error, Gone | Invalid) else error
        return None if self._is_over else replace(fix, refuted=is_no_fix)

    # -- the change --------------------------------------------------------------------------------------------------

    def _read_change(self, key: ThreadId, named: NamedChange, now: datetime) -> FixInfo:
        fix, pull = FixInfo(key, named.ref, now), _PULL.match(named.ref)
        if pull and named.is_claim and isinstance(key, int) and self._may_query:
            try:
                return self._ask_what_closed(replace(fix, is_pull=True), key, int(pull[1]))
            except (Gone, Invalid, NotPermitted) as error:  # a discussion, or an old server, or a weak token
                self._may_query = isinstance(error, Gone)
        if pull:
            return self._read_pull(replace(fix, is_pull=True), pull[1], named)
        return self._read_commit(fix, named) if _COMMIT.match(named.ref) else fix

    def _read_commit(self, fix: FixInfo, named: NamedChange) -> FixInfo:
        change = object_in(self._get(f"/commits/{fix.ref}", {"per_page": PER_PAGE}))
        details, sha = object_in(change.get("commit")), sha_in(change.get("sha"))
        closes = sha is not None and fix.id in closed_by_text(str(details.get("message") or ""), self._repo)
        if named.is_claim and not closes:
            return fix
        merged_at, files = time_in(object_in(details.get("committer")).get("date")), files_of(change.get("files"))
        is_aside = sha is not None and not self._contains("HEAD", sha)
        closed_by = fix.ref if closes else ""
        return replace(fix, commit=sha, merged_at=merged_at, files=files, refuted=is_aside, closed_by=closed_by)

    def _read_pull(self, fix: FixInfo, number: str, named: NamedChange) -> FixInfo:
        pull = object_in(self._get(f"/pulls/{number}", {}))
        merged_at, commit = time_in(pull.get("merged_at")), sha_in(pull.get("merge_commit_sha"))
        if merged_at is None or commit is None:
            return replace(fix, refuted="merged_at" in pull and merged_at is None)
        closes = fix.id in closed_by_text(_text_of(pull), self._repo)
        if named.is_claim and not closes:
            return fix
        files = files_of(self._get(f"/pulls/{number}/files", {"per_page": PER_PAGE}))
        return replace(fix, commit=commit, merged_at=merged_at, files=files, closed_by=fix.ref if closes else "")

    def _ask_what_closed(self, fix: FixInfo, key: int, number: int) -> FixInfo:
        """The change that closed an issue according to GitHub, else the claimed one if its text says so."""
        owner, _, name = self._repo.partition("/")
        variables = {"owner": owner, "name": name, "issue": key, "pull": number}
        self._count_read()
        answer = self._api.query(CLOSING_PULL_QUERY, variables, "pull-requests: read").get("repository")
        repository = object_in(answer)
        issue, claimed = object_in(repository.get("issue")), object_in(repository.get("issueOrPullRequest"))
        pull: Mapping[str, Any] | None = closing_pull(issue, self._repo) if issue else None
        if pull is None and claimed.get("mergedAt") and key in closed_by_text(_text_of(claimed), self._repo):
            pull = claimed
        merged_at = time_in(pull.get("mergedAt")) if pull else None
        commit = sha_in(object_in(pull.get("mergeCommit")).get("oid")) if pull else None
        if pull is None or merged_at is None or commit is None:
            return replace(fix, refuted=claimed.get("__typename") == "Issue")
        paths = [{"filename": file.get("path")} for file in objects_in(object_in(pull.get("files")).get("nodes"))]
        closed_by = f"#{int(pull['number'])}"
        return replace(fix, commit=commit, merged_at=merged_at, files=files_of(paths), closed_by=closed_by)

    # -- the release -------------------------------------------------------------------------------------------------

    def _release_fields(self, commit: str, merged_at: datetime) -> dict[str, Any]:
        """The fields of a FixInfo about its release, or its absence; empty if unknown."""
        if not self._list_releases(merged_at):
            return {}
        listed = [release for fields in self._releases if not fields.get("draft") and (release := read_release(fields))]
        releases = main_releases(listed, self._name)
        later = [release for release in releases if release.at and release.at >= merged_at]
        later.sort(key=lambda release: (release.at, release.version))
        has = self._tag_test(commit, MAX_COMPARES)
        full, early = ([one for one in later if one.is_early is is_early] for is_early in (False, True))
        first = first_by_date(full, has) or first_by_date(early, has)
        if first is None and (releases or not listed):
            return self._tag_fields(commit, max((release.version for release in releases), default=None))
        return {} if first is None else {"release": first.stored_tag, "released_at": first.at}

    def _tag_fields(self, commit: str, newest: Version | None) -> dict[str, Any]:
        """The same from the tags newer than the newest release, or from all tags if there is no release."""
        if self._tags is None:
            self._tags = self._read_tags()
        tags = [tag for tag in self._tags if not tag.is_early and (newest is None or tag.version > newest)]
        recent = tags[-MAX_TAGS:]
        first = first_by_version(recent, self._tag_test(commit, MAX_TAGS.bit_length() + 1))
        if first is None:
            return {"unreleased": bool(self._tags)}
        if first is recent[0] and len(tags) > MAX_TAGS:
            return {}
        return {"release": first.stored_tag, "released_at": self._commit_date(first.commit)}

    def _commit_date(self, commit: str) -> datetime | None:
        """The date of a commit; None if it cannot be read, as the release matters more."""
        try:
            details = object_in(object_in(self._get(f"/commits/{commit}", {"per_page": 1})).get("commit"))
        except (_NoReadsLeft, Unreachable):
            return None
        return time_in(object_in(details.get("committer")).get("date"))

    def _tag_test(self, commit: str, limit: int) -> Callable[[str], bool]:
        """Return a function that says whether a tag has the commit. It raises _NoReadsLeft after ``limit`` reads."""
        answers: dict[str, bool] = {}

        def has(tag: str) -> bool:
            if tag not in answers:
                if len(answers) >= limit:
                    raise _NoReadsLeft
                answers[tag] = self._contains(tag, commit)
            return answers[tag]

        return has

    def _contains(self, head: str, commit: str) -> bool:
        # The second page leaves out the list of files, which can be long.
        path = f"/compare/{commit}...{quote(head, safe='')}"
        return object_in(self._get(path, {"per_page": 1, "page": 2})).get("status") in ("ahead", "identical")

    def _list_releases(self, moment: datetime) -> bool:
        """Whether all releases since then are listed, after reading more if necessary."""
        while not self._are_all_listed and self._pages < _MAX_RELEASE_PAGES and not self._reaches(moment):
            self._pages += 1
            page = objects_in(self._get("/releases", {"per_page": PER_PAGE, "page": self._pages}))
            self._releases += page
            self._are_all_listed = len(page) < PER_PAGE
        return self._are_all_listed or self._reaches(moment)

    def _reaches(self, moment: datetime) -> bool:
        at = time_in(self._releases[-1].get("published_at")) if self._releases else None
        return at is not None and at < moment

    def _read_tags(self) -> list[Release]:
        """All tags that are versions, in order of version; none if there are too many tags to read them all."""
        listed: list[dict[str, Any]] = []
        for number in range(1, _MAX_TAG_PAGES + 1):
            page = objects_in(self._get("/tags", {"per_page": PER_PAGE, "page": number}))
            listed += page
            if len(page) < PER_PAGE:
                tags = [tag for fields in listed if (tag := read_tag(fields))]
                return sorted(main_releases(tags, self._name), key=lambda tag: tag.version)
        return []

    def _get(self, path: str, query: Mapping[str, Any]) -> Any:
        self._count_read()
        return self._api.get(f"{self._home}{path}", query)

    def _count_read(self) -> None:
        if self.reads >= self._max_reads:
            raise _NoReadsLeft
        self.reads += 1


def _text_of(pull: Mapping[str, Any]) -> str:
    """The title and the description of a pull request."""
    return f"{pull.get('title') or ''}\n\n{pull.get('body') or ''}"


def _unread_fix(key: ThreadId, ref: str, looked_at: datetime) -> FixInfo:
    """The entry of a change that could not be read. It is due a day after ``looked_at``, like any fix."""
    if _PULL.match(ref):
        return FixInfo(key, ref, looked_at, is_pull=True)
    return FixInfo(key, ref, looked_at + RECHECK_INTERVAL - NO_FIX_INTERVAL)


def files_of(listed: object) -> tuple[str, ...]:
    """Return at most MAX_FILES paths of changed files: code, then tests and documents; no generated files."""
    paths = [storable_text(fields.get("filename")) for fields in objects_in(listed)]
    kept = [path for path in paths if path and not _GENERATED_FILE.search(path)]
    return tuple(sorted(kept, key=lambda path: bool(_TEST_OR_DOC.search(path)))[:MAX_FILES])


MAX_COMMITS = 3
"""Later commits whose messages are read."""

_REVERT_PREFIX = re.compile(r"(?:revert\W{1,4}){1,20}", re.IGNORECASE)
_REVERT = re.compile(r"revert", re.IGNORECASE)
_REAPPLY = re.compile(r"re-?(?:appl|land)", re.IGNORECASE)


def was_reverted(timeline: Iterable[Mapping[str, Any]], since: datetime, forge: GitHubClient, commits: str) -> bool:
    """Whether the last change after ``since`` that reverts a fix or reapplies it is a revert. Changes are the merged
    pull requests and commits in these timelines, judged by the first word of their titles.

    A timeline only has what mentions its issue or pull request. ``commits`` is the path of the repository's commits in
    the API. Raises ForgeError.
    """
    items = [*timeline]
    changes = [*_pulls_since(items, since), *_commits_since(items, since, forge, commits)]
    verdicts = [verdict for _, title in sorted(changes) if (verdict := _is_revert(title)) is not None]
    return bool(verdicts) and verdicts[-1]


def _is_revert(title: str) -> bool | None:
    """Whether a change with this title reverts another one; False if it reapplies one, None if it does neither."""
    if reverts := _REVERT_PREFIX.match(title):
        return len(_REVERT.findall(reverts[0])) % 2 == 1
    return False if _REAPPLY.match(title) else None


def _pulls_since(items: Iterable[Mapping[str, Any]], since: datetime) -> Iterator[tuple[datetime, str]]:
    for item in items:
        if item.get("event") == "cross-referenced":
            source = object_in(object_in(item.get("source")).get("issue"))
            merged_at = time_in(object_in(source.get("pull_request")).get("merged_at"))
            if merged_at and merged_at > since:
                yield merged_at, str(source.get("title") or "")


def _commits_since(
    items: Iterable[Mapping[str, Any]], since: datetime, forge: GitHubClient, commits: str
) -> Iterator[tuple[datetime, str]]:
    referenced: dict[str, datetime] = {}
    for item in items:
        sha, at = sha_in(item.get("commit_id")), time_in(item.get("created_at"))
        is_here = str(item.get("commit_url") or "").lower().endswith(f"{commits}/{sha}".lower())
        if item.get("event") == "referenced" and is_here and sha and at and at > since:
            referenced[sha] = at
    for sha, at in sorted(referenced.items(), key=lambda pair: pair[1])[-MAX_COMMITS:]:
        try:
            answer = forge.get(f"{commits}/{sha}", {"per_page": 1})
        except (Gone, Invalid):  # a force push replaced it, and GitHub no longer has it
            continue
        yield at, str(object_in(object_in(answer).get("commit")).get("message") or "")
