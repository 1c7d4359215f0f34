"""Every error tapeproxy raises on purpose; knows their fields and wording, not where they are caught.

One root, one leaf per question that a caller asks. An error carries fields; its message is composed from them and
says what happened, where, and what to do next. Anything that is not a `TapeproxyError` is a bug.
"""

from dataclasses import dataclass


class TapeproxyError(Exception):
    """The root. `what` happened, `where` (a path, a line, a host; may be empty), and what to do (`fix`)."""

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(what, where, fix)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.fix}" if self.fix else ""
        return f"{place}{self.what}{advice}"


def install(extra: str) -> str:
    """How to install one of our extras. The package is in no index yet, so a clone is what a user has."""
    return f"pip install '.[{extra}]' (in a clone of tapeproxy)"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a tape something is: its `source` (a path, or any name) and 1-based `line` (0: the file itself)."""

    source: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}" if self.line else self.source


class TapeFormatError(TapeproxyError):
    """The bytes are not a tape that this version can read: damaged, edited, hostile, or too new."""

    exit_code = 5

    def __init__(self, what: str, *, place: Place, fix: str = "") -> None:
        self.place = place
        super().__init__(what, where=str(place), fix=fix)


class NoTapeError(TapeFormatError):
    """There is no such file: nothing is wrong with a tape, the name is."""

    exit_code = 2


class TapeWriteError(TapeproxyError):
    """A tape could not be created or written: no space, no permission."""

    exit_code = 5


class TapeExistsError(TapeWriteError):
    """The tape is there already, and is not replaced unasked."""

    exit_code = 2


class UsageError(TapeproxyError):
    """The command line or a setting asks for something that cannot be done."""


class PortInUseError(TapeproxyError):
    """The address to listen on is taken, or may not be used. `port` as asked for."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host, self.port, self.reason = host, port, reason
        super().__init__(
            f"cannot listen on {host}:{port}: {reason}",
            fix="leave --port out to take a free one, or name another",
        )


class LockedTapeError(TapeproxyError):
    """The tape is encrypted, and the key or passphrase for it is missing or wrong: nothing is said about the tape."""
