"""Findings in what a call is told by a text: file names, SQL, command lines. Knows which texts mean what."""

import ast
import re
from collections.abc import Iterator

from tapeproxy.shim.scan.calls import Hit
from tapeproxy.shim.scan.names import Program

_RANDOM_FILES = re.compile(r"/dev/u?random$|/dev/hwrng$|/proc/sys/kernel/random/\w+$")
_OUTSIDE = re.compile(r"(/proc/|/sys/|/etc/|/tmp/|/var/|~)")
_SQL = re.compile(
    r"\bCURRENT_(TIMESTAMP|TIME|DATE)\b|\b(datetime|date|time|julianday|unixepoch)\s*\(\s*'now'|strftime\s*\([^)]*'now'"
    r"|\b(unixepoch|julianday)\s*\(\s*\)|\b(now|getdate|sysdate|clock_timestamp|localtimestamp)\s*\(\s*\)"
    r"|\b(random|randomblob|rand|gen_random_uuid|newid|uuid_generate_v4|uuid|hex\s*\(\s*randomblob)\s*\([\d\s]*\)",
    re.IGNORECASE,
)
_STATEMENT = re.compile(r"\s*(select|insert|update|delete|create|alter|with|replace|values|returning)\b", re.IGNORECASE)
_SQL_METHODS = frozenset(
    ("execute", "executemany", "executescript", "sql", "fetch", "fetchval", "fetchrow", "query", "text")
)
_RUNNERS = re.compile(
    r"(subprocess\.(run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|os\.(system|popen|execvp?|execl?p?|posix_spawnp?)"
    r"|asyncio\.create_subprocess_(exec|shell)|anyio\.(run_process|open_process)|trio\.run_process)$"
)
_CHANGING = re.compile(
    r"(date|uuidgen|hostname|uname|whoami|ps|top|uptime|df|du|free|mktemp|nproc|who|w|id|ls|find|shuf|ping|vmstat|iostat"
    r"|lscpu|netstat|ss|ip|ifconfig|stat)$"
)
_SAME_TEXT = frozenset(("os.path.expanduser", "textwrap.dedent"))
_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*(\.exe)?$")
_WITHOUT_SHIM = re.compile(r"-(?![WX])[A-Za-z]*[IES][A-Za-z]*")
_OPENERS = frozenset(("open", "io.open", "os.open", "pathlib.Path", "pathlib.PosixPath", "codecs.open"))


def find(program: Program) -> Iterator[Hit]:
    """Every hit in a program, in the order of the text."""
    for node in program.nodes:
        if isinstance(node, ast.Call):
            path = program.path(node.func)
            if path in _OPENERS:
                yield from _file(program, node, path)
            elif path.rpartition(".")[2] in _SQL_METHODS:
                yield from _sql(program, node)
            elif _RUNNERS.match(path):
                yield from _command(program, node)


def _file(program: Program, call: ast.Call, path: str) -> Iterator[Hit]:
    name = text_of(program, call.args[0]) if call.args else None
    if name is None:
        return
    if _RANDOM_FILES.match(name):
        yield "TP302", call, name
    elif _OUTSIDE.match(name) and path != "pathlib.Path" and not _writes(program, call):
        yield "TP403", call, name


def _writes(program: Program, call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return any(set(text_of(program, mode) or "") & set("wax") for mode in modes)


def _sql(program: Program, call: ast.Call) -> Iterator[Hit]:
    text = text_of(program, call.args[0]) if call.args else None
    if text is not None and _STATEMENT.match(text) and (found := _SQL.search(_without_comments(text))):
        yield "TP202", call, found[0]


def _without_comments(sql: str) -> str:
    return re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL)


def _command(program: Program, call: ast.Call) -> Iterator[Hit]:
    words = _words(program, call)
    if not words:
        return
    first, *rest = words
    options = []
    for word in rest:
        if not word.startswith("-") or word in ("-c", "-m", "-"):
            break
        options.append(word)
    if _PYTHON.match(first) and (lost := next((o for o in options if _WITHOUT_SHIM.fullmatch(o)), "")):
        yield "TP605", call, f"{first.rpartition('/')[2]} {lost}"
    elif _CHANGING.match(first.rpartition("/")[2]):
        yield "TP404", call, first
    elif first.rpartition("/")[2] == "openssl" and rest[:1] in (["rand"], ["genrsa"], ["genpkey"]):
        yield "TP303", call, f"openssl {rest[0]}"


def _words(program: Program, call: ast.Call) -> list[str]:
    """The command line, as far as it is constant; an expression in it is an empty word."""
    if not call.args:
        return []
    first = program.value(call.args[0])
    if isinstance(first, (ast.List, ast.Tuple)):
        return [_word(program, item) for item in first.elts]
    text = text_of(program, first)
    if text is None:
        return [_word(program, item) for item in call.args]
    return text.split() if len(call.args) == 1 else [_word(program, item) for item in call.args]


def _word(program: Program, node: ast.AST) -> str:
    return "python" if program.path(node) == "sys.executable" else text_of(program, node) or ""


def text_of(program: Program, node: ast.AST) -> str | None:
    """The text that an expression is, if it is constant or an f-string, whose values are `?`."""
    node = program.value(node)
    if isinstance(node, ast.Call) and node.args and program.path(node.func) in _SAME_TEXT:
        node = program.value(node.args[0])
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in values)
        case _:
            return None
