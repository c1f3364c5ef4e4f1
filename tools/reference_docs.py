"""Writes tables of the documentation other than settings: inputs, outputs, parameters of tools, the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from bot.mcp.server import TOOLS_BY_NAME
from bot.settings.schema import INPUTS, OVERRIDES, Inputs, SettingDescription, describe, rules

PARAMETERS = "parameters"
"""The parameters of the tools are between `<!-- parameters -->` and `<!-- /parameters -->` in docs/agents.md."""

ONE_OF = " One of: "
"""How a description in action.yml introduces the choices of its input."""

VARIABLES_HEAD = """\
## Variables of the environment

The server's own variables, `PRECEDENT_…`, are [on its page](self-hosting.md#options).
"""

VARIABLES = (
    (("PRECEDENT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"), "`doctor`, `try`", "A read-only token."),
    (
        ("GITHUB_SERVER_URL",),
        "the Action, commands with `--repo`, `doctor`, `try`",
        "The GitHub server (default https://github.com).",
    ),
    (("GITHUB_API_URL",), "the Action, `try`", "That server's API (default https://api.github.com)."),
    (
        (
            *("GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY"),
            *("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"),
        ),
        "the Action",
        "The event, the repository, and the files for outputs and job summary, set by the runner.",
    ),
    (
        ("GITHUB_WORKSPACE", "RUNNER_TEMP"),
        "the Action",
        "The folder for `.precedent`, the files for later steps.",
    ),
    (("INPUT_…",), "the Action", "The action's inputs, set by the runner, for example `INPUT_DRY-RUN`."),
    (
        ("XDG_CACHE_HOME",),
        "commands, tools for agents",
        "The cache folder (default `~/.cache`).",
    ),
    (
        ("PRECEDENT_ORG",),
        "`org`, `search --org`, tools for agents",
        "The folder with [the list of many repositories](organisation.md#on-one-machine).",
    ),
    (
        ("XDG_DATA_HOME",),
        "commands, tools for agents",
        "Where that folder is by default, and the sessions of opencode (default `~/.local/share`).",
    ),
    (
        ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "PI_CODING_AGENT_DIR", "QWEN_RUNTIME_DIR"),
        "commands, tools for agents",
        "Where coding agents keep [their sessions](agents.md#where-they-are-found).",
    ),
    (
        ("NO_COLOR", "TERM"),
        "commands",
        "Any value switches colours off; `dumb` gives the output that programs get.",
    ),
    (("COLUMNS",), "commands", "The width of help texts."),
    (
        ("TZ",),
        "commands, tools for agents",
        "The time zone (default: the machine's).",
    ),
    (
        ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"),
        "all",
        "The outgoing proxy, for the API and for git; lower case works too.",
    ),
    (
        ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
        "all",
        "Certificate authorities of the server ([which to set](workflows.md#github-enterprise-server)).",
    ),
    (
        ("PATH", "HOME", "TMPDIR", "SYSTEMROOT", "XDG_CONFIG_HOME"),
        "all",
        "Locations of git, its settings and temporary files; passed on to git.",
    ),
    (
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
        "all",
        "Threads for array arithmetic (default 1).",
    ),
    (
        ("LANCEDB_LOG",),
        "all",
        "How much an organisation's index writes to stderr (default `off`; `warn`, `info`).",
    ),
)
"""Variables, what reads them, and their purpose. tests/docs/test_reference.py compares them with the code."""


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; cells hold no line breaks, and bars in them are escaped."""
    first, *rest = ("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in (head, *rows))
    return "".join([first, f"|{'---|' * len(head)}\n", *rest])


def between(text: str, mark: str, content: str) -> str:
    """The page with this content between its two comments; unchanged if these are missing."""
    part = re.compile(f"(?<=<!-- {mark} -->\n).*?(?=<!-- /{mark} -->)", re.DOTALL)
    return part.sub(lambda _: f"\n{content}\n", text)


def variables() -> str:
    """The part of docs/settings.md about the environment."""
    rows = [(", ".join(f"`{name}`" for name in names), by, purpose) for names, by, purpose in VARIABLES]
    return f"{VARIABLES_HEAD}\n{table(('variable', 'read by', 'is'), rows)}"


def parameters() -> str:
    """The parameters of all tools for agents, with what each may be and its default."""
    rows = [
        (f"`{tool.name}` `{name}`", _allowed(shape), _default(name, shape, tool.parameters), shape["description"])
        for tool in TOOLS_BY_NAME.values()
        for name, shape in tool.parameters["properties"].items()
    ]
    return table(("parameter", "allowed", "default", "description"), rows)


def _allowed(shape: dict[str, Any]) -> str:
    """The values that a JSON Schema allows, in a few words."""
    match shape:
        case {"anyOf": forms}:
            return " or ".join(map(_allowed, forms))
        case {"enum": choices}:
            return ", ".join(f"`{choice}`" for choice in choices)
        case {"type": "boolean"}:
            return "`true` or `false`"
        case {"minimum": low, "maximum": high}:
            return f"{low:,} to {high:,}"
        case {"maxLength": most}:
            return f"a text of at most {most:,} characters"
    return "a number"


def _default(name: str, shape: dict[str, Any], schema: dict[str, Any]) -> str:
    if name in schema.get("required", ()):
        return "required"
    return f"`{json.dumps(shape['default']).strip(chr(34))}`" if shape["default"] != "" else ""


def inputs(action: dict[str, Any]) -> str:
    """The inputs as action.yml declares them, with the values that the code accepts."""
    if unknown := sorted(set(action["inputs"]) ^ set(INPUTS)):
        raise ValueError(f"only one of action.yml and bot/settings/schema.py has {', '.join(unknown)}")
    rows = []
    for name in INPUTS:
        declared = action["inputs"][name]
        default = f"`{declared['default']}`" if declared["default"] else ""
        rows.append((f"`{name}`", default, _accepted(name), declared["description"].partition(ONE_OF)[0]))
    return table(("input", "default", "allowed", "what it does"), rows)


def _accepted(name: str) -> str:
    settings: dict[str, SettingDescription] = {each.path: each for each in describe()}
    if name in OVERRIDES:
        return settings[OVERRIDES[name]].bounds
    rule, default = rules(Inputs)[name.replace("-", "_")]
    if rule.secret:
        return "a token"
    if isinstance(default, bool):
        return "true or false"
    return "a number" if isinstance(default, int) else rule.bounds.removeprefix('"", ').partition(", with ")[0]


def outputs(action: dict[str, Any]) -> str:
    """The outputs as action.yml declares them."""
    rows = [(f"`{name}`", declared["description"]) for name, declared in action["outputs"].items()]
    return table(("output", "what it holds"), rows)
