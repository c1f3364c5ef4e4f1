"""What is judged of git, of the settings, and of the repository's own templates and words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from bot.answer import Context, Match, Mention
from bot.comment.render import NAMES, WORDS, Renderer
from bot.config import load_settings
from bot.doors.checkup.finding import Finding
from bot.doors.checkup.place import Place
from bot.doors.checkup.workflow import Step, is_dry, overriding
from bot.model import Decision, Outcome, OutcomeKind
from bot.settings import Settings, SettingsError

OLDEST_GIT = (2, 31)
"""The first git that takes settings from its environment, by GIT_CONFIG_COUNT, beside partial clones (2.29)."""

_VERSION = re.compile(r"git version (\d{1,4})\.(\d{1,4})", re.ASCII)


def git(version: str | None) -> Finding:
    """Whether git is there and new enough. ``version``: what it says itself, None where there is none."""
    wanted = ".".join(map(str, OLDEST_GIT))
    if version is None:
        remedy = f"install git {wanted} or newer and put it on PATH: https://git-scm.com/downloads"
        return Finding("git", "error", "git is not there", remedy)
    found = _VERSION.match(version)
    if found and (int(found[1]), int(found[2])) < OLDEST_GIT:
        says = f"{version:.60} is too old for partial clones with a token of their own"
        return Finding("git", "error", says, f"install git {wanted} or newer: https://git-scm.com/downloads")
    return Finding("git", "ok", f"{version:.60}")


def read_config(data: bytes | None, name: str) -> tuple[Settings, Finding]:
    """The settings in the file, the defaults where they cannot be used, and whether they can."""
    if data is None:
        return Settings(), Finding("settings", "ok", f"no {name}: all settings are the defaults")
    try:
        return load_settings(data, name), Finding("settings", "ok", f"{name} is valid")
    except SettingsError as error:
        remedy = f"mend that line, and look with `precedent doctor --config {_file(name)}` before it is pushed"
        return Settings(), Finding("settings", "error", str(error), remedy)


def unlike(data: bytes | None, here: bytes | None, name: str) -> Iterator[Finding]:
    """What to know of the file in the checkout where it is another than that of the default branch, which counts."""
    if here is None or here.replace(b"\r\n", b"\n") == (data or b"").replace(b"\r\n", b"\n"):
        return
    told = read_config(here, name)[1]
    if told.is_problem:
        says = f"the one in this checkout is another, and broken: {told.says}"
        yield Finding("settings", "warning", says, "mend that line before it is pushed")
    else:
        says = "the one in this checkout is another: what counts is that of the default branch, and was looked at"
        yield Finding("settings", "note", says, f"to look at it: `precedent doctor --config {_file(name)}`")


def _file(name: str) -> str:
    return name if re.fullmatch(r"[\w./-]{1,200}", name, re.ASCII) and not name.startswith("-") else "FILE"


def useless(settings: Settings, place: Place, name: str, steps: Sequence[Step] = ()) -> Iterator[Finding]:
    """Settings that keep the bot quiet, or that do nothing or harm on this server.

    ``name`` is their file; ``steps`` run the Action, and may override some. One that only tries is told of as such.
    """
    if not steps or not all(map(is_dry, steps)):
        yield _mode(settings.mode, name, steps)
    if settings.comment.redirect_links == "on" and not place.is_github and not place.store:
        says = "comment.redirect_links is on: the links of comments lead to github.com, which has no such issues"
        yield Finding("settings", "warning", says, f"set `comment.redirect_links` to auto in {name}")


def _mode(mode: str, name: str, steps: Sequence[Step]) -> Finding:
    if mode == "comment":
        return Finding("mode", "ok", "mode is comment: it remembers, and answers in comments")
    what = "says nothing" if mode == "off" else "speaks in job summaries only"
    remedy = f"set `mode` in {name}"
    if overriding(steps, "mode") == mode:
        remedy = f"take `mode: {mode}` out of `with:` in {steps[0].path}"
    return Finding("mode", "note", f"mode is {mode}: it remembers, and {what}", remedy)


def templates(own: Mapping[str, str], folder: str) -> Iterator[Finding]:
    """Whether the repository's own templates and words work. ``own``: file name → content."""
    for name in sorted(own.keys() - {*NAMES, WORDS}):
        says = f"{name} is not used: the names are {', '.join((*NAMES, WORDS))}"
        yield Finding("templates", "warning", says, f"rename {folder}/{name}, or remove it")
    if WORDS in own:
        yield _words(own[WORDS], folder)
    used = {name: text for name, text in own.items() if name in NAMES}
    wrong = _faults(used)
    for problem in wrong:
        yield Finding("templates", "error", problem, f"mend it in {folder}, or remove it there")
    if used and not wrong:
        yield Finding("templates", "ok", f"{', '.join(sorted(used))}: they work and keep the marker")
    if not own:
        yield Finding("templates", "ok", "the shipped ones")


def _words(text: str, folder: str) -> Finding:
    if problem := next(iter(_faults({WORDS: text})), ""):
        return Finding("words", "error", problem, f"mend that line of {folder}/{WORDS}")
    return Finding("words", "ok", f"{WORDS} can be used")


def _faults(overrides: Mapping[str, str]) -> list[str]:
    """What is wrong with these templates when comments of every kind are made with them."""
    if not overrides:
        return []
    renderer = Renderer(overrides=overrides)
    full, similar = _samples()
    found: dict[str, None] = {}
    for context in (full, similar):
        told = renderer.render(context, thread_id=1, now=_NOON, searched=2).problem
        found |= {told: None} if told else {}
    told = renderer.reply(full, asked="octocat asked", reply_to=1, now=_NOON, searched=2).problem
    return [*found, *([told] if told and told not in found else [])]


_NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def _samples() -> tuple[Context, Context]:
    """A comment with everything in it, and one without mentions, which is another template."""
    before = _NOON - timedelta(days=40)
    ended = Outcome(kind=OutcomeKind.FIXED, comment=1, quote="Fixed in 1.2.", author="hubot", role="OWNER", at=before)
    match = Match(3, "It stops", 0.8, "closed", before, "completed", before, outcome=ended, why=("same error",))
    decided = Decision("We keep it.", "hubot", "OWNER", before, 0, None)
    mention = Mention(2, "Whether to keep it", "closed", created_at=before, closed_at=before, decisions=(decided,))
    open_now = Match(4, "It stops again", 0.7, "open", before)
    similar = Context(seen_before=(match,), open_now=(open_now,), searched=2)
    return Context(mentioned=(mention,), seen_before=(match,), open_now=(open_now,), searched=2), similar
