"""A headless Chromium for tests of pages: Debian's, by playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# It would look for updates and hosts of its maker's at every start.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
expect.set_options(timeout=60_000)  # a fork's start, on a machine that has much else to do
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt install chromium)")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser, for as long as the block lasts."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield found
        finally:
            found.close()


class Watched:
    """What a page said that it should not say: errors, dialogs, and requests to anywhere but its own place."""

    def __init__(self, page: Page, own: str) -> None:
        self.said: list[str] = []
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self._asked(request.url, own))

    def _dismiss(self, dialog: Dialog) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.said.append(f"{kind}: {text}")

    def _asked(self, url: str, own: str) -> None:
        if not url.startswith((own, "data:", "blob:")):
            self.said.append(f"request: {url}")


def until(page: Page, script: str, turns: int = 1000) -> None:
    """Wait until an expression is true. Playwright's own way needs `eval`, which the page's policy forbids."""
    for _ in range(turns):
        if page.evaluate(script):
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"it never came: {script}")
