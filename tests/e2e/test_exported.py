"""A tape, exported and imported again, answers its agent as the tape does."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

AGENT = Path(__file__).parent / "programs" / "sdk_steps.py"
BODY = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "Héllo"}]}
STEP = {
    "sdk": "httpx",
    "method": "POST",
    "base": "https://api.openai.com",
    "path": "/v1/chat/completions",
    "headers": {},
}
FORMS = ["har", *(pytest.param(form, marks=pytest.mark.soak) for form in ("vcr", "mitmproxy"))]


@pytest.mark.parametrize("form", FORMS)
def test_an_export_replays(form: str, cli: Cli, provider: FakeProvider) -> None:
    (cli.cwd / "steps.json").write_text(json.dumps([STEP | {"body": BODY}, STEP | {"body": BODY | {"stream": False}}]))
    argv = [sys.executable, str(AGENT), "steps.json"]
    first = cli.run("record", "-o", "t.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    assert first.returncode == 0, first.stderr
    made = cli.run("export", "t.tape.jsonl.gz", "--to", form, "-o", "t.export")
    assert made.returncode == 0, made.stderr
    back = cli.run("import", "t.export", "-o", "back.tape.jsonl.gz")
    assert back.returncode == 0, back.stderr
    assert "put right" not in back.stderr
    assert "boundaries" not in back.stderr
    again = cli.run("replay", "--require-all", "--pace", "recorded", "back.tape.jsonl.gz", "--", *argv)
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr
    was, now = (load(cli.cwd / name)[0] for name in ("t.tape.jsonl.gz", "back.tape.jsonl.gz"))
    cuts = [[chunk.data for chunk in one.chunks] for one in was.exchanges]
    assert [[chunk.data for chunk in one.chunks] for one in now.exchanges] == cuts
    assert len(cuts[0]) > 2
