"""Signatures with real keys: no tape and no signature but the honest ones pass."""

import gzip
import shutil
import subprocess
from pathlib import Path

import agentruns
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tapeproxy.proxy.signing import is_true, new_pair, public_of, read_private, read_public, sign
from tapeproxy.tapes.chain import START, close_line
from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.errors import TapeFormatError, UsageError
from tapeproxy.tapes.signature import Statement, fingerprint, parse
from tapeproxy.tapes.verdict import Verdict, Witness
from tapeproxy.tapes.vouching import Demand, judge

ADA = Ed25519PrivateKey.from_private_bytes(bytes(32))
TAPE = agentruns.tape_bytes(agentruns.sample()[:4])


def examined(data: bytes) -> Verdict:
    witness, decoder = Witness(), TapeDecoder("t")
    try:
        for entry in decoder.feed(data):
            witness.see(entry)
        return witness.judge(decoder.finish())
    except TapeFormatError as error:
        return witness.judge_damage(error)


def signed(data: bytes, key: Ed25519PrivateKey = ADA) -> bytes:
    verdict = examined(data)
    assert verdict.good
    return sign(
        Statement(
            verdict.file, verdict.head_hash, verdict.last_hash, verdict.records, "2026-01-02", public_of(key).hex()
        ),
        key,
    )


SIGNATURE = signed(TAPE)


def verified(tape: bytes, signature: bytes, key: Ed25519PrivateKey = ADA) -> Verdict:
    verdict = examined(tape)
    try:
        return judge(verdict, Demand((public_of(key),)), parse(signature, "s"), is_true)
    except TapeFormatError as error:
        return judge(verdict, Demand((public_of(key),)), error, is_true)


def test_the_honest_pair() -> None:
    verdict = verified(TAPE, SIGNATURE)
    assert (verdict.good, verdict.trusted) == (True, True)


def test_every_flipped_bit_of_the_signature_is_found() -> None:
    for at in range(len(SIGNATURE)):
        for bit in range(8):
            changed = bytearray(SIGNATURE)
            changed[at] ^= 1 << bit
            assert verified(TAPE, bytes(changed)).finding == "false-signature", (at, bit)


def test_every_flipped_byte_of_the_tape_is_found() -> None:
    for at in range(len(TAPE)):
        changed = bytearray(TAPE)
        changed[at] ^= 0x11
        assert not verified(bytes(changed), SIGNATURE).good, at


def test_every_cut_of_either_is_found() -> None:
    for end in range(len(TAPE)):
        assert not verified(TAPE[:end], SIGNATURE).good, end
    for end in range(len(SIGNATURE)):
        assert verified(TAPE, SIGNATURE[:end]).finding == "false-signature", end


def forged() -> bytes:
    """Somebody who knows the format edits the tape, and computes every hash anew."""
    records = [*agentruns.sample()[:4]]
    honest = gzip.decompress(TAPE)
    tape = agentruns.tape_bytes(records, head=agentruns.HEAD, outcome="killed")
    assert gzip.decompress(tape) != honest
    return tape


def test_a_tape_that_was_chained_anew_is_found() -> None:
    tape = forged()
    assert examined(tape).good, "the chain alone says nothing against it"
    verdict = verified(tape, SIGNATURE)
    assert verdict.finding == "false-signature"
    assert "not the one that" in verdict.what
    mallory = Ed25519PrivateKey.from_private_bytes(bytes([7]) * 32)
    assert verified(tape, signed(tape, mallory)).finding == "signed-by-another"
    as_ada = signed(tape, mallory).replace(public_of(mallory).hex().encode(), public_of(ADA).hex().encode())
    assert verified(tape, as_ada).finding == "false-signature"
    assert judge(examined(tape), Demand((public_of(ADA),)), None, is_true).finding == "unsigned"
    assert judge(examined(tape), Demand(pin=examined(TAPE).last_hash[:16]), None, is_true).finding == "not-pinned"


