"""A tape as flows: mitmproxy reads them, and they come back as they were."""

import subprocess
import sys
from pathlib import Path

import pytest
from agentruns import exchange
from difftapes import read
from exporttapes import exported, facts, in_order, sample, taped, tapes
from hypothesis import given
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader, FlowWriter

from tapeproxy.addons.flowfile import FlowFile, target_of
from tapeproxy.proxy.exporting import export
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.imports.foreign import Foreign
from tapeproxy.tapes.imports.nodes import ForeignFormatError

URLS = [
    (b"https://h.test", ("https", "h.test", 443, b"")),
    (b"HTTPS://h.test?x", ("https", "h.test", 443, b"?x")),
    (b"http://h.test:8080/a://b?c#d", ("http", "h.test", 8080, b"/a://b?c#d")),
    (b"https://u:p@[::1]:1/\xff", ("https", "::1", 1, b"/\xff")),
]


def again(file: Path, data: bytes) -> Tape:
    """The tape that comes of a file."""
    file.write_bytes(data)
    found = list(FlowFile(file).exchanges())
    return taped(one for one in found if isinstance(one, Foreign))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flows") / "x.flows"


@pytest.mark.parametrize(("url", "target"), URLS)
def test_the_parts_of_a_url(url: bytes, target: tuple[str, str, int, bytes]) -> None:
    assert target_of(url) == target


@given(tapes())
def test_every_byte_comes_back(file: Path, tape: Tape) -> None:
    was = in_order(tape)
    now = again(file, exported(export, tape)).exchanges
    begin = was[0].request.t
    assert [facts(one) for one in now] == [facts(one, begin=begin) for one in was]


def test_mitmdump_reads_it(file: Path) -> None:
    data = exported(export, sample())
    assert data == exported(export, sample())
    file.write_bytes(data)
    program = Path(sys.executable).with_name("mitmdump")
    done = subprocess.run(
        [program, "-nr", file, "--flow-detail", "1"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "POST https://api.openai.com/v1/chat/completions" in done.stdout
    assert "GET http://weather.test:8080/missing" in done.stdout
    assert "connect-error: connection refused" in done.stdout


def test_what_mitmproxy_sees(file: Path) -> None:
    broken = exchange(1, "https://h.test/a?b", method="PUT", asked=b"\xff", chunks=[b"a", b"b"], how="upstream-cut")
    flow = one_flow(file, read(broken))
    assert (flow.request.method, flow.request.url, flow.request.raw_content) == ("PUT", "https://h.test/a?b", b"\xff")
    assert flow.response is not None
    assert (flow.response.status_code, flow.response.raw_content) == (200, b"ab")
    assert flow.error is not None
    assert flow.error.msg == flow.comment == "upstream-cut"


def test_an_edit_of_the_file_counts(file: Path) -> None:
    flow = one_flow(file, read(exchange(1, "https://h.test/a", chunks=[b'{"a":1}'])))
    assert flow.response is not None
    flow.response.raw_content = b'{"a":22}'
    flow.request.path = "/b"
    with file.open("wb") as out:
        FlowWriter(out).add(flow)
    (one,) = exchanges(file)
    assert (one.request.url, one.response_body) == (b"https://h.test/b", b'{"a":22}')


def test_a_field_that_is_none_of_ours(file: Path) -> None:
    flow = one_flow(file, sample())
    flow.metadata["_tapeproxy"] = "{"
    with file.open("wb") as out:
        FlowWriter(out).add(flow)
    (error,) = FlowFile(file).exchanges()
    assert isinstance(error, ForeignFormatError)
    assert error.place == "flow 1._tapeproxy"


def one_flow(file: Path, tape: Tape) -> HTTPFlow:
    """The first flow of a tape's file."""
    file.write_bytes(exported(export, tape))
    with file.open("rb") as data:
        flow = next(iter(FlowReader(data).stream()))
    assert isinstance(flow, HTTPFlow)
    return flow


def exchanges(file: Path) -> list[Exchange]:
    return list(again(file, file.read_bytes()).exchanges)
