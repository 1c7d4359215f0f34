"""A tape full of secrets, scrubbed: nothing of them can be read, it is whole, and its agent replays as before."""

import base64
import gzip
import json
import sys
from pathlib import Path

import pytest
from clirun import KEYS, Cli, maps
from peeling import holds

from tapeproxy.testing import FakeProvider

PY = sys.executable
SECRETS = {
    "header": KEYS["OPENAI_API_KEY"],
    "look": "sk-proj-AbCdEf0123456789xyzXYZ",
    "in base64": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "field": "abcdef1234567",
    "password": "hunter2x",
    "assigned": "Tr0ub4dor-and-3-more",
    "variable": "plain/but+secret=value 42",
    "compressed": "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "query": "q1w2e3r4t5y6u7i8",
}
AGENT = f"""
import base64, gzip, json, os, uuid, httpx
S = {SECRETS!r}
text = f"key {{S['look']}} file {{base64.b64encode(('a: ' + S['in base64']).encode()).decode()}} and "
text += f"DB_PASSWORD={{S['assigned']}} or {{S['variable']}} at {{uuid.uuid4()}}"
body = dict(model="gpt-4o", stream=True, messages=[dict(role="user", content=text)])
body["metadata"] = dict(session=S["field"], password=S["password"])
head = {{"Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none"), "Content-Type": "application/json"}}
url = "https://api.openai.com/v1/chat/completions"
with httpx.Client(timeout=30) as client:
    print(client.post(url, json=body, headers=head).status_code)
    body["messages"][0]["content"] = S["compressed"]
    packed = gzip.compress(json.dumps(body).encode(), mtime=0)
    print(client.post(url, content=packed, headers=head | {{"Content-Encoding": "gzip"}}).status_code)
    print(client.get("https://search.example.com/search", params=dict(q="tide", api_key=S["query"])).status_code)
"""
ANSWERS = "200\n400\n200\n"
"""The provider takes no compressed requests."""
RULES = ("--redact-field", "session", "--secret-env", "MINE")


@pytest.fixture
def tape(cli: Cli, provider: FakeProvider) -> Path:
    """A tape that nothing was redacted on."""
    (cli.cwd / "agent.py").write_text(AGENT)
    done = cli.run(
        "record", "-o", "t.tape.jsonl.gz", "--no-redact", *maps(provider.url), "--", PY, "agent.py", keys=True
    )
    assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
    assert "nothing is redacted" in done.stderr
    return cli.cwd / "t.tape.jsonl.gz"


def readable(tape: Path) -> list[str]:
    """The secrets that can be read on a tape."""
    lines = gzip.decompress(tape.read_bytes()).splitlines()
    bodies = [body for line in lines if isinstance(body := json.loads(line).get("body"), dict)]
    packed = [holds(gzip.decompress(base64.b64decode(body["b64"])), b"AIza") for body in bodies]
    found = [name for name, secret in SECRETS.items() if any(holds(line, secret.encode()) for line in lines)]
    return [*found, *(["compressed"] if any(packed) else [])]


def test_a_scrubbed_tape_has_no_secret_and_replays(cli: Cli, tape: Path) -> None:
    assert set(readable(tape)) == set(SECRETS)
    mine = {"MINE": SECRETS["variable"]}
    checked = cli.run("scrub", "--check", tape.name, *RULES, env=mine)
    assert checked.returncode == 1
    assert "recorded with --no-redact" in checked.stdout
    assert not [name for name, secret in SECRETS.items() if secret in checked.stdout + checked.stderr]

    done = cli.run("scrub", tape.name, "-o", "clean.tape.jsonl.gz", *RULES, env=mine)
    assert done.returncode == 0, done.stdout + done.stderr
    clean = cli.cwd / "clean.tape.jsonl.gz"
    assert readable(clean) == []
    assert cli.run("verify", clean.name).returncode == 0
    assert cli.run("scrub", "--check", clean.name, *RULES, env=mine).returncode == 0

    replayed = cli.run("replay", clean.name, "--", PY, "agent.py", env={"OPENAI_API_KEY": "sk-another-0123456789abcd"})
    assert (replayed.returncode, replayed.stdout) == (0, ANSWERS), replayed.stderr
    again = cli.run("replay", clean.name)
    assert (again.returncode, again.stdout) == (0, ANSWERS), again.stderr


