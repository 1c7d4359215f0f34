import subprocess
import sys
from pathlib import Path

import difftapes
from difftapes import get

PROGRAM = """
import sys
sys.modules["mitmproxy"] = None
from tapeproxy.cli.main import main
sys.argv = ["tapeproxy", "export", "x.tape.jsonl.gz", "--to", "mitmproxy"]
main()
"""


def test_flows_without_mitmproxy(tmp_path: Path) -> None:
    difftapes.write(tmp_path / "x.tape.jsonl.gz", get("m", "a"))
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "writing mitmproxy's flows needs mitmproxy" in done.stderr
    assert "pip install 'tapeproxy[record]'" in done.stderr
