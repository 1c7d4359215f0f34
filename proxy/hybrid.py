"""One fork from beginning to end: the tape's part served, the rest live, and a child tape of it all.

Knows the order; the wire is a recording's, the answers a replay's. What is decided about a request is ForkJudge's.
One module, for the order of opening and closing all its parts is what it is about.
"""

import contextlib
import errno
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, child_environment, upstream_of
from tapeproxy.proxy.commands import check_command
from tapeproxy.proxy.followed import FollowedTape, Lost, unheard
from tapeproxy.proxy.forked import Forked, ForkSettings, Parent, exit_code
from tapeproxy.proxy.forkjudge import ForkJudge
from tapeproxy.proxy.forkshims import ForkShims
from tapeproxy.proxy.forkwire import ForkWire
from tapeproxy.proxy.newtapes import open_child
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.recorded import Recorded, RecordSettings
from tapeproxy.proxy.recording import OwnRecording, wire_options
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.replaying import stopping_at
from tapeproxy.proxy.roots import agents_bundle
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.proxy.supervisor import Outcome, StopSignal, held_signals, run_child
from tapeproxy.proxy.tapedrun import edited_environment, facts_here, placeholders, taped_argv, taped_redactor, with_seed
from tapeproxy.proxy.tapefile import load, write_error
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.proxy.wireoptions import WireOptions
from tapeproxy.tapes.branches import inherited
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.forkplan import ForkPlan, anew, kept
from tapeproxy.tapes.fronts import parse_fronts
from tapeproxy.tapes.hints import nowhere, served_bodies
from tapeproxy.tapes.lanes import has_node
from tapeproxy.tapes.reading import taped_rules
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.redactionrules import RedactionRules
from tapeproxy.tapes.secretvars import placeholder_names, secret_names
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.tapes.updateplan import UpdatePlan
from tapeproxy.tapes.valuefutures import with_changes
from tapeproxy.tapes.violations import Drift, Violation

type Noticed = Callable[[Violation | Drift], None]


def open_parent(path: Path, ask: Ask = ask_environment) -> Parent:
    """Load a tape that is to be forked. Raises TapeFormatError and LockedTapeError."""
    tape, ending = load(path, ask)
    tape.head, _ = with_seed(tape.head)
    return Parent(path, tape, ending)


def check_ready(settings: ForkSettings) -> None:
    """Whether a fork can begin, whatever its plan is going to be. Raises UsageError where a live call would want a key
    that is not there, and TapeExistsError."""
    _absent_secrets(settings, live=True)
    if not settings.force and settings.out.exists():
        raise write_error(settings.out, FileExistsError(errno.EEXIST, ""))


async def run_fork(settings: ForkSettings, noticed: Noticed = lambda _: None, lost: Lost = unheard) -> Forked:
    """Run the agent by the plan, and write the child tape.

    `noticed` hears of violations and drifts as they happen, `lost` when the child tape stops being whole. Raises
    UsageError where a live call would want a key that is not there, before anything is run; and what `record` and
    `replay` raise, leaving no child.
    """
    argv = settings.argv or taped_argv(settings.parent.tape, settings.parent.path)
    absent = _absent_secrets(settings)
    check_command(argv, settings.environment)
    stop = StopSignal()
    with held_signals():
        fork = Forking(settings, argv, absent, stopping_at(settings.max_violations, stop, noticed), lost)
        await fork.open()
        try:
            recorded = await fork.run(stop)
        finally:
            await fork.close()
    return fork.result(recorded)


@contextlib.asynccontextmanager
async def forking(settings: ForkSettings, noticed: Noticed = lambda _: None) -> "AsyncIterator[Forking]":
    """Have this very process run by the plan, by whoever leads its requests to the port. `finish` writes the child.

    Raises what `run_fork` raises, but for the agent's errors.
    """
    fork = Forking(settings, (), _absent_secrets(settings), noticed, unheard)
    await fork.open()
    try:
        yield fork
    finally:
        await fork.close()


@dataclass(slots=True)
class _Parts:
    """What a fork has opened."""

    server: TapeServer
    wire: ForkWire
    session: OwnRecording
    shims: ForkShims | None


