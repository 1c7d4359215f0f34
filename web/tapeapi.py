"""What the page's server tells of one tape: its outline, its exchanges, what is found in it, the file itself."""

from dataclasses import asdict
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tapeproxy.tapes.why import Provenance
from tapeproxy.tapes.whydocuments import why_document
from tapeproxy.tapes.whyspans import Wanted
from tapeproxy.web.details import details
from tapeproxy.web.library import Library, Looked, NotThereError, Shown
from tapeproxy.web.liveline import place_in
from tapeproxy.web.overview import labels, outline, ranks
from tapeproxy.web.replies import as_json, dump, number_of
from tapeproxy.web.searching import find

_LABELS: Final = 1000
_LONGEST_SEARCH: Final = 1000


def outline_of(shown: Shown, name: str) -> str:
    """The outline of a tape as JSON, with the place from where a page follows it if it grows."""
    serial, _, _ = shown.since(0)

    def make(looked: Looked) -> str:
        document = outline(looked.tape, looked.ending, name)
        document["tape"]["at"] = place_in(shown, serial)
        return dump(document)

    return shown.kept("outline", make)


def ranks_of(shown: Shown) -> str:
    """The causal ranks of a tape's exchanges as JSON."""
    return shown.kept("ranks", lambda _: dump(ranks(shown.causality())))


class TapeApi:
    """Answers about the tapes of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def listed(self, _request: Request) -> Response:
        rows = await run_in_threadpool(self._library.listed)
        return JSONResponse(
            [{"name": row.name, "written": row.written, "size": row.size, "recording": row.recording} for row in rows]
        )

    async def about(self, request: Request) -> Response:
        return JSONResponse(asdict(await run_in_threadpool(self._library.about, request.path_params["name"])))

    async def ready(self, request: Request) -> Response:
        """Read a tape that is likely to be asked for next."""
        await run_in_threadpool(lambda: self._library.open(request.path_params["name"]).look())
        return JSONResponse({})

    async def outline(self, request: Request) -> Response:
        name = request.path_params["name"]

        return as_json(await run_in_threadpool(lambda: outline_of(self._library.open(name), name)))

    async def ranks(self, request: Request) -> Response:
        name = request.path_params["name"]
        return as_json(await run_in_threadpool(lambda: ranks_of(self._library.open(name))))

    async def labels(self, request: Request) -> Response:
        first = number_of(request, "from", 1)
        last = min(number_of(request, "to", first), first + _LABELS)

        def make() -> str:
            tape = self._library.open(request.path_params["name"]).look().tape
            numbers = range(max(1, first), min(last, len(tape.exchanges)) + 1)
            return dump(labels(tape.exchanges[number - 1] for number in numbers))

        return as_json(await run_in_threadpool(make))

    async def exchange(self, request: Request) -> Response:
        number = request.path_params["number"]

        def make() -> str:
            shown = self._library.open(request.path_params["name"])
            tape = shown.look().tape
            if not 1 <= number <= len(tape.exchanges):
                raise NotThereError(str(number))
            return dump(details(tape.exchanges[number - 1], shown.causality()))

        return as_json(await run_in_threadpool(make))

    async def search(self, request: Request) -> Response:
        text = request.query_params.get("q", "")
        if len(text) > _LONGEST_SEARCH:
            raise HTTPException(400, "what is searched for is too long")

        def make() -> list[int]:
            return find(self._library.open(request.path_params["name"]).look().tape, text)

        return JSONResponse({"numbers": await run_in_threadpool(make)})

    async def why(self, request: Request) -> Response:
        """Where words come from: `event`, and `path`, `text`, `start` and `end` as `tapes.why.Wanted` has them."""
        params = request.query_params
        ends = [number_of(request, name, 0) if name in params else None for name in ("start", "end")]
        wanted = Wanted(params.get("path"), params.get("text"), *ends)

        def make() -> str:
            shown = self._library.open(request.path_params["name"])
            found = Provenance(shown.look().tape, shown.causality()).why(number_of(request, "event", 0), wanted)
            return dump(why_document(found))

        return as_json(await run_in_threadpool(make))

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        pieces = await run_in_threadpool(lambda: self._library.open(name).file())
        if pieces is None:
            raise HTTPException(404, "the tape is encrypted: `tapeproxy verify` checks it")
        return StreamingResponse(pieces, media_type="application/octet-stream")
