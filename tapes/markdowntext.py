"""Strange text within Markdown: as code, fenced by more ticks than it holds, so that no markup of it is taken for ours.

https://spec.commonmark.org/0.31.2/#code-spans and #fenced-code-blocks
"""

import re
from typing import Final

from tapeproxy.tapes.invisible import spelled

_TICKS: Final = re.compile(r"`+")


def code(text: str) -> str:
    """Text on one line, as code."""
    text = " ".join(spelled(text).split()) or " "
    ticks = "`" * (_longest_run(text) + 1)
    space = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def fenced(text: str) -> str:
    """Text as a block of code, with its lines; ends with a line feed."""
    text = spelled(text)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}{'' if text.endswith('\n') else '\n'}{fence}\n"


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
