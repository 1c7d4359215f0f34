"""Replays within this interpreter: real clients, old and new, and nothing left of it afterwards."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpcore
import httpx
import inprocesstapes
import openai
import pytest
import requests
import urllib3.connection
from inprocesstapes import ASKED, EVENTS, URLS
from origin import Call, Origin

import tapeproxy
from tapeproxy.proxy.inprocess.replays import Replay, TapeViolationError
from tapeproxy.tapes.errors import NoTapeError, UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return inprocesstapes.api_tape(tmp_path)


def by_urllib(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as response:
        return bytes(response.read())


def by_urllib3(url: str) -> bytes:
    with urllib3.PoolManager() as pool:
        return pool.request("GET", url).data


GETTERS: dict[str, Callable[[str], bytes]] = {
    "httpx": lambda url: httpx.get(url).content,
    "httpx-http2": lambda url: httpx.Client(http2=True).get(url).content,
    "requests": lambda url: requests.get(url, timeout=10).content,
    "urllib": by_urllib,
    "urllib3": by_urllib3,
}


@pytest.mark.parametrize("get", GETTERS.values(), ids=GETTERS.keys())
def test_a_client_hears_the_tape(tape: Path, get: Callable[[str], bytes]) -> None:
    with tapeproxy.replay(tape) as run:
        assert [json.loads(get(url)) for url in URLS] == [{"n": 0}, {"n": 1}, {"n": 2}]
        assert [one.number for one in run.exchanges] == [1, 2, 3]
        assert [one.number for one in run.unused] == [4, 5]
    assert run.violations == []
    assert len(run.trace_hash) == 64


def test_an_sdk_that_was_made_before_hears_the_tape(tape: Path) -> None:
    client = openai.OpenAI(base_url="https://llm.test/v1", api_key="sk-made-before", max_retries=0)
    for _ in range(2):
        with tapeproxy.replay(tape):
            answer = client.chat.completions.create(**ASKED)  # type: ignore[call-overload]  # a table's words
            assert answer.choices[0].message.content == "hello from the tape"


def test_a_stream_comes_in_its_chunks(tape: Path) -> None:
    with tapeproxy.replay(tape), httpx.stream("GET", "https://api.test/events") as response:
        assert b"".join(response.iter_raw()) == b"".join(EVENTS)


def test_a_violation_is_raised_although_the_code_swallowed_it(tape: Path) -> None:
    with pytest.raises(TapeViolationError, match=r"https://api\.test/three") as caught, tapeproxy.replay(tape):
        response = httpx.get("https://api.test/three")
        assert response.status_code == 470
    (found,) = caught.value.violations
    assert found.kind == "miss"
    assert "tape: " in str(caught.value), "the difference is explained"


def test_what_the_code_made_of_a_violation_is_its_cause(tape: Path) -> None:
    with pytest.raises(TapeViolationError) as caught, tapeproxy.replay(tape):
        raise ValueError(httpx.get("https://api.test/three").text)
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_ends_the_process_is_not_hidden(tape: Path) -> None:
    with pytest.raises(KeyboardInterrupt), tapeproxy.replay(tape):
        httpx.get("https://api.test/three")
        raise KeyboardInterrupt


def test_an_error_of_the_code_itself_stays(tape: Path) -> None:
    with pytest.raises(ZeroDivisionError), tapeproxy.replay(tape):
        httpx.get(URLS[0])
        _ = 1 / 0


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.create_connection(("elsewhere.test", 80), 1),
        lambda: socket.create_connection(("198.51.100.1", 80), 1),
        lambda: socket.getaddrinfo("elsewhere.test", 80),
        lambda: socket.gethostbyname("elsewhere.test"),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"?", ("198.51.100.1", 53)),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_passes_the_clients_by_is_refused(tape: Path, reach: Callable[[], object]) -> None:
    with pytest.raises(TapeViolationError, match=Path(__file__).name) as caught, tapeproxy.replay(tape):
        with pytest.raises(OSError, match="was refused"):
            reach()
        with pytest.raises(OSError, match="was refused"):
            reach()
    assert {found.kind for found in caught.value.violations} == {"egress"}


def test_the_network_may_be_left_open(tape: Path) -> None:
    with tapeproxy.replay(tape, block_network=False) as run:
        assert run.reaches_out("connect", "198.51.100.1", 80) == ""


def test_every_replaced_attribute_is_the_very_object_afterwards(tape: Path) -> None:
    owners = (
        (http.client.HTTPConnection, "connect"),
        (http.client.HTTPConnection, "send"),
        (http.client.HTTPSConnection, "connect"),
        (urllib3.connection.HTTPConnection, "connect"),
        (urllib3.connection.HTTPSConnection, "connect"),
        (httpcore.SyncBackend, "connect_tcp"),
        (httpcore.AnyIOBackend, "connect_tcp"),
        (httpcore.HTTPConnection, "can_handle_request"),
        (httpcore.AsyncHTTPConnection, "can_handle_request"),
    )
    before = [vars(owner)[name] for owner, name in owners]
    finders, environment = list(sys.meta_path), dict(os.environ)
    with tapeproxy.replay(tape):
        assert all(vars(owner)[name] is not was for (owner, name), was in zip(owners, before, strict=True))
        with tapeproxy.replay(tape):
            pass
        assert vars(http.client.HTTPConnection)["connect"] is not before[0]
    assert all(vars(owner)[name] is was for (owner, name), was in zip(owners, before, strict=True))
    assert sys.meta_path == finders
    assert dict(os.environ) == environment


def test_an_absent_key_has_a_placeholder_meanwhile(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_API_KEY", raising=False)
    with tapeproxy.replay(tape):
        assert os.environ["TEST_API_KEY"]
    assert "TEST_API_KEY" not in os.environ
    monkeypatch.setenv("TEST_API_KEY", "the user's own")
    with tapeproxy.replay(tape):
        assert os.environ["TEST_API_KEY"] == "the user's own"


class TestPools:
    """Connections that were pooled, on this side or the other, are not used on the other."""

    async def live(self, call: Call) -> None:
        await call.head("200 OK", "Content-Length: 4")
        await call.send(b"live")

    @pytest.mark.parametrize("kind", [httpx.Client, requests.Session])
    def test_neither_side_leaks(self, tmp_path: Path, kind: type) -> None:
        with Origin(self.live) as origin, kind() as client:
            url = origin.url + "/"
            tape = inprocesstapes.write_tape(tmp_path / "t.tape.jsonl.gz", *[(url, {"chunks": [b"taped"]})] * 2)
            other = inprocesstapes.write_tape(tmp_path / "o.tape.jsonl.gz", (url, {"chunks": [b"other"]}))
            heard = [client.get(url).content]
            with tapeproxy.replay(tape):
                heard.append(client.get(url).content)
                with tapeproxy.replay(other):
                    heard.append(client.get(url).content)
                heard.append(client.get(url).content)
            heard.append(client.get(url).content)
            with tapeproxy.replay(tape):
                heard.append(client.get(url).content)
        assert heard == [b"live", b"taped", b"other", b"taped", b"live", b"taped"]

    def test_a_server_of_the_test_itself_stays_live(self, tape: Path) -> None:
        with Origin(self.live) as origin, tapeproxy.replay(tape) as run, httpx.Client() as client:
            assert client.get(origin.url).content == b"live"
            assert client.get(URLS[0]).json() == {"n": 0}
        assert run.violations == []


def test_threads_share_the_tape(tmp_path: Path) -> None:
    paths = [f"/{n}" for n in range(40)]
    tape = inprocesstapes.gets(tmp_path, *paths)
    client, heard = httpx.Client(), dict[str, str]()

    def ask(path: str) -> None:
        heard[path] = client.get(f"https://api.test{path}").text

    with tapeproxy.replay(tape) as run:
        threads = [threading.Thread(target=ask, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert heard == {path: path for path in paths}
    assert len(run.exchanges) == 40


@pytest.mark.parametrize("get", [GETTERS["httpx"], GETTERS["requests"], GETTERS["urllib"]])
def test_a_proxy_in_the_environment_is_not_asked(
    tape: Path, monkeypatch: pytest.MonkeyPatch, get: Callable[[str], bytes]
) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr("urllib.request._opener", None)  # it keeps the proxies of its first use
    with tapeproxy.replay(tape):
        assert [json.loads(get(url)) for url in URLS] == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_library_may_be_imported_meanwhile(tape: Path) -> None:
    code = f"""
