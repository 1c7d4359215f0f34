"""The kinds of record a tape holds, as typed values; knows field names and types, not lines, hashes or files.

`docs/FORMAT.md` is the specification. `tapes/parsing.py` builds a record from a JSON object, `to_json` turns it back.
Times are integer nanoseconds after the head's `started_at`. Header names and values, URLs and reason phrases are bytes
on the wire; JSON holds them as ISO-8859-1 text, one character a byte, so nothing is lost. Text from the operating
system may hold what is not UTF-8, as lone surrogates (PEP 383); JSON holds that as base64 of its bytes.
"""

import base64
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

type Json = dict[str, Any]
type Headers = tuple[tuple[bytes, bytes], ...]
type How = Literal["complete", "client-gone", "upstream-cut", "reset", "connect-error"]
type Framing = Literal["length", "chunked", "close", "none"]
type Side = Literal["client", "server"]


FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Like:
    """A body by reference: the first `head` and last `tail` bytes of record `of`'s body around `mid`.

    `whole` means exactly that record's body (the JSON form is `{"ref": i}`).
    """

    of: int
    head: int = 0
    mid: bytes = b""
    tail: int = 0
    whole: bool = False

    def resolve(self, base: bytes) -> bytes:
        """Build the body from the body of record `of`. Raises ValueError when the cuts lie outside it."""
        if self.whole:
            return base
        if self.head + self.tail > len(base):
            raise ValueError(f"cuts {self.head}+{self.tail} bytes from a body of {len(base)}")
        return base[: self.head] + self.mid + (base[len(base) - self.tail :] if self.tail else b"")


