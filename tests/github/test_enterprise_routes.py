"""GitHub's descriptions of Enterprise Server have every route and every parameter that we use on github.com."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.fakes.contract import load_description
from tests.fakes.service import ROUTES
from tools.npm import Missing
from tools.openapi_subset import PACKAGE

VERSIONS = ("3.17", "3.19")
"""The oldest and the newest that the package describes."""

Description = Mapping[str, Any]


@pytest.fixture(scope="module")
def package() -> bytes:
    try:
        return PACKAGE.fetch()
    except Missing as missing:
        pytest.skip(str(missing))


def parameters(description: Description, path: str, method: str) -> set[tuple[str, str]]:
    """Place and name of each parameter."""
    item = description["paths"][path]
    named = description["components"]["parameters"]
    listed = [*item[method].get("parameters", ()), *item.get("parameters", ())]
    found = [named[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in listed]
    return {(each["in"], each["name"]) for each in found}


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_enterprise_server_has_each_route_with_each_parameter(package: bytes, version: str) -> None:
    enterprise, usual = json.loads(PACKAGE.part(package, f"generated/ghes-{version}.json")), load_description()
    assert enterprise["servers"][0]["url"].endswith("/api/v3")
    routes = [(route.template, route.method.lower()) for route in ROUTES.routes]
    assert [route for route in routes if route[1] not in enterprise["paths"].get(route[0], {})] == []
    for route in routes:
        assert parameters(usual, *route) <= parameters(enterprise, *route), route
