"""MCP servers on stdio, wrapped in `tapeproxy mcp`: recorded live, replayed with the server's program gone."""

import json
import os
import random
import signal
import string
import subprocess
import sys
from pathlib import Path

import pytest
from clirun import Cli
from layers import layers

from tapeproxy.proxy.repairing import repair
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tested on Linux")

SERVER = """
import json, os, random, sys, time

def say(message):
    print(json.dumps(message) if isinstance(message, dict) else message, flush=True)

waiting = []
say("weather server, ready")
for line in sys.stdin:
    asked = json.loads(line)
    method, number, params = asked.get("method"), asked.get("id"), asked.get("params", {})
    if method == "crash":
        print("going down", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9) if params.get("hard") else os._exit(7)
    elif method == "pair":  # the first of two is answered last
        waiting.append(asked)
        if len(waiting) == 2:
            for one in reversed(waiting):
                say({"id": one["id"], "result": [one["params"]["city"], random.random()]})
    elif method == "sample":
        waiting.append(number)
        say({"id": "from-server", "method": "sampling/createMessage", "params": {"key": os.environ.get("WEATHER_KEY")}})
    elif method is None:
        say({"id": waiting.pop(), "result": [asked["result"], random.random()]})
    elif method == "environment":
        say({"id": number, "result": sorted(name for name in os.environ if "PROXY" in name.upper())})
    elif method == "big":
        say({"id": number, "result": "x" * params["size"]})
    elif number is not None:
        say({"method": "notifications/progress", "params": {"progressToken": params.get("token"), "of": method}})
        say({"id": number, "result": [method, params, random.random()]})
print("input closed", file=sys.stderr)
sys.exit(5 if "--odd" in sys.argv else 0)
"""
AGENT = """
import json, subprocess, sys

def start(*words, env=None):
    command = [sys.executable, "-m", "tapeproxy.cli.main", "mcp", *words, "--", sys.executable, "weather.py"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

def send(server, **message):
    server.stdin.write(json.dumps(message).encode() + b"\\n")
    server.stdin.flush()

def hear(server):
    line = server.stdout.readline()
    print(line.decode().strip()[:200], flush=True)
    return json.loads(line) if line.startswith(b"{") else line

def end(server):
    server.stdin.close()
    rest = server.stdout.read()
    print(rest, server.wait(60), flush=True)

def ask(server, **message):
    send(server, **message)
    while True:
        heard = hear(server)
        if not heard or heard.get("id") == message["id"]:
            return heard

"""
EACH = """
server = start()
hear(server)
first = int(sys.argv[1])
ask(server, id=first, method="tools/call", params={"city": sys.argv[2]})
send(server, method="notifications/initialized")
send(server, id=first + 1, method="pair", params={"city": "Paris"})
send(server, id=first + 2, method="pair", params={"city": "Oslo"})
hear(server), hear(server)
send(server, id="s", method="sample")
asked = hear(server)
ask_id = asked["id"]
send(server, id=ask_id, result=sys.argv[3])
hear(server)
ask(server, id=99, method="environment")
ask(server, id=100, method="big", params={"size": 3_000_000})
end(server)
other = start("--name", "other")
hear(other)
ask(other, id=1, method="tools/call", params={"city": "Rome"})
end(other)
"""


