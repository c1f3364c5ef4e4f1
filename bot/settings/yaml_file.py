"""Reads YAML files of at most 64 KB, such as a repository's settings and words. The only importer of yaml."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import yaml

from bot.settings.schema import InvalidSettings, Settings, SettingsError, check_value, describe, format_value, rules

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader  # type: ignore[assignment]

CONFIG_PATH = ".github/precedent.yml"
TEMPLATE_PATHS = tuple(
    f".github/precedent/{name}"
    for name in ("base.md.j2", "context.md.j2", "troubleshooting.md.j2", "reply.md.j2", "release.md.j2", "words.yml")
)
"""The paths of a repository's own templates and words on the default branch."""

MAX_BYTES = 65_536
MAX_DEPTH = 4
MAX_FAULTS = 5
"""Mistakes in a file that one error reports."""

MAX_SECTIONS, MAX_TRIES, MAX_SECTION_CHARS = 60, 60, 3_000
"""Sections of a broken file that are read, how often one is tried again without a line, and how long such a one is."""

MAX_EVENTS = 5_000
MAX_PLAIN_DEPTH = 20

_TAG_PREFIX = "tag:yaml.org,2002:"
_EVERY_CHARACTER = [None]
_HIDDEN_BREAK = re.compile("[\u0085\u2028\u2029]")
"""Line ends for the parser, as in YAML 1.1, but not for people who read the file."""


class _Loader(SafeLoader):
    """YAML 1.2's core words only (https://yaml.org/spec/1.2.2/#103-core-schema): ``off`` and ``1:30`` stay texts."""


_Loader.yaml_implicit_resolvers = {}

for _name, _form in (
    ("null", r"~|null|Null|NULL|"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?[0-9]{1,18}"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"),
):
    _Loader.add_implicit_resolver(_TAG_PREFIX + _name, re.compile(rf"(?:{_form})\Z", re.ASCII), _EVERY_CHARACTER)


class PlacedText(NamedTuple):
    """A text in a file, and its place as ``FILE:LINE`` for errors."""

    text: str
    place: str


def load_settings(text: bytes | str | None, name: str = CONFIG_PATH) -> Settings:
    """The settings in ``text``, the content of the file ``name``; the defaults if it is None or empty.

    Raises InvalidSettings with file and line for the first five mistakes: a typo never changes a meaning.
    """
    faults: list[str] = []
    try:
        root = _parse(_decode(text, name), name) if text else None
        if root is None or _is_null(root):
            return Settings()
        settings: Settings = _read_section(root, Settings, "", name, faults)
    except SettingsError as error:
        raise InvalidSettings(str(error), _readable_settings(text or "", name)) from None
    if faults:
        more = len(faults) - MAX_FAULTS
        message = "; ".join([*faults[:MAX_FAULTS], *([f"and {more} more"] if more > 0 else [])])
        raise InvalidSettings(message, settings)
    return settings


_SECTION_START = re.compile(r"^(?=[^\s#])", re.MULTILINE)


def _readable_settings(text: bytes | str, name: str) -> Settings | None:
    """The settings of a file that is no YAML as a whole, each section read alone; None if none can be read."""
    source = text if isinstance(text, str) else text[:MAX_BYTES].decode("utf-8-sig", "replace")
    pairs: list[tuple[yaml.Node, yaml.Node]] = []
    tries = iter(range(MAX_TRIES))
    for section in _SECTION_START.split(_HIDDEN_BREAK.sub("\n", source[:MAX_BYTES]))[:MAX_SECTIONS]:
        pairs += _readable_pairs(section, name, tries)
    settings: Settings = _read_section(yaml.MappingNode(_TAG_PREFIX + "map", pairs), Settings, "", name, [])
    return settings if pairs else None


def _readable_pairs(section: str, name: str, tries: Iterator[int]) -> list[tuple[yaml.Node, yaml.Node]]:
    """The names and values of a section; if it is no YAML, of what is left without one of its lines."""
    lines = section.splitlines()
    for left_out in (None, *(range(1, len(lines)) if len(section) <= MAX_SECTION_CHARS else ())):
        if left_out and next(tries, None) is None:
            break
        try:
            root = _parse("\n".join(line for at, line in enumerate(lines) if at != left_out), name)
        except SettingsError:
            continue
        return list(root.value) if isinstance(root, yaml.MappingNode) else []
    return []


