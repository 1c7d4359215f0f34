"""What the launcher told this process. Read once from the environment; knows names and forms, acts on nothing."""

from __future__ import annotations

import os
from time import perf_counter_ns, time_ns

MODE = os.environ.get("TAPEPROXY_MODE", "")
"""`record`, `replay`, `fork`, `skip`, or empty: then the shim is not to be installed."""
SKIP = MODE == "skip"
"""A replay of a tape that holds neither clock nor seed: only sleeps are cut short, and the clock goes on by them."""
FORK = MODE == "fork"
"""A replay whose lanes may leave the tape, and which is recorded."""
RECORD = MODE == "record" or FORK
REPLAY = MODE == "replay" or FORK
FORK_FILE = os.environ.get("TAPEPROXY_FORK", "")
"""Fork: the file that says where lanes leave the tape."""
STRICT = os.environ.get("TAPEPROXY_STRICT") == "1"
SIDECAR = os.environ.get("TAPEPROXY_SIDECAR", "")
"""The folder for sidecar files; empty: none are written."""
READS = os.environ.get("TAPEPROXY_READS", "")
"""Replay: the file with the tape's clock records; empty: there is none."""

THREADS = os.environ.get("TAPEPROXY_THREADS", "")
"""Recording: `1` if the order of locks is to be taped. Replay: the file with it. Empty: locks are left alone."""

EDGES = int(os.environ.get("TAPEPROXY_EDGES") or 0)
"""By which version of the rules to tell where lanes learn of each other; 0: not at all."""
MORE_EDGES = EDGES > 1
"""Whether to tell also of a queue's join and the others of version 2: not of older tapes."""
APART = os.environ.get("TAPEPROXY_APART") == "1"
"""Whether tasks that only wait have numbers of their own, and `reuse` is in force: not of older tapes."""


def _seed(text: str) -> bytes:
    """The run's 32-byte seed. A missing or broken one is an error: seeding from zeros would be predictable."""
    seed = bytes.fromhex(text)
    if len(seed) != 32:
        raise ValueError(f"TAPEPROXY_SEED has {len(seed)} bytes, not 32")
    return seed


SEED = _seed(os.environ.get("TAPEPROXY_SEED", "")) if MODE and not SKIP else bytes(32)


def _seeds(text: str) -> dict[str, dict[int, bytes]]:
    """By lane, and how many requests it has made when it gets it: another seed."""
    found = {}  # type: dict[str, dict[int, bytes]]
    for line in text.split("\n"):
        seed, asked, lane = line.split(" ", 2)
        found.setdefault(lane, {})[int(asked)] = _seed(seed)
    return found


SEEDS = _seeds(os.environ["TAPEPROXY_SEEDS"]) if os.environ.get("TAPEPROXY_SEEDS") else {}
"""Lanes that a fork gave another seed; empty: there are none."""
ORIGIN = time_ns() - perf_counter_ns() if SKIP else int(os.environ.get("TAPEPROXY_ORIGIN") or 0)
"""Nanoseconds: a monotonic clock reads wall clock - ORIGIN."""
PROXY = os.environ.get("TAPEPROXY_PROXY", "")
"""HOST:PORT of the wire, or empty."""
FRONTS = frozenset(int(port) for port in os.environ.get("TAPEPROXY_FRONTS", "").split(",") if port)
"""Ports of the wire on loopback, each in front of a base URL."""
LED = os.environ.get("TAPEPROXY_LED") == "1"
"""Whether all TCP that leaves loopback, and all look-ups, come to the wire."""
FRONT_PORTS = frozenset(str(port).encode() for port in FRONTS)
"""The same, as they stand in URLs."""
TRACE = REPLAY and os.environ.get("TAPEPROXY_TRACE") == "1"
"""Whether to tell of every read: a replay that explains another one."""
ALLOW = os.environ.get("TAPEPROXY_ALLOW", "")
"""Comma-separated HOST:PORT that a replay may reach."""

INJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Our own folder, which has to come first on every child's PYTHONPATH."""

NODE = os.path.join(os.path.dirname(INJECT), "node", "install.cjs")
"""The file that each Node of the run loads first, by NODE_OPTIONS."""

PLUMBING = frozenset(
    (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE"),
        *("CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HTTPLIB2_CA_CERTS", "NODE_EXTRA_CA_CERTS"),
        *("DENO_CERT", "NODE_USE_ENV_PROXY", "PYTHONHASHSEED", "TMPDIR"),
    )
)
"""Variables that the launcher sets so that every client comes by the wire (proxy/childenv.py, held equal by a test),
and those it pins."""
