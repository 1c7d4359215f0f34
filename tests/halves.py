"""A stream that waits in its middle, and an agent that asks for it: runs that a test can look at while they go on."""

from pathlib import Path

from clirun import Cli
from origin import Call, Gate

from tapeproxy.proxy.ca import CertificateAuthority

AGENT = """
import json, os, urllib.request

def ask(url, body=None):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    with urllib.request.urlopen(urllib.request.Request(url, body and json.dumps(body).encode(), headers)) as answer:
        return answer.read().decode()

said = "Tell me of tides"
for _ in range(2):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": said}]}
    answer = json.loads(ask("https://api.openai.com/v1/chat/completions", body))
    said = answer["choices"][0]["message"]["content"]
print(ask("http://halves.test/"))
"""


class Halves:
    """A server that streams two pieces; the second one once it may."""

    def __init__(self) -> None:
        self.second = Gate()

    async def __call__(self, call: Call) -> None:
        await call.head("200 OK", "Content-Type: text/plain", "Transfer-Encoding: chunked")
        await call.chunk(b"the first half")
        await call.wait(self.second)
        await call.chunk(b"the second half")
        await call.last_chunk()


def agent_of_halves(folder: Path, home: Path) -> Cli:
    """A folder with the agent in it, that asks a model twice and then for the halves."""
    ca = CertificateAuthority.open(home)
    ca.bundle().write_bytes(ca.certificate.read_bytes())
    (folder / "agent.py").write_text(AGENT)
    return Cli(folder, home)
