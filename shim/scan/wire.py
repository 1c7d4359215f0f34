"""Findings in how a program sets its clients up: proxies, trust, the variables for both. Knows no shim."""

import ast
import re
from collections.abc import Iterator

from tapeproxy.shim.scan.calls import Hit
from tapeproxy.shim.scan.names import Program

_HTTPX = re.compile(
    r"httpx2?\.(Client|AsyncClient|get|post|put|patch|delete|head|options|request|stream)$"
    r"|(openai|anthropic)\.Default(Async)?HttpxClient$"
)
_REQUESTS = re.compile(r"requests\.(Session\(\)\.)?(get|post|put|patch|delete|head|options|request)$")
_INSIDE = re.compile(r"\w+\.((Mock|ASGI|WSGI)Transport|ASGIWebSocketTransport)\(\)$")
_PROXIES = frozenset(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"))
_TRUST = frozenset(("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"))


def find(program: Program) -> Iterator[Hit]:
    """Every hit in a program, in the order of the text."""
    for node in program.nodes:
        if isinstance(node, ast.Call):
            path = program.path(node.func)
            yield from _client(program, node, path)
            yield from _trust(program, node, path)
            yield from _variables_called(program, node, path)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _assigned(program, target, node.value)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                yield from _variable(program, target)


def _client(program: Program, call: ast.Call, path: str) -> Iterator[Hit]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if _HTTPX.match(path):
        if _is_constant(given.get("trust_env"), False):
            yield "TP601", call, f"{path}(trust_env=False)"
        for name in ("proxy", "proxies"):
            if name in given and _is_fixed(program, given[name]):
                yield "TP601", call, f"{path}({name}=...)"
        if "transport" in given and _goes_out(program, given["transport"]):
            yield "TP601", call, f"{path}(transport=...)"
        mounts = program.value(given["mounts"]) if "mounts" in given else None
        if isinstance(mounts, ast.Dict) and any(_goes_out(program, value) for value in mounts.values):
            yield "TP601", call, f"{path}(mounts=...)"
    elif _REQUESTS.match(path) and "proxies" in given:
        proxies = program.value(given["proxies"])
        if isinstance(proxies, ast.Dict) and proxies.values and _is_fixed(program, proxies):
            yield "TP601", call, f"{path}(proxies=...)"
    elif path == "urllib.request.ProxyHandler" and call.args and _is_fixed(program, call.args[0]):
        yield "TP601", call, f"{path}()"


def _goes_out(program: Program, transport: ast.AST) -> bool:
    value = program.value(transport)
    return isinstance(value, ast.Call) and not _INSIDE.match(path := program.path(value)) and path.startswith("httpx")


def _is_fixed(program: Program, node: ast.AST) -> bool:
    """Whether a proxy, or a dict of them, is written out in the program: a text, or none at all in a dict."""
    value = program.value(node)
    if isinstance(value, ast.Dict):
        return all(isinstance(program.value(item), ast.Constant) for item in value.values)
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _trust(program: Program, call: ast.Call, path: str) -> Iterator[Hit]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if "verify" in given and _is_text(program, given["verify"]):
        yield "TP604", call, "verify="
    if path == "ssl.create_default_context" and _is_text(program, given.get("cafile")):
        yield "TP604", call, f"{path}(cafile=...)"
    elif path == "ssl.SSLContext().load_verify_locations":
        yield "TP604", call, path


def _variables_called(program: Program, call: ast.Call, path: str) -> Iterator[Hit]:
    if path == "os.environ.clear":
        yield "TP602", call, "os.environ.clear()"
    elif path in ("os.environ.pop", "os.putenv", "os.unsetenv") and call.args:
        yield from _named(program, call.args[0], call)
    elif path == "os.environ.update":
        names = [key for dict in call.args if isinstance(dict, ast.Dict) for key in dict.keys if key is not None]
        for name in names:
            yield from _named(program, name, call)
        for keyword in call.keywords:
            yield from _of_name(keyword.arg or "", call)


def _assigned(program: Program, target: ast.AST, value: ast.AST) -> Iterator[Hit]:
    match target:
        case ast.Attribute(attr="trust_env") if _is_constant(value, False):
            if not program.path(target).startswith("aiohttp."):
                yield "TP601", target, "trust_env = False"
        case ast.Attribute(attr="verify") if _is_text(program, value):
            yield "TP604", target, "verify ="
        case _:
            yield from _variable(program, target)


def _variable(program: Program, target: ast.AST) -> Iterator[Hit]:
    if isinstance(target, ast.Subscript) and program.path(target.value) == "os.environ":
        yield from _named(program, target.slice, target)


def _named(program: Program, name: ast.AST, at: ast.AST) -> Iterator[Hit]:
    value = program.value(name)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield from _of_name(value.value, at)


def _of_name(name: str, at: ast.AST) -> Iterator[Hit]:
    if name.upper() in _PROXIES:
        yield "TP602", at, name
    elif name in _TRUST:
        yield "TP604", at, name


def _is_text(program: Program, node: ast.AST | None) -> bool:
    value = None if node is None else program.value(node)
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _is_constant(node: ast.AST | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
