"""The shims of a replay: what they are told, and what becomes of what they report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tapeproxy.proxy.lockorder import write_order
from tapeproxy.proxy.pastends import PAST_END, PastEnd
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.servedrequests import ServedRequests
from tapeproxy.proxy.shimming import (
    IoMode,
    IoSettings,
    ShimSettings,
    epoch_ns,
    hash_seed_for,
    make_tmpdir,
    new_seed,
    shim_environment,
    write_reads,
)
from tapeproxy.proxy.sidecar import Line, Sidecars, to_record
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.proxy.tmpdir import Tmpdir, private_folder
from tapeproxy.tapes.branches import seeds_of
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.hints import HINTS, USED, hinted
from tapeproxy.tapes.lanes import edge_rules, has_node, keeps_apart
from tapeproxy.tapes.records import Edge, Lane, Note
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.troubles import WITHOUT_LANE, Troubles, sentence
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.hintvalues import HintCheck, ToolMode
    from tapeproxy.proxy.iovalues import ValueCheck
    from tapeproxy.proxy.tracing import TraceLines

_LOCK_ORDER = "lock-order"
_DROPPED = "edges-dropped"
_SHARED = "another replay of this tape runs at the same time and has the same TMPDIR: names there may differ"


class Shims:
    """The shims of one replay of one tape.

    A refused connection is a violation. What the shims could not do is a drift: then a clean run would prove less than
    it says. So are reads past the end of the tape, counted when all is over. Changed environment variables, and every
    other note, are `notes`. Where there is a `trace`, every read is told and put there.
    """

    def __init__(
        self,
        tape: Tape,
        replayer: Replayer,
        redactor: Redactor,
        strangers: Strangers,
        *,
        trace: "TraceLines | None" = None,
        io: IoMode | None = None,
        threads: bool = False,
        edges: bool = True,
        tools: "ToolMode" = "tape",
    ) -> None:
        self.trace = trace
        self.hints = _hint_check(tape, redactor, replayer, tools)
        self._tools: ToolMode = tools
        self._lanes: Literal["lane", "any", "position"] = "lane" if replayer.by_lane else "any"
        if replayer.by_position_not_by_content:
            self._lanes = "position"
        self._strangers = strangers
        self._troubles = Troubles()
        self._unlaned = any(note.what == WITHOUT_LANE for note in tape.notes)
        self._past: dict[str, PastEnd] = {}
        self._changed: list[str] = []
        self._notes: list[str] = []
        self._tape = tape
        self._edges = edge_rules(tape.head) if edges else 0
        self._met: list[Line] = []
        self._served = ServedRequests()
        self._io: IoMode = io or ("verify" if tape.head.io else "live")
        self._values = None if self._io == "live" else _value_check(tape, redactor, replayer)
        self._replayer = replayer
        self._redactor = redactor
        self._threads = threads
        self._folder = private_folder("tapeproxy-replay-")
        self._sidecars = Sidecars(self._folder)
        # A secret that is absent has a placeholder, and another key is what a replay is for.
        self._digests = {env.name: env.digest for env in tape.envs if env.name not in tape.head.secrets}
        self._tmpdir = Tmpdir(Path(make_tmpdir(tape.head.tmpdir)))

    def variables(self, parent: Mapping[str, str], proxy: str) -> dict[str, str]:
        """The variables for the agent's processes."""
        return shim_environment(parent, self.settings(parent, proxy))

    def settings(self, parent: Mapping[str, str], proxy: str) -> ShimSettings:
        """What the shims are told; writes the files that they read."""
        head = self._tape.head
        epoch = epoch_ns(head.started_at)
        reads = self._folder / "reads"
        write_reads(self._tape, reads)
        locks = self._folder / "locks"
        if self._threads:
            write_order(self._tape, locks, self._replayer.absent)
        hints = self._folder / "hints"
        if self.hints is not None:
            from tapeproxy.proxy.hintvalues import write_calls

            write_calls(self._tape, hints)
        return ShimSettings(
            mode="replay",
            seed=head.seed or new_seed(),
            hash_seed=head.hash_seed or hash_seed_for(parent),
            tmpdir=str(self._tmpdir.path),
            origin_ns=epoch + (head.origin or 0),
            sidecar=self._folder,
            proxy=proxy,
            reads=reads,
            strict=True,
            trace=self.trace is not None,
            io=self._io_settings(),
            threads=str(locks) if self._threads else "",
            edges=self._edges,
            seeds=seeds_of(head),
            node=has_node(head),
            apart=keeps_apart(head),
            hints=None if self.hints is None else hints,
            tools="live" if self._tools == "live" else self._lanes,
        )

    def _io_settings(self) -> IoSettings | None:
        if self._io == "live":
            return None
        from tapeproxy.proxy.iovalues import write_values

        values, overlay = self._folder / "values", self._folder / "overlay"
        write_values(self._tape, values)
        if self._io == "virtual":
            overlay.mkdir(mode=0o700)
        return IoSettings(mode=self._io, base=str(Path.cwd()), values=values, overlay=overlay)

    def drain(self) -> None:
        """Take what the shims have written since the last time."""
        for line in self._sidecars.drain():
            self._take(line)

    def untagged(self, port: int) -> None:
        """A request without a lane came from this port."""
        line = self._strangers.meet(port, self._sidecars.pids)
        # A client that the shim does not know was there while recording, too; that took nothing from the clamp.
        if line is not None and not (line["what"] == WITHOUT_LANE and self._unlaned):
            self._take(line)

    def serving(self, port: int, number: int, request: str) -> None:
        """A request of the run was passed on to one of its servers: see ServedRequests."""
        self._met += self._served.learn(port, number, request)

    def finish(self, *, sweep: bool = False) -> None:
        """Take what is left, say what only the end can tell, and remove what was made for the shims.

        `sweep`: and whatever the agent has put into its TMPDIR. What has come through pipes is compared now, as all of
        it has come.
        """
        self.drain()
        if self._values is not None:
            self._values.finish()
        if self.hints is not None:
            self._notes += self.hints.finish(astray=bool(self._replayer.violations) or self._replayer.fork is not None)
        self._compare_order()
        self._compare_meetings()
        for past in self._past.values():
            if past.soft:
                self._notes.append(past.to_text())
            else:
                self._replayer.drift(past.to_drift())
        self._sidecars.close()
        self._tmpdir.close(sweep=sweep)

    def _compare_order(self) -> None:
        """Another order alone is worth a note, unless it is for servers of the run to say; where something else differs
        too, it may well be why."""
        if self._replayer.injected:
            return
        for parent in self._replayer.order.given_up:
            what = f"the tasks of lane {parent} could not be kept in the tape's order: one waited in vain for another"
            self._notes.append(f"soft divergence: {what}")
        differs = bool(self._replayer.violations or self._replayer.drifts)
        for found in self._replayer.order.disorders():
            from tapeproxy.tapes.differences import Difference  # 3 ms, and seldom needed

            what = f"the tasks of lane {found.parent} completed in another order"
            orders = Difference("order", ", ".join(found.taped), ", ".join(found.now))
            if differs:
                self._replayer.drift(Drift(f"lane {found.parent}", what, (orders,)))
            elif not self._asked_servers(found.taped):
                self._notes.append(f"soft divergence: {what}: {orders.asked}; on the tape: {orders.taped}")

    def _asked_servers(self, lanes: Sequence[str]) -> bool:
        """Whether each of these asked a server of the run: those answer for real, one sooner and one later."""
        inside = {one.request.lane or "" for one in outlines(self._tape.exchanges) if one.request.inside}
        return all(any(one == lane or one.startswith(f"{lane}/") for one in inside) for lane in lanes)

    def _compare_meetings(self) -> None:
        """What lanes knew when they asked. An agent that was refused something goes another way from there on."""
        replayer = self._replayer
        if not self._edges or replayer.injected or replayer.violations or any(map(_is_dropped, self._tape.notes)):
            return
        from tapeproxy.tapes.meetingcheck import compare_meetings

        records = [to_record(line, 0, 0, self._redactor) for line in self._met]
        edges = [record for record in records if isinstance(record, Edge)]
        lanes = [record for record in records if isinstance(record, Lane)]
        served = {card.number for card in replayer.index.cards() if card.used}
        for drift in compare_meetings(self._tape, edges, lanes, served):
            replayer.drift(drift)

    def notes(self) -> list[str]:
        """What is worth knowing of the run, and no drift."""
        if self._tmpdir.shared and _SHARED not in self._notes:
            self._notes.append(_SHARED)
        if not self._changed:
            return self._notes
        names = ", ".join(self._changed)
        one = len(self._changed) == 1
        what = "an environment variable is not what it was" if one else "environment variables are not what they were"
        return [*self._notes, f"{what}: {names}"]

    def _take(self, line: Line) -> None:
        text = self._redactor.text
        if line["k"] == "lane" and isinstance(line.get("name"), str) and line["name"]:
            self._replayer.findings.call(text(str(line.get("id"))), text(line["name"]))
        if line["k"] == "hello" and "python" in line:
            self._replayer.learn(str(line["python"]))
        match line:
            case {"k": "site" | "read" | "hello"} if self.trace is not None:
                self.trace.take(line, text)
            case {"k": "value", "what": what} if what in HINTS:
                self._take_hint(line)
            case {"k": "violation", "what": what, "why": _} if self.hints is not None:
                self.hints.refused(line)
            case {"k": "value"}:
                if self._values is not None:
                    self._values.take(line)
            case {"k": "violation", "address": address}:
                where = text(str(line.get("where", "")))
                what = f"the agent tried to reach {text(str(address))} past the proxy, and was refused"
                self._replayer.violate(Violation("egress", f"{line.get('what', 'connect')} at {where}", what))
            case {"k": "note", "what": what} if what == _LOCK_ORDER and not self._replayer.injected:
                self._replayer.drift(Drift(text(str(line.get("lane", "?"))), text(str(line.get("text", what)))))
            case {"k": "note", "what": what} if what == PAST_END:
                self._begin_past(line)
            case {"k": "done", "lane": str(lane), "parent": str(parent), "ns": int(ns)}:
                self._replayer.order.done(lane, parent, ns)
            case {"k": "end", "lane": str(lane), "reads": int(reads)} if lane in self._past:
                self._past[lane].reads = reads
            case {"k": "note", "what": what} if sentence(line) is not None:
                said = self._troubles.take(line | {"text": text(str(line.get("text", "")))})
                if said is not None:
                    self._replayer.drift(Drift("the shim", said))
            case {"k": "note", "what": what} if what == USED and self.hints is not None:
                pass  # of a fork, which is taped
            case {"k": "note", "what": what}:
                self._notes.append(text(f"{what}: {line.get('text', '')}"))
            case {"k": "lane"} | {"k": "edge", "asked": int()} if self._edges:
                known = self._served.resolve(line)
                if known is not None:
                    self._met.append(known)
            case {"k": "env", "name": str(name)} if name in self._digests and name not in self._changed:
                if line.get("digest") != self._digests[name]:
                    self._changed.append(name)
            case _:
                pass

    def _take_hint(self, line: Line) -> None:
        if self.hints is not None and (value := self.hints.read(line)) is not None:
            self.hints.take(value, line)

    def _begin_past(self, line: Line) -> None:
        past = PastEnd.read(line, self._redactor.text)
        if past is None:
            self._notes.append(self._redactor.text(f"{PAST_END}: {line.get('text', '')}"))
            return
        # An agent that was refused something comes another way to all that follows.
        past.soft = past.soft or bool(self._replayer.injected)
        self._past.setdefault(past.id, past)


def _is_dropped(note: Note) -> bool:
    return note.what == _DROPPED


def _hint_check(tape: Tape, redactor: Redactor, replayer: Replayer, tools: "ToolMode") -> "HintCheck | None":
    if not hinted(tape):
        return None
    from tapeproxy.proxy.hintvalues import HintCheck  # as above

    told = (replayer.drift, replayer.violate, lambda: bool(replayer.injected))
    return HintCheck(tape, redactor, *told, live=tools == "live")


def _value_check(tape: Tape, redactor: Redactor, replayer: Replayer) -> "ValueCheck":
    from tapeproxy.proxy.iovalues import ValueCheck  # a replay without --io starts without it

    return ValueCheck(tape, redactor, replayer.drift)
