"""Planted secrets in every place, and every file that we write: none is there, and the redacted tape replays."""

import base64
import gzip
import json
import random
import ssl
import string
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from clirun import Cli, maps
from layers import layers

from tapeproxy.cli.export import FORMATS
from tapeproxy.cli.pages import exchange_page
from tapeproxy.cli.rendering import Screen
from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load

PROGRAM = Path(__file__).parent / "programs" / "forty_secrets.py"
LETTERS = string.ascii_letters + string.digits
ENV = (
    """
env in header, env in path, env in json, env nested, env in thread, base64 0, base64 1, base64 2, answer env,
reason
""".replace("\n", " ")
    .strip()
    .split(", ")
)
LOOK = (
    """
look in header, look in query, look in path, look in json, look in form, look in part, look in gzip, look in
deflate, look in br, look in zstd, look in prompt, answer events, answer deltas, answer tool, answer lines,
answer frames, answer gzip, openai, answer chat
""".replace("\n", " ")
    .strip()
    .split(", ")
)
ANY = (
    """
bearer, x-api-key, x-goog-api-key, basic, cookie, aws secret, aws session, query credential, query signature,
query, json, nested, form, json in form, part, url in text, gzip, deflate, br, zstd, argv, answer token, answer
cookie, answer moved
""".replace("\n", " ")
    .strip()
    .split(", ")
)


OWN = (
    *("--redact-header", "x-odd", "--redact-field", "pin", "--redact-field", "$.card.owner"),
    *("--redact-pattern", r"case-(\w{12})"),
)


def planted(seed: int) -> dict[str, str]:
    """A secret for every place, others for every seed."""
    chance = random.Random(seed)

    def letters(count: int) -> str:
        return "".join(chance.choices(LETTERS, k=count - 1)) + "7"

    plan = {place: letters(20 + seed % 3) for place in ANY}
    plan |= {place: "sk-" + "proj-" + letters(36) for place in LOOK}
    plan |= {place: letters(14) + "/+ é" + letters(6) if "base64" not in place else letters(24) for place in ENV}
    plan["env in header"] = plan["reason"] = letters(24)
    plan["env in thread"] = letters(24)
    plan |= {f"own {kind}": letters(12) for kind in ("header", "field", "path", "pattern")}
    plan["aws id"] = "AKIA" + "".join(chance.choices("ABCDEFGHIJ234567", k=16))
    plan["jwt"] = "eyJ" + ".".join(("eyJ" * n) + letters(30) for n in range(3))
    plan["pem"] = letters(64)
    return plan


def event(text: str) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return b"data: " + json.dumps(chunk | {"choices": [choice]}).encode() + b"\n\n"


def tool(text: str) -> bytes:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
    return b"data: " + json.dumps(delta).encode() + b"\n\n"


def frame(text: str) -> bytes:
    inner = base64.b64encode(json.dumps({"delta": {"text": text}}).encode()).decode()
    payload = json.dumps({"bytes": inner}).encode()
    prelude = struct.pack(">II", len(payload) + 16, 0)
    data = prelude + struct.pack(">I", zlib.crc32(prelude)) + payload
    return data + struct.pack(">I", zlib.crc32(data))


