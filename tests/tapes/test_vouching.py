from dataclasses import replace
from typing import Any

import pytest

from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.signature import Signature, Statement, fingerprint
from tapeproxy.tapes.verdict import Verdict
from tapeproxy.tapes.vouching import Demand, judge, parse_pin

ADA, BOB = bytes(32), bytes([1]) * 32
GOOD = Verdict(
    "intact", "every byte is as it was written", "", 0, 9, 2, "a" * 64, "b" * 64, "exit 0", "c" * 64, "d" * 64
)
SAID = Statement("d" * 64, "a" * 64, "b" * 64, 9, "2026-01-02T03:04:05Z", ADA.hex())
BY_ADA = Signature(SAID, b"", b"")


def by(**changed: Any) -> Signature:
    return Signature(replace(SAID, **changed), b"", b"")


def decide(demand: Demand, signature: Signature | TapeFormatError | None, *, true: bool = True) -> Verdict:
    return judge(GOOD, demand, signature, lambda _: true)


CUT = TapeFormatError("it was changed", place=Place("x.sig"), fix="take another")


@pytest.mark.parametrize(
    ("demand", "signature", "true", "finding", "said"),
    [
        (Demand(), None, True, "intact", "every byte"),
        (Demand(), BY_ADA, True, "intact", "every byte"),
        (Demand(), BY_ADA, False, "false-signature", "the signature was changed"),
        (Demand(), CUT, True, "false-signature", "it was changed"),
        (Demand((ADA,)), BY_ADA, True, "intact", "every byte"),
        (Demand((BOB, ADA)), BY_ADA, True, "intact", "every byte"),
        (Demand((ADA,)), BY_ADA, False, "false-signature", "did not make it"),
        (Demand((ADA,)), CUT, True, "false-signature", "it was changed"),
        (Demand((ADA,)), None, True, "unsigned", "not signed, and it was to be signed by SHA256:"),
        (Demand((BOB,)), BY_ADA, True, "signed-by-another", f"signed by {fingerprint(ADA)}, not by {fingerprint(BOB)}"),
        (Demand((ADA,)), by(file="0" * 64), True, "false-signature", "it has the same first record"),
        (Demand((ADA,)), by(last="0" * 64), True, "false-signature", "it has the same first record"),
        (Demand((ADA,)), by(records=8), True, "false-signature", "not the one that"),
        (Demand(), by(head="0" * 64), True, "false-signature", "it is another recording"),
        (Demand(pin="b" * 16), None, True, "intact", "every byte"),
        (Demand(pin="a" * 64), None, True, "intact", "every byte"),
        (Demand(pin="c" * 16), None, True, "not-pinned", "neither its last nor its head hash is cccc"),
        (Demand((ADA,), "c" * 16), BY_ADA, True, "not-pinned", "not the one that was pinned"),
        (Demand((ADA,), "b" * 16), None, True, "unsigned", "not signed"),
    ],
)
def test_a_good_tape(
    demand: Demand, signature: Signature | TapeFormatError | None, true: bool, finding: str, said: str
) -> None:
    verdict = decide(demand, signature, true=true)
    assert verdict.finding == finding
    assert said in verdict.what
    assert verdict.good == (finding == "intact")
    assert bool(verdict.fix) != verdict.good


def test_who_vouches_is_told() -> None:
    assert decide(Demand(), None).signature is None
    assert (decide(Demand(), BY_ADA).signature, decide(Demand(), BY_ADA).trusted) == (BY_ADA, False)
    assert decide(Demand((ADA,)), BY_ADA).trusted
    assert not decide(Demand((BOB,)), BY_ADA).trusted
    assert decide(Demand(pin="b" * 20), None).pinned == "last"
    assert decide(Demand(pin="a" * 20), None).pinned == "head"


def test_what_is_bad_stays_so() -> None:
    bad = replace(GOOD, finding="damaged", what="a line was changed")
    assert judge(bad, Demand((ADA,), "b" * 16), BY_ADA, lambda _: True) == bad


@pytest.mark.parametrize("text", ["", "abc", "a" * 15, "g" * 16, "a" * 65, "a" * 20 + " b"])
def test_what_is_no_hash(text: str) -> None:
    with pytest.raises(UsageError, match="is not the hash of a tape"):
        parse_pin(text)


def test_a_hash_as_it_is_pasted() -> None:
    assert parse_pin(f" {'AB' * 32}\n") == "ab" * 32
