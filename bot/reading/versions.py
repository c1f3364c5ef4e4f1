"""Parses and compares versions, and finds the one that a reporter uses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Literal

from bot.domain.thread import Thread
from bot.reading.signals import without_addresses

Standing = Literal["older", "same or newer"]

MAX_VERSION_CHARS = 64
"""Longest version that is parsed, in characters."""

_UNORDERED_STAGE = 0
_STAGES = {
    **dict.fromkeys(("dev", "snapshot", "nightly", "canary", "unstable", "next"), _UNORDERED_STAGE),
    **dict.fromkeys(("a", "alpha"), 1),
    **dict.fromkeys(("m", "milestone"), 2),
    **dict.fromkeys(("b", "beta"), 3),
    **dict.fromkeys(("pre", "preview"), 4),
    **dict.fromkeys(("c", "rc", "cr"), 5),
}
"""Words for pre-releases, from early to late. Unsteady builds have no known order among themselves."""

_STAGE = "|".join(sorted(_STAGES, key=len, reverse=True))
PRERELEASE_PATTERN = rf"(?:[-._]?(?:{_STAGE})(?:[-._]?\d{{1,10}}){{0,3}})"
"""Pattern of a pre-release suffix, which may occur twice."""

_TAG = re.compile(
    r"(?P<name>(?:[a-z@][\w.@/+-]{0,40}?[-_/@ ]|[a-z]{1,20}(?=\d{1,4}\.))??)(?:v[. ]?)?"
    r"(?P<numbers>\d{1,10}(?:[._]\d{1,10}){0,4})"
    rf"(?P<pre>{PRERELEASE_PATTERN}{{0,2}})(?P<post>[-.]?(?:post|patch|hotfix|sp)[-.]?\d{{1,6}})?"
    r"(?:[-.](?:final|release|ga|stable))?(?:\+[\w.-]{1,40})?",
    re.ASCII | re.IGNORECASE,
)
_DATED_BUILD = re.compile(r"(?:nightly[ -]?)?(\d{4}-\d\d-\d\d)", re.ASCII | re.IGNORECASE)
_STAGE_PART = re.compile(rf"(?P<word>{_STAGE})|(?P<number>\d+)", re.ASCII | re.IGNORECASE)
_GENERIC_TAG_NAMES = frozenset({"", "v", "release", "releases", "rel", "version", "ver", "stable", "tag", "r"})


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """An ordered version: 2.4 equals 2.4.0, a pre-release is older than its release, ``+build`` is ignored.

    ``day`` is the ordinal of a dated nightly, 0 for all others. ``numbers`` has no trailing zeros;
    ``stage`` begins with 0 for a pre-release, 1 for the release, 2 for a post-release. ``name`` is the part of a tag
    before the version, in lower case, unless it is only ``v`` or ``release``; ``written`` is how many numbers were
    written.
    """

    day: int
    numbers: tuple[int, ...]
    stage: tuple[int, ...]
    written: int = field(compare=False, default=0)
    name: str = field(compare=False, default="")

    @property
    def is_early(self) -> bool:
        """Whether it is a pre-release."""
        return self.stage[0] == 0

    @property
    def line(self) -> tuple[int, ...]:
        """The first two numbers; releases that share them come from one branch."""
        return (*self.numbers, 0, 0)[:2]


def read_version(text: str) -> Version | None:
    """Parses a version such as ``2.3.0``, ``v2.3``, ``2024.10.1``, ``release-1.2``, ``project-v1.2.0-rc.1``.

    None for any other text, and where conventions disagree on the order (``1.0-1``).
    """
    bare = text.strip()
    if len(bare) > MAX_VERSION_CHARS:
        return None
    dated = _DATED_BUILD.fullmatch(bare)
    if dated:
        day = read_day(dated[1])
        return Version(day.toordinal(), (), (1,)) if day else None
    tag = _TAG.fullmatch(bare)
    if tag is None:
        return None
    written = tuple(map(int, re.split("[._]", tag["numbers"])))
    name = tag["name"].lower().strip("-_/@ .")
    if len(written) == 1 and name not in _GENERIC_TAG_NAMES:
        return None
    numbers = written
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return Version(0, numbers, _stage(tag), len(written), "" if name in _GENERIC_TAG_NAMES else name)


def compare_versions(
    version: str, release: str, released_at: datetime | None = None, merged_at: datetime | None = None
) -> Standing | None:
    """Compares ``version`` with the first release that has a fix; None if unknown.

    A dated nightly is compared with the day the fix was merged; for that day and the next one the answer is unknown.
    A version of two numbers may mean any release of its line, so it is not older than a later release of that line.
    """
    used, fixed_in = read_version(version), read_version(release)
    if used is None:
        return None
    if used.day:
        return _compare_days(date.fromordinal(used.day), merged_at, released_at)
    if (
        fixed_in is None
        or fixed_in.day
        or min(used.written, fixed_in.written) < 2
        or _is_calendar(used) != _is_calendar(fixed_in)
    ):
        return None
    if used >= fixed_in:
        return "same or newer" if not _is_unordered(used, fixed_in) else None
    return None if _is_line_of(used, fixed_in) or _is_unordered(used, fixed_in) else "older"


def _compare_days(day: date, merged_at: datetime | None, released_at: datetime | None) -> Standing | None:
    fixed_at = merged_at or released_at
    if fixed_at is None:
        return None
    fix_day = fixed_at.astimezone(UTC).date()
    if day > fix_day + timedelta(days=1):
        return "same or newer"
    return "older" if merged_at and day < fix_day else None


def read_day(text: str) -> date | None:
    """The day of an ISO date, None if there is no such day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _stage(tag: re.Match[str]) -> tuple[int, ...]:
    if tag["post"]:
        return (2, int(re.sub(r"\D", "", tag["post"])))
    if not tag["pre"]:
        return (1,)
    parts = _STAGE_PART.finditer(tag["pre"])
    return (0, *(_STAGES[part["word"].lower()] if part["word"] else int(part["number"]) for part in parts))


