"""Other tools' recordings, imported, answer the real SDKs: offline, without a key, what they held."""

import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from cassettes import FOLDER
from clirun import Cli
from programruns import soak_python

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.calls import aws_payloads
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.sse import parse_events

AGENT = Path(__file__).parent / "programs" / "sdk_steps.py"
LONG = {"charmbracelet", "hierarchical", "openai_tool_variations", "new_assistant"}
TYPE = b"content-type"
RULES = {"llamaindex": ("--ignore-json", "$.encoding_format")}  # Python's SDK asks for base64, the one of Node did not
SDKS = {
    "portkey": "openai",
    "charmbracelet": "openai",
    "hierarchical": "openai",
    "openai_tool_variations": "openai",
    "errors_raised": "openai",
    "tool_use_failed": "openai",
    "langchain-agent": "openai",
    "llamaindex": "openai",
    "llm-anthropic": "anthropic",
    "ollama": "httpx",
    "mcp_tool": "httpx",
    "new_assistant": "httpx",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in LONG else name for name in SDKS]
)
def test_a_recording_answers_the_sdk(name: str, cli: Cli) -> None:
    found = sorted(FOLDER.glob(f"*{name}*")) if FOLDER.is_dir() else []
    if not found:
        pytest.skip(f"the recording {name!r} is not on this machine (a folder shared/cases beside the checkout)")
    done = cli.run("import", str(found[0]), "-o", "t.tape.jsonl.gz")
    assert done.returncode == 0, done.stderr
    tape, _ = load(cli.cwd / "t.tape.jsonl.gz")
    asked = [one for one in tape.exchanges if b"telemetry" not in one.request.url]
    (cli.cwd / "steps.json").write_text(json.dumps([step(one, SDKS[name]) for one in asked]))
    again = cli.run("replay", *RULES.get(name, ()), "t.tape.jsonl.gz", "--", sys.executable, str(AGENT), "steps.json")
    assert again.returncode == 0, again.stderr
    said = [json.loads(line) for line in again.stdout.splitlines()]
    assert said == [expected(one, SDKS[name]) for one in asked]


def step(one: Exchange, sdk: str) -> dict[str, Any]:
    """What the agent is to do to ask this again."""
    url = urlsplit(one.request.url.decode())
    body = decode(one.request_body, one.request.headers).data
    return {
        "sdk": sdk,
        "method": one.request.method.decode(),
        "base": f"{url.scheme}://{url.netloc}",
        "path": url.path,
        "headers": {name.decode(): value.decode() for name, value in one.request.headers if name.lower() == TYPE},
        "body": json.loads(body) if body else None,
    }


def expected(one: Exchange, sdk: str) -> Any:
    """What the agent prints of the answer, read off the tape."""
    assert one.response is not None
    body = decode(one.response_body, one.response.headers).data
    if sdk == "httpx":
        return [one.response.status, body.decode()]
    if one.response.status != 200:
        return [one.response.status]
    if not body.lstrip().startswith(b"{"):
        events = [json.loads(event.data) for event in parse_events(body) if event.data.startswith("{")]
        if sdk == "anthropic":
            return "".join(event.get("delta", {}).get("text", "") for event in events)
        deltas = [event["choices"][0]["delta"] for event in events if event.get("choices")]
        return "".join(delta.get("content") or "" for delta in deltas)
    answer = json.loads(body)
    return answer["choices"][0]["message"].get("content") if "choices" in answer else len(answer["data"])


@pytest.mark.soak
def test_boto3_gets_the_events_of_a_binary_stream(cli: Cli) -> None:
    found = sorted(FOLDER.glob("*bedrock*")) if FOLDER.is_dir() else []
    if not found:
        pytest.skip("the recording is not on this machine (a folder shared/cases beside the checkout)")
    python = soak_python()
    done = cli.run("import", str(found[0]), "-o", "t.tape.jsonl.gz")
    assert done.returncode == 0, done.stderr
    tape, _ = load(cli.cwd / "t.tape.jsonl.gz")
    models = [unquote(urlsplit(one.request.url.decode()).path.split("/")[2]) for one in tape.exchanges]
    steps = [
        {"model": model, "body": one.request_body.decode()} for model, one in zip(models, tape.exchanges, strict=True)
    ]
    (cli.cwd / "steps.json").write_text(json.dumps(steps))
    program = AGENT.with_name("bedrock_stream.py")
    # The recording's SDK leaves the colon of a model's name in the path, boto3 encodes it.
    again = cli.run("replay", "--rewrite-url", "%3A=:", "t.tape.jsonl.gz", "--", python, str(program))
    assert again.returncode == 0, again.stderr
    said = [json.loads(line) for line in again.stdout.splitlines()]
    assert said == [[json.loads(event) for event in aws_payloads(one.response_body)] for one in tape.exchanges]
    assert all(events[-1]["type"] == "message_stop" for events in said)


PATIENT = """
import asyncio, datetime, httpx, time

def clocks():
    return time.time(), time.monotonic(), time.perf_counter(), datetime.datetime.now().timestamp()

began, spent = clocks(), time.process_time()
while (reply := httpx.get("https://api.test/busy")).status_code != 200:
    time.sleep(float(reply.headers["retry-after"]))
asyncio.run(asyncio.sleep(100))
print([119 < now - then < 150 for now, then in zip(clocks(), began)], time.process_time() - spent < 60)
"""


def test_a_recorded_retry_after_is_not_waited_for(cli: Cli) -> None:
    """Of a tape that holds no clock; the clock that the agent sees goes on all the same."""
    asked = {"method": "GET", "uri": "https://api.test/busy"}
    given = [{"status": {"code": code, "message": ""}, "headers": {"retry-after": ["20"]}} for code in (429, 200)]
    cassette = {"interactions": [{"request": asked, "response": one} for one in given]}
    (cli.cwd / "c.json").write_text(json.dumps(cassette))
    (cli.cwd / "agent.py").write_text(PATIENT)
    assert cli.run("import", "c.json").returncode == 0
    began = time.monotonic()
    done = cli.run("replay", "c.tape.jsonl.gz", "--", sys.executable, "agent.py")
    assert (done.returncode, done.stdout) == (0, "[True, True, True, True] True\n"), done.stderr
    assert time.monotonic() - began < 90
