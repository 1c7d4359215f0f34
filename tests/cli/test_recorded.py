from collections.abc import Mapping
from pathlib import Path

import pytest

from tapeproxy.cli.recorded import astray, closing_lines, warnings
from tapeproxy.proxy.recorded import Recorded
from tapeproxy.proxy.supervisor import Outcome, StopCause

PATH = Path(".tapes/a.tape.jsonl.gz")
type Failed = Mapping[tuple[str, str, str], int]


def recorded(
    exchanges: int = 3,
    code: int = 0,
    stopped_by: StopCause | None = None,
    failed: Failed | None = None,
    failure: str | None = None,
) -> Recorded:
    return Recorded(PATH, 2100, exchanges, 520_000_000, {}, Outcome(code, 1, stopped_by), failure, failed or {})


def test_a_recording_in_one_line() -> None:
    assert [*closing_lines(recorded(1))] == [f"taped 1 exchange in 520 ms (2.1 kB): {PATH}"]


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (
            {("api.openai.com", "connect-error", "Certificate verify failed: self-signed certificate"): 3},
            "3 failed: api.openai.com: certificate verify failed: self-signed certificate (see --upstream-ca)",
        ),
        (
            {("a:1", "connect-error", "[Errno 111] Connect call failed"): 1, ("b", "upstream-cut", ""): 2},
            "3 failed: b: the server closed the connection; a:1: connect call failed",
        ),
        (
            {("a", "connect-error", "Upstream proxy p:1 refused HTTP CONNECT request: 407 Proxy"): 1},
            "1 failed: a: upstream proxy p:1 refused HTTP CONNECT request: 407 Proxy (give a name and password that it "
            "takes: --upstream-proxy http://USER:PASSWORD@HOST:PORT; Basic alone is spoken)",
        ),
        (
            {("a", "connect-error", "through the upstream proxy p:1: Connect call failed"): 1},
            "1 failed: a: through the upstream proxy p:1: Connect call failed (see --upstream-proxy)",
        ),
        ({("a", "client-gone", "gone"): 2}, "2 left by the client"),
        (
            {("a", "client-gone", ""): 1, ("b", "reset", ""): 1},
            "1 left by the client, 1 failed: b: the connection was reset",
        ),
        ({("a", "unfinished", ""): 1}, "1 failed: a: it had not ended"),
        (
            {(host, "reset", "no"): 9 - n for n, host in enumerate("abcde")},
            "35 failed: a: no; b: no; c: no; and 2 other reasons",
        ),
        ({("\x1b[2J", "reset", "\u202e"): 1}, "1 failed: \\x1b[2J: \\u202e"),
    ],
)
def test_what_did_not_end_well_is_said_with_its_reasons(failed: Failed, said: str) -> None:
    first, second = closing_lines(recorded(failed=failed))
    assert first == f"taped 3 exchanges, {said}"
    assert second == f"the tape is {PATH} (2.1 kB, 520 ms)"


NODE = "Node before 20, or before 24 (22.21) with --no-shim, does not come by the proxy, see docs/LIMITS.md"


@pytest.mark.parametrize(
    ("argv", "code", "stopped_by", "said"),
    [
        (("python", "agent.py"), 0, None, "does the agent honour HTTPS_PROXY? See docs/LIMITS.md"),
        (("python", "agent.py"), 2, None, "the agent exited 2 before it asked anything"),
        (("python", "agent.py"), -9, None, "the agent was killed by SIGKILL before it asked anything"),
        (("python", "agent.py"), -15, "timeout", "does the agent honour HTTPS_PROXY? See docs/LIMITS.md"),
        (("/usr/bin/node", "a.mjs"), 0, None, NODE),
        (("npx", "tsx", "a.ts"), 1, None, f"the agent exited 1 before it asked anything; {NODE}"),
        ((), 0, None, "does the agent honour HTTPS_PROXY? See docs/LIMITS.md"),
    ],
)
def test_why_nothing_may_have_been_taped(
    argv: tuple[str, ...], code: int, stopped_by: StopCause | None, said: str
) -> None:
    _, line = closing_lines(recorded(0, code, stopped_by), argv)
    assert line == f"nothing was taped: {said}"


def test_what_is_said_even_when_little_is() -> None:
    assert [*warnings(recorded())] == []
    result = recorded(code=-15, stopped_by="timeout", failure="no space left on device")
    assert [*warnings(result)] == [
        "stopped the run after 520 ms (--timeout)",
        "the tape is not whole: no space left on device",
    ]


def test_what_failed_on_our_way_is_said_even_when_little_is() -> None:
    failed = {("a", "connect-error", "Certificate verify failed: self-signed"): 2, ("b", "reset", "no"): 1}
    assert [*astray(recorded(failed=failed))] == [
        "warning: 2 failed: a: certificate verify failed: self-signed (see --upstream-ca)"
    ]
    assert [*astray(recorded(failed={("b", "reset", "no"): 1}))] == []


def test_what_passed_untaped_is_said() -> None:
    untaped = {("tunnel-untaped", "db:5432"): 1, ("bypass", "\x1b[2J"): 2, ("new-kind", "x"): 1}
    first, second, third = warnings(Recorded(PATH, 1, 1, 1, untaped))
    assert first == (
        "warning: a tunnel to db:5432 was not HTTP and passed through untaped (once); a replay can't serve it"
    )
    assert second.startswith("warning: a connection to \\x1b[2J did not come through the proxy (2 times)")
    assert third == "warning: new-kind x (once)"
