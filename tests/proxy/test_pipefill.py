"""What lies in a pipe unread, and how long a reader is waited for."""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tapeproxy.proxy.pipefill import Taken, unread

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux says what lies in a pipe")
type Ends = tuple[int, int]


@pytest.fixture(params=["pipe", "socket"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """To read from, to write to: both kinds are a child's standard output, the second one Node's."""
    if request.param == "pipe":
        reading, writing = os.pipe()
    else:
        reading, writing = (one.detach() for one in socket.socketpair())
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_what_is_unread_is_known(ends: Ends) -> None:
    reading, writing = ends
    assert unread(writing) == 0
    os.write(writing, b"line\n")
    assert unread(writing)
    os.read(reading, 100)
    assert unread(writing) == 0


def test_a_reader_is_waited_for(ends: Ends) -> None:
    reading, writing = ends
    os.write(writing, b"line\n")
    taken = Taken(writing, 60.0)
    reader = threading.Timer(0.05, lambda: os.read(reading, 100))
    reader.start()
    taken.wait()
    assert unread(writing) == 0
    reader.join()


def test_a_reader_that_does_not_read_is_waited_for_once(ends: Ends) -> None:
    _, writing = ends
    os.write(writing, b"line\n")
    taken = Taken(writing, 0.1)
    began = time.monotonic()
    for _ in range(20):
        taken.wait()
    assert 0.1 <= time.monotonic() - began < 1.0


def test_what_is_no_pipe_is_not_waited_for() -> None:
    with Path(os.devnull).open("wb") as file:
        assert not unread(file.fileno())
