import importlib
import stat
import threading
from pathlib import Path

import agentruns
import click
import difftapes
import pytest
from click.testing import CliRunner, Result
from collectors import Collector
from difftapes import get, say

from tapeproxy.cli.export import FORMATS, command
from tapeproxy.tapes.errors import NoTapeError, TapeExistsError, UsageError


@pytest.fixture(autouse=True)
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return difftapes.write(Path("x.tape.jsonl.gz"), say("m", "Where?"), get("m", "a", "x" * 30_000))


def run(*args: str) -> Result:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.mark.parametrize("output", [(), ("-o", "-")])
def test_to_standard_output(output: tuple[str, ...]) -> None:
    result = run("x.tape.jsonl.gz", "--to", "markdown", *output)
    assert result.stdout.startswith("# `python agent.py 'a b'`\n")
    assert result.stderr == "tapeproxy: 1 long text was cut\n"


def test_to_a_file() -> None:
    result = run("x.tape.jsonl.gz", "--to", "markdown", "-o", "t.md")
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1] == "tapeproxy: wrote t.md"
    assert "Where?" in Path("t.md").read_text()
    assert stat.S_IMODE(Path("t.md").stat().st_mode) == 0o600


def test_a_file_that_is_there_is_only_replaced_by_force() -> None:
    Path("t.md").write_text("mine")
    with pytest.raises(TapeExistsError):
        run("x.tape.jsonl.gz", "--to", "markdown", "-o", "t.md")
    assert Path("t.md").read_text() == "mine"
    run("x.tape.jsonl.gz", "--to", "markdown", "-o", "t.md", "--force")
    assert "Where?" in Path("t.md").read_text()


def test_what_cannot_be_done() -> None:
    with pytest.raises(UsageError, match="the file cannot be written"):
        run("x.tape.jsonl.gz", "--to", "markdown", "-o", "nowhere/t.md")
    with pytest.raises(NoTapeError):
        run("nothing.tape.jsonl.gz", "--to", "markdown")
    with pytest.raises(click.BadParameter):
        run("x.tape.jsonl.gz", "--to", "papyrus")


def test_a_tape_that_a_format_cannot_hold() -> None:
    difftapes.write(Path("none.tape.jsonl.gz"))
    with pytest.raises(UsageError, match="it cannot be exported: no exchange has an answer"):
        run("none.tape.jsonl.gz", "--to", "vcr", "-o", "x.yaml")
    assert not Path("x.yaml").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_a_tape_that_was_interrupted(form: str) -> None:
    records = difftapes.records([get("m", "a"), say("m", "Where?")], code=None)[:-1]
    Path("cut.tape.jsonl.gz").write_bytes(agentruns.tape_bytes(records, sealed=False))
    result = run("cut.tape.jsonl.gz", "--to", form, "-o", "x")
    assert Path("x").stat().st_size > 100
    left_out = "tapeproxy: left out: 1 exchange without a whole answer (2)"
    assert (left_out in result.stderr.splitlines()) == (form == "vcr")


def test_what_is_for_spans_only() -> None:
    for option in (("--endpoint", "http://h.test"), ("--content",)):
        with pytest.raises(UsageError, match="is for --to otlp"):
            run("x.tape.jsonl.gz", "--to", "har", *option)
    with pytest.raises(UsageError, match="exclude each other"):
        run("x.tape.jsonl.gz", "--to", "otlp", "--endpoint", "http://h.test", "-o", "x.json")


def test_spans_with_and_without_content() -> None:
    assert "Where?" not in run("x.tape.jsonl.gz", "--to", "otlp").stdout
    assert "Where?" in run("x.tape.jsonl.gz", "--to", "otlp", "--content").stdout


def test_spans_to_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with Collector() as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k")
            result = run("x.tape.jsonl.gz", "--to", "otlp", "--endpoint", server.url)
            server.answers = [(200, {}, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}')]
            with pytest.raises(UsageError, match="the collector refused 2 spans and took 1"):
                run("x.tape.jsonl.gz", "--to", "otlp", "--endpoint", server.url)
        finally:
            server.shutdown()
            serving.join()
    assert result.stderr.splitlines()[-1] == f"tapeproxy: sent 3 spans to {server.url}/v1/traces"
    path, headers, body = server.got[0]
    assert (path, headers["x-key"]) == ("/v1/traces", "k")
    assert len(body["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 3


def test_each_format_has_its_module_and_is_told() -> None:
    for name, form in FORMATS.items():
        assert callable(importlib.import_module(f"tapeproxy.{form.module}").export)
        assert f"{name:<9}  {form.what}" in (command.help or "")
