"""Edits from the command line, whole: a real SDK hears the edited stream, and what follows from it is asked live."""

import json
import os
import re
import signal
import stat
import sys
from pathlib import Path

import pytest
from clirun import HOSTS, KEYS, Cli, maps

from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

PROGRAM = str(Path(__file__).with_name("programs") / "asks_twice.py")
AHEAD = ("--clock", "2031-01-01T00:00:00Z")
HOSTS_ASKED = (*HOSTS, "generativelanguage.googleapis.com")
NEW = "Süß 🐟, und noch ein paar Wörter mehr."


@pytest.fixture(scope="module")
def there(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(tmp_path_factory.mktemp("asks"), home)


def fork(
    cli: Cli, provider: FakeProvider, kind: str, *words: str, out: str = "child.gz", code: int = 0, **env: str
) -> tuple[str, str]:
    """Fork the tape KIND.gz; the first time it is made, of the agent of that kind."""
    if not (cli.cwd / f"{kind}.gz").exists():
        argv = ["--", sys.executable, PROGRAM, kind]
        done = cli.run("record", "-o", f"{kind}.gz", *maps(provider.url, HOSTS_ASKED), *argv, keys=True)
        assert done.returncode == 0, done.stderr
        provider.requests.clear()
    done = cli.run(
        "fork", f"{kind}.gz", "-o", out, "--force", *words, *maps(provider.url, HOSTS_ASKED), keys=True, env=env
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


SOAK = pytest.mark.soak


@pytest.mark.parametrize(
    "kind",
    ["openai-chat", pytest.param("openai-responses", marks=SOAK), pytest.param("anthropic", marks=SOAK), "gemini"],
)
def test_an_sdk_hears_the_new_text_and_asks_on(there: Cli, provider: FakeProvider, kind: str) -> None:
    out, err = fork(there, provider, kind, "--at", "1", "--text", NEW)
    assert f"first: {NEW}" in out
    assert f"tapeproxy: edit 1: text {json.dumps(NEW, ensure_ascii=False)}" in err
    assert err.endswith("0 reused, 1 mutated, 1 live: child.gz\n")
    assert NEW in json.dumps(provider.requests[-1].json(), ensure_ascii=False)
    head = load(there.cwd / "child.gz")[0].head
    assert head.edit == {"edits": [{"what": "text", "at": 1, "value": NEW}]}
    provider.stop()
    again = there.run("replay", "child.gz")
    assert (again.returncode, again.stdout) == (0, out), again.stderr
    assert there.run("verify", "child.gz").returncode == 0


def test_another_model_where_the_url_has_it(there: Cli, provider: FakeProvider) -> None:
    fork(there, provider, "gemini", "--at", "2", "--model", "models/gemini-9", "--system", "Be brief.")
    (sent,) = provider.requests
    assert sent.path == "/v1beta/models/gemini-9:streamGenerateContent"
    told = sent.json()
    assert isinstance(told, dict) and told["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    child = load(there.cwd / "child.gz")[0].exchanges[1]
    assert b"/gemini-2.5-flash:" in child.request.url  # what the agent asked
    assert b'"modelVersion":"gemini-9"' in child.response_body


def test_a_child_is_forked_again(there: Cli, provider: FakeProvider) -> None:
    fork(there, provider, "plain", "--set", "1:$.choices[0].message.content=One", out="c1.gz")
    out, err = fork(there, provider, "c1", "--set", "last:$text=Two")
    assert "first: One\n" in out
    assert "second: Two\n" in out
    assert err.endswith("1 reused, 1 mutated, 0 live: child.gz\n")
    assert load(there.cwd / "child.gz")[0].head.parent["name"] == "c1.gz"  # type: ignore[index]  # a child has one


def test_requests_on_their_way_out(there: Cli, provider: FakeProvider) -> None:
    words = ["--model", "gpt-9", "--system", "Be brief.", "--request-set", "2:$.temperature=0"]
    fork(there, provider, "plain", "--at", "2", *words)
    (sent,) = [request.json() for request in provider.requests]
    assert isinstance(sent, dict)
    assert (sent["model"], sent["temperature"]) == ("gpt-9", 0)
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    child = load(there.cwd / "child.gz")[0]
    asked = json.loads(child.exchanges[1].request_body)
    assert asked["model"] == "gpt-4o"  # what the agent sent: so it replays
    provider.stop()
    assert there.run("replay", "child.gz").returncode == 0


def test_an_error_that_never_was(there: Cli, provider: FakeProvider) -> None:
    """The SDK tries again, and that is a live call."""
    out, err = fork(there, provider, "openai-chat", "--status", "1:503", "--header", "1:retry-after: 0")
    assert "first: " in out
    assert err.endswith("0 reused, 1 mutated, 2 live: child.gz\n")


def test_a_secret_in_an_edit_is_on_no_tape_and_on_no_terminal(there: Cli, provider: FakeProvider) -> None:
    secret = KEYS["OPENAI_API_KEY"]
    _, err = fork(there, provider, "plain", "--at", "1", "--text", f"Use {secret}!", "--env", f"MY_TOKEN={secret}")
    assert "edit 1: text" in err
    assert secret not in err
    head = load(there.cwd / "child.gz")[0].head
    assert secret not in json.dumps(head.edit)
    assert there.run("scrub", "--check", "child.gz", keys=True).returncode == 0


def editor(folder: Path, code: str) -> str:
    """A program that changes the file that it is given."""
    path = folder / "editor.py"
    path.write_text(f"#!{sys.executable}\nimport sys\npath = sys.argv[-1]\ntext = open(path).read()\n{code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"{path} --wait"


def test_an_answer_in_the_editor_and_the_clock_put_ahead(there: Cli, provider: FakeProvider, tmp_path: Path) -> None:
    visual = editor(tmp_path, 'open(path, "w").write("Edited: " + text[:3] + "\\n")')
    out, err = fork(there, provider, "plain", "--at", "1", "--edit", *AHEAD, VISUAL=visual, EDITOR="false")
    first = re.search("first: (.*)", out)
    assert first is not None and first[1].startswith("Edited: ")
    assert "1 mutated, 1 live" in err
    assert "year: 2031" in out


@pytest.mark.parametrize(
    ("words", "keys", "said"),
    [
        (("-o", "openai-chat.gz"), True, "the file exists already"),
        (("-o", "new.gz"), False, "not set as in the recording"),
        (("-o", "new.gz", "--", "nosuch-program"), True, "nosuch-program"),
    ],
)
def test_no_edit_is_lost(
    words: tuple[str, ...], keys: bool, said: str, there: Cli, provider: FakeProvider, tmp_path: Path
) -> None:
    """What is known to fail is said before the editor; what fails after it keeps the text."""
    fork(there, provider, "openai-chat", "--at", "1", "--text", "x", "--dry-run")
    seen = tmp_path / "seen"
    visual = editor(tmp_path, f'open(path, "w").write("Ten minutes of work"); open({str(seen)!r}, "w").close()')
    done = there.run("fork", "openai-chat.gz", "--at", "1", "--edit", *words, keys=keys, env={"VISUAL": visual})
    assert done.returncode not in (0, 1), done.stderr
    assert said in done.stderr
    kept = re.search("what you wrote is in (.*)", done.stderr)
    assert seen.exists() == bool(kept) == ("--" in words)
    if kept is not None:
        assert Path(kept[1]).read_text() == "Ten minutes of work"
        Path(kept[1]).unlink()


WAITS = """
import sys, time, urllib.request

def ask(text):
    with urllib.request.urlopen("http://search.example.com/search?q=" + text) as answer:
        return answer.read().decode()

first = ask("one")
ask("two")
print("asked", flush=True)
if first == "wait":
    time.sleep(60)
"""


def test_ctrl_c_leaves_a_whole_child(cli: Cli, provider: FakeProvider) -> None:
    (cli.cwd / "waits.py").write_text(WAITS)
    done = cli.run("record", "-o", "t.gz", *maps(provider.url), "--", sys.executable, "waits.py", keys=True)
    assert done.returncode == 0, done.stderr
    words = ["fork", "t.gz", "-o", "c.gz", "--at", "1", "--body", "@wait", *maps(provider.url)]
    process = cli.start(*words, keys=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("0 reused, 1 mutated, 1 live: c.gz\n")
    assert cli.run("verify", "c.gz").returncode == 0


TEAM = """
import json
import random
import threading

import httpx

from tapeproxy.hints import agent, tool

out: dict[str, object] = {}


def ask(text: str) -> str:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    answer = httpx.post("https://api.openai.com/v1/chat/completions", json=body, timeout=30).json()
    return answer["choices"][0]["message"]["content"]


@tool
def search(query: str) -> dict[str, object]:
    return {"query": query, "score": random.random()}


@tool
def twice(value: object) -> list[object]:
    return [value, value]


def work(name: str) -> None:
    with agent(name):
        found = twice(search(name)["score"])
        out[name] = [found, ask(f"{name} found {json.dumps(found)}")]


ask("plan")
threads = [threading.Thread(target=work, args=(name,)) for name in ("worker_a", "worker_b")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(out, sort_keys=True))
print(ask("sum up " + json.dumps(out, sort_keys=True)))
"""


def test_another_result_of_a_tool(cli: Cli, provider: FakeProvider) -> None:
    """Worker_b makes no live call and hears the same; worker_a's next tool is called, and the sum is asked anew."""
    pytest.importorskip("tapeproxy.hints", reason="hints are not in this version")
    (cli.cwd / "team.py").write_text(TEAM)
    done = cli.run("record", "-o", "t.gz", *maps(provider.url), "--", sys.executable, "team.py", keys=True)
    assert done.returncode == 0, done.stderr
    before = json.loads(done.stdout.splitlines()[0])
    provider.requests.clear()
    words = ["fork", "t.gz", "-o", "c.gz", "--value", 'worker_a#0={"score": "new"}', *maps(provider.url)]
    done = cli.run(*words, keys=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("2 reused, 0 mutated, 2 live: c.gz\n")
    after = json.loads(done.stdout.splitlines()[0])
    assert after["worker_a"][0] == ["new", "new"]
    assert after["worker_b"] == before["worker_b"]
    assert ["worker_b" in request.body.decode() for request in provider.requests] == [False, True]
    provider.stop()
    again = cli.run("replay", "c.gz")
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


ASKING = """
import httpx
from tapeproxy.hints import tool

@tool
def look_up(what):
    return httpx.get("https://search.example.com/search", params={"q": what}).status_code

def ask(n, text):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    head = {"Authorization": "Bearer x"}
    return httpx.post("https://api.openai.com/v1/chat/completions", json=body, headers=head).json()

first = ask(0, "first")["choices"][0]["message"]["content"]
print(look_up("tides"))
second = ask(1, "second")["choices"][0]["message"]["content"]
print(ask(2, second)["choices"][0]["message"]["content"])
"""


def test_what_the_body_of_a_served_tool_had_asked_is_not_waited_for(cli: Cli, provider: FakeProvider) -> None:
    (cli.cwd / "agent.py").write_text(ASKING)
    done = cli.run("record", "-o", "t.gz", *maps(provider.url), "--", sys.executable, "agent.py", keys=True)
    assert done.returncode == 0, done.stderr
    words = ["fork", "t.gz", "-o", "c.gz", "--at", "3", "--text", "Another second.", *maps(provider.url)]
    done = cli.run(*words, keys=True)
    assert done.returncode == 0, done.stderr
    assert "in vain" not in done.stderr
    assert "not asked again" not in done.stderr
    assert "within tool calls: 1 event of the tape (2)" in done.stderr
    assert done.stderr.endswith("1 reused, 1 mutated, 1 live: c.gz\n")
