"""How a run ended, in words; knows the seal and the exit record."""

from tapeproxy.tapes.records import Exit, Seal


def outcome(seal: Seal | None, exit: Exit | None) -> str:
    """How a run ended, in a word or two: `exit 0`, `killed by SIGKILL`, `timeout`, `interrupted` without a seal."""
    if seal is None:
        return "interrupted"
    if exit is not None and seal.outcome in ("exited", "killed"):
        return f"exit {exit.code}" if exit.signal is None else f"killed by {exit.signal}"
    return seal.outcome