def _is_calendar(version: Version) -> bool:
    return bool(version.numbers) and 1900 < version.numbers[0] < 2200


def _is_line_of(used: Version, fixed_in: Version) -> bool:
    """Whether ``used`` may mean the line of releases that ``fixed_in`` belongs to."""
    stem = (*used.numbers, *[0] * used.written)[: used.written]
    return used.stage == (1,) and fixed_in.written > used.written and fixed_in.numbers[: used.written] == stem


def _is_unordered(used: Version, fixed_in: Version) -> bool:
    """Whether both are pre-releases of one release, and one of them is an unsteady build."""
    both = used.numbers == fixed_in.numbers and used.is_early and fixed_in.is_early
    return both and used.stage != fixed_in.stage and _UNORDERED_STAGE in (used.stage[1], fixed_in.stage[1])


_MAX_TEXT_CHARS = 20_000
_MAX_LINE_CHARS = 300
_MAX_NUMBERS = 8

_VERSION_NUMBER = re.compile(
    r"(?<![\w.\\/])(?P<v>v\.? ?)?(?P<version>\d{1,4}(?:\.\d{1,6}){1,3}"
    rf"{PRERELEASE_PATTERN}{{0,2}})(?:\+[\w.]{{1,20}})?(?![\w/\\%]|[.-]\w|\.\d)",
    re.ASCII | re.IGNORECASE,
)
_NIGHTLY = re.compile(
    r"\b(?:nightly(?P<gap>[ (-]{1,2})|(?:nightly|pre|dev) \(\w{7,40} )(?P<day>\d{4}-\d\d-\d\d)\b",
    re.ASCII | re.IGNORECASE,
)
_MAY_STATE_VERSION = re.compile(r"\d\.\d|nightly", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"[a-z](?:[\w+#.-]{0,40}[\w+#])?", re.ASCII | re.IGNORECASE)
_OTHER_VERSION_PREFIX = re.compile(
    r"(?:\b(?:from|before|until|till|prior to|requires?|needs?|at least|minimum|min|back to|unlike|than|not in"
    r"|(?:re|down)\w{2,8} to|work(?:s|ed|ing)?(?: \w{1,8})? (?:in|on|with|under|until|till)"
    r"|(?:not|n't|was|were) (?:\w{2,12} )?(?:in|on|with)"
    r"|(?:added|bump(?:s|ed)?(?: \w{1,20}){1,2}|introduced|merged|released|removed|shipped) (?:in|to|with)"
    r"|(?:fixed|good|working|fine|ok|okay) (?:in|on|with|by)?)\b\W{1,6}(?:\w{1,12}\W{1,3}){0,2}|[\^~<>]=? ?|!= ?)\Z",
    re.ASCII | re.IGNORECASE,
)
"""Words right before a version that is not the reporter's but a working, an earlier or a required one."""

