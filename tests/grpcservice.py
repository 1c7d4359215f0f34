"""A server of gRPC for tests, without generated code: its messages are bytes."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc


def _unary(request: bytes, context: Any) -> bytes:
    if request == b"fail":
        context.set_trailing_metadata((("why-bin", b"\x01\xff"),))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no good: ü")
    context.send_initial_metadata((("server", "yes"),))
    context.set_trailing_metadata((("after", "1"), ("echo", dict(context.invocation_metadata()).get("mark", ""))))
    return b"re:" + request


def _down(request: bytes, _: Any) -> Iterator[bytes]:
    return (b"part%d" % number for number in range(int(request)))


def _up(requests: Iterator[bytes], _: Any) -> bytes:
    return b"+".join(b"%d" % len(request) for request in requests)


def _chat(requests: Iterator[bytes], _: Any) -> Iterator[bytes]:
    return (b"re:" + request for request in requests)


def _slow(request: bytes, _: Any) -> bytes:
    time.sleep(0.4)
    return request


_METHODS = {
    "Unary": grpc.unary_unary_rpc_method_handler(_unary),
    "Slow": grpc.unary_unary_rpc_method_handler(_slow),
    "Down": grpc.unary_stream_rpc_method_handler(_down),
    "Up": grpc.stream_unary_rpc_method_handler(_up),
    "Chat": grpc.stream_stream_rpc_method_handler(_chat),
}


class GrpcService:
    """A context manager: listens on `plain`, and with a certificate (`pem`: key, then certificate) on `secure`."""

    def __init__(self, pem: Path) -> None:
        self._server = grpc.server(ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service", _METHODS),))
        text = pem.read_bytes()
        at = text.index(b"-----BEGIN CERTIFICATE")
        self.plain: int = self._server.add_insecure_port("127.0.0.1:0")
        credentials = grpc.ssl_server_credentials([(text[:at], text[at:])])
        self.secure: int = self._server.add_secure_port("127.0.0.1:0", credentials)

    def __enter__(self) -> "GrpcService":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()
