"""Who answers the clients of the matrix, and what `record` is told so that they are asked in place of the real ones."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from authority import Authority
from awsframes import frame
from clirun import maps
from grpcservice import GrpcService
from matrix.clients import CALLS, HOSTS, SCRIPT, ServerName
from origin import Call, Origin

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

BEDROCK = "bedrock-runtime.us-east-1.amazonaws.com"
GRPC = "grpc.example.com"


@contextmanager
def serving(name: ServerName, home: Path, authority: Authority) -> Iterator[list[str]]:
    """The options that lead to a server, which ends with the context. The authority in `home` is trusted anyway."""
    ours = CertificateAuthority.open(home)
    match name:
        case "provider":
            with FakeProvider(SCRIPT, tls=ours.server_context("127.0.0.1", http2=True)) as provider:
                yield maps(provider.url, HOSTS)
        case "bedrock":
            with Origin(_converse, tls=ours.server_context("127.0.0.1")) as origin:
                yield maps(origin.url, [BEDROCK])
        case "grpc":
            with GrpcService(authority.issue("localhost")) as service:
                yield [*maps(f"https://localhost:{service.secure}", [GRPC]), "--upstream-ca", str(authority.cert)]


async def _converse(call: Call) -> None:
    """ConverseStream: two tool calls where the weather is asked for, then words."""
    messages = json.loads(call.request.body)["messages"]
    results = [block for block in messages[-1]["content"] if "toolResult" in block]
    await call.head("200 OK", "Content-Type: application/vnd.amazon.eventstream", "Transfer-Encoding: chunked")
    for event, said in _events(messages[-1]["content"], results):
        headers = {":event-type": event, ":content-type": "application/json", ":message-type": "event"}
        await call.chunk(frame(json.dumps(said).encode(), headers))
    await call.last_chunk()


def _events(content: list[dict[str, object]], results: list[dict[str, object]]) -> Iterator[tuple[str, object]]:
    """The events of one answer: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html."""
    yield "messageStart", {"role": "assistant"}
    calls = not results and "weather" in str(content)
    if calls:
        for index, call in enumerate(CALLS):
            use = {"toolUseId": f"tooluse_{index}", "name": call["name"]}
            yield "contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": use}}
            for piece in re.findall(".{1,6}", json.dumps(call["arguments"])):
                yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}
            yield "contentBlockStop", {"contentBlockIndex": index}
    else:
        for piece in re.findall(".{1,9}", f"You said {content}."):
            yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}
        yield "contentBlockStop", {"contentBlockIndex": 0}
    yield "messageStop", {"stopReason": "tool_use" if calls else "end_turn"}
    yield "metadata", {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}
