"""Values and exceptions as JSON, and back: what a hint puts on the tape. Knows forms; imports no module for a tape.

Plain JSON stands for itself. What JSON has no word for is an object whose `$` says what it is: tuples, sets, bytes,
dates, decimals, UUIDs, paths, enumerations, dataclasses, named tuples, models of pydantic, exceptions. A type is named
`module:qualname`, and is only looked for in modules that are loaded.
"""

from __future__ import annotations

from . import jsontexts
from .jsondecoding import decode, decode_error
from .jsonencoding import DEEPEST, encode, encode_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def dump(value: Any) -> str:
    """The JSON text of a value. Raises TypeError, which says where in it something has no form."""
    return jsontexts.write(encode(value, "", DEEPEST, lenient=False))


def dump_loosely(value: Any) -> str:
    """The same, where what has no form is told by its type alone: such a text can be compared, not read back."""
    return jsontexts.write(encode(value, "", DEEPEST, lenient=True))


def dump_error(error: BaseException) -> str:
    """The JSON text of an exception. Parts of it that have no form are left out."""
    return jsontexts.write(encode_error(error, DEEPEST))


def load(text: str, unknown: type[Exception] = Exception) -> Any:
    """The value that a text of `dump` stands for. Raises ValueError when it can't be made again."""
    return decode(jsontexts.read(text), unknown)


def load_error(text: str, unknown: type[Exception]) -> BaseException:
    """The exception of `dump_error`. A type that is not loaded becomes a subclass of `unknown`. Raises ValueError."""
    form = jsontexts.read(text)
    if not isinstance(form, dict):
        raise ValueError("not an exception")
    return decode_error(form, unknown)
