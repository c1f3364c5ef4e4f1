"""GraphQL on the fake: queries are validated by GitHub's schema and run on the state of the REST API."""

from __future__ import annotations

import functools
import re
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    IntValueNode,
    Node,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    VariableNode,
    build_schema,
    execute,
    parse,
    validate,
)
from graphql.execution.values import get_variable_values

from tests.fakes.contract import FOLDER
from tests.fakes.exchange import Call, Refusal, Reply
from tests.fakes.graph_fields import type_name
from tests.fakes.graph_table import FIELDS
from tests.fakes.limits import Allowance

MAX_NODES = 500_000
POINTS = 100
"""How many requests for connections cost one point."""


@functools.cache
def load_schema() -> GraphQLSchema:
    return build_schema((FOLDER / "schema.graphql").read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=256)
def parse_query(query: str) -> DocumentNode:
    return parse(query)


@functools.lru_cache(maxsize=256)
def validate_query(query: str) -> list[str]:
    """What GitHub's schema refuses in this query; empty if nothing."""
    try:
        return [error.message for error in validate(load_schema(), parse_query(query))]
    except GraphQLError as error:
        return [error.message]


def validate_variables(query: str, variables: dict[str, Any]) -> list[str]:
    """What GitHub's schema refuses in the variables of a valid query, such as an unknown input field."""
    operation = next(
        definition for definition in parse_query(query).definitions if isinstance(definition, OperationDefinitionNode)
    )
    values = get_variable_values(load_schema(), operation.variable_definitions or (), variables)
    return [error.message for error in values] if isinstance(values, list) else []


def writes(query: str) -> bool:
    return re.search(r"^\s*mutation\b", query, re.MULTILINE) is not None


def answer_query(call: Call, allowance: Allowance) -> tuple[Reply, list[str]]:
    """The reply, always 200, and the schema's complaints about the query."""
    payload = call.json()
    query, variables = str(payload.get("query") or ""), payload.get("variables") or {}
    complaints = validate_query(query) or validate_variables(query, variables)
    if complaints:
        return Reply(200, {"errors": [{"message": text} for text in complaints]}), [
            f"POST /graphql: {text}" for text in complaints
        ]
    document = parse_query(query)
    nodes, requests = measure(document, variables)
    cost = max(1, round(requests / POINTS))
    if nodes > MAX_NODES:
        text = f"This query requests up to {nodes} possible nodes which exceeds the maximum limit of {MAX_NODES}."
        return Reply(200, {"errors": [{"type": "MAX_NODE_LIMIT_EXCEEDED", "message": text}]}), []
    if allowance.remaining < cost:
        return Reply(200, exhausted(call)), []
    allowance.used += cost
    result = execute(
        load_schema(),
        document,
        context_value=call,
        variable_values=variables,
        operation_name=payload.get("operationName"),
        field_resolver=resolve_field,
        type_resolver=lambda value, info, abstract: type_name(value),
    )
    assert isinstance(result, ExecutionResult)
    unserved = [str(e.original_error) for e in result.errors or () if isinstance(e.original_error, NotImplementedError)]
    return Reply(200, formatted(result)), unserved


def exhausted(call: Call) -> dict[str, Any]:
    """GitHub reports an exhausted limit with status 200."""
    return {"errors": [{"type": "RATE_LIMITED", "message": limit_message(call)}]}


def limit_message(call: Call) -> str:
    if call.token is None:
        return "API rate limit exceeded for 127.0.0.1."
    kind = "installation" if call.token.app else "user"
    return f"API rate limit exceeded for {kind} ID {call.token.account.id}."


def resolve_field(source: Any, info: GraphQLResolveInfo[Call], **arguments: Any) -> Any:
    name = (info.parent_type.name, info.field_name)
    if isinstance(source, dict) and info.field_name in source:
        return source[info.field_name]
    resolve = FIELDS.get(name)
    if resolve is None:
        raise NotImplementedError(f"the fake has no resolver for {'.'.join(name)}")
    return resolve(source, info.context, arguments)


def formatted(result: ExecutionResult) -> dict[str, Any]:
    """Errors as GitHub writes them: ``type`` beside the message, not under ``extensions``."""
    body: dict[str, Any] = {"data": result.data}
    if result.errors:
        body["errors"] = [_formatted_error(error) for error in result.errors]
    return body


def _formatted_error(error: GraphQLError) -> dict[str, Any]:
    shape: dict[str, Any] = dict(error.formatted)
    refusal = error.original_error
    kind = (error.extensions or {}).get("type") or ("FORBIDDEN" if isinstance(refusal, Refusal) else None)
    shape.pop("extensions", None)
    return shape | ({"type": kind} if kind else {})


def measure(document: DocumentNode, variables: dict[str, Any]) -> tuple[int, int]:
    """(nodes, requests) that the document may cause, as GitHub computes it: by multiplying the sizes on the way."""
    fragments = {d.name.value: d for d in document.definitions if isinstance(d, FragmentDefinitionNode)}
    nodes = requests = 0
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            counts = _measure(definition.selection_set, 1, fragments, variables)
            nodes, requests = nodes + counts[0], requests + counts[1]
            nodes += definition.operation == OperationType.MUTATION
    return nodes, requests


def _measure(
    selected: SelectionSetNode | None,
    times: int,
    fragments: dict[str, FragmentDefinitionNode],
    variables: dict[str, Any],
) -> tuple[int, int]:
    nodes = requests = 0
    for item in selected.selections if selected else ():
        inner: Any = item
        if not isinstance(item, FieldNode) and hasattr(item, "name"):
            inner = fragments[item.name.value]
        size = _size(item, variables) if isinstance(item, FieldNode) else None
        below = _measure(inner.selection_set, times * (size or 1), fragments, variables)
        nodes += below[0] + (times * size if size else 0)
        requests += below[1] + (times if size else 0)
    return nodes, requests


def _size(item: FieldNode, variables: dict[str, Any]) -> int | None:
    for argument in item.arguments or ():
        if argument.name.value in ("first", "last"):
            value: Node = argument.value
            if isinstance(value, IntValueNode):
                return int(value.value)
            if isinstance(value, VariableNode):
                return int(variables.get(value.name.value) or 0) or None
    return None
