"""What the page's server asks of whoever has the tapes and runs forks: the interface, no implementation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Json


class NotThereError(LookupError):
    """There is no tape, exchange or fork of this name or number."""


class StillRecordedError(Exception):
    """A tape of which the end is wanted is still recorded."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A tape in the list: its name, when it was last written (s since 1970), bytes, whether it still grows."""

    name: str
    written: float
    size: int
    recording: bool


@dataclass(frozen=True, slots=True)
class About:
    """What the list says of a tape once it was read. None: not counted, as of a tape that grows or is very long.

    `outcome` is in words: `exit 0`, `recording`, `encrypted`, `damaged`. Tokens are those that models said they read
    and wrote.
    """

    started_at: str | None
    argv: tuple[str, ...]
    outcome: str
    exchanges: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    is_fork: bool = False


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

    @property
    def identity(self) -> str:
        """Who counts the numbers of `since`: another `Shown`, of the same tape or not, has another one."""
        ...

    def look(self) -> Looked:
        """The tape as it is now. Raises TapeproxyError."""
        ...

    def since(self, serial: int) -> tuple[int, frozenset[int] | None, Looked]:
        """A number that says what there is now, the exchanges of which something came since another such number, and
        the tape. None: all of it, for it is another tape than it was then, or has ended meanwhile.

        Whoever follows a tape begins with 0. Raises TapeproxyError.
        """
        ...

    def kept(self, what: str, make: Callable[[Looked], str]) -> str:
        """What `make` tells of the tape as it is now. Of one that has ended it is remembered as `what`, until the tape
        is another one. Raises TapeproxyError."""
        ...

    def causality(self) -> Causality:
        """The causal order of what there is. Raises TapeproxyError."""
        ...

    def file(self) -> Iterator[bytes] | None:
        """The bytes of the file, in pieces; None of an encrypted one. Raises TapeproxyError."""
        ...


class Library(Protocol):
    """The tapes that the page may show."""

    def listed(self) -> Sequence[Listed]:
        """All tapes, the newest first. Opens none."""
        ...

    def about(self, name: str) -> About:
        """What the list says of one. Raises as `open` does; a tape that can't be read is told, not raised."""
        ...

    def open(self, name: str) -> Shown:
        """One of them. Raises NotThereError for a name that is not in the list."""
        ...

    def plan(self, name: str, order: ForkOrder) -> Json:
        """What a fork would reuse and ask anew. Raises TapeproxyError, and NotThereError as `open` does."""
        ...

    def fork(self, name: str, order: ForkOrder) -> Json:
        """Begin a fork: `fork` (its id) and `child` (the name of its tape). Raises as `plan` does."""
        ...

    def forks(self) -> Sequence[Json]:
        """The forks that were begun here: `fork`, `parent` (a tape), `at` (an exchange, or None), `child`, `running`,
        `exit_code`, and whether the child's tape has `begun`."""
        ...

    def fork_state(self, number: int) -> Json:
        """`running`, `exit_code`, `output` (the end of what it printed), `child`, and whether that tape has `begun`.

        Raises NotThereError.
        """
        ...

    def stop_fork(self, number: int) -> None:
        """Interrupt a fork, as Ctrl-C does. Raises NotThereError."""
        ...