class Forking:
    """A fork that is set up, run, and taken down."""

    def __init__(
        self, settings: ForkSettings, argv: tuple[str, ...], absent: tuple[str, ...], noticed: Noticed, lost: Lost
    ) -> None:
        parent, plan = settings.parent.tape, settings.plan
        self._given = edited_environment(parent.head, settings.environment)
        for name, value in plan.environment.items():
            self._given.pop(name, None)
            if value is not None:
                self._given[name] = value
        way = settings.way
        self._fronts = parse_fronts(parent.head.reverse) if way.fronts is None else way.fronts
        # The password of a proxy is a secret, too.
        secret = {"": way.upstream_proxy} if way.upstream_proxy else {}
        as_replay = ReplaySettings(
            tape=settings.parent.path,
            environment=self._given | secret,
            argv=argv,
            shim=settings.shim and _has_shim(settings),
        )
        self._settings = settings
        self._argv = argv
        self._absent = absent
        self._redactor = taped_redactor(parent, as_replay)
        self._run = RunProcesses(os.urandom(8).hex())
        strangers = Strangers(self._run, node=has_node(parent.head))
        self._tape = FollowedTape(self._redactor, strangers, lost)
        try:
            self._is_absent = nowhere if plan.runs_tools else served_bodies(parent, plan.live)
            self._replayer = Replayer(
                kept(parent, plan),
                self._redactor,
                self._run.owns_port,
                noticed,
                fork=plan,
                anew=anew(parent, plan),
                here=facts_here(parent, as_replay),
                rules=settings.rules,
                keeps_order=as_replay.shim,
                absent=self._is_absent,
            )
        except ValueError as error:
            raise TapeFormatError(str(error), place=Place(str(settings.parent.path))) from None
        stand_ins = {placeholder(name) for name in (*absent, *secret_names(self._given))}
        self._judge = ForkJudge(parent, plan, self._replayer, self._tape.drain, stand_ins)
        self._strangers = strangers
        self._parts: _Parts
        self.forked: Forked

    async def open(self) -> None:
        """Serve the tape, listen, and create the child. Raises what `run_fork` does, and leaves nothing behind."""
        settings, ca = self._settings, CertificateAuthority.open()
        recording = self._recording()
        shims: ForkShims | None = None
        server = TapeServer(self._replayer, lambda host, _: ca.server_context(host), lambda _host, _port: False)
        server.decide, server.before_request = self._judge.redeem, self._judge.look
        wire = ForkWire(self._wire_options(recording, ca), self._tape, self._redactor, self._run, self._tape.untagged)
        wire.obey(self._judge, await server.start())
        try:
            await wire.start()
            fronts = await wire.open_fronts(self._fronts)
            wire.failures.at_first = lambda error: self._tape.lost(f"something could not be taped: {error}")
            if isinstance(settings.plan, UpdatePlan):
                self._judge.left = settings.plan.leave
            if recording.shim:
                told = with_changes(settings.parent.tape, settings.plan.values)
                shims = ForkShims(told, settings.plan, self._replayer, self._redactor, self._strangers)
                self._tape.heard = shims.hear
                if self._judge.left is not None:
                    self._judge.left = shims.leave
            # Last, so that a port in use leaves no tape, and replaces none.
            folder = open_child(
                recording, self._tape, load_key(), self._redactor, settings.parent.tape.head, self._told()
            )
        except BaseException:
            await wire.stop()
            await server.stop()
            if shims is not None:
                shims.finish()
            raise
        environment = self._environment(ca, wire.port) | fronts.variables()
        if shims is not None and folder is not None:
            environment |= shims.fork_variables(self._given, f"127.0.0.1:{wire.port}", folder)
        session = OwnRecording(self._tape, wire, environment, recording)
        session.fronts = fronts
        self._parts = _Parts(server, wire, session, shims)

    async def run(self, stop: StopSignal) -> Recorded:
        """Run the agent to its end, and seal the child. Raises the supervisor's errors, leaving no child."""
        settings, session = self._settings, self._parts.session
        try:
            outcome = await run_child(
                self._argv,
                session.environment,
                stop=stop,
                timeout=settings.timeout,
                confine=settings.guard.confinement(session.port, *session.fronts.open),
                stdio=settings.stdio,
            )
        except Exception:
            await session.discard()
            raise
        return await session.finish(outcome)

    @property
    def port(self) -> int:
        """The wire's port."""
        return self._parts.wire.port

    async def pause(self) -> None:
        """End the wire alone."""
        await self._parts.session.pause()

    async def go_on(self) -> None:
        """Have one again, on another port. Raises WireError."""
        await self._parts.session.go_on()

    async def finish(self, outcome: Outcome | None) -> Recorded:
        """End the wire, then the child. `forked` says then what came of it."""
        recorded = await self._parts.session.finish(outcome)
        self.forked = self.result(recorded)
        return recorded

    async def close(self) -> None:
        """Take all down; again does nothing."""
        parts = self._parts
        await parts.wire.stop()
        await parts.server.stop()
        if parts.shims is not None:
            parts.shims.finish()

    def result(self, recorded: Recorded) -> Forked:
        """What came of it."""
        replayer, judge, plan = self._replayer, self._judge, self._settings.plan
        shims = self._parts.shims
        to_serve = plan.served | plan.mutated.keys()
        cards = replayer.index.cards()
        unused = [card.number for card in cards if not card.used and not card.inside and card.number in to_serve]
        lanes = {one.number: one.request.lane for one in outlines(self._settings.parent.tape.exchanges)}
        covered = [number for number in unused if self._is_absent(lanes[number])]
        drifts = replayer.drifts
        return Forked(
            exit_code(self._settings, recorded, violations=bool(replayer.violations), drifts=bool(drifts)),
            recorded,
            reused=judge.reused,
            mutated=judge.mutated,
            live=judge.live_of.total(),
            live_of=dict(judge.live_of),
            unasked=tuple(number for number in unused if number not in covered),
            covered=tuple(covered),
            violations=replayer.violations,
            drifts=drifts,
            notes=[*([] if shims is None else shims.notes()), *replayer.findings.soft_notes()],
        )

    def _recording(self) -> RecordSettings:
        """The child as a recording: by the parent's rules."""
        settings, head = self._settings, self._settings.parent.tape.head
        return RecordSettings(
            tape=settings.out,
            argv=self._argv,
            environment=self._given,
            cwd=settings.cwd,
            force=settings.force,
            hosts=settings.hosts,
            upstream_ca=settings.upstream_ca,
            client_certs=settings.client_certs,
            host_certs=settings.way.host_certs,
            upstream_proxy=settings.way.upstream_proxy,
            fronts=self._fronts,
            no_tape=tuple(dict.fromkeys((*head.no_tape, *settings.way.no_tape))),
            timeout=settings.timeout,
            shim=settings.shim and _has_shim(settings),
            io=head.io and settings.shim and _has_shim(settings),
            within=settings.within,
            rules=tuple(dict.fromkeys((*taped_rules(head), *settings.rules))),
            redaction=RedactionRules.from_json(head.rules),
            secret=settings.secret,
        )

    def _wire_options(self, recording: RecordSettings, ca: CertificateAuthority) -> WireOptions:
        """As a recording's, but that of the hosts which are kept off the tape only those pass by that are to."""
        plan = self._settings.plan
        offline = isinstance(plan, UpdatePlan) and plan.offline
        return replace(wire_options(recording, ca), no_tape=() if offline else self._settings.way.no_tape)

    def _told(self) -> Json:
        """What the child's head says of the fork."""
        settings, parent = self._settings, self._settings.parent
        seal = parent.tape.seal
        name = self._redactor.text(parent.path.name)
        branch = branch_of(parent.tape, settings.plan) | inherited(parent.tape.head, settings.plan)
        if "environment" in branch:
            branch["environment"] = self._redacted(branch["environment"])
        return {
            "parent": {"name": name, "trace": None if seal is None else seal.trace, "last": parent.ending.hash},
            "branch": branch,
            "edit": None if settings.edit is None else self._redacted(settings.edit),
            "secrets": tuple(sorted({*secret_names(self._given), *self._absent})),
        }

    def _redacted(self, told: Json) -> Json:
        out: Json = orjson.loads(self._redactor.content(orjson.dumps(told)))
        return out

    def _environment(self, ca: CertificateAuthority, port: int) -> dict[str, str]:
        """What the agent gets, but for its shim."""
        settings = self._settings
        child = ChildSettings(
            f"http://127.0.0.1:{port}",
            agents_bundle(ca, upstream_of(settings.environment), passing=bool(settings.way.no_tape)),
            ca.certificate,
            self._run.run_id,
            {name: placeholder(name) for name in self._absent},
            replay=True,
        )
        return child_environment(self._given, child) | settings.guard.variables(self._given)


