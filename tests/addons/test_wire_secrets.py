"""Planted secrets in HTTP/2, gRPC and WebSockets, and in what leads there: none is on the tape, which replays."""

import base64
import contextlib
import gzip
import random
import re
import socket
import ssl
import string
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import wsproto.events as ws
from authority import Authority
from h2client import Client2
from layers import layers
from origin import Origin
from origin2 import Call as Call2
from origin2 import Origin2
from recording import KEY, Recording, read_until
from served import serve
from wstalks import ServerEnd, WsClient, accepting

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.reading import VERSION
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import NONE, RedactionRules

HEAD = Head(started_at="2026-01-01T00:00:00Z", rules={"matching": VERSION})
LETTERS = string.ascii_letters + string.digits
GRPC, SOCKETS = "grpc.example.com", "ws.example.com"


class Plan(dict[str, str]):
    """A secret for each place, made when it is first asked for; others for every seed.

    `look`: it can be known by its look. `named`: only by the name under which it stands.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.known = self.named("known")

    def look(self, place: str) -> str:
        return self.setdefault(place, "sk-" + "proj-" + self._letters(36))

    def named(self, place: str) -> str:
        return self.setdefault(place, self._letters(24))

    def basic(self, place: str) -> str:
        """Credentials in base64, in which the password must not be found, either."""
        return base64.b64encode(f"user:{self.named(place)}".encode()).decode()

    def _letters(self, count: int) -> str:
        return "".join(self._chance.choices(LETTERS, k=count - 2)) + "7a"


def message(data: bytes, flag: int = 0) -> bytes:
    return bytes([flag]) + len(data).to_bytes(4) + data


def packed(text: str) -> bytes:
    """A field of a message, as protobuf has it."""
    return b"\x0a" + bytes([len(text)]) + text.encode() + b"\xff"


class Servers:
    """Servers that tell secrets of a plan, and the client that does so, too."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    async def answer(self, call: Call2) -> None:
        plan = self.plan
        if call.path.startswith("/json"):
            await call.body()
            await call.head(103, ("link", f"</a?api_key={plan.named('early query')}>"))
            await call.head(200, ("set-cookie", f"sid={plan.named('set-cookie')}; Path=/"))
            await call.data(f'{{"access_token": "{plan.named("answer field")}"}}'.encode(), end=True)
            return
        await call.body()
        coded = ("grpc-encoding", "gzip")
        await call.head(200, ("content-type", "application/grpc"), coded, ("x-api-key", plan.named("initial metadata")))
        await call.data(message(packed(plan.look("grpc answer"))))
        halves = message(packed(plan.look("grpc answer in halves")))
        await call.data(halves[:30])
        await call.data(halves[30:])
        await call.data(message(gzip.compress(packed(plan.look("grpc answer compressed"))), 1))
        details = base64.b64encode(b"\x08\x10" + packed(plan.look("status details"))).decode().rstrip("=")
        await call.trailers(
            *(("grpc-status", "16"), ("grpc-message", f"bad%20key%20{plan.look('grpc-message')}")),
            *(("grpc-status-details-bin", details), ("x-token", plan.named("trailer"))),
        )

    async def talk(self, end: ServerEnd) -> None:
        plan = self.plan
        await end.say(ws.TextMessage(f'{{"key": "{plan.look("server text")}"}}'))
        await end.say(ws.BytesMessage(b"\x00\xfe" + packed(plan.look("server binary"))))
        inner = base64.b64encode(f"xx{plan.known}yy".encode()).decode()
        await end.say(ws.TextMessage(f'{{"audio": "{inner}"}}'), ws.Ping(plan.look("ping").encode()))
        while not isinstance(await end.hear(), ws.CloseConnection):
            pass
        await end.say(ws.CloseConnection(4000, f"no {plan.look('server close')}"))
        end.call.close()


