"""The fields of records as JSON: bodies, headers, and text that may not be UTF-8. See docs/FORMAT.md."""

import base64
from dataclasses import dataclass
from typing import Any

type Json = dict[str, Any]
type Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Like:
    """A body by reference: the first `head` and last `tail` bytes of record `of`'s body around `mid`.

    `whole` means exactly that record's body (the JSON form is `{"ref": i}`).
    """

    of: int
    head: int = 0
    mid: bytes = b""
    tail: int = 0
    whole: bool = False

    def size(self, base: int) -> int:
        """Bytes of the body, where that of record `of` has `base`. Raises ValueError when the cuts lie outside it."""
        if self.whole:
            return base
        if self.head + self.tail > base:
            raise ValueError(f"cuts {self.head}+{self.tail} bytes from a body of {base}")
        return self.head + len(self.mid) + self.tail


type Body = bytes | Like


def dump_body(body: Body) -> str | Json:
    """The JSON form of a body: text when it is valid UTF-8, else base64, or a reference to another record's.

    What holds a NUL byte is not text: JSON would spend six characters on each.
    """
    if isinstance(body, Like):
        if body.whole:
            return {"ref": body.of}
        return {"like": body.of, "head": body.head, "mid": dump_body(body.mid), "tail": body.tail}
    if b"\0" not in body:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(body).decode()}


def dump_text(text: str) -> str | Json:
    """The JSON form of text from the operating system. Raises ValueError for a surrogate that stands for no byte."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"b64": base64.b64encode(text.encode(errors="surrogateescape")).decode()}
    return text


def dump_headers(headers: Headers) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
