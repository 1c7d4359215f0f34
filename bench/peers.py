"""Installs the peers, at pinned versions, into bench/peers/ (or $BENCH_PEERS): `python -m bench.peers`.

What can't be installed is said, and is missing then: its cells of the table tell. nginx is the system's.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.processes import MissingError
from bench.servers import nginx_program

FOLDER = Path(os.environ.get("BENCH_PEERS") or Path(__file__).resolve().parent / "peers").absolute()
PYTHON = {"httpx": "0.28.1", "vcrpy": "9.4.2", "cassetter": "0.16.1", "reeltime": "1.0.0", "timefork": "0.3.3"}
NODE = {"mockttp": "4.3.0", "wiremock": "3.13.2"}
_VENV = FOLDER / "venv"
_PATIENCE = 180.0


def install(say: Callable[[str], None]) -> None:
    """Install what is not there. Fails with nothing but words."""
    FOLDER.mkdir(exist_ok=True)
    if not _VENV.exists():
        _try(say, "a virtual environment", [sys.executable, "-m", "venv", str(_VENV)])
    pip = [str(_VENV / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for name, version in PYTHON.items():
        if _python_version(name) != version:
            _try(say, name, [*pip, f"{name}=={version}"])
    _nginx(say)
    npm = shutil.which("npm")
    for name, version in NODE.items():
        if not _node_folder(name).exists():
            if npm is None:
                say(f"{name} can't be installed: there is no npm")
                continue
            flags = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--loglevel", "error"]
            _try(
                say, name, [npm, "install", "--prefix", str(_node_folder(name).parents[1]), *flags, f"{name}@{version}"]
            )


def _nginx(say: Callable[[str], None]) -> None:
    """nginx comes with the system, and no package manager puts it into a folder of ours: root may have it installed."""
    if nginx_program() is not None:
        return
    apt = shutil.which("apt-get")
    if apt is not None and sys.platform == "linux" and os.geteuid() == 0:
        _try(say, "nginx", [apt, "install", "-y", "-q", "--no-install-recommends", "nginx-light"])
        return
    how = "apt-get install nginx-light" if apt is not None else "your system's package manager"
    say(f"nginx is not here, and only root can install it: {how}")


def program(name: str, package: str) -> list[str]:
    """The command of a Python peer. Raises MissingError."""
    if _python_version(package) is None:
        raise MissingError(f"{package} is not installed: python -m bench.peers")
    return [str(_VENV / "bin" / name)]


def interpreter() -> str | None:
    """The Python that the peers run in, if it has httpx."""
    return str(_VENV / "bin" / "python") if _python_version("httpx") else None


def node_package(name: str) -> Path:
    """The folder of an npm peer. Raises MissingError."""
    folder = _node_folder(name)
    if not folder.exists():
        raise MissingError(f"{name} is not installed: python -m bench.peers")
    return folder


def versions() -> dict[str, str]:
    """The peers that are installed."""
    there = {name: version for name in PYTHON if (version := _python_version(name))}
    return there | {name: version for name, version in NODE.items() if _node_folder(name).exists()}


def _node_folder(name: str) -> Path:
    # One prefix each: npm removes what it did not install in the same call.
    return FOLDER / f"npm-{name}" / "node_modules" / name


def _python_version(name: str) -> str | None:
    found = next(iter(_VENV.glob(f"lib/python3.*/site-packages/{name}-*.dist-info")), None)
    return found and found.name.removeprefix(f"{name}-").removesuffix(".dist-info")


def _try(say: Callable[[str], None], what: str, command: list[str]) -> None:
    say(f"installing {what} ...")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{what} can't be installed: {error}")
        return
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        say(f"{what} can't be installed: {lines[-1] if lines else done.returncode}")


if __name__ == "__main__":
    install(lambda line: print(line, file=sys.stderr, flush=True))
