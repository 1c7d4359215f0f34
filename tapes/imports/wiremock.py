"""WireMock's mappings: what it answers to what. Knows stubs that name one request; patterns of many it refuses.

A stub names no host: `base`, a URL, says where its paths are. Those of a scenario come in the order of its states.
"""

from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import urlencode, urlsplit

from tapeproxy.tapes.imports.foreign import Foreign, pairs_of
from tapeproxy.tapes.imports.nodes import Node
from tapeproxy.tapes.imports.vcr import json_text, unpacked

_STARTED: Final = "Started"
"""The state in which a scenario begins."""
_EXACT: Final = ("equalTo", "equalToJson", "binaryEqualTo")


def is_mappings(root: Node) -> bool:
    """Whether a parsed file is one: `mappings`, or a single mapping."""
    return isinstance(root.value, dict) and ("mappings" in root.value or {"request", "response"} <= root.value.keys())


def entries(root: Node) -> list[Node]:
    """Its mappings; those of a scenario in the order in which it comes to their states. Raises ForeignFormatError."""
    found = root.get("mappings")
    if found is None:
        return [root]
    stubs = found.items()
    ranks = {name: _ranks([stub for stub in stubs if _scenario(stub) == name]) for name in set(map(_scenario, stubs))}
    return sorted(stubs, key=lambda stub: (_scenario(stub), ranks[_scenario(stub)].get(_state(stub), len(stubs))))


def taker(base: str, file: Callable[[str], bytes]) -> Callable[[Node], Foreign]:
    """Take mappings for the host at `base`; `file` reads a body file, by its name. See `take`."""
    return partial(take, base=base, file=file)


def take(entry: Node, *, base: str, file: Callable[[str], bytes]) -> Foreign:
    """One mapping. Raises ForeignFormatError."""
    asked, given = entry.need("request"), entry.need("response")
    if not base:
        raise entry.wrong("WireMock's mappings name no host: say which with --base-url URL")
    fault = given.get("fault")
    return Foreign(
        place=entry.place,
        method=asked.need("method").text().upper().encode("latin-1", "replace"),
        url=_url(asked, base),
        request_headers=_asked_headers(asked),
        request_body=_asked_body(asked),
        status=0 if fault is not None else _status(given),
        headers=_headers(given),
        body=b"" if fault is not None else _body(given, file),
        how="complete" if fault is None else "reset",
        error=None if fault is None else fault.text(),
        absent=("times", "boundaries", "lanes", "headers of the request"),
    )


def _scenario(stub: Node) -> str:
    return _said(stub, "scenarioName")


def _state(stub: Node) -> str:
    return _said(stub, "requiredScenarioState") or _STARTED


def _said(stub: Node, name: str) -> str:
    value = stub.value.get(name) if isinstance(stub.value, dict) else None
    return value if isinstance(value, str) else ""


def _ranks(stubs: list[Node]) -> dict[str, int]:
    """How many steps from its beginning a scenario comes to each of its states."""
    ranks = {_STARTED: 0}
    waiting = [_STARTED]
    for state in waiting:
        following = (_said(stub, "newScenarioState") for stub in stubs if _state(stub) == state)
        for name in following:
            if name and name not in ranks:
                ranks[name] = ranks[state] + 1
                waiting.append(name)
    return ranks


def _url(asked: Node, base: str) -> bytes:
    found = asked.get("url", "urlPath")
    if found is None:
        raise asked.wrong("a pattern of URLs is no request: only `url` and `urlPath` can be imported")
    url = base.rstrip("/") + found.text()
    queries = asked.get("queryParameters")
    if queries is not None:
        pairs = [(name, _exact(node)) for name, node in queries.fields()]
        url += ("&" if urlsplit(url).query else "?") + urlencode(pairs)
    return url.encode()


def _exact(node: Node) -> str:
    found = node.get("equalTo")
    if found is None:
        raise node.wrong("only `equalTo` can be imported: a pattern is no request")
    return found.text()


def _asked_headers(asked: Node) -> tuple[tuple[bytes, bytes], ...]:
    found = asked.get("headers")
    if found is None:
        return ()
    return pairs_of((name, one.text()) for name, node in found.fields() if (one := node.get("equalTo")) is not None)


def _asked_body(asked: Node) -> bytes:
    patterns = asked.get("bodyPatterns")
    if patterns is None or not patterns.value:
        return b""
    for pattern in patterns.items():
        found = pattern.get(*_EXACT)
        if found is not None:
            return unpacked(found) if "binaryEqualTo" in pattern.value else json_text(found)
    raise patterns.wrong(f"only {', '.join(_EXACT)} can be imported: a pattern is no body")


def _status(given: Node) -> int:
    found = given.get("status")
    return 200 if found is None else found.whole()


def _headers(given: Node) -> tuple[tuple[bytes, bytes], ...]:
    found = given.get("headers")
    return () if found is None else pairs_of((name, node.value) for name, node in found.fields())


def _body(given: Node, file: Callable[[str], bytes]) -> bytes:
    name = given.get("bodyFileName")
    if name is not None:
        return file(name.text())
    packed = given.get("base64Body")
    if packed is not None:
        return unpacked(packed)
    parsed = given.get("jsonBody")
    if parsed is not None:
        return json_text(parsed)
    found = given.get("body")
    return b"" if found is None else found.octets()
