from pathlib import Path

import agentruns
import pytest

from tapeproxy.proxy.growing import GrowingTape
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.exchanges import assemble

WHOLE = agentruns.tape_bytes(agentruns.sample("m"))


@pytest.mark.parametrize("step", [1, 7, 300, len(WHOLE)])
def test_what_has_grown_is_what_is_read_at_once(tmp_path: Path, step: int) -> None:
    path = tmp_path / "t"
    path.touch()
    growing, changed = GrowingTape(path), set[int]()
    for at in range(0, len(WHOLE), step):
        with path.open("ab") as file:
            file.write(WHOLE[at : at + step])
        changed |= growing.advance()
    assert growing.tape == assemble(TapeDecoder("t").feed(WHOLE))
    assert growing.ending is not None
    assert growing.ending.sealed
    assert changed == {1, 2, 3, 4}
    assert growing.advance() == set()


def test_only_what_is_new_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t"
    writer, growing = TapeWriter(path, agentruns.HEAD), GrowingTape(path)
    told = []
    for record in agentruns.sample("m"):
        writer.add(record)
        writer.commit()
        told.append(growing.advance())
    writer.seal(trace="", outcome="exited")
    assert growing.ending is None, "it has not looked"
    growing.advance()
    assert growing.ending is not None
    requests = [at for at, record in enumerate(agentruns.sample("m")) if record.kind == "request"]
    assert [told[at] for at in requests] == [{1}, {2}, {3}, {4}]
    assert all(len(one) == 1 for one in told[: requests[-1]])


def test_a_tape_without_a_head_is_none_yet(tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    growing = GrowingTape(tmp_path / "t")
    assert growing.advance() == set()
    with pytest.raises(TapeFormatError, match="no head yet"):
        _ = growing.tape


@pytest.mark.parametrize("what", ["shortened", "replaced", "damaged"])
def test_a_file_that_is_no_longer_the_same_is_an_error(tmp_path: Path, what: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(WHOLE[:-40])
    growing = GrowingTape(path)
    growing.advance()
    if what == "shortened":
        path.write_bytes(WHOLE[:-100])
    elif what == "replaced":
        (tmp_path / "u").write_bytes(WHOLE)
        (tmp_path / "u").replace(path)
    else:
        path.write_bytes(WHOLE[:-40] + b"\xff" * 40)
    with pytest.raises(TapeFormatError):
        growing.advance()
