import base64
import gzip
import json
from pathlib import Path
from typing import Any

import agentruns
import pytest
import wstapes
from click.testing import CliRunner, Result

from tapeproxy.cli.show import command
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.errors import NoTapeError, TapeFormatError, UsageError
from tapeproxy.tapes.records import Chunks, End, Head, Lane, Note, Record, Request, Response
from tapeproxy.tapes.tokens import make_token

NAME = "20260102T030405Z-agent.tape.jsonl.gz"


@pytest.fixture(autouse=True)
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample run, as the last tape of the working folder."""
    monkeypatch.chdir(tmp_path)
    return agentruns.write_tape(Path(".tapes") / NAME, agentruns.sample())


def show(*args: str) -> str:
    result = run(*args)
    if result.exception is not None:
        raise result.exception
    return result.output


def run(*args: str) -> Result:
    return CliRunner().invoke(command, args, standalone_mode=False)


def document(*args: str) -> Any:
    return json.loads(show(*args, "--json"))


def write(*exchanges: list[Record], head: Head = agentruns.HEAD, sealed: bool = True) -> str:
    records = [record for exchange in exchanges for record in exchange]
    return str(agentruns.write_tape(Path("other.tape.jsonl.gz"), records, head, sealed=sealed))


@pytest.mark.parametrize("args", [(), (NAME,), (f".tapes/{NAME}",)])
def test_a_tape_as_a_table(args: tuple[str, ...]) -> None:
    lines = show(*args).splitlines()
    assert lines[0] == "python agent.py 'a b'"
    assert lines[1].endswith("1.50 s, exit 3, sealed")
    assert lines[2] == f".tapes/{NAME}"
    assert [" ".join(line.split()) for line in lines[4:9]] == [
        "# method host path status model in out chunks first total",
        "1 POST api.openai.com /v1/chat/completions 200 gpt-4o-2024 40 5 5 10 ms 51 ms",
        "2 GET weather.test:8080 /now 200 2 10 ms 21 ms",
        "3 GET weather.test:8080 /missing 404 1 10 ms 11 ms",
        "4 GET down.test / connect-error 6.0 ms",
    ]
    assert lines[10] == "4 exchanges, 1 LLM call, 40 tokens in, 5 out, 2 failed, 739 B received"
    assert lines[11:] == ["note: a tunnel passed untaped"]


def test_lanes_have_a_column_where_there_are_any() -> None:
    lines = show(write(agentruns.sample("main/t1"))).splitlines()
    assert lines[4].split()[:3] == ["#", "lane", "method"]
    assert lines[5].split()[:3] == ["1", "main/t1", "POST"]


def test_a_lane_is_called_what_the_agent_calls_it() -> None:
    called = Lane(t=0, id="main/t1", what="thread", name="worker")
    lines = show(write([*agentruns.sample("main/t1"), called])).splitlines()
    assert lines[5].split()[:3] == ["1", "worker", "POST"]


def test_an_interrupted_tape_says_so_and_shows_what_there_is() -> None:
    cut = agentruns.exchange(1, "http://x.test/", how=None)
    lines = show(write(cut, sealed=False)).splitlines()
    assert lines[1].endswith(", interrupted")
    assert "200 unfinished" in lines[5]
    assert lines[-1] == "the tape has no seal: it stops where its recorder stopped, or was cut"


def test_a_tape_that_is_being_recorded_says_so() -> None:
    writer = TapeWriter(Path("live.tape.jsonl.gz"), agentruns.HEAD)
    lines = show("live.tape.jsonl.gz").splitlines()
    assert lines[1].endswith(", recording")
    assert lines[-1] == "the tape is still being recorded"
    writer.discard()


def test_calls_that_do_not_say_their_tokens_are_counted() -> None:
    url, asked = "https://api.openai.com/v1/chat/completions", {"model": "m", "messages": []}
    silent = agentruns.exchange(1, url, method="POST", asked=asked, chunks=[b'{"choices": []}'])
    assert "1 exchange, 1 LLM call, which did not say its tokens, " in show(write(silent))
    both = write(silent, agentruns.chat(len(silent) + 1))
    assert "2 exchanges, 2 LLM calls, 40 tokens in, 5 out (1 call did not say), " in show(both)
    assert document(both)["totals"]["uncounted"] == 1


def test_the_processes_of_the_run_are_no_news() -> None:
    notes: list[Record] = [Note(t=1, what="process", text="python agent.py"), Note(t=2, what="bypass", text="by UDP")]
    lines = show(write(notes)).splitlines()
    assert [line for line in lines if line.startswith("note:")] == ["note: by UDP"]
    assert [note["what"] for note in document(write(notes))["notes"]] == ["process", "bypass"]


def test_a_tape_without_exchanges() -> None:
    assert "0 exchanges, 0 B received" in show(write(head=Head()))
    assert "(no command)" in show(write(head=Head()))


def test_a_tape_compressed_anew_says_so(tape: Path) -> None:
    tape.write_bytes(gzip.compress(gzip.decompress(tape.read_bytes())))
    assert "sealed, but its bytes are not the ones written (see verify)" in show()


CHAT_PAGE = """\
POST https://api.openai.com/v1/chat/completions  HTTP/1.1
exchange 1 of 4, 100 ms after the start
  Content-Type: application/json
  X-Test: 1

