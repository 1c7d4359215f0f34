"""The way in: installs the shim, removes its own traces, then hands over to the sitecustomize it stands in front of.

Knows nothing of what the shim does. Whatever fails here while recording is swallowed, and where only sleeps are to be
cut short; in any other replay the process ends with status 97, because a replay without the shim would prove nothing.
Any Python that the agent starts reads this file, 2.7 too: so no annotations, and those before 3.9 only pass through.
"""

import os
import sys


def _install():  # type: () -> None
    mode = os.environ.get("TAPEPROXY_MODE")
    if mode not in ("record", "replay", "fork", "skip") or sys.version_info < (3, 9) or _is_ours():
        return
    # Our own folder is ours to write to: compiling all of it anew costs each process 30 ms.
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        __import__("_tapeproxy").install()  # by name: it is found on sys.path, where type checkers don't look
    except BaseException as error:
        if mode not in ("record", "skip"):
            text = "tapeproxy: the shim could not be installed, so this replay would prove nothing: " + repr(error)
            os.write(2, text.encode("utf-8", "backslashreplace") + b"\n")
            os._exit(97)
    finally:
        sys.dont_write_bytecode = kept


_OURS = (
    "ca",
    "decrypt",
    "encrypt",
    "env",
    "keygen",
    "ls",
    "mcp",
    "prune",
    "repair",
    "scrub",
    "show",
    "sign",
    "status",
    "stop",
)


def _is_ours():  # type: () -> bool
    """Whether this is `tapeproxy stop` and the like, in a shell that has a run's variables: no part of the run."""
    words = list(getattr(sys, "orig_argv", ()))[1:]
    if words[:2] == ["-m", "tapeproxy.cli.main"]:
        words[:2] = ["tapeproxy"]
    return len(words) > 1 and os.path.basename(words[0]) == "tapeproxy" and words[1] in _OURS


def _hide(folder):  # type: (str) -> None
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != folder]
    for entry in list(sys.path_importer_cache):
        if os.path.abspath(entry or os.curdir).startswith(folder):
            del sys.path_importer_cache[entry]


_install()
_hide(os.path.dirname(os.path.abspath(__file__)))
# The one that would have run without us takes our place, or its absence is reported as it would have been.
del sys.modules["sitecustomize"]
__import__("sitecustomize")
