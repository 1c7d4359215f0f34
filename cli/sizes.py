"""What `show --size` prints: what takes the room on a tape, as tables or as a document. Yields lines, prints none."""

from collections.abc import Iterator

from tapeproxy.cli.rendering import Cell, Column, Screen, count, printable, size, table
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.sizes import ExchangeSize, Size, Survey

_SIZES = (
    Column("file", right=True),
    Column("text", right=True, rank=2),
    Column("bodies", right=True, rank=1),
    Column("referred", right=True, rank=3),
)
_KINDS = (Column("kind"), Column("records", right=True), *_SIZES)
_EXCHANGES = (
    Column("#", right=True),
    *_SIZES,
    Column("request", right=True, rank=5),
    Column("response", right=True, rank=4),
    Column("what", least=12),
)


def size_page(path: str, survey: Survey, screen: Screen) -> Iterator[str]:
    """The lines of `show TAPE --size`."""
    total, largest = survey.total(), survey.largest()
    yield screen.paint(printable(path), bold=True)
    facts = f"{size(round(total.file))} in the file, {size(total.text)} of text, {size(total.bodies)} of bodies"
    shared = f", {size(total.referred)} of these by reference" if total.referred else ""
    yield facts + shared
    yield ""
    kinds = sorted(survey.kinds.items(), key=lambda item: -item[1].file)
    yield from table(_KINDS, [[Cell(kind), Cell(str(one.records)), *_cells(one)] for kind, one in kinds], screen)
    if largest:
        yield ""
        yield f"the largest {count(len(largest), 'exchange')}"
        yield from table(_EXCHANGES, [_exchange_cells(exchange) for exchange in largest], screen)


def size_document(path: str, survey: Survey) -> Json:
    """The document of `show TAPE --size --json`."""
    kinds = sorted(survey.kinds.items(), key=lambda item: -item[1].file)
    return {
        "tape": path,
        "total": _document(survey.total()),
        "kinds": [{"kind": kind, **_document(one)} for kind, one in kinds],
        "exchanges": [_exchange_document(exchange) for exchange in survey.largest()],
    }


def _cells(one: Size) -> list[Cell]:
    amounts = (one.bodies, one.referred)
    return [Cell(size(round(one.file))), Cell(size(one.text)), *(Cell(size(n) if n else "") for n in amounts)]


def _exchange_cells(exchange: ExchangeSize) -> list[Cell]:
    what = f"{exchange.method.decode('latin-1')} {exchange.url.decode('latin-1')}"
    return [
        Cell(str(exchange.number)),
        *_cells(exchange.size),
        Cell(size(exchange.request)),
        Cell(size(exchange.response)),
        Cell(what),
    ]


def _document(one: Size) -> Json:
    return {
        "records": one.records,
        "file": round(one.file),
        "text": one.text,
        "bodies": one.bodies,
        "referred": one.referred,
    }


def _exchange_document(exchange: ExchangeSize) -> Json:
    return {
        "number": exchange.number,
        "method": exchange.method.decode("latin-1"),
        "url": exchange.url.decode("latin-1"),
        **_document(exchange.size),
        "request": exchange.request,
        "response": exchange.response,
    }
