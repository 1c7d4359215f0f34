"""What a name in a program means: imports and simple assignments followed, scope by scope. Knows no rules.

Everything is approximate in one direction: a name that may mean several things means nothing (`?`). A dotted path
says where a value comes from: `numpy.random.default_rng`, and for what a call gives, `requests.Session().trust_env`.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

UNKNOWN = "?"
_DEEPEST = 8
"""Assignments followed one after another, and so the longest chain of aliases."""
_BUILTINS = frozenset(dir(builtins))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

type Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
type Bound = str | ast.AST | None
"""What a name is bound to: an imported path, the node of a value or definition, or something unknown."""


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function or comprehension, and what it binds."""

    node: ast.AST
    parent: "Scope | None" = None
    names: dict[str, list[Bound]] = field(default_factory=dict[str, list[Bound]])
    foreign: set[str] = field(default_factory=set[str])
    stars: list[str] = field(default_factory=list[str])

    def bind(self, name: str, bound: Bound) -> None:
        self.names.setdefault(name, []).append(bound)


class Program:
    """A parsed file: its nodes in the order of the text, each one's parent and scope."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes: list[ast.AST] = []
        self.module = Scope(tree)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._scopes: dict[ast.AST, Scope] = {tree: self.module}
        self._reads: dict[str, list[ast.Name]] = {}
        self._uses: dict[tuple[str, Scope], list[ast.Name]] = {}
        self._walk(tree)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def scope(self, node: ast.AST) -> Scope:
        """The scope that a node stands in; of a function's own parts, the function's."""
        return self._scopes[node]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The node's parent, its parent, and so on."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def uses(self, name: str, scope: Scope) -> list[ast.Name]:
        """Where a name that `scope` binds is read, in it or below."""
        if (name, scope) not in self._uses:
            self._uses[name, scope] = [use for use in self._reads.get(name, ()) if self.home(use) is scope]
        return self._uses[name, scope]

    def home(self, name: ast.Name) -> Scope | None:
        """The scope that binds what this name reads; None for a builtin or a name from nowhere."""
        scope: Scope | None = self._scopes[name]
        here = scope
        while scope is not None:
            hidden = isinstance(scope.node, ast.ClassDef) and scope is not here
            if name.id in scope.names and name.id not in scope.foreign and not hidden:
                return scope
            scope = scope.parent
        return None

    def bound(self, name: ast.Name) -> Bound:
        """What a name is bound to, if that is one thing. An import counts before a fallback for when it fails."""
        home = self.home(name)
        if home is None:
            return None
        choices = home.names[name.id]
        imports = [choice for choice in choices if isinstance(choice, str)]
        if imports:
            return imports[0]
        return choices[0] if len(choices) == 1 else None

    def value(self, node: ast.AST) -> ast.AST:
        """The expression that a name stands for, or the node itself."""
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name):
                break
            bound = self.bound(node)
            if not isinstance(bound, ast.AST):
                break
            node = bound
        return node

    def path(self, node: ast.AST, depth: int = 0) -> str:
        """The dotted path of where a value comes from, with `?` for what isn't known."""
        parts: list[str] = []
        while True:
            if depth > _DEEPEST:
                return ".".join([UNKNOWN, *parts[::-1]])
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            elif isinstance(node, ast.Await):
                node = node.value
            else:
                return ".".join([self._root(node, depth), *parts[::-1]])

    def _root(self, node: ast.AST, depth: int) -> str:
        if isinstance(node, ast.Name):
            return self._name(node, depth)
        if isinstance(node, ast.Call):
            if module := _imported(node):
                return module
            return self.path(node.func, depth + 1) + "()"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):  # Path("a") / "b"
            left = self.path(node.left, depth + 1)
            return left if left.startswith("pathlib.") else UNKNOWN
        return UNKNOWN

    def _name(self, name: ast.Name, depth: int) -> str:
        bound = self.bound(name)
        if isinstance(bound, str):
            return bound
        if isinstance(bound, (ast.Attribute, ast.Name, ast.Call, ast.Await, ast.BinOp)):
            return self.path(bound, depth + 1)
        if bound is not None or self.home(name) is not None:
            return UNKNOWN
        if name.id in _BUILTINS:
            return name.id
        return f"{self.module.stars[0]}.{name.id}" if self.module.stars else UNKNOWN

    def function(self, node: ast.AST) -> Function | None:
        """The function of this file that an expression names, if any: a name, `self.method`, a partial, a lambda."""
        if isinstance(node, ast.Call) and self.path(node.func) == "functools.partial" and node.args:
            node = node.args[0]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            return self._method(node)
        found = self.value(node)
        return found if isinstance(found, _FUNCTIONS) else None

    def _method(self, node: ast.Attribute) -> Function | None:
        owner = next((above for above in self.ancestors(node) if isinstance(above, ast.ClassDef)), None)
        for statement in owner.body if owner is not None else ():
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == node.attr:
                return statement
        return None

    def _walk(self, tree: ast.Module) -> None:
        """Without recursion: a program may be nested as deep as the parser allows."""
        stack: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        while stack:
            node, scope = stack.pop()
            self.nodes.append(node)
            self._scopes[node] = scope
            self._bind(node, scope)
            inner = scope
            if isinstance(node, (*_SCOPES, ast.GeneratorExp)):
                inner = Scope(node, scope)
            outside: set[ast.AST] = set(getattr(node, "decorator_list", ()))
            for child in reversed(list(ast.iter_child_nodes(node))):
                self._parents[child] = node
                stack.append((child, scope if child in outside else inner))

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Name(ctx=ast.Load()):
                self._reads.setdefault(node.id, []).append(node)
            case ast.Name():
                scope = _where_walrus_binds(node, self._parents.get(node), scope)
                scope.bind(node.id, _assigned(node, self._parents.get(node)))
            case ast.arg():
                scope.bind(node.arg, None)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                scope.bind(name, None)
            case ast.MatchMapping(rest=str(name)):
                scope.bind(name, None)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                scope.bind(node.name, node)
            case ast.Global() | ast.Nonlocal():
                scope.foreign.update(node.names)
            case ast.Import():
                for alias in node.names:
                    scope.bind(alias.asname or alias.name.split(".")[0], alias.name if alias.asname else _top(alias))
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    if alias.name == "*":
                        self.module.stars.append(module)
                    else:
                        scope.bind(alias.asname or alias.name, f"{module}.{alias.name}")
            case _:
                pass


def _top(alias: ast.alias) -> str:
    return alias.name.split(".")[0]


def _assigned(name: ast.Name, parent: ast.AST | None) -> Bound:
    """The value that a simple assignment gives a name; of `with a as b`, a; None for all else."""
    match parent:
        case ast.Assign(targets=targets, value=value) if name in targets:
            return value
        case ast.AnnAssign(value=ast.AST() as value) | ast.NamedExpr(value=value):
            return value
        case ast.withitem(context_expr=value):
            return value
        case _:
            return None


def _where_walrus_binds(name: ast.Name, parent: ast.AST | None, scope: Scope) -> Scope:
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    if isinstance(parent, ast.NamedExpr) and name is parent.target:
        while isinstance(scope.node, comprehensions) and scope.parent is not None:
            scope = scope.parent
    return scope


def _imported(call: ast.Call) -> str:
    """The module of `__import__("os")` or `import_module("os")`; empty for other calls."""
    function = call.func
    named = (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )
    match call.args:
        case [ast.Constant(value=str(module))] if named in ("__import__", "import_module"):
            return module
        case _:
            return ""