class Runs:
    """Records and replays agents with a wrapped server in `cli.cwd`."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.tape = cli.cwd / "t.tape.jsonl.gz"
        (cli.cwd / "weather.py").write_text(SERVER)

    def record(
        self, agent: str, *words: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        (self.cli.cwd / "agent.py").write_text(AGENT + agent)
        command = ["--", sys.executable, "agent.py", *words]
        done = self.cli.run("record", "--force", "-o", str(self.tape), *options, *command, env=env)
        (self.cli.cwd / "weather.py").unlink(missing_ok=True)
        return done

    def replay(self, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        again = ["--", sys.executable, "agent.py", *words] if words else []
        return self.cli.run("replay", str(self.tape), *options, *again)

    def load(self) -> Tape:
        return load(self.tape)[0]


@pytest.fixture
def runs(cli: Cli) -> Runs:
    return Runs(cli)


@pytest.fixture(scope="module")
def each(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Runs, subprocess.CompletedProcess[str]]:
    """A recording of everything that a server and a client may say."""
    runs = Runs(Cli(tmp_path_factory.mktemp("each"), home))
    secret = {"WEATHER_KEY": "wk-0123456789abcdefABCDEF"}
    return runs, runs.record(EACH, "1", "Paris", "words", env=secret)


def test_all_is_heard_again_with_the_server_gone(each: tuple[Runs, subprocess.CompletedProcess[str]]) -> None:
    runs, recorded = each
    assert recorded.returncode == 0, recorded.stderr
    said = recorded.stdout.splitlines()
    assert said[0] == "weather server, ready"
    assert [json.loads(said[at])["result"][0] for at in (3, 4)] == ["Oslo", "Paris"]
    assert said[-1].endswith(" 0")
    replayed = runs.replay()
    assert (replayed.returncode, "0 violations" in replayed.stderr) == (0, True), replayed.stderr
    # The key was redacted: the replay has its token.
    assert [line for line in replayed.stdout.splitlines() if "sampling" not in line] == [
        line for line in said if "sampling" not in line
    ]
    assert "unused" not in replayed.stderr
    assert "going" not in replayed.stderr


def test_the_wrapper_is_no_stranger_and_the_server_no_part_of_the_run(
    each: tuple[Runs, subprocess.CompletedProcess[str]],
) -> None:
    runs, recorded = each
    assert "shim" not in recorded.stderr
    assert "bypass" not in recorded.stderr
    tape = runs.load()
    assert {note.what for note in tape.notes} <= {"process", "machine"}
    answer = next(one for one in tape.exchanges if one.request.url.endswith(b"/environment"))
    assert json.loads(answer.response_body)["result"] == []
    assert b"wk-0123456789" not in b"".join(one.response_body for one in tape.exchanges)


def test_a_client_may_number_otherwise(each: tuple[Runs, subprocess.CompletedProcess[str]]) -> None:
    runs, recorded = each
    replayed = runs.replay("50", "Paris", "words")
    assert replayed.returncode == 0, replayed.stderr
    numbers = [[json.loads(line).get("id") for line in out.stdout.splitlines()[2:5]] for out in (recorded, replayed)]
    assert numbers == [[1, 3, 2], [50, 52, 51]]


def test_another_argument_is_a_violation_that_the_client_hears(
    each: tuple[Runs, subprocess.CompletedProcess[str]],
) -> None:
    runs, _ = each
    replayed = runs.replay("1", "Berlin", "words")
    assert replayed.returncode == 3
    assert "body $.params.city\n      tape: Paris\n      now:  Berlin" in replayed.stderr
    answer = replayed.stdout.splitlines()[1]
    assert answer.startswith('{"jsonrpc":"2.0","id":1,"error":{"code":470,"message":"this request is not on the tape')


def test_another_answer_to_the_servers_question_is_a_violation(
    each: tuple[Runs, subprocess.CompletedProcess[str]],
) -> None:
    runs, _ = each
    replayed = runs.replay("1", "Paris", "other words")
    assert replayed.returncode == 3
    assert "body $.result" in replayed.stderr


@pytest.mark.parametrize(("hard", "ended"), [(False, 7), (True, -9)])
def test_a_server_that_dies_in_a_call_dies_again(runs: Runs, hard: bool, ended: int) -> None:
    agent = f"""
server = start()
hear(server)
ask(server, id=1, method="tools/call", params={{}})
print(ask(server, id=2, method="crash", params={{"hard": {hard}}}))
end(server)
"""
    recorded = runs.record(agent)
    assert (recorded.returncode, recorded.stdout.splitlines()[-1]) == (0, f"b'' {ended}"), recorded.stderr
    replayed = runs.replay()
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr


def test_a_client_that_hands_on_no_environment_is_taped_and_replayed(runs: Runs) -> None:
    """Not even by the shim: as a client in Go or a shell would start it."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", "")]))
    server = f"PYTHONPATH={path} {sys.executable} -m tapeproxy.cli.main mcp -- {sys.executable} weather.py"
    agent = f"""
command = ["sh", "-c", "printf '%s\\\\n' '" + json.dumps({{"id": 1, "method": "tools/list"}}) + "' | env -i {server}"]
print(subprocess.run(command, capture_output=True, text=True).stdout)
"""
    recorded = runs.record(agent)
    assert '"tools/list"' in recorded.stdout, recorded.stderr
    replayed = runs.replay()
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert [one.request.url.rpartition(b"/")[2] for one in runs.load().exchanges] == [b"", b"list"]


@pytest.mark.parametrize("options", [(), ("--no-shim",)])
def test_a_replay_never_starts_a_server(runs: Runs, options: tuple[str, ...]) -> None:
    recorded = runs.record("end(start()) if len(sys.argv) > 1 else None", options=options)
    assert recorded.returncode == 0
    (runs.cli.cwd / "weather.py").write_text("open('started', 'w')")
    replayed = runs.replay("now")
    assert replayed.returncode == 3
    assert "POST http://weather.mcp-stdio.invalid/" in replayed.stderr
    assert not (runs.cli.cwd / "started").exists()


