"""How a client's program is run, and which version of the client it has; MissingError where it is not installed."""

import json
import re
import shutil
import subprocess
from pathlib import Path

from matrix.clients import Client

ROOT = Path(__file__).parents[2]
AGENTS = Path(__file__).parent / "agents"
PYTHON = ROOT / ".venv-matrix" / "bin" / "python"
PYTHON_LOCK = ROOT / "requirements-matrix.lock"
NODE_LOCK = AGENTS / "node" / "package-lock.json"
WORK = ROOT / ".matrix"
"""What `make matrix` leaves for the runs, and what they tell: `node/` with the packages, `results/`."""


class MissingError(Exception):
    """A client that can't be run here; the text is the reason, as the table gives it."""


def command(client: Client, folder: Path) -> list[str]:
    """The program's command line; what has to be built is built in `folder`."""
    return [*_program(client, folder), *client.arguments]


def _program(client: Client, folder: Path) -> list[str]:
    match client.language:
        case "Python":
            return [_python(), str(AGENTS / client.program)]
        case "Node":
            return [_found("node"), str(_beside_packages(AGENTS / "node" / client.program))]
        case "Go":
            return [_built(AGENTS / client.program, folder / "agent")]
        case "Rust":
            return [_compiled(AGENTS / client.program, folder / "agent")]
        case "Java":
            _found("javac")
            return [_found("java"), str(AGENTS / client.program)]
        case "shell":
            return [_found("sh"), str(AGENTS / client.program)]


def version(client: Client) -> str:
    """The client's version, as its lock file or the program itself tells it."""
    match client.language:
        case "Python":
            return _only(rf"(?m)^{re.escape(client.package)}==([^ ;]+)", PYTHON_LOCK.read_text())
        case "Node":
            node = f"Node {_told('node', '--version').strip().removeprefix('v')}"
            if not client.package:
                return node
            package = json.loads(NODE_LOCK.read_text())["packages"][f"node_modules/{client.package}"]
            return f"{package['version']}, {node}"
        case "Go":
            return _only(r"go(\d\S+)", _told("go", "version"))
        case "Rust":
            return _only(r"rustc (\S+)", _told("rustc", "--version"))
        case "Java":
            return _only(r"(\d\S+)", _told("java", "--version"))
        case "shell":
            return _only(r"curl (\S+)", _told("curl", "--version"))


def _python() -> str:
    if not PYTHON.exists():
        raise MissingError("no .venv-matrix here: `make matrix` makes it")
    return str(PYTHON)


def _beside_packages(program: Path) -> Path:
    """Node looks for packages from the folder of the program upwards, so it is copied to where they are."""
    if not (ROOT / "shim" / "node").is_dir():
        raise MissingError("needs the shim for Node: fetch in Node 20 takes no proxy from its environment")
    if not (WORK / "node" / "node_modules").is_dir():
        raise MissingError("no packages of npm here: `make matrix` fetches them")
    return Path(shutil.copy(program, WORK / "node"))


def _built(folder: Path, program: Path) -> str:
    _found("go")
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=folder, check=True)
    return str(program)


def _compiled(source: Path, program: Path) -> str:
    subprocess.run([_found("rustc"), "--edition", "2021", "-O", "-o", program, source], check=True)
    return str(program)


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise MissingError(f"{program} is not installed here")
    return path


def _told(*argv: str) -> str:
    _found(argv[0])
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _only(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, f"no {pattern!r} in {text[:80]!r}"
    return found[1]
