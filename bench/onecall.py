"""One call within an interpreter, played back: by `tapeproxy.replay`, by vcrpy and by cassetter, side by side.

    python -m bench.onecall tapeproxy=PYTHON vcrpy=PYTHON cassetter=PYTHON

Each PYTHON is that of an environment with the tool and httpx or httpx2; the one of tapeproxy needs `tapeproxy[record]`.
`call` is one of many within a context, `context` is one that is opened for one call, as a test does. Our tape has
lanes, clock and chance, as those of tests have: what times it is a clock that was put aside before. All compare bodies.
It is run by hand, and what it says is in docs/PYTEST.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from tapeproxy.testing import FakeProvider

ROUNDS = 5
_SCRIPT = """
import json, pathlib, statistics, sys, time, urllib.request
try:
    import httpx2 as httpx
except ImportError:
    import httpx

CALLS = 100
CLOCK = {"now": time.perf_counter}  # in a table, and so nobody's to replace
tool, deed, url = sys.argv[1:]

def opened(name, deed=deed):
    if tool == "tapeproxy":
        import tapeproxy
        path = name + ".tape.jsonl.gz"
        return tapeproxy.record(path) if deed == "record" else tapeproxy.replay(path)
    if tool == "vcrpy":
        import vcr
        use = vcr.use_cassette
    else:
        import cassetter
        use = cassetter.use_cassette
    mode = "once" if deed == "record" else "none"
    return use(name + ".yaml", record_mode=mode, match_on=["method", "uri", "body"])

client = httpx.Client()
place, headers = url + "/v1/chat/completions", {"content-type": "application/json", "authorization": "Bearer none"}

def body(number):
    messages = [{"role": "user", "content": f"Say the number {number}."}]
    return json.dumps({"model": "gpt-4.1-mini", "messages": messages}).encode()

def by_httpx(number):
    assert client.post(place, content=body(number), headers=headers).raise_for_status().read()

def by_urllib(number):
    with urllib.request.urlopen(urllib.request.Request(place, body(number), headers)) as answer:
        assert answer.read()

WAYS = {"httpx": by_httpx, "urllib": by_urllib}
if tool == "cassetter":  # which does not hear it
    del WAYS["urllib"]
told = {}
for name, ask in WAYS.items():
    calls, contexts = [], []
    with opened(name):
        for number in range(CALLS):
            begun = CLOCK["now"]()
            ask(number)
            calls.append(CLOCK["now"]() - begun)
    for number in range(1 if deed == "record" else CALLS):
        begun = CLOCK["now"]()
        with opened(name + "-one"):
            ask(0)
        contexts.append(CLOCK["now"]() - begun)
    told[name] = {"call": statistics.median(calls), "context": statistics.median(contexts)}
print(json.dumps(told))
"""


def main(named: list[str]) -> None:
    pythons = dict(word.split("=", 1) for word in named)
    found: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as name, FakeProvider() as provider:
        folders = {tool: Path(name) / tool for tool in pythons}
        for tool, folder in folders.items():
            folder.mkdir()
            _run(pythons[tool], folder, tool, "record", provider.url)
        provider.stop()
        for _ in range(ROUNDS):
            for tool, folder in folders.items():
                for client, figures in _run(pythons[tool], folder, tool, "replay", provider.url).items():
                    for what, seconds in figures.items():
                        found.setdefault((tool, client, what), []).append(seconds)
    for (tool, client, what), seconds in found.items():
        low, *_, high = sorted(seconds)
        print(f"{tool}, {client}, {what}: {median(seconds) * 1e3:.2f} ms ({low * 1e3:.2f}-{high * 1e3:.2f})")


def _run(python: str, folder: Path, tool: str, deed: str, url: str) -> dict[str, dict[str, float]]:
    """What the script tells; it has to pass."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    argv = [python, "-c", _SCRIPT, tool, deed, url]
    done = subprocess.run(argv, cwd=folder, env=kept, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{tool}, {deed}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    told: dict[str, dict[str, float]] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    main(sys.argv[1:])
