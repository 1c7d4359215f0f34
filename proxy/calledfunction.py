"""A function run in a Python of its own, found there by its name; what it returns comes back as JSON.

Knows how to name a function and how to read its result; runs nothing itself.
"""

import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tapeproxy.tapes.errors import UsageError

# Standard library only, and any Python from 3.9 on: it runs in the agent's process.
_CODE: Final = """\
import json, os, sys
spec = json.loads(sys.argv[1])
sys.path.extend(one for one in spec["path"] if one not in sys.path)
sys.argv[1:] = []
if spec["file"]:
    import runpy
    found = runpy.run_path(spec["file"], run_name="__tapeproxy_fork__")[spec["names"][0]]
else:
    import importlib
    found = getattr(importlib.import_module(spec["module"]), spec["names"][0])
for name in spec["names"][1:]:
    found = getattr(found, name)
value = found()
if hasattr(value, "__await__"):
    import asyncio
    async def awaited():
        return await value
    value = asyncio.run(awaited())
try:
    text = json.dumps(value, default=repr)
except (TypeError, ValueError):
    text = json.dumps(repr(value))
if os.path.isdir(os.path.dirname(spec["result"])):
    with open(spec["result"], "w", encoding="utf-8") as file:
        file.write(text)
"""


def command_of(fn: Callable[[], object], result: Path) -> tuple[str, ...]:
    """The command that runs `fn`, and puts what it returns into the file `result`, if there is still such a folder.

    A function of the main program is found by running its file again, as another module: what is to be done there only
    once has to stand behind `if __name__ == "__main__"`. Raises UsageError for a function that has no name of its own.
    """
    fn = inspect.unwrap(fn)
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", "")
    file = getattr(sys.modules.get("__main__"), "__file__", None) if module == "__main__" else None
    if not module or not name or "<" in name or (module == "__main__" and file is None):
        raise UsageError(
            f"{name or fn!r} cannot be run in another Python: it has no name at the top of a module that has a file",
            fix="give a function that can be imported, or a command line",
        )
    spec = {
        "module": module,
        "file": "" if file is None else str(Path(file).absolute()),
        "names": name.split("."),
        "path": [str(Path(one or ".").absolute()) for one in sys.path],
        "result": str(result.absolute()),
    }
    return sys.executable, "-c", _CODE, json.dumps(spec)


def result_in(path: Path) -> Any:
    """What the function returned; None where it did not."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
