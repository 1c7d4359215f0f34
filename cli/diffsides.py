"""The two tapes of a diff as they are shown: path, tape and totals. Knows files, prints nothing."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tapeproxy.cli.unlocking import Unlocking
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.summary import Totals, summarise, total


@dataclass(frozen=True)
class Shown:
    """A tape and the path it was read from."""

    path: str
    tape: Tape

    @cached_property
    def totals(self) -> Totals:
        """Counted when they are asked for: that reads every answer."""
        return total(self.tape, map(summarise, self.tape.exchanges))


def read_sides(paths: tuple[Path, Path], unlocking: Unlocking) -> tuple[Shown, Shown]:
    """Both tapes. Raises TapeFormatError, NoTapeError and LockedTapeError, with the path of the one it is about."""
    from tapeproxy.proxy.tapefile import load

    first, second = (Shown(str(path), load(path, unlocking.ask)[0]) for path in paths)
    return first, second
