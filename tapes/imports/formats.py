"""The formats that can be imported, and which of them a parsed file is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tapeproxy.tapes.imports import azure, cassetter, har, vcr, wiremock
from tapeproxy.tapes.imports.foreign import Foreign
from tapeproxy.tapes.imports.nodes import ForeignFormatError, Node

MOST_VALUES: Final = 5_000_000
"""Values in one file, repeated ones counted each time: a few lines of YAML can name billions."""


@dataclass(frozen=True, slots=True)
class Format:
    """`is_one` knows it by its fields; `take` makes an exchange of one of its `entries`, or raises."""

    name: str
    is_one: Callable[[Node], bool]
    entries: Callable[[Node], list[Node]]
    take: Callable[[Node], Foreign]


def formats(base: str, file: Callable[[str], bytes]) -> tuple[Format, ...]:
    """All formats, the more special ones first. See `wiremock.taker` for the arguments."""
    return (
        Format("har", har.is_har, har.entries, har.take),
        Format("azure", azure.is_recording, azure.entries, azure.take),
        Format("cassetter", cassetter.is_cassette, cassetter.entries, cassetter.take),
        Format("vcr", vcr.is_cassette, vcr.entries, vcr.take),
        Format("wiremock", wiremock.is_mappings, wiremock.entries, wiremock.taker(base, file)),
    )


def format_of(root: Node, known: tuple[Format, ...], name: str = "") -> Format:
    """The format of a parsed file, or the one called `name`. Raises ForeignFormatError."""
    names = ", ".join(one.name for one in known)
    for one in known:
        if one.name == name or (not name and one.is_one(root)):
            return one
    if name:
        raise ForeignFormatError(f"there is no format {name!r:.40}", fix=f"there are {names}, mitm")
    raise ForeignFormatError("this is no recording of a tool that is known here", fix=f"known are {names}, mitm")


def check_size(value: object) -> None:
    """Raise ForeignFormatError for a value that is endless, or nearly."""
    waiting, count = [value], 0
    while waiting:
        one = waiting.pop()
        inside = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        count += 1 + len(inside)
        if count > MOST_VALUES:
            raise ForeignFormatError(f"the file holds more than {MOST_VALUES:,} values, or values without end")
        waiting += (item for item in inside if isinstance(item, dict | list))
