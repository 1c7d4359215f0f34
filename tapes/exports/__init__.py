"""What a tape is in formats of others, one module a format. Pure: a tape goes in, pieces of a file come out.

Each module has a function `export(tape, source, lost)` that yields the file's bytes. `source` is what to call the tape.
`lost` is told, in a sentence each, what the format cannot hold of this tape.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from tapeproxy.tapes.exchanges import Tape

type Lost = Callable[[str], None]


class Exporter(Protocol):
    """See the module's text. Raises ValueError for a tape that cannot be put into the format at all."""

    def __call__(self, tape: Tape, source: str, lost: Lost) -> Iterator[bytes]: ...