type Body = bytes | Like


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first record: what was run, where, and by which rules. No secret, only names of secret variables."""

    kind: ClassVar[str] = "head"
    version: int = FORMAT_VERSION
    must: tuple[str, ...] = ()
    window: int | None = None
    by: str = ""
    started_at: str = ""
    argv: tuple[str, ...] = ()
    cwd: str = ""
    host: str = ""
    platform: str = ""
    python: str = ""
    tz: str | None = None
    lang: str | None = None
    secrets: tuple[str, ...] = ()
    seed: str | None = None
    origin: int | None = None
    hash_seed: str | None = None
    tmpdir: str | None = None
    io: bool = False
    threads: bool = False
    rules: Json = field(default_factory=dict)
    parent: Json | None = None
    branch: Json | None = None
    edit: Json | None = None
    scrubbed: Json | None = None
    sealed_seed: str | None = None
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {
            "tape": self.version,
            "must": self.must,
            "by": self.by,
            "started_at": self.started_at,
            "argv": [dump_text(arg) for arg in self.argv],
            "cwd": dump_text(self.cwd),
            "host": self.host,
            "platform": self.platform,
            "python": self.python,
            "tz": None if self.tz is None else dump_text(self.tz),
            "lang": None if self.lang is None else dump_text(self.lang),
            "secrets": [dump_text(name) for name in self.secrets],
            "rules": self.rules,
        }
        if self.io:
            out["io"] = True
        optional: Json = {
            "seed": self.seed,
            "origin": self.origin,
            "hash_seed": self.hash_seed,
            "tmpdir": None if self.tmpdir is None else dump_text(self.tmpdir),
            "window": self.window,
        }
        if self.threads:
            out["threads"] = True
        optional |= {"parent": self.parent, "branch": self.branch, "edit": self.edit}
        optional |= {"scrubbed": self.scrubbed, "sealed_seed": self.sealed_seed}
        return out | {k: v for k, v in optional.items() if v is not None} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as the client sent it, redacted. `inside`: it went to a server of the run itself.

    `sleeps`: how often the lane slept since its last request, for the first time after `awake` reads.
    """

    kind: ClassVar[str] = "request"
    t: int
    method: bytes
    url: bytes
    http: str = "HTTP/1.1"
    alpn: str | None = None
    headers: Headers = ()
    body: Body = b""
    lane: str | None = None
    n: int | None = None
    reads: int | None = None
    sleeps: int = 0
    awake: int | None = None
    inside: bool = False
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t}
        if self.lane is not None:
            out["lane"] = self.lane
        if self.n is not None:
            out["n"] = self.n
        if self.reads is not None:
            out["reads"] = self.reads
        if self.sleeps:
            out["sleeps"] = self.sleeps
            out["awake"] = self.awake
        out["method"] = self.method.decode("latin-1")
        out["url"] = self.url.decode("latin-1")
        out["http"] = self.http
        if self.alpn is not None:
            out["alpn"] = self.alpn
        if self.inside:
            out["inside"] = True
        out["headers"] = _dump_headers(self.headers)
        out["body"] = dump_body(self.body)
        return out | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The head of the answer to request record `of`. `framing` says what the chunk boundaries mean."""

    kind: ClassVar[str] = "response"
    t: int
    of: int
    status: int
    reason: bytes = b""
    http: str = "HTTP/1.1"
    headers: Headers = ()
    framing: Framing = "length"
    informational: tuple[tuple[int, Headers], ...] = ()
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {
            "t": self.t,
            "of": self.of,
            "status": self.status,
            "reason": self.reason.decode("latin-1"),
            "http": self.http,
            "framing": self.framing,
        }
        if self.informational:
            out["informational"] = [[status, _dump_headers(h)] for status, h in self.informational]
        out["headers"] = _dump_headers(self.headers)
        return out | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """Pieces of a body, in order. `parts` pairs nanoseconds after `t` (None: unknown) with the bytes.

    `recoded`: redaction has compressed the whole body anew, and boundaries are lost.
    """

    kind: ClassVar[str] = "chunks"
    t: int
    of: int
    to: Side = "client"
    parts: tuple[tuple[int | None, Body], ...] = ()
    recoded: bool = False
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        parts = [[dt, dump_body(data)] for dt, data in self.parts]
        out: Json = {"t": self.t, "of": self.of, "to": self.to, "parts": parts}
        if self.recoded:
            out["recoded"] = True
        return out | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the exchange of request record `of` ended."""

    kind: ClassVar[str] = "end"
    t: int
    of: int
    how: How
    error: str | None = None
    trailers: Headers = ()
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "of": self.of, "how": self.how}
        if self.error is not None:
            out["error"] = dump_text(self.error)
        if self.trailers:
            out["trailers"] = _dump_headers(self.trailers)
        return out | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something worth knowing that replay does not serve: `what` is a short stable word, `text` is for people."""

    kind: ClassVar[str] = "note"
    t: int
    what: str
    text: str = ""
    data: Json = field(default_factory=dict)
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "what": self.what, "text": dump_text(self.text)}
        return (out | {"data": self.data} if self.data else out) | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A sequential flow of control of the agent: `id` says whose child it is, `what` (thread, task ...)."""

    kind: ClassVar[str] = "lane"
    t: int
    id: str
    what: str = ""
    name: str | None = None
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "id": self.id, "what": self.what}
        return (out | {"name": dump_text(self.name)} if self.name is not None else out) | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A jump of a lane's clock: its read number `n` gave `ns` nanoseconds after the tape's start (may be negative).

    `slept`: it was the first read after the lane had slept.
    """

    kind: ClassVar[str] = "clock"
    t: int
    lane: str
    n: int
    ns: int
    slept: bool = False
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "lane": self.lane, "n": self.n, "ns": self.ns}
        return (out | {"slept": True} if self.slept else out) | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneEnd:
    """The end of a lane, or of its process: it had read the clock `reads` times."""

    kind: ClassVar[str] = "lane-end"
    t: int
    lane: str
    reads: int
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"t": self.t, "lane": self.lane, "reads": self.reads} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task that had made a request completed: a `lane`, and its `parent`, of whose tasks the order is of interest."""

    kind: ClassVar[str] = "done"
    t: int
    lane: str
    parent: str
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"t": self.t, "lane": self.lane, "parent": self.parent} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """An environment variable that the agent read: a keyed `digest` of its value, None when it was not set."""

    kind: ClassVar[str] = "env"
    t: int
    name: str
    digest: str | None
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"t": self.t, "name": dump_text(self.name), "digest": self.digest} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """Something that the agent's own code read past the wire: number `n` of its lane. docs/FORMAT.md names the `what`s.

    `content` is None where it is longer than a tape holds, or is that of an earlier value with the same `digest`.
    """

    kind: ClassVar[str] = "value"
    t: int
    lane: str
    n: int
    what: str
    name: str
    where: str = ""
    error: str | None = None
    length: int | None = None
    digest: str | None = None
    content: bytes | None = None
    data: Json = field(default_factory=dict)
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "lane": self.lane, "n": self.n, "what": self.what, "name": dump_text(self.name)}
        if self.where:
            out["where"] = dump_text(self.where)
        optional: Json = {"error": self.error, "length": self.length, "digest": self.digest}
        out |= {name: value for name, value in optional.items() if value is not None}
        if self.content is not None:
            out["content"] = dump_body(self.content)
        return (out | {"data": self.data} if self.data else out) | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Two lanes met: `lane` was the `n`-th to acquire the lock `on`, or was refused it (`what`), counted from 0."""

    kind: ClassVar[str] = "edge"
    t: int
    what: str
    on: str
    lane: str
    n: int
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"t": self.t, "what": self.what, "on": dump_text(self.on), "lane": self.lane, "n": self.n} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How the agent's own process ended: an exit `code`, or the name of the `signal` that killed it."""

    kind: ClassVar[str] = "exit"
    t: int
    code: int | None
    signal: str | None = None
    duration: int = 0
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "code": self.code, "duration": self.duration}
        return (out | {"signal": self.signal} if self.signal is not None else out) | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The last record. `file` is the BLAKE3 of every byte of the file before the seal's own gzip member."""

    kind: ClassVar[str] = "seal"
    t: int
    records: int
    trace: str
    outcome: str
    lanes: Json = field(default_factory=dict)
    file: str = ""
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "records": self.records, "lanes": self.lanes, "trace": self.trace}
        return out | {"outcome": self.outcome, "file": self.file} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A record of a kind this version does not know: kept whole, served never."""

    kind: str
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return dict(self.extra)


type Record = (
    Head
    | Request
    | Response
    | Chunks
    | End
    | Note
    | Lane
    | Clock
    | LaneEnd
    | Done
    | Env
    | Value
    | Edge
    | Exit
    | Seal
    | Unknown
)


def dump_body(body: Body) -> str | Json:
    """The JSON form of a body: text when it is valid UTF-8, else base64, or a reference to another record's.

    What holds a NUL byte is not text: JSON would spend six characters on each.
    """
    if isinstance(body, Like):
        if body.whole:
            return {"ref": body.of}
        return {"like": body.of, "head": body.head, "mid": dump_body(body.mid), "tail": body.tail}
    if b"\0" not in body:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(body).decode()}


def dump_text(text: str) -> str | Json:
    """The JSON form of text from the operating system. Raises ValueError for a surrogate that stands for no byte."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"b64": base64.b64encode(text.encode(errors="surrogateescape")).decode()}
    return text


def _dump_headers(headers: Headers) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
