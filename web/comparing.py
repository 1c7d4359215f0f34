"""Two tapes of a library, compared; the last pairs are kept. May be asked by several threads."""

from functools import lru_cache

from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.tapediff import diff_tapes
from tapeproxy.web.library import Library, StillRecordedError
from tapeproxy.web.rundiff import RunDiff

_KEPT = 2


class Comparisons:
    """What the page shows of any two tapes of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._compared = lru_cache(_KEPT)(_compare)

    def of(self, names: tuple[str, str]) -> RunDiff:
        """The two as they are now. Raises NotThereError, StillRecordedError and TapeproxyError."""
        ours, theirs = (self._library.open(name).look() for name in names)
        if ours.ending is None or theirs.ending is None:
            raise StillRecordedError
        return self._compared(_Same(ours.tape), _Same(theirs.tape), names)


class _Same:
    """A tape as a key: one that was read anew is another one."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.tape is self.tape

    def __hash__(self) -> int:
        return id(self.tape)


def _compare(ours: _Same, theirs: _Same, names: tuple[str, str]) -> RunDiff:
    try:
        return RunDiff(diff_tapes(ours.tape, theirs.tape), names)
    except ValueError as error:
        raise TapeFormatError(f"the tapes cannot be compared: {error}", place=Place(names[0])) from None
