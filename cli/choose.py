"""Which tape is meant, and what a new one is called; knows the folder `.tapes` and its names, not what is in a tape."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path, PurePath

from tapeproxy.tapes.errors import UsageError

FOLDER = Path(".tapes")
SUFFIX = ".tape.jsonl.gz"

_STAMP = re.compile(r"\d{8}-\d{6}(?=-)")
_UNFIT = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST_SLUG = 40
# Programs that run the program that is meant, and words that stand between the two.
_RUNNERS = re.compile(
    r"(python|pypy|node|ruby|perl|php)[\d.]*|nodejs|deno|bun|tsx|ts-node|npx|bunx|uvx|pipx|uv|poetry|pdm|hatch|rye|pipenv"
    r"|env|sudo|nice|time|timeout|nohup|stdbuf|xvfb-run|coverage|debugpy|ddtrace-run|bash|dash|fish|ksh|sh|zsh"
)
_BETWEEN = frozenset({"run", "exec", "--", "-"})
_SCRIPT = re.compile(r"\.(py|pyz|pyw|js|mjs|cjs|ts|mts|cts|tsx|jsx|sh|bash|rb|pl|php)$", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def choose_tape(name: str | None) -> Path:
    """The tape that `name` names: a path, or a name in `.tapes` as `ls` prints it; without a name, the last one there.

    Raises UsageError when there is none to take.
    """
    if name is None:
        tapes = list_tapes()
        if not tapes:
            fix = "record one with: tapeproxy record -- COMMAND, or name a tape"
            raise UsageError("there are no tapes here", where=f"{FOLDER}/", fix=fix)
        return tapes[-1]
    path = Path(name)
    if not path.exists() and path.parent == Path() and name not in ("", ".", ".."):
        inside = next((p for p in (FOLDER / name, FOLDER / f"{name}{SUFFIX}") if p.is_file()), None)
        return inside or path
    return path


def list_tapes() -> list[Path]:
    """The files in `.tapes` that are called like tapes, the newest last."""
    try:
        found = [path for path in FOLDER.iterdir() if path.name.endswith(".jsonl.gz") and path.is_file()]
    except OSError:
        return []
    return sorted(found, key=_age)


def default_path(argv: Sequence[str], now: datetime) -> Path:
    """A name for a new tape of the command `argv`, begun at `now`: `.tapes/20260102-030405-agent.tape.jsonl.gz`."""
    stem = f"{now:%Y%m%d-%H%M%S}-{slug(argv)}"
    names = (f"{stem}{number}{SUFFIX}" for number in _numbers())
    return next(path for name in names if not (path := FOLDER / name).exists())


def slug(argv: Sequence[str]) -> str:
    """What a command is about, in a word for a file's name: `python -u agent.py --fast` is `agent`."""
    words = list(_meant(argv))
    # Among a runner's words, its options' values come first as often as not; a script is what is meant.
    script = next((word for word in words if _SCRIPT.search(word)), None)
    word = script or (words[0] if words else (argv[0] if argv else ""))
    base = _SCRIPT.sub("", PurePath(word).name)
    return _UNFIT.sub("-", base).strip("-.")[:_LONGEST_SLUG].strip("-.") or "run"


def _meant(argv: Sequence[str]) -> Iterator[str]:
    """The words that may name the program: none of the runners before it, their options, or its own arguments."""
    words = iter(argv)
    for word in words:
        if word == "-m":
            yield next(words, "")
            return
        if word == "-c":
            return
        if word.startswith("-") or word in _BETWEEN or _ASSIGNMENT.match(word):
            continue
        if not _RUNNERS.fullmatch(PurePath(word).name):
            yield word
            if word is argv[0]:
                return


def _numbers() -> Iterator[str]:
    yield ""
    number = 2
    while True:
        yield f"-{number}"
        number += 1


def _age(path: Path) -> tuple[str, int, str]:
    """When a tape was begun: by its name, as `default_path` gives it, else when it was last written."""
    try:
        written = path.stat().st_mtime_ns
    except OSError:
        written = 0
    named = _STAMP.match(path.name)
    stamp = named[0] if named else f"{datetime.fromtimestamp(written / 1e9):%Y%m%d-%H%M%S}"
    return stamp, written, path.name
