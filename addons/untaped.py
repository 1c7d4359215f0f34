"""What passes through live without being taped, noted: WebSockets, tunnels of other protocols, refused handshakes."""

from collections import Counter
from typing import TYPE_CHECKING

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.tape import Tape
from tapeproxy.tapes.records import Note

if TYPE_CHECKING:
    from mitmproxy.connection import Connection, Server
    from mitmproxy.http import HTTPFlow
    from mitmproxy.tcp import TCPFlow
    from mitmproxy.tls import TlsData


class Untaped:
    """Addon: writes a note for each. `seen` counts (what, host) for a closing summary."""

    def __init__(self, tape: Tape, failures: Failures) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self._tape = tape
        self._failures = failures

    def note(self, what: str, host: str, port: int, text: str) -> None:
        """Put a note on the tape and count it."""
        self.seen[what, host] += 1
        self._tape.add(Note(t=self._tape.now(), what=what, text=text, data={"host": host, "port": port}))
        self._tape.commit()

    def websocket_start(self, flow: "HTTPFlow") -> None:
        with self._failures:
            text = "a WebSocket's frames pass through live; only its opening is on the tape"
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
        """Note the preface of HTTP/2 without negotiation, which mitmproxy has just refused."""
        if flow.request.method == "PRI":
            with self._failures:
                text = "a client spoke HTTP/2 without negotiating it (gRPC does) and was disconnected"
                self.note("h2-refused", flow.request.host, flow.request.port, text)


def _address(server: "Server") -> tuple[str, int]:
    return (server.address[0], server.address[1]) if server.address else ("", 0)


def _reason(connection: "Connection") -> str:
    return f" ({connection.error})" if connection.error else ""
