"""Hard inputs 1-8, 18-20, 22, 24, 25 and 35, by number: which answer a request gets, and which never.

Every one goes through both wires with the clients that agents use.
"""

import hashlib
import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import MessageParam
from bothwires import URL, BothWires
from openai.types.chat import ChatCompletionMessageParam
from origin import Call, Gate, Handler
from wireclients import Client, Reply, Sent, Way, curl, each_client, each_uploader

JSON = (("content-type", "application/json"),)


def counter() -> Handler:
    """Counts its calls."""
    numbers = itertools.count(1)

    async def answer(call: Call) -> None:
        await call.reply(b"%d" % next(numbers))

    return answer


def bodies(client: Client, *sents: Sent) -> Callable[[Way], list[bytes]]:
    """What a client that sends these one after another hears."""
    return lambda way: [client(way, sent).body for sent in sents]


@each_client
def test_01_the_same_again_does_not_reach_upstream(wires: BothWires, client: Client) -> None:
    once = Sent("GET", f"{URL}/a")
    with wires.origin(counter()) as origin:
        assert wires.record_at(origin, bodies(client, once)) == [b"1"]
        before = origin.connections
        heard, kinds, unused = wires.replay_anyhow(lambda way: [client(way, once) for _ in range(2)])
        assert origin.connections == before
    assert [reply.status for reply in heard] == [200, 470]
    assert (heard[0].body, kinds, unused) == (b"1", ["used-up"], 0)


@each_client
def test_02_nothing_opens_a_connection_upstream(wires: BothWires, client: Client) -> None:
    """The origin is up and under its real address, so that it would be reached; not even its door is tried."""
    with wires.origin(counter()) as origin:
        taped, other = Sent("GET", f"{origin.url}/a"), Sent("GET", f"{origin.url}/b")
        assert wires.record_at(origin, bodies(client, taped)) == [b"1"]
        before = origin.connections
        heard, kinds, _ = wires.replay_anyhow(lambda way: [client(way, sent) for sent in (taped, other)])
        assert origin.connections == before
    assert ([reply.status for reply in heard], kinds) == ([200, 470], ["miss"])


@each_client
def test_03_a_counter_counts_again(wires: BothWires, client: Client) -> None:
    assert wires.same(counter(), bodies(client, *[Sent("GET", f"{URL}/n")] * 3)) == [b"1", b"2", b"3"]


@each_client
def test_04_answers_that_came_in_reverse_order_are_everybody_s_own(wires: BothWires, client: Client) -> None:
    count = 4
    heard_by = [Gate() for _ in range(count)]

    async def backwards(call: Call) -> None:
        n = int(call.request.body)
        if n + 1 < count:
            await call.wait(heard_by[n + 1])
        await call.reply(b"answer %d" % n)

    def play(way: Way) -> dict[int, bytes]:
        heard: dict[int, bytes] = {}

        def ask(n: int) -> None:
            heard[n] = client(way, Sent("POST", f"{URL}/slow", b"%d" % n, (("content-type", "text/plain"),))).body
            heard_by[n].open()

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return heard

    assert wires.same(backwards, play) == {n: b"answer %d" % n for n in range(count)}
    ends = sorted(wires.tape.exchanges, key=lambda one: one.end.t if one.end else 0)
    assert [one.request_body for one in ends] == [b"3", b"2", b"1", b"0"]


@each_client
def test_05_three_urls_twice_each_and_interleaved(wires: BothWires, client: Client) -> None:
    sents = [Sent("GET", f"{URL}/{path}") for path in "abcbca"]
    assert wires.same(counter(), bodies(client, *sents)) == [b"%d" % n for n in range(1, 7)]


# --- conversations ------------------------------------------------------------------------------------------------

HELLO: ChatCompletionMessageParam = {"role": "user", "content": "Go on."}


def completion(message: dict[str, Any]) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    ).encode()


def message(*content: dict[str, Any]) -> bytes:
    stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    return json.dumps(
        {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage,
         "stop_reason": stop, "stop_sequence": None}
    ).encode()  # fmt: skip


