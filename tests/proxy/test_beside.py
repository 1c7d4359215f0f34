"""Commands beside the agent: their codes, their words, and their end."""

import asyncio
import io
import os
import subprocess
from pathlib import Path

import pytest

from tapeproxy.proxy.beside import last_words, run_beside, shell

ENVIRONMENT = {"PATH": os.environ["PATH"]}
pytestmark = pytest.mark.skipif(os.name != "posix", reason="shells and process groups")


def run(command: str, path: Path, **options: Path) -> int:
    with path.open("wb") as out:
        return asyncio.run(run_beside(shell(command), ENVIRONMENT, output=out.fileno(), **options))  # type: ignore[arg-type]


def test_codes_and_words(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("echo one; pwd >&2; exit 7", out, cwd=tmp_path) == 7
    assert out.read_text() == f"one\n{tmp_path}\n"
    assert run("kill -9 $$", out) == -9
    with pytest.raises(FileNotFoundError):
        asyncio.run(run_beside(("/no/such/program",), ENVIRONMENT, output=subprocess.DEVNULL))


@pytest.mark.parametrize(("text", "said"), [(b"", ""), (b"a\nb c \n\n", "b c"), (b"x" * 5000 + b"\nlast", "last")])
def test_last_words(text: bytes, said: str) -> None:
    assert last_words(io.BytesIO(text)) == said


def test_a_cancelled_command_leaves_nothing_behind(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    async def cancelled() -> None:
        # The reader of the pipe is told when its writer, a grandchild, is gone.
        command = f"(exec 9>{fifo}; echo x >&9; sleep 60 & wait; sleep 60); true"
        task = asyncio.create_task(run_beside(shell(command), ENVIRONMENT))
        reader = await asyncio.to_thread(fifo.open, "rb")
        with reader:
            assert await asyncio.to_thread(reader.readline) == b"x\n"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.wait_for(asyncio.to_thread(reader.read), 10) == b""

    asyncio.run(cancelled())
