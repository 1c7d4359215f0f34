"""Records what a client does behind the recorder, then replays it from the tape server. No child processes."""

import gzip
from collections.abc import Callable
from pathlib import Path

from authority import Authority
from origin import Handler, Origin
from origin2 import Origin2
from recording import Recording
from served import serve
from wireclients import Way

from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.reading import VERSION
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.violations import Violation

HOST = "api.example.com"
URL = f"https://{HOST}"
"""Where clients think they go."""
HEAD = Head(started_at="2026-01-01T00:00:00Z", rules={"matching": VERSION})


class BothWires:
    """`record` or `record_at`, then `replay` as often as one likes. `tape` is what was recorded, `text` its lines."""

    def __init__(self, folder: Path, authority: Authority, ca: Path) -> None:
        self.tape: Tape
        self.text = b""
        self.violations: list[Violation] = []
        self._folder, self._authority, self._ca = folder, authority, ca

    def origin(self, answer: Handler) -> Origin:
        """A server over TLS that our recorder trusts."""
        return Origin(answer, tls=self._authority.serving("127.0.0.1"))

    def record[T](self, answer: Handler, play: Callable[[Way], T]) -> T:
        """What `play` hears live, from an origin that answers with `answer` and is gone afterwards."""
        with self.origin(answer) as origin:
            return self.record_at(origin, play)

    def record_at[T](self, origin: Origin | Origin2, play: Callable[[Way], T]) -> T:
        """What `play` hears live from `origin`."""
        trust = self._authority.cert
        recording = Recording(self._folder, self._authority, head=HEAD, upstream_ca=trust, hosts={HOST: origin.url})
        with recording:
            heard = play(Way(recording.url, str(self._authority.cert)))
        assert recording.wire.failures.count == 0
        self.tape, self.text = recording.tape(), gzip.decompress(recording.path.read_bytes())
        return heard

    def replay[T](self, play: Callable[[Way], T], *, speed: float | None = None) -> T:
        """What `play` hears from the tape; every answer has to be asked for, and nothing else."""
        heard, _, unused = self.replay_anyhow(play, speed=speed)
        assert not self.violations, self.violations[0].to_text()
        assert unused == 0
        return heard

    def replay_anyhow[T](self, play: Callable[[Way], T], *, speed: float | None = None) -> tuple[T, list[str], int]:
        """What `play` hears, the kinds of the violations, and how many answers were left."""
        with serve(self.tape, self._ca, speed=speed) as run:
            heard = play(Way(run.proxy, str(run.ca.certificate)))
            assert run.replayer.drifts == []
            self.violations = run.replayer.violations
            return heard, [found.kind for found in self.violations], len(run.replayer.index.unused())

    def same[T](self, answer: Handler, play: Callable[[Way], T]) -> T:
        """What is heard live, which a replay repeats to the letter."""
        heard = self.record(answer, play)
        assert self.replay(play) == heard
        return heard

    def exchange(self) -> Exchange:
        """The only exchange on the tape."""
        (exchange,) = self.tape.exchanges
        return exchange
