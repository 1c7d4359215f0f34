"""The results as a table for the terminal and as docs/BENCHMARKS.md. Pure."""

from collections.abc import Mapping, Sequence

from bench.figures import Bar, Line, Skipped, amount

_COLUMNS = ("what", "ours", "peer", "figure", "bar", "")

_INTRODUCTION = """\
# Benchmarks

Written by `make bench`; don't edit. Ours and the peers take turns in one run on one machine, so compare the ratios and
not the figures: another machine, or a busy one, moves both sides. A cell shows the median and, in brackets, the lowest
and highest of its rounds. A figure in x is ours divided by the peer's, round by round, and the median of that. A row
has about a minute: fewer rounds then, on a slow machine. A bar in brackets is the one for 1.0.
"""

_HOW = """
## How it is measured

- **Load.** Conversations that grow from 20 to 200 KB over 40 turns, as agents send them, on 8 connections, each with a
  request under way at any time. Every request is different and used once, and every answer (1 KB) is checked to be the
  one for its request. Ours is the command itself, `tapeproxy replay TAPE -- the load generator`. mitmdump gets the
  same conversations in its own format: `server_replay_reuse=false`, `server_replay_extra=kill`, quiet, lazy.
- **The load generator** is one Python process (`bench/load.py`) with one selector loop. It seals all its TLS records
  before the clock starts, so that it only hands finished bytes to the kernel and reads the answers. nginx's figure
  under the same load shows that it is not what limits the others.
- **nginx** (one worker, TLS, no proxy) gives everything the same answer: it neither looks at a body nor keeps it. By
  itself it answers as soon as it has a request's head and decrypts the body afterwards: the floor for the load. For
  the time to the whole answer that would be no comparison. There it reads the body first, which it only does when it
  passes the request on (to itself, over a Unix socket, without the body).
- **mockttp** (Node) is a proxy as ours is, with a rule for each request, as its documentation has it, or with one
  callback that looks the body up in a table, which is the most that can be made of it. **WireMock** (Java) has a stub
  for each request, is asked straight, and has had the same load once before: Java compiles what runs often. Both get
  conversations of 10 turns, of the same sizes, because with rules they take longer with each one that they have.
- **One httpx client** asks 40 requests of a conversation, one after the other, in a Python that is the same for all;
  the time is from the first to the last, taken outside, for tools that record clocks give the agent an old one. vcrpy,
  cassetter and reeltime answer inside the agent, with no connection and no TLS; that is less than we do, and can't be
  had for agents that are not Python. timefork is a proxy without TLS.
- **Start** is a whole process, from start to exit, `true` included. mitmdump's is until it says that it listens.
- **Record.** The load again, answered by a server that reads a request and gives 1 KB, over TLS on both sides. The
  mitmproxy with no addon is the one that we record with, with the same options; the difference is what taping costs:
  credentials are looked for, everything is written before it is passed on, and ours is the only one of them that does.
- **First event.** One warm connection straight to a TLS server on this machine and one through the proxy, in turns; the
  figure is the median of the differences, pair by pair. mitmdump as it comes passes nothing on before the end.
- **Pace.** Streams of events 2 to 40 ms apart. An event's error is the time at which it came out of the client's
  socket, less the time at which it was due after its request; early counts as late does. Beside it, what the machine
  allows at the moment: the same for a process that only sleeps until each event is due.
- **The agent of 8 turns** is the httpx client with a model that thinks for 400 ms. Its calls alone are compared, since
  an interpreter and its imports take as long with any tool.
- **The big tape** has bodies of 200 KB that share nothing. The time is a whole `replay` from its start, and the client
  process that asks for the first exchange on the tape is in it. `python -m bench --full big-tape` takes one of 1 GB.
- **Shim calls** are the fastest of five loops in a process that is being recorded, and the same without the shim.
"""