def test_what_programs_say_is_taped_once(runs: Runs) -> None:
    """With --io, a program's output is on the tape; the wrapper's is there by itself, and it runs in the replay."""
    agent = 'server = start(); hear(server); ask(server, id=1, method="tools/call", params={}); end(server)'
    recorded = runs.record(agent, options=("--io",))
    assert not any("mcp" in value.name for _, value in runs.load().values if value.what == "process")
    replayed = runs.replay(options=("--io", "tape"))
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr


def test_without_the_shim_it_passes_through_with_a_word(runs: Runs) -> None:
    recorded = runs.record("server = start()\nhear(server)\nend(server)", options=("--no-shim",))
    assert recorded.stdout.splitlines() == ["weather server, ready", "b'' 0"]
    assert "the MCP server weather is not taped: that needs the shim" in recorded.stderr
    assert runs.load().exchanges == []


def test_outside_of_a_run_it_is_the_server(runs: Runs) -> None:
    done = runs.cli.run("mcp", "--", sys.executable, "weather.py", "--odd", input='{"id":1,"method":"m"}\n')
    assert (done.returncode, done.stdout.splitlines()[0]) == (5, "weather server, ready")
    assert done.stderr == "input closed\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "no server to run"),
        (("--name", "!", "--", "x"), "no name for a server"),
        (("--", "/nonexistent/server"), "cannot be started: no such file"),
    ],
)
def test_what_cannot_be_run_is_said(runs: Runs, words: tuple[str, ...], what: str) -> None:
    done = runs.cli.run("mcp", *words)
    assert (done.returncode, what in done.stderr) == (2, True), done.stderr


def test_what_was_heard_is_kept_when_the_recorder_is_killed(runs: Runs) -> None:
    agent = """
import os, signal, time
server = start()
hear(server)
ask(server, id=1, method="tools/call", params={"city": "Paris"})
os.kill(os.getppid(), signal.SIGKILL)
ask(server, id=2, method="tools/call", params={"city": "Oslo"})
ask(server, id=3, method="tools/call", params={"city": "Rome"})
end(server)
"""
    (runs.cli.cwd / "agent.py").write_text(AGENT + agent)
    words = ("record", "-o", str(runs.tape), "--", sys.executable, "agent.py")
    recorder = runs.cli.start(*words)
    told, _ = recorder.communicate(timeout=60)
    assert recorder.returncode == -signal.SIGKILL
    repair(runs.tape, runs.tape, runs.cli.environment())
    tape = runs.load()
    answers = [json.loads(one.response_body)["result"] for one in tape.exchanges[1:] if one.response]
    assert [result[1]["city"] for result in answers] == ["Paris", "Oslo", "Rome"]
    assert all(f"{result[2]}" in told for result in answers)
    assert tape.exchanges[0].end is not None
    before = runs.tape.read_bytes()
    assert repair(runs.tape, runs.tape, runs.cli.environment()).facts == ()
    assert runs.tape.read_bytes() == before


def test_a_fork_serves_what_is_on_the_tape_and_starts_no_server(runs: Runs) -> None:
    agent = """
server = start()
hear(server)
first = ask(server, id=1, method="tools/call", params={"city": "Paris"})
ask(server, id=2, method="tools/call", params={"city": first["result"][1]["city"]})
end(server)
"""
    runs.record(agent)
    child = str(runs.cli.cwd / "child.gz")
    forked = runs.cli.run("fork", str(runs.tape), "--set", '2:$.result[1].city="Rome"', "-o", child)
    said = forked.stdout.splitlines()
    assert (forked.returncode, json.loads(said[2])["result"][1]) == (3, {"city": "Rome"}), forked.stderr
    assert said[3].startswith('{"jsonrpc":"2.0","id":2,"error":{"code":470,')
    replayed = runs.cli.run("replay", child)
    assert (replayed.returncode, replayed.stdout) == (3, forked.stdout), replayed.stderr
    assert "exchange 3 of the tape was refused when it was taped" in replayed.stderr


def test_a_second_process_of_a_server_has_answers_of_its_own(runs: Runs) -> None:
    once = 'server = start(); hear(server); ask(server, id=1, method="tools/call", params={}); end(server)\n'
    recorded = runs.record(once * 2)
    urls = [one.request.url.partition(b".invalid")[2] for one in runs.load().exchanges]
    assert urls == [b"/", b"/tools/call", b"/?session=2", b"/tools/call?session=2"]
    replayed = runs.replay()
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr


