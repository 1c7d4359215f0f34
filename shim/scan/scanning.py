"""The scan of one file: parsed, every finder asked, less what the program silences. Pure: bytes in, findings out."""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator

from tapeproxy.shim.scan import calls, objects, races, texts, wire
from tapeproxy.shim.scan.findings import Finding
from tapeproxy.shim.scan.names import Program
from tapeproxy.shim.scan.rules import RULES

LARGEST = 4 << 20
"""Bytes of source; a program that somebody wrote is far below, and parsing takes 100 times as much memory."""
_LONGEST = 160
_SILENCED = re.compile(r"#\s*tapeproxy:\s*ok\b:?((?:[\s,]*TP\d{3})*)", re.IGNORECASE)
_LINE_ENDS = re.compile(r"\r\n|\r|\n")


def scan(source: bytes, file: str) -> list[Finding]:
    """What the shim can't make the same in a program, in the order of the text; `file` is what it is called.

    A file that can't be parsed has one finding, TP001, that says why. `# tapeproxy: ok` on the first or last line of
    what is found silences it, `# tapeproxy: ok TP101` that code alone.
    """
    if len(source) > LARGEST:
        return [unreadable(file, f"larger than {LARGEST >> 20} MiB")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program's own literals and escapes
            tree = ast.parse(source, file)
    except SyntaxError as error:
        return [unreadable(file, f"not Python: {error.msg}", error.lineno or 1, error.offset or 1)]
    except (ValueError, RecursionError, MemoryError) as error:
        reason = "nested too deeply" if isinstance(error, (RecursionError, MemoryError)) else str(error)
        return [unreadable(file, f"not Python: {reason}")]
    lines = _lines(source)
    return list(_findings(Program(tree), file, lines))


def unreadable(file: str, why: str, line: int = 1, column: int = 1) -> Finding:
    """The finding for a file that can't be read."""
    return Finding(RULES["TP001"], file, max(line, 1), max(column, 1), why, "")


def _findings(program: Program, file: str, lines: list[str]) -> Iterator[Finding]:
    hits = [hit for find in (calls.find, texts.find, objects.find, wire.find, races.find) for hit in find(program)]
    seen: set[tuple[str, int, int]] = set()
    for code, node, what in sorted(hits, key=lambda hit: (*_position(hit[1]), hit[0])):
        line, offset = _position(node)
        if (code, line, offset) in seen or _is_silenced(code, node, lines):
            continue
        seen.add((code, line, offset))
        text = lines[line - 1] if line <= len(lines) else ""
        column = len(text.encode("utf-8", "replace")[:offset].decode("utf-8", "replace")) + 1
        yield Finding(RULES[code], file, line, column, what, text.strip()[:_LONGEST])


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def _is_silenced(code: str, node: ast.AST, lines: list[str]) -> bool:
    first = _position(node)[0]
    for number in {first, getattr(node, "end_lineno", None) or first}:
        if number <= len(lines) and (silenced := _SILENCED.search(lines[number - 1])):
            named = silenced[1].upper()
            if not named.strip(" ,\t") or code in named:
                return True
    return False


def _lines(source: bytes) -> list[str]:
    """The lines as the parser counts them."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError:  # stricter than the parser about comments that are not UTF-8
        encoding = "utf-8"
    return _LINE_ENDS.split(source.decode(encoding, "replace"))
