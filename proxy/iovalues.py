"""What the shims tell of the agent's reads: turned into records, written out for a replay's shims, compared.

Knows the sidecar's lines and the files that the shim reads (`_tapeproxy/tapedvalues.py`); what makes two values the
same is in `tapes/values.py`. Contents and names are redacted here, before anything else sees them.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from tapeproxy.proxy.hintvalues import redact_hint, since
from tapeproxy.proxy.sidecar import Line
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.filetext import redact_text
from tapeproxy.tapes.hints import HINTS
from tapeproxy.tapes.parsing import RecordError, parse_record
from tapeproxy.tapes.records import Request, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.values import (
    LIMIT,
    Program,
    TapedValues,
    describe,
    differences,
    programs,
    stream_differences,
    with_contents,
)
from tapeproxy.tapes.violations import Drift

_OWN = ("k", "taped")
_PIECES = ("pipe", "received", "sent")
_BELOW = -2
_AMISS = {
    "less": "the agent waits for an answer although it has sent less than on the tape; it was given the tape's",
    "more": "the agent waits for more than the tape has; it was told that the connection is gone",
}


class ValueReader:
    """Makes records of sidecar lines. `seed`: the run's 32 bytes, which digests are keyed with.

    `epoch_ns`: the tape's start in nanoseconds since 1970, which moments are counted from.
    """

    def __init__(self, redactor: Redactor, seed: bytes, epoch_ns: int = 0) -> None:
        self._redactor = redactor
        self._epoch = epoch_ns
        self._seed = seed
        self._digests: dict[str, str] = {}

    def read(self, line: Line, t: int) -> Value | None:
        """The record for a `value` line; None for one that is malformed."""
        fields = {name: value for name, value in line.items() if name not in _OWN}
        try:
            record = parse_record(fields | {"k": "value", "t": t})
        except RecordError:
            return None
        assert isinstance(record, Value)
        if record.what in HINTS:
            return since(redact_hint(record, self._redactor, self._seed), self._epoch)
        return self._redacted(record)

    def _redacted(self, value: Value) -> Value:
        text = self._redactor.text
        words = self._redactor.argv(value.name.split(" ")) if value.what in ("process", "exit") else (value.name,)
        value = replace(value, name=text(" ".join(words)), where=text(value.where), extra={})
        if value.data:
            value = replace(value, data=orjson.loads(self._redactor.content(orjson.dumps(value.data))))
        if value.content is None:
            # The content stands on an earlier line, and its digest there may be that of the redacted one.
            return (
                value if value.digest is None else replace(value, digest=self._digests.get(value.digest, value.digest))
            )
        hidden = redact_text(value.content, self._redactor)
        if hidden == value.content:
            return value
        digest = hashlib.blake2b(hidden, key=self._seed, digest_size=16).hexdigest()
        self._digests[value.digest or ""] = digest
        return replace(value, content=hidden, length=len(hidden), digest=digest)


class ValueCheck:
    """Compares what a replay's agent reads with the tape. `drift` hears of each name's first difference."""

    def __init__(self, tape: Tape, redactor: Redactor, drift: Callable[[Drift], None]) -> None:
        self._taped = TapedValues([value for _, value in with_contents(tape.values) if value.what not in HINTS])
        self._reader = ValueReader(redactor, bytes.fromhex(tape.head.seed or ""))
        self._pieces: dict[tuple[str, str, int], list[Value]] = {}
        self._programs: dict[tuple[str, int], tuple[Value, Value]] = {}
        self._contents: dict[str, bytes] = {}
        self._drift = drift
        self._told: set[tuple[str, str]] = set()

    def take(self, line: Line) -> None:
        """Look at a `value` line."""
        now = self._reader.read(line, 0)
        if now is None:
            return
        now = self._whole(now)
        if now.what in _PIECES:
            self._take_piece(line, now)
            return
        taped = self._partner(line, now)
        if now.what in ("process", "socket") and taped is not None:
            self._programs[now.lane, now.n] = (taped, now)
        if (now.what, now.name) in self._told:
            return
        if taped is None:
            if now.what not in ("pid", "exit"):
                self._tell(now, "the agent reads what it did not read while recording; it gets what is there now")
            return
        if found := differences(taped, now):
            drift = Drift(describe(now), "the agent reads something else than on the tape", found)
            self._told.add((now.what, now.name))
            self._drift(drift)

    def _take_piece(self, line: Line, now: Value) -> None:
        of, served = _of(now), line.get("taped")
        if isinstance(served, int) and (taped := self._taped.numbered(now.lane, served)) is not None:
            of = _BELOW - served  # the connection is the tape's: it has no number in this run
            self._programs.setdefault((now.lane, of), (taped, replace(taped, where=now.where)))
        if now.data.get("amiss") in _AMISS:
            if (now.what, now.name) not in self._told:
                self._tell(now, _AMISS[now.data["amiss"]])
        elif now.error is None:
            self._pieces.setdefault((now.lane, _stream(now), of), []).append(now)

    def finish(self) -> None:
        """Compare what came through pipes and connections, now that all has come."""
        taped: dict[tuple[str, str, int], list[Value]] = {}
        for value in self._taped.values:
            if value.what in _PIECES and value.error is None:
                taped.setdefault((value.lane, _stream(value), _of(value)), []).append(value)
        for (lane, name, of), pieces in self._pieces.items():
            was, now = self._programs.get((lane, of), (None, pieces[0]))
            if of != -1 and was is None:
                continue
            found = stream_differences(taped.get((lane, name, -1 if was is None else was.n), []), pieces)
            if found:
                who = f"{name} of {describe(now)}" if was is not None else describe(now)
                what = "sends" if name == "sent" else "reads"
                self._drift(Drift(who, f"the agent {what} something else than on the tape", found))

    def _partner(self, line: Line, now: Value) -> Value | None:
        number = line.get("taped", -1)
        if number is None:
            return None
        return self._taped.numbered(now.lane, number) if number >= 0 else self._taped.take(now)

    def _whole(self, now: Value) -> Value:
        """The value with its content, which its process told once for all of the same digest."""
        if now.digest is None:
            return now
        if now.content is not None:
            self._contents[now.digest] = now.content
        elif (now.length or 0) <= LIMIT:
            return replace(now, content=self._contents.get(now.digest))
        return now

    def _tell(self, now: Value, what: str) -> None:
        self._told.add((now.what, now.name))
        self._drift(Drift(describe(now), what))


def _stream(value: Value) -> str:
    """`stdout`, `stderr`, `stdin`, `received` or `sent`."""
    return value.name if value.what == "pipe" else value.what


def _of(value: Value) -> int:
    of = value.data.get("of")
    return of if isinstance(of, int) else -1


def write_values(tape: Tape, folder: Path) -> None:
    """Write a tape's values where a replay's shims look them up: see `_tapeproxy/tapedvalues.py`."""
    folder.mkdir(mode=0o700)
    values = [(index, value) for index, value in with_contents(tape.values) if value.what not in HINTS]
    plans = {(p.process.lane, p.process.n): p for p in programs(values, _requests(tape))}
    with (folder / "index.jsonl").open("wb") as index, (folder / "contents").open("wb") as file:
        contents = _Contents(file)
        for _, value in values:
            fields = replace(value, content=None).to_json() | {"name": value.name}
            if value.content is not None:
                fields["at"], fields["size"] = contents.place(value.content)
            if value.what == "process":
                fields["served"] = _plan(plans[value.lane, value.n], contents)
            index.write(json.dumps(fields).encode() + b"\n")  # orjson refuses names that are not UTF-8


class _Contents:
    """The file of all contents, each once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._places: dict[bytes, tuple[int, int]] = {}
        self._size = 0

    def place(self, content: bytes) -> tuple[int, int]:
        """Where a content begins, and its length."""
        if content not in self._places:
            self._places[content] = (self._size, len(content))
            self._file.write(content)
            self._size += len(content)
        return self._places[content]


def _plan(program: Program, contents: _Contents) -> dict[str, Any]:
    """What a stub has to do in place of a program."""
    outputs = [program.output(stream) or (b"", False) for stream in ("stdout", "stderr")]
    ended = program.exit.data if program.exit is not None else {}
    stdin = ended.get("stdin")
    return {
        "live": program.live,
        "out": contents.place(outputs[0][0]),
        "err": contents.place(outputs[1][0]),
        "returncode": ended.get("returncode"),
        "signalled": bool(ended.get("signalled")),
        "stdin": stdin.get("length", 0) if isinstance(stdin, dict) else 0,
        "exit": None if program.exit is None else program.exit.n,
    }


def _requests(tape: Tape) -> Iterator[tuple[int, Request]]:
    return ((exchange.index, exchange.request) for exchange in outlines(tape.exchanges))
