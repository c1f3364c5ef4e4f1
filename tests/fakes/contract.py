"""The contract of the fake: checks every request and response against GitHub's own OpenAPI description."""

from __future__ import annotations

import functools
import gzip
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jsonschema.exceptions import ValidationError, best_match
from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import Headers, ImmutableMultiDict

Pairs = tuple[tuple[str, str], ...]
FOLDER = Path(__file__).with_name("contract")
Outline = tuple[object, ...]
STAMP = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII)
_PASSED: set[Outline] = set()
"""Outlines of replies, and of items of lists, that fit the description."""
HOST = "http://fake.invalid"
"""The only server in the loaded description; the contract ignores the fake's real address."""


@dataclass(frozen=True)
class Exchange:
    """A request and its reply, as both went over the wire.

    ``template`` and ``params`` tell the route (``/repositories/{id}/…`` is written as ``/repos/{owner}/…``).
    """

    method: str
    template: str
    params: dict[str, str]
    query: str
    headers: dict[str, str]
    body: bytes
    status: int
    reply_type: str
    reply: bytes


@dataclass
class WireRequest:
    """The request in the form that openapi-core reads."""

    host_url: str
    path: str
    method: str
    parameters: RequestParameters
    body: bytes | None
    content_type: str


@dataclass
class WireResponse:
    """The reply in the form that openapi-core reads."""

    data: bytes | None
    status_code: int
    content_type: str
    headers: Headers = field(default_factory=Headers)


@functools.cache
def load_description() -> dict[str, Any]:
    """The subset of the description that the fake uses, repaired by `repair`."""
    description: dict[str, Any] = json.loads(gzip.decompress((FOLDER / "openapi.json.gz").read_bytes()))
    return repair(description)


@functools.cache
def load_example(name: str) -> Any:
    """An example object of the description; treat it as read-only."""
    return load_description()["components"]["examples"][name]["value"]


@functools.cache
def load_openapi() -> OpenAPI:
    # Validating the description itself would take ten seconds.
    return OpenAPI.from_dict(load_description(), config=Config(spec_validator_cls=None))


def repair(description: dict[str, Any]) -> dict[str, Any]:
    """Correct the description where it is known to be wrong or cannot be applied as it is.

    `servers` points at the fake; a `nullable` `enum` gets `null`; the actor of an event may be `null`, because accounts
    get deleted; and no account with an installation is a user and an enterprise at once.
    """
    description["servers"] = [{"url": HOST}]
    _add_null_to_enums(description["components"]["schemas"])
    installations = description["paths"]["/app/installations"]["get"]["responses"]["200"]["content"]
    installations["application/json"]["schema"]["items"] = {"$ref": "#/components/schemas/installation"}
    for name, schema in description["components"]["schemas"].items():
        if name.endswith("-event") and "event" in name:
            for key in ("actor", "user"):
                if schema.get("properties", {}).get(key) == {"$ref": "#/components/schemas/simple-user"}:
                    schema["properties"][key] = {"$ref": "#/components/schemas/nullable-simple-user"}
    return description


def _add_null_to_enums(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("nullable") and isinstance(node.get("enum"), list) and None not in node["enum"]:
            node["enum"].append(None)
        for value in node.values():
            _add_null_to_enums(value)
    elif isinstance(node, list):
        for value in node:
            _add_null_to_enums(value)


def find_violations(exchange: Exchange, injected: bool = False) -> list[str]:
    """How this exchange violates the description; the reply is not checked if it is an injected fault."""
    where = f"{exchange.method} {exchange.template}"
    violations = [f"{where}: request: {text}" for text in _request_complaints(exchange)]
    if injected or exchange.status == 304:
        return violations
    if not _is_described(exchange):
        return violations + [f"{where}: {exchange.status}: {text}" for text in _undescribed(exchange)]
    return violations + [f"{where}: {exchange.status}: {text}" for text in _reply_complaints(exchange)]


def _reply_complaints(exchange: Exchange) -> list[str]:
    """Checking takes far longer than serving, so replies and items of lists like those that passed are not checked."""
    reply, route = exchange.reply, (exchange.method, exchange.template, exchange.status)
    try:
        value = json.loads(reply or b"null")
    except ValueError:
        outlines = frozenset[Outline]()
    else:
        items = {_outline(item): item for item in value} if isinstance(value, list) else {_outline(value): value}
        outlines = frozenset((*route, isinstance(value, list), outline) for outline in items)
        if outlines and outlines <= _PASSED:
            return []
        unknown = [item for outline, item in items.items() if (*route, True, outline) not in _PASSED]
        reply = json.dumps(unknown).encode() if isinstance(value, list) else reply
    response = WireResponse(reply, exchange.status, exchange.reply_type)
    complaints = _complaints(load_openapi().validate_response, to_wire_request(exchange), response)
    if not complaints:
        _PASSED.update(outlines)
    return complaints


def _outline(value: Any, name: str = "") -> Outline:
    """What decides whether a value passes: the types of all its parts, and the text where only some words will do."""
    if isinstance(value, dict):
        return tuple((key, _outline(part, key)) for key, part in value.items())
    if isinstance(value, list):
        return name, frozenset(_outline(item, name) for item in value)
    if isinstance(value, str) and name not in _worded_fields():
        return "str", bool(STAMP.fullmatch(value))
    return type(value).__name__, value if isinstance(value, str) else None


@functools.cache
def _worded_fields() -> frozenset[str]:
    """The names of all fields whose text must be one of some words, or of some form."""
    names: set[str] = set()

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            properties = node.get("properties")
            fields = properties.items() if isinstance(properties, dict) else ()
            names.update(name for name, schema in fields if isinstance(schema, dict) and _is_worded(schema))
        for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            collect(part)

    collect(load_description())
    return frozenset(names)


def _is_worded(schema: dict[str, Any]) -> bool:
    if "$ref" in schema:
        return _is_worded(load_description()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]])
    parts = [part for name in ("allOf", "anyOf", "oneOf") for part in schema.get(name, ())]
    if "items" in schema:
        parts.append(schema["items"])
    return bool({"enum", "pattern"} & schema.keys()) or any(_is_worded(part) for part in parts)


