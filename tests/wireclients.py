"""The clients that agents use, behind one of our wires, each asked in the same words."""

import asyncio
import gc
import io
import os
import shutil
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from http.client import HTTPMessage
from typing import Any, NamedTuple

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
import requests

PATIENCE = 30.0
_LEAKS = threading.Lock()


class Way(NamedTuple):
    """How to get out: the proxy's URL, and a PEM file of the authority it signs with."""

    proxy: str
    cafile: str

    def trust(self) -> ssl.SSLContext:
        """A TLS context for clients in this process."""
        return ssl.create_default_context(cafile=self.cafile)

    def httpx(self, timeout: float = PATIENCE) -> httpx.Client:
        return httpx.Client(proxy=self.proxy, verify=self.trust(), trust_env=False, timeout=timeout)

    def openai(self, **options: Any) -> openai.OpenAI:
        return openai.OpenAI(
            api_key="sk-test-0123456789abcdefghij",
            base_url="https://api.example.com/v1",
            http_client=self._sdk(),
            **{"max_retries": 0, **options},
        )

    def anthropic(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(
            api_key="sk-ant-test-0123456789abcdef",
            base_url="https://api.example.com",
            http_client=self._sdk(),
            max_retries=0,
        )

    def _sdk(self) -> httpx2.Client:
        return httpx2.Client(proxy=self.proxy, verify=self.trust(), trust_env=False, timeout=PATIENCE)


class Sent(NamedTuple):
    """What a client is to send. `files`: a multipart upload in the client's own way, with its own boundary."""

    method: str
    url: str
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    follow: bool = False
    files: tuple[tuple[str, str, bytes], ...] = ()


class Reply(NamedTuple):
    """What a client heard: the body as it gives it out; header names in lower case, in order, with duplicates."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


type Client = Callable[[Way, Sent], Reply]


def _reply(status: int, headers: Any, body: bytes) -> Reply:
    return Reply(status, tuple((name.lower(), value) for name, value in headers), body)


def with_httpx(way: Way, sent: Sent) -> Reply:
    files = [(name, (filename, data)) for name, filename, data in sent.files]
    with way.httpx() as client:
        reply = client.request(
            sent.method, sent.url, content=sent.body, headers=sent.headers, files=files or None,
            follow_redirects=sent.follow,
        )  # fmt: skip
    headers = [(name.decode(), value.decode()) for name, value in reply.headers.raw]
    return _reply(reply.status_code, headers, reply.content)


def with_requests(way: Way, sent: Sent) -> Reply:
    files = [(name, (filename, data)) for name, filename, data in sent.files]
    with requests.Session() as session:
        session.trust_env = False
        reply = session.request(
            sent.method, sent.url, data=sent.body, headers=dict(sent.headers), allow_redirects=sent.follow,
            files=files or None, proxies={"https": way.proxy}, verify=way.cafile, timeout=PATIENCE,
        )  # fmt: skip
        return _reply(reply.status_code, reply.raw.headers.items(), reply.content)


def with_aiohttp(way: Way, sent: Sent) -> Reply:
    async def ask() -> Reply:
        form = aiohttp.FormData()
        for name, filename, data in sent.files:
            form.add_field(name, data, filename=filename)
        # It warns of large bytes, and a file that knows its length is sent the same.
        body = form if sent.files else None if sent.body is None else io.BytesIO(sent.body)
        connector = aiohttp.TCPConnector(ssl=way.trust())
        timeout = aiohttp.ClientTimeout(PATIENCE)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.request(
                sent.method, sent.url, data=body, headers=sent.headers, proxy=way.proxy,
                allow_redirects=sent.follow,
            ) as reply,
        ):  # fmt: skip
            headers = [(name.decode(), value.decode()) for name, value in reply.raw_headers]
            return _reply(reply.status, headers, await reply.read())

    reply = asyncio.run(ask())
    # A tunnel that aiohttp closed is left open below its TLS, as an unclosed transport for the collector to find.
    with _LEAKS, warnings.catch_warnings():  # threads may be here side by side, and filters are everybody's
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    return reply


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        return None


def with_urllib(way: Way, sent: Sent) -> Reply:
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.ProxyHandler({"https": way.proxy}),
        urllib.request.HTTPSHandler(context=way.trust()),
    ]
    if not sent.follow:
        handlers.append(_Stay())
    request = urllib.request.Request(sent.url, sent.body, dict(sent.headers), method=sent.method)
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=PATIENCE) as reply:
            return _reply(reply.status, reply.headers.items(), reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return _reply(error.code, error.headers.items(), error.read())


def curl(way: Way, *words: str, input: bytes = b"") -> Reply:
    """Run curl; of its header dump what follows the last status line, trailers too. Raises ConnectionError."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    done = subprocess.run(
        ["curl", "-sS", "-q", "-x", way.proxy, "--cacert", way.cafile, "--suppress-connect-headers", "-D",
         "/dev/stderr", "--max-time", str(PATIENCE), *words],
        input=input, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ConnectionError(f"curl: {done.returncode}: {done.stderr.decode()}")
    lines = [line for line in done.stderr.decode().splitlines() if line]
    start = max(at for at, line in enumerate(lines) if line.startswith("HTTP/"))
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[start + 1 :])]
    return _reply(int(lines[start].split()[1]), headers, done.stdout)


def with_curl(way: Way, sent: Sent) -> Reply:
    words = ["--head", "-o", os.devnull] if sent.method == "HEAD" else ["-X", sent.method]
    words += [word for name, value in sent.headers for word in ("-H", f"{name}: {value}")]
    words += ["-L"] if sent.follow else []
    for name, filename, data in sent.files:
        words += ["-F", f"{name}=@-;filename={filename}"]
        return curl(way, *words, sent.url, input=data)
    if sent.body is not None:
        words += ["--data-binary", "@-"]
    return curl(way, *words, sent.url, input=sent.body or b"")


CLIENTS: dict[str, Client] = {
    "httpx": with_httpx,
    "requests": with_requests,
    "aiohttp": with_aiohttp,
    "urllib": with_urllib,
    "curl": with_curl,
}
UPLOADERS = {name: client for name, client in CLIENTS.items() if name != "urllib"}
each_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
"""Runs a test with two of the clients, others from test to test; all are in the soak. See tests/e2e/conftest.py."""
each_uploader = pytest.mark.parametrize("client", UPLOADERS.values(), ids=UPLOADERS)
