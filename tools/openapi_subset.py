"""Makes the contract of the fake GitHub: the part of GitHub's OpenAPI description that the fake serves.

``python -m tools.openapi_subset`` writes ``tests/fakes/contract/openapi.json.gz``, the same bytes each time.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fakes.service import ROUTES
from tools.npm import Package

PACKAGE = Package(
    "@octokit/openapi@23.0.2",
    "pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
)
MEMBER = "generated/api.github.com.json"
TARGET = Path(__file__).resolve().parents[1] / "tests/fakes/contract/openapi.json.gz"
EXAMPLES = (
    *("commit", "full-repository", "installation", "integration", "issue", "issue-comment", "pull-request"),
    *("rate-limit-overview", "release", "simple-user", "tag-items"),
)
"""The objects that the fake starts from."""

PROSE = frozenset(
    {"description", "summary", "example", "examples", "externalDocs", "title", "x-github", "x-multi-segment"}
)
NAME_MAPS = frozenset({"properties", "patternProperties", "schemas", "parameters", "responses", "headers", "examples"})


def without_prose(node: Any, names_below: bool = False) -> Any:
    """The same description without words for people. In a map of names (``properties``) a key is never prose."""
    if isinstance(node, list):
        return [without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value
        if key in ("enum", "required") and not names_below
        else without_prose(value, not names_below and key in NAME_MAPS)
        for key, value in node.items()
        if names_below or key not in PROSE
    }


def pick_operations(description: dict[str, Any]) -> dict[str, Any]:
    """The operations that the fake serves, by their paths."""
    paths: dict[str, Any] = {}
    for template, method in sorted((route.template, route.method.lower()) for route in ROUTES.routes):
        operation = without_prose(description["paths"][template][method])
        for response in operation["responses"].values():
            with_empty_description(response)
        paths.setdefault(template, {})[method] = operation
    return paths


def with_empty_description(response: dict[str, Any]) -> None:
    """OpenAPI demands a ``description`` of every response; an empty one is enough."""
    if "$ref" not in response:
        response["description"] = ""


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str):
            yield target
        node = list(node.values())
    for value in node if isinstance(node, list) else ():
        yield from references(value)


def pick_components(description: dict[str, Any], paths: dict[str, Any]) -> dict[str, Any]:
    """Everything that ``paths`` refers to, directly or not, and the example objects the fake starts from."""
    components: dict[str, dict[str, Any]] = {}
    waiting = list(references(paths))
    while waiting:
        _, _, group, name = waiting.pop().split("/")
        if name in components.setdefault(group, {}):
            continue
        part = components[group][name] = without_prose(description["components"][group][name])
        if group == "responses":
            with_empty_description(part)
        waiting.extend(references(part))
    components["examples"] = {name: description["components"]["examples"][name] for name in EXAMPLES}
    return {group: dict(sorted(parts.items())) for group, parts in sorted(components.items())}


def main() -> None:
    description = json.loads(PACKAGE.part(PACKAGE.fetch(), MEMBER))
    paths = pick_operations(description)
    subset = {
        "openapi": description["openapi"],
        "info": {"title": f"Subset of {PACKAGE.name}", "version": description["info"]["version"]},
        "paths": paths,
        "components": pick_components(description, paths),
    }
    text = json.dumps(subset, separators=(",", ":"), ensure_ascii=False)
    TARGET.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes, {len(ROUTES.routes)} operations")


if __name__ == "__main__":
    main()
