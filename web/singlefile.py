"""The single file of `tapeproxy view`: page, scripts and tape in one HTML that opens from disk with nothing installed.

A browser runs only the scripts whose hashes stand in the page's policy, and connects to nothing. What comes from the
tape stands in elements that no browser runs (`type` is no script's), as JSON or base64 in which `<` is escaped.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from html import escape
from itertools import batched, islice
from typing import Final

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.invisible import spelled
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.why import Provenance
from tapeproxy.tapes.whydocuments import why_document
from tapeproxy.web.assets import LICENCES, SCRIPTS, STYLE, asset, source_hash
from tapeproxy.web.details import details
from tapeproxy.web.overview import labels, outline, ranks
from tapeproxy.web.rundiff import RunDiff

_BLOCK: Final = 50
"""Exchanges that are compressed together: what a click costs."""
_WORDS: Final = 500_000
_REQUESTS: Final = 4000
"""How many characters of requests, and requests, are told where they come from: each takes some time to find out."""
_START: Final = b"tp.start(tp.embeddedSource());"


def single_file(tape: Tape, ending: Ending, name: str, file: bytes | None) -> Iterator[bytes]:
    """The page of a tape, piece by piece. `file`: the tape's own bytes, for the check of its chain in the browser."""
    causality = Causality.of(tape)
    yield from _head(name)
    yield _json("tp-outline", outline(tape, ending, name))
    yield _json("tp-ranks", ranks(causality))
    yield _json("tp-labels", labels(tape.exchanges))
    yield from _blocks("block", (details(one, causality) for one in tape.exchanges))
    told = islice(Provenance(tape, causality).each(_WORDS), _REQUESTS)
    yield from _blocks("why", map(why_document, told))
    if file is not None:
        yield b"<script type=text/plain id=tp-file>" + base64.b64encode(file) + b"</script>\n"
    yield from _tail()


def diff_file(diff: RunDiff, title: str) -> Iterator[bytes]:
    """The page of two runs, piece by piece."""
    yield from _head(title)
    yield _json("tp-outline", diff.outline())
    yield _json("tp-ranks", diff.ranks())
    yield _json("tp-labels", diff.labels())
    yield _json("tp-differences", diff.all_differences())
    yield from _blocks("block", diff.documents())
    yield from _tail()


def _scripts() -> list[bytes]:
    return [asset(script) for script in SCRIPTS] + [_START]


def _head(title: str) -> Iterator[bytes]:
    style = asset(STYLE)
    policy = (
        f"default-src 'none'; script-src {' '.join(source_hash(text) for text in _scripts())}; "
        f"style-src {source_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    yield b"<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
    yield f'<meta http-equiv=Content-Security-Policy content="{escape(policy)}">\n'.encode()
    yield b'<meta name=referrer content=no-referrer>\n<meta name=viewport content="width=device-width">\n'
    yield f"<title>{escape(spelled(title))}</title>\n".encode()
    yield b"<style>" + style + b"</style>\n</head>\n<body>\n"
    yield b"<div id=app>Loading\xe2\x80\xa6 (this page needs JavaScript)</div>\n"
    yield b"<!-- The licences of what is included:\n" + asset(LICENCES).replace(b"--", b"- -") + b"\n-->\n"


def _blocks(name: str, documents: Iterable[Json]) -> Iterator[bytes]:
    first = 1
    for block in batched(documents, _BLOCK):
        packed = gzip.compress(json.dumps(block, ensure_ascii=True).encode(), 6, mtime=0)
        attributes = f"data-{name} data-from={first} data-to={first + len(block) - 1}"
        yield f"<script type=text/plain {attributes}>{base64.b64encode(packed).decode()}</script>\n".encode()
        first += len(block)


def _tail() -> Iterator[bytes]:
    for script in _scripts():
        yield b"<script>" + script + b"</script>\n"
    yield b"</body>\n</html>\n"


def _json(name: str, document: object) -> bytes:
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f"<script type=application/json id={name}>{text}</script>\n".encode()
