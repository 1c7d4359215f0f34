"""A taped run made into a test: the tape beside it, the test's text, and whether it was seen to do what it says.

Knows files, the repository's root and processes; `tapes/frozentests.py` knows what a test looks like. Whatever comes of
the trial, the test is there afterwards and says it.
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tapeproxy.proxy.drafts import drafted
from tapeproxy.proxy.freezetrials import Pytest, doubt_of_pytest, try_replay
from tapeproxy.proxy.tapedrun import taped_argv
from tapeproxy.proxy.tapefile import load, read_pieces
from tapeproxy.proxy.testplaces import program_path, tape_path
from tapeproxy.tapes.errors import TapeExistsError, UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.frozentests import Expect, FrozenTest, Word, python_text
from tapeproxy.tapes.outcomes import outcome
from tapeproxy.tapes.records import Json

_ROOTS = (".git", ".hg", ".jj", "pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini")
_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?")
_LEAST = 60
"""Seconds that the run in the test may take, at least."""
_ENDS = ("exited", "killed")
"""Outcomes of runs that ended by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeSettings:
    """What to freeze, where to. `argv` empty: the taped command.

    `python`: what runs pytest, and the agent if that is a Python program. `here`: the working folder, where a command
    that is given runs. `timeout` in seconds; None: by the recording's time.
    """

    tape: Path
    output: Path
    here: Path
    expect: Expect = "same"
    argv: tuple[str, ...] = ()
    python: str = sys.executable
    timeout: int | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """What came of it: the test and its tape are there. `doubt`: why it is not verified; empty where it is.

    `foreign`: words of the command that name places outside of the repository.
    """

    test: Path
    tape: Path
    expect: Expect
    recorded: str
    exchanges: int
    trace: str
    doubt: str
    foreign: tuple[str, ...] = ()

    def to_json(self) -> Json:
        return {
            "test": str(self.test),
            "tape": str(self.tape),
            "expect": self.expect,
            "recorded": self.recorded,
            "exchanges": self.exchanges,
            "trace": self.trace,
            "verified": not self.doubt,
            "doubt": self.doubt or None,
            "foreign": list(self.foreign),
        }


