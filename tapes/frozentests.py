"""The text of a test that replays a run. Pure: facts in, Python out, as a formatter would leave it.

Nothing that stands on a tape gets into the text but as a literal, or in words without quotes and backslashes.
"""

import textwrap
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tapeproxy.tapes.invisible import HOSTILE, escape

type Expect = Literal["same", "fixed"]
"""What the test asks for: that the run goes as it was recorded, or that it no longer fails."""

_WIDTH = 88
"""The columns that ruff and black leave as they are."""
_LONGEST_REASON = 400


class Word(NamedTuple):
    """A word of the command. `kind`: as it is, a path within the folder, or whatever Python runs the test."""

    text: str
    kind: Literal["word", "path", "python"] = "word"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenTest:
    """A test and what it asserts.

    `folder`: where the command runs, relative to the test's own folder, with slashes. `tape`: the tape's place beside
    it. `code`: what the recorded run exited with; `died_of`: the name of the exception it died of, if it is known.
    `timeout` in seconds.
    """

    name: str
    words: tuple[Word, ...]
    folder: str
    tape: str
    recorded: str
    expect: Expect
    code: int
    died_of: str
    exchanges: int
    trace: str
    timeout: int


def python_text(test: FrozenTest, conclusion: str) -> str:
    """The file's text. `conclusion`: the line that says whether it was seen to do what it says."""
    needs_sys = any(word.kind == "python" for word in test.words)
    parts = [
        _docstring(test, conclusion),
        "",
        *(["import sys"] if needs_sys else []),
        "from pathlib import Path",
        "",
        "import pytest",
        "",
        f"FOLDER = {_folder(test.folder)}",
        _command(test.words),
        *([f"TRACE = {literal(test.trace)}"] if test.expect == "same" else []),
        "",
        "",
        "@pytest.mark.tape(frozen=True)",
        f"def {test.name}(tape):",
        f"    run = tape.run(COMMAND, cwd=FOLDER, timeout={test.timeout})",
        "",
        *(f"    {line}" for line in _asserts(test)),
    ]
    return "\n".join(parts) + "\n"


def literal(text: str) -> str:
    """A string as formatters write it: in double quotes, unless that takes more backslashes."""
    told = repr(text)
    if told[0] == '"' or text.count('"') > text.count("'"):
        return told
    inner = told[1:-1].replace("\\'", "'").replace('"', '\\"')
    return f'"{inner}"'


def _docstring(test: FrozenTest, conclusion: str) -> str:
    if test.expect == "same":
        what = "passes as long as the run goes as it was recorded"
    else:
        what = "fails until the recorded run no longer does"
    facts = (f"tape: {test.tape}", f"recorded: {test.recorded}", conclusion)
    wrapped = (
        textwrap.fill(_harmless(fact), _WIDTH, subsequent_indent="    ", break_on_hyphens=False) for fact in facts
    )
    return "\n".join((f'"""A run frozen by `tapeproxy repro`: {what}.', "", *wrapped, '"""'))


def _harmless(text: str) -> str:
    """Words that can neither end a docstring nor escape in it."""
    if len(text) > _LONGEST_REASON:
        text = f"{text[: _LONGEST_REASON - 1]}…"
    return HOSTILE.sub(escape, " ".join(text.split())).replace("\\", "/").replace('"', "'")


def _folder(relative: str) -> str:
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    up = parts.count("..")
    base = "Path(__file__).parent" if not up else f"Path(__file__).parents[{up}]"
    down = "/".join(parts[up:])
    return f"{base} / {literal(down)}" if down else base


def _command(words: tuple[Word, ...]) -> str:
    told = [_expression(word) for word in words]
    line = f"COMMAND = [{', '.join(told)}]"
    if len(line) <= _WIDTH:
        return line
    return "\n".join(("COMMAND = [", *(f"    {one}," for one in told), "]"))


def _expression(word: Word) -> str:
    if word.kind == "python":
        return "sys.executable"
    return literal(word.text) if word.kind == "word" else f"str(FOLDER / {literal(word.text)})"


def _asserts(test: FrozenTest) -> list[str]:
    if test.expect == "fixed":
        was = f"exit {test.code}" + (f", {test.died_of}" if test.died_of else "")
        return [f"assert run.returncode == 0, run.stderr  # recorded: {was}"]
    died_of = [f'assert "{test.died_of}" in run.stderr'] if test.died_of else []
    return [
        f"assert run.returncode == {test.code}, run.stderr",
        *died_of,
        f"assert run.served == {test.exchanges} and not run.unused",
        "assert run.trace_hash == TRACE",
    ]
