"""What is executed for a command as typed, and why it couldn't be. Knows PATH and files, starts nothing."""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from tapeproxy.tapes.errors import TapeproxyError, UsageError


class CommandNotFoundError(TapeproxyError):
    """There is no such command."""

    exit_code = 127


class CommandNotRunnableError(TapeproxyError):
    """The command is there, but the system won't execute it."""

    exit_code = 126


def command_line(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The arguments to execute: `argv`, but with the user's own `python3` in front of a script that needs it.

    A `.py` file counts as a script wherever Python would find it, in the current directory too. Ours may be the Python
    of a tool's private environment, so it is never the one. Raises UsageError, CommandNotFoundError.
    """
    if not argv:
        raise UsageError("there is no command to run", fix="put it after --: tapeproxy record -- python agent.py")
    script = Path(argv[0])
    if script.suffix != ".py" or not stat.S_ISREG(_mode(script)):
        return list(argv)
    if os.name == "posix" and os.access(script, os.X_OK) and _first_line(script).startswith("#!"):
        # Without a slash the system would look on the PATH alone.
        return [argv[0] if os.sep in argv[0] else f"{os.curdir}{os.sep}{argv[0]}", *argv[1:]]
    python = _which("python3", env) or _which("python", env)
    if python is None:
        what = "this Python script needs a Python to run it, and there is no python3 on the PATH"
        raise CommandNotFoundError(what, where=argv[0], fix="name one: tapeproxy record -- /path/to/python script.py")
    return [python, *argv]


def check_command(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Raise what starting this command would raise if there is no such command; a file's content is not looked at."""
    (command, *_) = command_line(argv, env)
    found = command if os.sep in command else _which(command, env)
    if found is None or not _mode(Path(found)):
        raise start_error(command, env, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))


def start_error(command: str, env: Mapping[str, str], error: OSError) -> TapeproxyError:
    """Why the system refused to start `command`, as an error for the user."""
    found = command if os.sep in command else _which(command, env, os.F_OK)
    path = Path(found or command)
    if found is None or (error.errno in (errno.ENOENT, errno.ENOTDIR) and not _mode(path)):
        fix = "leave out the quotes around it" if " " in command.strip() else "check its spelling, and the PATH"
        return CommandNotFoundError("there is no such command", where=command, fix=fix)
    what, fix = _refusal(path, error)
    return CommandNotRunnableError(what, where=command, fix=fix)


def _refusal(path: Path, error: OSError) -> tuple[str, str]:
    if stat.S_ISDIR(_mode(path)):
        return "this is a directory, not a command", ""
    if error.errno == errno.ENOENT:
        what = f"its first line names an interpreter that does not exist: {_first_line(path)}"
        return what, "put the right one there, or run the script with its interpreter in front"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "this file is not executable", f"chmod +x {path}, or put its interpreter in front"
    if error.errno == errno.ENOEXEC:
        what = "this is neither a program for this machine nor a script with a #! line"
        return what, "put its interpreter in front, as in: sh SCRIPT"
    return f"it cannot be started: {(error.strerror or str(error)).lower()}", ""


def _which(name: str, env: Mapping[str, str], mode: int = os.F_OK | os.X_OK) -> str | None:
    import shutil  # 5 ms, and needed for a bare script or an error only

    return shutil.which(name, mode, env.get("PATH", os.defpath))


def _mode(path: Path) -> int:
    """Type and permissions, as `stat` has them; 0 where there is nothing, or nothing that we may see."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline(256).decode(errors="replace").strip()
    except OSError:
        return ""