_LIMITS = """
## Where the time goes, and what the limit is

**Replay.** A request of the load has 110 KB on average. What any server has to do is to take it from the kernel and
decrypt it, and that is all that nginx does. The tape server also parses HTTP, digests the whole request (BLAKE3: an
answer is given out for the very bytes that were taped, or after a comparison by value, and for nothing less) and
renders the answer. The lines below show these steps without sockets, and the loopback alone. `perf` on the server's
process under this load, by library: Python 42 %, the kernel 17 %, OpenSSL 15 %, copying (libc) 12 %, BLAKE3 10 %, the
HTTP parser 3 %. Python's share is some 290 calls a request, none of which stands out. Decrypting, copying and digesting
grow with the request and run in C; the rest does not grow.

An asyncio server that only decrypts and gives one fixed answer, measured while this one was written, got about twice
the requests: that is what one thread of Python could still gain at most. uvloop made no difference, because at this
size the event loop's part is small; nor do larger socket buffers, for a request is there whole when its turn comes (679
reads for 640 requests, counted on a busy machine). Comparing with the taped body instead of digesting the request would
save a tenth, and needs all bodies in memory. Several threads or processes would help on more cores, but no agent comes
near this load, and one order of giving out answers is worth more.

The first request of a replay needs a certificate for its host. To sign one takes 58 ms, nearly all of it to load the
library that signs; so certificates are kept, and later replays need 3 ms.

**Record.** Of the recorder's processor time under its load, `perf` has 69 % in Python, 11 % in the kernel, 10 % in
copying, 4 % in gzip and as much in OpenSSL; two thirds of the Python are mitmproxy's and pyOpenSSL's: some 95 events
pass through mitmproxy's layers for a request. Ours, by function and request of 110 KB: to look for secrets in its body
0.16 ms (a conversation's new part and 16 KB before it; all of it would be 0.5 ms), to find what it shares with earlier
ones 0.05 ms, to write it 0.1 ms; its answer of 1 KB, with head and end, 0.1 ms. `mitmdump -w` writes after the fact,
and everything whole.

What the recorder adds to the first event of a stream is mostly mitmproxy's way through two layers of TLS and two of
HTTP, there and back; mitmdump, told to stream, adds more. To stay under 1 ms would take another proxy.
"""


def terminal(results: Sequence[Line | Skipped]) -> str:
    """A table with aligned columns."""
    rows = [_COLUMNS, *map(_cells, results)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join((lines[0], "-" * max(map(len, lines)), *lines[1:])) + "\n"


def document(results: Sequence[Line | Skipped], facts: Mapping[str, str], date: str) -> str:
    """docs/BENCHMARKS.md."""
    held = [one for one in results if isinstance(one, Skipped) or one.bar is not None or one.peer is not None]
    others = [one for one in results if one not in held]
    about = "".join(f"- {name}: {what}\n" for name, what in {"date": date, **facts}.items())
    return f"{_INTRODUCTION}\n{about}\n{_markdown(held)}{_HOW}{_LIMITS}\n{_markdown(others)}"


def _markdown(results: Sequence[Line | Skipped]) -> str:
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *map(_cells, results)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(result: Line | Skipped) -> tuple[str, ...]:
    if isinstance(result, Skipped):
        return result.what, "", "", "", "", f"skipped: {result.why}"
    peer = "" if result.peer is None else f"{result.peer.name}: {result.peer}"
    figure = f"{amount(result.figure)} {result.unit}"
    if result.spread is not None:
        figure += f" ({amount(result.spread[0])}-{amount(result.spread[1])})"
    return result.what, str(result.ours), peer, figure, _bar(result.bar, result.unit), result.verdict


def _bar(bar: Bar | None, unit: str) -> str:
    if bar is None:
        return ""
    sign = "≥" if bar.sense == "at least" else "≤"
    later = f" ({sign} {bar.later:g})" if bar.later is not None else ""
    return f"{sign} {bar.limit:g} {unit}{later}"