def freeze(settings: FreezeSettings) -> Frozen:
    """Write the test and its tape, and try it.

    Raises UsageError where the run can't be made a test, TapeExistsError without `force`, and what reading and writing
    tapes raise.
    """
    tape, _ = load(settings.tape)
    code = _recorded_code(tape, settings)
    output = Path(os.path.abspath(settings.output))  # noqa: PTH100 - links in it are the user's business
    name = _test_name(output)
    place = program_path(tape_path(output, name, "function", output.parent), 1)
    argv, folder = _command(settings, tape)
    root = _root(output, settings.here)
    if not folder.is_relative_to(root):
        fix = f"run it in {root}: tapeproxy repro TAPE --pytest -o FILE -- COMMAND"
        raise UsageError(f"the command ran in {folder}, outside of the test's repository", where=str(root), fix=fix)
    words = tuple(_words(argv, folder))
    timeout = settings.timeout or max(_LEAST, -(-tape.duration // 10**9))
    if output.exists() and not settings.force:
        raise TapeExistsError("the file exists", where=str(output), fix="name another, or replace it with --force")
    _copy(settings.tape, place, force=settings.force)
    trial = try_replay(place, _argv(words, folder, settings.python), folder, timeout, code)
    test = replace(
        _as_taped(tape, settings.expect, code),
        name=name,
        words=words,
        folder=os.path.relpath(folder, output.parent).replace(os.sep, "/"),
        tape=place.relative_to(output.parent).as_posix(),
        died_of="" if trial.doubt else trial.died_of,  # of another run than the recorded one, maybe
        timeout=timeout,
    )
    if not trial.doubt:  # the project's own rules may make another trace of the same answers
        test = replace(test, exchanges=int(trial.report["served"]), trace=str(trial.report["trace"]))
    doubt = trial.doubt
    _write(output, python_text(test, f"unverified: {doubt or 'the trial did not end'}"))
    if not doubt:
        doubt = doubt_of_pytest(Pytest(settings.python, output, root, tape.head.secrets, timeout), settings.expect)
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        stands = f"verified: {now}, {outcome(tape.seal, tape.exit)} as recorded"
        _write(output, python_text(test, f"unverified: {doubt}" if doubt else stands))
    return Frozen(
        test=settings.output,
        tape=settings.output.parent / test.tape,
        expect=settings.expect,
        recorded=test.recorded,
        exchanges=test.exchanges,
        trace=test.trace,
        doubt=doubt,
        foreign=tuple(word.text for word in words if word.kind == "word" and _is_place(word.text)),
    )


def _as_taped(tape: Tape, expect: Expect, code: int) -> FrozenTest:
    """What the tape says of the test; the rest is open."""
    return FrozenTest(
        name="",
        words=(),
        folder="",
        tape="",
        recorded=f"{_when(tape)}, {outcome(tape.seal, tape.exit)}, {_counted(len(tape.exchanges))}",
        expect=expect,
        code=code,
        died_of="",
        exchanges=sum(not exchange.request.inside for exchange in tape.exchanges),
        trace="" if tape.seal is None else tape.seal.trace,
        timeout=0,
    )


def _recorded_code(tape: Tape, settings: FreezeSettings) -> int:
    """What the recorded run exited with, as a shell has it. Raises UsageError where a replay can't end so."""
    where = str(settings.tape)
    if tape.seal is None or tape.exit is None or tape.seal.outcome not in _ENDS:
        how = outcome(tape.seal, tape.exit)
        fix = "record a run to its end: tapeproxy record -- COMMAND"
        raise UsageError(f"the tape does not hold how the run would have ended by itself: {how}", where=where, fix=fix)
    if tape.exit.signal is None:
        code = tape.exit.code or 0
    else:
        known = {one.name: int(one) for one in signal.Signals}
        code = 128 + known.get(tape.exit.signal, 0)
    if settings.expect == "fixed" and code == 0:
        raise UsageError("the recorded run did not fail, so there is nothing to be fixed", where=where)
    return code


def _test_name(output: Path) -> str:
    """The name of the test function. Raises UsageError for a file that pytest would not look into."""
    stem = output.stem
    if output.suffix != ".py" or not stem.isidentifier() or not (stem.startswith("test_") or stem.endswith("_test")):
        fix = "name it like tests/test_bug.py"
        raise UsageError("pytest finds tests in files called test_….py", where=str(output), fix=fix)
    return stem if stem.startswith("test_") else f"test_{stem.removesuffix('_test')}"


def _command(settings: FreezeSettings, tape: Tape) -> tuple[tuple[str, ...], Path]:
    """The command, and the folder it runs in. Raises UsageError where it is not known."""
    if settings.argv:
        return settings.argv, settings.here
    again = f"in the folder where it runs: tapeproxy repro {settings.tape} --pytest -o {settings.output} -- COMMAND"
    try:
        argv = taped_argv(tape, settings.tape)
    except UsageError as error:
        raise UsageError(error.what, where=error.where, fix=again) from None
    folder = Path(tape.head.cwd)
    if not folder.is_dir():
        raise UsageError(f"the command ran in {folder}, which is not here", where=str(settings.tape), fix=again)
    return argv, folder


def _root(output: Path, here: Path) -> Path:
    """The folder that is the repository of a test."""
    folders = output.parents
    for names in (_ROOTS[:3], _ROOTS[3:]):
        for folder in folders:
            if any((folder / name).exists() for name in names):
                return folder
    return here if output.is_relative_to(here) else output.parent


def _words(argv: Sequence[str], folder: Path) -> Iterator[Word]:
    """The command for other machines: no path of this one, and the Python that runs the test."""
    for number, word in enumerate(argv):
        path = Path(word)
        if number == 0 and _PYTHON.fullmatch(path.name):
            yield Word(word, "python")
        elif path.is_absolute() and path.is_relative_to(folder):
            yield Word(path.relative_to(folder).as_posix(), "path")
        else:
            yield Word(word)


def _argv(words: Sequence[Word], folder: Path, python: str) -> list[str]:
    """The same words for this machine."""
    kinds: dict[str, Callable[[str], str]] = {
        "python": lambda _: python,
        "path": lambda text: str(folder / text),
        "word": str,
    }
    return [kinds[word.kind](word.text) for word in words]


def _is_place(word: str) -> bool:
    try:
        return Path(word).is_absolute() and Path(word).exists()
    except (OSError, ValueError):  # too long, or no name at all
        return False


def _copy(tape: Path, place: Path, *, force: bool) -> None:
    if place.exists() and place.samefile(tape):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with drafted(place, force=force) as file:
        file.writelines(read_pieces(tape))


def _write(path: Path, text: str) -> None:
    with drafted(path, force=True, mode=0o644) as file:
        file.write(text.encode())


def _counted(exchanges: int) -> str:
    return "1 exchange" if exchanges == 1 else f"{exchanges} exchanges"


def _when(tape: Tape) -> str:
    try:
        return f"{datetime.fromisoformat(tape.head.started_at).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError):
        return "at a time that is not known"
