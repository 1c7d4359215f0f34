"""encrypt, decrypt, and the commands that read what they make."""

import json
import os
from pathlib import Path

import agentruns
import click
import pytest
from click.testing import CliRunner

from tapeproxy.cli.encrypt import command as encrypt
from tapeproxy.cli.encrypt import decrypt
from tapeproxy.cli.ls import command as ls
from tapeproxy.cli.ls import prune
from tapeproxy.cli.show import command as show
from tapeproxy.cli.sign import keygen
from tapeproxy.cli.verify import command as verify
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.errors import LockedTapeError, TapeExistsError, TapeFormatError, UsageError

NAME = "20260102T030405Z-agent.tape.jsonl.gz"
TAPE = Path(".tapes") / NAME
LOCKED = Path(f"{TAPE}.enc")
KEY = ("--key-file", "tapes.key")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tape in .tapes and a key file, in the working folder; the environment knows no secret."""
    monkeypatch.chdir(tmp_path)
    for name in ("TAPEPROXY_PASSPHRASE", "TAPEPROXY_PASSPHRASE_FILE", "TAPEPROXY_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    agentruns.write_tape(TAPE, agentruns.sample())
    run(keygen, "--encryption", "tapes.key")
    return tmp_path


def run(command: click.Command, *args: str, **variables: str) -> str:
    result = CliRunner().invoke(command, args, standalone_mode=False, env=variables)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_there_and_back() -> None:
    plain = TAPE.read_bytes()
    output = run(encrypt, *KEY)
    assert output.splitlines()[0].startswith(f"encrypted: {LOCKED} (")
    assert output.splitlines()[1] == f"  the plain tape is still there: {TAPE}"
    assert LOCKED.stat().st_mode & 0o777 == 0o600
    TAPE.unlink()
    run(decrypt, str(LOCKED), *KEY)
    assert TAPE.read_bytes() == plain
    assert TAPE.stat().st_mode & 0o777 == 0o600


def test_commands_read_it_as_the_plain_one() -> None:
    page = run(show, str(TAPE))
    run(encrypt, *KEY)
    assert run(show, str(LOCKED), *KEY) == page.replace(NAME, f"{NAME}.enc")
    assert run(verify, str(LOCKED), *KEY).splitlines()[0].endswith(": intact: every byte is as it was written")
    TAPE.unlink()
    # The last tape, and by its short name.
    assert NAME in run(show, TAPEPROXY_KEY_FILE="tapes.key")
    assert NAME in run(show, NAME.removesuffix(".tape.jsonl.gz"), TAPEPROXY_KEY_FILE="tapes.key")


def test_of_two_copies_the_plain_one_is_the_last_tape() -> None:
    run(encrypt, *KEY)
    assert f"{TAPE}\n" in run(show)


def test_the_list_says_which_tapes_are_encrypted() -> None:
    run(encrypt, *KEY)
    TAPE.unlink()
    assert [word for word in run(ls).split() if word][-1] == "encrypted"
    (listed,) = json.loads(run(ls, "--json"))["tapes"]
    assert (listed["started_at"], listed["exchanges"], listed["outcome"]) == ("2026-01-02T03:04:05Z", None, "encrypted")
    (listed,) = json.loads(run(ls, "--json", TAPEPROXY_KEY_FILE="tapes.key"))["tapes"]
    assert (listed["exchanges"], listed["outcome"], listed["sealed"]) == (4, "exit 3", True)
    with pytest.raises(UsageError, match="absent"):
        run(ls, TAPEPROXY_KEY_FILE="absent")


def test_prune_knows_encrypted_tapes() -> None:
    run(encrypt, *KEY)
    Path(".tapes/other.jsonl.gz.enc").write_bytes(b"what is no tape")
    assert "deleted 2 tapes" in run(prune, "--keep", "0", "-y")
    assert [path.name for path in Path(".tapes").iterdir()] == ["other.jsonl.gz.enc"]


def test_a_descriptor() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"some words\n")
    os.close(writing)
    run(encrypt, "--passphrase-fd", str(reading))
    assert NAME in run(show, str(LOCKED), TAPEPROXY_PASSPHRASE="some words")


def test_what_cannot_be_encrypted() -> None:
    run(encrypt, *KEY)
    with pytest.raises(UsageError, match="encrypted already"):
        run(encrypt, str(LOCKED), *KEY)
    with pytest.raises(TapeExistsError):
        run(encrypt, str(TAPE), *KEY)
    run(encrypt, str(TAPE), *KEY, "--force")
    Path("x").write_bytes(b"no tape")
    with pytest.raises(TapeFormatError, match=r"x.*not a tape"):
        run(encrypt, "x", *KEY)
    with pytest.raises(TapeFormatError, match="absent"):
        run(encrypt, "absent", *KEY)
    writer = TapeWriter(Path("running"), agentruns.HEAD)
    with pytest.raises(UsageError, match="running: the tape is being recorded"):
        run(encrypt, "running", *KEY)
    writer.discard()
    with pytest.raises(UsageError, match="both a passphrase and a key file"):
        run(encrypt, str(TAPE), "-o", "y", TAPEPROXY_PASSPHRASE="a", TAPEPROXY_KEY_FILE="tapes.key")
    assert not Path("y").exists()


def test_what_cannot_be_decrypted() -> None:
    with pytest.raises(UsageError, match="the tape is not encrypted"):
        run(decrypt, str(TAPE), *KEY)
    run(encrypt, *KEY)
    with pytest.raises(TapeExistsError):
        run(decrypt, str(LOCKED), *KEY)
    LOCKED.rename("locked")
    with pytest.raises(UsageError, match="name the new one with -o"):
        run(decrypt, "locked", *KEY)
    Path("locked").write_bytes(Path("locked").read_bytes()[:-1])
    with pytest.raises(TapeFormatError, match="changed or cut off"):
        run(decrypt, "locked", *KEY, "-o", "y")
    assert not Path("y").exists(), "nothing is there before all is checked"


def test_a_passphrase_for_a_key_and_the_other_way() -> None:
    run(encrypt, *KEY, "-o", "by-key")
    with pytest.raises(
        LockedTapeError, match=r"--passphrase-env does not open this tape(?s:.*)encrypted with a key file"
    ):
        run(show, "by-key", "--passphrase-env", "WORDS", WORDS="some words")
    run(encrypt, "-o", "by-words", "--passphrase-env", "WORDS", WORDS="some words")
    with pytest.raises(LockedTapeError, match=r"--key-file does not open this tape(?s:.*)encrypted with a passphrase"):
        run(show, "by-words", *KEY)
