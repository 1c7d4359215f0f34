"""`tapeproxy doctor -- CMD`: a program that is never the same is told where; one that is gets a clean bill."""

import json
import sys

from clirun import Cli, maps

from tapeproxy.testing import FakeProvider

ASK = "import urllib.request as u\nprint(u.urlopen('http://search.example.com/search?q=' + u.quote(prompt)).read())\n"
RACING = """import os, threading
order = []
def work(n):
    order.append(n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for one in threads: one.start()
for one in threads: one.join()
import beside
prompt = f"{beside.name} {sorted(order)}"
"""
BESIDE = 'import os\nname = f"agent-{os.getpid()}"\n'
CLEAN = "import time, uuid\nprompt = f'{time.time()} {uuid.uuid4()}'\n"


def agent(cli: Cli, text: str) -> list[str]:
    (cli.cwd / "agent.py").write_text(text + ASK)
    return [sys.executable, "agent.py"]


def test_what_is_never_the_same_is_named_with_its_line(cli: Cli, provider: FakeProvider) -> None:
    (cli.cwd / "beside.py").write_text(BESIDE)
    argv = agent(cli, RACING)
    done = cli.run("doctor", "--json", "--fail-on-findings", *maps(provider.url), "--", *argv)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert (document["replays"], document["identical"]) == (3, 0)
    assert [(f["code"], f["file"], f["line"]) for f in document["findings"]] == [
        ("TP502", "agent.py", 4),
        ("TP101", "beside.py", 2),
    ]
    symptom = document["symptoms"][0]
    assert (symptom["kind"], symptom["replays"]) == ("miss", [1, 2, 3])
    (evidence,) = symptom["evidence"]
    assert evidence["where"] == "query q"
    assert len(set(evidence["values"].values())) == 4
    assert set(evidence["values"]) == {"tape", "replay 1", "replay 2", "replay 3"}
    assert any("os.getpid()" in origin and "beside.py:2" in origin for origin in symptom["origins"])
    assert "agent-" in done.stderr, "what the agent printed when it was recorded"


def test_a_clean_program_gets_a_clean_bill(cli: Cli, provider: FakeProvider) -> None:
    argv = agent(cli, CLEAN)
    done = cli.run("doctor", "--fail-on-findings", *maps(provider.url), "--", *argv)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "nothing found: 3/3 replays identical, 1 file read")
    (tape,) = (cli.cwd / ".tapes").iterdir()
    provider.stop()
    again = cli.run("doctor", "--times", "2", "--fail-on-findings", "--tape", str(tape))
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "nothing found: 2/2 replays identical, 1 file read")


def test_output_that_no_request_shows_is_compared_too(cli: Cli, provider: FakeProvider) -> None:
    argv = agent(cli, CLEAN + "print(id(prompt))\n")
    done = cli.run("doctor", "--times", "2", *maps(provider.url), "--", *argv)
    assert done.returncode == 0
    assert done.stdout.startswith("error stdout: stdout differs at line 1\n  at: stdout, line 1\n")
    assert "agent.py:3:7  id()" in done.stdout


def test_options_for_a_run_are_refused_for_a_scan(cli: Cli) -> None:
    (cli.cwd / "agent.py").write_text("")
    for words in (["--times", "3"], ["--map", "a=http://b"], ["--timeout", "3"]):
        done = cli.run("doctor", "--scan", "agent.py", *words)
        assert done.returncode == 2
        assert f"{words[0]} is for a run, and --scan runs nothing" in done.stderr
    assert "there is no command to run" in cli.run("doctor").stderr
