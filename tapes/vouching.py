"""Whether a good tape is the one that somebody vouched for: a signer's key or a pinned hash; proves no signature.

A chain without a key can be computed anew by whoever edits a tape. What cannot is a signature, and a hash that was
noted elsewhere.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tapeproxy.tapes.errors import TapeFormatError, UsageError
from tapeproxy.tapes.signature import Signature, fingerprint
from tapeproxy.tapes.verdict import Finding, Verdict

LEAST = 16
"""Hex digits of a hash that has to be given: 64 bits, so that nobody makes another tape that fits."""

_HASH = re.compile(rf"[0-9a-f]{{{LEAST},64}}")
_OTHER = "this is not the tape that was signed, or not its signature; take both again from where they came"


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of a tape: a signature by one of `keys` (32 bytes each; none: any, or none), and a `pin`.

    A pin is the beginning of the hash of a tape's last line, or its first, in hex; empty: any.
    """

    keys: tuple[bytes, ...] = ()
    pin: str = ""


def parse_pin(text: str) -> str:
    """A hash as it was typed, or its beginning. Raises UsageError."""
    pin = text.strip().lower()
    if not _HASH.fullmatch(pin):
        fix = f"give {LEAST} to 64 hex digits of the last hash that `tapeproxy verify` printed"
        raise UsageError(f"{text!r} is not the hash of a tape", fix=fix)
    return pin


def judge(
    verdict: Verdict,
    demand: Demand,
    signature: Signature | TapeFormatError | None,
    is_true: Callable[[Signature], bool],
) -> Verdict:
    """The verdict on a tape with its signature, if there is one; what was bad stays so.

    `signature` is the error where there is one that can't be read. `is_true` says whether its key made it.
    """
    if not verdict.good:
        return verdict
    verdict = _pinned(verdict, demand.pin)
    if verdict.good and isinstance(signature, TapeFormatError):
        return _bad(verdict, "false-signature", f"the signature cannot be read: {signature.what}", signature.fix)
    if verdict.good and isinstance(signature, Signature):
        verdict = replace(verdict, signature=signature)
        if wrong := _falsehood(verdict, signature, is_true):
            return _bad(verdict, "false-signature", wrong, _OTHER)
    return _by_whom(verdict, demand.keys) if verdict.good and demand.keys else verdict


def _pinned(verdict: Verdict, pin: str) -> Verdict:
    if not pin:
        return verdict
    if verdict.last_hash.startswith(pin):
        return replace(verdict, pinned="last")
    if verdict.head_hash.startswith(pin):
        return replace(verdict, pinned="head")
    what = f"the tape is whole, but it is not the one that was pinned: neither its last nor its head hash is {pin}"
    return _bad(verdict, "not-pinned", what, "somebody made another tape under this name; take the original")


def _falsehood(verdict: Verdict, signature: Signature, is_true: Callable[[Signature], bool]) -> str:
    """What is wrong with a signature; empty when it is true and of this tape."""
    said = signature.statement
    if not is_true(signature):
        return f"the signature was changed: {signature.fingerprint} did not make it"
    if (said.file, said.head, said.last, said.records) != (
        verdict.file,
        verdict.head_hash,
        verdict.last_hash,
        verdict.records,
    ):
        same = "it has the same first record" if said.head == verdict.head_hash else "it is another recording"
        return f"the tape is whole, but it is not the one that {signature.fingerprint} signed ({same})"
    return ""


def _by_whom(verdict: Verdict, keys: tuple[bytes, ...]) -> Verdict:
    wanted = " or ".join(map(fingerprint, keys))
    if verdict.signature is None:
        what = f"the tape is whole, but not signed, and it was to be signed by {wanted}"
        return _bad(verdict, "unsigned", what, "its signature is the file NAME.sig; --signature names another")
    if bytes.fromhex(verdict.signature.statement.key) not in keys:
        what = f"the tape is signed by {verdict.signature.fingerprint}, not by {wanted}"
        return _bad(verdict, "signed-by-another", what, "trust it only if you know that key")
    return replace(verdict, trusted=True)


def _bad(verdict: Verdict, finding: Finding, what: str, fix: str) -> Verdict:
    return replace(verdict, finding=finding, what=what, fix=fix)