def _has_shim(settings: ForkSettings) -> bool:
    return settings.parent.tape.head.seed is not None


def branch_of(tape: Tape, plan: ForkPlan) -> Json:
    """Where a fork leaves its tape, as its head tells it (docs/FORMAT.md)."""
    branch: Json = {"events": list(plan.branch), "rerun": plan.rerun, "served": len(plan.served)}
    if isinstance(plan, UpdatePlan):
        branch["update"] = True
    if plan.branch:
        request = tape.exchanges[plan.branch[0] - 1].request
        branch |= {"lane": request.lane, "n": request.n}
    return branch


class AbsentSecretError(UsageError):
    """Secret variables, `names`, are not set that a live call may need."""

    def __init__(self, names: Sequence[str], where: str) -> None:
        self.names = names
        which = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
        fix = f"set it, or say that no live call needs it: {' '.join(f'--keyless {name}' for name in names)}"
        super().__init__(f"a fork calls the world, and {which} not set as in the recording", where=where, fix=fix)


def _absent_secrets(settings: ForkSettings, *, live: bool = False) -> tuple[str, ...]:
    """The secret variables that get a placeholder. Raises UsageError for one that a live call may need.

    `live`: there are going to be some, whatever the plan says by now.
    """
    environment = settings.environment
    unset = (name for name in placeholders(settings.parent.tape) if not environment.get(name))
    names = dict.fromkeys((*unset, *placeholder_names(environment)))
    needed = [name for name in names if name not in settings.keyless]
    if needed and (live or settings.plan.cut):
        raise AbsentSecretError(needed, str(settings.parent.path))
    return tuple(names)
