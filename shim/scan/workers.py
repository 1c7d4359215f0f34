"""Which functions of a program run side by side: threads, pool items, tasks. Knows how work starts, not its dangers."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tapeproxy.shim.scan.names import Function, Program

type Kind = Literal["thread", "task"]

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_POOL = re.compile(r"ThreadPool(Executor)?\(\)\.(\w+)$")
_OF_POOL = frozenset(("map", "imap", "imap_unordered", "starmap", "apply_async", "map_async", "starmap_async"))
_TASKS = frozenset(("create_task", "ensure_future", "gather", "as_completed", "wait"))
_SPREADING = frozenset(("map", "imap", "imap_unordered", "starmap", "map_async", "starmap_async"))


@dataclass(slots=True)
class Worker:
    """A function that runs beside others. `times`: how often it is started, 2 for many; `shared`: its parameters that
    every one of them gets the same object for, by name, with the variable's name.
    """

    function: Function
    kind: Kind
    times: int = 0
    shared: dict[str, str] = field(default_factory=dict[str, str])


def workers(program: Program) -> list[Worker]:
    """The functions of this file that are started as threads, pool items or tasks."""
    found: dict[Function, Worker] = {}
    for node in program.nodes:
        if not isinstance(node, ast.Call):
            continue
        for kind, target, args in _started(program, node):
            function = program.function(target)
            if function is None:
                continue
            worker = found.setdefault(function, Worker(function, kind))
            worker.times += 2 if _is_repeated(program, node, target) else 1
            worker.shared |= _shared(program, function, args)
    return list(found.values())


def _started(program: Program, call: ast.Call) -> Iterator[tuple[Kind, ast.expr, Sequence[ast.expr]]]:
    """What a call starts: the function, and the arguments that it will get."""
    path = program.path(call.func)
    name = path.rpartition(".")[2]
    first = call.args[0] if call.args else None
    if name == "Thread" and path.startswith(("threading.", "?")):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        args = given.get("args")
        if "target" in given:
            yield "thread", given["target"], args.elts if isinstance(args, ast.Tuple) else ()
    elif first is not None and (name == "submit" or path in ("asyncio.to_thread", "anyio.to_thread.run_sync")):
        yield "thread", first, call.args[1:]
    elif name == "run_in_executor" and len(call.args) > 1:
        yield "thread", call.args[1], call.args[2:]
    elif first is not None and (pool := _POOL.search(path)) and pool[2] in _OF_POOL:
        yield "thread", first, ()
    elif first is not None and name == "start_soon":
        yield "task", first, call.args[1:]
    elif name in _TASKS:
        for coroutine in _coroutines(call.args):
            yield "task", coroutine.func, coroutine.args


def _coroutines(args: Sequence[ast.expr]) -> Iterator[ast.Call]:
    """The calls among arguments, also those that a comprehension makes."""
    for argument in args:
        node = argument.value if isinstance(argument, ast.Starred) else argument
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            yield from _coroutines(node.elts)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            node = node.elt
        if isinstance(node, ast.Call):
            yield node


def _is_repeated(program: Program, call: ast.Call, target: ast.AST) -> bool:
    name = program.path(call.func).rpartition(".")[2]
    if name in _SPREADING:
        return True
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for above in program.ancestors(target):
        if isinstance(above, functions):
            return False
        if isinstance(above, _LOOPS):
            return True
    return False


def _shared(program: Program, function: Function, args: Sequence[ast.expr]) -> dict[str, str]:
    """Parameters that get an object which was made once, outside of the loop that starts the workers."""
    parameters = [*function.args.posonlyargs, *function.args.args]
    if parameters and parameters[0].arg in ("self", "cls"):
        parameters = parameters[1:]
    return {
        parameter.arg: argument.id
        for parameter, argument in zip(parameters, args, strict=False)
        if isinstance(argument, ast.Name)
        and isinstance(program.value(argument), (ast.List, ast.Call, ast.Dict, ast.Set))
    }
