"""Writes config.example.yml and docs/settings.md from the settings in the code; with --check it only compares."""

import json
import sys
from pathlib import Path

import yaml

from bot.config import CONFIG_PATH
from bot.inputs import INPUTS
from bot.settings import Described, Value, describe

ROOT = Path(__file__).resolve().parents[1]

EXAMPLE_HEAD = f"""\
# Every setting of Precedent with its default. Copy the lines that you want to change to {CONFIG_PATH}
# on the default branch; what is absent keeps its default, and without that file everything does.
"""

PAGE_HEAD = f"""\
# Settings

Precedent reads `{CONFIG_PATH}` from the default branch, never from a pull request. No file means the defaults below,
and so does a section or a setting that is left out. [`config.example.yml`](../config.example.yml) holds all of them,
ready to copy from.

The file is YAML of at most 64 KB, without anchors, aliases and tags. A name that is not known, a value of the wrong
type and a number out of its bounds are errors that name the file, the line and what would be right:

```
.github/precedent.yml:3: unknown setting 'references.mx'; did you mean "references.max"?
```

With an error in the file nothing is posted: the job summary shows the line above, and the repository goes on being
remembered with the defaults. `on`, `off`, `yes` and `no` are words; yes and no are written `true` and `false`.
"""

INPUTS_HEAD = """\
## Inputs of the action

What may differ between two workflows of one repository stands in the workflow, under `with:`. An input that is left
out or empty changes nothing.
"""

OUTPUTS_HEAD = """\
## Outputs of the action

Numbers, truth values, addresses of its own and file paths only: what people wrote goes into the file that `context`
names, never into an output.
"""


def yaml_value(value: Value) -> str:
    """The value as one line of YAML; a text is quoted where it would be read as something else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[]" if not value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and not value.replace("-", "").isalnum():
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def example_lines(each: Described) -> list[str]:
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


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table; cells hold no line breaks, and bars in them are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def settings_table(settings: list[Described]) -> str:
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
    inputs = [
        (f"`{name}`", f"`{given['default']}`" if given["default"] else "", given["description"])
        for name, given in sorted(action["inputs"].items(), key=lambda item: INPUTS.index(item[0]))
    ]
    outputs = [(f"`{name}`", given["description"]) for name, given in action["outputs"].items()]
    return "\n".join(
        [
            INPUTS_HEAD,
            table(("input", "default", "what it does"), inputs),
            OUTPUTS_HEAD,
            table(("output", "what it holds"), outputs),
        ]
    )


def page() -> str:
    """The content of docs/settings.md."""
    described = list(describe())
    top = [each for each in described if each.default is not None and "." not in each.path]
    parts = [PAGE_HEAD, "## General\n", settings_table(top)]
    for section in (each for each in described if each.default is None):
        inside = [each for each in described if each.path.startswith(f"{section.path}.")]
        parts += [f"## {section.path}\n", f"{section.explanation}\n", settings_table(inside)]
    return "\n".join([*parts, action_tables()])


def main() -> int:
    """Write both files; with ``--check`` write nothing and return 1 where one differs."""
    stale = 0
    for path, text in ((ROOT / "config.example.yml", example()), (ROOT / "docs/settings.md", page())):
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} differs from the settings in the code: run `make docs`", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
