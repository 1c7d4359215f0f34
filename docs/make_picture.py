"""docs/demo.svg: what a person sees of the main job, from real output. Run from the repository root.

usage: .venv/bin/python docs/make_picture.py

The fake provider answers the recording; the --map options that send the agent there are not in the picture.
"""

import os
import re
import subprocess
import sys
import textwrap
from html import escape
from pathlib import Path

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

TAPEPROXY = Path(sys.executable).with_name("tapeproxy")
TAPE = ".tapes/demo.tape.jsonl.gz"
HOSTS = ("api.openai.com", "search.example.com")
AGENT = (sys.executable, "examples/research.py")
WIDTH, LINE, TOP = 116, 19, 46
PLAIN = "#9aa4af"
COLOURS = (
    (re.compile(r"\$ "), "#e8e8e8"),
    (re.compile(r"tapeproxy: violation|tapeproxy: replayed .* [1-9]\d* violation|exit [1-9]"), "#ff7b72"),
    (re.compile(r"tapeproxy: "), "#7ee787"),
    (re.compile(r"\s+(tape|now):"), "#ffa657"),
    (re.compile(r"\s+(request|nearest):|\s+body "), "#d2a8ff"),
    (re.compile(r"(#|\d+)  "), "#79c0ff"),
)
type Drawn = tuple[str, str]
"""A line and its colour."""


def session() -> list[Drawn]:
    """The whole session: recorded with the provider, replayed without, looked at, and asked something else."""
    python = "python examples/research.py"
    tls = CertificateAuthority.open().server_context("127.0.0.1")
    with FakeProvider(script=Path("examples/provider.toml"), tls=tls) as provider:
        maps = [word for host in HOSTS for word in ("--map", f"{host}={provider.url}")]
        recorded = command(f"record -o {TAPE} -- {python}", "record", "--force", "-o", TAPE, *maps, "--", *AGENT)
    return [
        *recorded,
        *command(f"replay {TAPE}", "replay", TAPE),
        *command(f"show {TAPE}", "show", TAPE),
        *command(
            f'replay {TAPE} -- {python} "Why is the sea salty?"', "replay", TAPE, "--", *AGENT, "Why is the sea salty?"
        ),
    ]


def command(shown: str, *arguments: str) -> list[Drawn]:
    """One command as it is typed, what it prints on both streams, and its exit code unless it is 0."""
    keyless = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    key = {"OPENAI_API_KEY": "sk-demo-0123456789abcdef"} if arguments[0] == "record" else {}
    done = subprocess.run(
        [TAPEPROXY, *arguments],
        env=keyless | key,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    text = done.stdout.replace(f"{Path.cwd()}/", "").replace(".venv/bin/", "")
    ending = [f"exit {done.returncode}"] if done.returncode else []
    lines = [f"$ tapeproxy {shown}", *text.splitlines(), *ending, ""]
    return [(part, colour(line)) for line in lines for part in wrapped(line)]


def wrapped(line: str) -> list[str]:
    """A line as a terminal of WIDTH columns shows it, but broken at spaces, its indent kept."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent) or [""]


def colour(line: str) -> str:
    """The colour of a line of the session."""
    return next((value for pattern, value in COLOURS if pattern.match(line)), PLAIN)


def main() -> None:
    lines = session()[:-1]
    height = TOP + LINE * len(lines) + 16
    rows = "\n".join(
        f'<text x="22" y="{TOP + LINE * at + 14}" fill="{fill}">{escape(line)}</text>'
        for at, (line, fill) in enumerate(lines)
        if line
    )
    Path("docs/demo.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="980" height="{height}" viewBox="0 0 980 {height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13">\n'
        "<style>text{white-space:pre}</style>\n"
        f'<rect width="980" height="{height}" rx="10" fill="#0d1117"/>\n'
        '<circle cx="22" cy="20" r="6" fill="#ff5f56"/><circle cx="42" cy="20" r="6" fill="#ffbd2e"/>'
        '<circle cx="62" cy="20" r="6" fill="#27c93f"/>\n'
        f"{rows}\n</svg>\n"
    )


if __name__ == "__main__":
    main()
