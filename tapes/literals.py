"""Known secrets found in a text in whatever way they are written there, and replaced. Knows values, not why.

A secret's letters and digits stand for themselves in every encoding that people read; what is between them may be
escaped for JSON any number of times, or percent-encoded. Of base64, what it holds is looked into.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from tapeproxy.tapes.codings import decode, looks_like_text
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.splicing import Edit, apply, settled
from tapeproxy.tapes.tokens import MAX_LENGTH, is_token, token_spans

RUN: Final = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
"""A run of what may be base64."""
_PERCENT: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
# Behind no character of its own, so that a long run is not looked through from each of its places.
_PERCENTS: Final = re.compile(rb"(?<![A-Za-z0-9._~+/=-])[A-Za-z0-9._~+/=-]*+(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~+/=-]*+)+")
_SLASH: Final = re.compile(rb"\\+/")
_SLASHES: Final = re.compile(rb"(?<![A-Za-z0-9+=])[A-Za-z0-9+=]++(?:\\++/[A-Za-z0-9+=]*+)+")
_WORD: Final = re.compile(rb"[A-Za-z0-9]+")
_ESCAPE: Final = rb"(?:\\|%(?:25)*5[cC])+"
_ESCAPES: Final = {'"': b"", "\\": b"", "/": b"", "\n": b"n", "\r": b"r", "\t": b"t"}
_DEPTH: Final = 4


def _quote(run: bytes, plain: bytes) -> bytes:
    """`plain` with those characters percent-encoded that are in `run`."""
    raw = bytes(set(_PERCENT.sub(b"", run)))
    return quote(plain, safe=raw).encode()


def _slashed(run: bytes, plain: bytes) -> bytes:
    """`plain` with as many backslashes before each slash as `run` has before its first."""
    match = _SLASH.search(run)
    return plain if match is None else plain.replace(b"/", match[0])


_QUOTINGS: Final[
    tuple[tuple[bytes, re.Pattern[bytes], Callable[[bytes], bytes], Callable[[bytes, bytes], bytes]], ...]
] = (
    (b"%", _PERCENTS, unquote_to_bytes, _quote),
    (b"\\/", _SLASHES, lambda run: _SLASH.sub(b"/", run), _slashed),
)


class Literals:
    """Finds secrets: `values` wherever they stand, `named` ones, (name, value), only where the name gives them away (an
    empty name: before the host of a URL), and what `patterns` match, of which group 1, if there is one, is the secret.

    `token` makes what a secret is replaced by.
    """

    def __init__(
        self,
        token: Callable[[bytes], bytes],
        values: Iterable[bytes],
        named: Iterable[tuple[str, bytes]] = (),
        patterns: tuple[re.Pattern[bytes], ...] = (),
    ) -> None:
        longest_first = sorted(set(values), key=lambda value: (-len(value), value))
        self._token = token
        self._patterns = patterns
        self._sought = [(_core(value), re.compile(_written(value)), token(value)) for value in longest_first]
        self._sought += [(_core(value), _named(name, value), token(value)) for name, value in sorted(set(named))]

    def redact(self, text: bytes) -> bytes:
        """`text` with every secret replaced."""
        return apply(text, self.edits(text))

    def edits(self, text: bytes, depth: int = _DEPTH) -> list[Edit]:
        """What to replace, in order."""
        if not self._sought and not self._patterns:
            return []
        if not depth:
            return settled(self._plain(text))
        return settled([*self._plain(text), *self._quoted(text, depth), *self._encoded(text, depth)])

    def _plain(self, text: bytes) -> Iterator[Edit]:
        for core, pattern, token in self._sought:
            if core in text:
                yield from (Edit(*match.span("value"), token) for match in pattern.finditer(text))
        for pattern in self._patterns:
            group = 1 if pattern.groups else 0
            for match in pattern.finditer(text):
                if match[group] and not _in_token(text, *match.span(group)):
                    yield Edit(*match.span(group), self._token(match[group]))

    def _quoted(self, text: bytes, depth: int) -> Iterator[Edit]:
        """Base64 of which some characters are percent-encoded, or have a backslash before them."""
        for mark, pattern, plain_of, quoted in _QUOTINGS:
            for match in pattern.finditer(text) if mark in text else ():
                plain = plain_of(match[0])
                edits = self.edits(plain, depth - 1)
                # What shows without undoing base64 is found in the text itself.
                if any(not is_token(edit.new) for edit in edits):
                    yield Edit(*match.span(), quoted(match[0], apply(plain, edits)))

    def _encoded(self, text: bytes, depth: int) -> Iterator[Edit]:
        for match in RUN.finditer(text):
            run = match[0]
            for skip in range(4):
                new = self._in_run(run[skip:], depth)
                if new is not None:
                    yield Edit(match.start() + skip, match.end(), new)
                    break

    def _in_run(self, run: bytes, depth: int) -> bytes | None:
        """A run of base64 in which a secret was replaced; None where there was none."""
        plain = decode_base64(run)
        if plain is None:
            return None
        if plain.startswith(b"\x1f\x8b"):
            inner = decode(plain, ((b"content-encoding", b"gzip"),)).data
            edits = self.edits(inner, depth - 1)
            return _coded(encode(apply(inner, edits), ("gzip",)), run) if edits else None
        nested = looks_like_text(plain)
        if not nested and not any(core in plain for core, _, _ in self._sought):
            return None
        edits = self.edits(plain, depth - 1 if nested else 0)
        return _coded(apply(plain, edits), run) if edits else None


def _core(value: bytes) -> bytes:
    """The longest part of a secret that every encoding leaves as it is."""
    return max(_WORD.findall(value), key=len, default=b"")


def _named(name: str, value: bytes) -> re.Pattern[bytes]:
    """A value behind its name: in JSON, a form, a query, a part of a multipart body, an assignment."""
    if not name:
        return re.compile(rb"://[^/:@\s\"\\]{0,100}:" + _written(value) + rb"(?=@)")
    called = _written(name.encode(errors="surrogateescape"), group=False)
    before = (
        rb"""(?<![A-Za-z0-9])%b(?:\\*["']?\s*(?:=|:=?|%%3[dD])\s*(?:\\*["'])?|"?[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)"""
    )
    return re.compile(before % called + rb"(?:[A-Za-z-]+(?:\s|%20|\+))?" + _written(value) + rb"(?![A-Za-z0-9])")


def _in_token(text: bytes, start: int, end: int) -> bool:
    """Whether what is found overlaps a token: a token says nothing, and one in another's place is no gain."""
    if b"tpx" not in text:
        return False
    near = text[max(start - MAX_LENGTH, 0) : end + MAX_LENGTH]
    at = start - max(start - MAX_LENGTH, 0)
    return any(begin < at + end - start and at < stop for begin, stop in token_spans(near))


def _written(value: bytes, *, group: bool = True) -> bytes:
    """A regular expression for the ways to write a value."""
    text = value.decode(errors="surrogateescape")
    body = b"".join(map(_character, text))
    return b"(?P<value>" + body + b")" if group else b"(?:" + body + b")"


def _character(char: str) -> bytes:
    if char.isascii() and char.isalnum():
        return char.encode()
    raw = char.encode(errors="surrogateescape")
    bare = b"(?:" + re.escape(raw) + b"|" + b"".join(rb"%%(?:25)*(?i:%02x)" % byte for byte in raw) + b")"
    ways = [bare]
    if not "\udc80" <= char <= "\udcff":
        units = char.encode("utf-16-be")
        ways += [
            b"".join(_ESCAPE + rb"u(?i:%02x%02x)" % tuple(units[n : n + 2]) for n in range(0, len(units), 2)),
        ]
    if char in _ESCAPES:
        ways += [_ESCAPE + (_ESCAPES[char] or bare)]
    if char == " ":
        ways += [rb"\+"]
    return b"(?:" + b"|".join(reversed(ways)) + b")"


def decode_base64(run: bytes) -> bytes | None:
    """What a run of base64 holds, of either alphabet and with padding or without; None where it is none."""
    plain = run.rstrip(b"=")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)].translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


def _coded(plain: bytes, run: bytes) -> bytes:
    """`plain` in base64, with the alphabet and the padding that `run` has."""
    coded = (base64.urlsafe_b64encode if b"-" in run or b"_" in run else base64.b64encode)(plain)
    bare = run.rstrip(b"=")
    left = bare[len(bare) - (len(bare) % 4 == 1) :] if len(bare) % 4 == 1 else b""
    return coded if run != bare else coded.rstrip(b"=") + left