_OWN_VERSION_PREFIX = re.compile(
    r"\b(?:I|we)(?: am|['’]m| are|['’]re)?(?: (?:currently|still|now))? (?:on|run|running|use|using) \Z",
    re.ASCII | re.IGNORECASE,
)
"""Words right before a version of three numbers that is the reporter's. Two numbers may be an operating system's."""

_FULL_VERSION_DOTS = 2

_OTHER_PRODUCTS = """
alpine android apache api arch babel bash bun cargo centos chrome chromium clang cmake composer conda cuda debian
deno django docker edge electron eslint expo fedora firefox flask gcc git github gitlab glibc go golang gradle helm
ios ipados java jdk jest jre k8s kernel kotlin kubectl kubernetes linux llvm mac macos make mariadb maven mongodb
mysql nginx node node.js nodejs npm numpy openjdk openssl opera os osx perl php pip pnpm postgres postgresql
powershell protocol python qt react redis rhel ruby rust rustc safari scala sqlite swift tls typescript ubuntu unity
unreal vite vscode webpack windows xcode yarn zsh
"""
_OTHER_PRODUCT_NAMES = frozenset(_OTHER_PRODUCTS.split())
"""Products whose versions people mention besides the project's own."""

_VERSION_WORDS = frozenset({"version", "versions", "ver"})
_FILLERS = frozenset({"is", "was", "are", "at", "in", "to", "on", "of", "number", "currently", "now", "tag", "build"})
_COMPONENT_WORDS = frozenset({"core", "cli", "server", "desktop", "daemon", "compiler", "library", "package", "lib"})
_LEADING_WORDS = frozenset({"on", "in", "with", "using", "since", "running", "run", "use"})
_VAGUE_WORDS = """
a affected after am an and any bug current did do does exact found happens have i info information installed it
latest library my name new newest observed occurs our package please project release reproduced seen software
specify stable started tested that the these this updated updating upgraded upgrading used version versions we were
what which with you your
"""
_GENERIC_WORDS = _FILLERS | _LEADING_WORDS | frozenset(_VAGUE_WORDS.split())
_ENVIRONMENT_FIELD = re.compile(
    r"\W{0,6}(?:browser|os|operating system|device|platform|desktop|smartphone)\b", re.IGNORECASE
)
_TOOLCHAIN = re.compile(r"toolchain|rustup|channel|\+nightly", re.IGNORECASE)
_OF_PRODUCT = re.compile(r"\W{1,2}of (?:the )?(?P<what>[a-z][\w.+#-]{0,40})", re.ASCII | re.IGNORECASE)


def reported_version(thread: Thread, repo: str | None = None) -> str:
    """The version that the thread's author uses, as written (``2.2.4``, ``nightly 2014-11-02``), or "".

    A version counts after the word "version", after the project's name (from ``repo``, ``owner/name``) and after "I
    use". Versions of other products, working versions and earlier versions do not count.
    """
    name = _normalise((repo or "").rpartition("/")[2])
    own = (comment for comment in thread.comments if comment.author == thread.author and not comment.is_bot)
    for text in (thread.title, thread.body, *(comment.text for comment in own)):
        if _MAY_STATE_VERSION.search(text):
            version = _version_in_text(text[:_MAX_TEXT_CHARS], name)
            if version:
                return version
    return ""


def _version_in_text(text: str, name: str) -> str:
    above: list[str] = []
    for line in without_addresses(text).split("\n"):
        if not line.strip() or line.lstrip().startswith(">"):
            continue
        version = _version_in_line(line[:_MAX_LINE_CHARS], above, name) if _MAY_STATE_VERSION.search(line) else ""
        if version:
            return version
        above = [*above[-1:], line[:_MAX_LINE_CHARS]]
    return ""