def openai_loop(way: Way) -> list[str]:
    heard: list[str] = []
    history: list[ChatCompletionMessageParam] = [HELLO]
    with way.openai() as client:
        while len(heard) < 5:
            said = client.chat.completions.create(model="m", messages=history).choices[0].message
            if not said.tool_calls:
                return [*heard, said.content or ""]
            heard.append(said.tool_calls[0].id)
            # The same words from the tool in every round: the rounds differ in their history alone.
            history += [said.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": "t", "content": "same"}]  # type: ignore[list-item]  # a model's dump is such a message
    return heard


def anthropic_loop(way: Way) -> list[str]:
    heard: list[str] = []
    history: list[MessageParam] = [{"role": "user", "content": "Go on."}]
    with way.anthropic() as client:
        while len(heard) < 5:
            said = client.messages.create(model="m", max_tokens=9, messages=history).content[0]
            if said.type != "tool_use":
                return [*heard, said.text if said.type == "text" else ""]
            heard.append(said.id)
            result: Any = {"type": "tool_result", "tool_use_id": "t", "content": "same"}
            history += [{"role": "assistant", "content": [said.model_dump()]}, {"role": "user", "content": [result]}]  # type: ignore[list-item]  # as above
    return heard


@pytest.mark.parametrize("play", [openai_loop, anthropic_loop], ids=["openai", "anthropic"])
def test_06_a_tool_loop_never_gets_round_one_twice(wires: BothWires, play: Callable[[Way], list[str]]) -> None:
    async def answer(call: Call) -> None:
        rounds = call.request.body.count(b'"same"')
        if play is openai_loop:
            tool = {"id": f"call_{rounds}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            body = completion({"content": "done"} if rounds == 2 else {"content": None, "tool_calls": [tool]})
        else:
            block = {"type": "tool_use", "id": f"call_{rounds}", "name": "f", "input": {}}
            body = message({"type": "text", "text": "done"} if rounds == 2 else block)
        await call.reply(body, "200 OK", "Content-Type: application/json")

    assert wires.same(answer, play) == ["call_0", "call_1", "done"]


def test_07_one_last_message_under_other_models_and_histories(wires: BothWires) -> None:
    before: list[ChatCompletionMessageParam] = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]
    calls = [("m", [HELLO]), ("n", [HELLO]), ("m", [*before, HELLO]), ("m", [*before[::-1], HELLO]), ("m", [HELLO])]
    numbers = itertools.count()

    async def answer(call: Call) -> None:
        told = hashlib.sha256(call.request.body).hexdigest()[:8]
        body = completion({"content": f"{next(numbers)} {told}"})
        await call.reply(body, "200 OK", "Content-Type: application/json")

    def play(way: Way) -> list[str]:
        with way.openai() as client:
            made = [client.chat.completions.create(model=model, messages=messages) for model, messages in calls]
        return [one.choices[0].message.content or "" for one in made]

    live = wires.record(answer, play)
    assert len(set(live)) == len(calls)
    assert wires.replay(play) == live
    calls[1:4] = calls[3:0:-1]  # asked in another order, each has its own answer still
    assert wires.replay(play) == [live[0], *live[3:0:-1], live[4]]


def test_08_an_assistant_turn_without_content(wires: BothWires) -> None:
    async def answer(call: Call) -> None:
        body = message() if call.request.target == "/v1/messages" else completion({"content": ""})
        await call.reply(body, "200 OK", "Content-Type: application/json")

    def play(way: Way) -> list[object]:
        with way.openai() as client, way.anthropic() as other:
            heard: list[object] = []
            empty: ChatCompletionMessageParam = {"role": "assistant", "content": ""}
            for history in ([HELLO], [HELLO, empty, HELLO]):
                heard.append(client.chat.completions.create(model="m", messages=history).choices[0].message.content)
            heard.append(
                other.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "a"}]).content
            )
        return heard

    assert wires.same(answer, play) == ["", "", []]


