"""docs/tui.svg, tui-fork.svg, tui-diff.svg: the terminal viewer as a person sees it. Run from the repository root.

usage: .venv/bin/python docs/make_tui_picture.py

The run, and its fork, are those of make_screenshots.py.
"""

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from make_screenshots import record

from tapeproxy.cli.tui import open_viewer
from tapeproxy.proxy.viewforks import ForkingFolder

DOCS = Path(__file__).parent
SIZE = (120, 32)
HOME = "/home/ada/agents"
"""As long as the name of the folder for which it stands."""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "team.py").write_bytes((DOCS.parent / "examples" / "team.py").read_bytes())
        record(folder)
        tapes = [folder / "team.tape.jsonl.gz", folder / "fork.tape.jsonl.gz"]
        for picture, shown, keys in (
            ("tui.svg", tapes[:1], ["g", "5", "enter", "w"]),
            ("tui-fork.svg", tapes[:1], ["g", "4", "enter", "f", "", "ctrl+p", "about "]),
            ("tui-diff.svg", tapes, ["b"]),
        ):
            drawn = asyncio.run(shoot(shown, keys)).replace(name, HOME[: len(name)])
            (DOCS / picture).write_text(drawn + "\n")


async def shoot(paths: Sequence[Path], keys: Sequence[str]) -> str:
    """The screen after these keys, as SVG. A word that is no key waits until it can be seen."""
    app = open_viewer([ForkingFolder(path) for path in paths], [path.relative_to(path.parent) for path in paths])
    async with app.run_test(size=SIZE) as pilot:
        for key in keys:
            if not key or " " in key:
                for _ in range(600):
                    seen = app.export_screenshot().replace("&#160;", " ")
                    if key in seen and app.query("#fork"):
                        break
                    await pilot.pause(0.05)
                await pilot.pause(0.3)
                continue
            await pilot.press(key)
        await pilot.pause()
        # Without the fonts, which would be loaded from elsewhere.
        return re.sub(r"@font-face \{[^}]*\}\s*", "", app.export_screenshot(title="tapeproxy tui"))


if __name__ == "__main__":
    main()