def load_texts(text: bytes | str | None, name: str) -> dict[str, PlacedText]:
    """The flat list ``name: text`` in ``text``, the content of the file ``name``, without empty texts.

    Raises SettingsError with file and line for any other content, and for a repeated name.
    """
    root = _parse(_decode(text, name), name) if text else None
    if root is None or _is_null(root):
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise SettingsError(f"{_location(name, root)}: the file must hold lines such as `name: text`")
    texts: dict[str, PlacedText] = {}
    for key_node, value_node in root.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else ""
        if key in texts:
            raise SettingsError(f"{_location(name, key_node)}: {format_value(key)} is set twice; keep one of the two")
        if not isinstance(value_node, yaml.ScalarNode):
            raise SettingsError(f"{_location(name, value_node)}: {format_value(key)} must be one text, in quotes")
        if not _is_null(value_node):
            texts[key] = PlacedText(value_node.value, _location(name, value_node))
    return texts


def load_plain(text: bytes | str, name: str) -> object:
    """The content of somebody else's file ``name`` as plain dicts, lists and values.

    Keys are texts as written; of two equal keys the later counts. Raises SettingsError with file and line for invalid
    YAML, and for more than MAX_EVENTS values or MAX_PLAIN_DEPTH levels, with aliases followed.
    """
    root = _parse(_decode(text, name), name, MAX_PLAIN_DEPTH)
    return _to_plain(root, name, [MAX_EVENTS], 0) if root else None


def _to_plain(node: yaml.Node, name: str, budget: list[int], depth: int) -> object:
    budget[0] -= 1
    if budget[0] < 0 or depth > MAX_PLAIN_DEPTH:
        raise SettingsError(f"{_location(name, node)}: too long or too deeply nested to be read")
    if isinstance(node, yaml.MappingNode):
        pairs = ((key.value if isinstance(key, yaml.ScalarNode) else "", value) for key, value in node.value)
        return {key: _to_plain(value, name, budget, depth + 1) for key, value in pairs}
    if isinstance(node, yaml.SequenceNode):
        return [_to_plain(item, name, budget, depth + 1) for item in node.value]
    return _scalar(node)


def _decode(text: bytes | str, name: str) -> str:
    size = len(text.encode(errors="surrogatepass") if isinstance(text, str) else text)
    if size > MAX_BYTES:
        raise SettingsError(f"{name}: larger than {MAX_BYTES // 1024} KB; settings are short, remove everything else")
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{name}:{line}: not UTF-8; save the file as UTF-8") from None


def _parse(text: str, name: str, max_depth: int = MAX_DEPTH) -> yaml.Node | None:
    if hidden := _HIDDEN_BREAK.search(text):
        line = text.count("\n", 0, hidden.start()) + 1
        raise SettingsError(f"{name}:{line}: it contains a line break that no editor shows; press Enter there instead")
    try:
        _check_events(text, name, max_depth)
        root: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(mark.line, text.rstrip().count("\n")) + 1 if mark else 1  # the end may count as a line of its own
        rows = text.splitlines()
        has_tab = mark and mark.line < len(rows) and rows[mark.line][mark.column : mark.column + 1] == "\t"
        remedy = "; indent with spaces, not tabs" if has_tab else ""
        raise SettingsError(f"{name}:{line}: not valid YAML: {error.problem or error.context}{remedy}") from None
    except (yaml.YAMLError, UnicodeError):
        raise SettingsError(f"{name}: not valid YAML: it contains a character that YAML does not allow") from None
    return root


def _check_events(text: str, name: str, max_depth: int) -> None:
    """Check the bounds before a tree is built: events come one by one, so neither depth nor size costs anything.

    Other people's files, which may be deeper than ours, may also have anchors.
    """
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if max_depth == MAX_DEPTH and getattr(event, "anchor", None):
            raise SettingsError(f"{name}:{line}: anchors and aliases are not supported; write the value out")
        if getattr(event, "tag", None):
            raise SettingsError(f"{name}:{line}: tags are not supported; write the plain value")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > max_depth or count > MAX_EVENTS:
            raise SettingsError(f"{name}:{line}: too long or too deeply nested; see config.example.yml")


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == _TAG_PREFIX + "null")