conversation (openai-chat, gpt-4o-2024)
  system
    Be brief.
  user
    Weather?
    In Paris.
  assistant
    -> weather({"city":"Paris"})  [call_1]
  tool
    <- 18 degrees  [call_1]

parameters
  model: gpt-4o
  stream: true

200 OK  HTTP/1.1, framing: chunked
  Content-Type: text/event-stream

answer (stop: stop, 40 tokens in, 5 tokens out, put together from its stream)
  assistant
    18 degrees.

chunks received (5, 308 B, first after 10 ms, longest gap 10 ms)
     +10 ms     97 B  data: {"model": "gpt-4o-2024", "choices": [{"delta": {"role": "assistant", "c…
     +20 ms     57 B  data: {"choices": [{"delta": {"content": "degrees."}}]}\\n\\n
     +30 ms     61 B  data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\\n\\n
     +40 ms     79 B  data: {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 5}}…
     +50 ms     14 B  data: [DONE]\\n\\n
complete after 51 ms
"""
JSON_PAGE = """\
GET http://weather.test:8080/now?city=Paris  HTTP/1.1
exchange 2 of 4, 900 ms after the start
  X-Test: 1

200 OK  HTTP/1.1, framing: chunked
  Content-Type: application/json

response body (31 B)
  {
    "degrees": 18.00,
    "sky": "clear"
  }

chunks received (2, 31 B, first after 10 ms, longest gap 10 ms)
     +10 ms     17 B  {"degrees":18.00,
     +20 ms     14 B  "sky":"clear"}
complete after 21 ms
"""


@pytest.mark.parametrize(
    ("args", "page"), [((NAME, "1"), CHAT_PAGE), (("1",), CHAT_PAGE), (("2",), JSON_PAGE)], ids=["1", "last", "JSON"]
)
def test_an_exchange_whole(args: tuple[str, ...], page: str) -> None:
    assert show(*args) == page


def test_what_was_asked_for_beside_the_conversation() -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    asked = {"model": "m", "messages": [], "temperature": 0.5, "tools": [tool], "user": "\x1b[2J", "x": "y" * 300}
    path = write(
        agentruns.exchange(1, "https://api.openai.com/v1/chat/completions", method="POST", asked=asked),
        agentruns.exchange(4, "https://x.test/v1/messages", method="POST", asked={"model": "m", "messages": []}),
    )
    page = show(path, "1")
    assert "\nparameters\n  temperature: 0.5\n  tools: weather\n  user: \\x1b[2J\n  x: yyy" in page
    assert "y" * 199 + "…\n" in page
    assert "parameters" not in show(path, "2")


def test_redacted_values_are_marked() -> None:
    token = make_token(b"k" * 32, b"sk-secret-0123456789").decode()
    asked = {"model": "m", "messages": [{"role": "user", "content": f"use {token}, now"}], "user": token}
    url = f"https://api.openai.com/v1/chat/completions?key={token}"
    headers = ((b"Set-Cookie", b"id=" + token.encode()),)
    path = write(
        agentruns.exchange(1, url, method="POST", asked=asked, headers=headers),
        agentruns.exchange(4, "http://x.test/", chunks=[json.dumps({"token": token}).encode()]),
    )
    marked = f"[redacted {token[:11]}…]"
    page = show(path, "1")
    assert token not in page
    assert f"completions?key={marked}  HTTP/1.1\n" in page
    assert f"    use {marked}, now\n" in page
    assert f"  user: {marked}\n" in page
    assert f"  Set-Cookie: id={marked}\n" in page
    page = show(path, "2")
    assert f'    "token": "{marked}"\n' in page
    assert token in show(path, "2", "--json") and token in show(path, "2", "--raw")


def test_a_body_of_bytes_shows_its_beginning() -> None:
    page = show("3")
    assert "  0000  00 ff 00 ff 00 ff 00 ff 00 ff 00 ff 00 ff 00 ff  ................\n" in page
    assert "  … and 144 B more; --raw writes them all\n" in page


def test_an_exchange_without_a_response_ends_as_it_did() -> None:
    assert show("4").splitlines()[-1] == "connect-error after 6.0 ms: connection refused"


def test_a_long_stream_leaves_out_the_middle_of_its_times() -> None:
    path = write(agentruns.exchange(1, "http://x.test/", chunks=[b"%d" % n for n in range(50)]))
    lines = show(path, "1").splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("chunks received (50, "))
    assert lines[at + 16 : at + 19] == [
        "    +160 ms      2 B  15",
        "  … 30 more …",
        "    +470 ms      2 B  46",
    ]


def test_an_exchange_with_everything_that_is_rare() -> None:
    asked = {"model": "m", "messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}]}
    body = json.dumps(asked).encode()
    path = write(
        [
            Request(t=0, method=b"POST", url=b"http://127.0.0.1/v1/messages", body=b"", inside=True),
            Chunks(t=5, of=1, to="server", parts=((None, body[:9]), (2_000_000, body[9:]))),
            Response(t=6, of=1, status=200, informational=((103, ((b"link", b"</a>"),)),), framing="close"),
            End(t=9_000_000, of=1, how="reset", error="gone", trailers=((b"x-sum", b"1"),)),
        ],
        agentruns.exchange(5, "http://x.test/", how=None),
    )
    page = show(path, "1")
    assert "exchange 1 of 2, 0.0 ms after the start, inside: served by the run itself\n" in page
    assert "  assistant\n    (thought) hm\n" in page
    assert "103 (informational)\n  link: </a>\n200  HTTP/1.1, framing: close\n" in page
    assert f"chunks sent (2, {len(body)} B, first after 2.0 ms)\n          ?      9 B  " in page
    assert page.endswith("reset after 9.0 ms: gone\n  x-sum: 1\n")
    assert show(path, "2").endswith("unfinished: the tape stops before this exchange ended\n")


def test_an_error_of_the_provider_is_shown() -> None:
    body = b'{"error": {"message": "slow \x1b[31mdown"}}'.replace(b"\x1b", b"\\u001b")
    url = "https://api.openai.com/v1/chat/completions"
    path = write(agentruns.exchange(1, url, method="POST", asked={"messages": []}, status=429, chunks=[body]))
    assert "  error: slow \\x1b[31mdown\n" in show(path, "1")


def test_a_compressed_body_is_decoded_and_says_so() -> None:
    body = gzip.compress(b'{"a":1}')
    encoded = ((b"Content-Encoding", b"gzip"),)
    path = write(agentruns.exchange(1, "http://x.test/", headers=encoded, chunks=[body]))
    page = show(path, "1")
    assert f"response body ({len(body)} B, gzip undone)\n" in page
    assert '  {\n    "a": 1\n  }\n' in page
    assert document(path, "1")["response"]["body"] == {
        "size": len(body),
        "coding": ["gzip"],
        "whole": True,
        "note": "",
        "text": '{"a":1}',
    }


@pytest.mark.parametrize(
    ("number", "body"), [("2", b'{"degrees":18.00,"sky":"clear"}'), ("3", b"\x00\xff" * 200), ("4", b"")]
)
def test_raw_writes_the_bytes_of_the_body(number: str, body: bytes) -> None:
    result = run(NAME, number, "--raw")
    assert result.exception is None
    assert result.stdout_bytes == body


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((NAME, "0"), "there is no exchange 0 on the tape: it has 1 to 4"),
        ((NAME, "5"), "there is no exchange 5 on the tape: it has 1 to 4"),
        (("5",), "there is no exchange 5"),
        ((NAME, "x"), "'x' is not the number of an exchange"),
        ((NAME, "²"), "'²' is not the number"),
        (("3", NAME), f"put the tape first: tapeproxy show {NAME} 3"),
        ((NAME, "--raw"), "--raw writes the body of one exchange"),
    ],
)
def test_what_cannot_be_shown_is_said(args: tuple[str, ...], words: str) -> None:
    error = run(*args).exception
    assert isinstance(error, UsageError)
    assert words in str(error)


def test_an_exchange_of_a_tape_without_any() -> None:
    error = run(write(), "1").exception
    assert isinstance(error, UsageError)
    assert "it has none" in str(error)


@pytest.mark.parametrize(("name", "kind"), [("absent.jsonl.gz", NoTapeError), ("absent", NoTapeError), (".", None)])
def test_a_tape_that_is_not_there(name: str, kind: type[TapeFormatError] | None) -> None:
    error = run(name).exception
    assert type(error) is (kind or TapeFormatError)
    assert "cannot be" in str(error)


def test_a_file_whose_name_is_a_number_is_a_tape() -> None:
    agentruns.write_tape(Path("7"), [])
    assert "0 exchanges" in show("7")


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\x9b5m\r\u2066\ufeff<script>alert(1)</script>"
SHOWN = "\\x1b[2J\\x1b]0;owned\\x07\\u202egnp.exe\\x9b5m\\r\\u2066\\ufeff<script>alert(1)</script>"


def hostile_tape() -> str:
    head = Head(started_at=HOSTILE, argv=(HOSTILE, "\udcff"), cwd=HOSTILE, by=HOSTILE)
    asked = {
        "model": HOSTILE,
        "messages": [
            {"role": HOSTILE, "content": HOSTILE},
            {"role": "assistant", "tool_calls": [{"id": HOSTILE, "function": {"name": HOSTILE, "arguments": HOSTILE}}]},
            {"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE},
            {"role": "user", "content": [{"type": HOSTILE}, {"type": "image_url", "image_url": HOSTILE}]},
        ],
    }
    answer = {
        "choices": [{"message": {"role": HOSTILE, "content": HOSTILE}, "finish_reason": HOSTILE}],
        "error": {"message": HOSTILE},
    }
    raw = HOSTILE.encode()
    latin = raw.decode("latin-1")
    url = f"https://{latin}/{latin}/chat/completions?{latin}"
    headers = ((raw, raw),)
    return write(
        agentruns.exchange(
            1,
            url,
            method=latin,
            asked=asked,
            headers=headers,
            chunks=[json.dumps(answer).encode()],
            lane=HOSTILE,
            error=HOSTILE,
        ),
        agentruns.exchange(5, "http://x.test/", asked=raw, headers=headers, chunks=[raw]),
        head=head,
    )


def is_safe(output: str) -> bool:
    return not set(output) & set("\x1b\x07\x9b\r\u202e\u2066\ufeff\udcff")


@pytest.mark.parametrize("args", [(), ("1",), ("2",), ("--json",), ("1", "--json"), ("2", "--json")])
def test_nothing_on_a_tape_acts_on_the_terminal(args: tuple[str, ...]) -> None:
    output = show(hostile_tape(), *args)
    assert is_safe(output)
    assert "<script>alert(1)</script>" in output
    assert "--json" in args or SHOWN in output


def test_the_hostile_text_is_hostile() -> None:
    assert not is_safe(HOSTILE)


ROW_FIELDS = {
    *("number", "lane", "method", "scheme", "host", "path", "query", "status", "how", "dialect", "model", "mcp"),
    *("tokens_cached", "tokens_written"),
    *("tokens_in", "tokens_out", "chunks", "size", "first_byte_ns", "total_ns", "error"),
}


def test_a_tape_as_json() -> None:
    given = document()
    rows = given.pop("exchanges")
    assert given == {
        "tape": f".tapes/{NAME}",
        "format": 1,
        "by": "tapeproxy 0.1.0",
        "started_at": "2026-01-02T03:04:05.000000Z",
        "argv": ["python", "agent.py", "a b"],
        "cwd": "/home/ada",
        "sealed": True,
        "canonical": True,
        "redacted": True,
        "scrubbed": None,
        "outcome": "exited",
        "exit_code": 3,
        "signal": None,
        "duration_ns": 1_500_000_000,
        "totals": {
            "exchanges": 4,
            "calls": 1,
            "failed": 2,
            "tokens_in": 40,
            "tokens_out": 5,
            "uncounted": 0,
            "size": 739,
        },
        "notes": [{"at_ns": 7, "what": "tunnel-untaped", "text": "a tunnel passed untaped", "data": {}}],
        "lanes": [],
    }
    assert [set(row) for row in rows] == [ROW_FIELDS] * 4
    assert rows[1] == {
        "number": 2,
        "lane": None,
        "method": "GET",
        "scheme": "http",
        "host": "weather.test:8080",
        "path": "/now",
        "query": "city=Paris",
        "status": 200,
        "how": "complete",
        "dialect": None,
        "model": None,
        "mcp": None,
        "tokens_in": None,
        "tokens_out": None,
        "tokens_cached": None,
        "tokens_written": None,
        "chunks": 2,
        "size": 31,
        "first_byte_ns": 10_000_000,
        "total_ns": 21_000_000,
        "error": None,
    }
    assert document(write(sealed=False))["outcome"] is None


def test_an_exchange_as_json() -> None:
    given = document("1")
    assert set(given) == {"exchange", "request", "response", "messages", "end", "call"}
    assert set(given["exchange"]) == ROW_FIELDS
    request, response, call = given["request"], given["response"], given["call"]
    assert request["headers"] == [["Content-Type", "application/json"], ["X-Test", "1"]]
    assert json.loads(request["body"]["text"])["model"] == "gpt-4o"
    assert (request["at_ns"], response["at_ns"]) == (100_000_000, 105_000_000)
    assert (response["status"], response["reason"], response["framing"]) == (200, "OK", "chunked")
    assert response["chunks"][0] == {"at_ns": 110_000_000, "size": 97}
    assert given["end"] == {"at_ns": 151_000_000, "how": "complete", "error": None, "trailers": []}
    assert call["messages"][2:] == [
        {
            "role": "assistant",
            "parts": [{"kind": "tool-call", "name": "weather", "arguments": '{"city":"Paris"}', "id": "call_1"}],
        },
        {"role": "tool", "parts": [{"kind": "tool-result", "text": "18 degrees", "id": "call_1", "error": False}]},
    ]
    assert call["answer"] == {
        "role": "assistant",
        "parts": [{"kind": "text", "text": "18 degrees.", "refusal": False}],
    }
    assert (call["dialect"], call["model"], call["stop"]) == ("openai-chat", "gpt-4o-2024", "stop")
    assert (call["tokens_in"], call["tokens_out"], call["streamed"], call["error"]) == (40, 5, True, None)


def test_what_is_absent_is_null_and_bytes_are_base64() -> None:
    assert document("4")["response"] is None
    assert document("4")["call"] is None
    assert document("3")["response"]["body"]["b64"] == base64.b64encode(b"\x00\xff" * 200).decode()
    assert document(write(agentruns.exchange(1, "http://x.test/", how=None)), "1")["end"] is None


def test_the_help_names_every_field() -> None:
    words = set(str(command.help).replace(",", " ").replace("(", " ").replace(")", " ").replace(".", " ").split())
    tape, exchange = document(), document("1")
    names = {*tape, *tape["totals"], *tape["notes"][0], *exchange, *exchange["request"], *exchange["response"]}
    names |= {*exchange["exchange"], *exchange["end"], *exchange["call"], *exchange["request"]["body"]}
    assert names - words == set()


def test_a_websocket_shows_who_said_what(tape: Path) -> None:
    said: tuple[wstapes.Said, ...] = ('<{"type":"hi\x1b"}', b">\x00\xff", ("<", "text", b"ha", "message"), ">!1001 bye")
    agentruns.write_tape(tape, wstapes.records_of(wstapes.socket_exchange(*said)))
    page = show("1")
    assert "messages (2 of the client, 2 of the server)" in page
    rows = [line.split("ms  ")[1] for line in page.splitlines() if "  < " in line or "  > " in line]
    assert rows == [
        r'< {"type":"hi\x1b"}',
        "> binary 2 B  00 ff",
        "> close 1001 bye",
        "< (not whole) ha",
    ]
    found = document("1")["messages"]
    assert [(one["from"], one["type"], one["code"], one["whole"]) for one in found] == [
        ("server", "text", None, True),
        ("client", "binary", None, True),
        ("client", "close", 1001, True),
        ("server", "text", None, False),
    ]
    assert (found[1]["b64"], found[2]["text"]) == ("AP8=", "bye")
    with pytest.raises(UsageError, match="which has messages and no body"):
        show("1", "--raw")
