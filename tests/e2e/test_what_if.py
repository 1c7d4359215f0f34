"""`tapeproxy.what_if` as a user's program calls it: of a command line and of functions, sync and async."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

PROGRAM = str(Path(__file__).with_name("programs") / "asks_twice.py")
AGENT = """
from tapeproxy.hints import final_state

def ask(text):
    import httpx
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    answer = httpx.post("https://api.openai.com/v1/chat/completions", json=body, timeout=30).json()
    return answer["choices"][0]["message"]["content"]

def agent():
    first = ask("Count to five, please.")
    print("first:", first)
    final_state({"first": first})
    return {"first": first, "second": ask("You said: " + first), "odd": {1, 1}}

if __name__ == "__main__":
    agent()
"""
USER = """
import asyncio, json, sys
import tapeproxy
import agent

def twin():
    return agent.agent()["first"]

def told(found):
    runs = {
        name: {"result": run.result, "output": run.output, "code": run.exit_code, "path": run.path and str(run.path),
               "violations": len(run.violations), "exchanges": len(run.exchanges), "final": run.final}
        for name, run in (("before", found.before), ("after", found.after))
    }
    diverged = [[event.kind, event.ours, event.theirs] for event in found.diverged]
    return {**runs, "diverged": diverged, "edits": found.edits,
            "counts": [found.forked.reused, found.forked.mutated, found.forked.live]}

if __name__ == "__main__":
    hosts = {"api.openai.com": sys.argv[2]}
    edit = ["1:$.choices[0].message.content=New"]
    which = sys.argv[1]
    if which == "function":
        found = tapeproxy.what_if("t.gz", edit, agent.agent, hosts=hosts)
    elif which == "async":
        found = asyncio.run(tapeproxy.what_if_async("t.gz", "text New", twin, at=1, hosts=hosts, out="c.gz"))
    else:
        found = tapeproxy.what_if("t.gz", edit, hosts=hosts)
    print(json.dumps(told(found)))
"""


@pytest.fixture(scope="module")
def there(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    cli = Cli(tmp_path_factory.mktemp("whatif"), home)
    (cli.cwd / "agent.py").write_text(AGENT)
    (cli.cwd / "user.py").write_text(USER)
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        words = ["-o", "t.gz", *maps(provider.url), "--", sys.executable, "agent.py"]
        done = cli.run("record", *words, keys=True)
        assert done.returncode == 0, done.stderr
    return cli


def used(cli: Cli, provider: FakeProvider, which: str, *, keys: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "user.py", which, provider.url],
        cwd=cli.cwd,
        env=cli.environment(keys=keys),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def found(cli: Cli, provider: FakeProvider, which: str) -> Any:
    done = used(cli, provider, which)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("which", ["function", "async", "taped"])
def test_a_run_as_it_was_and_as_it_would_have_been(there: Cli, provider: FakeProvider, which: str) -> None:
    told = found(there, provider, which)
    before, after = told["before"], told["after"]
    assert (before["code"], after["code"]) == (0, 0), told
    assert (before["violations"], before["exchanges"], after["exchanges"]) == (0, 2, 2)
    assert after["output"] == "first: New\n"
    assert before["output"].startswith("first: ") and before["output"] != after["output"]
    assert after["final"] == [{"first": "New"}]
    assert before["final"][0]["first"] == before["output"].removeprefix("first: ").removesuffix("\n")
    assert told["counts"] == [0, 1, 1]
    assert len(provider.requests) == 1
    assert told["diverged"] == [["changed", 1, 1], ["changed", 2, 2]]
    if which == "function":
        assert after["result"]["first"] == "New"
        assert after["result"]["odd"] == "{1}"
        assert before["result"]["second"] != after["result"]["second"]
    elif which == "async":
        assert after["result"] == "New"
    else:
        assert after["result"] is None
    assert (after["path"] == "c.gz") is (which == "async")
    if which == "async":
        child = load(there.cwd / "c.gz")[0]
        assert child.head.edit == {"edits": [{"what": "text", "at": 1, "value": "New"}]}


def test_without_a_key_it_names_its_own_option(there: Cli, provider: FakeProvider) -> None:
    said = used(there, provider, "taped", keys=False).stderr
    assert "say that no live call needs it: keyless=['ANTHROPIC_API_KEY', 'OPENAI_API_KEY']" in said
    assert "--keyless" not in said


def test_a_fork_says_what_it_adds(there: Cli) -> None:
    done = there.run("fork", "t.gz", "--set", "1:$.chioces=[]", "--dry-run", keys=True)
    assert "edit 1: $.chioces was not there, and is added; did you mean $.choices?\n" in done.stdout
