"""How fast the page of a long tape is: its first picture, work of the main thread while it moves, memory.

usage: .venv/bin/python bench/viewer.py [--exchanges 20000] [--lanes 60]

It opens the single file of a run that is made up (tests/longtapes.py) in a headless Chromium, from disk and from a
plain server of files, and scrolls, pans and zooms. Nothing is asserted: a loaded machine is slow.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser import CHROMIUM, FLAGS, until  # pyright: ignore[reportMissingImports]  # tests/ is on the path by now
from longtapes import write_long  # pyright: ignore[reportMissingImports]  # as above

from tapeproxy.proxy.tapefile import load
from tapeproxy.web.singlefile import single_file

MOVES = 150
_TRACED = ("toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--exchanges", type=int, default=20_000)
    parser.add_argument("--lanes", type=int, default=60)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tape = write_long(folder / "long.tape.jsonl.gz", chosen.exchanges, chosen.lanes)
        began = time.monotonic()
        loaded, ending = load(tape)
        with (folder / "long.html").open("wb") as file:
            file.writelines(single_file(loaded, ending, tape.name, tape.read_bytes()))
        took = time.monotonic() - began
        size = (folder / "long.html").stat().st_size
        print(f"{chosen.exchanges} exchanges, {chosen.lanes} lanes; load average {os.getloadavg()[0]:.1f}")
        print(f"tape {tape.stat().st_size / 1e6:.1f} MB; page {size / 1e6:.1f} MB, written in {took:.1f} s")
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=name))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            for what, url in (
                ("file://", (folder / "long.html").as_uri()),
                ("http://", f"http://127.0.0.1:{server.server_port}/long.html"),
            ):
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
                measure(browser, what, url, folder / "trace.json")
                browser.close()
        server.shutdown()


def measure(browser: Browser, what: str, url: str, trace: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(url)
    until(page, "window.tp && tp.painted")
    until(page, "tp.model.ranked")
    painted, contentful = page.evaluate(
        "[tp.painted, (performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime]"
    )
    print(f"{what} first picture of the lanes after {painted:.0f} ms (first contentful paint {contentful:.0f} ms)")
    page.mouse.move(700, 200)
    browser.start_tracing(page=page, path=trace, categories=list(_TRACED))
    page.evaluate("tp.lanes.frames.length = 0")
    move(page)
    browser.stop_tracing()
    frames, tasks = page.evaluate("tp.lanes.frames"), main_thread(json.loads(trace.read_text())["traceEvents"])
    print(f"  drawing: {told(frames)}")
    print(f"  tasks of the main thread over 1 ms: {told([one for one in tasks if one > 1])}")
    page.evaluate("tp.state.set({number: 1000, tab: 'stream'})")
    page.wait_for_selector(".detail[data-number='1000']")
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable")
    metrics = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
    print(f"  memory: heap {metrics['JSHeapUsedSize'] / 1e6:.0f} MB, renderer {resident() / 1e6:.0f} MB resident")


def move(page: Page) -> None:
    """Zoom in where the mouse is, pan, scroll the lanes and the list, zoom out."""
    for at in range(MOVES):
        if at % 3 == 0:
            page.mouse.wheel(120, 0)
        elif at % 3 == 1:
            page.mouse.wheel(0, 40 if at < MOVES / 2 else -40)
        else:
            page.keyboard.press("+" if at < MOVES / 2 else "-")
        page.evaluate("new Promise(requestAnimationFrame)")
    page.mouse.move(200, 600)
    for _ in range(MOVES // 3):
        page.mouse.wheel(0, 900)
        page.evaluate("new Promise(requestAnimationFrame)")


def main_thread(events: list[dict[str, Any]]) -> list[float]:
    """How long the tasks of the page's main thread were, in ms of its processor where that is known."""
    mains = {
        (one["pid"], one["tid"])
        for one in events
        if one.get("name") == "thread_name" and one["args"].get("name") == "CrRendererMain"
    }
    return [
        one.get("tdur", one["dur"]) / 1000
        for one in events
        if one.get("name") == "RunTask" and "dur" in one and (one["pid"], one["tid"]) in mains
    ]


def told(values: list[float]) -> str:
    if not values:
        return "none"
    ordered = sorted(values)
    last = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return (
        f"{len(ordered)}, median {statistics.median(ordered):.1f} ms, p99 {last:.1f} ms, longest {ordered[-1]:.1f} ms"
    )


def resident() -> int:
    """The largest renderer among our descendants, in bytes; of what processes share, its share (PSS)."""
    most = 0
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            command = (process / "cmdline").read_bytes()
            if b"--type=renderer" in command and _is_ours(int(process.name)):
                pss = next(
                    line for line in (process / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:")
                )
                most = max(most, int(pss.split()[1]) * 1024)
        except OSError:
            continue
    return most


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


if __name__ == "__main__":
    if shutil.which(CHROMIUM or "chromium") is None:
        sys.exit("Chromium is not installed (apt install chromium)")
    main()
