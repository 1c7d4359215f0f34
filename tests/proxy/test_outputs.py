"""What is kept of an agent's output, with real pipes."""

import asyncio
import gc
import os
import sys
from pathlib import Path

import pytest
from blake3 import blake3

from tapeproxy.proxy.outputs import KEPT, Output, captured


def printed(program: str) -> tuple[Output, Output]:
    """What a Python program prints to stdout and stderr."""

    async def take() -> tuple[Output, Output]:
        async with captured() as capture:
            given = capture.stdio
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, stdin=given.stdin, stdout=given.stdout, stderr=given.stderr
            )
            await child.wait()
            return await capture.finish()

    return asyncio.run(take())


def test_all_of_a_small_output() -> None:
    stdout, stderr = printed("import sys; print('out'); sys.stderr.write('err'); print(sys.stdin.read() == '')")
    assert stdout == Output(9, blake3(b"out\nTrue\n").hexdigest(), b"out\nTrue\n")
    assert stderr == Output(3, blake3(b"err").hexdigest(), b"err")
    assert stdout.whole


def test_the_beginning_of_a_large_one_and_a_digest_of_the_rest() -> None:
    size = KEPT + 100_000
    stdout, stderr = printed(f"import sys; sys.stdout.write('x' * {size})")
    assert (stdout.size, len(stdout.text), stdout.whole) == (size, KEPT, False)
    assert stdout.digest == blake3(b"x" * size).hexdigest()
    assert stderr.size == 0
    assert stdout.without_text() == Output(size, stdout.digest, b"")


def test_whoever_keeps_the_pipe_open_is_not_waited_for() -> None:
    program = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid)"
    stdout, _ = printed(program)
    os.kill(int(stdout.text), 9)
    assert stdout.text.strip().isdigit()


@pytest.mark.skipif(sys.platform != "linux", reason="open descriptors are listed in /proc")
def test_no_descriptor_is_left_open() -> None:
    printed("")
    gc.collect()  # of the tests before
    before = len(list(Path("/proc/self/fd").iterdir()))
    printed("print(1)")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
