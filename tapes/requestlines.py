"""A request in one line, for people and reports. Knows how long a line may be."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tapeproxy.tapes.matching import Ask

LONGEST: Final = 2048
"""Characters of a line that are kept; clients send longer ones than people read."""


def summary_line(ask: "Ask") -> str:
    """`POST https://host/path?query`, as text that is safe to encode."""
    return shorten(f"{ask.method[:LONGEST].decode('latin-1')} {ask.url[:LONGEST].decode('latin-1')}")


def shorten(text: str) -> str:
    """At most `LONGEST` characters of a text, and a sign that there were more."""
    return text if len(text) < LONGEST else text[: LONGEST - 1] + "…"
