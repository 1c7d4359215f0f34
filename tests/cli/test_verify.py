import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import agentruns
import pytest
from click.testing import CliRunner, Result

from tapeproxy.cli.verify import command
from tapeproxy.tapes.errors import TapeFormatError, UsageError
from tapeproxy.tapes.records import Note


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample run, as the last tape of the working folder."""
    monkeypatch.chdir(tmp_path)
    return agentruns.write_tape(Path(".tapes/x.tape.jsonl.gz"), agentruns.sample())


def run(*args: str) -> Result:
    return CliRunner().invoke(command, args, standalone_mode=False)


def replayed(*args: str, program: str, times: int = 2) -> tuple[int, str]:
    """Verify with replays of a Python program. No guard: one would move this very process into a namespace."""
    return verify("--times", str(times), "--guard", "none", *args, "--", sys.executable, "-c", program)


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


def test_what_the_recorder_could_not_tape_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.tape.jsonl.gz"
    note = Note(t=1, what="recorder-failure", text="3 times something could not be taped; first: boom\x1b")
    path.write_bytes(agentruns.tape_bytes([note]))
    told = "the tape has a gap: 3 times something could not be taped; first: boom"
    code, output = verify(str(path))
    assert (code, f"  warning: {told}\\x1b" in output.splitlines()) == (0, True)
    assert json.loads(verify(str(path), "--json")[1])["gaps"] == [f"{told}\x1b"]


def test_a_hostile_outcome_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "x.tape.jsonl.gz"
    path.write_bytes(agentruns.tape_bytes([], outcome="\x1b[31mfine\u202e"))
    assert "outcome     \\x1b[31mfine\\u202e" in verify(str(path))[1]


def test_what_is_not_there(tape: Path) -> None:
    assert isinstance(run("absent").exception, TapeFormatError)
    assert isinstance(run(str(tape.parent)).exception, TapeFormatError)
    tape.unlink()
    assert isinstance(run().exception, UsageError)


# --- with replays ---


ASK = """
import urllib.request
print(urllib.request.urlopen('http://weather.test:8080/now?city=Paris').status, flush=True)
"""
ONCE = """
import os
before = os.path.exists("before")
open("before", "w").close()
"""


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tape of one exchange, the last one of the working folder."""
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    records = agentruns.exchange(1, "http://weather.test:8080/now?city=Paris", chunks=[b"dry"])
    return agentruns.write_tape(Path(".tapes/x.tape.jsonl.gz"), records)


@pytest.mark.usefixtures("one")
def test_replays_that_are_identical() -> None:
    code, output = replayed(program=ASK, times=3)
    lines = output.splitlines()
    assert code == 0
    assert lines[0].endswith(": intact: every byte is as it was written")
    trace = next(line.split()[2] for line in lines if line.startswith("  trace hash"))
    at = lines.index("identical replays: 3/3")
    assert lines[at + 1].startswith("  mean time   ")
    assert lines[at + 2 :] == [f"  replayed    {trace} (the tape's own)"]


@pytest.mark.usefixtures("one")
def test_once_is_enough_for_a_comparison_with_the_tape() -> None:
    code, output = replayed(program="", times=1)
    assert code == 0
    assert "identical replays: 1/1" in output
    assert "(not the tape's own: 1 of 1 exchanges were not asked for)" in output
    assert "warning: the agent asked for nothing that is on the tape" in output


@pytest.mark.parametrize(
    ("program", "options", "code", "told"),
    [
        (
            ONCE + ASK + "print('b' if before else 'a')",
            (),
            4,
            ["replay 2: stdout differs at line 2", "  stdout, line 2", "    replay 1: a", "    replay 2: b"],
        ),
        (
            ONCE + ASK + "os.kill(os.getpid(), 11 if before else 0)",
            (),
            4,
            [
                "replay 2: the agent ended otherwise",
                "  exit",
                "    replay 1: exit 0",
                "    replay 2: killed by SIGSEGV",
            ],
        ),
        (
            ONCE + "if before: print('\\x1b[2J')",
            (),
            4,
            ["  stdout, line 1", "    replay 1: (absent)", "    replay 2: \\x1b[2J"],
        ),
        (
            ASK.replace("Paris", "Lima"),
            (),
            3,
            ["      query city", "        tape: Paris", "        now:  Lima"],
        ),
        (
            "import threading; threading.Event().wait()",
            ("--timeout", "0.5"),
            124,
            ["replay 1: it was stopped by --timeout"],
        ),
    ],
    ids=["stdout", "signal", "hostile", "violation", "timeout"],
)
@pytest.mark.usefixtures("one")
def test_replays_that_are_not(program: str, options: tuple[str, ...], code: int, told: list[str]) -> None:
    found, output = replayed(*options, program=program)
    assert found == code
    assert "\n".join(["", *told, ""]) in output


@pytest.mark.usefixtures("one")
def test_the_document_of_replays_names_what_the_help_names() -> None:
    code, output = replayed("--json", program=ONCE + "print(before)")
    given = json.loads(output)
    assert code == 4
    assert {name: given[name] for name in ("finding", "times", "replays", "identical", "stopped", "as_sealed")} == {
        "finding": "intact",
        "times": 2,
        "replays": 2,
        "identical": 1,
        "stopped": False,
        "as_sealed": False,
    }
    assert given["difference"] == {
        "replay": 2,
        "what": "stdout",
        "text": "stdout differs at line 1",
        "differences": [{"where": "stdout, line 1", "first": "False", "this": "True"}],
        "also": [],
        "fault": None,
    }
    words = set(re.findall(r"\w+", str(command.help)))
    runs = given["runs"][0]
    assert {
        *given,
        *given["difference"],
        *given["difference"]["differences"][0],
        *runs,
        *runs["stdout"],
    } - words == set()
    assert given["runs"][1]["report"]["agent_exit_code"] == 0


@pytest.mark.usefixtures("one")
def test_output_is_shown_when_it_is_wanted() -> None:
    program = "import sys; print('to out'); print('to err', file=sys.stderr)"
    _, output = replayed("-v", program=program, times=1)
    assert "--- replay 1, stdout\nto out\n--- replay 1, stderr\nto err\n" in output
    assert "to out" not in replayed(program=program, times=1)[1]


def test_a_tape_that_is_interrupted_is_replayed_all_the_same(one: Path) -> None:
    agentruns.write_tape(one, agentruns.sample(), sealed=False)
    code, output = replayed(program=ASK)
    assert code == 5
    assert ": interrupted: " in output.splitlines()[0]
    assert "identical replays: 2/2" in output
    assert replayed(program=ONCE + "print(before)")[0] == 4


def test_a_tape_that_is_damaged_is_not_replayed(one: Path) -> None:
    one.write_bytes(gzip.compress(gzip.decompress(one.read_bytes()).replace(b"dry", b"wet")))
    code, output = replayed(program="raise SystemExit('was run')")
    assert code == 5
    assert "identical" not in output


@pytest.mark.parametrize(
    "words", [("--guard", "none"), ("--timeout", "3"), ("-v",), ("--allow", "x:1"), ("--", "true")], ids=" ".join
)
@pytest.mark.usefixtures("one")
def test_options_of_replays_without_replays(words: tuple[str, ...]) -> None:
    error = run(*words).exception
    assert isinstance(error, UsageError)
    assert error.fix == "add --times 5"


@pytest.mark.usefixtures("one")
def test_a_place_that_may_not_be_reached_is_said_before_anything_else() -> None:
    result = run("--times", "2", "--guard", "none", "--allow", "nowhere", "--", "true")
    assert isinstance(result.exception, UsageError)
    assert result.output == ""
