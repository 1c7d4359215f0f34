"""Texts and bytes as scalars of YAML 1.1, so that PyYAML, ruamel.yaml and libyaml read back what was written.

Nothing is folded: a text of several lines is a literal block where one can hold it, so that a stream of events can be
read and diffed; else it stands in quotes. https://yaml.org/spec/1.1/
"""

import base64
import re
from collections.abc import Iterator
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./+-]{0,60}")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_UNPRINTABLE: Final = re.compile(r"[^\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What may not stand in a file, and what some readers take for a line break or a mark."""
_BLANK_LINE: Final = re.compile(r"^[ \t]+$", re.MULTILINE)
_NAMED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_COLUMNS: Final = 76
_LONGEST_KEY: Final = 120
"""Characters: a reader may refuse an implicit key of more than 1024."""


def scalar(value: str | bytes, indent: int) -> str:
    """The value after `key: `; what needs lines of its own has `indent` spaces before them."""
    if isinstance(value, bytes):
        text = base64.b64encode(value).decode()
        lines = [text[at : at + _COLUMNS] for at in range(0, len(text), _COLUMNS)]
        return "!!binary |\n" + "\n".join(" " * indent + line for line in lines)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if _is_block(value):
        return _block(value, " " * indent)
    if "\n" in value or "\t" in value or _UNPRINTABLE.search(value):
        return f'"{"".join(_escaped(value))}"'
    return "'" + value.replace("'", "''") + "'"


def key(name: str, indent: int) -> str:
    """A key with its colon, in a mapping that stands `indent` spaces from the left."""
    text = scalar(name, 0) if "\n" not in name else f'"{"".join(_escaped(name))}"'
    return f"{text}:" if len(text) <= _LONGEST_KEY else f"? {text}\n{' ' * indent}:"


def _is_block(value: str) -> bool:
    if "\n" not in value[:-1] or _UNPRINTABLE.search(value) or _BLANK_LINE.search(value):
        return False
    return value[0] not in " \t\n"


def _block(value: str, before: str) -> str:
    keeps = "+" if value.endswith("\n\n") else "" if value.endswith("\n") else "-"
    lines = value.removesuffix("\n").split("\n")
    return f"|{keeps}\n" + "\n".join(before + line if line else "" for line in lines)


def _escaped(value: str) -> Iterator[str]:
    for char in value:
        if char in _NAMED:
            yield _NAMED[char]
        elif _UNPRINTABLE.match(char):
            code = ord(char)
            yield f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        else:
            yield char
