"""Machines for tests: network and mount namespaces with nothing in them, joined by a cable where one is laid."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_TOOLS = ("unshare", "nsenter", "ip", "mount")


class Machine:
    """Namespaces of its own, for as long as a process that does nothing lives in them. Files are this machine's."""

    def __init__(self, *, beside: "Machine | None" = None, as_root: bool = False) -> None:
        """`beside`: a machine that has the say over this one too, so that a cable can be laid between them.

        `as_root`: with the rights of this process, which has to be root's; else with all rights over the machine alone.
        """
        users = () if beside or as_root else ("--user", "--map-root-user")
        self._entering = ("--net", "--mount", *(() if as_root else ("--user", "--preserve-credentials")))
        own = ["unshare", "--net", "--mount", *users]
        words = [*own, "sh", "-c", "ip link set lo up && echo up && exec cat"]
        self._keeper = subprocess.Popen(
            words if beside is None else beside.inside(*words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._keeper.stdout is not None
        self._came_up = self._keeper.stdout.readline() == "up\n"
        self.pid = self._keeper.pid

    @property
    def refusal(self) -> str:
        """Why there is no such machine here; empty where there is."""
        if self._came_up:
            return ""
        assert self._keeper.stderr is not None
        return self._keeper.stderr.read().strip()

    def inside(self, *words: str) -> list[str]:
        """A command line that runs `words` on the machine."""
        nsenter = shutil.which("nsenter") or "nsenter"  # the command's own PATH may have none
        return [nsenter, f"--target={self.pid}", *self._entering, *words]

    def run(self, *words: str, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command there, to its end."""
        words = self._there(cwd, words)
        return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=60)

    def set_up(self, *words: str) -> None:
        """Run a command that has to succeed."""
        done = subprocess.run(self.inside(*words), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{words}: {done.stderr}"

    @contextmanager
    def serving(
        self, *words: str, env: Mapping[str, str], cwd: Path, until: str, stream: str = "stderr"
    ) -> Iterator[str]:
        """Run a server there, from the line with `until` on, which is given; it is told to end afterwards."""
        piped: dict[str, Any] = {stream: subprocess.PIPE}
        process = subprocess.Popen(self._there(cwd, words), env=env, text=True, **piped)
        try:
            lines = getattr(process, stream)
            while until not in (line := lines.readline()):
                assert line, f"{words} ended"
            yield line
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)

    def _there(self, cwd: Path, words: tuple[str, ...]) -> tuple[str, ...]:
        # Who enters a mount namespace finds itself in its root.
        return tuple(self.inside("env", "-C", str(cwd), *words))

    def stop(self) -> None:
        """Let it go, with all that is on it."""
        self._keeper.communicate(timeout=60)


@contextmanager
def two_machines(one: str, other: str) -> Iterator[tuple[Machine, Machine]]:
    """Two machines with a cable between them and these addresses (with a prefix) on it. Skips where there are none."""
    if sys.platform != "linux" or any(shutil.which(tool) is None for tool in _TOOLS):
        pytest.skip(f"needs Linux with {', '.join(_TOOLS)}")
    first = Machine()
    try:
        if first.refusal:
            pytest.skip(f"no network namespace here: {first.refusal}")
        second = Machine(beside=first)
        try:
            _join(first, one, second, other)
            yield first, second
        finally:
            second.stop()
    finally:
        first.stop()


def _join(first: Machine, one: str, second: Machine, other: str) -> None:
    ends: Sequence[tuple[Machine, str, str]] = ((first, "here", one), (second, "there", other))
    first.set_up("ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(second.pid))
    for machine, end, address in ends:
        machine.set_up("ip", "address", "add", address, "dev", end)
        machine.set_up("ip", "link", "set", end, "up")
