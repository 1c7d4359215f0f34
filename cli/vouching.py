"""A tape's signature and the keys and hashes held against it: the files of it, and what is said; decides nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.cli.choose import signature_path
from tapeproxy.tapes.errors import TapeFormatError, UsageError

if TYPE_CHECKING:
    from tapeproxy.tapes.verdict import Verdict
    from tapeproxy.tapes.vouching import Demand

_PINNED = {
    None: "",
    "last": "by its last hash: this is the tape, every record of it",
    "head": "by its head hash, which is its first record only; pin the last hash to prove all",
}


def demanded(keys: tuple[Path, ...], pin: str | None) -> "Demand":
    """What --key and --head ask of a tape. Raises UsageError."""
    from tapeproxy.tapes.vouching import Demand, parse_pin

    public: tuple[bytes, ...] = ()
    if keys:
        from tapeproxy.proxy.signing import read_public

        public = tuple(map(read_public, keys))
    return Demand(public, "" if pin is None else parse_pin(pin))


def vouched(path: Path, verdict: "Verdict", demand: "Demand", given: Path | None) -> "Verdict":
    """The verdict on the tape at `path` with its signature: the file `given`, or the one beside it, if there is one.

    Raises UsageError when `given` cannot be read.
    """
    from tapeproxy.tapes.vouching import judge

    place = given or signature_path(path)
    data = _read(place, must=given is not None)
    if data is None:
        return judge(verdict, demand, None, lambda _: False)
    from tapeproxy.proxy.signing import is_true
    from tapeproxy.tapes.signature import parse

    try:
        return judge(verdict, demand, parse(data, str(place)), is_true)
    except TapeFormatError as error:
        return judge(verdict, demand, error, is_true)


def _read(path: Path, *, must: bool) -> bytes | None:
    """A signature's file, or a little more than one may have; None when there is none and none `must` be."""
    from tapeproxy.tapes.signature import MOST

    try:
        with path.open("rb") as file:
            return file.read(MOST + 1)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not must:
            return None
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the signature cannot be read: {reason}", where=str(path)) from None


def vouchers(verdict: "Verdict") -> tuple[tuple[str, str], ...]:
    """Who vouches for the tape, as names and values; the values are empty where nobody does."""
    return ("pinned", _PINNED[verdict.pinned]), ("signed by", _signer(verdict))


def voucher_fields(verdict: "Verdict") -> dict[str, object]:
    """The same for a JSON document."""
    signature = verdict.signature
    return {
        "pinned": verdict.pinned,
        "signed_by": None if signature is None else signature.fingerprint,
        "signed_at": None if signature is None else signature.statement.signed_at,
        "trusted": verdict.trusted,
    }


def _signer(verdict: "Verdict") -> str:
    if verdict.signature is None:
        return ""
    known = "a key that was asked for" if verdict.trusted else "--key FILE says whether that is the right key"
    if not verdict.good:
        known = "but see above"
    return f"{verdict.signature.fingerprint}, {verdict.signature.statement.signed_at} ({known})"
