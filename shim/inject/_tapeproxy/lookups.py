"""Names of hosts that the agent looks up: taped with what they were found to be, and served from the tape."""

from __future__ import annotations

import json

from . import egress, hooks, settings, sockets, tapedvalues
from .addresses import packed, text_of
from .likeness import resemble
from .values import LIMIT, SERVES, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CALLS = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr")


def install() -> None:
    """Watch look-ups that are made from now on."""
    hooks.on_import("socket", _patch)
    if SERVES:
        egress.is_taped_name = _is_on_tape
    elif settings.RECORD:
        egress.is_taped_name = bool


def _patch(module: Any) -> None:
    for name in _CALLS:
        original = getattr(module, name)
        setattr(module, name, resemble(_looking_up(name, original), original))


def _is_on_tape(host: str) -> bool:
    whole = f"{host}:"
    return any(v["what"] == "lookup" and (v["name"] + ":").startswith(whole) for v in tapedvalues.load())


def _looking_up(call: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def look_up(*args: Any, **kwargs: Any) -> Any:
        host = args[0] if args else kwargs.get("host")
        if not _counts(call, host):
            return original(*args, **kwargs)
        name = text_of(host)
        if call == "getaddrinfo":
            port = args[1] if len(args) > 1 else kwargs.get("port")
            name = f"{name}:{'' if port is None else text_of(port) if isinstance(port, (str, bytes)) else port}"
        told: dict[str, Any] = {}
        if SERVES:
            taped = _take(call, name)
            if taped is not None:
                return _served(call, taped)
            told = {"taped": None}
        return _told(call, name, told, lambda: original(*args, **kwargs))

    return look_up


def _counts(call: str, host: Any) -> bool:
    try:
        name = text_of(host)
        return not (packed(name) is not None and call != "gethostbyaddr") and not (
            egress.watch is not None and egress.watch.knows(name)
        )
    except (TypeError, ValueError, AttributeError):  # no name: the real call says so
        return False


def _take(call: str, name: str) -> dict[str, Any] | None:
    """The lane's next answer for a name, or that of another lane: an address belongs to nobody."""
    taped = tapedvalues.take("lookup", name)
    if taped is not None and taped["data"].get("by") == call:
        return taped
    every = (value for value in tapedvalues.load() if (value["what"], value["name"]) == ("lookup", name))
    return next((value for value in every if value["data"].get("by") == call), None)


def _told(call: str, name: str, told: dict[str, Any], really: Callable[[], Any]) -> Any:
    from . import refusals

    data = {"by": call}
    try:
        found = sockets._quietly(really)
    except refusals.RefusedError:  # the guard has said so
        raise
    except OSError as error:
        facts = {"error": _error_name(error), "data": {**data, "text": str(error.strerror or error)}}
        tell("lookup", name, told, lambda: facts)
        raise
    content = json.dumps([[*entry] for entry in found] if call == "getaddrinfo" else found).encode()
    if len(content) <= LIMIT:
        tell("lookup", name, told, lambda: {"content": content, "data": data})
    return found


def _error_name(error: OSError) -> str:
    import _socket

    kinds = {getattr(_socket, name): name for name in dir(_socket) if name.startswith("EAI_")}
    return kinds.get(error.errno, "EAI_FAIL") if isinstance(error, _socket.gaierror) else "EAI_FAIL"


def _served(call: str, taped: dict[str, Any]) -> Any:
    import socket

    if taped.get("error"):
        raise socket.gaierror(getattr(socket, taped["error"], socket.EAI_FAIL), taped["data"].get("text", ""))
    content = tapedvalues.content_of(taped)
    found = json.loads(content or b"[]")
    if call == "getaddrinfo":
        return [(*_kinds(entry), *entry[2:4], tuple(entry[4])) for entry in found]
    return tuple(found) if isinstance(found, list) else found


def _kinds(entry: list[Any]) -> tuple[Any, Any]:
    import socket

    return _member(socket.AddressFamily, entry[0]), _member(socket.SocketKind, entry[1])


def _member(kind: Any, number: int) -> Any:
    try:
        return kind(number)
    except ValueError:
        return number
