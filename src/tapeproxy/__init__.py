"""tapeproxy: tape everything an agent hears over HTTP, and replay the run offline.

This module knows the version; all else that it offers is imported when it is asked for: `record` and `replay`
(docs/PYTEST.md), `what_if` and `what_if_async` (docs/FORK.md).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes longer to load than the hints that an agent imports
    from tapeproxy.proxy.inprocess.failures import LateRequestWarning as LateRequestWarning
    from tapeproxy.proxy.inprocess.recordings import Record as Record
    from tapeproxy.proxy.inprocess.recordings import record as record
    from tapeproxy.proxy.inprocess.replays import Replay as Replay
    from tapeproxy.proxy.inprocess.replays import TapeDriftError as TapeDriftError
    from tapeproxy.proxy.inprocess.replays import TapeViolationError as TapeViolationError
    from tapeproxy.proxy.inprocess.replays import replay as replay
    from tapeproxy.proxy.inprocess.updates import Update as Update
    from tapeproxy.proxy.inprocess.updates import update as update
    from tapeproxy.proxy.whatif import what_if as what_if
    from tapeproxy.proxy.whatif import what_if_async as what_if_async

__version__ = "0.1.0"

_HOMES = {
    "LateRequestWarning": ("proxy.inprocess.failures", "LateRequestWarning"),
    "Record": ("proxy.inprocess.recordings", "Record"),
    "record": ("proxy.inprocess.recordings", "record"),
    "Replay": ("proxy.inprocess.replays", "Replay"),
    "replay": ("proxy.inprocess.replays", "replay"),
    "TapeDriftError": ("proxy.inprocess.replays", "TapeDriftError"),
    "TapeViolationError": ("proxy.inprocess.replays", "TapeViolationError"),
    "Update": ("proxy.inprocess.updates", "Update"),
    "update": ("proxy.inprocess.updates", "update"),
    "what_if": ("proxy.whatif", "what_if"),
    "what_if_async": ("proxy.whatif", "what_if_async"),
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        import importlib

        module, attribute = _HOMES[name]
        return getattr(importlib.import_module(f"tapeproxy.{module}"), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
