"""Tapes scanned for secrets, and written anew without them. Knows files and the environment, not what is a secret.

`tapes/leftovers.py` and `tapes/scrubbing.py` decide; a clean tape appears under its name whole, or not at all.
"""

import dataclasses
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import tapeproxy
from tapeproxy.proxy.drafts import drafted
from tapeproxy.proxy.origin import is_ours, origin_mark
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.seedbox import sealed
from tapeproxy.proxy.spool import SpoolFile
from tapeproxy.proxy.tapefile import is_being_written, is_locked, read_entries, started_at
from tapeproxy.proxy.watching import WATCHER, working
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import in_order
from tapeproxy.tapes.leftovers import Leftover, LeftoverScanner
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.records import Head, Json, Record, Seal
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import DEFAULT, VERSION, RedactionRules, is_redacted
from tapeproxy.tapes.rewriting import encoded, octets_of
from tapeproxy.tapes.scrubbing import PASSES, Scrubbed, scrub
from tapeproxy.tapes.secretvars import is_secret_value, secret_names, secret_values
from tapeproxy.tapes.suspicion import Sought
from tapeproxy.tapes.tokens import is_token

_LARGEST = 4 << 20
"""Bytes of a body that are looked through in a second or two."""


type SeedFate = Literal["keep", "seal", "drop"]
"""What becomes of the run's random seed: `seal` encrypts it for the user's own replays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubRules:
    """What to look for besides what is found by itself. `secret_env` are names of variables, `secret_files` have a
    secret on each line.
    """

    redaction: RedactionRules = DEFAULT
    secret_env: tuple[str, ...] = ()
    secret_files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """Which tape to scrub, and where to. `guesses`: replace also what only looks random."""

    tape: Path
    output: Path
    environment: Mapping[str, str]
    rules: ScrubRules = field(default_factory=ScrubRules)
    force: bool = False
    seed: SeedFate = "keep"
    guesses: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """What still looks like a secret on a tape. `whole`: all of it was looked at; `redacted`: it was recorded so.

    `seeded`: it holds the random seed of its run; `unseen`: what could not be looked into, and why.
    """

    path: Path
    leftovers: list[Leftover]
    seeded: bool
    redacted: bool
    unseen: list[str]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ScrubbedTape:
    """A clean tape that was written. `sealed`: its original had a seal, and so has it."""

    path: Path
    scrubbed: Scrubbed
    sealed: bool
    seeded: bool
    same: bool


class Watch:
    """The redaction in force, and what else is sought. `head`: of the tape, whose own rules hold, too.

    Raises UsageError for secrets that can't be looked for, and ValueError where the head's rules are none.
    """

    def __init__(
        self, environment: Mapping[str, str], rules: ScrubRules | None = None, head: Head | None = None
    ) -> None:
        rules = rules or ScrubRules()
        self.key = load_key()
        self.rules = rules.redaction if head is None else _merged(head, rules.redaction)
        named = {f"secret {n} of this shell": value for n, value in enumerate(secret_values(environment), 1)}
        for what, value in _named_secrets(environment, rules):
            named = {called: one for called, one in named.items() if one != value} | {what: value}
        self.redactor = Redactor(self.key, named.values(), self.rules)
        self.sought = Sought(
            values=tuple((what, value.encode(errors="surrogateescape")) for what, value in named.items()),
            headers=frozenset(name.lower() for name in self.rules.headers),
            fields=frozenset(name.decode() for name in self.rules.names),
            patterns=self.rules.compiled,
        )


def check_tape(path: Path, watch: Watch, *, seconds: float | None = None) -> Checked:
    """Look for secrets on a tape; with `seconds` for that long, and not in large bodies. Raises TapeFormatError."""
    scanner = LeftoverScanner(watch.redactor, watch.sought, largest=None if seconds is None else _LARGEST)
    until = None if seconds is None else time.monotonic() + seconds
    found: list[Leftover] = []
    redacted = whole = True
    for entry in read_entries(path):
        if isinstance(entry.record, Head):
            redacted = is_redacted(entry.record.rules)
        found += scanner.feed(entry.index, entry.record)
        if until is not None and time.monotonic() > until:
            whole = False
            break
    found += scanner.finish() if whole else []
    return Checked(path, found, scanner.seeded, redacted, scanner.unseen, whole and not scanner.skipped)


def scrub_tape(settings: ScrubSettings) -> ScrubbedTape:
    """Write `settings.tape` anew without secrets. Raises TapeFormatError, TapeWriteError and UsageError."""
    if is_being_written(settings.tape):
        raise UsageError("the tape is being recorded", where=str(settings.tape), fix="scrub it when that is over")
    if is_locked(settings.tape):
        fix = "decrypt it first, and encrypt the clean tape"
        raise UsageError("the tape is encrypted, and the clean one would not be", where=str(settings.tape), fix=fix)
    records = _Records(settings.tape)
    old = next(iter(records))
    watch = _watch(settings, old)
    with working(settings.tape, records.octets * PASSES, "scrubbing") as tell:
        scrubbed = scrub(records, watch.redactor, watch.sought, guesses=settings.guesses, store=SpoolFile(), tell=tell)
    head = _head(records, scrubbed, settings, watch)
    same = not scrubbed.changed and head == old
    settings.output.parent.mkdir(parents=True, exist_ok=True)
    clean = chain((head,), islice(scrubbed.records, 1, None))
    with (
        drafted(settings.output, force=settings.force) as file,
        working(settings.output, records.octets, "writing") as tell,
    ):
        file.writelines(encoded(clean, records.seal, tell))
    return ScrubbedTape(settings.output, scrubbed, records.seal is not None, head.seed is not None, same)


class _Records:
    """The records of a tape without its seal, read from its file each time they are gone through."""

    def __init__(self, path: Path) -> None:
        """Read the tape once. Raises TapeFormatError."""
        self._path = path
        self.first = self.last = ""
        """Hashes of the first and the last line, the seal's included."""
        self.seal: Seal | None = None
        self.octets = 0
        """What there is to do, as `octets_of` counts it."""
        endings: list[Ending] = []
        for entry in in_order(read_entries(path, endings), str(path)):
            self.first = self.first or entry.hash.hex()
            if isinstance(entry.record, Seal):
                self.seal = entry.record
            else:
                self.octets += octets_of(entry.record)
        self._file, self.last = endings[0].file, endings[0].hash

    def __iter__(self) -> Iterator[Record]:
        """Raises TapeFormatError where the file is not what it was."""
        endings: list[Ending] = []
        entries = read_entries(self._path, endings)
        watcher = WATCHER.set(None)  # whoever goes through them tells how far that is
        try:
            first = next(entries)
        finally:
            WATCHER.reset(watcher)
        yield first.record
        yield from (entry.record for entry in entries if not isinstance(entry.record, Seal))
        if endings[0].file != self._file:
            raise TapeFormatError("somebody changed the tape while it was read", place=Place(str(self._path)))


