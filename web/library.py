"""What the page's server asks of whoever has the tapes and runs forks: the interface, no implementation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Json


@dataclass(frozen=True, slots=True)
class Listed:
    """A tape in the list: its name, when it was last written (s since 1970), bytes, whether it still grows."""

    name: str
    written: float
    size: int
    recording: bool


@dataclass(frozen=True, slots=True)
class Looked:
    """A tape as it is now. `ending` None: it is being recorded."""

    tape: Tape
    ending: Ending | None


@dataclass(frozen=True, slots=True)
class ForkOrder:
    """A fork as the page orders it: options of `tapeproxy fork` in pairs, such as ("--set", "7:$.a=1")."""

    options: tuple[tuple[str, str], ...]
    rerun: str = "future"
    keyless: tuple[str, ...] = field(default=())


class Shown(Protocol):
    """One tape. Calls block, and may come from any thread."""

    def look(self) -> Looked:
        """The tape as it is now. Raises TapeproxyError."""
        ...

    def since(self, serial: int) -> tuple[int, frozenset[int]]:
        """A number that says what there is now, and the exchanges of which something came since another such number.

        Whoever follows a tape begins with 0.
        """
        ...

    def causality(self) -> Causality:
        """The causal order of what there is."""
        ...

    def file(self) -> bytes | None:
        """The bytes of the file; None of an encrypted one."""
        ...


class Library(Protocol):
    """The tapes that the page may show."""

    def listed(self) -> Sequence[Listed]:
        """All tapes, the newest first."""
        ...

    def open(self, name: str) -> Shown:
        """One of them. Raises KeyError for a name that is not in the list."""
        ...

    def plan(self, name: str, order: ForkOrder) -> Json:
        """What a fork would reuse and ask anew. Raises TapeproxyError, and KeyError as `open` does."""
        ...

    def fork(self, name: str, order: ForkOrder) -> Json:
        """Begin a fork: `fork` (its id) and `child` (the name of its tape). Raises as `plan` does."""
        ...

    def fork_state(self, number: int) -> Json:
        """`running`, `exit_code`, `output` (the end of what it printed), `child`, and whether that tape has `begun`.

        Raises KeyError.
        """
        ...

    def stop_fork(self, number: int) -> None:
        """Interrupt a fork, as Ctrl-C does. Raises KeyError."""
        ...