def speak(plan: Plan, connect: Callable[[str, str], socket.socket]) -> tuple[int, list[str]]:
    """What the clients do. Returns what does not depend on secrets."""
    with connect(GRPC, "h2") as sock:
        client = Client2(sock)
        credentials = (
            *(("authorization", f"Bearer {plan.named('bearer')}"), ("x-goog-api-key", plan.named("goog"))),
            *(("cookie", f"a={plan.named('crumb 1')}"), ("cookie", f"b={plan.named('crumb 2')}")),
        )
        body = f'{{"password": "{plan.named("request field")}"}}'.encode()
        kind = ("content-type", "application/json")
        json = client.hear(client.ask("POST", f"/json?api_key={plan.named('query')}", body, kind, *credentials))
        meta = (
            *(
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                ("grpc-encoding", "gzip"),
                ("x-odd", plan.known),
            ),
            ("token-bin", base64.b64encode(plan.named("token-bin").encode()).decode()),
            ("meta-bin", base64.b64encode(packed(plan.look("meta-bin"))).decode()),
        )
        number = client.begin("POST", "/grpc.S/M", *meta, *credentials)
        client.say(number, message(packed(plan.look("grpc request"))))
        client.say(number, message(gzip.compress(packed(plan.look("grpc request compressed")), mtime=0), 1), end=True)
        call = client.hear(number)
    headers = {
        "Authorization": f"Bearer {plan.named('ws bearer')}",
        "Cookie": f"sid={plan.named('ws cookie')}",
        "Proxy-Authorization": f"Basic {plan.basic('ws proxy')}",
    }
    offered = ("realtime", f"openai-insecure-api-key.{plan.look('subprotocol')}")
    with connect(SOCKETS, "http/1.1") as sock:
        target = f"/v1?api_key={plan.named('ws query')}"
        talk = WsClient(sock, SOCKETS, target, headers=headers, subprotocols=offered, deflate=True).accepted()
        for text in (
            f'{{"session": {{"api_key": "{plan.named("client field")}"}}}}',
            f'{{"tools": [{{"type": "mcp", "headers": {{"X-Api-Key": "{plan.named("client mcp header")}"}}}}]}}',
        ):
            talk.send(text)
        halves = plan.look("client halves")
        talk.say(ws.TextMessage(halves[:15], message_finished=False), ws.TextMessage(halves[15:]))
        talk.say(ws.BytesMessage(b"\x00\xff" + packed(plan.look("client binary"))))
        talk.say(ws.BytesMessage(b"\x00\xff" + plan.known.encode()))
        heard = [type(talk.next()).__name__ for _ in range(4)]
        talk.say(ws.Pong(plan.look("ping").encode()))
        closing = talk.close(1000, f"of {plan.look('client close')}")
        heard.append(f"{type(closing).__name__} {getattr(closing, 'code', None)}")
    return json.status, [dict(call.trailers)["grpc-status"], *heard]


def tunnels(port: int, trust: ssl.SSLContext, plan: Plan) -> Callable[[str, str], socket.socket]:
    """Connections through CONNECT, whose head has secrets of its own."""

    def connect(host: str, protocol: str) -> socket.socket:
        trust.set_alpn_protocols([protocol])
        sock = socket.create_connection(("127.0.0.1", port), 10)
        own = (
            f"Proxy-Authorization: Basic {plan.basic('connect')}",
            f"X-Api-Key: {plan.named('connect key')}",
            f"User-Agent: agent/{plan.look('connect agent')}",
        )
        sock.sendall("\r\n".join((f"CONNECT {host}:443 HTTP/1.1", f"Host: {host}:443", *own, "", "")).encode())
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        return trust.wrap_socket(sock, server_hostname=host)

    return connect


