"""The kinds of record a tape holds, as typed values; knows field names and types, not lines, hashes or files.

`docs/FORMAT.md` is the specification. `tapes/parsing.py` builds a record from a JSON object, `to_json` turns it back.
Times are integer nanoseconds after the head's `started_at`. Header names and values, URLs and reason phrases are bytes
on the wire; JSON holds them as ISO-8859-1 text, one character a byte, so nothing is lost. Text from the operating
system may hold what is not UTF-8, as lone surrogates (PEP 383); JSON holds that as base64 of its bytes.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from tapeproxy.tapes.recordfields import Body as Body
from tapeproxy.tapes.recordfields import Headers as Headers
from tapeproxy.tapes.recordfields import Json as Json
from tapeproxy.tapes.recordfields import Like as Like
from tapeproxy.tapes.recordfields import dump_body as dump_body
from tapeproxy.tapes.recordfields import dump_headers
from tapeproxy.tapes.recordfields import dump_text as dump_text
from tapeproxy.tapes.shimrecords import Clock as Clock
from tapeproxy.tapes.shimrecords import Done as Done
from tapeproxy.tapes.shimrecords import Edge as Edge
from tapeproxy.tapes.shimrecords import Env as Env
from tapeproxy.tapes.shimrecords import Lane as Lane
from tapeproxy.tapes.shimrecords import LaneEnd as LaneEnd
from tapeproxy.tapes.shimrecords import Value as Value
from tapeproxy.tapes.wsrecords import Frame as Frame
from tapeproxy.tapes.wsrecords import Side as Side

type How = Literal["complete", "client-gone", "upstream-cut", "reset", "connect-error"]
type Framing = Literal["length", "chunked", "close", "none"]


FORMAT_VERSION = 1


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
    imported: Json | None = None
    java: bool = False
    led: bool = False
    reverse: tuple[str, ...] = ()
    no_tape: tuple[str, ...] = ()
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
        if self.java:
            out["java"] = True
        if self.led:
            out["led"] = True
        if self.reverse:
            out["reverse"] = self.reverse
        if self.no_tape:
            out["no_tape"] = self.no_tape
        optional |= {"parent": self.parent, "branch": self.branch, "edit": self.edit}
        optional |= {"scrubbed": self.scrubbed, "sealed_seed": self.sealed_seed, "imported": self.imported}
        return out | {k: v for k, v in optional.items() if v is not None} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as the client sent it, redacted. `inside`: it went to a server of the run itself.

    `sleeps`: how often the lane slept since its last request, for the first time after `awake` reads. `source`: of a
    fork, where the answer comes from.
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
    source: str | None = None
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
        if self.source is not None:
            out["source"] = self.source
        out["headers"] = dump_headers(self.headers)
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
            out["informational"] = [[status, dump_headers(h)] for status, h in self.informational]
        out["headers"] = dump_headers(self.headers)
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
    """How the exchange of request record `of` ended. `code`: of HTTP/2, the error code with which it was reset."""

    kind: ClassVar[str] = "end"
    t: int
    of: int
    how: How
    error: str | None = None
    trailers: Headers = ()
    code: int | None = None
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "of": self.of, "how": self.how}
        if self.error is not None:
            out["error"] = dump_text(self.error)
        if self.code is not None:
            out["code"] = self.code
        if self.trailers:
            out["trailers"] = dump_headers(self.trailers)
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
    """The last record. `file` is the BLAKE3 of every byte of the file before the seal's own gzip member.

    `messages`: the digest of what passed on WebSockets, `uploads` of what was streamed to servers, where there was any.
    """

    kind: ClassVar[str] = "seal"
    t: int
    records: int
    trace: str
    outcome: str
    lanes: Json = field(default_factory=dict)
    messages: str | None = None
    uploads: str | None = None
    file: str = ""
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "records": self.records, "lanes": self.lanes, "trace": self.trace}
        if self.messages is not None:
            out["messages"] = self.messages
        if self.uploads is not None:
            out["uploads"] = self.uploads
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
    | Frame
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