def _request_complaints(exchange: Exchange) -> list[str]:
    """Without a body, one check covers all issue and page numbers, since checking takes longer than serving."""
    if exchange.body:
        return _complaints(load_openapi().validate_request, to_wire_request(exchange))
    params = tuple((name, _any_number(value)) for name, value in exchange.params.items())
    pairs = parse_qsl(exchange.query, keep_blank_values=True)
    query = tuple((name, _any_number(value) if name == "page" else value) for name, value in pairs if name != "after")
    return _bodiless_complaints(exchange.method, exchange.template, params, query)


def _any_number(text: str) -> str:
    return "1" if text.isascii() and text.isdigit() else text


@functools.lru_cache(maxsize=4096)
def _bodiless_complaints(method: str, template: str, params: Pairs, query: Pairs) -> list[str]:
    exchange = Exchange(method, template, dict(params), urlencode(query), {}, b"", 0, "", b"")
    return _complaints(load_openapi().validate_request, to_wire_request(exchange))


def to_wire_request(exchange: Exchange) -> WireRequest:
    # openapi-core matches path parameters up to the next slash, but the names of branches may hold slashes.
    path = exchange.template.format(**{key: quote(value, safe="") for key, value in exchange.params.items()})
    query = ImmutableMultiDict(parse_qsl(exchange.query, keep_blank_values=True))
    parameters = RequestParameters(query=query, header=Headers(list(exchange.headers.items())))
    kind = exchange.headers.get("Content-Type", "").split(";")[0] or "application/json"
    # GitHub reads JSON whatever the type says, and clients send no type or `application/vnd.github+json`.
    return WireRequest(HOST, path, exchange.method.lower(), parameters, exchange.body or None, _plain(kind))


def _plain(content_type: str) -> str:
    return "application/json" if "json" in content_type or "urlencoded" in content_type else content_type


def _is_described(exchange: Exchange) -> bool:
    operation = load_description()["paths"].get(exchange.template, {}).get(exchange.method.lower(), {})
    described = operation.get("responses", {}).get(str(exchange.status))
    if described is None:
        return False
    if "application/json" not in exchange.reply_type:
        return not exchange.reply and exchange.status == 204
    return "$ref" in described or bool(described.get("content"))


def _undescribed(exchange: Exchange) -> list[str]:
    """GitHub refuses in more ways than it describes (401, 403, 301, …); such a reply must be at least a basic error."""
    if exchange.status < 300:
        return ["the description has no such reply"]
    try:
        error = json.loads(exchange.reply)
    except ValueError:
        return ["the refusal is not JSON"]
    is_malformed = not isinstance(error, dict) or not all(
        isinstance(error.get(k), str) for k in ("message", "documentation_url")
    )
    return ["the refusal is not a basic error: message and documentation_url"] if is_malformed else []


def _complaints(check: Any, *arguments: Any) -> list[str]:
    try:
        check(*arguments)
    except OpenAPIError as error:
        return [_explain(error)]
    return []


def _explain(error: BaseException) -> str:
    """The innermost reasons in one line, with the place in the document if it is known."""
    details = getattr(error.__cause__ or error, "schema_errors", None)
    if details:
        return "; ".join(_explain_detail(item) for item in details)
    cause = error.__cause__
    return f"{error}" if cause is None else f"{error}: {cause}"


def _explain_detail(item: ValidationError) -> str:
    """The error of the alternative that came closest, if all failed."""
    closest = best_match([item]) or item
    place = "/".join(map(str, closest.absolute_path)) or "."
    return f"{place}: {shorten(closest.message, 300)}"
