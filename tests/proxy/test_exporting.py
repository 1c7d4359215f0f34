"""Recordings of the world go through each format and back; what needs mitmproxy says so."""

import importlib
import subprocess
import sys
from pathlib import Path

import difftapes
import pytest
from cassettes import FOLDER
from difftapes import get
from exporttapes import exported, facts, in_order

from tapeproxy.cli.export import FORMATS
from tapeproxy.proxy.importing import ImportSettings, import_file
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape

PROGRAM = """
import sys
sys.modules["mitmproxy"] = None
from tapeproxy.cli.main import main
sys.argv = ["tapeproxy", "export", "x.tape.jsonl.gz", "--to", "mitmproxy"]
main()
"""
NAMES = [path.name for path in sorted(FOLDER.glob("*.*"))] or ["any"]
BACK = ("har", "vcr", "mitmproxy")


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_goes_there_and_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (FOLDER / name).is_file():
        pytest.skip("the recordings are not on this machine (a folder shared/cases beside the checkout)")
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    was = imported(FOLDER / name, tmp_path)
    begin = min(one.request.t for one in was.exchanges)
    for form in BACK:
        file = tmp_path / f"{form}.export"
        file.write_bytes(exported(importlib.import_module(f"tapeproxy.{FORMATS[form].module}").export, was))
        now = imported(file, tmp_path)
        assert now.head.started_at == was.head.started_at
        assert [facts(one) for one in now.exchanges] == [facts(one, begin=begin) for one in in_order(was)]


def imported(file: Path, folder: Path) -> Tape:
    """The tape of a file of another tool."""
    settings = ImportSettings(source=file, output=folder / "x.tape.jsonl.gz", environment={}, force=True)
    return load(import_file(settings).path)[0]


def test_flows_without_mitmproxy(tmp_path: Path) -> None:
    difftapes.write(tmp_path / "x.tape.jsonl.gz", get("m", "a"))
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "writing mitmproxy's flows needs mitmproxy" in done.stderr
    assert "pip install '.[record]' (in a clone" in done.stderr
