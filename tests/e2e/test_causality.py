"""Two workers that run at the same time: the tape tells who knew what, and each replay finds the same."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.testing import FakeProvider

PROGRAM = Path(__file__).parent / "programs" / "two_workers.py"
KINDS = {
    "threads": ("m/t0", "m/t1", "m"),
    "pool": ("m/w0", "m/w1", "m"),
    "queues": ("m/t0", "m/t1", "m"),
    "tasks": ("m/a0/a0", "m/a0/a1", "m"),
}


def record(cli: Cli, home: Path, *argv: str, tape: str = "t.jsonl.gz") -> Tape:
    """Record the program against a provider that takes 60 ms for an answer."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script={"reply": [{"text": "yes", "delay_ms": 60}]}, tls=tls) as provider:
        done = cli.run("record", "-o", tape, *maps(provider.url), "--", sys.executable, *argv)
    assert done.returncode == 0, done.stderr
    return load(cli.cwd / tape)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_tape_tells_who_knew_what(kind: str, cli: Cli, home: Path) -> None:
    alice, bob, main = KINDS[kind]
    tape = record(cli, home, str(PROGRAM), kind)
    causality = Causality.of(tape)
    at = {(one.request.lane, one.request.n): one.number for one in tape.exchanges}
    first, last = at[main, 0], at[main, 1]
    assert causality.order() == (first, at[alice, 0], at[bob, 0], at[alice, 1], at[bob, 1], last)
    assert causality.future(at[alice, 0]) == {at[alice, 1], last}
    assert causality.clock(at[bob, 1]) == {main: 2, bob: 3}
    assert causality.clock(last) == {main: 3, alice: 4, bob: 4}
    begun = [tape.exchanges[at[lane, 0] - 1].request.t for lane in (alice, bob)]
    ends = [tape.exchanges[at[lane, 1] - 1].end for lane in (alice, bob)]
    assert max(begun) < min(end.t for end in ends if end is not None), "the workers did not overlap"
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (done.returncode, report["drifts"], report["notes"]) == (0, [], []), done.stderr
