"""What a taped MCP server says in a replay, and when: each message where it stood among the client's. Pure.

A message is due when the client has sent as many messages as on the tape by then, and those before it have been said.
An answer may be asked for out of turn: then it is given out when nothing more comes (`late`), for whoever waits for it
may not go on without.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tapeproxy.tapes.mcpmessages import Message, addressed, id_key, reporting
from tapeproxy.tapes.mcptaping import POSITION, TOKEN


class Said(NamedTuple):
    """A taped message of the server's: its number, and how many the client had sent by then."""

    number: int
    after: int
    raw: bytes


class Exit(NamedTuple):
    """How the server ended, and after how many messages of the client's: by a code, or a signal's name."""

    after: int
    code: int
    signal: str = ""


@dataclass(slots=True)
class Script:
    """The part of one server. `received`: how many messages the client has sent, its end of input included."""

    exit: Exit | None = None
    received: int = 0
    _told: list[Said] = field(default_factory=list[Said])
    _answers: list[Said] = field(default_factory=list[Said])
    _tokens: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def read(cls, events: bytes) -> "Script":
        """The script of a server from its stream of events; what is no event of ours is left out."""
        script = cls()
        for number, after, kind, data in _events(events):
            if kind == "exit":
                script.exit = _exit(after, data)
            else:
                script._told.append(Said(number, after, data))
        return script

    @property
    def waits(self) -> bool:
        """Whether an answer was asked for that has not been given out."""
        return bool(self._answers)

    @property
    def has_ended(self) -> bool:
        """Whether the server ends now."""
        return self.exit is not None and self.exit.after <= self.received and not self._answers and not self._told_due()

    def answer(self, asked: Message, headers: Mapping[bytes, bytes], body: bytes) -> None:
        """The client has asked this, and the tape has this answer."""
        number, after = _position(headers.get(POSITION, b"").decode("latin-1"))
        taped = _key(headers[TOKEN]) if TOKEN in headers else None
        if taped is not None and asked.token is not None and taped != id_key(asked.token):
            self._tokens[taped] = asked.token
        self._answers.append(Said(number, after, addressed(body, asked)))
        self._answers.sort()

    def due(self, *, late: bool = False) -> Iterator[bytes]:
        """The messages to be said now, in order. `late`: answers that were asked for are no longer held back."""
        while True:
            ready = [*self._told_due(), *(said for said in self._answers if late or said.after <= self.received)]
            if not ready:
                return
            said = min(ready)
            if said in self._answers:
                self._answers.remove(said)
                yield said.raw
            else:
                self._told.remove(said)
                yield reporting(said.raw, self._tokens)

    def _told_due(self) -> list[Said]:
        first = self._told[:1]
        return [said for said in first if said.after <= self.received]


def _events(data: bytes) -> Iterator[tuple[int, int, str, bytes]]:
    for event in data.split(b"\n\n"):
        fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
        kind, text = fields.get(b"event", b"").decode("latin-1"), fields.get(b"data", b"")
        if not kind:
            continue
        if kind.endswith("-base64"):
            kind = kind.removesuffix("-base64")
            try:
                text = base64.b64decode(text, validate=True)
            except binascii.Error:
                continue
        yield *_position(fields.get(b"id", b"").decode("latin-1")), kind, text


def _position(text: str) -> tuple[int, int]:
    words = text.split()
    if len(words) == 2 and all(word.isascii() and word.isdigit() and len(word) < 16 for word in words):
        return int(words[0]), int(words[1])
    return 0, 0


def _exit(after: int, data: bytes) -> Exit:
    try:
        told = json.loads(data)
    except ValueError:
        told = {}
    told = told if isinstance(told, dict) else {}
    code, signal = told.get("code"), told.get("signal")
    return Exit(after, code if type(code) is int else 0, signal if isinstance(signal, str) else "")


def _key(text: bytes) -> str:
    try:
        return id_key(json.loads(text))
    except ValueError:
        return text.decode("latin-1")
