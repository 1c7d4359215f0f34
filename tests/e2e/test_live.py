"""A smoke test against real providers: `pytest -m live`. It needs a key and the network, and costs a few tokens."""

import os
import sys
from pathlib import Path

import pytest
from clirun import Cli

pytestmark = pytest.mark.live

AGENTS = {
    "OPENAI_API_KEY": """
import openai
ask = [{"role": "user", "content": "Say hello in five languages."}]
for chunk in openai.OpenAI().chat.completions.create(model="gpt-4o-mini", messages=ask, stream=True):
    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="")
""",
    "ANTHROPIC_API_KEY": """
import anthropic
ask = [{"role": "user", "content": "Say hello in five languages."}]
with anthropic.Anthropic().messages.stream(model="claude-haiku-4-5", max_tokens=100, messages=ask) as stream:
    for text in stream.text_stream:
        print(text, end="")
""",
}


@pytest.mark.parametrize("variable", AGENTS)
def test_a_real_stream_is_taped_and_replays_without_the_key(variable: str, tmp_path: Path, home: Path) -> None:
    key = os.environ.get(variable)
    if not key:
        pytest.skip(f"{variable} is not set")
    cli = Cli(tmp_path, home)
    (tmp_path / "agent.py").write_text(AGENTS[variable])
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "agent.py", env={variable: key})
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout
    assert key.encode() not in (tmp_path / "t.jsonl.gz").read_bytes()
    replayed = cli.run("replay", "t.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
