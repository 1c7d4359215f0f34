"""Orders to a running proxy: only with the key, answered always, whatever is sent."""

import asyncio
import os
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from tapeproxy.proxy.control import ControlServer, ask
from tapeproxy.proxy.state import NoProxyError, State
from tapeproxy.tapes.errors import UsageError


async def greet(name: str) -> Mapping[str, Any]:
    if name == "nobody":
        raise UsageError("there is nobody", where="here", fix="ask for somebody")
    return {"hello": name}


async def fail(_: str) -> Mapping[str, Any]:
    raise KeyError("oh")


def asked(verb: str, name: str = "", key: str = "right") -> Mapping[str, Any]:
    async def main() -> Mapping[str, Any]:
        server = ControlServer("right", {"greet": greet, "fail": fail})
        await server.start()
        try:
            state = State(os.getpid(), "record", "tapes", 1, {}, (), server.port, key)
            return await asyncio.to_thread(ask, state, verb, name)
        finally:
            server.stop()

    return asyncio.run(main())


@pytest.mark.parametrize("name", ["", "a", '\u00e9\0\n"', "x" * 300])
def test_an_order_is_carried_out(name: str) -> None:
    assert asked("greet", name) == {"hello": name}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("greet", "nobody"), "here: there is nobody\n  ask for somebody"),
        (("greet", "a", "wrong"), "the key is another one"),
        (("greet", "a", ""), "the key is another one"),
        (("open", "a"), "does not know how"),
        (("fail", "a"), "a bug in tapeproxy: KeyError"),
    ],
)
def test_what_is_said_against_it_is_heard(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(NoProxyError) as refused:
        asked(*words)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b"[]\n", b"null\n", b'{"key":"right","verb":[],"name":1}\n', b"\xff\n"]
)
def test_nonsense_is_answered(line: bytes) -> None:
    async def main() -> bytes:
        server = ControlServer("right", {"greet": greet})
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(line)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        server.stop()
        return answer

    assert b'"error"' in asyncio.run(main())


def test_a_proxy_that_does_not_answer_is_told_of() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NoProxyError, match="does not answer"):
        ask(State(os.getpid(), "record", "tapes", 1, {}, (), port, "key"), "status")