def _watch(settings: ScrubSettings, head: Record) -> Watch:
    assert isinstance(head, Head)
    try:
        return Watch(settings.environment, settings.rules, head)
    except ValueError as error:
        raise TapeFormatError(str(error), place=Place(str(settings.tape), 1)) from None


def _head(records: _Records, scrubbed: Scrubbed, settings: ScrubSettings, watch: Watch) -> Head:
    """The clean tape's head: it says what the tape was, and by which rules it was cleaned."""
    old, new = next(iter(records)), next(iter(scrubbed.records))
    assert isinstance(old, Head)
    assert isinstance(new, Head)
    if settings.seed == "seal":
        new = sealed(new, watch.key)
    elif settings.seed == "drop":
        new = dataclasses.replace(new, seed=None, sealed_seed=None)
    rules = new.rules | watch.rules.to_json()
    named = tuple(sorted({*new.secrets, *settings.rules.secret_env}))
    new = dataclasses.replace(new, rules=rules, secrets=named, must=("like",), window=WINDOW)
    if not scrubbed.changed and new == dataclasses.replace(old, must=new.must, window=WINDOW):
        return new
    if is_ours(old, watch.key, socket.gethostname()):
        new = dataclasses.replace(new, host=origin_mark(watch.key, socket.gethostname(), new.argv, new.started_at))
    was: Json = old.scrubbed or {}
    origin = {
        "by": f"tapeproxy {tapeproxy.__version__}",
        "at": started_at(),
        "head": records.first,
        "last": records.last,
        "first": was.get("first") or records.first,
        "records": len(scrubbed.changed | ({0} if settings.seed != "keep" else set())),
    }
    return dataclasses.replace(new, scrubbed=origin)


def _merged(head: Head, added: RedactionRules) -> RedactionRules:
    """The rules in the tape's head and those that were added, in this version."""
    old = RedactionRules.from_json(head.rules)
    kinds = ((old.headers, added.headers), (old.fields, added.fields), (old.patterns, added.patterns))
    return RedactionRules(VERSION, *(tuple(dict.fromkeys((*had, *new))) for had, new in kinds))


def _named_secrets(environment: Mapping[str, str], rules: ScrubRules) -> Iterable[tuple[str, str]]:
    """What is looked for, by what it is called: the values of variables, and the lines of files."""
    for name in secret_names(environment):
        if is_secret_value(environment[name].strip()):
            yield f"the value of ${name}", environment[name].strip()
    for name in rules.secret_env:
        if not environment.get(name, "").strip():
            raise UsageError(f"the variable {name} is not set, so its value can't be looked for", fix="set it")
        yield f"the value of ${name}", _telling(environment[name].strip(), f"the value of {name}")
    for path in rules.secret_files:
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                what = f"line {number} of {path}"
                yield what, _telling(line.strip(), what)


def _telling(value: str, what: str) -> str:
    if not is_secret_value(value) and not is_token(value.encode(errors="surrogateescape")):
        raise UsageError(
            f"{what} is too short or too plain to be looked for: it would be found in ordinary text",
            fix="name the field that it stands in: --redact-field NAME",
        )
    return value


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="surrogateescape").splitlines()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the file of secrets cannot be read: {reason}", where=str(path)) from None
