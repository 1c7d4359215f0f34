"""The single file of `tapeproxy view`: page, scripts and tape in one HTML that opens from disk with nothing installed.

A browser runs only the scripts whose hashes stand in the page's policy, and connects to nothing. What comes from the
tape stands in elements that no browser runs (`type` is no script's), as JSON or base64 in which `<` is escaped.
"""

import base64
import gzip
import json
from collections.abc import Iterator
from html import escape
from typing import Final

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.invisible import spelled
from tapeproxy.tapes.records import Json
from tapeproxy.web.assets import LICENCES, SCRIPTS, STYLE, asset, source_hash
from tapeproxy.web.details import details
from tapeproxy.web.overview import labels, outline, ranks

_BLOCK: Final = 50
"""Exchanges that are compressed together: what a click costs."""
_START: Final = b"tp.start(tp.embeddedSource());"


def single_file(tape: Tape, ending: Ending, name: str, file: bytes | None) -> Iterator[bytes]:
    """The page, piece by piece. `file`: the tape's own bytes, for the check of its chain in the browser."""
    scripts = [asset(script) for script in SCRIPTS] + [_START]
    style = asset(STYLE)
    policy = (
        f"default-src 'none'; script-src {' '.join(source_hash(text) for text in scripts)}; "
        f"style-src {source_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    yield b"<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
    yield f'<meta http-equiv=Content-Security-Policy content="{escape(policy)}">\n'.encode()
    yield b'<meta name=referrer content=no-referrer>\n<meta name=viewport content="width=device-width">\n'
    yield f"<title>{escape(spelled(name))}</title>\n".encode()
    yield b"<style>" + style + b"</style>\n</head>\n<body>\n"
    yield b"<div id=app>Loading\xe2\x80\xa6 (this page needs JavaScript)</div>\n"
    yield b"<!-- The licences of what is included:\n" + asset(LICENCES).replace(b"--", b"- -") + b"\n-->\n"
    yield _json("tp-outline", outline(tape, ending, name))
    causality = Causality.of(tape)
    yield _json("tp-ranks", ranks(causality))
    yield _json("tp-labels", labels(tape.exchanges))
    for first in range(0, len(tape.exchanges), _BLOCK):
        documents = [details(one, causality) for one in tape.exchanges[first : first + _BLOCK]]
        packed = gzip.compress(json.dumps(documents, ensure_ascii=True).encode(), 6, mtime=0)
        attributes = f"data-block data-from={first + 1} data-to={first + len(documents)}"
        yield f"<script type=text/plain {attributes}>{base64.b64encode(packed).decode()}</script>\n".encode()
    if file is not None:
        yield b"<script type=text/plain id=tp-file>" + base64.b64encode(file) + b"</script>\n"
    for script in scripts:
        yield b"<script>" + script + b"</script>\n"
    yield b"</body>\n</html>\n"


def _json(name: str, document: Json) -> bytes:
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f"<script type=application/json id={name}>{text}</script>\n".encode()