import sys, tapeproxy
assert not [name for name in sys.modules if name.startswith("tapeproxy.")]
with tapeproxy.replay({str(tape)!r}):
    import httpx, requests
    assert httpx.get({URLS[0]!r}).json() == {{"n": 0}}
    assert requests.get({URLS[1]!r}).json() == {{"n": 1}}
assert "mitmproxy" not in sys.modules
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_tape_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoTapeError), Replay(tmp_path / "none.tape.jsonl.gz"):
        pass
    assert not hasattr(http.client.HTTPConnection.connect, "__wrapped__")


def test_answers_may_take_their_time(tape: Path) -> None:
    with tapeproxy.replay(tape, speed=50.0), httpx.stream("GET", "https://api.test/events") as response:
        assert b"".join(response.iter_raw()) == b"".join(EVENTS)


@pytest.mark.parametrize("speed", [None, 1000.0])
def test_a_connection_that_was_reset_is_reset(tmp_path: Path, speed: float | None) -> None:
    part = {"headers": ((b"content-length", b"9"),), "chunks": [b"part"], "how": "reset"}
    tape = inprocesstapes.write_tape(tmp_path / "t.tape.jsonl.gz", ("https://api.test/", part))
    with (
        tapeproxy.replay(tape, speed=speed),
        httpx.stream("GET", "https://api.test/") as response,
        pytest.raises(httpx.ReadError, match="reset by peer"),
    ):
        response.read()


