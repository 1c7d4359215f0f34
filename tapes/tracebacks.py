"""What a Python program died of, by the last words on its standard error. Pure.

Two runs that end with the same exception, raised on the same line, count as one failure; a wrong value elsewhere makes
another one. A program that ends without a traceback says nothing here.
"""

import re
from typing import Final

_HEADER: Final = re.compile(rb"^Traceback \(most recent call last\):\r?$", re.M)
_FRAME: Final = re.compile(rb'^ +File "([^\n]*)", line (\d+), in ([^\r\n]*)', re.M)
_RAISED: Final = re.compile(rb"^([A-Za-z_][\w.]*)(?::|\r?\n)", re.M)


def death(stderr: bytes) -> str | None:
    """`TypeError at agent.py:12 in main` from the last traceback; None where the last words are none."""
    headers = list(_HEADER.finditer(stderr))
    if not headers:
        return None
    trace = stderr[headers[-1].end() :]
    frames = list(_FRAME.finditer(trace))
    raised = _RAISED.search(trace, frames[-1].end() if frames else 0)
    if not frames or raised is None:
        return None
    file, line, name = (part.decode(errors="replace") for part in frames[-1].groups())
    return f"{raised[1].decode()} at {file}:{line} in {name}"