def refused(plan: Plan, recording: Recording, origin: Origin) -> None:
    """What is refused, and what is no HTTP: of these the tape has notes."""
    for text in (
        f"GET http://me:{plan.named('user information')}@x.test:99999/?api_key={plan.named('bad query')} HTTP/1.1"
        "\r\n\r\n",
        f"CONNECT nonsense HTTP/1.1\r\nProxy-Authorization: Basic {plan.basic('bad connect')}\r\nx y\r\n\r\n",
    ):
        with recording.connect() as sock:
            sock.sendall(text.encode())
            with contextlib.suppress(ConnectionError):
                assert b" 400 " in sock.recv(100)
    with recording.connect() as sock:
        head = f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\nProxy-Authorization: Basic {plan.basic('tunnel')}\r\n\r\n"
        sock.sendall(head.encode())
        read_until(sock, b"\r\n\r\n")
        sock.sendall(b"\0\1" + plan.look("tunnel bytes").encode())


def views(path: Path, tape: Tape) -> Iterator[bytes]:
    """The tape, and all of its bodies and messages, put together and each alone, with every encoding undone."""
    texts = [path.read_bytes()]
    for one in tape.exchanges:
        texts += [one.request_body, one.response_body, *(chunk.data for chunk in (*one.chunks, *one.uploads))]
        texts += [b"".join(frame.data for frame in one.frames if frame.to == to) for to in ("client", "server")]
    for text in texts:
        for view in layers(text):
            yield view
            for match in re.finditer(rb"\x1f\x8b\x08", view):
                with contextlib.suppress(zlib.error):
                    yield zlib.decompressobj(31).decompress(view[match.start() :])


def found(plan: Plan, path: Path, tape: Tape) -> set[str]:
    texts = set(views(path, tape))
    return {place for place, secret in plan.items() if any(secret.encode() in text for text in texts)}


@contextlib.contextmanager
def recording_of(plan: Plan, folder: Path, authority: Authority, redactor: Redactor) -> Iterator[Recording]:
    servers = Servers(plan)
    with (
        Origin2(servers.answer, authority.serving("127.0.0.1")) as grpc,
        Origin(accepting(servers.talk, "realtime", deflate=True), tls=authority.serving("127.0.0.1")) as sockets,
    ):
        hosts = {GRPC: grpc.url, SOCKETS: sockets.url}
        options = {"upstream_ca": authority.cert, "hosts": hosts, "redactor": redactor, "head": HEAD}
        with Recording(folder, authority, **options) as recording:
            yield recording
            refused(plan, recording, sockets)
    assert recording.wire.failures.count == 0


def test_no_planted_secret_is_on_the_tape_and_others_replay_it(tmp_path: Path, authority: Authority) -> None:
    plan, other = Plan(1), Plan(2)
    with recording_of(plan, tmp_path, authority, Redactor(KEY, [plan.known])) as recording:
        heard = speak(plan, tunnels(recording.port, authority.trusting(), plan))
    assert heard == (200, ["16", "TextMessage", "BytesMessage", "TextMessage", "Ping", "CloseConnection 4000"])
    tape = recording.tape()
    assert len(plan) >= 37
    assert found(plan, recording.path, tape) == set()
    # Compressed bytes can't be compared without their secrets.
    other["grpc request compressed"] = plan["grpc request compressed"]
    with serve(tape, tmp_path, secrets=[other.known]) as run:
        assert speak(other, tunnels(run.port, run.trust(), other)) == heard
        assert [one.to_text() for one in run.replayer.violations] == []


def test_without_redaction_all_of_them_are_found(tmp_path: Path, authority: Authority) -> None:
    """The same search finds what is there."""
    plan = Plan(3)
    with recording_of(plan, tmp_path, authority, Redactor(KEY, (), RedactionRules(version=NONE))) as recording:
        speak(plan, tunnels(recording.port, authority.trusting(), plan))
    missing = set(plan) - found(plan, recording.path, recording.tape())
    untaped = {"connect", "connect key", "connect agent", "user information", "bad connect", "tunnel", "tunnel bytes"}
    assert missing == untaped
