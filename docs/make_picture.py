"""docs/demo.svg: what a person sees of the main job, from real output. Run after `make demo`, from the repository root.

usage: .venv/bin/python docs/make_picture.py
"""

import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

TAPEPROXY = Path(sys.executable).with_name("tapeproxy")
TAPE = ".tapes/demo.tape.jsonl.gz"
SESSION = (
    (f"tapeproxy replay {TAPE}", ["replay", TAPE]),
    (f"tapeproxy show {TAPE}", ["show", TAPE]),
    (
        f'tapeproxy replay {TAPE} -- python examples/research.py "Why is the sea salty?"',
        ["replay", TAPE, "--", sys.executable, "examples/research.py", "Why is the sea salty?"],
    ),
)
WIDTH, LINE, TOP = 118, 19, 46
COLOURS = (
    (re.compile(r"^\$ .*"), "#e8e8e8"),
    (re.compile(r"^tapeproxy: violation.*"), "#ff7b72"),
    (re.compile(r"^tapeproxy: .*"), "#7ee787"),
    (re.compile(r"^\s+(tape|now):.*"), "#ffa657"),
    (re.compile(r"^\s+(request|nearest):.*|^\s+body .*"), "#d2a8ff"),
    (re.compile(r"^(#|\d+)  .*"), "#79c0ff"),
)


def lines_of(arguments: list[str]) -> list[str]:
    """The output of one command, both streams, without the agent's traceback."""
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [TAPEPROXY, *arguments],
        env=keyless | {"COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    text = re.sub(r"Traceback .*?(?=^tapeproxy: |\Z)", "", done.stdout, flags=re.DOTALL | re.MULTILINE)
    text = text.replace(str(Path.cwd()) + "/", "").replace(sys.executable, "python").replace(".venv/bin/", "")
    wrapped = (line[at : at + WIDTH] for line in text.splitlines() for at in range(0, max(len(line), 1), WIDTH))
    return list(wrapped)


def colour(line: str) -> str:
    """The colour of a line of the session."""
    return next((value for pattern, value in COLOURS if pattern.match(line)), "#9aa4af")


def main() -> None:
    lines: list[str] = []
    for shown, arguments in SESSION:
        lines += [f"$ {shown}", *lines_of(arguments), ""]
    height = TOP + LINE * len(lines)
    rows = "\n".join(
        f'<text x="22" y="{TOP + LINE * at + 14}" fill="{colour(line)}">{escape(line)}</text>'
        for at, line in enumerate(lines)
        if line
    )
    Path("docs/demo.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="980" height="{height}" viewBox="0 0 980 {height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">\n'
        f'<rect width="980" height="{height}" rx="10" fill="#0d1117"/>\n'
        '<circle cx="22" cy="20" r="6" fill="#ff5f56"/><circle cx="42" cy="20" r="6" fill="#ffbd2e"/>'
        '<circle cx="62" cy="20" r="6" fill="#27c93f"/>\n'
        f"{rows}\n</svg>\n"
    )


if __name__ == "__main__":
    main()