SDK_SERVER = """
import asyncio, os
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("weather")

@server.tool()
async def weather(city: str, ctx: Context) -> str:
    await ctx.report_progress(1, 2, "looking")
    await asyncio.sleep(0.3 if city == "Paris" else 0)
    return f"{city}: {os.urandom(4).hex()}"

server.run("stdio")
"""
SDK_AGENT = """
import asyncio
from mcp import Client, StdioServerParameters, stdio_client

async def told(done, total, message):
    print("progress", done, total, message)

async def main():
    words = ["-m", "tapeproxy.cli.main", "mcp", "--", sys.executable, "weather.py"]
    async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=words))) as client:
        print([tool.name for tool in (await client.list_tools()).tools])
        calls = [client.call_tool("weather", {"city": "Paris"}, progress_callback=told)]
        calls.append(client.call_tool("weather", {"city": "Oslo"}))
        for task in asyncio.as_completed(calls):
            print((await task).content[0].text)

asyncio.run(main())
"""


def test_the_sdk_replays_with_the_servers_script_deleted(runs: Runs) -> None:
    pytest.importorskip("mcp")
    (runs.cli.cwd / "weather.py").write_text(SDK_SERVER)
    recorded = runs.record(SDK_AGENT)
    said = recorded.stdout.splitlines()
    assert (recorded.returncode, said[0], said[2][:5], said[3][:6]) == (0, "['weather']", "Oslo:", "Paris:"), recorded
    replayed = runs.replay()
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert " 0 violations" in replayed.stderr


KEEPER = """
import base64, json, os, sys

plan = json.load(open("plan.json"))

def say(message):
    print(json.dumps(message) if isinstance(message, dict) else message, flush=True)

say(f"ready with {plan['line']}")
for line in sys.stdin:
    asked = json.loads(line)
    say({"method": "notifications/message", "params": {"data": {"apiKey": plan["notification"]}}})
    inner = base64.b64encode(f"--{os.environ['KEEPER_KEY']}--".encode()).decode()
    text = json.dumps({"password": plan["nested"], "url": f"postgres://u:{plan['url']}@db/x"})
    content = [{"type": "text", "text": text}, {"type": "image", "data": inner}]
    say({"id": asked["id"], "result": {"content": content, "token": plan["result"]}})
    say({"id": "s", "error": {"code": -32000, "message": f"invalid key {plan['error']}"}})
print(plan["stderr"], file=sys.stderr)
"""
HOLDER = """
plan = json.load(open("plan.json"))
env = dict(os.environ, KEEPER_KEY=os.environ["KEEPER_KEY"])
argv = [sys.executable, "-m", "tapeproxy.cli.main", "mcp", "--", sys.executable, "weather.py"]
argv += ["--api-key", plan["argument"]]
server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
kinds = [server.stdout.readline()[:10]]
meta = {"authorization": f"Bearer {plan['meta']}", "headers": {"X-Api-Key": plan["header"]}}
send(server, id=1, method="tools/call", params={"arguments": {"api_key": plan["argument of a tool"]}, "_meta": meta})
kinds += [sorted(json.loads(server.stdout.readline())) for _ in range(3)]
print(kinds)
server.stdin.close()
server.stdout.read(), server.wait(60)
"""
PLACES = ("notification", "nested", "url", "result", "stderr", "argument", "meta", "header", "argument of a tool")


def test_a_server_that_is_started_otherwise_does_not_begin(runs: Runs) -> None:
    done = runs.record("server = start(*sys.argv[1:])\nhear(server)\nend(server)")
    assert done.returncode == 0, done.stderr
    done = runs.replay("--name", "another")
    assert (done.returncode, done.stdout) == (3, "\nb'' 1\n"), done.stderr
    assert "this server is not on the tape" in done.stderr


def test_no_planted_secret_is_on_a_tape_and_others_replay_it(runs: Runs) -> None:
    def plan(seed: int) -> dict[str, str]:
        chance = random.Random(seed)
        words = {place: "".join(chance.choices(string.ascii_letters, k=24)) + "7a" for place in (*PLACES, "known")}
        return words | {place: f"sk-proj-{words['known'][:20]}{place}0123" for place in ("line", "error")}

    def give(seed: int) -> dict[str, str]:
        (runs.cli.cwd / "plan.json").write_text(json.dumps(plan(seed)))
        return {"KEEPER_KEY": plan(seed)["known"]}

    (runs.cli.cwd / "weather.py").write_text(KEEPER)
    done = runs.record("import os\n" + HOLDER, env=give(1))
    assert done.returncode == 0, done.stderr
    (runs.cli.cwd / "plan.json").unlink()
    exchanges = runs.load().exchanges
    written = {str(path): path.read_bytes() for path in runs.cli.cwd.rglob("*") if path.is_file()}
    texts = [*written.values(), *(text for one in exchanges for text in (one.request_body, one.response_body))]
    views = {view for text in texts for view in layers(text)}
    told = {place for place, secret in plan(1).items() if any(secret.encode() in view for view in views)}
    assert told == set()
    assert any(b"notifications/message" in view for view in views), "the messages are there"
    again = runs.cli.run("replay", str(runs.tape), env=give(2))
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
