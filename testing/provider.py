"""`FakeProvider`: the service as a running server, from sync code or in an event loop. Decides no answer.

It serves OpenAI chat completions, responses and Realtime, Anthropic messages, Gemini, and a small search API as a tool
would call, on any host name. `service` decides, `delivery` sends, this module owns the socket, the loop and the thread.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tapeproxy.testing.answers import Playbook
from tapeproxy.testing.chance import Dice
from tapeproxy.testing.delivery import converse, deliver
from tapeproxy.testing.inbox import Request
from tapeproxy.testing.script import Script, load_script, read_script
from tapeproxy.testing.service import Service, asks_for_a_session
from tapeproxy.testing.wire import Exchange, Server


class FakeProvider:
    """A fake LLM provider on a loopback port.

    With `with`, or `start` and `stop`, it runs in a thread of its own; `serve_forever` runs it in the caller's loop.
    `script` is a path, parsed data, or a Script. `seed` makes the answers; with `nondeterministic` ids, times, wording
    and chunking are fresh for every request, drawn from the seed or, when it is None, from real randomness. `tls`
    serves TLS with the caller's context. Raises ScriptError at once and ListenError when started.
    """

    def __init__(
        self,
        script: Script | Mapping[str, object] | Path | str | None = None,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        seed: int | None = 0,
        nondeterministic: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.requests: list[Request] = []
        """Every request seen, oldest first; a request is here before its answer begins."""
        self._tls = tls
        self._service = Service(Playbook(_read(script)), Dice(seed, nondeterministic=nondeterministic))
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._failures: list[BaseException] = []

    @property
    def url(self) -> str:
        """The address without a path, `http://127.0.0.1:PORT`; the port is known once it listens."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{name}:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables that send the OpenAI and Anthropic SDKs and the examples here, with placeholder keys."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "sk-fake-provider",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-ant-fake-provider",
            "SEARCH_URL": self.url,
        }

    def start(self) -> Self:
        """Listen and serve in a thread; returns when connections are accepted. Raises ListenError."""
        ready = threading.Event()

        def run() -> None:
            try:
                asyncio.run(self._serve_until_stopped(ready.set))
            except BaseException as error:  # raised again by start, or by stop
                self._failures.append(error)
            finally:
                ready.set()

        self._thread = threading.Thread(target=run, name="fake-provider", daemon=True)
        self._thread.start()
        ready.wait()
        self._raise_failure()
        return self

    def stop(self) -> None:
        """Stop listening and drop every connection; returns when it is done. Stopping twice is fine."""
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None
        self._raise_failure()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _raise_failure(self) -> None:
        if self._failures:
            raise self._failures.pop()

    async def _serve_until_stopped(self, on_listening: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        server = Server(self._answer)
        self.port = await server.listen(self.host, self.port, self._tls)
        try:
            on_listening()
            await self._stopping.wait()
        finally:
            await server.aclose()

    async def _answer(self, exchange: Exchange) -> None:
        self.requests.append(exchange.request)
        if asks_for_a_session(exchange.request):
            await converse(exchange, self._service.session(exchange.request))
        else:
            await deliver(exchange, self._service.respond(exchange.request))


async def serve_forever(provider: FakeProvider, on_listening: Callable[[], None] = lambda: None) -> None:
    """Serve in the running loop until cancelled. `on_listening` is called once `provider.port` is known."""
    await provider._serve_until_stopped(on_listening)


def _read(script: Script | Mapping[str, object] | Path | str | None) -> Script:
    if script is None:
        return Script()
    if isinstance(script, Script):
        return script
    if isinstance(script, str | Path):
        return load_script(Path(script))
    return read_script(script)
