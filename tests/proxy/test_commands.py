"""Which command is run for the words given, and what is said when it can't be."""

import errno
import os
from pathlib import Path

import pytest

from tapeproxy.proxy.commands import CommandNotFoundError, CommandNotRunnableError, command_line, start_error
from tapeproxy.tapes.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with scripts, and in `bin` a python3."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    for path, text, mode in [
        (python, "#!/bin/sh\n", 0o755),
        (tmp_path / "plain.py", "print()\n", 0o644),
        (tmp_path / "headless.py", "print()\n", 0o755),
        (tmp_path / "headed.py", "#!/usr/bin/env python3\n", 0o755),
        (tmp_path / "locked.py", "#!/usr/bin/env python3\n", 0o644),
        (tmp_path / "tool", "#!/nowhere/interpreter -x\n", 0o755),
        (tmp_path / "locked", "#!/bin/sh\n", 0o644),
    ]:
        path.write_text(text)
        path.chmod(mode)
    (tmp_path / "folder.py").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["python", "plain.py"], ["python", "plain.py"]),
        (["{}/plain.py", "-x"], ["{}/bin/python3", "{}/plain.py", "-x"]),
        (["{}/headless.py"], ["{}/bin/python3", "{}/headless.py"]),
        (["{}/locked.py"], ["{}/bin/python3", "{}/locked.py"]),
        (["{}/headed.py", "-x"], ["{}/headed.py", "-x"]),
        (["{}/absent.py"], ["{}/absent.py"]),
        (["{}/folder.py"], ["{}/folder.py"]),
        (["{}/tool"], ["{}/tool"]),
    ],
)
def test_command_lines(folder: Path, argv: list[str], expected: list[str]) -> None:
    env = {"PATH": f"/nowhere:{folder}/bin"}
    filled = [word.format(folder) for word in argv]
    assert command_line(filled, env) == [word.format(folder) for word in expected]


@pytest.mark.parametrize(
    ("word", "expected"), [("plain.py", ["{}/bin/python3", "plain.py"]), ("headed.py", ["./headed.py"])]
)
def test_a_script_in_the_current_directory_needs_no_slash(folder: Path, word: str, expected: list[str]) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert command_line([word], {"PATH": f"{folder}/bin"}) == [part.format(folder) for part in expected]
    finally:
        os.chdir(before)


def test_python_will_do_where_there_is_no_python3(folder: Path) -> None:
    (folder / "bin" / "python3").rename(folder / "bin" / "python")
    script = str(folder / "plain.py")
    assert command_line([script], {"PATH": f"{folder}/bin"}) == [f"{folder}/bin/python", script]


def test_a_script_without_any_python_is_a_clear_error(folder: Path) -> None:
    with pytest.raises(CommandNotFoundError, match="no python3 on the PATH") as caught:
        command_line([str(folder / "plain.py")], {"PATH": "/nowhere"})
    assert caught.value.exit_code == 127


def test_no_command_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no command to run"):
        command_line([], {})


@pytest.mark.parametrize(
    ("command", "number", "kind", "message"),
    [
        ("absent", errno.ENOENT, CommandNotFoundError, "no such command"),
        ("{}/absent", errno.ENOENT, CommandNotFoundError, "no such command"),
        ("{}/locked/below", errno.ENOTDIR, CommandNotFoundError, "no such command"),
        ("python agent.py", errno.ENOENT, CommandNotFoundError, "leave out the quotes"),
        ("{}/locked", errno.EACCES, CommandNotRunnableError, "not executable"),
        ("locked", errno.EACCES, CommandNotRunnableError, "not executable"),
        ("{}", errno.EACCES, CommandNotRunnableError, "a directory"),
        ("{}/tool", errno.ENOENT, CommandNotRunnableError, "does not exist: #!/nowhere/interpreter -x"),
        ("tool", errno.ENOENT, CommandNotRunnableError, "does not exist: #!/nowhere/interpreter -x"),
        ("{}/headless.py", errno.ENOEXEC, CommandNotRunnableError, "neither a program for this machine nor a script"),
        ("{}/tool", errno.E2BIG, CommandNotRunnableError, "cannot be started: argument list too long"),
    ],
)
def test_start_errors(folder: Path, command: str, number: int, kind: type[Exception], message: str) -> None:
    error = start_error(command.format(folder), {"PATH": str(folder)}, OSError(number, os.strerror(number)))
    assert type(error) is kind
    assert error.exit_code == (127 if kind is CommandNotFoundError else 126)
    assert message in str(error)
    assert error.where == command.format(folder)
