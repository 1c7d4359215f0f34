"""The text of a frozen test: Python that a formatter leaves alone, whatever stands on the tape."""

import ast
import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.frozentests import FrozenTest, Word, literal, python_text

TEST = FrozenTest(
    name="test_bug",
    words=(Word("python3", "python"), Word("agent.py", "path"), Word("--brief")),
    folder="..",
    tape="tapes/test_bug/test_bug.run1.tape.jsonl.gz",
    recorded="2026-11-30T05:00:00Z, exit 1, 5 exchanges",
    expect="same",
    code=1,
    died_of="KeyError",
    exchanges=5,
    trace="0" * 64,
    timeout=60,
)
SAME = '''"""A run frozen by `tapeproxy repro`: passes as long as the run goes as it was recorded.

tape: tapes/test_bug/test_bug.run1.tape.jsonl.gz
recorded: 2026-11-30T05:00:00Z, exit 1, 5 exchanges
verified: now
"""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
COMMAND = [sys.executable, str(FOLDER / "agent.py"), "--brief"]
TRACE = "0000000000000000000000000000000000000000000000000000000000000000"


@pytest.mark.tape(frozen=True)
def test_bug(tape):
    run = tape.run(COMMAND, cwd=FOLDER, timeout=60)

    assert run.returncode == 1, run.stderr
    assert "KeyError" in run.stderr
    assert run.served == 5 and not run.unused
    assert run.trace_hash == TRACE
'''


def test_the_whole_text() -> None:
    assert python_text(TEST, "verified: now") == SAME


def test_one_that_waits_for_the_fix() -> None:
    text = python_text(dataclasses.replace(TEST, expect="fixed"), "verified: now")
    assert "fails until the recorded run no longer does" in text and "TRACE" not in text
    assert text.endswith("    assert run.returncode == 0, run.stderr  # recorded: exit 1, KeyError\n")


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        (".", "Path(__file__).parent"),
        ("..", "Path(__file__).parents[1]"),
        ("../..", "Path(__file__).parents[2]"),
        ("../../agents/a b", 'Path(__file__).parents[2] / "agents/a b"'),
        ("sub", 'Path(__file__).parent / "sub"'),
    ],
)
def test_folders(folder: str, told: str) -> None:
    assert f"\nFOLDER = {told}\n" in python_text(dataclasses.replace(TEST, folder=folder), "")


HOSTILE = [
    '"""\nimport os\nos.system("true")\n"""',
    "'''\\",
    'a\\N{BELL}b" + exec("x") + "',
    "\x1b[31m\u202e\r\n# x",
    '{"a": "it\'s"}',
    "w" * 120,
]


@pytest.mark.parametrize("expect", ["same", "fixed"])
def test_nothing_of_a_tape_gets_out_of_its_literal(expect: str) -> None:
    words = tuple(Word(text) for text in HOSTILE)
    test = dataclasses.replace(TEST, words=words, recorded=HOSTILE[0], trace=HOSTILE[0], expect=expect)
    for hostile in HOSTILE:
        text = python_text(test, f"unverified: {hostile}")
        module = ast.parse(text)
        assert [type(node).__name__ for node in module.body] == [
            "Expr",
            "ImportFrom",
            "Import",
            *["Assign"] * (3 if expect == "same" else 2),
            "FunctionDef",
        ]
        command = next(one for one in module.body if isinstance(one, ast.Assign) and isinstance(one.value, ast.List))
        assert ast.literal_eval(command.value) == HOSTILE
        assert "\x1b" not in text and "\u202e" not in text


def test_ruff_leaves_it_alone() -> None:
    words = (*TEST.words, *(Word(text) for text in HOSTILE))
    reason = f"unverified: {'a replay did otherwise, ' * 30}"
    for text in (SAME, python_text(dataclasses.replace(TEST, words=words, folder="../a/b"), reason)):
        for command in (["check", "--select", "E4,E7,E9,F,I,UP,RUF"], ["format", "--check"]):
            argv = [sys.executable, "-m", "ruff", command[0], "--isolated", *command[1:], "-"]
            done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr + text


@given(st.text())
def test_a_literal_is_its_text(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
