"""What an agent prints, read from pipes: its size, its digest and its first part. Knows nothing of what is printed.

On Windows asyncio can't read such pipes; replays are compared on Linux and macOS.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from blake3 import blake3

from tapeproxy.proxy.supervisor import Stdio

KEPT = 1 << 20
"""Bytes of an output that are kept to show what differs; the digest is of all."""
_LAST_WORDS = 1.0
"""Seconds that a pipe may stay open after the processes of its run: one that can't be found may have it."""


@dataclass(frozen=True, slots=True)
class Output:
    """What was written to one descriptor: bytes in all, their BLAKE3 as hex, and the first `KEPT` of them."""

    size: int
    digest: str
    text: bytes

    @property
    def whole(self) -> bool:
        """Whether `text` is all of it."""
        return len(self.text) == self.size

    def without_text(self) -> "Output":
        """The same with nothing kept."""
        return replace(self, text=b"")


class Pipe(asyncio.Protocol):
    """A pipe that is read to its end. `descriptor` is for whoever writes."""

    def __init__(self) -> None:
        self._read, self.descriptor = os.pipe()
        self._digest = blake3()
        self._size = 0
        self._text = bytearray()
        self._ended = asyncio.Event()
        self._transport: asyncio.ReadTransport

    async def open(self) -> None:
        """Begin to read."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(self._read, "rb", buffering=0))

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        self._digest.update(data)
        self._text += data[: KEPT - len(self._text)]

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()

    def let_go(self) -> None:
        """Close our own writing end."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    async def finish(self) -> Output:
        """What was written, once everybody has closed the pipe, or nobody should have it open any more."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _LAST_WORDS)
        return Output(self._size, self._digest.hexdigest(), bytes(self._text))

    def close(self) -> None:
        """Stop reading."""
        self.let_go()
        self._transport.close()


@dataclass(frozen=True, slots=True)
class Capture:
    """Pipes for a child's output, and `stdio` to hand on; its input is empty."""

    stdout: Pipe
    stderr: Pipe
    stdio: Stdio

    def let_go(self) -> None:
        """Call it once the child runs no more: a pipe ends when nobody has its writing end."""
        self.stdout.let_go()
        self.stderr.let_go()

    async def finish(self) -> tuple[Output, Output]:
        """What was written to stdout and stderr."""
        self.let_go()
        return await asyncio.gather(self.stdout.finish(), self.stderr.finish())


@contextlib.asynccontextmanager
async def captured() -> AsyncIterator[Capture]:
    """Open pipes for a child's output; they are closed when the block is left."""
    with contextlib.ExitStack() as stack:
        nothing = os.open(os.devnull, os.O_RDONLY)
        stack.callback(os.close, nothing)
        pipes = [Pipe(), Pipe()]
        for pipe in pipes:
            await pipe.open()
            stack.callback(pipe.close)
        stdout, stderr = pipes
        yield Capture(stdout, stderr, Stdio(nothing, stdout.descriptor, stderr.descriptor))
