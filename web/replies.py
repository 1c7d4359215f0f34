"""Answers of the page's server as JSON, errors among them, and numbers in questions."""

import json

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tapeproxy.web.doorkeeper import HEADERS


def dump(document: object) -> str:
    """JSON, in few characters."""
    return json.dumps(document, separators=(",", ":"))


def as_json(text: str) -> Response:
    """A text that is JSON."""
    return Response(text, media_type="application/json")


def number_of(request: Request, name: str, default: int) -> int:
    """A number of the question. Raises HTTPException for what is none."""
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise HTTPException(400, f"{name} is no number")
    return int(text)


def failed(_request: Request, _error: Exception) -> Response:
    """What is told of a failure of ours."""
    return JSONResponse({"error": "tapeproxy failed here; its terminal says more"}, 500, headers=HEADERS)


def refused(_request: Request, error: Exception) -> Response:
    """What is told of a question that can't be answered."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=HEADERS)
