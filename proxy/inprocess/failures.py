"""How code in a replay within this interpreter fails: by a violation, or by another way to what is on the tape."""

from collections.abc import Sequence
from pathlib import Path

from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.tapes.violations import Drift, Violation

_SHOWN = 3
_ANEW = "if the change is meant, record the tape anew"


def _listed(found: Sequence[Violation | Drift]) -> str:
    more = len(found) - _SHOWN
    return "\n".join(one.to_text() for one in found[:_SHOWN]) + (f"\nand {more} more" if more > 0 else "")


class TapeViolationError(TapeproxyError):
    """The code in a replay did what is not on the tape. `violations` has each of them."""

    exit_code = 3

    def __init__(self, tape: Path, violations: Sequence[Violation], *, fix: str = "") -> None:
        self.violations = list(violations)
        super().__init__(_listed(self.violations), where=str(tape), fix=fix or _ANEW)


class LateRequestWarning(UserWarning):
    """What code has started in a replay asked for something when that was over, and was refused."""


class TapeDriftError(TapeproxyError):
    """All that was asked is on the tape, but the code in a replay came another way to it. `drifts` has where."""

    exit_code = 4

    def __init__(self, tape: Path, drifts: Sequence[Drift], *, fix: str = "") -> None:
        self.drifts = list(drifts)
        super().__init__(_listed(self.drifts), where=str(tape), fix=fix or _ANEW)
