"""From a client's pipe to a record wire. Clients leave TLS out within a process, so the bridge speaks it for them.

It speaks it to the wire, which speaks it to the world.
"""

import asyncio
import socket
import ssl

from tapeproxy.proxy.inprocess.routes import Origin

_READ = 1 << 16


async def bridge(far: socket.socket, origin: Origin, port: int, trust: ssl.SSLContext) -> None:
    """Pass on what the client at `far` and the wire on `port` say, until one of them ends."""
    _, near = client = await asyncio.open_connection(sock=far)
    try:
        _, wire = server = await _tunnel(origin, port, trust)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(_pump(client[0], wire))
                pumps.create_task(_pump(server[0], near))
        finally:
            wire.close()
    except* (OSError, asyncio.IncompleteReadError):
        pass  # what the client sees of it is the end of its connection, as the tape says
    finally:
        near.close()


async def _tunnel(
    origin: Origin, port: int, trust: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        line = f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n"
        writer.write(line.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answer.partition(b"\r\n")[0]:
            raise ConnectionRefusedError(answer.decode("latin-1"))
        if origin.scheme == "https":
            await writer.start_tls(trust, server_hostname=origin.host)
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes; where one side ends, the other does."""
    try:
        while data := await reader.read(_READ):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
