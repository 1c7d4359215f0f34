"""What is said of a recording, at its end and when it fails. Knows what a `Recorded` holds; prints what can't wait."""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.rendering import block, count, duration, printable, size

if TYPE_CHECKING:
    from tapeproxy.proxy.recorded import Recorded
    from tapeproxy.proxy.supervisor import Outcome

UNTAPED = {
    "bypass": "a connection to {host} did not come through the proxy ({n}) and is not on the tape",
    "websocket-untaped": "WebSocket frames to {host} passed through untaped ({n}); a replay can't serve them",
    "early-untaped": "{host} sent more early heads (1xx) than a tape keeps ({n}); a replay sends the first ones alone",
    "refused-by-proxy": "a request to {host} was refused by the record wire itself ({n}) and is not on the tape",
    "tunnel-untaped": "a tunnel to {host} was not HTTP and passed through untaped ({n}); a replay can't serve it",
    "no-tape": "{host} was called ({n}) and passed by untaped, as --no-tape says; a replay refuses it without --allow",
    "client-refused-ca": (
        "a client refused our certificate for {host} ({n}): it reads none of SSL_CERT_FILE, REQUESTS_CA_BUNDLE, "
        "CURL_CA_BUNDLE, NODE_EXTRA_CA_CERTS; give it the certificate of `tapeproxy ca`"
    ),
}
_HOW = {
    "upstream-cut": "the server closed the connection",
    "reset": "the connection was reset",
    "connect-error": "no connection",
    "unfinished": "it had not ended",
}
_ADVICE = (
    (("certificate verify failed",), " (see --upstream-ca)"),
    (
        ("upstream proxy", "407"),
        " (give a name and password that it takes: --upstream-proxy http://USER:PASSWORD@HOST:PORT; "
        "Basic alone is spoken)",
    ),
    (("upstream proxy",), " (see --upstream-proxy)"),
)
"""Words that an error has, and what to do then."""
_LEFT = "client-gone"
_REASONS = 3
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_NODE = frozenset({"node", "nodejs", "npm", "npx", "tsx", "ts-node"})
_NODE_NEEDS = "Node before 20, or before 24 (22.21) with --no-shim, does not come by the proxy, see docs/LIMITS.md"


def warnings(result: "Recorded") -> Iterator[str]:
    """What has to be said even where little is to be said: what is not on the tape, and why the run was stopped."""
    for (what, host), times in result.untaped.items():
        n = "once" if times == 1 else f"{times} times"
        template = UNTAPED.get(what, what + " {host} ({n})")
        yield "warning: " + template.format(host=printable(host), n=n)
    for said, times in result.troubles.items():
        yield f"warning: {printable(said)}" + ("" if times == 1 else f" ({times} times)")
    if result.outcome is not None and result.outcome.stopped_by == "timeout":
        yield f"stopped the run after {duration(result.duration_ns)} (--timeout)"
    if result.outcome is not None and result.outcome.stopped_by == "tape":
        yield "stopped the run: its tape could not be written whole (--strict-tape)"
    if result.failure is not None:
        yield f"the tape is not whole: {block(result.failure)}"


def warner(*, strict: bool) -> Callable[[str], None]:
    """Says once, between the agent's own lines, that the tape is not whole."""
    then = "the run is stopped (--strict-tape)" if strict else "the run goes on, and is not taped whole"
    told: list[str] = []

    def warn(why: str) -> None:
        if not told:
            told.append(why)
            with contextlib.suppress(OSError):  # a terminal that is gone, too, is nothing to the agent
                click.echo(f"tapeproxy: warning: {block(why)}\ntapeproxy: {then}", err=True)

    return warn


def closing_lines(result: "Recorded", argv: Sequence[str] = ()) -> Iterator[str]:
    """How many exchanges were taped, what became of them, and where. `argv`: the agent's, if there was one."""
    taped, place = f"taped {count(result.exchanges, 'exchange')}", printable(str(result.path))
    taped += f", {count(result.calls, 'tool call')}" if result.calls else ""
    taped += f" and {count(result.values, 'read')} past the wire" if result.values else ""
    took, length = duration(result.duration_ns), size(result.size)
    endings = _endings(result.failed)
    if endings:
        yield f"{taped}, {endings}"
        yield f"the tape is {place} ({length}, {took})"
    else:
        yield f"{taped} in {took} ({length}): {place}"
    if not result.exchanges and not result.values and not result.calls:
        yield _why_nothing(result.outcome, argv)


def astray(result: "Recorded") -> Iterator[str]:
    """What failed on our way to the world, which may not have without us; for whoever does not hear closing lines."""
    ours = {key: n for key, n in result.failed.items() if _advice(key[2])}
    if ours:
        yield f"warning: {_endings(ours)}"


def _endings(failed: Mapping[tuple[str, str, str], int]) -> str:
    """`3 failed: api.openai.com: certificate verify failed (see --upstream-ca)`; empty when all are complete."""
    left = sum(n for (_, how, _), n in failed.items() if how == _LEFT)
    reasons: Counter[str] = Counter()
    for (host, how, error), n in failed.items():
        if how != _LEFT:
            reasons[f"{printable(host)}: {_reason(how, error)}"] += n
    facts = [f"{left} left by the client"] if left else []
    if reasons:
        named = [reason for reason, _ in reasons.most_common(_REASONS)]
        named += [f"and {count(len(reasons) - _REASONS, 'other reason')}"] if len(reasons) > _REASONS else []
        facts.append(f"{reasons.total()} failed: {'; '.join(named)}")
    return ", ".join(facts)


def _reason(how: str, error: str) -> str:
    text = _ERRNO.sub("", error) or _HOW.get(how, how)
    return printable(text[:1].lower() + text[1:].rstrip(".")) + _advice(text)


def _advice(text: str) -> str:
    said = text.lower()
    return next((advice for words, advice in _ADVICE if all(word in said for word in words)), "")


def _why_nothing(outcome: "Outcome | None", argv: Sequence[str]) -> str:
    node = bool(argv) and PurePath(argv[0]).name in _NODE
    if outcome is not None and outcome.returncode and outcome.stopped_by is None:
        ended = f"exited {outcome.code}" if outcome.signal is None else f"was killed by {outcome.signal}"
        line = f"nothing was taped: the agent {ended} before it asked anything"
        return f"{line}; {_NODE_NEEDS}" if node else line
    if node:
        return f"nothing was taped: {_NODE_NEEDS}"
    return "nothing was taped: does the agent honour HTTPS_PROXY? See docs/LIMITS.md"