# --- the same in other bytes --------------------------------------------------------------------------------------


@each_uploader
def test_18_the_same_upload_twice(wires: BothWires, client: Client) -> None:
    sent = Sent("POST", f"{URL}/upload", files=(("f", "a.bin", b"same\r\n--not a boundary\r\n"),))
    assert wires.same(counter(), bodies(client, sent, sent)) == [b"1", b"2"]
    first, second = (exchange.request_body for exchange in wires.tape.exchanges)
    assert first != second and b"same\r\n--not a boundary\r\n" in first


@each_uploader
def test_35_a_boundary_of_the_library_s_own_day_after_day(wires: BothWires, client: Client) -> None:
    sents = [Sent("POST", f"{URL}/upload", files=(("f", name, name.encode() * 9),)) for name in ("a", "b", "a")]
    live = wires.record(counter(), bodies(client, *sents))
    for _day in range(3):
        assert wires.replay(bodies(client, *sents)) == live
    heard, kinds, _ = wires.replay_anyhow(bodies(client, Sent("POST", f"{URL}/upload", files=(("f", "a", b"other"),))))
    assert kinds == ["miss"] and b"violation" in heard[0]


@each_client
def test_19_keys_in_another_order_and_an_answer_to_the_byte(wires: BothWires, client: Client) -> None:
    raw = b'{ "price":0.00,\t"n":1e2, "a":"\\u00e9", "price":0.00}\r\n'

    async def answer(call: Call) -> None:
        await call.reply(raw, "200 OK", "Content-Type: application/json")

    def ask(text: bytes) -> Callable[[Way], list[bytes]]:
        return bodies(client, Sent("POST", f"{URL}/echo", text, JSON))

    assert wires.record(answer, ask(b'{"a": 1, "b": {"x": 1, "y": [1, 2]}}')) == [raw]
    assert wires.replay(ask(b'{"b":{"y":[1,2],"x":1},"a":1}')) == [raw]
    for other in (b'{"b":{"y":[2,1],"x":1},"a":1}', b'{"b":{"y":[1,2],"x":1},"a":"1"}'):
        assert wires.replay_anyhow(ask(other))[1:] == (["miss"], 1)


@each_client
def test_20_double_query_values_and_bytes_with_a_charset(wires: BothWires, client: Client) -> None:
    kind = (("content-type", "application/octet-stream; charset=utf-8"),)
    gets = [Sent("GET", f"{URL}/q?{query}") for query in ("x=1&x=2", "x=2&x=1", "x=1&x=1", "x=1", "x=1&x=2&x=2")]
    posts = [Sent("POST", f"{URL}/raw", data, kind) for data in (b"\0\xff\r\n0\r\n\r\n", b"\0\xfe\r\n0\r\n\r\n")]
    sents = [*gets, *posts]
    live = wires.record(counter(), bodies(client, *sents))
    assert live == [b"%d" % n for n in range(1, 8)]
    assert wires.replay(bodies(client, *sents[::-1])) == live[::-1]
    assert wires.tape.exchanges[5].request_body == posts[0].body


def test_22_a_signature_of_another_day_by_curl(wires: BothWires) -> None:
    def ask(user: str) -> Callable[[Way], bytes]:
        return lambda way: curl(
            way, "--aws-sigv4", "aws:amz:us-east-1:bedrock", "--user", user, "-H", "content-type: application/json",
            "--data-binary", '{"messages":[]}', f"{URL}/model/claude%3A0/invoke",
        ).body  # fmt: skip

    assert wires.record(counter(), ask("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY")) == b"1"
    assert b"AKIAIOSFODNN7EXAMPLE" not in wires.text
    assert wires.replay(ask("AKIAI44QH8DHBEXAMPLE:je7MtGbClwBFo2Zp9UtkhYPEr3MYCYEXAMPLEKEY")) == b"1"


