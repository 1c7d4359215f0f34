"""An update of a tape within this interpreter: what is on it is answered from it, what isn't is recorded.

The wire is that of a fork (`proxy/hybrid.py`), so the new tape has both, in the order in which they were asked.
"""

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal

from tapeproxy.proxy.drafts import drafted
from tapeproxy.proxy.forked import Forked, ForkSettings, Parent
from tapeproxy.proxy.hybrid import forking
from tapeproxy.proxy.inprocess.clamp import ROOT
from tapeproxy.proxy.inprocess.recordings import Record, Session
from tapeproxy.proxy.inprocess.replays import TapeViolationError
from tapeproxy.proxy.recorded import Recorded, Within
from tapeproxy.proxy.tapedrun import placeholders, with_seed
from tapeproxy.proxy.tapefile import load, read_entries
from tapeproxy.tapes.appending import with_leftovers
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.positions import is_within
from tapeproxy.tapes.records import Seal
from tapeproxy.tapes.rewriting import encoded
from tapeproxy.tapes.secretvars import placeholder_names
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.tapes.updateplan import update_of
from tapeproxy.tapes.violations import Drift, Violation

type Keep = Literal["asked", "all"]
"""Of the old tape: what was asked for again, or what was not, too."""


class Update(Record):
    """An open update of the tape `of`, as a context manager, plain or async; the new tape is written to `path`.

    `forked` says afterwards what was reused and asked anew, `changed` whether the new tape says anything new.
    `violations` has what was refused: what could not be read, or held the placeholder of a key that is not set.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        of: str | os.PathLike[str],
        *,
        keep: Keep = "asked",
        hosts: Mapping[str, str] | None = None,
        upstream_ca: str | os.PathLike[str] | None = None,
        rules: Iterable[str] = (),
    ) -> None:
        """`keep`: what of the old tape is on the new one. The others as for `Record`, and a file at `path` is replaced.

        Raises TapeFormatError, and UsageError where both are one file.
        """
        if os.path.realpath(path) == os.path.realpath(of):
            what = "a new tape is not written over the one that it is made of"
            raise UsageError(what, where=str(path), fix="name another, and put it in its place afterwards")
        tape, ending = load(Path(of))
        tape.head, _ = with_seed(tape.head, within=True)
        self.parent = Parent(Path(of), tape, ending)
        self.violations: list[Violation] = []
        self.forked: Forked
        self._keep = keep
        self._placeholders: list[str] = []
        super().__init__(path, force=True, hosts=hosts, upstream_ca=upstream_ca, rules=rules)

    @property
    def changed(self) -> bool:
        """Whether the new tape has what the old one has not, or lacks what that has."""
        forked = self.forked
        return bool(forked.live or (self._keep == "asked" and (forked.unasked or forked.drifts)))

    def resume(self, root: str = ROOT) -> None:
        """As of a recording; a client that wants a key can be made without one, until it asks something new."""
        for name in placeholders(self.parent.tape):
            if not os.environ.get(name):
                os.environ[name] = placeholder(name)
                self._placeholders.append(name)
        super().resume(root)

    def suspend(self) -> None:
        super().suspend()
        for name in self._placeholders:
            if os.environ.get(name) == placeholder(name):
                del os.environ[name]
        self._placeholders.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raises TapeWriteError where the tape is not whole, and TapeViolationError where something was refused."""
        super().__exit__(kind, error, traceback)
        self._judge(error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, traceback)
        self._judge(error)

    def _judge(self, error: BaseException | None) -> None:
        if self.violations and (error is None or isinstance(error, Exception)):
            fix = "set the keys that the new requests need"
            raise TapeViolationError(self.parent.path, self.violations, fix=fix) from error

    def finish(self) -> Recorded:
        """End the wire, then the tape. Raises TapeWriteError where it is not whole."""
        recorded = super().finish()
        if self._keep == "all" and self.changed and self.forked.unasked:
            self._append()
        return recorded

    def _append(self) -> None:
        """Put what of the old tape was not asked for behind the rest."""
        tape, numbers = self.parent.tape, set(self.forked.unasked)
        indexes = {one.index for one in tape.exchanges if one.number in numbers}
        records = [entry.record for entry in read_entries(self.path)]
        seal = records.pop()
        assert isinstance(seal, Seal)
        old = (entry.record for entry in read_entries(self.parent.path))
        whole = list(with_leftovers(records, old, indexes))
        with drafted(self.path, force=True) as file:
            file.writelines(encoded(whole, seal))

    def _within(self) -> Within | None:
        # Chance is the tape's, so that what is asked as before is drawn as before. The clock is real.
        within, head = super()._within(), self.parent.tape.head
        if within is None or not is_within(head) or head.seed is None:
            return within
        return replace(within, seed=head.seed)

    def _wired(self) -> AbstractAsyncContextManager[Session]:
        return self._forking()

    @asynccontextmanager
    async def _forking(self) -> AsyncIterator[Session]:
        settings, tape = self._settings, self.parent.tape
        fork = ForkSettings(
            parent=self.parent,
            plan=update_of(tape),
            out=self.path,
            environment=settings.environment,
            cwd=settings.cwd,
            force=True,
            hosts=settings.hosts,
            upstream_ca=settings.upstream_ca,
            keyless=frozenset((*placeholders(tape), *placeholder_names(settings.environment))),
            on_drift="report",
            shim=False,
            within=settings.within,
            rules=settings.rules,
        )
        async with forking(fork, self._notice) as session:
            yield session
            self.forked = session.forked

    def _notice(self, found: Violation | Drift) -> None:
        if isinstance(found, Violation):
            self.violations.append(found)


update = Update
