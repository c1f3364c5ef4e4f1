"""The settings and the action's inputs: names, defaults and allowed values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from bot.domain.hidden_people import HiddenPeople
from bot.errors import UserError

Value = bool | int | float | str | tuple[str, ...]
Mode = Literal["comment", "summary", "off"]
Language = Literal["auto", "en", "de", "es", "fr", "ja", "ko", "pt", "ru", "zh"]
"""English is `templates/words.yml`, any other is `templates/words/LANGUAGE.yml`."""
ENGLISH = "en"
Notify = Literal["edit", "comment", "off"]
MentionsSpeak = Literal["useful", "always", "never"]
MODES = get_args(Mode)

MAX_ITEMS = 100
MAX_TEXT = 300


class SettingsError(UserError):
    """An invalid setting or input: one line with its place, its name and the allowed values."""


class InvalidSettings(SettingsError):
    """A settings file with mistakes. ``kept`` are the settings that it states without one; the others have their
    defaults. None if not even one could be read, so that nobody knows what the file means."""

    def __init__(self, message: str, kept: Settings | None) -> None:
        super().__init__(message)
        self.kept = kept


@dataclass(frozen=True, slots=True)
class SettingRule:
    """The allowed values of a setting. ``form`` is a pattern that the whole text, or each whole item of a list, must
    match; ``wording`` says the same in words."""

    explanation: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    form: str = r".+"
    wording: str = "text"
    secret: bool = False

    @property
    def bounds(self) -> str:
        """The allowed values in a few words, for documentation and errors."""
        if self.choices:
            return ", ".join(choice or '""' for choice in self.choices)
        return self.wording if self.low is None else f"{self.low:,} to {self.high:,}"


def setting(default: Value, explanation: str, **constraints: Any) -> Any:
    """A dataclass field with its default and its `SettingRule`."""
    rule = SettingRule(explanation, **constraints)
    return field(default=default, repr=not rule.secret, metadata={"rule": rule})


def _section(kind: type, explanation: str) -> Any:
    return field(default_factory=kind, metadata={"rule": SettingRule(explanation)})


_AGE_WORDING = "an age in days, weeks, months or years, such as 7d, 4w, 6m or 1y"
_LOGIN_RULE = {"form": r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}(?:\[bot\])?", "wording": "an account's login"}
GLOB_RULE = {"form": r"(?![/~])(?!.*\.\.(?:/|$))[^\0\n]+", "wording": "paths below the repository, with * and **"}
_BRANCH_RULE = {
    "form": r"(?!.*(?:\.\.|//|/\.|\.lock$|[/.]$))[A-Za-z0-9][A-Za-z0-9._/-]{0,199}",
    "wording": "a branch name",
}
_MODEL_RULE = {
    "form": r"|(?!(?:.*/)?\.\.?(?:/|$))(?:/models(?:/[A-Za-z0-9._-]+)*|[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*)",
    "wording": "a folder below the workspace or /models",
}


@dataclass(frozen=True, slots=True)
class MentionSettings:
    speak: MentionsSpeak = setting(
        "useful",
        "Whether mentioned issues alone lead to a comment: useful, if one has an ending or a decision and the person"
        " who mentions it took no part in it; always; or never.",
        choices=get_args(MentionsSpeak),
    )


@dataclass(frozen=True, slots=True)
class SimilarSettings:
    threshold: float = setting(0.65, "Lowest similarity at which an issue is shown.", low=0.0, high=1.0)
    max: int = setting(3, "How many closed issues are shown.", low=0, high=10)
    open: int = setting(2, "How many open issues are shown, in addition to closed ones.", low=0, high=5)
    model: str = setting(
        "/models",
        "The folder of a text model: the image's, or your own. Empty: compare issues by words only.",
        **_MODEL_RULE,
    )


@dataclass(frozen=True, slots=True)
class PageSettings:
    wiki: bool = setting(True, "Remember the repository's wiki.")
    docs: tuple[str, ...] = setting(
        ("README.md", "CHANGELOG.md", "docs/**/*.md"), "Markdown files of the default branch to remember.", **GLOB_RULE
    )


@dataclass(frozen=True, slots=True)
class SourceSettings:
    sessions: tuple[str, ...] = setting(
        (), "Transcripts of agent sessions for the command line to search; they never leave the machine.", **GLOB_RULE
    )
    default_sessions: bool = setting(
        True, "Also search this checkout's sessions in the folders where coding agents keep them."
    )


@dataclass(frozen=True, slots=True)
class CommandSettings:
    enabled: bool = setting(True, "Obey /precedent commands in comments.")
    searches_per_hour: int = setting(
        5, "Searches, questions and other requests for information per account and hour.", low=0, high=100
    )
    questions: tuple[str, ...] = setting(
        (),
        "More ways to ask for a decision or a discussion. {topic} stands for the subject, * for up to four words, a/b"
        " for either word.",
        form=r"(?!(?:[^*]*\*){3})(?=.{13})[^{}\n]*\{topic\}[^{}\n]*",
        wording="questions that contain {topic}, six or more other characters, and no more than two *",
    )


@dataclass(frozen=True, slots=True)
class IgnoreSettings:
    authors: tuple[str, ...] = setting((), "Accounts that are never answered, in addition to bots.", **_LOGIN_RULE)
    labels: tuple[str, ...] = setting((), "Issues with one of these labels are never answered.", wording="label names")
    people: tuple[str, ...] = setting((), "Accounts that are never quoted, named or answered.", **_LOGIN_RULE)

    @property
    def hidden(self) -> HiddenPeople:
        """The ``people``."""
        return HiddenPeople(self.people)


@dataclass(frozen=True, slots=True)
class CommentSettings:
    author: str = setting("github-actions[bot]", "The account that writes the comments.", **_LOGIN_RULE)
    language: Language = setting(
        "auto",
        "The language of comments; auto: that of the issue, or if that is unclear, of most issues.",
        choices=get_args(Language),
    )
    chars: int = setting(
        12_000, "Characters of conversation, divided among the closed issues by similarity.", low=1000, high=50_000
    )
    daily_limit: int = setting(50, "Maximum comments in any 24 hours, including replies.", low=1, high=500)
    answer_within_hours: int = setting(24, "How old a new issue may be, in hours, to be answered.", low=1, high=168)


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    notify: Notify = setting(
        "edit",
        "When a release has a fix: correct our comments that show it (edit), also tell the reporters (comment), or do"
        " nothing (off).",
        choices=get_args(Notify),
    )


@dataclass(frozen=True, slots=True)
class OrganisationSettings:
    results: int = setting(
        0, "How many issues of the organisation's other repositories a comment shows; 0 for none.", low=0, high=2
    )
    share_with: tuple[str, ...] = setting(
        (),
        "Private repositories that share their issues with this one and see its issues, if they name this one too.",
        form=r"[A-Za-z0-9*-]{1,100}/[A-Za-z0-9_.*-]{1,100}",
        wording="repositories as owner/name, in which * stands for any characters",
    )


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    accounts: tuple[str, ...] = setting(
        (), "Accounts, such as agents and bots, whose decisions count like a maintainer's.", **_LOGIN_RULE
    )


@dataclass(frozen=True, slots=True)
class BotSettings:
    merge: tuple[str, ...] = setting(
        (), "Further bots that close issues by merging their fixes; well-known ones count anyway.", **_LOGIN_RULE
    )
    release: tuple[str, ...] = setting(
        (),
        "Bots whose comments say which release has a fix, such as github-actions[bot]. Leave out bots that repeat other"
        " people's words.",
        **_LOGIN_RULE,
    )


@dataclass(frozen=True, slots=True)
class DiscussionSettings:
    answer: bool = setting(False, "Answer new discussions too; needs the permission discussions: write.")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; an instance without arguments holds the defaults."""

    mode: Mode = setting("comment", "Answer in a comment, in the job summary only, or not at all.", choices=MODES)
    branch: str = setting("precedent", "The branch that holds the memory.", **_BRANCH_RULE)
    pulls: bool = setting(False, "Answer pull requests too.")
    mentions: MentionSettings = _section(MentionSettings, "Issues that a text mentions.")
    similar: SimilarSettings = _section(SimilarSettings, "Similar issues and how they ended.")
    pages: PageSettings = _section(PageSettings, "Wiki and documentation, shown when no issue is similar.")
    sources: SourceSettings = _section(SourceSettings, "Other conversations worth searching.")
    commands: CommandSettings = _section(CommandSettings, "Commands that people may write in a comment.")
    decisions: DecisionSettings = _section(DecisionSettings, "Who decides, besides maintainers.")
    bots: BotSettings = _section(BotSettings, "Which bots say how an issue ended.")
    ignore: IgnoreSettings = _section(IgnoreSettings, "Accounts and issues to leave alone.")
    comment: CommentSettings = _section(CommentSettings, "The comment itself.")
    discussions: DiscussionSettings = _section(DiscussionSettings, "Discussions, which are remembered in any case.")
    releases: ReleaseSettings = _section(ReleaseSettings, "Notices of new releases.")
    organisation: OrganisationSettings = _section(
        OrganisationSettings, "Issues of other repositories, on a server that searches them."
    )


