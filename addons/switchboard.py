"""Many runs behind one proxy: each client connection belongs to one of them, whose addons tape it and no other's.

Knows mitmproxy's hooks; who may come in, and to which run, it is told. A connection is given to a run by the first
CONNECT or absolute-form request on it, and stays there: later requests outside a tunnel have to say the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mitmproxy.http import Response

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import declared_length
from tapeproxy.addons.insidegate import InsideGate
from tapeproxy.addons.recorder import Recorder
from tapeproxy.addons.sockets import Resets
from tapeproxy.addons.tape import Tape
from tapeproxy.addons.untaped import Untaped
from tapeproxy.tapes.credentials import RefusedError
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redaction import Redactor

if TYPE_CHECKING:
    from mitmproxy.connection import Client
    from mitmproxy.http import HTTPFlow
    from mitmproxy.tcp import TCPFlow
    from mitmproxy.tls import ClientHelloData, TlsData

_MOST_REFUSED = 1 << 20
"""Bytes of a body that is taken in before its request is refused; of a larger one the client is cut off."""

type Claim = Callable[[int, Headers], tuple[str, Headers]]
"""The port that a client came by and its headers, to the name of a run and the headers without credentials."""


@dataclass(slots=True, eq=False)
class RunTaping:
    """What tapes one run. `clients`: the ids of its connections."""

    name: str
    recorder: Recorder
    untaped: Untaped
    gate: InsideGate
    failures: Failures
    clients: set[str] = field(default_factory=set)


def new_taping(
    name: str,
    tape: Tape,
    redactor: Redactor,
    resets: Resets,
    is_inside: Callable[[int], bool],
    untagged: Callable[[int], None],
) -> RunTaping:
    """The addons of one run, as a wire that has only this one would have them."""
    failures = Failures()
    untaped = Untaped(tape, redactor, failures)
    recorder = Recorder(tape, redactor, is_inside, resets, failures, untagged)
    return RunTaping(name, recorder, untaped, InsideGate(is_inside, untaped, failures), failures)


class Switchboard:
    """Addon: hands each hook to the addons of the run that its connection belongs to.

    `claim` reads what a client says of itself, `run_of` finds or begins the run of a name, `refused` is told of every
    client that is turned away. The first two raise RefusedError.
    """

    def __init__(
        self,
        claim: Claim,
        run_of: Callable[[str], RunTaping],
        refused: Callable[[RefusedError], None],
        failures: Failures,
    ) -> None:
        self._claim = claim
        self._run_of = run_of
        self._refused = refused
        self._failures = failures
        self._runs: WeakKeyDictionary[Client, RunTaping] = WeakKeyDictionary()
        self._in_tunnel: set[str] = set()

    def tell_refused(self, line: bytes, reason: str, server: tuple[str, int] | None, client: "Client") -> None:
        """Pass on that mitmproxy answered a request by itself, if its connection belongs to a run."""
        run = self._runs.get(client)
        if run is not None:
            run.untaped.refused(line, reason, server)

    # --- who comes in ------------------------------------------------------------------------------------------

    def http_connect(self, flow: "HTTPFlow") -> None:
        client = flow.client_conn.id
        if client not in self._in_tunnel and self._enter(flow) is not None:
            self._in_tunnel.add(client)

    def requestheaders(self, flow: "HTTPFlow") -> None:
        if flow.request.method == "PRI":
            return
        inside = flow.client_conn.id in self._in_tunnel
        run = self._runs.get(flow.client_conn) if inside else self._enter(flow)
        if run is not None:
            run.recorder.requestheaders(flow)
        elif flow.response is None or not _is_small(flow):
            flow.kill()  # type: ignore[no-untyped-call]  # mitmproxy's

    def _enter(self, flow: "HTTPFlow") -> RunTaping | None:
        """The run that a request belongs to, with its credentials taken off; None: it is refused."""
        client = flow.client_conn
        try:
            name, headers = self._claim(client.sockname[1], flow.request.headers.fields)
            run = self._runs.get(client) or self._run_of(name)
            if run.name != name:
                raise RefusedError(f"this connection belongs to the run {run.name}", fix="open one for each run")
        except RefusedError as error:
            self._refuse(flow, error)
            return None
        except Exception as error:  # never let in because of a mistake of ours
            self._failures.add(error)
            self._refuse(flow, RefusedError(f"a bug in tapeproxy: {type(error).__name__}", status=503))
            return None
        flow.request.headers.fields = headers
        self._runs[client] = run
        run.clients.add(client.id)
        return run

    def _refuse(self, flow: "HTTPFlow", error: RefusedError) -> None:
        self._refused(error)
        flow.response = Response.make(error.status, error.content(), error.headers())
        flow.response.data.reason = error.reason

    def client_disconnected(self, client: "Client") -> None:
        self._in_tunnel.discard(client.id)
        run = self._runs.get(client)
        if run is not None:
            run.clients.discard(client.id)

    # --- what belongs to a run ---------------------------------------------------------------------------------

    def request(self, flow: "HTTPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None and flow.response is None:
            run.untaped.request(flow)
            run.recorder.request(flow)

    def request_grows(self, flow: "HTTPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None and flow.response is None:
            run.recorder.request_grows(flow)

    def responseheaders(self, flow: "HTTPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None:
            run.untaped.responseheaders(flow)
            run.recorder.responseheaders(flow)

    def response(self, flow: "HTTPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None:
            run.recorder.response(flow)

    def error(self, flow: "HTTPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None:
            run.recorder.error(flow)

    def websocket_start(self, flow: "HTTPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None:
            run.untaped.websocket_start(flow)

    def websocket_message(self, flow: "HTTPFlow") -> None:
        if flow.websocket is not None:
            flow.websocket.messages.clear()

    def websocket_end(self, flow: "HTTPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None:
            run.untaped.websocket_end(flow)

    def tcp_start(self, flow: "TCPFlow") -> None:
        if (run := self._runs.get(flow.client_conn)) is not None:
            run.untaped.tcp_start(flow)

    def tcp_message(self, flow: "TCPFlow") -> None:
        flow.messages.clear()

    def tls_failed_client(self, data: "TlsData") -> None:
        if (run := self._runs.get(data.context.client)) is not None:
            run.untaped.tls_failed_client(data)

    def tls_clienthello(self, data: "ClientHelloData") -> None:
        if (run := self._runs.get(data.context.client)) is not None:
            run.gate.tls_clienthello(data)


def _is_small(flow: "HTTPFlow") -> bool:
    headers = flow.request.headers.fields
    length = declared_length(headers)
    if length is None:
        return not any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in headers)
    return length <= _MOST_REFUSED
