"""Makes the contract of the fake GitHub: the part of GitHub's OpenAPI description that the fake serves.

``python tools/openapi_subset.py [DESCRIPTION.json]`` writes ``tests/fakes/contract/openapi.json.gz``. Without an
argument the description is taken from the npm package named below. The same input gives the same bytes.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = "@octokit/openapi@23.0.2"
MEMBER = "package/generated/api.github.com.json"
TARGET = Path(__file__).resolve().parents[1] / "tests/fakes/contract/openapi.json.gz"
LIMIT = 250_000

ISSUES = "/repos/{owner}/{repo}/issues"
COMMENTS = f"{ISSUES}/comments"
PULLS = "/repos/{owner}/{repo}/pulls"
OPERATIONS: dict[str, tuple[str, ...]] = {
    "/repos/{owner}/{repo}": ("get",),
    ISSUES: ("get",),
    f"{ISSUES}/{{issue_number}}": ("get",),
    f"{ISSUES}/{{issue_number}}/comments": ("get", "post"),
    f"{ISSUES}/{{issue_number}}/timeline": ("get",),
    COMMENTS: ("get",),
    f"{COMMENTS}/{{comment_id}}": ("get", "patch", "delete"),
    f"{COMMENTS}/{{comment_id}}/reactions": ("get", "post"),
    "/repos/{owner}/{repo}/collaborators/{username}/permission": ("get",),
    "/repos/{owner}/{repo}/releases": ("get",),
    "/repos/{owner}/{repo}/tags": ("get",),
    "/repos/{owner}/{repo}/commits/{ref}": ("get",),
    "/repos/{owner}/{repo}/compare/{basehead}": ("get",),
    f"{PULLS}/{{pull_number}}": ("get",),
    f"{PULLS}/{{pull_number}}/files": ("get",),
    "/app": ("get",),
    "/app/installations": ("get",),
    "/app/installations/{installation_id}": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    "/app/hook/deliveries": ("get",),
    "/app/hook/deliveries/{delivery_id}/attempts": ("post",),
    "/installation/repositories": ("get",),
    "/rate_limit": ("get",),
}
EXAMPLES = (
    "full-repository",
    "issue",
    "issue-comment",
    "simple-user",
    "pull-request",
    "commit",
    "integration",
    "installation",
    "rate-limit-overview",
    "release",
    "tag-items",
)
PROSE = frozenset(
    {"description", "summary", "example", "examples", "externalDocs", "title", "x-github", "x-multi-segment"}
)
NAME_MAPS = frozenset({"properties", "patternProperties", "schemas", "parameters", "responses", "headers", "examples"})


def fetch_description() -> dict[str, Any]:
    """The description from the npm package; ``npm`` decides where packages come from."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.split()[-1]
        with tarfile.open(Path(folder) / packed) as archive:
            member = archive.extractfile(MEMBER)
            if member is None:
                raise SystemExit(f"{PACKAGE} has no {MEMBER}: name the member that holds the description")
            description: dict[str, Any] = json.load(member)
            return description


def without_prose(node: Any, names_below: bool = False) -> Any:
    """The same description without words for people. In a map of names (``properties``) a key is never prose."""
    if isinstance(node, list):
        return [without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: value for key, value in node.items() if names_below or key not in PROSE}
    return {
        key: value
        if key in ("enum", "required") and not names_below
        else without_prose(value, not names_below and key in NAME_MAPS)
        for key, value in kept.items()
    }


def pick_operations(description: dict[str, Any]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for path, methods in OPERATIONS.items():
        item = description["paths"][path]
        paths[path] = {method: with_description_keys(without_prose(item[method])) for method in methods}
    return paths


def with_description_keys(operation: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI demands a ``description`` of every response; an empty one is enough."""
    for response in operation["responses"].values():
        if "$ref" not in response:
            response["description"] = ""
    return operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str):
            yield target
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def pick_components(description: dict[str, Any], paths: dict[str, Any]) -> dict[str, Any]:
    """Everything that ``paths`` refers to, directly or not, and the example objects the fake starts from."""
    components: dict[str, dict[str, Any]] = {}
    waiting = list(references(paths))
    while waiting:
        _, _, group, name = waiting.pop().split("/")
        if name in components.setdefault(group, {}):
            continue
        part = without_prose(description["components"][group][name])
        if group == "responses":
            part["description"] = ""
        components[group][name] = part
        waiting.extend(references(part))
    components["examples"] = {name: description["components"]["examples"][name] for name in EXAMPLES}
    return {group: dict(sorted(parts.items())) for group, parts in sorted(components.items())}


def make_subset(description: dict[str, Any]) -> dict[str, Any]:
    paths = pick_operations(description)
    return {
        "openapi": description["openapi"],
        "info": {"title": f"Subset of {PACKAGE}", "version": description["info"]["version"]},
        "paths": paths,
        "components": pick_components(description, paths),
    }


def main(arguments: list[str]) -> int:
    description = json.loads(Path(arguments[0]).read_text(encoding="utf-8")) if arguments else fetch_description()
    text = json.dumps(make_subset(description), separators=(",", ":"), ensure_ascii=False)
    packed = gzip.compress(text.encode(), mtime=0)
    if len(packed) > LIMIT:
        raise SystemExit(f"the subset has {len(packed)} bytes, more than {LIMIT}: drop an operation")
    TARGET.write_bytes(packed)
    print(f"{TARGET.name}: {len(packed)} bytes, {sum(map(len, OPERATIONS.values()))} operations")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
