"""The addon of a fork: sends each request to the tape server or out into the world. Decides nothing; obeys a `Judge`.

An answer from the tape is not put on the flow: it would leave in one burst. The flow is sent to the server of replays,
on loopback, with a ticket for the answer that was found, so that it is paced, streamed and broken off as in a replay.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import PASSED, url_of, version_of
from tapeproxy.addons.h1fixes import ends_in_reset
from tapeproxy.addons.hostmap import REDIRECTED
from tapeproxy.tapes.forkverdict import TICKET_HEADER, Judge, Verdict
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.records import End, Headers, Request
from tapeproxy.tapes.refusals import SOURCE

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

_KEPT = frozenset({b"connection", b"upgrade", b"sec-websocket-version"})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class ForkGate:
    """Addon: stands behind the Recorder, which asks it first (`Origins`), and before those who send flows elsewhere.

    `port`: where the tape server listens on loopback.
    """

    def __init__(self, judge: Judge, port: int, failures: Failures) -> None:
        self._judge = judge
        self._port = port
        self._failures = failures
        self._verdicts: dict[str, Verdict] = {}

    def is_answered_at_once(self, flow: "HTTPFlow", tag: LaneTag | None, headers: Headers) -> bool:
        """Whether a call of gRPC goes out, or is refused, before it is whole."""
        verdict = self._judge.judge_call(_asked(flow, headers, b""), tag, flow.client_conn.peername[1])
        if verdict is not None:
            self._verdicts[flow.id] = verdict
        return verdict is not None

    def requestheaders(self, flow: "HTTPFlow") -> None:
        with self._failures:
            verdict = self._verdicts.get(flow.id)
            if verdict is not None and verdict.source == SOURCE and flow.killable:
                # mitmproxy can't answer a request that it streams.
                flow.kill()  # type: ignore[no-untyped-call]  # mitmproxy's

    def source(self, flow: "HTTPFlow", tag: LaneTag | None, headers: Headers, body: bytes) -> str | None:
        """Have it decided where the answer comes from."""
        if (known := self._verdicts.get(flow.id)) is not None:
            return known.source
        asked = _asked(flow, headers, body)
        verdict = self._verdicts[flow.id] = self._judge.judge(asked, tag, flow.client_conn.peername[1])
        return verdict.source

    def ending(self, flow: "HTTPFlow") -> End | None:
        """How the exchange ended on the tape that its answer comes from."""
        verdict = self._verdicts.get(flow.id)
        ending = None if verdict is None else verdict.ending
        return None if ending is None or ending.how == "complete" else ending

    def request(self, flow: "HTTPFlow") -> None:
        with self._failures:
            verdict = self._verdicts.get(flow.id)
            if PASSED in flow.metadata:
                return
            if verdict is None:
                # What nobody has decided does not go out.
                if flow.killable:
                    flow.kill()  # type: ignore[no-untyped-call]  # mitmproxy's
            elif verdict.ticket is not None:
                self._redirect(flow, verdict.ticket)
                end = self.ending(flow)
                if flow.request.is_http2 and end is not None and end.how == "reset" and end.code is not None:
                    ends_in_reset(flow.request, end.code)
            elif verdict.edit is not None:
                _edit(flow, verdict.edit)

    def response(self, flow: "HTTPFlow") -> None:
        self._end(flow)

    def error(self, flow: "HTTPFlow") -> None:
        self._end(flow)

    def _end(self, flow: "HTTPFlow") -> None:
        verdict = self._verdicts.pop(flow.id, None)
        if verdict is not None:
            with self._failures:
                self._judge.ended(verdict)

    def _redirect(self, flow: "HTTPFlow", ticket: int) -> None:
        flow.metadata[REDIRECTED] = True
        request = flow.request
        # The method says whether an answer has a body, Connection whether the client stays, and these others whether
        # mitmproxy takes what comes after a 101 for a WebSocket.
        kept = tuple(pair for pair in request.headers.fields if pair[0].lower() in _KEPT)
        request.headers.fields = ((b"host", b"tape"), (TICKET_HEADER, b"%d" % ticket), *kept)
        request.data.content = b""
        request.data.host, request.data.port, request.data.scheme = "127.0.0.1", self._port, b"http"
        request.data.path, request.data.authority = b"/", b""


def _asked(flow: "HTTPFlow", headers: Headers, body: bytes) -> Request:
    request = flow.request
    return Request(
        t=0, method=request.data.method, url=url_of(request), http=version_of(request), headers=headers, body=body
    )


def _edit(flow: "HTTPFlow", edit: Callable[[Request], Request]) -> None:
    """Change a request on its way out. Its host stays, unless the edit gives another one."""
    request = flow.request
    before = Request(
        t=0,
        method=request.data.method,
        url=url_of(request),
        http=version_of(request),
        headers=request.headers.fields,
        body=request.raw_content or b"",
    )
    after = edit(before)
    assert isinstance(after.body, bytes)
    request.data.method = after.method
    request.headers.fields = _framed(after.headers, after.body) if after.body != before.body else after.headers
    request.data.content = after.body
    if after.url != before.url:
        target = parse_target(after.url)
        request.data.scheme, request.data.host = target.scheme.encode(), target.host
        request.data.port = target.port
        request.data.path = target.path if target.query is None else target.path + b"?" + target.query


def _framed(headers: Headers, body: bytes) -> Headers:
    kept = tuple(pair for pair in headers if pair[0].lower() not in _FRAMING)
    return (*kept, (b"Content-Length", b"%d" % len(body)))
