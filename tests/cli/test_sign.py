"""sign, keygen and what verify says of signatures and pinned hashes."""

import json
from pathlib import Path
from typing import Any

import agentruns
import click
import pytest
from click.testing import CliRunner

from tapeproxy.cli.encrypt import command as encrypt
from tapeproxy.cli.ls import prune
from tapeproxy.cli.sign import command as sign
from tapeproxy.cli.sign import keygen
from tapeproxy.cli.verify import command as verify
from tapeproxy.tapes.errors import LockedTapeError, TapeExistsError, TapeFormatError, TapeproxyError, UsageError

NAME = "bug.tape.jsonl.gz"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tape and a pair of keys, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    agentruns.write_tape(Path(NAME), agentruns.sample())
    run(keygen, "me.key")
    return tmp_path


def run(command: click.Command, *args: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def document(*args: str) -> Any:
    return json.loads(run(verify, *args, "--json")[1])


def test_sign_and_verify() -> None:
    before = Path(NAME).read_bytes()
    output = run(sign, NAME, "--key", "me.key")[1]
    assert output.startswith("signed by SHA256:")
    assert output.endswith(f": {NAME}.sig\n")
    assert Path(NAME).read_bytes() == before
    assert Path(f"{NAME}.sig").stat().st_mode & 0o777 & ~0o022 == 0o644
    code, output = run(verify, NAME, "--key", "me.key.pub")
    assert code == 0
    assert "signed by   SHA256:" in output
    assert "(a key that was asked for)" in output
    code, output = run(verify, NAME)
    assert code == 0
    assert "(--key FILE says whether that is the right key)" in output


def test_signed_by_another_and_several_keys() -> None:
    run(keygen, "other.key")
    run(sign, NAME, "--key", "other.key")
    code, output = run(verify, NAME, "--key", "me.key.pub")
    assert code == 5
    assert f"{NAME}: signed by another: the tape is signed by SHA256:" in output
    assert run(verify, NAME, "--key", "me.key.pub", "--key", "other.key.pub")[0] == 0


def test_not_signed() -> None:
    assert run(verify, NAME)[0] == 0
    code, output = run(verify, NAME, "--key", "me.key.pub")
    assert code == 5
    assert f"{NAME}: unsigned: the tape is whole, but not signed" in output


@pytest.mark.parametrize("keys", [(), ("--key", "me.key.pub")])
def test_a_tape_made_anew_under_a_signature(keys: tuple[str, ...]) -> None:
    run(sign, NAME, "--key", "me.key")
    agentruns.write_tape(Path(NAME), agentruns.sample()[:4])
    code, output = run(verify, NAME, *keys)
    assert code == 5
    assert "false signature: the tape is whole, but it is not the one that SHA256:" in output


def test_a_signature_that_was_changed() -> None:
    run(sign, NAME, "--key", "me.key")
    path = Path(f"{NAME}.sig")
    path.write_bytes(path.read_bytes().replace(b'"records":2', b'"records":1'))
    assert run(verify, NAME)[0] == 5
    assert "did not make it" in run(verify, NAME)[1]
    path.write_bytes(b"")
    assert "the signature cannot be read: this is not a tape's signature" in run(verify, NAME)[1]


def test_a_signature_elsewhere() -> None:
    run(sign, NAME, "--key", "me.key", "-o", "x.sig")
    assert not Path(f"{NAME}.sig").exists()
    assert run(verify, NAME, "--key", "me.key.pub")[0] == 5
    assert run(verify, NAME, "--key", "me.key.pub", "--signature", "x.sig")[0] == 0
    with pytest.raises(UsageError, match=r"y\.sig: the signature cannot be read: no such file"):
        run(verify, NAME, "--signature", "y.sig")


def test_only_a_whole_tape_is_signed() -> None:
    path = Path(NAME)
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(TapeFormatError, match="only a whole tape is signed, and this one is interrupted"):
        run(sign, NAME, "--key", "me.key")
    assert not Path(f"{NAME}.sig").exists()


def test_nothing_is_replaced_unasked() -> None:
    run(sign, NAME, "--key", "me.key")
    old = Path("me.key").read_bytes(), Path("me.key.pub").read_bytes()
    with pytest.raises(TapeExistsError):
        run(sign, NAME, "--key", "me.key")
    run(sign, NAME, "--key", "me.key", "--force")
    with pytest.raises(TapeExistsError):
        run(keygen, "me.key")
    assert (Path("me.key").read_bytes(), Path("me.key.pub").read_bytes()) == old
    Path("me.key.pub").unlink()
    with pytest.raises(TapeExistsError):
        run(keygen, "me.key")
    assert not Path("me.key.pub").exists(), "a public key that fits no private one"


def test_the_private_key_is_private() -> None:
    assert Path("me.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="this is a private key, and a public one checks"):
        run(verify, NAME, "--key", "me.key")
    with pytest.raises(UsageError, match="this is a public key, and a private one signs"):
        run(sign, NAME, "--key", "me.key.pub")


def test_a_signature_holds_for_the_encrypted_tape_too() -> None:
    run(keygen, "--encryption", "tapes.key")
    run(sign, NAME, "--key", "me.key")
    run(encrypt, NAME, "--key-file", "tapes.key")
    locked = f"{NAME}.enc"
    assert run(verify, locked, "--key", "me.key.pub", "--key-file", "tapes.key")[0] == 0
    signature = Path(f"{NAME}.sig").read_bytes()
    run(sign, locked, "--key", "me.key", "--key-file", "tapes.key", "--force")
    assert Path(f"{NAME}.sig").read_bytes().split(b'"signed_at"')[0] == signature.split(b'"signed_at"')[0]
    with pytest.raises(LockedTapeError):
        run(verify, locked, "--key", "me.key.pub")
    data = bytearray(Path(locked).read_bytes())
    data[-1] ^= 1
    Path(locked).write_bytes(data)
    code, output = run(verify, locked, "--key-file", "tapes.key")
    assert code == 5
    assert "damaged: the key is right, but the encrypted tape was changed" in output


def test_pinned_hashes() -> None:
    plain = document(NAME)
    assert (plain["pinned"], plain["signed_by"], plain["trusted"]) == (None, None, False)
    for pin, which in ((plain["last_hash"], "last"), (plain["last_hash"][:16], "last"), (plain["head_hash"], "head")):
        assert document(NAME, "--head", pin)["pinned"] == which
    assert "this is the tape, every record of it" in run(verify, NAME, "--head", plain["last_hash"])[1]
    assert "its first record only" in run(verify, NAME, "--head", plain["head_hash"])[1]
    agentruns.write_tape(Path(NAME), agentruns.sample()[:4])
    code, output = run(verify, NAME, "--head", plain["last_hash"])
    assert code == 5
    assert "not pinned: the tape is whole, but it is not the one that was pinned" in output
    with pytest.raises(UsageError, match="'abc' is not the hash of a tape"):
        run(verify, NAME, "--head", "abc")


def test_json_names_what_the_help_names() -> None:
    run(sign, NAME, "--key", "me.key")
    given = document(NAME, "--key", "me.key.pub")
    assert given["trusted"] is True
    assert given["signed_by"].startswith("SHA256:")
    words = set(str(verify.help).replace(",", " ").replace("(", " ").replace(".", " ").split())
    assert set(given) - words == set()


def test_nothing_is_replayed_of_a_tape_that_is_not_the_one_wanted() -> None:
    for demand in (("--key", "me.key.pub"), ("--head", "0" * 16)):
        code, output = run(verify, NAME, "--times", "1", "--guard", "none", *demand, "--", "touch", "ran")
        assert code == 5
        assert "replay" not in output
        assert not Path("ran").exists()


def test_prune_takes_the_signature_with_the_last_copy() -> None:
    tape = agentruns.write_tape(Path(".tapes/20200101T000000Z-x.tape.jsonl.gz"), agentruns.sample())
    run(sign, str(tape), "--key", "me.key")
    run(keygen, "--encryption", "tapes.key")
    run(encrypt, str(tape), "--key-file", "tapes.key")
    signature = tape.with_name(f"{tape.name}.sig")
    assert len(list(tape.parent.iterdir())) == 3
    run(prune, "--keep", "1", "-y")
    assert signature.exists()
    run(prune, "--keep", "0", "-y")
    assert list(tape.parent.iterdir()) == []


@pytest.mark.parametrize("args", [("absent", "--key", "me.key"), (NAME, "--key", "absent")])
def test_what_is_not_there(args: tuple[str, ...]) -> None:
    with pytest.raises(TapeproxyError, match="absent"):
        run(sign, *args)
