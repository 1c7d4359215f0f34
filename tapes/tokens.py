"""Redaction tokens: what stands on a tape where a secret stood. Knows their syntax, not which values are secret.

A token is `tpx`, its own length in three base-32 digits, base-32 digits of a keyed hash of the secret, and a checksum
of three digits over all before it: `tpx` LLL H…H CCC, lower-case letters and 2-7 only, so it is safe in a header, a
URL, JSON and form data. Because length and checksum are inside, a token is found in any text, whatever adjoins it,
and redacting a token gives the token. Without the key a token says nothing about the secret but its length.
"""

import re
from collections.abc import Callable, Iterator

from blake3 import blake3

_MARK = b"tpx"
_DIGITS = b"abcdefghijklmnopqrstuvwxyz234567"
_FIXED = len(_MARK) + 3 + 3
MIN_LENGTH = _FIXED + 5
"""A shorter secret gets a token of this length: 25 bits of hash tell secrets apart."""
MAX_LENGTH = 32**3 - 1
_FIND = re.compile(rb"tpx([a-z2-7]{3})[a-z2-7]{%d}" % (MIN_LENGTH - 6))
WILDCARD = b"<secret>"

_PLACEHOLDER_KEY = blake3(b"tapeproxy placeholder for an absent secret variable").digest()


def make_token(key: bytes, secret: bytes, length: int | None = None) -> bytes:
    """The token for `secret` under the 32-byte `key`: of its own length where that is MIN_LENGTH to MAX_LENGTH.

    `length`: of that one instead, where the secret stands in a longer form.
    """
    length = min(max(len(secret) if length is None else length, MIN_LENGTH), MAX_LENGTH)
    raw = blake3(secret, key=key).digest(length - _FIXED)
    body = _MARK + _base32(length, 3) + bytes(_DIGITS[byte & 31] for byte in raw)
    return body + _checksum(body)


def is_token(value: bytes) -> bool:
    """True when `value` is one whole token."""
    match = _FIND.match(value)
    return match is not None and _end(value, match) == len(value)


def replace_tokens(data: bytes, replace: Callable[[bytes], bytes]) -> bytes:
    """Replace every token in `data` by what `replace` makes of it."""
    out: list[bytes] = []
    at = 0
    for start, end in token_spans(data):
        out += (data[at:start], replace(data[start:end]))
        at = end
    return b"".join((*out, data[at:])) if out else data


def token_spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Where in `data` every token begins and ends, in order."""
    if _MARK not in data:
        return
    position = 0
    while match := _FIND.search(data, position):
        end = _end(data, match)
        position = match.start() + 1 if end is None else end
        if end is not None:
            yield match.start(), end


def open_token(data: bytes) -> int:
    """Where in `data` begins what may become a token when more comes; len(data) if nothing does."""
    position = 0
    while match := _FIND.search(data, position):
        end = _end(data, match)
        if end is None and match.start() + _length(match) > len(data):
            return match.start()
        position = match.start() + 1 if end is None else end
    tail = max(position, len(data) - MIN_LENGTH + 1)
    begun = (at for at in range(tail, len(data)) if _MARK.startswith(data[at : at + len(_MARK)]))
    return next(begun, len(data))


def mask_tokens(data: bytes) -> bytes:
    """`data` with every token made the same wildcard, so that another key or secret gives the same bytes."""
    return replace_tokens(data, lambda _: WILDCARD)


def placeholder(name: str) -> str:
    """What a replayed agent sees as the value of a secret variable that is absent: a valid token made of its name."""
    return make_token(_PLACEHOLDER_KEY, name.encode() * 8)[:MAX_LENGTH].decode()


def _end(data: bytes, match: re.Match[bytes]) -> int | None:
    length = _length(match)
    end = match.start() + length
    token = data[match.start() : end]
    whole = MIN_LENGTH <= length == len(token) and token[-3:] == _checksum(token[:-3])
    return end if whole else None


def _length(match: re.Match[bytes]) -> int:
    length = 0
    for digit in match[1]:
        length = length * 32 + _DIGITS.index(digit)
    return length


def _checksum(body: bytes) -> bytes:
    return bytes(_DIGITS[byte & 31] for byte in blake3(body).digest(3))


def _base32(number: int, digits: int) -> bytes:
    return bytes(_DIGITS[number >> 5 * place & 31] for place in reversed(range(digits)))