class SettingDescription(NamedTuple):
    """One setting as the documentation shows it; for a section, ``bounds`` is empty and ``default`` is None."""

    path: str
    default: Value | None
    bounds: str
    explanation: str


def rules(kind: type) -> dict[str, tuple[SettingRule, Value | type]]:
    """For a dataclass of settings: each name → its rule, and its default or, for a section, its dataclass."""
    defaults = kind()
    by_name: dict[str, tuple[SettingRule, Value | type]] = {}
    for item in fields(kind):
        value = getattr(defaults, item.name)
        by_name[item.name] = (item.metadata["rule"], type(value) if is_dataclass(value) else value)
    return by_name


def describe(kind: type = Settings, prefix: str = "") -> Iterator[SettingDescription]:
    """Every section and setting in the order of the documentation, a section before its settings."""
    for name, (rule, default) in rules(kind).items():
        if isinstance(default, type):
            yield SettingDescription(prefix + name, None, "", rule.explanation)
            yield from describe(default, f"{prefix}{name}.")
        else:
            allowed = "true or false" if isinstance(default, bool) else rule.bounds
            yield SettingDescription(prefix + name, default, allowed, rule.explanation)


def check_value(where: str, value: object, rule: SettingRule, default: Value) -> Value:
    """``value`` as the type of ``default``. Raises SettingsError, beginning with ``where``, if it is not allowed."""
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple) or len(value) > MAX_ITEMS:
            raise SettingsError(
                f"{where} must be a list of at most {MAX_ITEMS} items ({rule.bounds}), not {format_value(value)}"
            )
        return tuple(_check_text(f"{where}[{position}]", item, rule) for position, item in enumerate(value))
    if isinstance(default, str):
        return _check_text(where, value, rule)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingsError(f"{where} must be true or false, not {format_value(value)}")
        return value
    return _check_number(where, value, rule, is_whole=isinstance(default, int))


