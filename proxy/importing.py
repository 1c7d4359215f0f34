"""Files of other tools read, and tapes written of them. Knows files and parsers; formats are `tapes/imports`'."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

import tapeproxy
from tapeproxy.proxy.drafts import drafted
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.tapefile import write_error
from tapeproxy.proxy.watching import READING, working
from tapeproxy.tapes.errors import UsageError, install
from tapeproxy.tapes.imports import taping
from tapeproxy.tapes.imports.foreign import Foreign, mended, sound
from tapeproxy.tapes.imports.formats import check_size, format_of, formats
from tapeproxy.tapes.imports.nodes import ForeignFormatError, Node, read_at
from tapeproxy.tapes.imports.taping import absences, begin_of, records_of
from tapeproxy.tapes.reading import VERSION
from tapeproxy.tapes.records import Head, Json, Seal
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.rewriting import encoded, octets_of
from tapeproxy.tapes.secretvars import secret_values

LARGEST = 256 << 20
"""Bytes of a file that is parsed whole."""
_FLOWS = re.compile(rb"\d{1,12}:")
_DEEP = re.compile(rb"(?:[\[{]\s*){500}|(?:- +){500}")
"""A YAML parser takes a minute for such a file."""
_INSTALL = f"install it with: {install('record')}"
_INSTALL_YAML = "install it with: pip install ruamel.yaml (it comes with `tapeproxy[record]`, too)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSettings:
    """Which file to import, and where to. `format`: empty for whichever it is; `base`: the host of WireMock's paths.

    `keep_going`: an entry that can't be imported is left out, and the rest goes on.
    """

    source: Path
    output: Path
    environment: Mapping[str, str]
    format: str = ""
    base: str = ""
    force: bool = False
    keep_going: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """A tape that was made. `absent`: what the source does not tell, with how many exchanges it is missing from;
    `mended`: how many have a note on what contradicted itself; `refused`: what was left out.
    """

    source: Path
    path: Path
    format: str
    exchanges: int
    absent: Json
    mended: int
    refused: tuple[ForeignFormatError, ...]


def import_file(settings: ImportSettings) -> Imported:
    """Make a tape of another tool's recording. Raises ForeignFormatError, TapeExistsError, TapeWriteError, UsageError.

    Without `keep_going` the first entry that can't be imported is an error, and no tape is written.
    """
    source = str(settings.source)
    try:
        name, taken, refused = _taken(settings)
    except ForeignFormatError as error:
        raise error.within(source) from None
    if not taken:
        why = f": {refused[0].place}: {refused[0].what}" if refused else ""
        raise ForeignFormatError(f"there is nothing in it that could be imported{why}", source=source)
    redactor = Redactor(load_key(), secret_values(settings.environment))
    try:
        with working(settings.source, sum(map(taping.octets_of, taken)), "redacting") as tell:
            records = records_of(taken, redactor, tell)
    except ForeignFormatError as error:
        raise error.within(source) from None
    head = _head(taken, name, settings.source.name)
    ended = max(record.t for record in records if hasattr(record, "t"))
    seal = Seal(t=ended, records=0, trace="", outcome="imported")
    try:
        settings.output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(settings.output, error) from None
    octets = sum(map(octets_of, records))
    with drafted(settings.output, force=settings.force) as file, working(settings.output, octets, "writing") as tell:
        file.writelines(encoded([head, *records], seal, tell))
    changed = sum(bool(one.notes) for one in taken)
    return Imported(settings.source, settings.output, name, len(taken), absences(taken), changed, tuple(refused))


def _head(taken: list[Foreign], name: str, source: str) -> Head:
    begin = begin_of(taken)
    moment = datetime.fromtimestamp((time.time_ns() if begin is None else begin) / 1e9, UTC)
    return Head(
        must=("like",),
        window=None,
        by=f"tapeproxy {tapeproxy.__version__}",
        started_at=moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        rules={"matching": VERSION} | Redactor(bytes(32)).rules.to_json(),
        imported={"format": name, "file": source, "absent": absences(taken)},
    )


def _taken(settings: ImportSettings) -> tuple[str, list[Foreign], list[ForeignFormatError]]:
    """The name of the file's format, its exchanges, and what is left out. Raises ForeignFormatError."""
    name, found = _read(settings)
    taken: list[Foreign] = []
    refused: list[ForeignFormatError] = []
    for one in found:
        try:
            taken.append(_whole(one))
        except ForeignFormatError as error:
            if not settings.keep_going:
                raise
            refused.append(error.within(str(settings.source)))
    return name, taken, refused


