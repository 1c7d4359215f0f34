"""`make demo`: record a real SDK agent against the bundled fake provider, then replay it with the provider stopped.

usage: python examples/demo.py [AGENT]          default: research.py
"""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

HERE = Path(__file__).parent
TAPEPROXY = Path(sys.executable).with_name("tapeproxy")
HOSTS = ("api.openai.com", "api.anthropic.com", "search.example.com")


def say(text: str) -> None:
    print(f"\n\033[1m# {text}\033[0m" if sys.stdout.isatty() else f"\n# {text}", flush=True)


def run(*words: str, environment: dict[str, str], expect: int = 0) -> str:
    """Run one tapeproxy command as a person would, show it and what it prints; returns its standard output."""
    print(
        f"$ tapeproxy {shlex.join(words)}".replace(sys.executable, "python").replace(f"{Path.cwd()}/", ""), flush=True
    )
    done = subprocess.run([TAPEPROXY, *words], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    if done.returncode != expect:
        sys.exit(f"demo: exit code {done.returncode}, expected {expect}")
    return done.stdout


def main() -> None:
    agent = [sys.executable, str(HERE / (sys.argv[1] if len(sys.argv) > 1 else "research.py"))]
    keyless = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.endswith("_BASE_URL")}
    keys = keyless | {"OPENAI_API_KEY": "sk-demo-0123456789abcdef", "ANTHROPIC_API_KEY": "sk-ant-demo-0123456789"}
    tape = ".tapes/demo.tape.jsonl.gz"
    tls = CertificateAuthority.open().server_context("127.0.0.1")
    provider = FakeProvider(script=HERE / "provider.toml", tls=tls).start()
    try:
        say("Record: the agent believes it talks to its real hosts, over TLS. A fake provider answers.")
        maps = [word for host in HOSTS for word in ("--map", f"{host}={provider.url}")]
        began = time.monotonic()
        recorded = run("record", "--force", "-o", tape, *maps, "--", *agent, environment=keys)
        live = time.monotonic() - began
    finally:
        provider.stop()

    say("Replay: the provider is stopped, there is no key and no network.")
    began = time.monotonic()
    replayed = run("replay", tape, environment=keyless)
    offline = time.monotonic() - began
    if replayed != recorded:
        sys.exit("demo: the replay printed something else")
    print(f"identical output, {live:.1f} s live, {offline:.1f} s replayed (most of it Python importing the SDK)")

    say("Verify: the tape is whole and nobody changed it.")
    run("verify", tape, environment=keyless)

    say("Show: what happened.")
    run("show", tape, environment=keyless)

    say("Change the prompt: what is not on the tape is a violation, explained, never a silent miss.")
    run("replay", tape, "--", *agent, "Why is the sea salty?", environment=keyless, expect=3)
    say(f"The tape is {tape}. Now try your own: .venv/bin/tapeproxy record -- python your_agent.py")


if __name__ == "__main__":
    main()
