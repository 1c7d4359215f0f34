"""The scripts and the style of the page: which, in what order, and what a browser is allowed to do with them."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
SCRIPTS: Final = (
    *("vendor/htm-preact.js", "vendor/noble-blake3.js"),
    *("static/base.js", "static/searching.js", "static/source.js", "static/model.js"),
    *("static/pixels.js", "static/lanes.js", "static/verify.js"),
    *(
        "static/stream.js",
        "static/detail.js",
        "static/contexts.js",
        "static/rundiff.js",
        "static/fork.js",
        "static/why.js",
        "static/app.js",
    ),
)
"""Plain scripts, in the order in which they are loaded."""
ONLINE: Final = "static/online.js"
"""The last script of a page that a server gives out: it starts the page."""
STYLE: Final = "static/viewer.css"
LICENCES: Final = "vendor/LICENSES.txt"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of pages that a server gives out."""


@cache
def asset(name: str) -> bytes:
    """One file of the page. Raises KeyError for a name that is not one."""
    if name not in (*SCRIPTS, ONLINE, STYLE, LICENCES):
        raise KeyError(name)
    return (_HERE / name).read_bytes()


def source_hash(text: bytes) -> str:
    """How a Content-Security-Policy names an inline script or style: https://www.w3.org/TR/CSP3/#framework-directive-source-list"""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
