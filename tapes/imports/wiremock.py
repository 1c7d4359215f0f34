"""WireMock's mappings: what it answers to what. Knows stubs that name one request; patterns of many it refuses.

A stub that holds for its request and for more besides (other members, another order) is that request, and is marked. It
names no host: `base`, a URL, says where its paths are. Those of a scenario come in the order of its states.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final
from urllib.parse import urlencode, urlsplit

from tapeproxy.tapes.imports.foreign import Foreign, pairs_of, url_of
from tapeproxy.tapes.imports.nodes import Node
from tapeproxy.tapes.imports.times import milliseconds
from tapeproxy.tapes.imports.vcr import json_text, unpacked

_STARTED: Final = "Started"
"""The state in which a scenario begins."""
_EXACT: Final = ("equalTo", "equalToJson", "binaryEqualTo")
_LOOSE: Final = ("caseInsensitive", "ignoreArrayOrder", "ignoreExtraElements")
_SIGNS: Final = ("cookies", "basicAuth", "basicAuthCredentials")
"""Of headers."""
_FIELDS: Final = ("method", "url", "urlPath", "queryParameters", "headers", "bodyPatterns", *_SIGNS)
"""Of a request: what is read, refused where it is a pattern, or marked as absent."""
_WITH_BODIES: Final = ("POST", "PUT", "PATCH")
_TEMPLATES: Final = "response-template"
OTHERS: Final = "other requests that it answers"
HEADERS: Final = "headers that it asks for by a pattern"


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
    absent = ["times", "boundaries", "lanes", "headers of the request"]
    _check(asked, given)
    fault = given.get("fault")
    body = b"" if fault is not None else _body(given, file)
    _check_changes(given, body)
    waits = milliseconds(given.get("fixedDelayMilliseconds"))
    text = given.get("statusMessage")
    return Foreign(
        place=entry.place,
        method=_method(asked),
        url=_url(asked, base, absent),
        request_headers=_asked_headers(asked, absent),
        request_body=_asked_body(asked, absent),
        status=0 if fault is not None else _status(given),
        reason=None if text is None else text.octets(),
        headers=_headers(given),
        body=body,
        waited=waits,
        took=waits,
        how="complete" if fault is None else "reset",
        error=None if fault is None else fault.text(),
        absent=tuple(absent),
    )


def _check(asked: Node, given: Node) -> None:
    """Raise ForeignFormatError for what makes a stub another than its fields say, or one that is never whole."""
    for name, node in asked.fields():
        if name not in _FIELDS and node.value:
            raise node.wrong("a pattern is no request: this can't be imported")
    proxied = given.get("proxyBaseUrl")
    if proxied is not None:
        raise proxied.wrong("the answer is another server's: it is not in the file")


def _check_changes(given: Node, body: bytes) -> None:
    """Raise ForeignFormatError for an answer that is made of what is in the file."""
    changes = given.get("transformers", "responseDefinitionTransformers")
    for change in [] if changes is None else changes.items():
        if change.text() != _TEMPLATES:
            raise change.wrong(f"the answer is changed by {change.text()!r:.60}: it is not in the file")
        if b"{{" in body or any(b"{{" in text for text in _texts(given.value)):
            raise change.wrong("the answer is a template ({{…}}): it is not in the file")


def _texts(value: object) -> Iterator[bytes]:
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _method(asked: Node) -> bytes:
    found = asked.get("method")
    method = "ANY" if found is None else found.text().upper()
    if method == "ANY":
        raise (found or asked).wrong("a stub for any method is a pattern, and no request")
    return method.encode("latin-1", "replace")


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


def _url(asked: Node, base: str, absent: list[str]) -> bytes:
    found = asked.get("url", "urlPath")
    if found is None:
        raise asked.wrong("a pattern of URLs is no request: only `url` and `urlPath` can be imported")
    url = base.rstrip("/") + found.text()
    queries = asked.get("queryParameters")
    if queries is not None:
        pairs = [(name, _exact(node, absent)) for name, node in queries.fields() if not _is_absence(node)]
        url += (("&" if urlsplit(url).query else "?") + urlencode(pairs)) if pairs else ""
    elif "url" not in asked.value:
        absent.append(OTHERS)  # with any query
    return url_of(Node(url, found.place))


def _is_absence(node: Node) -> bool:
    """Whether it says that there is none."""
    return node.mapping().get("absent") is True


def _exact(node: Node, absent: list[str]) -> str:
    found = node.get("equalTo")
    if found is None:
        raise node.wrong("only `equalTo` can be imported: a pattern is no request")
    if _is_loose(node):
        absent.append(OTHERS)
    return found.text()


def _is_loose(pattern: Node) -> bool:
    """Whether it holds for others than the value that it names."""
    return any(pattern.mapping().get(name) for name in _LOOSE)


def _asked_headers(asked: Node, absent: list[str]) -> tuple[tuple[bytes, bytes], ...]:
    out: list[tuple[str, object]] = []
    if any(asked.get(name) is not None for name in _SIGNS):
        absent.append(HEADERS)
    found = asked.get("headers")
    for name, node in () if found is None else found.fields():
        exact = node.get("equalTo")
        if exact is not None:
            out.append((name, exact.text()))
        elif not _is_absence(node):
            absent.append(HEADERS)
    return pairs_of(out)


def _asked_body(asked: Node, absent: list[str]) -> bytes:
    patterns = asked.get("bodyPatterns")
    if patterns is None or not patterns.value:
        if asked.need("method").text().upper() in _WITH_BODIES:
            absent += ["a body", OTHERS]
        return b""
    exact, *more = patterns.items()
    found = exact.get(*_EXACT)
    if found is None or more:
        pattern = next((one for one in (exact, *more) if one.get(*_EXACT) is None), patterns)
        raise pattern.wrong(f"only one of {', '.join(_EXACT)} can be imported: a pattern is no body")
    if _is_loose(exact):
        absent.append(OTHERS)
    body = unpacked(found) if "binaryEqualTo" in exact.value else json_text(found)
    if b"${json-unit." in body:
        raise found.wrong("it has placeholders (${json-unit.…}): a pattern is no body")
    return body


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
