"""How a run ended, in words; knows the seal and the exit record."""

from collections.abc import Iterable

from tapeproxy.tapes.records import Exit, Note, Record, Seal

REPAIRED = "repaired"
"""The outcome in the seal of a tape that was interrupted, and closed afterwards."""
FAILURE = "recorder-failure"
"""The note of a recorder that could not tape something."""
GAP = "the tape has a gap: "
"""How `gaps` begin."""
_SIGNALLED = 128
"""Shells and many programs exit with this and the signal's number."""


def outcome(seal: Seal | None, exit: Exit | None) -> str:
    """How a run ended, in a word or two: `exit 0`, `killed by SIGKILL`, `timeout`, `Ctrl-C, exit 7`.

    `interrupted` without a seal.
    """
    if seal is None:
        return "interrupted"
    if exit is None or seal.outcome not in ("exited", "killed", "user"):
        return seal.outcome
    ended = f"exit {exit.code}" if exit.signal is None else f"killed by {exit.signal}"
    return _stopped(exit, ended) if seal.outcome == "user" else ended


def gaps(records: Iterable[Record]) -> list[str]:
    """What the recorder knew to be missing on its tape, a sentence each; of all but its notes nothing is asked."""
    return [GAP + one.text for one in records if isinstance(one, Note) and one.what == FAILURE]


def broke_off(seal: Seal | None) -> bool:
    """Whether a tape ends where its recorder was stopped, and not its run: interrupted, or repaired after that."""
    return seal is None or seal.outcome == REPAIRED


def _stopped(exit: Exit, ended: str) -> str:
    """A run that its user ended; which signal it was, a tape says only where the agent died of it or names it."""
    if exit.signal == "SIGINT" or exit.code == _SIGNALLED + 2:
        return "Ctrl-C"
    other = exit.signal is not None or (exit.code or 0) > _SIGNALLED
    return ended if other else f"Ctrl-C, {ended}"
