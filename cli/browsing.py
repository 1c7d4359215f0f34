"""Opening an address that holds a secret in a browser, whose command line every user of the machine can read."""

import contextlib
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from html import escape
from pathlib import Path

import click

_PAGE = """<!doctype html>
<meta charset=utf-8><meta name=referrer content=no-referrer>
<meta http-equiv=refresh content="0; url={address}">
<title>tapeproxy</title><a href="{address}">the viewer</a>
"""


@contextlib.contextmanager
def leading_to(address: str) -> Iterator[Path]:
    """A file that its owner alone can read, and that leads a browser to `address`; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tapeproxy-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "viewer.html"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as page:
            page.write(_PAGE.format(address=escape(address)))
        yield file


def browse(file: Path) -> None:
    """Open a file in the browser of the desktop, if there is one."""
    if click.launch(str(file)) != 0:
        webbrowser.open(file.as_uri())
