"""The page's server within the test, and a page of a browser that looks at it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from tapeproxy.proxy.viewserver import ViewOptions, ViewServer

TOKEN = "a-token"


@contextmanager
def viewing(place: Path, port: int = 0, extra: tuple[str, ...] = ()) -> Iterator[ViewServer]:
    """The page's server for a folder or a tape, for as long as the block lasts."""
    server = ViewServer(ViewOptions(place, TOKEN, port=port, extra=extra))
    thread = threading.Thread(target=server.run, name="viewer")
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@contextmanager
def opened(chromium: Browser, address: str) -> Iterator[Page]:
    """A page of its own at this address."""
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()
