"""Hosts that pass by untaped (`--no-tape`): how they are written, and which they are. Pure; nothing is resolved."""

import contextlib
import re
from collections.abc import Iterable

from tapeproxy.tapes.errors import UsageError

_RULE = re.compile(r"(\*\.)?(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::([0-9]{1,5}))?", re.IGNORECASE)


def parse_passing(texts: Iterable[str]) -> tuple[str, ...]:
    """Read `HOST`, `*.HOST` (all below it, not itself) or either with `:PORT`. Raises UsageError."""
    rules: list[str] = []
    for text in texts:
        rule = _as_asked(text)
        found = _RULE.fullmatch(rule)
        if found is None or (found[3] is not None and not 0 < int(found[3]) <= 0xFFFF):
            raise UsageError(
                "--no-tape wants a host", where=text, fix="write HOST, HOST:PORT or *.HOST, without https://"
            )
        rules.append(rule)
    return tuple(rules)


def _as_asked(text: str) -> str:
    """As clients write a host on the wire: names in small letters and IDNA, without the dot of a name that is whole."""
    host, colon, port = text.lower().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()):
        host, colon, port = text.lower(), "", ""
    host = host.removesuffix(".")
    with contextlib.suppress(UnicodeError):
        host = host if host.isascii() else host.encode("idna").decode()
    return host + colon + port


def passes(rules: Iterable[str], host: str, port: int) -> bool:
    """Whether one of these rules means this host (without brackets) and port."""
    name = host.lower().rstrip(".").strip("[]")
    return any(_means(rule, name, port) for rule in rules)


def _means(rule: str, name: str, port: int) -> bool:
    found = _RULE.fullmatch(rule)
    if found is None or (found[3] is not None and int(found[3]) != port):
        return False
    wanted = found[2].lower().strip("[]")
    return name.endswith(f".{wanted}") if found[1] else name == wanted