def _read(settings: ImportSettings) -> tuple[str, Iterator[Foreign | ForeignFormatError]]:
    """The name of the file's format, and its exchanges."""
    path = settings.source
    try:
        data = b"" if path.is_dir() else path.read_bytes() if path.stat().st_size <= LARGEST else None
    except OSError as error:
        raise UsageError(f"cannot be read: {(error.strerror or str(error)).lower()}", where=str(path)) from None
    if data is None:
        raise ForeignFormatError(f"the file is larger than {LARGEST >> 20} MiB")
    if settings.format == "mitm" or (not settings.format and _FLOWS.match(data)):
        return "mitm", _flows(path)
    root = Node(_mappings(path) if path.is_dir() else _parsed(path, data))
    check_size(root.value)
    known = formats(settings.base, lambda name: _body_file(path, name))
    found = format_of(root, known, settings.format)
    return found.name, _entries(path, len(data), found.entries(root), found.take)


def _whole(found: Foreign | ForeignFormatError) -> Foreign:
    """An exchange as it is put on a tape. Raises ForeignFormatError."""
    if isinstance(found, ForeignFormatError):
        raise found
    with read_at(found.place):
        return sound(mended(found))


def _entries(
    path: Path, size: int, entries: list[Node], take: Callable[[Node], Foreign]
) -> Iterator[Foreign | ForeignFormatError]:
    with working(path, size, "importing") as tell:
        for entry in entries:
            try:
                with read_at(entry.place):
                    taken = take(entry)
            except ForeignFormatError as error:
                yield error
            else:
                yield taken
            tell(size // len(entries))


def _flows(path: Path) -> Iterator[Foreign | ForeignFormatError]:
    try:
        from tapeproxy.addons.flowfile import FlowFile
    except ImportError:
        raise UsageError("reading mitmproxy's flows needs mitmproxy", where=str(path), fix=_INSTALL) from None
    with working(path, path.stat().st_size, "importing") as tell:
        yield from FlowFile(path).exchanges(tell)


def _parsed(path: Path, data: bytes) -> object:
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            reason = str(error)  # it may be YAML in flow style
            if data.lstrip()[:2] in (b'{"', b"[{"):
                raise ForeignFormatError(f"the file is no JSON: {reason}") from None
    if _DEEP.search(data):
        raise ForeignFormatError("the file is nested too deeply for a recording")
    return _yaml(path, data)


def _yaml(path: Path, data: bytes) -> object:
    try:
        from tapeproxy.proxy.yamltexts import parse_yaml
    except ImportError:
        raise UsageError("reading YAML needs ruamel.yaml", where=str(path), fix=_INSTALL_YAML) from None
    with working(path, len(data), READING) as tell:
        return parse_yaml(data, tell)


def _mappings(path: Path) -> object:
    """A folder of WireMock: its mappings, in the order of their names."""
    folder = path / "mappings" if (path / "mappings").is_dir() else path
    found: list[object] = []
    for file in sorted(folder.glob("*.json")):
        one = _parsed(file, file.read_bytes())
        found += one["mappings"] if isinstance(one, dict) and isinstance(one.get("mappings"), list) else [one]
    if not found:
        raise ForeignFormatError("there are no mappings (*.json) in this folder")
    return {"mappings": found}


def _body_file(path: Path, name: str) -> bytes:
    """A body that a mapping names; only of the folder `__files` beside the mappings."""
    base = path if path.is_dir() else path.parent
    base = base.parent if base.name == "mappings" else base
    folder = (base / "__files").resolve()
    file = (folder / name).resolve()
    if not file.is_relative_to(folder):
        raise ForeignFormatError(f"the body file {name!r:.100} is not in {folder.name}")
    try:
        return file.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ForeignFormatError(f"the body file {name!r:.100} cannot be read: {reason}") from None
