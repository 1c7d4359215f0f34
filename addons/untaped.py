"""What comes through without being taped, noted: some WebSockets, other protocols, refused handshakes and requests."""

import re
from collections import Counter
from typing import TYPE_CHECKING

from tapeproxy.addons.early import early_of
from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import PASSED
from tapeproxy.addons.tape import Tape
from tapeproxy.addons.taps import tap_of
from tapeproxy.tapes.records import Note
from tapeproxy.tapes.redaction import Redactor

if TYPE_CHECKING:
    from mitmproxy.connection import Connection, Server
    from mitmproxy.http import HTTPFlow
    from mitmproxy.tcp import TCPFlow
    from mitmproxy.tls import TlsData

_TARGET = re.compile(
    rb"(?P<method>\S{1,40}) +(?P<scheme>[A-Za-z]{1,10}://)?(?P<user>[^/?#\s]*@)?(?P<host>[^/?#\s]*)(?P<path>\S*)"
)
_LONG = 260
"""Bytes of a host, and of a path, in a note."""


class Untaped:
    """Addon: writes a note for each, redacted. `seen` counts (what, host) for a closing summary."""

    def __init__(self, tape: Tape, redactor: Redactor, failures: Failures) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self._tape = tape
        self._redactor = redactor
        self._failures = failures

    def note(self, what: str, host: str, port: int, text: str) -> None:
        """Put a note on the tape and count it."""
        host, text = self._redactor.text(host), self._redactor.text(text)
        self.seen[what, host] += 1
        self._tape.add(Note(t=self._tape.now(), what=what, text=text, data={"host": host, "port": port}))
        self._tape.commit()

    def websocket_start(self, flow: "HTTPFlow") -> None:
        if tap_of(flow) is None and PASSED not in flow.metadata:  # those of --no-tape have a note
            with self._failures:
                text = "a WebSocket's frames pass through live; only its opening is on the tape"
                self.note("websocket-untaped", flow.request.host, flow.request.port, text)

    def websocket_end(self, flow: "HTTPFlow") -> None:
        tap = tap_of(flow)
        if tap is not None and (why := tap.lost()):
            with self._failures:
                text = f"from some point on, a WebSocket's frames are not on the tape, which could not read them: {why}"
                self.note("websocket-untaped", flow.request.host, flow.request.port, text)

    def websocket_message(self, flow: "HTTPFlow") -> None:
        """Forget the message: mitmproxy would keep every one for as long as the connection lives."""
        if flow.websocket is not None:
            flow.websocket.messages.clear()

    def tcp_start(self, flow: "TCPFlow") -> None:
        with self._failures:
            host, port = _address(flow.server_conn)
            self.note("tunnel-untaped", host, port, "a tunnel that does not speak HTTP passes through live")

    def tcp_message(self, flow: "TCPFlow") -> None:
        """Forget the message, as above."""
        flow.messages.clear()

    def tls_failed_client(self, data: "TlsData") -> None:
        with self._failures:
            host, port = _address(data.context.server)
            reason = _reason(data.conn)
            text = f"a client broke off the TLS handshake{reason}: it may not trust tapeproxy's CA"
            self.note("client-refused-ca", data.conn.sni or host, port, text)

    def request(self, flow: "HTTPFlow") -> None:
        """Note the preface of HTTP/2 on a connection that spoke HTTP/1 before, which mitmproxy has just refused."""
        if flow.request.method == "PRI":
            with self._failures:
                text = "a client changed to HTTP/2 without negotiating it and was disconnected"
                self.note("h2-refused", flow.request.host, flow.request.port, text)

    def responseheaders(self, flow: "HTTPFlow") -> None:
        """Note that a server sent more informational responses than the tape has of it."""
        if flow.response is None or PASSED in flow.metadata:
            return
        more = early_of(flow.response).more
        if more:
            with self._failures:
                text = f"{more} informational responses (1xx) of an exchange passed through live behind the first ones"
                self.note("early-untaped", flow.request.host, flow.request.port, text)

    def refused(self, line: bytes, reason: str, server: tuple[str, int] | None) -> None:
        """Note a request that mitmproxy answered by itself: `line` is its first, `server` where a tunnel leads."""
        with self._failures:
            method, host, port, url = _target(line, server)
            shown = self._redactor.url(url).decode("utf-8", "backslashreplace")
            # What follows a colon quotes the request, credentials and all.
            text = f"{method} {shown} was refused before it could be taped: {reason.partition(':')[0]}"
            self.note("refused-by-proxy", host, port, text)


def _target(line: bytes, server: tuple[str, int] | None) -> tuple[str, str, int, bytes]:
    """Method, host, port (0: not said) and URL of a request line, as far as it can be read; no user, no password."""
    found = _TARGET.match(line)
    host, port = server or ("", 0)
    if found is None:
        return "a request", host, port, b"(unreadable)"
    method, authority = found["method"].decode("ascii", "replace"), found["host"][:_LONG]
    url = (found["scheme"] or b"").lower() + authority + found["path"][:_LONG]
    if not found["scheme"] and method != "CONNECT":
        return method, host, port, url
    name, _, digits = authority.rpartition(b":")
    if not name or not digits.isdigit():  # no port, or an IPv6 address, or nonsense
        name, digits = authority, b"0"
    return method, name.decode("utf-8", "backslashreplace"), int(digits[:5]), url


def _address(server: "Server") -> tuple[str, int]:
    return (server.address[0], server.address[1]) if server.address else ("", 0)


def _reason(connection: "Connection") -> str:
    return f" ({connection.error})" if connection.error else ""
