"""A model's API over TLS: `python -m bench.origin PEM DELAY`. Says its port, and serves until it is ended.

A request is answered after DELAY seconds. One for a stream gets its first event then, and the rest later, so that a
proxy that waits for the end of an answer shows.
"""

import asyncio
import ssl
import sys

from bench.conversation import sample_answer

LATER = 0.01
"""Seconds between a stream's first event and its last."""
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
_CHUNK = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
_STREAM = b'"stream":true'
_ROOM = 1 << 20


class _Origin:
    def __init__(self, delay: float) -> None:
        self._delay = delay
        answer = sample_answer()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._answer = head % len(answer) + answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                body = await reader.readexactly(int(length))
                if self._delay:
                    await asyncio.sleep(self._delay)
                if _STREAM in body[:200]:
                    writer.write(_HEAD + _CHUNK)
                    await asyncio.sleep(LATER)
                    writer.write(_CHUNK + b"0\r\n\r\n")
                else:
                    writer.write(self._answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _main(pem: str, delay: float) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = await asyncio.start_server(_Origin(delay).serve, "127.0.0.1", 0, ssl=context, limit=_ROOM)
    print(f"listening at 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], float(sys.argv[2])))
