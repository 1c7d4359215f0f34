"""What an agent read from clock, chance, process and environment in a traced replay, and the texts that it can become.

Knows values and how programs write them; not where to look for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

type Kind = Literal["wall", "int", "float", "str", "bytes", "uuid", "list", "none"]
type Precision = Literal["second", "minute", "day"]

UNCLAMPED = ("os.getpid", "os.getppid", "os.getcwd", "os.environ", "socket.gethostname")
"""Reads that are traced although a replay does not decide what they give."""
SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1)
_LAST = 253_402_300_799  # in the year 9999
_LARGE = 1 << 20  # from here on an integer is looked for in hex, too
_SECONDS = (
    *("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d_%H:%M:%S", "%Y-%m-%d_%H-%M-%S", "%Y-%m-%d-%H-%M-%S"),
    *("%Y%m%dT%H%M%S", "%Y%m%d%H%M%S", "%Y%m%d_%H%M%S", "%Y%m%d-%H%M%S", "%Y/%m/%d %H:%M:%S", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%H:%M:%S", "%I:%M:%S %p", "%H%M%S"),
)
_MINUTES = ("%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%H:%M", "%I:%M %p")
_DAYS = (
    *("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d %b %Y", "%d %B %Y"),
    *("%b %d, %Y", "%B %d, %Y"),
)


@dataclass(frozen=True, slots=True)
class Site:
    """A place that reads. `what`: the function. `where`: `FILE:LINE in FUNCTION` of the user's, innermost first.

    `via`: modules of libraries between that line and the read.
    """

    what: str
    where: tuple[str, ...] = ()
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """One read, after `n` requests of its lane; or `count` reads of one place, with the last one's value.

    `values`: one text, or those of a list; bytes and uuids as hex. `ns` since 1970 and the UTC offset of its zone in
    seconds where it is a time of day. `clock`: how often it read the lane's clock.
    `joined`: a word of single characters that were read one after the other.
    """

    site: Site
    lane: str
    n: int
    kind: Kind
    values: tuple[str, ...]
    ns: int | None = None
    offset: int = 0
    clock: int = 0
    count: int = 1
    joined: bool = False

    @property
    def clamped(self) -> bool:
        """Whether the tape decides the value."""
        return not self.site.what.startswith(UNCLAMPED)


def plain_texts(read: Read) -> Iterator[str]:
    """The ways to write a value that is no time of day; of one, the text that the agent was given itself."""
    value = read.values[0] if read.values else ""
    match read.kind:
        case "uuid":
            yield from (value, dashed(value), str(int(value, 16)))
        case "bytes":
            yield from _bytes_texts(bytes.fromhex(value))
        case "list":
            yield from read.values
            yield "".join(read.values)
        case "int":
            yield value
            if abs(int(value)) >= _LARGE:
                yield f"{int(value):x}"
        case "float" | "str" | "wall":
            yield value
        case "none":
            pass


def dashed(value: str) -> str:
    """32 hex digits as a uuid is written."""
    return "-".join((value[:8], value[8:12], value[12:16], value[16:20], value[20:]))


@lru_cache(4096)
def time_texts(second: int, offset: int) -> tuple[tuple[str, Precision], ...]:
    """The ways to write this second, its minute and its day, in the zone `offset` seconds east; the longest first."""
    if not 0 <= second + offset <= _LAST:
        return ()
    moment = _EPOCH + timedelta(seconds=second + offset)
    # ctime and asctime pad the day with a blank.
    texts: dict[str, Precision] = {f"{moment:%b} {moment.day:>2} {moment:%H:%M:%S}": "second"}
    precisions: tuple[tuple[tuple[str, ...], Precision], ...] = (
        (_SECONDS, "second"),
        (_MINUTES, "minute"),
        (_DAYS, "day"),
    )
    for formats, precision in precisions:
        for form in formats:
            texts.setdefault(moment.strftime(form), precision)
    for name in ("%b", "%B"):
        texts.setdefault(f"{moment.strftime(name)} {moment.day}, {moment.year}", "day")
        texts.setdefault(f"{moment.day} {moment.strftime(name)} {moment.year}", "day")
    return tuple(sorted(texts.items(), key=lambda item: -len(item[0])))


def agrees(read_ns: int, number: str, *, unit: int = SECOND) -> bool:
    """Whether a decimal number of units of `unit` ns is this instant, cut off or rounded to the digits that it has."""
    whole, _, fraction = number.partition(".")
    step: int = 10 ** len(fraction)
    stated, exact = int(whole + fraction), read_ns * step
    # A float of seconds since 1970 is right to about 240 ns.
    slack = 300 * step if fraction else 0
    low, high = stated * unit, (stated + 1) * unit
    return low - unit // 2 - slack <= exact < high + slack


def _bytes_texts(value: bytes) -> Iterator[str]:
    from base64 import b32encode, b64encode, urlsafe_b64encode

    yield value.hex()
    for encode in (b64encode, urlsafe_b64encode, b32encode):
        yield encode(value).decode("ascii").rstrip("=")
    if value and len(value) <= 16:
        yield str(int.from_bytes(value, "big"))
