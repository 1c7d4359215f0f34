"""What if an answer had been another: a taped run as it was, and again with an edit. For programs; prints nothing."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tapeproxy.proxy.calledfunction import command_of, result_in
from tapeproxy.proxy.edited import prepare
from tapeproxy.proxy.forked import Forked, ForkSettings, Parent
from tapeproxy.proxy.guard import GuardChoice, GuardPlan, establish
from tapeproxy.proxy.hybrid import AbsentSecretError, open_parent, run_fork
from tapeproxy.proxy.outputs import Output, captured
from tapeproxy.proxy.repeating import repeat
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.edits import Edit, parse_edit
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.forkplan import Rerun
from tapeproxy.tapes.hints import conclusions
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.tapediff import Compared, TapeDiff, diff_tapes
from tapeproxy.tapes.violations import Drift, Violation

type Program = Sequence[str] | Callable[[], object]
"""What is run: a command line, or a function at the top of a module, in a Python of its own; it may be async."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program. `tape`: what it heard; `path`: where that is, None where it was not kept.

    `output` and `errors`: the first MiB of what it printed. `result`: what the function returned, as JSON has it, or as
    its `repr` where JSON has no such thing; None for a command line. `violations` and `drifts`: where it did not do
    what is on the tape.
    """

    tape: Tape = field(repr=False)
    path: Path | None
    exit_code: int
    output: str
    errors: str
    result: Any
    violations: tuple[Violation, ...] = ()
    drifts: tuple[Drift, ...] = ()

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """What it asked, and what it was answered."""
        return self.tape.exchanges

    @property
    def final(self) -> list[Any]:
        """What it concluded (`hints.final_state`), as JSON; by lane, in the order of each."""
        return [read_json(value.content or b"null")[0] for value in conclusions(self.tape)]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Two runs: `before` is a replay of the tape, offline; `after` is the fork. `difference` is their tapes' whole.

    `edits`: what was changed, a line each, redacted. `forked`: what was reused, mutated and live.
    """

    before: Run
    after: Run
    edits: tuple[str, ...]
    difference: TapeDiff = field(repr=False)
    forked: Forked = field(repr=False)

    @property
    def diverged(self) -> list[Compared]:
        """The events that are not the same in both, each with its number here and there; that which was edited, too."""
        return self.difference.diverged()


def what_if(
    tape: str | os.PathLike[str],
    edit: str | Edit | Iterable[str | Edit],
    fn: Program = (),
    **options: Any,
) -> WhatIf:
    """Run a taped agent as it was, and again with an edit; say where the two part. For `options` see `what_if_async`.

    Not for use within an event loop.
    """
    return asyncio.run(what_if_async(tape, edit, fn, **options))


async def what_if_async(
    tape: str | os.PathLike[str],
    edit: str | Edit | Iterable[str | Edit],
    fn: Program = (),
    *,
    at: int | str | None = None,
    rerun: Rerun = "future",
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    hosts: Mapping[str, str] | None = None,
    upstream_ca: str | os.PathLike[str] | None = None,
    keyless: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    guard: GuardChoice = "auto",
) -> WhatIf:
    """Run a taped agent as it was, offline, and again with `edit`, where what follows from it is asked live.

    `edit`: one or several, as `tapeproxy fork` takes them (docs/FORK.md): `"12:$.a=1"`, `"text New"`, `"model NAME"`.
    `fn`: what to run, the taped command by default. `at`: the event for edits that name none. `out`: keep the child
    tape there. `hosts`: other addresses for hosts, as `--map` (`{"api.openai.com": "http://127.0.0.1:8000"}`).
    `keyless`: secret variables that no live call needs. `timeout` in seconds, of each run.

    Raises UsageError for an edit that does not fit the tape, before anything is run, and what a replay and a recording
    raise.
    """
    given = dict(os.environ if environment is None else environment)
    parent = open_parent(Path(tape))
    asked = [edit] if isinstance(edit, str) or not isinstance(edit, Iterable) else list(edit)
    edits = [parse_edit(one) if isinstance(one, str) else one for one in asked]
    prepared = prepare(parent, edits, given, at=at, rerun=rerun)
    plan = establish(guard, live=True)
    with tempfile.TemporaryDirectory(prefix="tapeproxy-what-if-") as folder:
        child = Path(folder, "child.tape.jsonl.gz") if out is None else Path(out)
        before = await _replayed(parent, _Program(fn, Path(folder, "before")), given, plan, timeout)
        program = _Program(fn, Path(folder, "after"))
        settings = ForkSettings(
            parent=parent,
            plan=prepared.plan,
            out=child,
            environment=given,
            cwd=str(Path.cwd()),
            argv=program.argv,
            force=force,
            edit=prepared.told,
            hosts=_hosts(hosts or {}),
            upstream_ca=None if upstream_ca is None else Path(upstream_ca),
            guard=plan,
            keyless=frozenset(keyless),
            timeout=timeout,
        )
        try:
            after, forked = await _forked(settings, program, kept=out is not None)
        except AbsentSecretError as error:
            fix = f"set it in `environment`, or say that no live call needs it: keyless={list(error.names)!r}"
            raise UsageError(error.what, where=error.where, fix=fix) from None
    return WhatIf(before, after, tuple(prepared.lines), diff_tapes(parent.tape, after.tape), forked)


class _Program:
    """What is run, and where its result is put."""

    def __init__(self, fn: Program, result: Path) -> None:
        """Raises UsageError for a function that another Python cannot find."""
        self._result = result if callable(fn) else None
        self.argv = command_of(fn, result) if callable(fn) else tuple(fn)

    @property
    def result(self) -> Any:
        """What the function returned; None where it did not, or there is none."""
        return None if self._result is None else result_in(self._result)


async def _replayed(
    parent: Parent, program: _Program, environment: Mapping[str, str], guard: GuardPlan, timeout: float | None
) -> Run:
    """The run as it is on the tape: nothing is asked of anyone."""
    settings = ReplaySettings(
        tape=parent.path, environment=environment, argv=program.argv, guard=guard, timeout=timeout, on_drift="report"
    )
    repeated = await repeat(settings, 1)
    if not repeated.runs:
        raise UsageError("the run was interrupted", where=str(parent.path))
    run = repeated.runs[0]
    replayed = run.replayed
    return Run(
        parent.tape,
        parent.path,
        replayed.exit_code,
        _text(run.stdout),
        _text(run.stderr),
        program.result,
        tuple(replayed.violations),
        tuple(replayed.drifts),
    )


async def _forked(settings: ForkSettings, program: _Program, *, kept: bool) -> tuple[Run, Forked]:
    """The run with the edit, on a tape of its own."""
    async with captured() as capture:
        try:
            forked = await run_fork(replace(settings, stdio=capture.stdio))
        finally:
            capture.let_go()
        stdout, stderr = await capture.finish()
    if forked.recorded.failure is not None:
        raise UsageError(f"the child tape could not be written: {forked.recorded.failure}", where=str(settings.out))
    run = Run(
        load(settings.out)[0],
        settings.out if kept else None,
        forked.exit_code,
        _text(stdout),
        _text(stderr),
        program.result,
        tuple(forked.violations),
        tuple(forked.drifts),
    )
    return run, forked


def _hosts(hosts: Mapping[str, str]) -> Mapping[str, str]:
    """Raises UsageError for what is no host or URL."""
    from tapeproxy.addons.hostmap import parse_map  # which imports mitmproxy

    return parse_map([f"{host}={url}" for host, url in hosts.items()])


def _text(output: Output) -> str:
    return output.text.decode(errors="replace")