def test_a_sealed_seed_is_for_its_owner_alone(cli: Cli, tape: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    done = cli.run(
        "scrub", tape.name, "-o", "sealed.tape.jsonl.gz", "--seal-seed", *RULES, env={"MINE": SECRETS["variable"]}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seed = json.loads(gzip.decompress(tape.read_bytes()).splitlines()[0])["seed"]
    assert seed not in gzip.decompress((cli.cwd / "sealed.tape.jsonl.gz").read_bytes()).decode()
    assert cli.run("verify", "sealed.tape.jsonl.gz").returncode == 0
    replayed = cli.run("replay", "sealed.tape.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (0, ANSWERS), replayed.stderr

    stranger = Cli(cli.cwd, tmp_path_factory.mktemp("stranger"))
    other = stranger.run("replay", "sealed.tape.jsonl.gz", "--", PY, "agent.py")
    assert other.returncode == 3
    assert "sealed with another key" in other.stderr


def test_a_recording_says_what_still_looks_like_a_secret(cli: Cli, provider: FakeProvider) -> None:
    (cli.cwd / "agent.py").write_text(AGENT)
    words = ["record", "-o", "t.jsonl.gz", *maps(provider.url), "--", PY, "agent.py"]
    done = cli.run(*words, keys=True)
    assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "secret" in line)
    assert line == (
        "tapeproxy: warning: 1 value on the tape still looks like a secret; see: tapeproxy scrub --check t.jsonl.gz"
    )
    checked = cli.run("scrub", "--check", "t.jsonl.gz")
    assert checked.returncode == 1
    assert "DB_PASSWORD" not in checked.stdout  # redacted
    assert "ghp_… (40 characters)" in checked.stdout

    (cli.cwd / "agent.py").write_text("import httpx\nhttpx.get('https://search.example.com/search?q=tide')")
    quiet = cli.run(words[0], "--force", *words[1:], keys=True)
    assert "secret" not in quiet.stderr


HINTED = f"""
import json, os
from tapeproxy.hints import agent, final_state, message, received, tool, value
S = {SECRETS!r}

@tool
def look_up(password, note, session):
    print("a body runs")
    return {{"password": S["password"], "note": [S["look"], S["variable"]], "session": S["field"],
      "mixed": (1, S["in base64"])}}

@tool(name="ask " + S["variable"])
def fails(note):
    raise ValueError("no " + S["compressed"], {{"token": S["look"]}})

with agent("chief"):
    message("helper", {{"password": S["password"], "text": "use " + S["look"]}})
found = [look_up(S["password"], S["look"], S["field"]) for _ in range(2)]
found.append(look_up(S["password"], "plain " + S["variable"], session=S["field"]))
try: fails("DB_PASSWORD=" + S["assigned"])
except ValueError as error: found.append(str(len(error.args)))
kept = value("key of " + S["look"], lambda: S["in base64"])
print(len(found), found[0]["mixed"][0], isinstance(found[0]["mixed"], tuple), len(kept))
final_state({{"found": len(found), "session": S["field"], "kept": "a key " + kept}})
"""


def test_hints_are_scrubbed_and_served(cli: Cli) -> None:
    (cli.cwd / "agent.py").write_text(HINTED)
    done = cli.run("record", "-o", "t.tape.jsonl.gz", "--no-redact", "--", PY, "agent.py")
    printed = "4 1 True 40\n"
    assert (done.returncode, done.stdout) == (0, "a body runs\n" * 3 + printed), done.stderr
    on_it = set(SECRETS) - {"header", "query"}
    assert set(readable(cli.cwd / "t.tape.jsonl.gz")) == on_it
    mine = {"MINE": SECRETS["variable"]}
    done = cli.run("scrub", "t.tape.jsonl.gz", "-o", "clean.tape.jsonl.gz", *RULES, env=mine)
    assert done.returncode == 0, done.stdout + done.stderr
    assert readable(cli.cwd / "clean.tape.jsonl.gz") == []
    assert cli.run("verify", "clean.tape.jsonl.gz").returncode == 0
    for env in ({}, mine):
        again = cli.run("replay", "clean.tape.jsonl.gz", "--", PY, "agent.py", env=env)
        assert (again.returncode, again.stdout) == (0, printed), again.stderr
        assert "5 tool calls served" in again.stderr