def _version_in_line(line: str, above: list[str], name: str) -> str:
    for dated in _NIGHTLY.finditer(line):
        if read_day(dated["day"]) and _is_our_nightly(line, dated, name):
            return f"nightly {dated['day']}"
    for match in islice(_VERSION_NUMBER.finditer(line), _MAX_NUMBERS):
        before, after = line[: match.start()], _OF_PRODUCT.match(line, match.end())
        if (
            not match["version"].strip("0.")
            or _OTHER_VERSION_PREFIX.search(before[-80:])
            or (after and not _is_name(_normalise(after["what"]), name))
        ):
            continue
        if _OWN_VERSION_PREFIX.search(before[-80:]) and match["version"].count(".") == _FULL_VERSION_DOTS:
            return match["version"]
        preceding = [word.lower() for word in _WORD.findall(before[-80:])]
        if (
            preceding
            and _is_ours(preceding, name, marked=bool(match["v"]))
            and not _is_field_of_other(preceding, above)
        ):
            return match["version"]
        if not preceding and above and _is_label(above[-1], name):
            return match["version"]
    return ""


def _is_our_nightly(line: str, dated: re.Match[str], name: str) -> bool:
    preceding = [word.lower() for word in _WORD.findall(line[: dated.start()])]
    preceding = preceding[:-1] if preceding and preceding[-1] in ("pre", "dev") else preceding
    if preceding and _is_name(_normalise(preceding[-1]), name):
        return True
    is_spoken = dated["gap"] != "-" and not _TOOLCHAIN.search(line)
    return (
        is_spoken
        and _OTHER_PRODUCT_NAMES.isdisjoint(preceding[-4:])
        and (not preceding or preceding[-1] in _GENERIC_WORDS)
    )


def _is_ours(preceding: list[str], name: str, *, marked: bool) -> bool:
    """Whether a version after these words is the project's: after its name, or "version" without another product."""
    words = preceding[-6:]
    while words and words[-1] in _FILLERS:
        words = words[:-1]
    if _ends_in_name(words, name):
        return True
    rest = words[:-1] if words and words[-1] in _VERSION_WORDS else None
    if rest is None:
        return marked and preceding[-1] in _LEADING_WORDS and _OTHER_PRODUCT_NAMES.isdisjoint(preceding[-4:])
    return (
        not rest
        or _ends_in_name(rest, name)
        or (rest[-1] in _GENERIC_WORDS and _OTHER_PRODUCT_NAMES.isdisjoint(rest[-4:]))
    )


def _ends_in_name(words: list[str], name: str) -> bool:
    if words and words[-1] in _COMPONENT_WORDS and not _is_name(words[-1], name):
        words = words[:-1]
    return bool(words) and (_is_name(_normalise(words[-1]), name) or _is_name(_normalise("".join(words[-2:])), name))


def _is_label(line: str, name: str) -> bool:
    """Whether the line labels a field for the project's version."""
    words = [word.lower() for word in _WORD.findall(line)]
    if len(words) > 12 or (_VERSION_WORDS | {"release"}).isdisjoint(words) or _VERSION_NUMBER.search(line):
        return False
    is_expected = (
        w in _GENERIC_WORDS or w in _COMPONENT_WORDS or _is_name(_normalise(w), name) or _normalise(w) in name
        for w in words
    )
    return all(is_expected)


def _is_field_of_other(preceding: list[str], above: list[str]) -> bool:
    """Whether this is a bare "Version" below a template's field for a browser or a device."""
    return set(preceding) <= {"version", "e.g"} and any(_ENVIRONMENT_FIELD.match(line) for line in above)


def _normalise(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def _is_name(word: str, name: str) -> bool:
    """Whether a word is the project's name; ``next`` counts for next.js and ``rustc`` for rust."""
    if not name or len(word) < 2:
        return False
    if word == name or word == name.removesuffix("js"):
        return True
    rest = word.removeprefix(name)
    return len(name) > 2 and word.startswith(name) and len(rest) <= 2 and rest.isalpha()