class Answers(BaseHTTPRequestHandler):
    """Answers with the secrets of `plan`."""

    protocol_version = "HTTP/1.1"
    plan: dict[str, str]

    def do_GET(self) -> None:
        plan, place = self.plan, self.path.rpartition("/")[2]
        sliced = [plan.get(f"answer {place}", "")[n : n + 5] for n in range(0, 50, 5)]
        match place if "/answers/" in self.path else "":
            case "token":
                self._say(json.dumps({"access_token": plan["answer token"], "n": 1}).encode())
            case "gzip":
                body = gzip.compress(json.dumps({"text": plan["answer gzip"]}).encode())
                self._say(body, "application/json", ("Content-Encoding", "gzip"))
            case "events":
                body = event("the key: " + plan["answer events"])
                self._stream([body[n : n + 3] for n in range(0, len(body), 3)], "text/event-stream")
            case "deltas":
                self._stream([event(word) for word in ("it is ", *sliced, ".")], "text/event-stream")
            case "tool":
                words = ('{"key": "', *sliced, '"}')
                self._stream([tool(word) for word in words], "text/event-stream")
            case "lines":
                lines = [json.dumps({"message": {"content": word}}).encode() + b"\n" for word in sliced]
                self._stream(lines, "application/x-ndjson")
            case "frames":
                self._stream([frame(word) for word in sliced], "application/vnd.amazon.eventstream")
            case "cookie":
                self._say(b"{}", "application/json", ("Set-Cookie", f"sid={plan['answer cookie']}; Path=/"))
            case "moved":
                self._say(b"", "text/plain", ("Location", f"https://h/cb?access_token={plan['answer moved']}"))
            case "reason":
                self.send_response(401, f"no such key {plan['reason']}")
                self.send_header("Content-Length", "0")
                self.end_headers()
            case "echo":
                self._say(json.dumps({"you": plan["answer env"]}).encode())
            case _:
                self._say(b'{"ok": true}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if "chat/completions" in self.path:
            secret = self.plan["answer chat"]
            words = [event(secret[n : n + 7]) for n in range(0, len(secret), 7)]
            self._stream([*words, b"data: [DONE]\n\n"], "text/event-stream")
        else:
            self._say(b'{"ok": true}')

    def _say(self, body: bytes, kind: str = "application/json", *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (*headers, ("Content-Type", kind), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, pieces: list[bytes], kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in [piece for piece in pieces if piece] + [b""]:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def answers(home: Path) -> Iterator[str]:
    """The server, over TLS; its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        context: ssl.SSLContext = CertificateAuthority.open(home).server_context("127.0.0.1")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def environment(plan: dict[str, str]) -> dict[str, str]:
    return {f"PART_{n}_SECRET": plan[place] for n, place in enumerate(ENV)} | {"DB_PASSWORD": "test"}


def record(cli: Cli, address: str, tape: str, plan: Path, secrets: dict[str, str], *options: str) -> str:
    """Record the program; what it printed, and what we did."""
    argv = [sys.executable, str(PROGRAM), str(plan), "-", "--api-key", secrets["argv"]]
    done = cli.run("record", "-o", tape, *options, *maps(address), "--", *argv, env=environment(secrets))
    assert (done.returncode, done.stdout) == (0, "38\n"), done.stderr
    return done.stderr


def told(plan: dict[str, str], data: bytes) -> set[str]:
    """The places whose secrets `data` tells, in any encoding. (Of a signature's key nothing is sent.)"""
    texts = list(layers(data))
    secrets = {place: secret.encode() for place, secret in plan.items() if place not in ("later", "aws secret")}
    return {place for place, secret in secrets.items() if any(secret in text for text in texts)}


def files(path: Path) -> dict[str, bytes]:
    """A tape as it is, and its bodies, each alone and put together."""
    tape, _ = load(path)
    found = {path.name: path.read_bytes()}
    for exchange in tape.exchanges:
        found[f"request of {exchange.number}"] = exchange.request_body
        found[f"answer of {exchange.number}"] = exchange.response_body
        page = exchange_page(exchange, len(tape.exchanges), Screen(200))
        found[f"show {exchange.number}"] = "\n".join(page).encode()
    return found


def test_no_file_of_ours_tells_a_planted_secret(cli: Cli, answers: str, tmp_path: Path) -> None:
    plans = [planted(seed) | {"later": str(seed * 1000)} for seed in (1, 2)]
    written = [cli.home / f"plan-{n}.json" for n in range(2)]
    for file, plan in zip(written, plans, strict=True):
        file.write_text(json.dumps(plan))
    Answers.plan = plans[0]
    terminal = record(cli, answers, "t.jsonl.gz", written[0], plans[0], *OWN)
    # Other keys, rotated cookies, a later signature.
    argv = [sys.executable, str(PROGRAM), str(written[1])]
    again = cli.run("replay", "t.jsonl.gz", "--require-all", "--", *argv, env=environment(plans[1]))
    assert (again.returncode, again.stdout) == (0, "38\n"), again.stderr
    extra = cli.home / "extra.txt"
    argv = [sys.executable, str(PROGRAM), str(written[0]), str(extra)]
    violated = cli.run("replay", "t.jsonl.gz", "--report", "report.json", "--", *argv, env=environment(plans[0]))
    assert violated.returncode == 3, violated.stderr
    for form in FORMATS:
        options = ("--content",) if form == "otlp" else ()
        done = cli.run("export", "t.jsonl.gz", "--to", form, "-o", f"exported.{form}", *options)
        assert done.returncode == 0, done.stderr
    outputs = {
        "terminal": "\n".join((terminal, again.stderr, violated.stderr)).encode(),
        "470": extra.read_bytes(),
        "ls": cli.run("ls", ".").stdout.encode(),
        "show --json": cli.run("show", "t.jsonl.gz", "--json").stdout.encode(),
        **{str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()},
        **files(tmp_path / "t.jsonl.gz"),
    }
    exports = {f"exported.{form}" for form in FORMATS}
    assert {Path(name).name for name in outputs} >= {"t.jsonl.gz", "report.json", *exports}
    for name, data in outputs.items():
        assert not told(plans[0], data) | told(plans[1], data), name


def test_without_redaction_all_of_them_are_told(cli: Cli, answers: str, tmp_path: Path) -> None:
    """The same search finds what is there; and what a tape without redaction says of itself."""
    plan = planted(3) | {"later": "0"}
    written = cli.home / "plan.json"
    written.write_text(json.dumps(plan))
    Answers.plan = plan
    assert "nothing is redacted" in record(cli, answers, "t.jsonl.gz", written, plan, "--no-redact")
    found = set[str]().union(*(told(plan, data) for data in files(tmp_path / "t.jsonl.gz").values()))
    assert set(plan) - found == {"later", "aws secret"}
    assert len(found) >= 50
    assert load(tmp_path / "t.jsonl.gz")[0].head.rules["redaction"] == 0
    argv = [sys.executable, str(PROGRAM), str(written)]
    again = cli.run("replay", "t.jsonl.gz", "--require-all", "--", *argv, env=environment(plan))
    assert again.returncode == 0, again.stderr
