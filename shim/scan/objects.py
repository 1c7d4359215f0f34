"""Findings in what depends on where objects lie: default reprs and hashes, and the order of sets. Knows no threads."""

import ast
from collections.abc import Iterable, Iterator

from tapeproxy.shim.scan.calls import Hit
from tapeproxy.shim.scan.contexts import is_orderless
from tapeproxy.shim.scan.names import Program

_HEARD = frozenset(
    ("list", "tuple", "enumerate", "str", "repr", "print", "json.dumps", "iter", "next", "map", "filter", "zip")
)
_WAITS = frozenset(("asyncio.wait()", "concurrent.futures.wait()"))
_SHOWN = frozenset(("str", "repr", "print", "format", "ascii"))


def find(program: Program) -> Iterator[Hit]:
    """Every hit in a program, in the order of the text."""
    for node in program.nodes:
        match node:
            case ast.FormattedValue(value=value):
                yield from _shown(program, value)
            case ast.Call(func=function, args=args) if program.path(function) in _SHOWN:
                for argument in args:
                    yield from _shown(program, argument)
            case ast.Call(func=function, args=[argument]) if program.path(function) == "hash":
                if _is_instance(program, argument, "__hash__", "__eq__"):
                    yield "TP102", node, "hash() of an object with the default hash"
            case ast.Set() | ast.SetComp() | ast.Call():
                yield from _set(program, node)
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name() as done, *_])]) if program.path(node.value) in _WAITS:
                for use in program.uses(done.id, program.scope(done)):
                    if _is_heard(program, use):
                        yield "TP103", use, "the set that wait() returns"
            case _:
                pass


def _shown(program: Program, node: ast.AST) -> Iterator[Hit]:
    if _is_instance(program, node, "__repr__", "__str__", "__format__"):
        yield "TP102", node, "default repr of an object"
    elif isinstance(node, ast.Name) and isinstance(
        program.value(node), (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    ):
        yield "TP102", node, "repr of a function"


def _is_instance(program: Program, node: ast.AST, *without: str) -> bool:
    """Whether a value is, for certain, an instance of a class that defines none of these methods."""
    owner: ast.AST | None = None
    if isinstance(node, ast.Name) and node.id == "self":
        owner = next((above for above in program.ancestors(node) if isinstance(above, ast.ClassDef)), None)
    else:
        made = program.value(node)
        if isinstance(made, ast.Call):
            if program.path(made.func) == "object":
                return True
            owner = program.value(made.func)
    return isinstance(owner, ast.ClassDef) and _is_plain(owner) and not _defines(owner, without)


def _is_plain(cls: ast.ClassDef) -> bool:
    """Nothing but its body gives the class methods: no decorator, no base, no metaclass."""
    bases = [base for base in cls.bases if not (isinstance(base, ast.Name) and base.id == "object")]
    return not (cls.decorator_list or bases or cls.keywords)


def _defines(cls: ast.ClassDef, methods: Iterable[str]) -> bool:
    defined: set[str] = set()
    for statement in cls.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                defined.add(name)
            case ast.Assign(targets=targets):
                defined.update(target.id for target in targets if isinstance(target, ast.Name))
            case _:
                pass
    return any(method in defined for method in methods)


def _set(program: Program, made: ast.AST) -> Iterator[Hit]:
    elements = _elements(program, made)
    if elements is None:
        return
    for place in _places(program, made):
        if not _is_heard(program, place):
            continue
        if any(_by_address(program, element) for element in elements):
            yield "TP103", place, "set of objects with the default hash"
        elif elements and any(_is_text(program, element) for element in elements) and not _is_loop(program, place):
            yield "TP104", place, "set of strings"


def _elements(program: Program, made: ast.AST) -> list[ast.expr] | None:
    """What a set is made of; None where the expression makes no set."""
    match made:
        case ast.Set(elts=elements):
            return elements
        case ast.SetComp(elt=element):
            return [element]
        case ast.Call(func=function, args=args) if program.path(function) in ("set", "frozenset", "weakref.WeakSet"):
            if not args:
                return _added(program, made)
            given = program.value(args[0])
            if isinstance(given, (ast.List, ast.Tuple, ast.Set)):
                return given.elts
            if isinstance(given, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
                return [given.elt]
            return []
        case _:
            return None


def _added(program: Program, made: ast.AST) -> list[ast.expr]:
    """What `.add` puts into the variable that an empty set is assigned to."""
    found: list[ast.expr] = []
    for use in _places(program, made):
        match program.parent(use):
            case ast.Attribute(attr="add") as method:
                call = program.parent(method)
                if isinstance(call, ast.Call) and call.args:
                    found.append(call.args[0])
            case _:
                pass
    return found


def _places(program: Program, made: ast.AST) -> list[ast.AST]:
    """Where a set is: in its expression, or wherever the variable that it is assigned to is read."""
    match program.parent(made):
        case ast.Assign(targets=[ast.Name() as name]) | ast.AnnAssign(target=ast.Name() as name):
            return [*program.uses(name.id, program.scope(name))]
        case _:
            return [made]


def _by_address(program: Program, element: ast.expr) -> bool:
    if _is_instance(program, element, "__hash__", "__eq__"):
        return True
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    return isinstance(element, (ast.Name, ast.Lambda)) and isinstance(program.value(element), definitions)


def _is_text(program: Program, element: ast.expr) -> bool:
    value = program.value(element)
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (str, bytes))
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Call) and program.path(value.func) == "str")


def _is_loop(program: Program, place: ast.AST) -> bool:
    parent = program.parent(place)
    return isinstance(parent, (ast.For, ast.AsyncFor)) and place is parent.iter


def _is_heard(program: Program, place: ast.AST) -> bool:
    """Whether the order of a set comes out here."""
    parent = program.parent(place)
    match parent:
        case ast.For() | ast.AsyncFor():
            return place is parent.iter
        case ast.comprehension() | ast.Starred():
            return not (isinstance(parent, ast.comprehension) and place is not parent.iter) and not is_orderless(
                program, place
            )
        case ast.FormattedValue():
            return True
        case ast.Call() if place in parent.args:
            path = program.path(parent.func)
            if path in ("list", "tuple", "enumerate", "map", "filter"):
                return not is_orderless(program, parent)
            return path in _HEARD or path.endswith(".join")
        case ast.Attribute(attr="pop"):
            return True
        case _:
            return False
