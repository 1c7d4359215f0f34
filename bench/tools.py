"""Tools that record an agent and replay it, all used in one way: ours, and the peers that Python agents have."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import peers, processes
from bench.processes import ROOT, environment, run, stopwatch
from bench.servers import Endpoint, require_mitmdump

_HOST = "api.example.com"


@dataclass(frozen=True, slots=True)
class Agent:
    """`bench.agent` and what it is told; `server` is the API that it asks while it is recorded."""

    folder: Path
    server: Endpoint
    conversations: int
    turns: int

    def command(self, python: str, *cassette: str) -> list[str]:
        # By its path: reeltime loses `-m`.
        return [python, str(ROOT / "bench" / "agent.py"), str(self.conversations), str(self.turns), *cassette]

    def environment(self, base: str, **more: str) -> dict[str, str]:
        told = {"OPENAI_BASE_URL": f"{base}/v1", "PYTHONPATH": str(ROOT)}
        return environment(self.folder) | told | more

    @property
    def straight(self) -> dict[str, str]:
        """The environment of an agent that asks the API itself."""
        return self.environment(self.origin, SSL_CERT_FILE=str(self.server.ca))

    @property
    def origin(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"


@dataclass(frozen=True, slots=True)
class Tool:
    """Commands that record the agent and replay it, in a `folder` of its own; `first` has to run before anything."""

    folder: Path
    recording: Sequence[str]
    replaying: Sequence[str]
    env: Mapping[str, str]
    first: Sequence[str] = ()

    def record(self) -> float:
        """Seconds that the agent's calls took. Raises FailedError."""
        if self._begin() and self.first:
            run(self.first, self.env, folder=self.folder)
        return stopwatch(self.recording, self.env, self.folder)

    def replay(self) -> float:
        """Seconds that the agent's calls took; records it first, once. Raises FailedError."""
        if not self.folder.exists():
            self.record()
        return stopwatch(self.replaying, self.env, self.folder)

    def _begin(self) -> bool:
        if self.folder.exists():
            return False
        self.folder.mkdir()
        return True


def tapeproxy(agent: Agent) -> Tool:
    """Ours, with its shim, as it comes. The agent's interpreter is the peers' if it is there."""
    require_mitmdump()  # recording needs mitmproxy
    tape = "tape.jsonl.gz"
    command = ["--", *agent.command(peers.interpreter() or sys.executable)]
    mapped = ["--map", f"{_HOST}={agent.origin}", "--upstream-ca", str(agent.server.ca)]
    return Tool(
        agent.folder / "tapeproxy",
        [*processes.tapeproxy(), "record", "-q", "--force", "-o", tape, *mapped, *command],
        [*processes.tapeproxy(), "replay", "-q", tape, *command],
        agent.environment(f"https://{_HOST}"),
    )


def _cassette(agent: Agent, package: str) -> Tool:
    """A library that the agent itself uses: its first run records, later ones replay."""
    command = agent.command(*peers.program("python", package), package, "cassette.yaml")
    return Tool(agent.folder / package, command, command, agent.straight)


def _reeltime(agent: Agent) -> Tool:
    """It patches httpx, clocks and randomness in the agent."""
    tape = [*peers.program("tape", "reeltime"), "--tape-dir", "tapes"]
    command = agent.command(*peers.program("python", "reeltime"))
    return Tool(agent.folder / "reeltime", [*tape, "run", *command], [*tape, "replay", "last"], agent.straight)


def _timefork(agent: Agent) -> Tool:
    """A reverse proxy that the agent's base URL leads to, over plain HTTP. Its tape is in the working folder."""
    fork = peers.program("timefork", "timefork")
    command = ["--", *agent.command(*peers.program("python", "timefork"))]
    env = agent.straight | {"TIMEFORK_UPSTREAM_OPENAI": agent.origin}
    replaying = [*fork, "replay", "last", "--on-diverge", "block", *command]
    return Tool(agent.folder / "timefork", [*fork, "record", *command], replaying, env, first=[*fork, "init"])


PEERS: Mapping[str, Callable[[Agent], Tool]] = {
    "vcrpy": lambda agent: _cassette(agent, "vcrpy"),
    "cassetter": lambda agent: _cassette(agent, "cassetter"),
    "reeltime": _reeltime,
    "timefork": _timefork,
}
"""Makers of the others by name. Raise MissingError."""
