"""What `--allow` means of a tape: a host and a port, or a host alone, whose ports the tape has in its notes."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tapeproxy.proxy.guard import HostPort
from tapeproxy.proxy.tapefile import read_entries
from tapeproxy.proxy.unlocking import Ask
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Note

_ANY = 1
"""In the place of a port, so that a host alone is read as any other."""


def allowed(texts: Iterable[str], tape: Path, ask: Ask) -> list[HostPort]:
    """Read HOST:PORT, or HOST for the ports at which it passed the recording by (`--no-tape`).

    Only for the latter the tape is read. Raises UsageError, and what reading it raises.
    """
    return [place for text in texts for place in _places(text.strip(), tape, ask)]


def _places(text: str, tape: Path, ask: Ask) -> list[HostPort]:
    if ":" in text and not text.endswith("]"):
        return [HostPort.parse(text)]
    host = HostPort.parse(f"{text}:{_ANY}").host
    ports = dict.fromkeys(_noted(host, tape, ask))
    if not ports:
        raise UsageError(
            f"--allow {text} names no port, and the tape has no note that {text} passed by",
            where=str(tape),
            fix=f"name the port, as in --allow {text}:443",
        )
    return [HostPort(host, port) for port in ports]


def _noted(host: str, tape: Path, ask: Ask) -> Iterator[int]:
    for entry in read_entries(tape, ask=ask):
        if isinstance(entry.record, Note) and entry.record.what == "no-tape":
            data = entry.record.data or {}
            port = data.get("port")
            if str(data.get("host", "")).lower().strip("[]") == host and isinstance(port, int):
                yield port
