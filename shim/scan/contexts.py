"""Where a value goes: into text, into a comparison, into an order. Knows syntax, not what the values are."""

import ast
from collections.abc import Callable

from tapeproxy.shim.scan.names import Program

_TEXT = frozenset(
    ("str", "repr", "hex", "ascii", "format", "print", "bytes", "json.dumps", "json.dump", "orjson.dumps", "yaml.dump")
)
_PASSING = frozenset(("int", "float", "abs", "round", "divmod", "list", "tuple", "dict", "set", "max", "min", "sum"))
_TEXT_METHODS = frozenset(("format", "join", "encode", "writelines", "write", "format_map"))
_SENT = frozenset(
    ("json", "data", "params", "headers", "content", "body", "messages", "input", "prompt", "files", "extra")
)
_ORDERLESS = frozenset(("sorted", "len", "set", "frozenset", "any", "all", "sum", "min", "max", "bool"))
"""Calls to which the order of what they get is nothing."""
_OF_SETS = frozenset(("update", "union", "intersection", "difference", "issubset", "issuperset", "isdisjoint"))
_KEEPING = frozenset(("list", "tuple", "enumerate", "map", "filter", "reversed"))


def reaches_text(program: Program, node: ast.AST) -> bool:
    """Whether a value becomes text or part of a request in the expression it stands in, or by way of one variable."""
    return _followed(program, node, _becomes_text)


def is_compared(program: Program, node: ast.AST) -> bool:
    """Whether a value is only compared: there and then, or in every use of the variable or attribute that holds it."""
    parent = program.parent(node)
    while isinstance(parent, ast.Attribute):  # os.uname().sysname == "Linux"
        parent = program.parent(parent)
    if isinstance(parent, ast.Compare):
        return True
    match parent:
        case ast.Assign(targets=[ast.Name() as name]):
            uses = program.uses(name.id, program.scope(name))
            return bool(uses) and all(isinstance(program.parent(use), ast.Compare) for use in uses)
        case ast.Assign(targets=[ast.Attribute(attr=attr)]):
            reads = [n for n in program.nodes if isinstance(n, ast.Attribute) and n.attr == attr]
            return any(isinstance(program.parent(read), ast.Compare) for read in reads)
        case _:
            return False


def argument_of(program: Program, node: ast.AST) -> str:
    """The path of the function that a value is handed to; empty when it isn't an argument."""
    parent = program.parent(node)
    if isinstance(parent, ast.keyword):
        parent = program.parent(parent)
    return program.path(parent.func) if isinstance(parent, ast.Call) and node is not parent.func else ""


def is_orderless(program: Program, node: ast.AST) -> bool:
    """Whether nobody hears of the order that a value's items come in."""
    return _followed(program, node, _loses_order)


def _followed(program: Program, node: ast.AST, check: Callable[[Program, ast.AST], bool]) -> bool:
    """`check` of a node, or of a use of the variable that it is assigned to."""
    if check(program, node):
        return True
    match program.parent(node):
        case ast.Assign(targets=[ast.Name() as name]) | ast.AnnAssign(target=ast.Name() as name):
            return any(check(program, use) for use in program.uses(name.id, program.scope(name)))
        case _:
            return False


def _becomes_text(program: Program, node: ast.AST) -> bool:
    child = node
    for above in program.ancestors(node):
        match above:
            case ast.FormattedValue():
                return True
            case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str() | bytes())):
                return True
            case ast.keyword(arg=str(name)) if name in _SENT:
                return True
            case ast.Call() if child is not above.func:
                path = program.path(above.func)
                if path in _TEXT or path.rpartition(".")[2] in _TEXT_METHODS:
                    return True
                if path not in _PASSING:
                    return False
            case ast.Dict() if child in above.keys:
                return False
            case ast.Subscript() if child is above.slice:
                return False
            case ast.BinOp() | ast.UnaryOp() | ast.IfExp() | ast.BoolOp() | ast.Tuple() | ast.List() | ast.Dict():
                pass
            case ast.Set() | ast.Starred() | ast.keyword() | ast.Attribute() | ast.Subscript() | ast.Call():
                pass
            case _:
                return False
        child = above
    return False


def _loses_order(program: Program, node: ast.AST) -> bool:
    """Follows the items out through list(), tuple() and comprehensions, which keep an order as it is."""
    while True:
        parent = program.parent(node)
        match parent:
            case ast.Call() if node in parent.args and program.path(parent.func) in _KEEPING:
                node = parent
            case ast.comprehension() if node is parent.iter:
                made = program.parent(parent)
                if not isinstance(made, (ast.ListComp, ast.GeneratorExp)):
                    return isinstance(made, ast.SetComp)
                node = made
            case ast.Call():
                path = program.path(parent.func)
                return node in parent.args and (path in _ORDERLESS or path.rpartition(".")[2] in _OF_SETS)
            case ast.Starred():
                return isinstance(program.parent(parent), ast.Set)
            case ast.Compare() | ast.Attribute(attr="sort") | ast.Expr():
                return True
            case ast.Assign(targets=[ast.Name() as name]) if isinstance(node, (ast.ListComp, ast.Call)):
                # A list made of it is often sorted in the next line.
                return any(
                    isinstance(above := program.parent(use), ast.Attribute) and above.attr == "sort"
                    for use in program.uses(name.id, program.scope(name))
                )
            case _:
                return False
