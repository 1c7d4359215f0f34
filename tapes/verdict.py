"""What verifying a tape found: the decision and its words; knows endings and hashes, reads no file.

A tape is proved by its chain (every line), its seal (the end, and every byte of the file) and its trace hash (what a
replay must reproduce). Whatever any of them says against it, the verdict is one of a few, and only one is good.
"""

from dataclasses import dataclass, replace
from typing import Literal

from tapeproxy.tapes.decoder import Ending, Entry
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.outcomes import REPAIRED, gaps, outcome
from tapeproxy.tapes.records import End, Exit, Note, Request, Seal
from tapeproxy.tapes.signature import Signature
from tapeproxy.tapes.trace import TraceHasher

type Finding = Literal[
    "intact",
    "interrupted",
    "not-canonical",
    "trace-differs",
    "damaged",
    "not-pinned",
    "unsigned",
    "signed-by-another",
    "false-signature",
]

_RESTORE = "take the tape again from where it came"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`finding` is a stable word, `what` and `fix` are for people; `line` is where (0: the file as a whole).

    `records` and `exchanges` are those that the chain proves. The hashes are hex: `head_hash` of the first line,
    `last_hash` of the last one, which, pinned elsewhere, proves the tape even against one who chains it all anew.
    `outcome` (how the run ended, in words) and `trace` are the seal's; `file` is the hash of all the file's bytes.

    `pinned`: which of its hashes was. `signature` is true and of this tape, and `trusted` when its key was asked for
    (`tapes/vouching.py`). `gaps`: what the recorder knew to be missing, a sentence each.
    """

    finding: Finding
    what: str
    fix: str
    line: int
    records: int
    exchanges: int
    head_hash: str
    last_hash: str
    outcome: str | None
    trace: str | None
    file: str = ""
    pinned: Literal["last", "head"] | None = None
    signature: Signature | None = None
    trusted: bool = False
    gaps: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether every byte is as it was written."""
        return self.finding == "intact"


class Witness:
    """Sees a tape's records go by, in order, and can then say what it is: keeps counts and hashes, no body."""

    def __init__(self) -> None:
        self._records = 0
        self._exchanges = 0
        self._ended = 0
        self._head_hash = ""
        self._last_hash = ""
        self._exit: Exit | None = None
        self._seal: Seal | None = None
        self._trace = TraceHasher()
        self._untraceable = ""
        self._gaps: list[str] = []

    def see(self, entry: Entry) -> Entry:
        """Take the next record; returns it."""
        self._records += 1
        self._last_hash = entry.hash.hex()
        self._head_hash = self._head_hash or self._last_hash
        match entry.record:
            case Request():
                self._exchanges += 1
            case End():
                self._ended += 1
            case Exit():
                self._exit = entry.record
            case Seal():
                self._seal = entry.record
            case Note():
                self._gaps += gaps((entry.record,))
            case _:
                pass
        try:
            self._trace.feed(entry.index, entry.record)
        except ValueError as error:
            self._untraceable = str(error)
        return entry

    def judge(self, ending: Ending) -> Verdict:
        """Decide on a tape that could be read to its end."""
        if self._seal is None:
            what = self._interruption(ending)
            return self._verdict("interrupted", what, "what is on it replays; record again for a whole one")
        if self._untraceable:
            what = f"the trace hash cannot be checked: {self._untraceable}"
            return self._verdict("trace-differs", what, _RESTORE, self._records)
        trace = self._trace.hexdigest()
        if trace != self._seal.trace:
            what = f"the exchanges are not those that were sealed: their trace hash is {trace}"
            return self._verdict("trace-differs", what, _RESTORE, self._records)
        if (lane := self._other_lane(self._seal)) is not None:
            what = f"the exchanges of lane {lane!r} are not those that were sealed, or not in that order"
            return self._verdict("trace-differs", what, _RESTORE, self._records)
        if self._seal.messages is not None and self._trace.messages() != self._seal.messages:
            what = "what passed on WebSockets is not what was sealed"
            return self._verdict("trace-differs", what, _RESTORE, self._records)
        if self._seal.uploads is not None and self._trace.uploads() != self._seal.uploads:
            what = "what was streamed to servers is not what was sealed"
            return self._verdict("trace-differs", what, _RESTORE, self._records)
        if not ending.canonical:
            what = "the content is intact, but the file is not, byte for byte, what was written"
            why = "it was compressed anew, lost its last few bytes, or has a bit changed that gzip ignores"
            return self._verdict("not-canonical", what, why)
        what = "every byte is as it was written"
        if self._seal.outcome == REPAIRED:
            what = "every byte is as `repair` wrote it; the recording was interrupted, and what it lacks is not known"
        return replace(self._verdict("intact", what), file=ending.file)

    def judge_damage(self, error: TapeFormatError) -> Verdict:
        """Decide on a tape that could not be read to its end: what was seen before is intact."""
        return self._verdict("damaged", error.what, error.fix, error.place.line)

    def _verdict(self, finding: Finding, what: str, fix: str = "", line: int = 0) -> Verdict:
        return Verdict(
            finding=finding,
            what=what,
            fix=fix,
            line=line,
            records=self._records,
            exchanges=self._exchanges,
            head_hash=self._head_hash,
            last_hash=self._last_hash,
            outcome=None if self._seal is None else outcome(self._seal, self._exit),
            trace=None if self._seal is None else self._seal.trace,
            gaps=tuple(self._gaps),
        )

    def _other_lane(self, seal: Seal) -> str | None:
        """The first lane whose digest is not the one in the seal; None when all are, or the seal has none."""
        lanes = self._trace.lanes() if seal.lanes else {}
        return next((lane for lane in sorted(lanes | seal.lanes) if lanes.get(lane) != seal.lanes.get(lane)), None)

    def _interruption(self, ending: Ending) -> str:
        facts = ["what is there is intact"]
        if ending.lost:
            facts.append(f"{ending.lost} bytes of an unfinished line were dropped")
        if unended := self._exchanges - self._ended:
            facts.append(f"{unended} of {self._exchanges} exchanges did not end")
        why = "its recorder was killed, is still running, or the file was cut"
        return f"the tape has no seal: {why} ({'; '.join(facts)})"
