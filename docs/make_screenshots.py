"""docs/viewer.png and viewer-context, -why and -diff.png: the viewer as a person sees it. Run from the repository root.

usage: .venv/bin/python docs/make_screenshots.py

The team of examples/team.py is recorded with the fake provider, and forked; the pages are those of `tapeproxy view`.
It needs Chromium.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

TAPEPROXY = Path(sys.executable).with_name("tapeproxy")
ROOT = Path(__file__).parents[1]
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "examples" / "team.py", folder)
        record(folder)
        run(folder, "view", "team.tape.jsonl.gz", "-o", "team.html")
        run(folder, "view", "team.tape.jsonl.gz", "fork.tape.jsonl.gz", "-o", "diff.html")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
            shoot(browser, folder / "team.html", "viewer.png", "jjjjh")
            shoot(browser, folder / "team.html", "viewer-context.png", "jjjjc")
            shoot(browser, folder / "team.html", "viewer-why.png", "jjjjj", ask=".tool .tool .asks")
            shoot(browser, folder / "diff.html", "viewer-diff.png", "b")
            browser.close()


def record(folder: Path) -> None:
    """The run, and a fork of it in which a worker says something else."""
    tls = CertificateAuthority.open().server_context("127.0.0.1")
    with FakeProvider(script=ROOT / "examples" / "provider.toml", tls=tls) as provider:
        maps = ("--map", f"api.openai.com={provider.url}")
        run(folder, "record", "-o", "team.tape.jsonl.gz", *maps, "--", "python", "team.py")
        change = ("--at", "4", "--text", "The moon does it.")
        run(folder, "fork", "team.tape.jsonl.gz", *change, "-o", "fork.tape.jsonl.gz", *maps)


def run(folder: Path, *words: str) -> None:
    keyless = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    key = {"OPENAI_API_KEY": "sk-demo-0123456789abcdef", "PATH": path}
    done = subprocess.run(
        [TAPEPROXY, *words], cwd=folder, env=keyless | key, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"tapeproxy {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")


def shoot(browser: Browser, file: Path, name: str, keys: str, ask: str = "") -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 560}, color_scheme="light")
    page.goto(file.as_uri())
    while not page.evaluate("window.tp && tp.painted && tp.model.ranked"):
        page.wait_for_timeout(20)
    for key in keys:
        page.keyboard.press(key)
        page.evaluate("new Promise(requestAnimationFrame)")
    if ask:
        page.locator(ask).last.press("Enter")
        page.locator(".where ol").wait_for()
    page.wait_for_timeout(300)
    page.screenshot(path=ROOT / "docs" / name)
    page.close()


if __name__ == "__main__":
    main()
