"""`replay --inject`: an SDK's error handling tested from one good tape, with a real client."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

AGENT = """
import openai

client = openai.OpenAI(timeout=2, max_retries=2)
asked = [{"role": "user", "content": "Count to five, please."}]
for attempt in range(3):
    try:
        stream = client.chat.completions.create(model="gpt-4o", messages=asked, stream=True)
        print("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))
        break
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Cli:
    return Cli(tmp_path_factory.mktemp("faults"), home)


@pytest.fixture(scope="module")
def taped(cli: Cli, home: Path) -> str:
    """What the agent said when it was recorded; the provider is gone."""
    (cli.cwd / "agent.py").write_text(AGENT)
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        done = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", sys.executable, "agent.py", keys=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def replay(cli: Cli, *rules: str, code: int = 0, argv: tuple[str, ...] = ()) -> tuple[str, str, dict[str, object]]:
    words = [word for rule in rules for word in ("--inject", rule)]
    done = cli.run("replay", "t.jsonl.gz", "--report", "report.json", *words, *argv)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr, json.loads(Path(cli.cwd / "report.json").read_text())


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        ("host=api.openai.com nth=1 status=429 retry-after=20", ""),
        pytest.param("nth=1 reset", "", marks=pytest.mark.soak),
        pytest.param("nth=1 hang", "", marks=pytest.mark.soak),  # the client's own time-out
        ("nth=1 cut=40", "APIError|RemoteProtocolError|APIConnectionError"),
        pytest.param("nth=1-3 status=500", "InternalServerError", marks=pytest.mark.soak),
    ],
)
def test_an_sdk_takes_a_fault_and_gets_its_answer_after_it(cli: Cli, taped: str, rule: str, seen: str) -> None:
    out, err, report = replay(cli, rule)
    *errors, said = out.splitlines()
    assert said == taped.strip()
    assert len(errors) == bool(seen)
    assert not errors or errors[0] in seen.split("|")
    injected = report["injected"]
    assert isinstance(injected, list)
    assert {one["fault"] for one in injected} == {rule}
    assert [one["number"] for one in injected] == list(range(1, len(injected) + 1))
    assert (report["violations"], report["drifts"], report["unused"]) == ([], [], [])
    assert "injected" in err


def test_a_fault_that_no_request_got_is_said_and_fails(cli: Cli, taped: str) -> None:
    out, err, report = replay(cli, "host=elsewhere.test status=429", code=4)
    assert out == taped
    assert "no request got this fault" in err
    assert report["injected"] == []


@pytest.mark.usefixtures("taped")
def test_a_request_that_is_not_on_the_tape_is_a_violation_even_so(cli: Cli) -> None:
    (cli.cwd / "other.py").write_text(AGENT.replace("five", "six"))
    _, err, report = replay(cli, "status=429", code=3, argv=("--", sys.executable, "other.py"))
    assert "not on the tape" in err
    assert report["injected"] == []


@pytest.mark.usefixtures("taped")
def test_a_fault_that_cannot_be_read_is_a_usage_error(cli: Cli) -> None:
    done = cli.run("replay", "t.jsonl.gz", "--inject", "status=soon")
    assert done.returncode == 2
    assert "a status from 200 to 599" in done.stderr
