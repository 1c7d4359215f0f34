"""tapeproxy: tape everything an agent hears over HTTP, and replay the run offline.

This module knows the version; `what_if` and `what_if_async` (docs/FORK.md) are imported when they are asked for.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes longer to load than the hints that an agent imports
    from tapeproxy.proxy.whatif import what_if as what_if
    from tapeproxy.proxy.whatif import what_if_async as what_if_async

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in ("what_if", "what_if_async"):
        from tapeproxy.proxy import whatif

        return getattr(whatif, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
