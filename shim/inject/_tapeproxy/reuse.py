"""Leaves out of an agent's course what urllib3 does when it has to connect, and when it need not.

Which of several threads gets the connection that one of them has given back is chance: it brings nobody an answer, and
connecting looks at the calendar, to warn of a clock that is far off.
"""

from __future__ import annotations

from . import clock, hooks, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def install() -> None:
    """Wait for urllib3, on which requests and botocore stand."""
    if settings.APART:
        hooks.on_import("urllib3.connection", _own_calendar)
        hooks.on_import("urllib3.connectionpool", _own_queue)


def _own_calendar(module: Any) -> None:
    """Give it the day that it is; its `datetime` is used for nothing else."""
    shared = module.datetime

    def today(_: type) -> Any:
        return shared.date.fromtimestamp(clock.REAL.time())

    own: ModuleType = type(shared)("datetime")
    own.__dict__.update(vars(shared), date=type("date", (shared.date,), {"today": classmethod(today)}))
    module.datetime = own


def _own_queue(module: Any) -> None:
    """Give its pools a queue at which nobody learns of anybody (`queueedges`)."""
    plain = module.ConnectionPool.QueueCls
    methods = {name: getattr(method, "__wrapped__", method) for name, method in _both(plain)}
    module.ConnectionPool.QueueCls = type(plain)(plain.__name__, (plain,), {"__module__": plain.__module__, **methods})


def _both(cls: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(cls, name)) for name in ("put", "get")]
