"""Secrets in running text by the name they are assigned to: `DB_PASSWORD=…`, `x-api-key: …`. Knows names and looks.

An agent that reads a `.env` file sends it to its model. What such lines hold must look like a credential too: an answer
may have `sort_key = "created_at"` in it.
"""

import re
from collections.abc import Iterator
from typing import Final

from tapeproxy.tapes.secretfields import is_usual
from tapeproxy.tapes.secretvars import is_path, is_secret_value

_LONGEST: Final = 4096
_NAME: Final = 40
"""Bytes before a value in which its name stands."""
# As people write them in a shell or a .env file; values may be short.
_VARIABLES: Final = tuple(b"%b=" % word for word in b"KEY TOKEN SECRET PASSWORD PASSWD PASSPHRASE CREDENTIAL".split())
_ENDS: Final = (b"_KEY", b"APIKEY", *(mark[:-1] for mark in _VARIABLES[1:]))
_SHORT: Final = re.compile(rb"\\{0,3}[\"']?([^\s\"'\\&;,<>(){}\[\]$`|]{8,%d})" % _LONGEST)
# Anywhere else the name has to say it clearly, and the value has to be long.
_HINTS: Final = (b"key", b"token", b"secret", b"passw", b"passphrase")
_CLEAR: Final = (
    *(
        b"%b%b%b" % (what, between, word)
        for what in b"api access secret private auth signing encryption master account client bearer".split()
        for between in (b"", b"_", b"-")
        for word in (b"key", b"token", b"secret")
    ),
    *(b"password", b"passwd", b"passphrase"),
)
_LONG: Final = re.compile(rb"[=:>][\s\"'\\]{0,6}([A-Za-z0-9_+/.~-]{16,%d}={0,2})" % _LONGEST)
_TAIL: Final = re.compile(rb"[=:>][\s\"'\\]{0,8}([^\s\"'\\&;,<>(){}\[\]$`|]*)\Z")
_NO_VALUE: Final = frozenset(bytes((byte,)) for byte in b" \t\r\n\f\v\"'\\&;,<>(){}[]$`|") | {b""}
_FEW: Final = 32
"""So many are looked for one by one: that is faster than to look at every assignment of a text."""
_WINDOW: Final = 1024
_WORDS: Final = re.compile(rb"[A-Za-z_]+(?:[._-][A-Za-z_]+)*[._-]?\Z")
_ATTRIBUTE: Final = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")


def assigned(text: bytes, keyed: bytes) -> Iterator[tuple[int, int]]:
    """Where secrets stand in `text` that are assigned to a name; `keyed`: its long runs with what is before them."""
    for mark in _VARIABLES if b"=" in text else ():
        at = text.find(mark)
        while at >= 0:
            at += len(mark)
            if _is_named(text, at) and (match := _SHORT.match(text, at)) and _is_value(match[1]):
                yield match.span(1)
            at = text.find(mark, at)
    low = keyed.lower()
    if any(hint in low for hint in _HINTS):
        found = {
            match[0] for match in _LONG.finditer(keyed) if _is_named(keyed, match.start() + 1) and _is_key(match[1])
        }
        for match in _places(text, found):
            if _is_named(text, match.start() + 1) and _is_key(match[1]):
                yield match.span(1)


def assignment_open(text: bytes) -> int | None:
    """Where in `text` the value begins that is assigned to a secret's name and goes on to the end; None: nowhere.

    One that goes on for more than `_WINDOW` bytes is let go.
    """
    if text[-1:] in _NO_VALUE:
        return None
    start = max(len(text) - _WINDOW, 0)
    if all(text.find(sign, start) < 0 for sign in (b"=", b":", b">")):
        return None
    for match in _TAIL.finditer(text, start):
        if _is_named(text, match.start() + 1):
            return match.start(1)
    return None


def _places(text: bytes, pieces: set[bytes]) -> Iterator[re.Match[bytes]]:
    if len(pieces) > _FEW:
        yield from _LONG.finditer(text)
        return
    for piece in pieces:
        at = text.find(piece)
        while at >= 0:
            if match := _LONG.match(text, at):
                yield match
            at = text.find(piece, at + len(piece))


def _is_named(text: bytes, at: int) -> bool:
    """Whether what ends at `at` is the name of a secret and the sign of an assignment."""
    before = text[max(at - _NAME, 0) : at]
    if before.endswith(b"=") and before.endswith(_VARIABLES) and before[:-1].endswith(_ENDS):
        return True
    return before.rstrip(b"=:> \t\"'\\").lower().endswith(_CLEAR)


def _is_value(value: bytes) -> bool:
    """Whether a variable's value is no word, number, path, placeholder or expression."""
    if is_usual(value) or is_path(value.decode("latin-1")) or value.isdigit():
        return False
    return not (_WORDS.match(value) or _ATTRIBUTE.match(value) or b"://" in value)


def _is_key(value: bytes) -> bool:
    text = value.decode("latin-1")
    return _is_value(value) and is_secret_value(text) and any(map(str.isdigit, text)) and any(map(str.isalpha, text))
