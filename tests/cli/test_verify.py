import gzip
import json
from collections.abc import Callable
from pathlib import Path

import agentruns
import pytest
from click.testing import CliRunner, Result

from tapeproxy.cli.verify import command
from tapeproxy.tapes.errors import TapeFormatError, UsageError


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample run, as the last tape of the working folder."""
    monkeypatch.chdir(tmp_path)
    return agentruns.write_tape(Path(".tapes/x.tape.jsonl.gz"), agentruns.sample())


def run(*args: str) -> Result:
    return CliRunner().invoke(command, args, standalone_mode=False)


def verify(*args: str) -> tuple[int, str]:
    result = run(*args)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def test_a_good_tape(tape: Path) -> None:
    code, output = verify()
    lines = output.splitlines()
    assert code == 0
    assert lines[0] == ".tapes/x.tape.jsonl.gz: intact: every byte is as it was written"
    assert [line.split() for line in lines[1:4]] == [["records", "23"], ["exchanges", "4"], ["outcome", "exit", "3"]]
    assert [line.split()[:2] for line in lines[4:]] == [["head", "hash"], ["last", "hash"], ["trace", "hash"]]
    hashes = [line.split()[2] for line in lines[4:]]
    assert hashes[1] in gzip.decompress(tape.read_bytes()).decode().splitlines()[-1]
    assert hashes[0] in gzip.decompress(tape.read_bytes()).decode().splitlines()[0]


def rewritten(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: gzip.compress(change(gzip.decompress(data)))


BAD: dict[str, tuple[Callable[[bytes], bytes], str, str, str]] = {
    "edited": (
        rewritten(lambda text: text.replace(b"degrees", b"Degrees", 1)),
        ", line 2: damaged: the hash does not fit",
        "records     1 before the damage",
        "damaged",
    ),
    "a line gone": (
        rewritten(lambda text: b"".join(text.splitlines(keepends=True)[:5] + text.splitlines(keepends=True)[6:])),
        ", line 6: damaged: the hash does not fit",
        "exchanges   1 before the damage",
        "damaged",
    ),
    "a line after the seal": (
        rewritten(lambda text: text + b'{"k":"note"}\n'),
        ", line 24: damaged: there is a record after the seal",
        "outcome     exit 3",
        "damaged",
    ),
    "cut": (lambda data: data[:900], ": interrupted: the tape has no seal", "exchanges   1", "interrupted"),
    "compressed anew": (
        rewritten(lambda text: text),
        ": not canonical: the content is intact, but",
        "outcome     exit 3",
        "not-canonical",
    ),
    "no tape": (lambda _: gzip.compress(b"{}\n"), "this is not a tape", "damaged", "damaged"),
    "empty": (lambda _: b"", ": damaged: this is not a tape", "damaged", "damaged"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_tape(tape: Path, case: str) -> None:
    change, first, further, finding = BAD[case]
    tape.write_bytes(change(tape.read_bytes()))
    code, output = verify()
    assert code == 5
    assert first in output.splitlines()[0]
    assert further in output
    code, output = verify("--json")
    assert code == 5
    assert (json.loads(output)["finding"], json.loads(output)["good"]) == (finding, False)


def test_a_tape_chained_anew_has_another_trace(tmp_path: Path) -> None:
    records = agentruns.sample()
    honest = agentruns.tape_bytes(records)
    forged = agentruns.tape_bytes(records, trace="0" * 64)
    assert honest != forged
    path = tmp_path / "forged.tape.jsonl.gz"
    path.write_bytes(forged)
    code, output = verify(str(path))
    assert code == 5
    assert ", line 23: trace differs: the exchanges are not those that were sealed" in output.splitlines()[0]


def test_json_names_what_the_help_names(tape: Path) -> None:
    code, output = verify(str(tape), "--json")
    given = json.loads(output)
    assert code == 0
    assert {
        key: given[key] for key in ("tape", "finding", "good", "line", "records", "exchanges", "outcome", "fix")
    } == {
        "tape": ".tapes/x.tape.jsonl.gz",
        "finding": "intact",
        "good": True,
        "line": 0,
        "records": 23,
        "exchanges": 4,
        "outcome": "exit 3",
        "fix": "",
    }
    words = set(str(command.help).replace(",", " ").replace("(", " ").replace(".", " ").split())
    assert set(given) - words == set()


def test_a_hostile_outcome_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "x.tape.jsonl.gz"
    path.write_bytes(agentruns.tape_bytes([], outcome="\x1b[31mfine\u202e"))
    assert "outcome     \\x1b[31mfine\\u202e" in verify(str(path))[1]


def test_what_is_not_there(tape: Path) -> None:
    assert isinstance(run("absent").exception, TapeFormatError)
    assert isinstance(run(str(tape.parent)).exception, TapeFormatError)
    tape.unlink()
    assert isinstance(run().exception, UsageError)