def test_requests_that_come_in_pieces(tape: Path) -> None:
    with tapeproxy.replay(tape) as run:
        connection = http.client.HTTPSConnection("api.test", timeout=10)
        connection.connect()
        for byte in b"GET /one HTTP/1.1\r\nHost: api.test\r\n\r\n":
            connection.sock.sendall(bytes([byte]))
        response = http.client.HTTPResponse(connection.sock, method="GET")
        response.begin()
        assert response.read() == b'{"n":0}'
        connection.close()
    assert len(run.exchanges) == 1


def test_a_connection_of_a_replay_that_is_over_is_dead(tape: Path) -> None:
    connection = http.client.HTTPSConnection("api.test", timeout=10)
    with tapeproxy.replay(tape):
        connection.request("GET", "/one")
        assert connection.getresponse().read() == b'{"n":0}'
        late = http.client.HTTPSConnection("api.test", timeout=10)
        late.connect()
    assert connection.sock.recv(1) == b""
    with pytest.raises(BrokenPipeError, match="is over"):
        late.sock.sendall(b"GET /one HTTP/1.1\r\nHost: api.test\r\n\r\n")
    connection.close()
    late.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"match": "lanes"}, "match is lane or any, not 'lanes'"),
        ({"on_drift": "ignore"}, "on_drift is fail or report, not 'ignore'"),
        ({"rules": ["ignore-heder x"]}, "rules: 'ignore-heder' is no rule"),
        ({"rules": "ignore-header x"}, "rules are a list of texts"),
    ],
)
def test_a_wrong_word_is_refused_before_anything_is_opened(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tapeproxy.replay("no.tape.jsonl.gz", **given)
