"""Hosts of --no-tape pass by: the client sees the server's own certificate, and the tape has a note and no exchange."""

from collections.abc import Callable

import httpx
import pytest
import wsproto.events as ws
from authority import Authority
from corporate import corporate
from origin import PATIENCE, Call, Origin
from recording import Recording
from wstalks import WsClient, accepting, echo

from tapeproxy.tapes.passing import parse_passing

type Make = Callable[..., Recording]


async def hello(call: Call) -> None:
    tagged = call.request.header("x-tapeproxy-lane") is not None
    await call.reply(b"tagged" if tagged else b"hello")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Not the recorder's: who trusts it alone refuses the recorder's certificates, as a client that pins one does."""
    return Authority(tmp_path_factory.mktemp("others"), "another CA")


def client(recording: Recording, trusted: Authority) -> httpx.Client:
    return httpx.Client(proxy=recording.url, verify=trusted.trusting(), trust_env=False, timeout=PATIENCE)


def test_a_tunnel_is_not_opened(record: Make, others: Authority) -> None:
    with (
        Origin(hello, tls=others.serving("127.0.0.1")) as origin,
        record(no_tape=(f"127.0.0.1:{origin.port}",)) as recording,
        client(recording, others) as pinned,
    ):
        assert pinned.get(origin.url).text == "hello"
    tape = recording.tape()
    assert tape.exchanges == []
    (note,) = tape.notes
    assert (note.what, note.data) == ("no-tape", {"host": "127.0.0.1", "port": origin.port})
    assert recording.wire.untaped == {("no-tape", "127.0.0.1"): 1}
    assert recording.wire.failures.count == 0


def test_a_request_in_the_clear_is_not_taped_and_goes_without_its_lane(record: Make) -> None:
    with (
        Origin(hello) as secret,
        Origin(hello) as taped,
        record(no_tape=(f"127.0.0.1:{secret.port}",)) as recording,
        recording.client() as both,
    ):
        lane = {"x-tapeproxy-lane": "m#0@0"}
        assert both.post(secret.url, content=b"password", headers=lane).text == "hello"
        assert both.get(taped.url, headers=lane).text == "hello"
    assert recording.exchange().request.url.decode() == f"{taped.url}/"
    assert [note.what for note in recording.tape().notes] == ["no-tape"]
    assert b"password" not in recording.path.read_bytes()
    assert recording.wire.failures.count == 0


def test_its_server_is_not_offered_what_the_wire_does_not_speak(record: Make) -> None:
    async def answer(call: Call) -> None:
        await call.reply(str(call.request.header("upgrade")).encode())

    offer = {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAEAAEAAAAIAAAAA"}
    with (
        Origin(answer) as secret,
        record(no_tape=(f"127.0.0.1:{secret.port}",)) as recording,
        recording.client() as client,
    ):
        assert client.post(secret.url, content=b"1", headers=offer).text == "None"
        assert client.post(secret.url, content=b"1", headers=offer | {"Upgrade": "other"}).text == "other"
    assert recording.wire.failures.count == 0


def test_a_tunnel_goes_through_the_upstream_proxy_with_its_credentials(record: Make, others: Authority) -> None:
    with (
        Origin(hello, tls=others.serving("bank.example.com")) as origin,
        corporate(origin.port) as proxy,
        record(no_tape=("*.example.com",), upstream=proxy.url) as recording,
        client(recording, others) as pinned,
    ):
        assert pinned.get("https://bank.example.com/").text == "hello"
    (head,) = proxy.heads
    assert head.startswith("CONNECT bank.example.com:443 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic" in head
    assert recording.tape().exchanges == []


def test_a_tunnel_bypasses_the_upstream_proxy_where_no_proxy_says_so(record: Make, others: Authority) -> None:
    with (
        Origin(hello, tls=others.serving("127.0.0.1")) as origin,
        corporate(0) as proxy,
        record(no_tape=("127.0.0.1",), upstream=proxy.url) as recording,
        client(recording, others) as pinned,
    ):
        assert pinned.get(origin.url).text == "hello"
    assert proxy.heads == []


def test_the_file_has_nothing_of_a_tunnel(record: Make, others: Authority) -> None:
    with (
        Origin(hello, tls=others.serving("127.0.0.1")) as origin,
        record(no_tape=("127.0.0.1",)) as recording,
        client(recording, others) as pinned,
    ):
        pinned.post(f"{origin.url}/private", content=b"private")
    assert "private" not in "".join(str(record) for record in recording.records())


@pytest.mark.parametrize(("rule", "host"), [("LocalHost", "localhost"), ("localhost.", "LOCALHOST")])
def test_a_host_is_the_same_however_it_is_written(record: Make, others: Authority, rule: str, host: str) -> None:
    with (
        Origin(hello, tls=others.serving("localhost")) as origin,
        record(no_tape=parse_passing([f"{rule}:{origin.port}"])) as recording,
        client(recording, others) as pinned,
    ):
        assert pinned.get(f"https://{host}:{origin.port}/").text == "hello"
    assert recording.tape().exchanges == []
    assert [note.what for note in recording.tape().notes] == ["no-tape"]


def test_a_websocket_in_the_clear_passes_whole(record: Make) -> None:
    origin = Origin(accepting(echo))
    with origin, record(no_tape=(f"127.0.0.1:{origin.port}",)) as recording:
        with recording.tunnel("127.0.0.1", origin.port) as sock:
            talk = WsClient(sock, f"127.0.0.1:{origin.port}", "/private").accepted()
            talk.send("private")
            assert talk.texts(2) == ["private", "etavirp"]
            assert isinstance(talk.close(), ws.CloseConnection)
        recording.finish()
        recording.join()
    assert recording.tape().exchanges == []
    assert [note.what for note in recording.tape().notes] == ["no-tape"]
    assert "private" not in "".join(str(record) for record in recording.records())
    assert recording.wire.failures.count == 0
