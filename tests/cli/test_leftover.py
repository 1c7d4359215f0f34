"""What is said of secrets when a recording ends: one line, or none, and never a secret."""

from dataclasses import replace
from pathlib import Path

import agentruns
import pytest

from tapeproxy.cli.leftover import after_recording
from tapeproxy.proxy.recorded import Recorded
from tapeproxy.tapes.redactionrules import DEFAULT

SECRET = "sk-proj-AbCdEf0123456789xyzXYZ"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


def recorded(folder: Path, text: str) -> Recorded:
    records = agentruns.exchange(1, "https://api.openai.com/v1/x", method="POST", asked={"content": text})
    path = agentruns.write_tape(folder / "t.jsonl.gz", records)
    return Recorded(path, path.stat().st_size, 1, 5, {})


def said(of: Recorded) -> list[str]:
    return [line.replace(str(of.path), "TAPE") for line in after_recording(of, {}, DEFAULT)]


def test_nothing_is_said_of_a_clean_tape(tmp_path: Path) -> None:
    assert said(recorded(tmp_path, "Why are there two tides a day?")) == []


def test_a_leftover_is_counted_and_not_shown(tmp_path: Path) -> None:
    (line,) = said(recorded(tmp_path, f"{SECRET} and again {SECRET}"))
    assert line == "warning: 1 value on the tape still looks like a secret; see: tapeproxy scrub --check TAPE"


def test_what_was_not_looked_through_is_said(tmp_path: Path) -> None:
    large = recorded(tmp_path, "word " * (5 << 18))
    assert said(large) == [
        "not all of the tape was looked through for secrets, for its size; do it with: tapeproxy scrub --check TAPE"
    ]
    assert "for its size" in said(replace(large, size=60 << 20))[0]


def test_a_tape_that_cannot_be_read_is_no_reason_to_fail(tmp_path: Path) -> None:
    gone = recorded(tmp_path, "x")
    gone.path.unlink()
    (line,) = said(gone)
    assert line.startswith("the tape could not be looked through for secrets: ")
