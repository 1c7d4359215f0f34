"""How requests are read in one recording or replay: which version of identity, which rules, which marks.

Requests on the tape and requests that are asked are read in the same way, or they could not be compared. A tape is
read as it was made: by the version and rules in its head; rules given with a replay come after those.
"""

from typing import Final

from tapeproxy.tapes.machine import Marks
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.rules import Rule, Rules, read_rules

VERSION: Final = 2
"""What identity means now. A change gets a new number, never a silent new meaning; old ones stay (canonical1.py)."""
_ALWAYS = frozenset({b"content-type", b"content-encoding"})


class Reading:
    """`version` 1 knows neither rules nor marks. `headers`: those that identity may depend on, in lower case.

    Two that read in the same way are equal, whatever their rules have found so far.
    """

    __slots__ = ("_hash", "headers", "marks", "rules", "version")

    def __init__(self, version: int = VERSION, rules: Rules | None = None, marks: Marks | None = None) -> None:
        self.version = version
        self.rules = rules or Rules()
        self.marks = marks or Marks()
        self.headers = _ALWAYS | self.rules.headers()
        self._hash = hash(self._way())  # it is looked up with every request

    @property
    def keeps_texts(self) -> bool:
        """Whether the texts in a body stay what they are, but for marks: a rule may rewrite or ignore any of them."""
        return not self.rules and self.version > 1

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Reading) and self._way() == other._way())

    def __hash__(self) -> int:
        return self._hash

    def _way(self) -> tuple[object, ...]:
        return self.version, self.rules.rules, self.marks


PLAIN: Final = Reading()


def taped_version(head: Head) -> int:
    """The version of identity that a tape was made with. Raises ValueError when it is none of ours."""
    version = head.rules.get("matching", 1)
    if type(version) is not int or version < 1:
        raise ValueError(f"the head's version of matching is {version!r:.40}, which is none")
    if version > VERSION:
        raise ValueError(f"the tape's requests are told apart by version {version}; this program knows up to {VERSION}")
    return version


def taped_rules(head: Head) -> tuple[Rule, ...]:
    """The user's rules that a tape was made with. Raises ValueError when they can't be read."""
    lines = head.rules.get("user", [])
    if not isinstance(lines, list):
        raise ValueError("the head's rules are no list")
    try:
        return read_rules(lines)
    except ValueError as error:
        raise ValueError(f"a rule in the head cannot be read: {error}") from None


def taped_reading(head: Head) -> Reading:
    """How a tape was read by who made it: for its trace hash, which no machine has a part in. Raises ValueError."""
    return Reading(taped_version(head), Rules(taped_rules(head)))


def replay_reading(head: Head, added: tuple[Rule, ...], marks: Marks, *, taped: bool = True) -> Reading:
    """How a replay reads: by the tape's rules (unless `taped` is False), then those added. Raises ValueError.

    A tape of version 1 is read by that where nothing is added, which version 1 could not do.
    """
    rules = (*(taped_rules(head) if taped else ()), *added)
    version = taped_version(head)
    return Reading(VERSION if rules or marks else version, Rules(tuple(dict.fromkeys(rules))), marks)
