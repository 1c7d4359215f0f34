"""Which tape is meant, and what a new one is called; knows the folder `.tapes`, names, and of a tape only its head.

A tape's place in the order is when it was begun: its name says so in UTC, else its head does, and a file that has
neither counts by when it was last written.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath

from tapeproxy.tapes.errors import TapeproxyError, UsageError

FOLDER = Path(".tapes")
SUFFIX = ".tape.jsonl.gz"
LOCKED_SUFFIX = ".enc"
"""What the name of an encrypted tape has after that of the plain one."""

_ENDINGS = (".jsonl.gz", f".jsonl.gz{LOCKED_SUFFIX}")
_STAMP = "%Y%m%dT%H%M%SZ"
_STAMPED = re.compile(r"\d{8}T\d{6}Z(?=-)")
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
        names = (name, f"{name}{SUFFIX}", f"{name}{SUFFIX}{LOCKED_SUFFIX}")
        inside = next((p for p in (FOLDER / n for n in names) if p.is_file()), None)
        return inside or path
    return path


def signature_path(tape: Path) -> Path:
    """Where a tape's signature is: beside the plain tape, and so beside its encrypted copy, as NAME.sig."""
    return tape.with_name(f"{tape.name.removesuffix(LOCKED_SUFFIX)}.sig")


def list_tapes() -> list[Path]:
    """The files in `.tapes` that are called like tapes, the one that was begun last at the end."""
    try:
        found = [path for path in FOLDER.iterdir() if path.name.endswith(_ENDINGS) and path.is_file()]
    except OSError:
        return []
    return sorted(found, key=_age)


def default_path(argv: Sequence[str], now: datetime) -> Path:
    """A name for a new tape of the command `argv`, begun at `now`: `.tapes/20260102T030405Z-agent.tape.jsonl.gz`.

    `now` knows its time zone.
    """
    stem = f"{now.astimezone(UTC):{_STAMP}}-{slug(argv)}"
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


def begun(path: Path) -> datetime:
    """When a tape was begun, in UTC and whole seconds: by its name, its head, or else when it was last written."""
    if named := _STAMPED.match(path.name):
        with contextlib.suppress(ValueError):  # digits that are no date
            return datetime.strptime(named[0], _STAMP).replace(tzinfo=UTC)
    return _by_head(path) or datetime.fromtimestamp(_written(path), UTC).replace(microsecond=0)


def _by_head(path: Path) -> datetime | None:
    from tapeproxy.proxy.tapefile import read_entries
    from tapeproxy.proxy.unlocking import ask_nobody
    from tapeproxy.tapes.records import Head

    try:
        head = next(read_entries(path, ask=ask_nobody)).record
        stamp = datetime.fromisoformat(head.started_at) if isinstance(head, Head) else None
        # Year 1 or 9999 of another zone may be none of UTC's.
        return None if stamp is None else stamp.astimezone(UTC).replace(microsecond=0)
    except (TapeproxyError, ValueError, OverflowError):
        return None


def _age(path: Path) -> tuple[datetime, bool, float, str]:
    # Of a tape and its encrypted copy the plain one is to be the last: it asks for nothing.
    return begun(path), not path.name.endswith(LOCKED_SUFFIX), _written(path), path.name


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # deleted meanwhile
        return 0.0
