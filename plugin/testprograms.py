"""The programs that one test starts: which tape each has, what is left of it, and what came of them."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tapeproxy.plugin.freshtapes import fresh, put_beside, settle
from tapeproxy.plugin.modes import deed_of, is_expired
from tapeproxy.plugin.options import TapeOptions
from tapeproxy.plugin.programs import (
    FROZEN,
    ProgramError,
    record_it,
    record_program,
    replay_program,
    update_program,
    wire_words,
)
from tapeproxy.proxy.inprocess.flows import outside
from tapeproxy.proxy.inprocess.tapes import load_again
from tapeproxy.proxy.recorded import can_record
from tapeproxy.proxy.testplaces import SUFFIX, program_path
from tapeproxy.tapes.errors import NoTapeError, Place

if TYPE_CHECKING:
    from tapeproxy.plugin.programs import ProgramRun


class TestPrograms:
    """`reports`: of those that were replayed. `expired`: their tapes that are older than they may be."""

    __test__ = False  # for pytest, which looks at the name

    def __init__(self, tape: Path, options: TapeOptions) -> None:
        """`tape` is the test's own."""
        self.reports: list[Mapping[str, Any]] = []
        self.expired: list[Path] = []
        self._tape = tape
        self._options = options
        self._started = 0
        self._owns: dict[int, Path] = {}
        self._made: tempfile.TemporaryDirectory[str] | None = None
        self._recorded: dict[Path, Path] = {}
        self._changed: dict[Path, Path] = {}

    def run(self, argv: Sequence[str], **options: Any) -> "ProgramRun":
        """Run one. `options`: as `programs` has them. Raises what `TestTape.run` raises."""
        self._started += 1
        path = program_path(self._tape, self._started)
        given = self._options
        expired = path.exists() and self._is_expired(path)
        deed = deed_of(given.mode, exists=path.exists(), expired=expired, recorder=can_record())
        if deed == "update" and given.mode == "update":
            new = fresh(path)
            self._changed[new] = path
            return update_program(path, new, argv, wire_words(given.hosts, given.upstream_ca), given.rules, **options)
        if deed == "record":
            new = fresh(path)
            self._recorded[new] = path
            return record_program(new, argv, given.hosts, given.upstream_ca, **options)
        if not path.exists():
            raise NoTapeError("there is no such tape yet", place=Place(str(path)), fix=record_it(given.mode))
        if expired:
            self.expired.append(path)
        own = self._owns[self._started] = self._folder() / f"{self._started}{SUFFIX}"
        try:
            done = replay_program(path, argv, given.rules, own, **options)
        except ProgramError as error:
            self.reports.append(error.report)
            if given.frozen:
                raise ProgramError(path, error.what, error.report, fix=FROZEN) from None
            raise
        self.reports.append(done.report)
        return done

    def _is_expired(self, path: Path) -> bool:
        given = self._options
        if given.max_age is None or given.mode in ("all", "rewrite"):  # there what is there may be anything
            return False
        with outside():  # by the real clock, and no read of the test's
            return is_expired(load_again(path).head.started_at, given.max_age, datetime.now(UTC))

    def close(self, *, keep: bool) -> Iterator[tuple[Path, str]]:
        """End them; `keep`: what was recorded takes its place. Yields what was updated, and how it differs."""
        if self._made is not None:
            self._made.cleanup()
        for new, path in self._recorded.items():
            settle(new, path if keep else None)
        for new, path in self._changed.items():
            if keep and new.exists():
                yield path, put_beside(new, path, accept=self._options.accept)
            settle(new, None)

    def leave(self, stem: Path) -> Iterator[Path]:
        """Leave tapes of what they did, as STEM.run1.tape.jsonl.gz and so on."""
        for number, own in self._owns.items():
            if own.exists():
                left = program_path(stem.with_name(f"{stem.name}{SUFFIX}"), number)
                shutil.copyfile(own, left)
                yield left

    def left_over(self) -> Iterator[str]:
        """What they did not ask for or say of their tapes, in lines."""
        for report in self.reports:
            name = os.path.basename(str(report.get("tape", "")))  # noqa: PTH119 - a name, and no file
            if unused := report.get("unused"):
                yield f"{name}: {unasked(unused)}"
            for one in report.get("unsaid", ()):
                yield f"{name}: exchange {one['exchange']}: {one['heard']} of {one['taped']} messages were said"

    def _folder(self) -> Path:
        """Where the tapes are of what programs did, until the test is over."""
        self._made = self._made or tempfile.TemporaryDirectory(prefix="tapeproxy-")
        return Path(self._made.name)


def unasked(numbers: Sequence[int]) -> str:
    """The exchanges that nobody asked for, in a line."""
    listed = ", ".join(f"exchange {number}" for number in numbers[:5])
    return f"{len(numbers)} answers were not asked for: {listed}"
