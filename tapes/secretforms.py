"""How a known secret can be written: plain, escaped for JSON (twice, too), percent-encoded, in base64. Knows encodings.

In base64 a secret looks different at each of three positions, and its first and last bits share characters with its
neighbours: the form is what depends on the secret alone.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, quote_plus

import orjson

SHORTEST_BASE64: Final = 12
"""Characters of base64 that are taken for a secret's own."""
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


@dataclass(frozen=True, slots=True)
class Form:
    """`text` is how `secret` is written. Of base64 (`encoded`), as many characters before (`left`) and behind (`right`)
    hold some of the secret's bits, too.
    """

    text: bytes
    secret: bytes
    encoded: bool = False
    left: bool = False
    right: bool = False

    def widened(self, text: bytes, start: int, end: int) -> tuple[int, int]:
        """Where in `text` the whole secret stands, given where its form does."""
        if not self.encoded:
            return start, end
        if self.left and start and text[start - 1] in _BASE64:
            start -= 1
        if self.right and end < len(text) and text[end] in _BASE64:
            end += 1
        padded = end + len(text[end : end + 2]) - len(text[end : end + 2].lstrip(b"="))
        return start, padded


def forms_of(secret: bytes) -> Iterator[Form]:
    """The ways to write `secret`, itself first; equal ones may come twice."""
    once = _escaped(secret)
    percent = quote(secret, safe="").encode()
    texts = [secret, once, _escaped(once), once.replace(b"/", b"\\/"), _ascii(secret), _escaped(_ascii(secret))]
    texts += [percent, quote(secret).encode(), quote_plus(secret).encode(), quote(percent, safe="").encode()]
    yield from (Form(text, secret) for text in texts)
    yield from _in_base64(secret)


def _in_base64(secret: bytes) -> Iterator[Form]:
    for before in range(3):
        first = -(-before * 8 // 6)  # the characters that hold bits of what stands before it
        bits = (before + len(secret)) * 8
        text = base64.b64encode(bytes(before) + secret)[first : bits // 6]
        if len(text) >= SHORTEST_BASE64:
            for form in (text, text.translate(bytes.maketrans(b"+/", b"-_"))):
                yield Form(form, secret, encoded=True, left=before > 0, right=bits % 6 > 0)


def _escaped(text: bytes) -> bytes:
    try:
        return orjson.dumps(text.decode())[1:-1]
    except UnicodeDecodeError:
        return text


def _ascii(text: bytes) -> bytes:
    """As `json.dumps` writes it by default: \\u00e9 for é."""
    if text.isascii():
        return _escaped(text)
    import json

    return json.dumps(text.decode(errors="surrogateescape"))[1:-1].encode()
