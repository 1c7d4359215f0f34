"""A tape whose values can be made neutral: those of its answers, and of what the agent read past the wire. Pure.

Of what was read, files and the results of tools and of `value` are looked into: their contents are served to a replay.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.exchanges import Chunk, Exchange, Tape
from tapeproxy.tapes.minimizing import Node
from tapeproxy.tapes.neutrals import NeutralBody, Value
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.records import Value as Read
from tapeproxy.tapes.values import with_contents

_FILES: Final = frozenset({"file"})
_HINTS: Final = frozenset({"tool", "hint"})


class Source(NamedTuple):
    """Where a value stands: in the answer of exchange `number`, or in the read that is record `number` of the tape."""

    kind: Literal["exchange", "read"]
    number: int


class Key(NamedTuple):
    """A value of a tape."""

    source: Source
    path: str


class Named(NamedTuple):
    """A value, and the name of what was read; empty for an answer."""

    key: Key
    name: str
    value: Value

    def to_json(self) -> Json:
        """For reports."""
        value = self.value
        said: Json = {"value": value.value, "neutral": value.neutral}
        return key_json(self.key) | ({"name": self.name} if self.name else {}) | said


def key_json(key: Key) -> Json:
    """Where a value stands, for heads and reports: `exchange` or `read`, a number, and `path`."""
    return {key.source.kind: key.source.number, "path": key.path}


class NeutralTape:
    """The values of a tape, and the tape with some of them. `text`: what a model says in a neutral answer.

    `reads`: a replay serves what was read from files (of tools it does always).
    """

    def __init__(self, tape: Tape, text: str = "", *, reads: bool = False) -> None:
        self._tape = tape
        self._reads = dict(with_contents(tape.values))
        kinds = _HINTS | _FILES if reads else _HINTS
        self._bodies: dict[Source, NeutralBody] = {
            Source("read", index): NeutralBody([read.content], ())
            for index, read in self._reads.items()
            if read.what in kinds and read.content and read.error is None
        }
        for exchange in tape.exchanges:
            if exchange.response is not None and not exchange.request.inside:
                pieces = [chunk.data for chunk in exchange.chunks]
                body = NeutralBody(
                    pieces, exchange.response.headers, is_call=read_call(exchange) is not None, text=text
                )
                self._bodies[Source("exchange", exchange.number)] = body
        self._made: dict[tuple[Source, frozenset[str]], Any] = {}
        self.values: dict[Key, Named] = {}
        for source, body in self._bodies.items():
            name = "" if source.kind == "exchange" else self._called(source.number)
            self.values |= {(key := Key(source, one.path)): Named(key, name, one) for one in body.values}

    def tree(self) -> list[Node[Key]]:
        """Answers and reads, then what their bodies are made of."""
        return [_node(source, body.values) for source, body in self._bodies.items() if body.values]

    def keeping(self, kept: frozenset[Key]) -> Tape:
        """The tape with every other value neutral; of reads each has its content itself."""
        paths: dict[Source, set[str]] = {}
        for source, path in kept:
            paths.setdefault(source, set()).add(path)

        def made[T](source: Source, whole: T, change: Callable[[T, Sequence[bytes]], T]) -> T:
            if source not in self._bodies:
                return whole
            which = (source, frozenset(paths.get(source, ())))
            if which not in self._made:
                self._made[which] = change(whole, self._bodies[source].keeping(which[1]))
            found: T = self._made[which]
            return found

        return dataclasses.replace(
            self._tape,
            exchanges=[made(Source("exchange", one.number), one, _with_pieces) for one in self._tape.exchanges],
            values=[
                (index, made(Source("read", index), read, self._with_content)) for index, read in self._reads.items()
            ],
        )

    def _with_content(self, read: Read, pieces: Sequence[bytes]) -> Read:
        (content,) = pieces
        if content == read.content:
            return read
        seed = bytes.fromhex(self._tape.head.seed or "")[: hashlib.blake2b.MAX_KEY_SIZE]
        digest = hashlib.blake2b(content, key=seed, digest_size=16).hexdigest()
        return dataclasses.replace(
            read,
            content=content,
            length=None if read.length is None else len(content),
            digest=None if read.digest is None else digest,
        )

    def _called(self, index: int) -> str:
        read = self._reads[index]
        return f"{read.what} {read.name}"


def _with_pieces(exchange: Exchange, pieces: Sequence[bytes]) -> Exchange:
    chunks = [Chunk(old.t, new) for old, new in zip(exchange.chunks, pieces, strict=True)]
    return exchange if chunks == exchange.chunks else dataclasses.replace(exchange, chunks=chunks)


def _node(source: Source, values: Sequence[Value], depth: int = 0) -> Node[Key]:
    """The branch of a body, or of a part of it `depth` steps below."""
    if len(values) == 1:
        return Node(Key(source, values[0].path))
    groups: dict[object, list[Value]] = {}
    for value in values:
        groups.setdefault(value.branch[depth] if depth < len(value.branch) else value.path, []).append(value)
    return Node(Key(source, ""), tuple(_node(source, group, depth + 1) for group in groups.values()))
