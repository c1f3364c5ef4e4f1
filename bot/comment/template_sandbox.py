"""Renders strangers' templates safely: a small subset of Jinja with a budget of steps. The only importer of jinja2.

A template from a repository is a stranger's code. Three walls contain it:

1. the syntax tree is checked against a list of allowed nodes before anything is compiled or folded (no calls but
   ``super()``, no macros, imports or includes, no concatenation, slices or powers, no nested literals);
2. attribute access reaches only dict keys and loop counters, so no Python method or class is within reach;
3. each loop iteration, block and output is charged to a budget, which bounds time and memory. Unlike a clock or a
   signal, counting works in every thread and gives the same verdict on every machine.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping
from traceback import walk_tb
from typing import Any

from jinja2 import (
    DictLoader,
    Environment,
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    Undefined,
    nodes,
    pass_context,
)
from jinja2.exceptions import SecurityError, TemplateAssertionError, TemplateNotFound, TemplateSyntaxError
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

STEP_BUDGET = 100_000
"""Steps of one rendering. A visited node or ten characters of output cost about one."""

MAX_SOURCE_CHARS = 65_536
"""Maximum characters of all of a repository's templates together."""

_BUDGET_KEY = "\0budget"
"""The key of the budget in a rendering's context. No template can spell a name like this."""

_LOOP_FIELDS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth"})
_MAX_INTEGER = 10**9

_ALLOWED_NODES: tuple[type[nodes.Node], ...] = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Extends, nodes.Block, nodes.For, nodes.If, nodes.Assign,
    nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Test,
    nodes.Call, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Compare, nodes.Operand, nodes.Add, nodes.Sub,
    nodes.Mul, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos,
)  # fmt: skip