@each_client
def test_22_a_signature_of_another_day(wires: BothWires, client: Client) -> None:
    def ask(date: str, signature: str, key: str = "AKIAIOSFODNN7EXAMPLE") -> Callable[[Way], list[bytes]]:
        scope = f"Credential={key}/{date[:8]}/us-east-1/bedrock/aws4_request"
        signed = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host;x-amz-date, Signature={signature * 64}"
        headers = (*JSON, ("x-amz-date", date), ("authorization", signed), ("x-amz-security-token", signature * 200))
        url = f"{URL}/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date={date}&X-Amz-Signature={signature * 64}&v=1"
        return bodies(client, Sent("POST", f"{URL}/model/x/invoke", b'{"a":1}', headers), Sent("GET", url))

    assert wires.record(counter(), ask("20260101T000000Z", "a")) == [b"1", b"2"]
    assert wires.replay(ask("20270607T080910Z", "b", "AKIAI44QH8DHBEXAMPLE")) == [b"1", b"2"]


# --- violations and failures --------------------------------------------------------------------------------------


@each_client
def test_24_a_violation_is_no_upstream_s_status(wires: BothWires, client: Client) -> None:
    """Not even where an upstream did answer 470: ours alone says whose it is, in a header and in the body."""

    async def answer(call: Call) -> None:
        await call.reply(b"theirs", "470 Odd")

    def play(way: Way) -> list[Reply]:
        return [client(way, Sent("GET", f"{URL}/{path}")) for path in "ab"]

    theirs = wires.record(answer, lambda way: client(way, Sent("GET", f"{URL}/a")))
    (again, ours), kinds, _ = wires.replay_anyhow(play)
    assert again == theirs
    assert (theirs.status, theirs.body, theirs.all("x-tapeproxy")) == (470, b"theirs", [])
    assert (ours.status, kinds, ours.all("x-tapeproxy")) == (470, ["miss"], ["violation"])
    assert json.loads(ours.body)["violation"]["kind"] == "miss"


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_24_an_sdk_does_not_try_a_violation_again(wires: BothWires, sdk: str) -> None:
    async def answer(call: Call) -> None:
        await call.reply(completion({"content": "a"}), "200 OK", "Content-Type: application/json")

    def play(way: Way) -> int:
        with way.openai(max_retries=3) as client, way.anthropic().with_options(max_retries=3) as other:
            try:
                if sdk == "openai":
                    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Other."}])
                else:
                    other.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Other."}])
            except (openai.APIStatusError, anthropic.APIStatusError) as error:
                assert "not on the tape" in str(error)
                return error.status_code
        return 0

    def live(way: Way) -> None:
        with way.openai() as client:
            client.chat.completions.create(model="m", messages=[HELLO])

    wires.record(answer, live)
    assert wires.replay_anyhow(play) == (470, ["miss"], 1)


def flaky() -> Handler:
    """Resets its first connection and answers from then on."""
    first = iter([True])

    async def answer(call: Call) -> None:
        if next(first, False):
            call.reset()
        else:
            await call.reply(completion({"content": "at last"}), "200 OK", "Content-Type: application/json")

    return answer


@each_client
def test_25_a_reset_and_then_the_answer(wires: BothWires, client: Client) -> None:
    def play(way: Way) -> list[str]:
        heard: list[str] = []
        for _ in range(2):
            try:
                heard.append(client(way, Sent("POST", f"{URL}/flaky", b"{}", JSON)).body.decode())
            except Exception as error:  # each client has a name of its own for it
                heard.append(type(error).__name__)
        return heard

    live = wires.record(flaky(), play)
    assert "at last" in live[1] and "at last" not in live[0]
    assert wires.replay(play) == live
    assert [one.end.how for one in wires.tape.exchanges if one.end] == ["reset", "complete"]


def test_25_an_sdk_that_tries_again_by_itself(wires: BothWires) -> None:
    def play(way: Way) -> str | None:
        with way.openai(max_retries=1) as client:
            return client.chat.completions.create(model="m", messages=[HELLO]).choices[0].message.content

    assert wires.same(flaky(), play) == "at last"
