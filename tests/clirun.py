"""The `tapeproxy` command as a child process, for tests of the whole."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import warm

KEYS = {"OPENAI_API_KEY": "sk-test-0123456789abcdefghij", "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef"}
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "NODE_PATH")
HOSTS = ("api.openai.com", "api.anthropic.com", "search.example.com")


@dataclass(frozen=True, slots=True)
class Cli:
    """Runs commands in folder `cwd` with our files in `home`. `keys` are in the environment only when asked for."""

    cwd: Path
    home: Path

    def environment(self, *, keys: bool = False, **more: str) -> dict[str, str]:
        """What a command is run with: a bare environment, no keys unless asked for."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return kept | {"TAPEPROXY_HOME": str(self.home)} | (KEYS if keys else {}) | more

    def argv(self, *words: str) -> list[str]:
        """The command line of a tapeproxy command."""
        return [sys.executable, "-m", "tapeproxy.cli.main", *words]

    def run(
        self, *words: str, keys: bool = False, input: str | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in a fork of an interpreter that has our code imported, where that is the same."""
        environment, text = self.environment(keys=keys) | dict(env or {}), input or ""
        return warm.run(self.argv(*words), self.cwd, environment, text)

    def start(self, *words: str, keys: bool = False, **options: Any) -> subprocess.Popen[str]:
        """Start a command; its output is piped unless `options` say otherwise."""
        defaults: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        defaults["env"] = self.environment(keys=keys)
        return subprocess.Popen(self.argv(*words), cwd=self.cwd, **(defaults | options))


def maps(url: str, hosts: Iterable[str] = HOSTS) -> list[str]:
    """--map options that send the usual hosts to `url`."""
    return [word for host in hosts for word in ("--map", f"{host}={url}")]
