"""Faults on purpose: which requests of a replay get something else than their taped answer, and what. Pure.

A fault is written as words, `host=api.openai.com nth=2 status=429`: first which requests, then what happens to them.
The taped answer of a request that got a fault instead stays on the tape for the next try; one that was only late is
given out. Requests that are not on the tape get no fault: they are violations, as ever.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

import orjson

from tapeproxy.tapes.answers import Answer, Finish, Part, head, render
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import Target
from tapeproxy.tapes.statuses import reason_of

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_NS = {"ms": 1e6, "s": 1e9}
_LONGEST = 3600 * 10**9
_NTH = re.compile(r"(\d+)(?:-(\d*))?")
_HELP = "write it like 'host=api.openai.com nth=2 status=429'; docs/CLI.md lists the words"
_BODILESS = (204, 304)


@dataclass(frozen=True, slots=True)
class Fault:
    """Which requests (globs; the `first`-th to `last`-th of those, counted from 1 as they come), and what they get.

    One of `status`, `finish` (reset, or hold: no answer at all) and `cut` (the connection ends so many bytes after the
    head of the taped answer), or nothing but `delay_ns`, which may be added to any of them. `text`: as it was written.
    """

    text: str
    host: str = "*"
    path: str = "*"
    method: str = "*"
    first: int = 1
    last: int | None = None
    status: int | None = None
    finish: Finish | None = None
    cut: int | None = None
    delay_ns: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None

    @property
    def instead(self) -> bool:
        """It takes the place of the taped answer."""
        return self.status is not None or self.finish is not None or self.cut is not None

    def meets(self, method: bytes, target: Target) -> bool:
        """Whether such a request is counted."""
        path = target.path.decode("latin-1")
        hosts = (target.host, f"{target.host}:{target.port}")
        return (
            any(fnmatchcase(host, self.host.lower()) for host in hosts)
            and fnmatchcase(path, self.path)
            and fnmatchcase(method.decode("latin-1").upper(), self.method.upper())
        )

    def covers(self, count: int) -> bool:
        """Whether the `count`-th request that it meets gets it."""
        return self.first <= count and (self.last is None or count <= self.last)


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that a request got. `number` counts the requests that the fault meets, from 1."""

    fault: str
    number: int
    request: str
    exchange: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Faults:
    """The faults of one replay, with their counts. The first that covers a request is the one it gets."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self._faults = tuple(faults)
        self._counts = [0] * len(faults)
        self.injected: list[Injected] = []

    def pick(self, method: bytes, target: Target) -> tuple[Fault, int] | None:
        """Count a request that is on the tape; the fault that it gets, and its number there."""
        found: tuple[Fault, int] | None = None
        for at, fault in enumerate(self._faults):
            if fault.meets(method, target):
                self._counts[at] += 1
                if found is None and fault.covers(self._counts[at]):
                    found = fault, self._counts[at]
        return found

    def never(self) -> list[str]:
        """The faults that no request got."""
        got = {one.fault for one in self.injected}
        return [fault.text for fault in self._faults if fault.text not in got]


def apply(fault: Fault, exchange: Exchange, *, http10: bool = False) -> Answer:
    """What a request gets instead of, or as, the answer of `exchange`, in which there is no `flaw`."""
    if fault.status is not None:
        answer = _refusal(fault, fault.status)
    elif fault.finish is not None:
        answer = Answer(iter((Part(0, b""),)), fault.finish)
    else:
        answer = render(exchange, http10=http10)
    if fault.cut is not None:
        response = exchange.response
        heads = 1 if response is None or http10 else 1 + len(response.informational)
        answer = Answer(_cut(answer.parts, heads, fault.cut), "cut", fault.cut)
    return answer._replace(delay=fault.delay_ns)


def _refusal(fault: Fault, status: int) -> Answer:
    error = {"message": f"injected by tapeproxy: {fault.text}", "type": "injected_fault", "code": status}
    body = orjson.dumps({"error": error}) if fault.body is None else fault.body.encode()
    body = b"" if status in _BODILESS else body
    headers = (
        ("content-type", "application/json" if fault.body is None else "text/plain; charset=utf-8"),
        ("content-length", str(len(body))),
        ("x-tapeproxy", "injected"),
        *fault.headers,
    )
    raw = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)
    return Answer(iter((Part(0, head(status, reason_of(status), raw) + body),)), "keep", len(body))


def _cut(parts: Iterator[Part], heads: int, left: int) -> Iterator[Part]:
    """So many heads, and then so many bytes of what follows them."""
    yield from islice(parts, heads)
    for part in parts:
        if left <= 0:
            return
        yield part._replace(data=part.data[:left])
        left -= len(part.data)


# --- reading them --------------------------------------------------------------------------------------------------


def parse_fault(text: str) -> Fault:
    """Read a fault. Values with a space stand in quotes. Raises UsageError, which names the word."""
    fault = Fault(" ".join(text.split()))
    for word in _words(text):
        name, equals, value = word.partition("=")
        read = _READERS.get(name)
        if read is None or bool(equals) is not (name not in _BARE):
            raise _wrong(text, f"the word {word!r} is not known")
        try:
            fault = read(fault, value)
        except ValueError as error:
            raise _wrong(text, f"{word!r}: {error}") from None
    effects = [fault.status is not None, fault.finish is not None, fault.cut is not None]
    if sum(effects) > 1:
        raise _wrong(text, "it says more than one thing to do")
    if not any(effects) and not fault.delay_ns:
        raise _wrong(text, "it does not say what to do: status=, cut=, latency=, reset or hang")
    if fault.status is None and (fault.headers or fault.body is not None):
        raise _wrong(text, "header=, retry-after= and body= go with status=")
    return fault


def _words(text: str) -> list[str]:
    import shlex

    try:
        return shlex.split(text)
    except ValueError as error:
        raise _wrong(text, str(error).lower()) from None


def _wrong(text: str, what: str) -> UsageError:
    return UsageError(f"this fault cannot be read: {what}", where=text, fix=_HELP)


def _read_nth(fault: Fault, value: str) -> Fault:
    match = _NTH.fullmatch(value)
    first = int(match[1]) if match else 0
    if match is None or first < 1:
        raise ValueError("a number from 1 on, or a range like 2-4 or 2-")
    last = first if match[2] is None else int(match[2]) if match[2] else None
    if last is not None and last < first:
        raise ValueError("the range ends before it begins")
    return replace(fault, first=first, last=last)


def _read_status(fault: Fault, value: str) -> Fault:
    if not value.isascii() or not value.isdigit() or not 200 <= int(value) <= 599:
        raise ValueError("a status from 200 to 599")
    return replace(fault, status=int(value))


def _read_cut(fault: Fault, value: str) -> Fault:
    if not value.isascii() or not value.isdigit():
        raise ValueError("a number of bytes")
    return replace(fault, cut=int(value))


def _read_latency(fault: Fault, value: str) -> Fault:
    match = _DURATION.fullmatch(value)
    if match is None or (ns := round(float(match[1]) * _NS[match[2]])) > _LONGEST or not ns:
        raise ValueError("a duration like 200ms or 2s, up to an hour")
    return replace(fault, delay_ns=ns)


def _read_header(fault: Fault, value: str) -> Fault:
    name, colon, content = value.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
        raise ValueError("a header like x-limit:0")
    if re.search(r"[^\x20-\x7e\t]", content):
        raise ValueError("a header's value is printable ASCII")
    return replace(fault, headers=(*fault.headers, (name, content.strip())))


_READERS: dict[str, Callable[[Fault, str], Fault]] = {
    "host": lambda fault, value: replace(fault, host=value),
    "path": lambda fault, value: replace(fault, path=value),
    "method": lambda fault, value: replace(fault, method=value),
    "nth": _read_nth,
    "status": _read_status,
    "retry-after": lambda fault, value: _read_header(fault, f"retry-after:{value}"),
    "header": _read_header,
    "body": lambda fault, value: replace(fault, body=value),
    "cut": _read_cut,
    "latency": _read_latency,
    "reset": lambda fault, _: replace(fault, finish="reset"),
    "hang": lambda fault, _: replace(fault, finish="hold"),
}
_BARE = ("reset", "hang")
