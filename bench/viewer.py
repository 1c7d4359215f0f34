"""How fast the page of a long tape is: its first picture, work of the main thread while it moves, memory.

usage: .venv/bin/python bench/viewer.py [--exchanges 20000] [--lanes 60] [--strict], or `make bench-viewer`

It opens a run that is made up (tests/longtapes.py) in a headless Chromium: as the single file, from disk and from a
plain server of files, and from `tapeproxy serve`, at once and a second time. It scrolls, pans, zooms, and goes through
exchanges. Tasks are counted in processor time of the main thread, and so is what the server took; the first picture is
by the clock, so a loaded machine is slow. Each figure with a bar says whether that is met; with --strict one that is
missed is exit code 1.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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

MOVES, STEPS = 150, 40
FIRST, FRAME, MEMORY = 1500, 12, 300
"""The bars: ms until the lanes are drawn, ms of a task of the main thread (of a hundred, one may be longer), MB."""
_TRACED = ("toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Report:
    """What was measured, printed as it comes."""

    missed: list[str] = field(default_factory=list)

    def say(self, what: str, words: str, figure: float | None = None, bar: float = 0) -> None:
        verdict = "" if figure is None else f"  [bar {bar:g}: {'met' if figure <= bar else 'MISSED'}]"
        print(f"{what}: {words}{verdict}", flush=True)
        if figure is not None and figure > bar:
            self.missed.append(what)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--exchanges", type=int, default=20_000)
    parser.add_argument("--lanes", type=int, default=60)
    parser.add_argument("--strict", action="store_true")
    chosen = parser.parse_args()
    report = Report()
    print(f"{chosen.exchanges} exchanges, {chosen.lanes} lanes; load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        tape = write_long(Path(name) / "long.tape.jsonl.gz", chosen.exchanges, chosen.lanes)

        def browse(what: str, url: str) -> None:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
            measure(browser, what, url, Path(name) / "trace.json", report)
            browser.close()

        serve(tape, report, browse)
        single(tape, report, browse)
    print(f"bars missed: {'; '.join(report.missed) or 'none'}")
    return 1 if report.missed and chosen.strict else 0


def serve(tape: Path, report: Report, browse: Callable[[str, str], None]) -> None:
    """The page of `tapeproxy serve TAPE`: asked for as soon as the address is printed, and once more."""
    command = [Path(sys.executable).with_name("tapeproxy"), "serve", tape]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            for what in ("serve, at once", "serve, again"):
                before = processor(server.pid)
                browse(what, address)
                report.say(what, f"the server took {processor(server.pid) - before:.1f} s of processor")
        finally:
            server.terminate()


def single(tape: Path, report: Report, browse: Callable[[str, str], None]) -> None:
    """The page of `tapeproxy view TAPE`, from disk and from a server of files."""
    began, page = time.monotonic(), tape.parent / "long.html"
    loaded, ending = load(tape)
    with page.open("wb") as file:
        file.writelines(single_file(loaded, ending, tape.name, tape.read_bytes()))
    sizes = f"{page.stat().st_size / 1e6:.1f} MB, of a tape of {tape.stat().st_size / 1e6:.1f} MB"
    report.say("view", f"{sizes}, written in {time.monotonic() - began:.1f} s")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tape.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browse("file://", page.as_uri())
    browse("http://", f"http://127.0.0.1:{server.server_port}/long.html")
    server.shutdown()


def measure(browser: Browser, what: str, url: str, trace: Path, report: Report) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})

    def traced(doing: str, act: Callable[[], None]) -> None:
        browser.start_tracing(page=page, path=trace, categories=list(_TRACED))
        act()
        browser.stop_tracing()
        tasks = [one for one in main_thread(json.loads(trace.read_text())["traceEvents"]) if one > 1]
        report.say(f"{what}, {doing}", f"tasks over 1 ms: {told(tasks)}", last_of(tasks), FRAME)

    def come() -> None:
        until(page, "tp.model.ranked && tp.model.labelled", 6000)

    def step() -> None:
        for _ in range(STEPS):
            page.keyboard.press("j")
            page.evaluate("new Promise(requestAnimationFrame)")

    page.goto(url)
    until(page, "window.tp && tp.painted", 6000)
    painted = page.evaluate("tp.painted")
    report.say(what, f"first picture of the lanes after {painted:.0f} ms", painted, FIRST)
    traced("labels come", come)
    page.mouse.move(700, 200)
    page.evaluate("tp.lanes.frames.length = 0")
    traced("scrolling, panning, zooming", lambda: move(page))
    report.say(what, f"drawing: {told(page.evaluate('tp.lanes.frames'))}")
    traced(f"j, {STEPS} times", step)
    page.evaluate("tp.state.set({number: 1000, tab: 'stream'})")
    page.wait_for_selector(".detail[data-number='1000']")
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable")
    metrics = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
    heap, whole = metrics["JSHeapUsedSize"] / 1e6, resident() / 1e6
    report.say(f"{what}, memory", f"heap {heap:.0f} MB, renderer {whole:.0f} MB resident", whole, MEMORY)


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
    middle, long = statistics.median(values), sum(one > FRAME for one in values)
    facts = f"median {middle:.1f} ms, p99 {last_of(values):.1f} ms, longest {max(values):.1f} ms"
    return f"{len(values)}, {facts}, {long} over {FRAME} ms"


def last_of(values: list[float]) -> float:
    """The 99th of a hundred."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0


def processor(pid: int) -> float:
    """Seconds of processor that a process took."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


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
    sys.exit(main())
