"""Edits as JSON and as lines for people, with the secrets in them redacted. Knows the form of the documents alone."""

from typing import Any, Final

from tapeproxy.tapes.jsonedits import write_value
from tapeproxy.tapes.jsonpaths import parse_path
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.secretvars import is_secret_name

_LONGEST: Final = 100
_JSON: Final = ((b"content-type", b"application/json"),)


def line_of(document: Json) -> str:
    """`12: set $.a = 1`."""
    at = f"{document['at']}: " if document.get("at") is not None else ""
    value = _short(document["value"]) if "value" in document else ""
    match document["what"]:
        case "set" | "append" | "delete" | "request-set" | "request-append" | "request-delete" as what:
            sign = " += " if what.endswith("append") else " = "
            verb = what.replace("-append", "-set").replace("append", "set")
            return f"{at}{verb} {document['path']}" + (f"{sign}{value}" if value else "")
        case "body":
            return f"{at}body of {document['size']} bytes" + (f": {value}" if value else "")
        case "header":
            said = "" if document["operation"] == "delete" else f": {document['value']}"
            verb = {"append": "add ", "delete": "delete "}.get(document["operation"], "")
            return f"{at}{verb}header {document['name']}{said}"
        case "clock":
            return f"clock {document['to']}" if "to" in document else f"clock {_span(document['by_ns'])}"
        case "lane-seed":
            return f"lane-seed {document['lane']} = {document['value'] or 'new'}"
        case "env":
            return f"env {document['name']} = {value}" if document["value"] is not None else f"unset {document['name']}"
        case "value":
            return f"value {document['lane']}#{document['n']} = {value}"
        case what:
            return f"{at}{what} {value}"


def redacted(document: Json, redactor: Redactor) -> Json:
    """An edit's document without the secrets in it, as they would be redacted where the edit puts them."""
    if document["what"] == "env" and document["value"] and is_secret_name(document["name"]):
        return document | {"value": redactor.secret(document["value"].encode(errors="surrogateescape")).decode()}
    if document["what"] == "header" and "value" in document:
        ((_, value),) = redactor.headers(((document["name"].encode(), document["value"].encode("latin-1")),))
        return document | {"value": value.decode("latin-1")}
    if document["what"] == "body" and isinstance(document.get("value"), str):
        return document | {"value": redactor.body(_JSON, document["value"].encode()).decode()}
    if document["what"] == "lane-seed":
        return document  # a replay needs it, as it needs the head's
    clean = _redacted(document, redactor)
    if "value" in clean:
        # As under the name of the field that it goes to, which may be a secret's.
        (clean["value"],) = _redacted({_field(document): clean["value"]}, redactor).values()
    return clean


def tellable(value: Any) -> Any:
    """A value as any reader of JSON can have it: a number past 64 bits is a text."""
    if isinstance(value, dict):
        return {name: tellable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [tellable(item) for item in value]
    return str(value) if isinstance(value, int) and abs(value) >> 63 else value


def _redacted(document: Json, redactor: Redactor) -> Json:
    clean: Json = read_json(redactor.body(_JSON, write_value(document)))[0]
    return clean


def _field(document: Json) -> str:
    """The name of the field that an edit is about, or just `value`."""
    steps = parse_path(document["path"]).steps if document.get("path", "").startswith(("$.", "$[")) else ()
    names = [step.name for step in steps if isinstance(step.name, str)]
    return names[-1] if names else "value"


def _short(value: Any) -> str:
    text = write_value(value).decode()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _span(ns: int) -> str:
    """`+1h`, `-90s`, `+1.5s`."""
    sign, rest = ("-" if ns < 0 else "+"), abs(ns)
    for unit, size in (("d", 86400 * 10**9), ("h", 3600 * 10**9), ("m", 60 * 10**9), ("s", 10**9), ("ms", 10**6)):
        if rest and rest % size == 0:
            return f"{sign}{rest // size}{unit}"
    return f"{sign}{rest}ns"
