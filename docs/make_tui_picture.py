"""docs/tui.svg: the terminal viewer on a tape. Run from the repository root.

usage: .venv/bin/python docs/make_tui_picture.py TAPE [KEY…]
"""

import asyncio
import re
import sys
from pathlib import Path

from tapeproxy.cli.tuiapp import Viewer
from tapeproxy.cli.tuirows import Rows
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.causality import Causality


async def picture(path: Path, keys: list[str]) -> str:
    """The screen after these keys, as SVG."""
    tape, ending = load(path)
    app = Viewer(Rows(tape, ending, path.name), Causality.of(tape))
    async with app.run_test(size=(110, 30)) as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        # Without the fonts, which would be loaded from elsewhere.
        return re.sub(r"@font-face \{[^}]*\}\s*", "", app.export_screenshot(title="tapeproxy tui"))


if __name__ == "__main__":
    Path("docs/tui.svg").write_text(asyncio.run(picture(Path(sys.argv[1]), sys.argv[2:])) + "\n")