def _read_section(node: yaml.Node, kind: type, prefix: str, name: str, faults: list[str]) -> Any:
    """An instance of the dataclass ``kind`` from a mapping; absent and empty settings keep their defaults. Mistakes in
    single settings are added to ``faults``. A misspelt name then counts as the one that it resembles, so that a typo
    does not move the memory to another branch."""
    if not isinstance(node, yaml.MappingNode):
        subject = prefix.rstrip(".") or "the file"
        raise SettingsError(
            f"{_location(name, node)}: {subject} must hold settings as `name: value`, not {format_value(_scalar(node))}"
        )
    rules_by_name = rules(kind)
    values: dict[str, Any] = {}
    seen: set[str] = set()
    misspelt: list[tuple[str, yaml.Node]] = []
    for key_node, value_node in node.value:
        try:
            key = _read_key(key_node, rules_by_name, prefix, name)
            if key in seen:
                raise SettingsError(f"{_location(name, key_node)}: {prefix}{key} is set twice; keep one of the two")
            seen.add(key)
            if not _is_null(value_node):
                values[key] = _read_value(value_node, key, rules_by_name, prefix, name, faults)
        except SettingsError as fault:
            faults.append(str(fault))
            misspelt += [(close, value_node) for close in _resembling(key_node, rules_by_name)]
    for key, value_node in misspelt:
        with suppress(SettingsError):
            values.setdefault(key, _read_value(value_node, key, rules_by_name, prefix, name, faults))
    return kind(**values)


def _read_value(
    node: yaml.Node, key: str, rules_by_name: Mapping[str, Any], prefix: str, name: str, faults: list[str]
) -> Any:
    rule, default = rules_by_name[key]
    if isinstance(default, type):
        return _read_section(node, default, f"{prefix}{key}.", name, faults)
    return check_value(f"{_location(name, node)}: {prefix}{key}", _scalar(node), rule, default)


def _resembling(node: yaml.Node, rules_by_name: Mapping[str, object]) -> list[str]:
    """The name that a misspelt one resembles; none for a name that is spelt right."""
    key = node.value if isinstance(node, yaml.ScalarNode) else ""
    return [] if key in rules_by_name else difflib.get_close_matches(key[:100], rules_by_name, n=1)


def _read_key(node: yaml.Node, rules_by_name: Mapping[str, object], prefix: str, name: str) -> str:
    key = node.value if isinstance(node, yaml.ScalarNode) else ""
    if key in rules_by_name:
        return str(key)
    raise SettingsError(
        f"{_location(name, node)}: unknown setting {format_value(prefix + key)}; {_remedy(key, rules_by_name, prefix)}"
    )


def _remedy(key: str, rules_by_name: Mapping[str, object], prefix: str) -> str:
    """Suggest the nearest setting of the same section, then of any section; otherwise list the section's names."""
    close = [prefix + match for match in difflib.get_close_matches(key[:100], rules_by_name, n=1)]
    if not close:
        by_leaf = {entry.path.rsplit(".")[-1]: entry.path for entry in reversed([*describe()])}
        close = [by_leaf[match] for match in difflib.get_close_matches(key[:100], by_leaf, n=1)]
    if close:
        return f'did you mean "{close[0]}"?'
    return f"known here: {', '.join(rules_by_name)}"


def _location(name: str, node: yaml.Node) -> str:
    return f"{name}:{node.start_mark.line + 1}"


def _scalar(node: yaml.Node) -> object:
    """The plain value of a node: a scalar or a list of scalars; {} for a mapping, as no setting is one."""
    if isinstance(node, yaml.SequenceNode):
        return [_scalar(item) for item in node.value]
    if not isinstance(node, yaml.ScalarNode):
        return {}
    text: str = node.value
    kind = node.tag.removeprefix(_TAG_PREFIX)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind in ("int", "float"):
        return int(text) if kind == "int" else float(text)
    return text
