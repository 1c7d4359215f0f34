"""Calls and attributes that are a finding by their name, or by one argument. A table; knows no order and no threads."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tapeproxy.shim.scan.contexts import argument_of, is_compared, is_orderless, reaches_text
from tapeproxy.shim.scan.names import Program

type Hit = tuple[str, ast.AST, str]
"""A rule's code, the node, and the name of what was found."""


class _Named(NamedTuple):
    """`when`: always; `value`: not where it is only compared or handed to a system call; `text`: where it goes into
    text or a request; `order`: where the order is heard of; `unseeded`: called without arguments or seed.
    """

    code: str
    when: str
    paths: tuple[str, ...]


_TABLE = (
    _Named("TP101", "value", ("os.getpid", "os.getppid", "os.getpgrp", "os.gettid")),
    _Named("TP101", "value", ("multiprocessing.current_process().pid", "multiprocessing.current_process().ident")),
    _Named("TP101", "value", ("email.utils.make_msgid",)),
    _Named("TP101", "text", ("threading.get_ident", "threading.get_native_id", "_thread.get_ident")),
    _Named("TP101", "text", ("threading.current_thread().ident", "threading.current_thread().native_id")),
    _Named("TP102", "text", ("id",)),
    _Named("TP102", "always", ("object.__repr__", "object.__hash__", "object.__str__")),
    _Named("TP201", "always", ("whenever.Instant.now", "whenever.ZonedDateTime.now", "whenever.SystemDateTime.now")),
    _Named(
        "TP201",
        "always",
        ("whenever.OffsetDateTime.now", "whenever.PlainDateTime.now", "whenever.Date.today_in_system_tz"),
    ),
    _Named("TP201", "value", ("os.times",)),
    _Named("TP203", "value", ("os.path.getmtime", "os.path.getctime", "os.path.getatime")),
    _Named(
        "TP204",
        "text",
        ("asyncio.get_running_loop().time", "asyncio.get_event_loop().time", "asyncio.new_event_loop().time"),
    ),
    _Named("TP301", "always", ("torch.seed", "torch.Generator().seed")),
    _Named("TP301", "unseeded", ("_random.Random",)),
    _Named("TP303", "always", ("bcrypt.gensalt",)),
    _Named(
        "TP402",
        "text",
        ("os.cpu_count", "multiprocessing.cpu_count", "os.process_cpu_count", "platform.python_version"),
    ),
    _Named("TP402", "text", ("platform.system", "platform.machine", "platform.release", "platform.version")),
    _Named(
        "TP402", "value", ("platform.node", "platform.platform", "platform.uname", "os.uname", "socket.gethostname")
    ),
    _Named(
        "TP402", "value", ("socket.getfqdn", "getpass.getuser", "os.getlogin", "os.getloadavg", "shutil.disk_usage")
    ),
    _Named("TP402", "value", ("resource.getrusage", "os.statvfs", "gc.get_objects", "tracemalloc.get_traced_memory")),
    _Named(
        "TP405",
        "always",
        ("input", "sys.stdin.read", "sys.stdin.readline", "sys.stdin.readlines", "sys.stdin.buffer.read"),
    ),
    _Named("TP401", "order", ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "glob.glob", "glob.iglob")),
    _Named(
        "TP601",
        "always",
        ("urllib3.PoolManager", "urllib3.request", "urllib3.HTTPConnectionPool", "urllib3.HTTPSConnectionPool"),
    ),
    _Named("TP601", "remote", ("http.client.HTTPConnection", "http.client.HTTPSConnection")),
    _Named(
        "TP603",
        "always",
        ("grpc.insecure_channel", "grpc.secure_channel", "grpc.aio.insecure_channel", "grpc.aio.secure_channel"),
    ),
    _Named(
        "TP603",
        "always",
        ("smtplib.SMTP", "smtplib.SMTP_SSL", "ftplib.FTP", "ftplib.FTP_TLS", "imaplib.IMAP4_SSL", "poplib.POP3_SSL"),
    ),
    _Named(
        "TP603",
        "always",
        ("psycopg.connect", "psycopg2.connect", "asyncpg.connect", "asyncpg.create_pool", "pymysql.connect"),
    ),
    _Named(
        "TP603",
        "always",
        ("redis.Redis", "redis.from_url", "redis.asyncio.Redis", "redis.asyncio.from_url", "pymongo.MongoClient"),
    ),
    _Named(
        "TP603",
        "always",
        ("paramiko.SSHClient", "asyncssh.connect", "dns.resolver.resolve", "nats.connect", "telnetlib.Telnet"),
    ),
    _Named(
        "TP603",
        "remote",
        ("socket.create_connection", "socket.gethostbyname", "socket.getaddrinfo", "asyncio.open_connection"),
    ),
    _Named("TP603", "remote", ("socket.socket().connect", "anyio.connect_tcp", "trio.open_tcp_stream")),
    _Named(
        "TP603",
        "remote",
        ("asyncio.get_running_loop().create_connection", "asyncio.get_event_loop().create_connection"),
    ),
    _Named("TP604", "value", ("certifi.where",)),
)
_CALLS = {path: named for named in _TABLE for path in named.paths}
_SYSTEM_CALLS = re.compile(
    r"os\.(kill|killpg|waitpid|getpgid|getsid|sched_|setpriority|getpriority)|psutil\.Process$|signal\."
)
_MACHINE = re.compile(r"psutil\.\w+$|psutil\.Process\(\)\.\w+$")
_C_FUNCTIONS = re.compile(
    r"ctypes\.(CDLL\(\)|cdll\.\w+|cdll\.LoadLibrary\(\)|PyDLL\(\)|pythonapi)\."
    r"(time|clock|clock_gettime|gettimeofday|times|rand|random|rand_r|drand48|arc4random|getrandom|getentropy|getpid|getppid)$"
)
_ENGINES = re.compile(
    r"(torch\.(rand|randn|randint|randperm|bernoulli|multinomial|normal|rand_like|randn_like|randint_like|poisson)$)"
    r"|(torch\.cuda\.(seed|seed_all)$)|((tensorflow|tf)\.random\.(?!set_seed|Generator|stateless|get_seed|create_rng)\w+$)"
    r"|(cupy\.random\.(?!seed)\w+$)"
)
_SEEDS = re.compile(
    r"(torch|torch\.random|torch\.cuda)\.manual_seed(_all)?$|tensorflow\.(random\.set_seed|keras\.utils\.set_random_seed)$"
    r"|cupy\.random\.seed$|(keras\.utils\.set_random_seed|lightning(\.pytorch)?\.seed_everything|transformers\.set_seed)$"
    r"|(pytorch_lightning\.seed_everything|accelerate\.utils\.set_seed)$"
)
_KEYS = re.compile(
    r"cryptography\.hazmat\.primitives\.asymmetric\.(rsa|dsa|ec|dh)\.generate_\w+$"
    r"|cryptography\.hazmat\.primitives\.asymmetric\.\w+\.\w+PrivateKey\.generate$"
    r"|cryptography\.hazmat\.primitives\.ciphers\.aead\.\w+\.generate_key$|OpenSSL\.crypto\.PKey\(\)\.generate_key$"
)
_POLARS = re.compile(r"polars\.\w+(\(\))?(\.\w+\(\))*\.(?P<method>sample|shuffle|unique|group_by)$")
_ENTRIES = frozenset(("iterdir", "rglob"))
_FILE_TIMES = frozenset(
    ("st_mtime", "st_ctime", "st_atime", "st_mtime_ns", "st_ctime_ns", "st_atime_ns", "st_birthtime")
)
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1", ""))