def test_lines_chained_anew_by_hand_are_found() -> None:
    last, lines = START, []
    for line in gzip.decompress(TAPE).splitlines():
        made, last = close_line(last, line[:-72].replace(b"gpt-4o", b"gpt-4x") + b"}")
        lines.append(made)
    assert not verified(gzip.compress(b"".join(lines)), SIGNATURE).good


def test_a_key_that_is_no_point_proves_nothing() -> None:
    for key in (b"\xff" * 32, bytes(32), b"\x01" + bytes(31)):
        line = SIGNATURE.replace(public_of(ADA).hex().encode(), key.hex().encode())
        assert not is_true(parse(line, "s"))


# --- key files ---


def test_a_new_pair(tmp_path: Path) -> None:
    private, public = tmp_path / "k", tmp_path / "k.pub"
    for path, data in zip((private, public), new_pair(), strict=True):
        path.write_bytes(data)
    key = read_private(private, lambda: None)
    assert read_public(public) == public_of(key)
    assert private.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert public.read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----")
    assert new_pair() != new_pair()


def private_bytes(kind: str, password: bytes = b"") -> bytes:
    form = serialization.PrivateFormat.OpenSSH if kind == "ssh" else serialization.PrivateFormat.PKCS8
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return ADA.private_bytes(serialization.Encoding.PEM, form, lock)


@pytest.mark.parametrize("kind", ["pem", "ssh"])
def test_keys_of_openssl_and_openssh(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "k"
    path.write_bytes(private_bytes(kind))
    assert public_of(read_private(path, lambda: None)) == public_of(ADA)
    if kind == "ssh":
        text = ADA.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        path.write_bytes(text + b" ada@example\n")
        assert read_public(path) == public_of(ADA)


def test_a_key_with_a_password(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(private_bytes("pem", b"open"))
    assert public_of(read_private(path, lambda: b"open")) == public_of(ADA)
    with pytest.raises(UsageError, match="not the password of the private key"):
        read_private(path, lambda: b"shut")
    with pytest.raises(UsageError, match="the private key has a password"):
        read_private(path, lambda: None)


EC = ec.generate_private_key(ec.SECP256R1())
PEM = serialization.Encoding.PEM
EC_PRIVATE = EC.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
EC_PUBLIC = EC.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("data", "private", "public"),
    [
        (b"", "not a private key that can be read", "not a public key that can be read"),
        (b"\0\xff" * 50, "not a private key that can be read", "not a public key that can be read"),
        (private_bytes("pem")[:60], "not a private key that can be read", "this is a private key"),
        (new_pair()[1], "this is a public key", ""),
        (b"ssh-ed25519 AAAA", "this is a public key", "not a public key that can be read"),
        (EC_PRIVATE, "not one of Ed25519", "this is a private key"),
        (EC_PUBLIC, "this is a public key", "not one of Ed25519"),
        (private_bytes("pem"), "", "this is a private key"),
    ],
)
def test_what_is_no_key(tmp_path: Path, data: bytes, private: str, public: str) -> None:
    path = tmp_path / "k"
    path.write_bytes(data)
    if private:
        with pytest.raises(UsageError, match=f"k: .*{private}"):
            read_private(path, lambda: None)
    if public:
        with pytest.raises(UsageError, match=f"k: .*{public}"):
            read_public(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the key cannot be read: no such file"):
        read_private(tmp_path / "absent", lambda: None)
    with pytest.raises(UsageError, match="the key cannot be read"):
        read_public(tmp_path)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen here")
def test_the_fingerprint_is_the_one_of_ssh_keygen(tmp_path: Path) -> None:
    path = tmp_path / "k"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=60)
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{path}.pub"], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    key = read_private(path, lambda: None)
    assert fingerprint(public_of(key)) in shown
    assert read_public(tmp_path / "k.pub") == public_of(key)
