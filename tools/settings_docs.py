"""Writes the parts of the documentation that repeat the code; --check only compares.

Settings, inputs and variables fill config.example.yml and docs/settings.md. The weights of the ranking fill a part of
docs/evaluation.md, the parameters of the tools for agents a part of docs/agents.md, and the fields of a hit a part of
docs/asking.md, each between two comments. The schemas of answers fill docs/schemas. docs/workflows.md shows the
workflow of `precedent init`.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from bot.cli.commands.init import workflow_text
from bot.ranking.features import CONFIDENCE_FEATURES, ORDER_FEATURES, Feature
from bot.ranking.weights import CUT_SIMILARITY, MODEL_NAMES, shipped
from bot.settings.schema import SettingDescription, Value, describe
from bot.settings.yaml_file import CONFIG_PATH
from tools.answer_schemas import FIELDS, fields_table, schemas
from tools.reference_docs import PARAMETERS, between, inputs, outputs, parameters, table, variables

ROOT = Path(__file__).resolve().parents[1]

EXAMPLE_HEAD = f"""\
# All settings of Precedent with their defaults. Copy the lines that you want to change to {CONFIG_PATH}
# on the default branch. Anything you leave out keeps its default.
"""

PAGE_HEAD = f"""\
# Settings

Precedent reads `{CONFIG_PATH}` from the default branch, never from a pull request. Anything you leave out
keeps its default. [`config.example.yml`](../config.example.yml) has all settings, ready to copy.

The file is YAML of at most 64 KB, without anchors, aliases and tags. Booleans are `true` and `false`; `on`, `off`,
`yes` and `no` are plain text. If there is a mistake, the job summary names the line and the remedy:

```
.github/precedent.yml:3: unknown setting 'similar.mx'; did you mean "similar.max"?
```

Until you fix it, the bot posts nothing. It keeps updating its memory with the settings that are valid; if none can be
read, with those of the last run that could read them, which are kept with the memory.
"""

INPUTS_HEAD = """\
## Inputs of the action

Set these in the workflow, under `with:`. An input that is absent or empty changes nothing.
"""

OUTPUTS_HEAD = """\
## Outputs of the action

For later steps, if this one has an `id`. They describe the event's issue and contain nothing that people wrote, so they
are safe to expand. Only the files that `context` and `report` name contain people's words: treat them as data.
"""


def yaml_value(value: Value) -> str:
    """The value as one line of YAML; a text is quoted if YAML would read it as something else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[]" if not value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and not value.replace("-", "").isalnum():
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def example_lines(each: SettingDescription) -> list[str]:
    """A section's or a setting's lines in the example: the explanation, and the default with what is allowed."""
    name = each.path.rsplit(".", 1)[-1]
    indent = "  " * each.path.count(".")
    if each.default is None:
        return ["", f"# {each.explanation}", f"{name}:"]
    lines = [] if indent else [""]
    lines.append(f"{indent}# {each.explanation} ({each.bounds})")
    if isinstance(each.default, tuple) and len(yaml_value(each.default)) > 80:
        return [*lines, f"{indent}{name}:", *(f"{indent}  - {yaml_value(item)}" for item in each.default)]
    return [*lines, f"{indent}{name}: {yaml_value(each.default)}"]


def example() -> str:
    """The content of config.example.yml."""
    return EXAMPLE_HEAD + "\n".join(line for each in describe() for line in example_lines(each)) + "\n"


def settings_table(settings: list[SettingDescription]) -> str:
    """The rows of one section."""
    rows = []
    for each in settings:
        assert each.default is not None
        long = isinstance(each.default, tuple) and len(each.default) > 3
        default = "see the example" if long else f"`{yaml_value(each.default)}`"
        rows.append((f"`{each.path}`", default, each.bounds, each.explanation))
    return table(("setting", "default", "allowed", "what it does"), rows)


def action_tables() -> str:
    """Inputs and outputs as action.yml declares them."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return "\n".join([INPUTS_HEAD, inputs(action), OUTPUTS_HEAD, outputs(action)])


def page() -> str:
    """The content of docs/settings.md."""
    described = list(describe())
    top = [each for each in described if each.default is not None and "." not in each.path]
    parts = [PAGE_HEAD, "## General\n", settings_table(top)]
    for section in (each for each in described if each.default is None):
        inside = [each for each in described if each.path.startswith(f"{section.path}.")]
        parts += [f"## {section.path}\n", f"{section.explanation}\n", settings_table(inside)]
    return "\n".join([*parts, action_tables(), variables()])


WEIGHTS = "weights"
"""The mark of the two comments around the tables of weights in docs/evaluation.md."""

NO_WEIGHT = "–"


def number(value: float) -> str:
    """The number with two decimals and a typographic minus."""
    return f"{value:.2f}".replace("-", "−")


def weights_table(features: Sequence[Feature], models: Sequence[Mapping[str, float]]) -> list[tuple[str, ...]]:
    """The rows of these features, each with its weight in each model."""
    return [
        (
            f"`{each.name}`",
            each.about,
            *(number(part[each.name]) if each.name in part else NO_WEIGHT for part in models),
        )
        for each in features
    ]


def weights() -> str:
    """The shipped ranking: the weights of the order, and those of the confidence with its intercept and cut."""
    models = [getattr(shipped(), kind) for kind in MODEL_NAMES]
    columns = ("feature", "what it measures", *(kind.replace("_", " ") for kind in MODEL_NAMES))
    rest = [
        ("to begin with", "", *(number(model.intercept) for model in models)),
        (f"confidence at a similarity of {CUT_SIMILARITY}", "", *(f"{model.cut:.3f}" for model in models)),
    ]
    return "\n".join(
        [
            "The order of candidates:\n",
            table(columns, weights_table(ORDER_FEATURES, [model.order for model in models])),
            "The confidence in a hit:\n",
            table(columns, [*weights_table(CONFIDENCE_FEATURES, [model.confidence for model in models]), *rest]),
        ]
    )


def with_workflow(text: str) -> str:
    """The page with the workflow that `precedent init` writes; unchanged if it shows none."""
    shown = re.compile(r"(?<=^```yaml\n)name: Precedent\n.*?(?=^```$)", re.MULTILINE | re.DOTALL)
    return shown.sub(lambda _: workflow_text(), text, count=1)


def pages() -> dict[Path, str]:
    """The files generated from the code, whole or in part, with their correct content."""
    evaluation, tools, workflows = ROOT / "docs/evaluation.md", ROOT / "docs/agents.md", ROOT / "docs/workflows.md"
    asking = ROOT / "docs/asking.md"
    return {
        **{ROOT / f"docs/schemas/{name}.v1.json": text for name, text in schemas().items()},
        asking: between(asking.read_text(encoding="utf-8"), FIELDS, fields_table()),
        ROOT / "config.example.yml": example(),
        ROOT / "docs/settings.md": page(),
        workflows: with_workflow(workflows.read_text(encoding="utf-8")),
        evaluation: between(evaluation.read_text(encoding="utf-8"), WEIGHTS, weights()),
        tools: between(tools.read_text(encoding="utf-8"), PARAMETERS, parameters()),
    }


def main() -> int:
    """Write the files; with ``--check``, write nothing and return 1 if one differs."""
    stale = 0
    for path, text in pages().items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} differs from what the code says: run `make docs`", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
