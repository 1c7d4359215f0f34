"""What a canonical body is, and the pieces that every version of it is made of: pairs, frames, the content type."""

from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.tokens import mask_tokens

type Pairs = tuple[tuple[bytes, bytes], ...]


class Body(NamedTuple):
    """A canonical body. `canonical` is what is compared, `value` the same for people, by `form`:

    json: the value; lines: a list of JSON values; form: pairs; multipart: a list of `PartValue` (in version 1 bytes);
    bytes, empty: bytes; large: what stands for it (`largebodies`).
    """

    form: str
    value: Any
    canonical: bytes


class PartValue(NamedTuple):
    """A part of a multipart body: its name, its headers without what the boundary or coding says, and its body."""

    name: str
    headers: Pairs
    body: Body


def content_type(headers: Headers) -> bytes:
    """The Content-Type, several joined as one list; empty when there is none."""
    return b", ".join(value for name, value in headers if name.lower() == b"content-type")


def split_pairs(query: bytes | None) -> Pairs:
    """Pairs of a query or form, decoded, secrets masked, sorted by name; pairs of one name keep their order."""
    if not query:
        return ()
    # Not parse_qsl: on bytes it fails for what is not ASCII.
    pairs = (pair.partition(b"=") for pair in query.replace(b"+", b" ").split(b"&"))
    decoded = ((unquote_to_bytes(name), mask_tokens(unquote_to_bytes(value))) for name, _, value in pairs)
    return tuple(sorted(decoded, key=lambda pair: pair[0]))


def framed(data: bytes) -> bytes:
    """`data` after its length, so that what is put together can be taken apart in one way only."""
    return len(data).to_bytes(8, "big") + data
