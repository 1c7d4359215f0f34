"""`tapeproxy mcp` in a replay: the server is not started, and what it said comes from the tape.

Each message of the client's is a request to the run's tape server, which finds its answer or explains why there is none
as for any other request. `tapes/mcpscript.py` says what is said when. Connects to the tape server alone.
"""

import base64
import http.client
import json
import os
import select
import signal
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from tapeproxy.proxy.mcptap import write_all
from tapeproxy.proxy.pipefill import Taken
from tapeproxy.tapes.mcpmessages import Message, canonical, id_key, read_message, url_of, violation_answer
from tapeproxy.tapes.mcpscript import Script
from tapeproxy.tapes.mcptaping import POSITION, command_body
from tapeproxy.tapes.violations import STATUS

_READ: Final = 1 << 16
LATE: Final = 0.3
"""Seconds of silence after which an answer is given out although the client has sent less than on the tape by then."""
_READING: Final = 0.2
"""Seconds that a client has to read a message before it gets the next one: the SDK for TypeScript drops progress
that it reads together with the answer."""
_PATIENCE: Final = 600.0
_NO_SERVER: Final = 1
"""The code of a server that could not begin."""


class Answered(NamedTuple):
    """What the tape server said; `status` 0: the connection ended without an answer."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class ReplayedServer:
    """A server of the name, heard by the proxy with this URL; `session` counts those of one name.

    Raises ValueError for what is no URL of a proxy.
    """

    def __init__(self, proxy: str, name: str, session: int) -> None:
        place = urlsplit(proxy)
        if not place.hostname or not place.port:
            raise ValueError(f"{proxy!r} is no proxy")
        self._address = place.hostname, place.port
        self._headers = {"Content-Type": "application/json", "Connection": "close"}
        if place.username is not None:
            who = f"{unquote(place.username)}:{unquote(place.password or '')}"
            self._headers["Proxy-Authorization"] = f"Basic {base64.b64encode(who.encode()).decode()}"
        self._name = name
        self._session = session
        self._script = Script()
        self._sent: dict[str, int] = {}
        self._taken = Taken(1, _READING)

    def run(self, argv: Sequence[str]) -> int:
        """Answer what comes on stdin until the taped server ends. Returns its code; by a signal, minus its number."""
        begun = self._ask("", command_body(tuple(argv)))
        if begun.status == STATUS:
            # Who waits for what such a server says would wait for ever.
            write_all(2, f"tapeproxy: this server is not on the tape: {_reason(begun)}\n".encode())
            return _NO_SERVER
        if begun.status == 200:
            self._script = Script.read(begun.body)
        lines, open_ = _Input(), True
        while open_:
            if not self._say() or self._script.has_ended:
                break
            line = lines.next(LATE if self._script.waits else None)
            if line is None:
                self._say(late=True)
            elif line:
                self._take(read_message(line.removesuffix(b"\n")))
            else:
                self._script.received += 1
                open_ = False
                self._say(late=True)
        return self._code()

    def _take(self, message: Message) -> None:
        script = self._script
        script.received += 1
        answered = self._ask(message.path, canonical(message, self._sent))
        if message.wants_answer:
            self._sent.update(dict.fromkeys(map(id_key, message.ids), script.received))
        if POSITION in answered.headers:
            script.answer(message, answered.headers, answered.body)
        elif message.wants_answer and answered.status:
            # In its turn among those that are due: at once.
            script.answer(message, {}, violation_answer(message, _reason(answered)))

    def _say(self, *, late: bool = False) -> bool:
        """Say what is due; False where nobody listens any more."""
        return all(self._write(said) for said in self._script.due(late=late))

    def _write(self, said: bytes) -> bool:
        self._taken.wait()
        return write_all(1, said + b"\n")

    def _code(self) -> int:
        ended = self._script.exit
        if ended is None:
            return 0
        number = getattr(signal, ended.signal, None) if ended.signal.startswith("SIG") else None
        return ended.code if number is None else -int(number)

    def _ask(self, path: str, body: bytes) -> Answered:
        url = url_of(self._name, path, self._session).decode("latin-1")
        connection = http.client.HTTPConnection(*self._address, timeout=_PATIENCE)
        try:
            connection.request("POST", url, body, self._headers)
            response = connection.getresponse()
            headers = {name.lower().encode(): value.encode("latin-1") for name, value in response.getheaders()}
            return Answered(response.status, headers, response.read())
        except (OSError, http.client.HTTPException):
            return Answered(0, {}, b"")
        finally:
            connection.close()


class _Input:
    """Lines of stdin as they come."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._open = True

    def next(self, patience: float | None) -> bytes | None:
        """The next line; empty at the end; None where none came in so many seconds."""
        while not self._lines:
            if not self._open:
                return b""
            if patience is not None and not select.select([0], [], [], patience)[0]:
                return None
            data = os.read(0, _READ)
            *whole, last = data.split(b"\n")
            for line in whole:
                self._lines.append(b"".join((*self._rest, line, b"\n")))
                self._rest = []
            self._rest.append(last)
            if not data:
                self._open = False
                if any(self._rest):
                    self._lines.append(b"".join(self._rest))
        return self._lines.popleft()


def next_session(folder: Path | None, name: str) -> int:
    """Which process of this name in the run we are, from 1: each makes a file of its own in the run's folder."""
    if folder is None:
        return 1
    session = 1
    while True:
        try:
            os.close(os.open(folder / f"mcp-{name}-{session}.begun", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            session += 1
        except OSError:
            return 1
        else:
            return session


def _reason(answered: Answered) -> str:
    """Why there is no answer, for the client."""
    if answered.status == STATUS:
        try:
            return str(json.loads(answered.body)["error"]["message"])
        except (ValueError, KeyError, TypeError):
            pass
    return f"the tape has status {answered.status} for this message"