def _check_text(where: str, value: object, rule: SettingRule) -> str:
    allowed = isinstance(value, str) and (
        value in rule.choices if rule.choices else len(value) <= MAX_TEXT and re.fullmatch(rule.form, value)
    )
    if not isinstance(value, str) or not allowed:
        expected = f"one of {rule.bounds}" if rule.choices else rule.wording
        quoted = "" if rule.choices or not isinstance(value, int | float) else " (put it in quotes)"
        raise SettingsError(f"{where} must be {expected}, not {format_value(value)}{quoted}")
    return value


def _check_number(where: str, value: object, rule: SettingRule, *, is_whole: bool) -> int | float:
    is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float):
        raise SettingsError(
            f"{where} must be a {'whole ' if is_whole else ''}number from {rule.bounds}, not {format_value(value)}"
        )
    if rule.low is not None and rule.high is not None and not rule.low <= value <= rule.high:
        raise SettingsError(f"{where} must be from {rule.bounds}, not {format_value(value)}")
    return value if is_whole else float(value)


def format_value(value: object) -> str:
    """A user's value for an error message: one short line of printable ASCII."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    is_plain = isinstance(value, str | int | float)
    text = ascii(value) if is_plain else "a list" if isinstance(value, list) else "a mapping"
    return text if len(text) <= 60 else f"{text[:57]}..."


Run = Literal["", "catch-up", "rebuild", "answer", "forget", "remember", "backtest", "digest"]

OVERRIDES: Mapping[str, str] = {"mode": "mode", "branch": "branch", "bot-login": "comment.author"}
"""Inputs and the settings that they override."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a run that are not settings; `token` is not in its repr."""

    token: str = setting("", "The token that reads the repository and writes the memory and the comment.", secret=True)
    config: str = setting(".github/precedent.yml", "Path of the settings on the default branch.", **GLOB_RULE)
    run: Run = setting(
        "", "What a run by hand does; other events ignore it, but a schedule may make a digest.", choices=get_args(Run)
    )
    issue: int = setting(0, "The issue, when run is answer, forget or remember.", low=0, high=2_147_483_647)
    since: str = setting(
        "30d", "How far back the digest goes.", form=r"[1-9][0-9]{0,2}[dwm]|[1-9][0-9]?y", wording=_AGE_WORDING
    )
    dry_run: bool = setting(False, "Write nothing; show in the job summary what would be written.")


