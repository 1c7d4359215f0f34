"""What the page's server tells of two tapes."""

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tapeproxy.tapes.records import Json
from tapeproxy.web.comparing import Comparisons
from tapeproxy.web.library import Library, NotThereError, StillRecordedError
from tapeproxy.web.replies import as_json, dump
from tapeproxy.web.rundiff import RunDiff


class DiffApi:
    """Answers about two tapes of a library, `a` and `b` in the question."""

    def __init__(self, library: Library) -> None:
        self._comparisons = Comparisons(library)

    async def whole(self, request: Request) -> Response:
        def tell(diff: RunDiff) -> Json:
            return {"outline": diff.outline(), "ranks": diff.ranks(), "labels": diff.labels()}

        return await self._told_of_both(request, tell)

    async def exchange(self, request: Request) -> Response:
        return await self._told_of_both(request, lambda diff: diff.exchange(request.path_params["number"]))

    async def differences(self, request: Request) -> Response:
        return await self._told_of_both(request, lambda diff: diff.differences(request.path_params["number"]))

    async def _told_of_both(self, request: Request, tell: Callable[[RunDiff], Json]) -> Response:
        names = request.query_params.get("a", ""), request.query_params.get("b", "")

        def make() -> str:
            diff = self._comparisons.of(names)
            try:
                return dump(tell(diff))
            except KeyError as error:
                raise NotThereError(str(error)) from None

        try:
            return as_json(await run_in_threadpool(make))
        except StillRecordedError:
            raise HTTPException(409, "a tape that is recorded can be compared when its run has ended") from None
