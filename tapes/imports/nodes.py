"""A value out of a parsed file with its place in it, so that what is wrong can be found. Knows JSON's types."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final, Self

from tapeproxy.tapes.errors import TapeproxyError

_DIGITS: Final = 18
_MOST: Final = 1 << 62


class ForeignFormatError(TapeproxyError):
    """Another tool's recording, or one entry of it, can't be imported. `place`: as `interactions[3].request`."""

    exit_code = 5

    def __init__(self, what: str, *, place: str = "", source: str = "", fix: str = "") -> None:
        self.place, self.source = place, source
        super().__init__(what, where=": ".join(filter(None, (source, place))), fix=fix)

    def within(self, source: str) -> "ForeignFormatError":
        """The same error, of the file `source`."""
        return ForeignFormatError(self.what, place=self.place, source=source, fix=self.fix)


ODD: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What code raises that meets a value of a kind which nobody had thought of."""


@contextlib.contextmanager
def read_at(place: str) -> Iterator[None]:
    """Whatever odd value the block stumbles on is an error of `place`. Raises ForeignFormatError."""
    try:
        yield
    except ODD as error:
        said = f"{type(error).__name__}: {error}"
        raise ForeignFormatError(f"there is a value that can't be read ({said:.200})", place=place) from None


class Node:
    """`value`: what a JSON or YAML parser gives, bytes and dates included."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: str = "") -> None:
        self.value = value
        self.place = place

    def get(self, *names: str) -> Self | None:
        """The first of these fields that is there and not null. Raises ForeignFormatError where there are no fields."""
        fields = self.mapping()
        name = next((name for name in names if fields.get(name) is not None), None)
        return None if name is None else type(self)(fields[name], self._join(name))

    def need(self, *names: str) -> Self:
        """One of these fields. Raises ForeignFormatError where there is none."""
        found = self.get(*names)
        if found is None:
            raise self.wrong(f"there is no {' or '.join(map(repr, names))} here")
        return found

    def mapping(self) -> dict[Any, Any]:
        """What is here, by name. Raises ForeignFormatError."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"an object is expected here, not {_kind(self.value)}")
        return self.value

    def fields(self) -> Iterator[tuple[str, Self]]:
        """Names and values, in order."""
        for name, value in self.mapping().items():
            yield str(name), type(self)(value, self._join(str(name)))

    def items(self) -> list[Self]:
        """The items of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list is expected here")
        return [type(self)(value, f"{self.place}[{n}]") for n, value in enumerate(self.value)]

    def text(self) -> str:
        """A text, or a number as text."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return str(self.value)
        raise self.wrong(f"a text is expected here, not {_kind(self.value)}")

    def octets(self) -> bytes:
        """Bytes as they are, a text in UTF-8."""
        if isinstance(self.value, bytes):
            return self.value
        return self.text().encode("utf-8", "surrogatepass")

    def whole(self) -> int:
        """A whole number."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            if not -_MOST < self.value < _MOST:
                raise self.wrong("the number is out of range")
            return self.value
        if isinstance(self.value, str) and self.value.isascii() and self.value.isdigit():
            if len(self.value) > _DIGITS:
                raise self.wrong("the number is out of range")
            return int(self.value)
        raise self.wrong(f"a whole number is expected here, not {_kind(self.value)}")

    def wrong(self, what: str) -> ForeignFormatError:
        """An error that names this place."""
        return ForeignFormatError(what, place=self.place)

    def _join(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name


def _kind(value: object) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bytes: "bytes",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), f"a {type(value).__name__}")
