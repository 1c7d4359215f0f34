"""The short way through mitmproxy: fewer writes, the same order, and the long way where a hook has to be awaited."""

import socket
from collections.abc import Callable
from types import SimpleNamespace

import anyio
import pytest
from mitmproxy.options import Options
from mitmproxy.proxy import layers
from mitmproxy.proxy.layers.http import HttpStream
from origin import Call, Origin
from recording import Recording, read_until

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.inline import InlineHooks, leads_there
from tapeproxy.proxy.mitm import slim_imports

type Make = Callable[..., Recording]


def test_a_request_leaves_in_one_write(record: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, record() as recording, recording.connect() as sock:
        port = server.getsockname()[1]
        sock.sendall(f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody".encode())
        peer, _ = server.accept()
        with peer:
            assert peer.recv(65536).endswith(b"\r\n\r\nbody")
            assert layers.http.HttpStream is not HttpStream


@pytest.mark.parametrize("count", [1, 3, 4, 5, 50])
def test_chunks_that_are_joined_stay_in_order_and_whole(record: Make, count: int) -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (len(b"chunk %d" % n), b"chunk %d" % n) for n in range(count)) + b"0\r\n\r\n"
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body

    async def burst(call: Call) -> None:
        await call.send(raw)
        call.close()

    with Origin(burst) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert read_until(sock, b"\r\n0\r\n\r\n") == raw
    assert [chunk.data for chunk in recording.exchange().chunks] == [b"chunk %d" % n for n in range(count)]


class Plain:
    def __init__(self) -> None:
        self.calls: list[object] = []

    def request(self, flow: object) -> None:
        self.calls.append(flow)


class Failing:
    def request(self, flow: object) -> None:
        raise ValueError(flow)


class Awaited:
    async def request(self, flow: object) -> None:
        raise AssertionError("called without being awaited")


def test_a_failing_hook_does_not_keep_the_next_from_being_called() -> None:
    failures, plain = Failures(), Plain()
    assert _run(failures, Failing(), plain)
    assert len(plain.calls) == 1 and isinstance(failures.first, ValueError)


def test_a_hook_that_has_to_be_awaited_goes_the_long_way() -> None:
    failures, plain = Failures(), Plain()
    assert not _run(failures, plain, Awaited())
    assert plain.calls == [] and failures.count == 0


def test_this_mitmproxy_has_what_the_short_way_needs() -> None:
    slim_imports()
    from mitmproxy.addons.proxyserver import Proxyserver
    from mitmproxy.test import taddons

    with taddons.context(Proxyserver()) as context:
        assert leads_there(context.options)
        assert not leads_there(Options()), "an option that the engine asks for is missing"
        assert not leads_there(SimpleNamespace()), "all are missing"  # type: ignore[arg-type]  # as another version's


@pytest.mark.parametrize("fits", [True, False])
def test_where_the_probe_fails_everything_goes_the_long_way(fits: bool) -> None:
    slim_imports()
    from mitmproxy.test import taddons, tflow

    asked: list[object] = []

    def probe(options: object) -> bool:
        asked.append(options)
        return fits

    failures = Failures()
    hooks = InlineHooks(failures, probe)
    with taddons.context(hooks):
        hooks.running()
        assert (layers.http.HttpStream is HttpStream) is not fits
        hooks.client_connected(tflow.tclient_conn())
        # The short way looks for a connection that is not there, the long one for nothing.
        assert (failures.count == 0) is not fits
    InlineHooks(failures)
    assert layers.http.HttpStream is HttpStream and len(asked) == 1


def _run(failures: Failures, *addons: object) -> bool:
    slim_imports()
    from mitmproxy.proxy.layers.http._hooks import HttpRequestHook
    from mitmproxy.test import taddons, tflow

    async def main() -> bool:
        hooks = InlineHooks(failures)
        with taddons.context(hooks, *addons):
            return hooks.run(HttpRequestHook(tflow.tflow()))

    return anyio.run(main)
