"""Where a scrubbed tape has tokens: so that a replay's requests get them at the same places, whatever stands there.

Recording redacts by rules that a replay can follow. A scrub also replaces what it learned elsewhere, and what shows
only when base64 is undone; the agent still sends that, and a replay knows neither. It knows what stands around it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.literals import RUN, decode_base64
from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import RedactionRules
from tapeproxy.tapes.tokens import token_spans

_AROUND: Final = 24
"""Bytes on either side that have to be the same."""
_LEAST: Final = 6
_MOST: Final = 5000
"""Places that are kept: each costs a search in every request."""
_SLACK: Final = 16


class Blanks:
    """The places of tokens in `texts`, each known by what stands around it."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._blanks: dict[tuple[bytes, bytes], bytes] = {}
        self._patterns: dict[tuple[bytes, bytes], re.Pattern[bytes]] = {}
        for text in texts:
            for before, piece, after in _blanks(text):
                if len(self._blanks) < _MOST:
                    self._blanks.setdefault((before, after), piece)

    def fill(self, text: bytes) -> bytes:
        """`text` with what the tape has at these places."""
        for (before, after), piece in self._blanks.items():
            if before in text and after in text:
                text = self._pattern(before, after, piece).sub(partial(_filled, piece), text)
        return text

    def _pattern(self, before: bytes, after: bytes, piece: bytes) -> re.Pattern[bytes]:
        if (before, after) not in self._patterns:
            begin = re.escape(before) if before else rb"\A"
            end = re.escape(after) if after else rb"\Z"
            longest = 2 * len(piece) + _SLACK
            self._patterns[before, after] = re.compile(b"(%b).{1,%d}?(?=%b)" % (begin, longest, end), re.DOTALL)
        return self._patterns[before, after]


class ScrubbedRedactor(Redactor):
    """Redacts as the tape was, and as it was scrubbed."""

    def __init__(self, key: bytes, secrets: Iterable[str], rules: RedactionRules, blanks: Blanks) -> None:
        super().__init__(key, secrets, rules)
        self._blanks = blanks

    def content(self, data: bytes) -> bytes:
        """Redact secrets wherever they stand, and what stands where the tape has a token."""
        return self._blanks.fill(super().content(data))


def _filled(piece: bytes, match: re.Match[bytes]) -> bytes:
    return match[1] + piece


def blanks_of(tape: Tape) -> Blanks:
    """The places of tokens in what the tape's agent sent and read."""
    texts: list[bytes] = []
    for exchange in tape.exchanges:
        texts += (exchange.request.url, decode(exchange.request_body, exchange.request.headers).data)
        texts += [message.data for message in read_frames(exchange.frames) if message.sender == "client"]
    texts += [value.content for _, value in tape.values if value.content is not None]
    return Blanks(texts)


def _blanks(text: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """What stands before, at and behind each place."""
    pieces = _pieces(text)
    for number, (start, end) in enumerate(pieces):
        low = pieces[number - 1][1] if number else 0
        high = pieces[number + 1][0] if number + 1 < len(pieces) else len(text)
        before, after = text[max(low, start - _AROUND) : start], text[end : min(high, end + _AROUND)]
        # Between two places something has to stand, or nobody can tell where the first one ends.
        whole = (before or not start) and (after or end == len(text))
        if whole and len(before) + len(after) >= _LEAST:
            yield before, text[start:end], after


def _pieces(text: bytes) -> list[tuple[int, int]]:
    """The tokens, and the runs of base64 in which there are any."""
    found = list(token_spans(text))
    for match in RUN.finditer(text):
        plain = (decode_base64(match[0][skip:]) for skip in range(4))
        if any(one is not None and next(token_spans(decode(one, _GZIP).data), None) for one in plain):
            found.append(match.span())
    out: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


_GZIP: Final = ((b"content-encoding", b"gzip"),)