INPUTS = (*(name.replace("_", "-") for name in rules(Inputs)), *OVERRIDES)
"""The names of all inputs, as `action.yml` declares them."""


def given_inputs(environ: Mapping[str, str]) -> dict[str, str]:
    """The inputs as the runner passes them to a container: ``INPUT_`` and the name in upper case, hyphens kept.

    https://docs.github.com/actions/reference/workflows-and-actions/metadata-syntax#inputs
    """
    texts = {name: environ.get(f"INPUT_{name.upper()}", "").strip() for name in INPUTS}
    return {name: text for name, text in texts.items() if text}


def with_inputs(settings: Settings, inputs: Mapping[str, str]) -> Settings:
    """The settings with the action's inputs (see `OVERRIDES`) in place; an empty text counts as not given.

    Raises SettingsError with the name of the input.
    """
    for name, path in OVERRIDES.items():
        if text := inputs.get(name, ""):
            settings = _replace_setting(settings, path.split("."), text, f'input "{name}"')
    return settings


def _replace_setting(part: Any, path: list[str], value: object, where: str) -> Any:
    rule, default = rules(type(part))[path[0]]
    if len(path) > 1:
        return replace(part, **{path[0]: _replace_setting(getattr(part, path[0]), path[1:], value, where)})
    assert not isinstance(default, type)
    return replace(part, **{path[0]: check_value(where, value, rule, default)})


def read_inputs(inputs: Mapping[str, str]) -> Inputs:
    """The inputs of a run (names as in `action.yml`); an empty text counts as not given. Raises SettingsError."""
    values: dict[str, Value] = {}
    for attribute, (rule, default) in rules(Inputs).items():
        name = attribute.replace("_", "-")
        if (text := inputs.get(name, "")) and not isinstance(default, type):
            values[attribute] = (
                text if rule.secret else check_value(f'input "{name}"', _parse_input(text, default), rule, default)
            )
    return replace(Inputs(), **values)  # type: ignore[arg-type]


def _parse_input(text: str, default: Value) -> Value:
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    return int(text.lstrip("#")) if isinstance(default, int) and re.fullmatch(r"#?[0-9]{1,18}", text) else text
