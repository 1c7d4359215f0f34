"""Every scrubbed tape is whole: its chain, its seal and its trace hold, whatever was on it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tapesamples import RECORDS

from tapeproxy.cli.verify import examine
from tapeproxy.proxy.scrubs import ScrubRules, ScrubSettings, Watch, check_tape, scrub_tape
from tapeproxy.proxy.tapefile import read_entries
from tapeproxy.proxy.unlocking import ask_nobody
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.records import Chunks, End, Head, Lane, LaneEnd, Note, Record, Request, Response, Unknown
from tapeproxy.tapes.trace import TraceHasher

SECRETS = ("sk-proj-AbCdEf0123456789xyzXYZ", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "no secret at all", "")
GOLDEN = Path(__file__).parents[1] / "golden" / "v1.tape.jsonl.gz"
TEXTS = st.tuples(st.text('ab "\\\n%é', max_size=8), st.sampled_from(SECRETS), st.text('ab "\\\n%é', max_size=8)).map(
    "".join
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


@st.composite
def tapes(draw: st.DrawFn) -> list[Record]:
    head = Head(argv=tuple(draw(st.lists(TEXTS, max_size=3))), seed=draw(st.sampled_from([None, "ab" * 32])))
    records: list[Record] = [head]
    for _ in range(draw(st.integers(0, 4))):
        index = len(records)
        body = draw(TEXTS).encode()
        lane = draw(st.sampled_from([None, "m", "m/t1"]))
        records.append(Request(t=index, method=b"POST", url=b"https://x.example/y", body=body, lane=lane))
        if draw(st.booleans()):
            headers = ((b"Content-Length", b"5"), (b"X-A", draw(TEXTS).encode("latin-1").replace(b"\n", b"")))
            records.append(Response(t=index, of=index, status=200, headers=headers))
            parts = [(n, part.encode()) for n, part in enumerate(draw(st.lists(TEXTS, max_size=3)))]
            records.append(Chunks(t=index, of=index, parts=tuple(parts)))
        records.append(End(t=index, of=index, how="reset", error=draw(TEXTS)))
    records.append(Note(t=9, what="x", text=draw(TEXTS), data={draw(TEXTS): [draw(TEXTS)]}))
    records += [Lane(t=9, id="m"), LaneEnd(t=9, lane="m", reads=0), Unknown(kind="later", extra={"a": draw(TEXTS)})]
    return records


def written(path: Path, records: list[Record], *, sealed: bool) -> Path:
    encoder, trace = TapeEncoder(records[0] if isinstance(records[0], Head) else Head()), TraceHasher()
    trace.feed(0, records[0])
    for record in records[1:]:
        trace.feed(encoder.add(record), record)
    path.write_bytes(
        encoder.seal(t=9, trace=trace.hexdigest(), outcome="exited", lanes=trace.lanes()) if sealed else encoder.flush()
    )
    return path


@settings(deadline=None, max_examples=40)
@given(tapes(), st.booleans(), st.sampled_from(["keep", "seal", "drop"]))
def test_what_is_scrubbed_verifies_and_has_nothing_left(records: list[Record], sealed: bool, seed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        old, new, again = (Path(folder) / f"{name}.jsonl.gz" for name in ("old", "new", "again"))
        written(old, records, sealed=sealed)
        scrub_tape(ScrubSettings(tape=old, output=new, environment={}, seed=seed))  # type: ignore[arg-type]  # drawn
        assert examine(new, ask_nobody).finding == ("intact" if sealed else "interrupted")
        assert check_tape(new, Watch({}, ScrubRules())).leftovers == []
        assert [entry.record.kind for entry in read_entries(new)] == [entry.record.kind for entry in read_entries(old)]
        scrub_tape(ScrubSettings(tape=new, output=again, environment={}))
        assert again.read_bytes() == new.read_bytes()


def test_references_are_written_anew(tmp_path: Path) -> None:
    head = Head(must=("like", "ref"))
    old = written(tmp_path / "old.jsonl.gz", [head], sealed=False)
    encoder = TapeEncoder(head)
    for record in RECORDS:
        encoder.add(record)
    old.write_bytes(encoder.flush())
    done = scrub_tape(ScrubSettings(tape=old, output=tmp_path / "new.jsonl.gz", environment={}))
    given = [entry.record for entry in read_entries(old)]
    clean = [entry.record for entry in read_entries(done.path)]
    assert clean[1:] == given[1:]
    assert isinstance(clean[0], Head)
    assert (clean[0].must, clean[0].window) == (("like",), WINDOW)


def test_the_golden_tape_verifies(tmp_path: Path) -> None:
    new = tmp_path / "new.jsonl.gz"
    scrub_tape(ScrubSettings(tape=GOLDEN, output=new, environment={}))
    assert examine(new, ask_nobody).good
