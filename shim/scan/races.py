"""Findings where the order of concurrent work comes out: shared lists, counters, generators; completion order.

Heuristics, on the quiet side: only what several workers of this file change, by a name that all of them can see.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tapeproxy.shim.scan.calls import Hit
from tapeproxy.shim.scan.names import Function, Program
from tapeproxy.shim.scan.workers import Worker, workers

_GROWING = frozenset(("append", "extend", "insert", "appendleft", "extendleft", "put", "put_nowait"))
_GENERATORS = frozenset(
    ("random.Random()", "numpy.random.default_rng()", "numpy.random.RandomState()", "numpy.random.Generator()")
)
_NUMPY = re.compile(
    r"numpy\.random\.(?!default_rng|RandomState|SeedSequence|Generator|PCG64|MT19937|Philox|SFC64|seed)\w+$"
)
_LOCKS = re.compile(r"lock|mutex|sem(aphore)?\b|condition", re.IGNORECASE)
_COMPLETION = frozenset(("concurrent.futures.as_completed", "asyncio.as_completed"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class _Touch:
    """A place where a worker changes or draws from something shared, called `name`."""

    code: str
    node: ast.AST
    name: str
    what: str


def find(program: Program) -> Iterator[Hit]:
    """Every hit in a program."""
    yield from _completions(program)
    touched: dict[str, list[tuple[Worker, _Touch]]] = {}
    for worker in workers(program):
        for touch in _touches(program, worker):
            touched.setdefault(touch.name, []).append((worker, touch))
    for touches in touched.values():
        if sum({id(worker): worker.times for worker, _ in touches}.values()) > 1:
            for _, touch in touches:
                yield touch.code, touch.node, touch.what


def _completions(program: Program) -> Iterator[Hit]:
    for node in program.nodes:
        if not isinstance(node, ast.Call):
            continue
        path = program.path(node.func)
        name = path.rpartition(".")[2]
        if path in _COMPLETION or (name == "imap_unordered" and "." in path):
            if not _only_stores_by_key(program.parent(node)):
                yield "TP501", node, f"{name}()"
        elif path in ("asyncio.wait", "concurrent.futures.wait"):
            given = [keyword.value for keyword in node.keywords if keyword.arg == "return_when"]
            if any(program.path(value).endswith("FIRST_COMPLETED") for value in given):
                yield "TP501", node, f"{name}(return_when=FIRST_COMPLETED)"


def _only_stores_by_key(loop: ast.AST | None) -> bool:
    """Whether a loop over results does nothing but put each under its key, so that their order is lost again."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    statements: list[ast.stmt] = list(loop.body)
    stored = False
    while statements:
        match statements.pop():
            case ast.Assign(targets=[ast.Subscript()]):
                stored = True
            case ast.Assign(targets=[ast.Name() | ast.Tuple()]) | ast.Pass() | ast.Continue() | ast.Raise():
                pass
            case ast.Try(body=body, handlers=handlers, orelse=orelse):
                statements += [*body, *orelse, *(one for handler in handlers for one in handler.body)]
            case ast.If(body=body, orelse=orelse):
                statements += [*body, *orelse]
            case _:
                return False
    return stored


def _touches(program: Program, worker: Worker) -> Iterator[_Touch]:
    functions = _with_called(program, worker.function)
    if worker.kind == "task" and not any(isinstance(node, ast.Await) for one in functions for node in ast.walk(one)):
        return
    for function in functions:
        shared = worker.shared if function is worker.function else {}
        for node in ast.walk(function):
            yield from _touch(program, function, shared, node)


def _with_called(program: Program, function: Function) -> list[Function]:
    """The function, and those of this file that it calls."""
    found = [function]
    level = [function]
    for _ in range(_DEEPEST):
        calls = [node for one in level for node in ast.walk(one) if isinstance(node, ast.Call)]
        level = [
            called for call in calls if (called := program.function(call.func)) is not None and called not in found
        ]
        level = list(dict.fromkeys(level))
        found += level
    return found


def _touch(program: Program, function: Function, shared: dict[str, str], node: ast.AST) -> Iterator[_Touch]:
    match node:
        case ast.Call(func=ast.Attribute(value=holder, attr=attr)) if attr in _GROWING:
            if name := _outside(program, function, shared, holder):
                yield _locked(program, function, _Touch("TP502", node, name, f"{name}.{attr}()"))
        case ast.AugAssign(target=target):
            if name := _outside(program, function, shared, target):
                yield _locked(program, function, _Touch("TP502", node, name, f"{name} is changed in place"))
        case ast.Call(func=ast.Name(id="next"), args=[ast.Name() as counter]):
            if program.path(counter) == "itertools.count()" and (name := _outside(program, function, shared, counter)):
                yield _Touch("TP502", node, name, f"next({name})")
        case ast.Call(func=called) if _NUMPY.match(path := program.path(called)):
            yield _Touch("TP503", node, "numpy.random", f"{path}(), which the whole process shares")
        case ast.Call(func=ast.Attribute(value=holder)):
            if _is_generator(program, holder) and (name := _outside(program, function, shared, holder)):
                yield _Touch("TP503", node, name, name)
        case _:
            pass


def _is_generator(program: Program, holder: ast.AST) -> bool:
    if isinstance(holder, ast.Attribute):
        return any(program.path(value) in _GENERATORS for value in _attribute_values(program, holder.attr))
    return program.path(holder) in _GENERATORS


def _attribute_values(program: Program, name: str) -> Iterator[ast.AST]:
    for node in program.nodes:
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if attr == name:
                yield value
            case _:
                pass


def _outside(program: Program, function: Function, shared: dict[str, str], holder: ast.AST) -> str:
    """The name of something that was there before the function was called and others see, too; else empty."""
    match holder:
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr):
            return f"self.{attr}"
        case ast.Name(id=name) if name in shared:
            return shared[name]
        case ast.Name():
            home = program.home(holder)
            if home is None or not isinstance(home.node, (*_FUNCTIONS, ast.Module)):
                return ""
            inside = home.node is function or any(above is function for above in program.ancestors(home.node))
            is_plain_module = isinstance(program.bound(holder), str)
            return "" if inside or is_plain_module or _is_parameter(program, holder) else holder.id
        case _:
            return ""


def _is_parameter(program: Program, name: ast.Name) -> bool:
    """Whether a name is nothing but a parameter of a function around: each call may have its own."""
    home = program.home(name)
    return home is not None and set(home.names[name.id]) == {None} and not isinstance(home.node, ast.Module)


def _locked(program: Program, function: Function, touch: _Touch) -> _Touch:
    """The same as a matter of the lock's order, where it happens under one."""
    for above in program.ancestors(touch.node):
        if above is function:
            break
        if isinstance(above, (ast.With, ast.AsyncWith)):
            for item in above.items:
                if _LOCKS.search(ast.unparse(item.context_expr) + " " + program.path(item.context_expr)):
                    return _Touch("TP504", touch.node, touch.name, f"{touch.what} under a lock")
    return touch
