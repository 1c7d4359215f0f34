"""The user's settings in a file: `tapeproxy.toml`, or the table `[tool.tapeproxy]` of a pyproject.toml.

The nearest one counts, from the working directory up to the root of its repository. In one folder, tapeproxy.toml comes
before pyproject.toml. What a rule means is the business of `tapes/rules.py` and `tapes/redactionrules.py`.
"""

from pathlib import Path
from typing import Any

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.redactionrules import DEFAULT, VERSION, RedactionRules
from tapeproxy.tapes.rules import KINDS, MOST, Rule, parse_rule

OWN = "tapeproxy.toml"
SHARED = "pyproject.toml"
REDACTIONS = ("redact-header", "redact-field", "redact-pattern")
_ROOTS = (".git", ".hg", ".jj")


def read_rules_above(folder: Path) -> tuple[Rule, ...]:
    """The rules of the nearest settings at or above `folder`; none where there are none. Raises UsageError."""
    found = _nearest(folder)
    return () if found is None else parse_settings(*found)


def read_redaction_above(folder: Path) -> RedactionRules:
    """What the nearest settings at or above `folder` say of redaction. Raises UsageError."""
    found = _nearest(folder)
    return DEFAULT if found is None else parse_redaction(*found)


def parse_settings(table: dict[str, Any], where: str) -> tuple[Rule, ...]:
    """The rules in a table of settings. Raises UsageError that names the file and the entry."""
    rules: list[Rule] = []
    for name, value in table.items():
        if name in REDACTIONS:
            continue
        if name not in KINDS:
            known = ", ".join((*KINDS, *REDACTIONS))
            raise UsageError(f"there is no setting {name!r}", where=where, fix=f"there are {known}")
        for text in _strings(name, value, where):
            try:
                rules.append(parse_rule(name, text))
            except ValueError as error:
                raise UsageError(str(error), where=where) from None
    if len(rules) > MOST:
        raise UsageError(f"there are more than {MOST} rules", where=where)
    return tuple(rules)


def parse_redaction(table: dict[str, Any], where: str) -> RedactionRules:
    """What a table of settings says of redaction. Raises UsageError that names the file."""
    try:
        return RedactionRules(VERSION, *(_strings(name, table.get(name, []), where) for name in REDACTIONS))
    except ValueError as error:
        raise UsageError(str(error), where=where) from None


def _strings(name: str, value: object, where: str) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    for text in found:
        if not isinstance(text, str):
            raise UsageError(f"{name} is a list of strings, but has {text!r:.80}", where=where)
    return tuple(found)


def _nearest(folder: Path) -> tuple[dict[str, Any], str] | None:
    """The settings that count, and where they stand."""
    for place in (folder, *folder.parents):
        for name in (OWN, SHARED):
            found = _settings(place / name)
            if found is not None:
                return found, str(place / name)
        if any((place / mark).exists() for mark in _ROOTS):
            break
    return None


def _settings(path: Path) -> dict[str, Any] | None:
    """The table of settings in a file; None when the file is not there or has none."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot be read: {(error.strerror or str(error)).lower()}", where=str(path)) from None
    if path.name == SHARED and b"tapeproxy" not in data:
        return None
    import tomllib  # 5 ms of a replay's start

    try:
        whole = tomllib.loads(data.decode())
    except ValueError as error:
        raise UsageError(f"is no TOML: {error}", where=str(path)) from None
    if path.name == OWN:
        return whole
    tool = whole.get("tool")
    table = tool.get("tapeproxy") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError("[tool.tapeproxy] is a table", where=str(path))
    return table