def find(program: Program) -> Iterator[Hit]:
    """Every hit of the table in a program, in the order of the text."""
    seeded = any(isinstance(node, ast.Call) and _SEEDS.search(program.path(node.func)) for node in program.nodes)
    for node in program.nodes:
        if isinstance(node, ast.Call):
            yield from _call(program, node, seeded)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield from _attribute(program, node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _import(node)


def _call(program: Program, call: ast.Call, seeded: bool) -> Iterator[Hit]:
    path = program.path(call.func)
    named = _CALLS.get(path)
    if named is not None and _applies(program, call, named.when):
        yield named.code, call, f"{path}()"
    elif _MACHINE.match(path) and path != "psutil.Process" and not is_compared(program, call):
        yield "TP402", call, f"{path}()"
    elif _C_FUNCTIONS.match(path):
        yield (
            ("TP301" if "rand" in path or "entropy" in path else "TP101" if "pid" in path else "TP201"),
            call,
            f"{path}()",
        )
    elif polars := _POLARS.match(path):
        yield from _polars(program, call, polars["method"])
    elif _ENGINES.match(path) and not seeded and not _has(call, "generator", "seed"):
        yield "TP301", call, f"{path}()"
    elif _KEYS.match(path):
        yield "TP303", call, f"{path}()"
    elif path == "numpy.datetime64" and _first_text(program, call) in ("now", "today"):
        yield "TP201", call, f"numpy.datetime64({_first_text(program, call)!r})"
    elif path.rpartition(".")[2] in _ENTRIES and "." in path and not is_orderless(program, call):
        yield "TP401", call, f"{path.rpartition('.')[2]}()"
    elif path == "pathlib.Path().glob" and not is_orderless(program, call):
        yield "TP401", call, f"{path}()"
    yield from _default_order(program, call, path)


def _polars(program: Program, call: ast.Call, method: str) -> Iterator[Hit]:
    if method in ("sample", "shuffle"):
        if not _has(call, "seed"):
            yield "TP301", call, f"polars {method}()"
        return
    later = [above.attr for above in program.ancestors(call) if isinstance(above, ast.Attribute)]
    if not _has(call, "maintain_order") and "sort" not in later:
        yield "TP505", call, f"polars {method}()"


def _default_order(program: Program, call: ast.Call, path: str) -> Iterator[Hit]:
    """`key=id` and `key=hash` put objects in the order of their addresses."""
    if path in ("sorted", "min", "max") or path.endswith(".sort"):
        for keyword in call.keywords:
            if keyword.arg == "key" and program.path(keyword.value) in ("id", "hash"):
                yield "TP102", keyword.value, f"{path.rpartition('.')[2]}(key={program.path(keyword.value)})"


def _applies(program: Program, call: ast.Call, when: str) -> bool:
    match when:
        case "value":
            handed_to_system = _SYSTEM_CALLS.match(argument_of(program, call))
            return not (handed_to_system or is_compared(program, call) or isinstance(program.parent(call), ast.Set))
        case "text":
            return reaches_text(program, call)
        case "order":
            return not is_orderless(program, call)
        case "unseeded":
            return not call.args
        case "remote":
            return not _is_local(program, call)
        case _:
            return True


def _attribute(program: Program, node: ast.Attribute) -> Iterator[Hit]:
    if node.attr in _FILE_TIMES and not is_compared(program, node):
        yield "TP203", node, node.attr
        return
    parent = program.parent(node)
    if isinstance(parent, ast.Call) and node is parent.func:
        return
    named = _CALLS.get(path := program.path(node))
    if named is not None and path.endswith((".pid", ".ident", ".native_id")):
        wanted = reaches_text(program, node) if named.when == "text" else not is_compared(program, node)
        if wanted:
            yield named.code, node, path


def _import(node: ast.Import | ast.ImportFrom) -> Iterator[Hit]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for name in names:
        top = name.split(".")[0]
        if top in ("gevent", "eventlet") and not getattr(node, "level", 0):
            yield "TP606", node, top


def _has(call: ast.Call, *names: str) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    return any(name in given and not _is_none(given[name]) for name in names)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _first_text(program: Program, call: ast.Call) -> str:
    value = program.value(call.args[0]) if call.args else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _is_local(program: Program, call: ast.Call) -> bool:
    """Whether the address that a call names is this machine's own, or a UNIX socket's path."""
    if not call.args:
        return not call.keywords or any(keyword.arg == "path" for keyword in call.keywords)
    first = program.value(call.args[0])
    if isinstance(first, ast.Tuple) and first.elts:
        first = program.value(first.elts[0])
    if not isinstance(first, ast.Constant):
        return False
    return not isinstance(first.value, str) or first.value in _LOOPBACK or "/" in first.value
