"""Which of many runs a client means, and whether it may come in: what its proxy credentials say. Pure; opens no door.

`http://NAME:TOKEN@host:port` reaches a proxy as `Proxy-Authorization: Basic base64(NAME:TOKEN)` (RFC 7617).
"""

import base64
import binascii
import hmac
import re
from typing import NamedTuple

import orjson

from tapeproxy.tapes.answers import head
from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.tapes.records import Headers

HEADER = b"proxy-authorization"
LONGEST_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Windows takes these for devices, whatever follows the first dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_SHOWN = 40
_HOW = "give the proxy as http://NAME:x@HOST:PORT"
_REASONS = {407: b"Proxy Authentication Required", 503: b"Service Unavailable"}


class Credentials(NamedTuple):
    """The two parts of a Basic header; an empty `name` names nothing."""

    name: str
    token: str


class RefusedError(TapeproxyError):
    """A client is not let in. `status` and the message are what it is answered with."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", status: int = 407) -> None:
        self.status = status
        super().__init__(what, where=where, fix=fix)

    @property
    def reason(self) -> bytes:
        """The reason phrase of the answer."""
        return _REASONS[self.status]

    def content(self) -> bytes:
        """The body of the answer: JSON, as that of a violation."""
        return orjson.dumps({"error": {"type": "tapeproxy_refusal", "message": str(self)}})

    def headers(self) -> Headers:
        """The headers of the answer but for its length."""
        challenge = ((b"proxy-authenticate", b'Basic realm="tapeproxy"'),) if self.status == 407 else ()
        return (
            *challenge,
            (b"content-type", b"application/json"),
            (b"x-should-retry", b"false"),
            (b"x-tapeproxy", b"refused"),
            (b"connection", b"close"),
        )

    def to_answer(self, *, body: bool = True) -> bytes:
        """The bytes of the HTTP answer; without its `body` for HEAD."""
        content = self.content()
        headers = (*self.headers(), (b"content-length", b"%d" % len(content)))
        return head(self.status, self.reason, headers) + (content if body else b"")


def split_credentials(headers: Headers) -> tuple[Credentials | None, Headers]:
    """Part the credentials for the proxy from all other headers. Raises RefusedError where they can't be read."""
    said = [value for name, value in headers if name.lower() == HEADER]
    if not said:
        return None, headers
    if len(said) > 1:
        raise RefusedError("the proxy's credentials came more than once", fix="send one Proxy-Authorization header")
    return _read(said[0]), tuple((name, value) for name, value in headers if name.lower() != HEADER)


def _read(value: bytes) -> Credentials:
    scheme, _, encoded = value.strip().partition(b" ")
    if scheme.lower() != b"basic":
        raise RefusedError("the proxy's credentials are not of the kind Basic", fix=_HOW)
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise RefusedError("the proxy's credentials cannot be read", fix=_HOW) from None
    name, _, token = text.partition(":")
    return Credentials(name, token)


def check_token(credentials: Credentials | None, token: str) -> None:
    """See to it that a client knows the `token`; an empty one is known to all. Raises RefusedError."""
    given = "" if credentials is None else credentials.token
    # As long for a wrong token as for the right one.
    if token and not hmac.compare_digest(given.encode(), token.encode()):
        what = "this proxy asks for a token" if not given else "the proxy's token is another one"
        raise RefusedError(what, fix="give the proxy as `tapeproxy start` has printed it: http://NAME:TOKEN@HOST:PORT")


def check_name(name: str) -> str:
    """The name of a new run, which becomes a file's. Raises RefusedError: a name is never a path, and never mended."""
    if not name:
        fix = f"{_HOW} (some clients send no NAME without something after a colon)"
        raise RefusedError("the proxy's credentials name no tape", fix=fix)
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or _DEVICES.fullmatch(name):
        shown = name[:_SHOWN] + ("..." if len(name) > _SHOWN else "")
        raise RefusedError(
            f"{shown!a} cannot be the name of a tape",
            fix=f"a name has up to {LONGEST_NAME} ASCII letters, digits, '.', '_' and '-', and begins with one of the "
            "first two kinds",
        )
    return name