_TEMPLATE_ERRORS = (
    TemplateError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NameError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""Everything that reading, compiling or running a template of the allowed kind can raise."""


class TemplateFault(Exception):
    """The template cannot be used; the message is one line with the reason."""


class OutputTooLong(TemplateFault):
    """The output is too long."""


class _StepBudget:
    def __init__(self, steps: int) -> None:
        self._left = steps

    def pay(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise SecurityError("it takes too many steps (a loop in a loop?)")


class Sandbox:
    """A set of templates by name, ready to be rendered any number of times, from any thread."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = dict(sources)
        self._environment = _Environment(self._sources)

    def render(self, name: str, view: Mapping[str, object], limit: int) -> str:
        """Render the template ``name`` with ``view``: plain dicts, lists, strings and numbers, already harmless.

        Raises OutputTooLong as soon as the output passes ``limit`` characters, TemplateFault for every other failure.
        """
        pieces, length = list[str](), 0
        try:
            template = self._environment.get_template(name)
            for piece in template.generate({**view, _BUDGET_KEY: _StepBudget(STEP_BUDGET)}):
                pieces.append(piece)
                length += len(piece)
                if length > limit:
                    raise OutputTooLong(f"its text is longer than {limit:,} characters")
        except _TEMPLATE_ERRORS as fault:
            raise TemplateFault(_reason(fault, name, self._sources)) from fault
        return "".join(pieces)


def render_trusted(sources: Mapping[str, str], name: str, values: Mapping[str, object]) -> str:
    """Render one of our own HTML templates, without walls or budget. ``values`` are escaped unless marked ``safe``.

    The filter ``sha256`` gives the hash of an inline style or script for a Content-Security-Policy
    (https://www.w3.org/TR/CSP3/#grammardef-hash-source).
    """
    pages = Environment(
        loader=DictLoader(dict(sources)),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["sha256"] = _sha256
    return pages.get_template(name).render(values)


def _sha256(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, sources: Mapping[str, str]) -> None:
        super().__init__(
            loader=FunctionLoader(lambda name: (sources[name], name, None) if name in sources else None),
            undefined=StrictUndefined,
            autoescape=False,  # nosec B701: the view is defanged Markdown; HTML escaping would spoil it
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finalize,
        )
        self.globals.clear()
        self.filters = {
            "default": lambda value, otherwise="": otherwise if isinstance(value, Undefined) else value,
            "first": lambda values: _require_list(values)[0],
            "last": lambda values: _require_list(values)[-1],
            "length": lambda values: len(_require_list(values)),
            "join": _join,
            _LOOP_CHARGE: _charge_loop,
            _BLOCK_CHARGE: _charge_block,
        }
        self.tests = {name: self.tests[name] for name in ("defined", "undefined", "none")}

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext) and attribute in _LOOP_FIELDS:
            return getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            if isinstance(obj, dict) and isinstance(argument, str):
                return obj[argument]
            if isinstance(obj, list) and isinstance(argument, int):
                return obj[argument]
        except LookupError:
            pass
        return self.undefined(f"there is no {argument!r} here")

    def call(self, context: Context, obj: Any, /, *_: Any, **__: Any) -> Any:
        """Charge for ``super()``, the only call that the syntax check allows."""
        text = super().call(context, obj)
        _spend(context, 10 + len(text) // 10)
        return text

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        if not all(type(side) is int and abs(side) < _MAX_INTEGER for side in (left, right)):
            raise SecurityError(f"{operator} takes small whole numbers only")
        return self.binop_table[operator](left, right)

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        _check(source, name)
        _add_charges(source)
        source.set_environment(self)
        return super()._generate(source, name, filename, defer_init)


def _check(tree: nodes.Template, name: str | None) -> None:
    for node in _walk(tree):
        if type(node) not in _ALLOWED_NODES or not _is_plain(node):
            kind = type(node).__name__.lower()
            raise TemplateAssertionError(f"{kind} of this kind is not allowed", node.lineno, name)


def _is_plain(node: nodes.Node) -> bool:
    match node:
        case nodes.Name(name=name):
            return not name.startswith("_")
        case nodes.Call():
            has_no_arguments = not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
            return has_no_arguments and isinstance(node.node, nodes.Name) and node.node.name == "super"
        case nodes.Filter(name=name):
            return node.node is not None and name not in (_LOOP_CHARGE, _BLOCK_CHARGE)
        case nodes.For():
            return not node.recursive
        case nodes.Extends():
            return isinstance(node.template, nodes.Const)
        case nodes.Getitem():
            return not isinstance(node.arg, nodes.Slice)
        case nodes.List() | nodes.Tuple():
            return all(
                isinstance(item, nodes.Const) or (isinstance(item, nodes.Name) and item.ctx == "store")
                for item in node.items
            )
    return True


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    todo = [node]
    while todo:
        current = todo.pop()
        yield current
        todo.extend(current.iter_child_nodes())


def _add_charges(tree: nodes.Template) -> None:
    """Make each loop iteration and each block pay for its content."""
    for node in list(_walk(tree)):
        if isinstance(node, nodes.For):
            node.iter = _filter_node(node.iter, _LOOP_CHARGE, _weight(node))
        elif isinstance(node, nodes.Block | nodes.Template):
            charge = nodes.Output([_filter_node(nodes.Const(""), _BLOCK_CHARGE, _weight(node))], lineno=node.lineno)
            extends = [part for part in node.body if isinstance(part, nodes.Extends)]
            node.body = [*extends, charge, *(part for part in node.body if not isinstance(part, nodes.Extends))]


def _weight(node: nodes.Node) -> int:
    letters = sum(len(part.data) // 10 for part in _walk(node) if isinstance(part, nodes.TemplateData))
    return letters + sum(_STEP_COSTS.get(type(part), 1) for part in _walk(node))


def _filter_node(node: nodes.Node, name: str, weight: int) -> nodes.Filter:
    return nodes.Filter(node, name, [nodes.Const(weight)], [], None, None, lineno=node.lineno or 1)


_STEP_COSTS: dict[type[nodes.Node], int] = {nodes.Compare: 20, nodes.Filter: 10, nodes.Call: 10}
_LOOP_CHARGE = "paid loop"
_BLOCK_CHARGE = "toll"


def _spend(context: Context, steps: int) -> None:
    context.parent[_BUDGET_KEY].pay(steps)


@pass_context
def _charge_loop(context: Context, values: Any, weight: int) -> Iterator[Any]:
    if not isinstance(values, list | tuple):
        raise SecurityError("loops run over lists only")
    for value in values:
        _spend(context, weight)
        yield value


@pass_context
def _charge_block(context: Context, value: str, weight: int) -> str:
    _spend(context, weight)
    return value


@pass_context
def _finalize(context: Context, value: Any) -> str:
    if isinstance(value, Undefined):
        return str(value)  # raises: StrictUndefined names what is missing
    if type(value) not in (str, int):
        raise SecurityError(f"only text and numbers can be shown, not {type(value).__name__}")
    text = str(value)
    _spend(context, 1 + len(text) // 10)
    return text


@pass_context
def _join(context: Context, values: Any, between: str = "") -> str:
    texts = _require_list(values)
    if not all(type(text) is str for text in (*texts, between)):
        raise SecurityError("join takes a list of texts")
    _spend(context, sum(len(text) + len(between) for text in texts) // 10)
    return between.join(texts)


def _require_list(values: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(values, list | tuple):
        raise SecurityError("this filter takes a list")
    return values


def _reason(fault: BaseException, name: str, sources: Collection[str]) -> str:
    """One line about a fault in this template or one that it extends, without memory addresses or paths."""
    if isinstance(fault, RecursionError):
        return "it calls itself, or is nested too deeply"
    match fault:
        case TemplateNotFound():
            message = f"there is no template {fault}"
        case SyntaxError():  # in the code that Jinja generated: str() would name a line of that code
            message = fault.msg
        case _:
            message = str(fault)
    words = " ".join(message.split()) or type(fault).__name__
    position = _fault_position(fault, name, sources)
    if not position:
        return words[:300]
    template, line = position
    return f"line {line}{'' if template == name else f' of {template}'}: {words}"[:300]


def _fault_position(fault: BaseException, name: str, sources: Collection[str]) -> tuple[str, int] | None:
    """The template and line of a fault. Jinja's traceback frames carry the file name that the loader gives."""
    if isinstance(fault, TemplateSyntaxError):
        return fault.name or name, fault.lineno
    frames = ((frame.f_code.co_filename, line) for frame, line in walk_tb(fault.__traceback__))
    return next((position for position in reversed(list(frames)) if position[0] in sources), None)
