"""The clients of the matrix: what each is, the program that uses it, and what a reader of the table should know."""

from dataclasses import dataclass
from typing import Literal

type Language = Literal["Python", "Node", "Go", "Rust", "Java", "shell"]
type ServerName = Literal["provider", "bedrock", "grpc"]

HOSTS = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "raw.githubusercontent.com",
)
"""Whom the agents ask, side traffic included; all of it is led to the fake provider."""
KEYS = {
    "OPENAI_API_KEY": "sk-test-0123456789abcdefghij",
    "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
    "GEMINI_API_KEY": "AIzaSyD-0123456789abcdefghijklmnopqrstu",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
CALLS = [{"name": "get_weather", "arguments": {"city": city}} for city in ("Lima", "Oslo")]
SCRIPT = {
    # So that requests which are made at once are under way at once on a busy machine, too.
    "delay_ms": 100,
    "gap_ms": [1, 3],
    "reply": [
        {"when": {"user": "Observation"}, "tool_calls": [{"name": "final_answer", "arguments": {"answer": "Rain."}}]},
        {"when": {"user": "weather", "tool_result": False}, "text": "Let me look.", "tool_calls": CALLS},
        {"when": {"tool_result": True}, "text": "According to the tools, it is {tool_result}, and that is all."},
    ],
}
"""What the provider says: two calls of a tool at once, then words; smolagents wants its final answer as a call."""


@dataclass(frozen=True, slots=True)
class Client:
    """One row. `package`: the one in its language's lock file whose version is told; none: the language's own.

    `options`: what `record` is told beside its usual options; `note`: why, and what else to know of this client.
    `arguments` go to the program; `server`: who answers it.
    """

    name: str
    language: Language
    package: str
    program: str
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    server: ServerName = "provider"
    note: str = ""


_HTTP2 = "with `http_client=DefaultHttpxClient(http2=True)`, and `DefaultAsyncHttpxClient` for the asynchronous one"
_PLAIN = "Rust's library has no TLS: HTTP is written by hand, without it on the agent's side; no shim"
_UNSEEN = "no shim: what asks the same every time is replayed; clock and chance in a request are not"

CLIENTS = (
    Client("openai", "Python", "openai", "openai_agent.py"),
    Client("openai over HTTP/2", "Python", "openai", "openai_agent.py", arguments=("http2",), note=_HTTP2),
    Client("anthropic", "Python", "anthropic", "anthropic_agent.py"),
    Client("anthropic over HTTP/2", "Python", "anthropic", "anthropic_agent.py", arguments=("http2",), note=_HTTP2),
    Client(
        "google-genai",
        "Python",
        "google-genai",
        "google_genai_agent.py",
        note="its asynchronous client goes by aiohttp where that is installed; both ways are shown",
    ),
    Client(
        "litellm",
        "Python",
        "litellm",
        "litellm_agent.py",
        note="fetches a table of prices when it is imported, which is on the tape too; "
        "`LITELLM_LOCAL_MODEL_COST_MAP=True` leaves that out",
    ),
    Client("langgraph", "Python", "langgraph", "langgraph_agent.py"),
    Client("pydantic-ai", "Python", "pydantic-ai-slim", "pydantic_ai_agent.py"),
    Client(
        "openai-agents",
        "Python",
        "openai-agents",
        "openai_agents_agent.py",
        ("--ignore-json", "$.data"),
        note="uploads a trace of the run, in which tools that ran in threads of their own stand as they ended: so it "
        "is recorded with `--ignore-json '$.data'`, or without the upload (`OPENAI_AGENTS_DISABLE_TRACING=1`), which "
        "is better for runs of more than five seconds: it uploads by a timer, so how often is chance there",
    ),
    Client(
        "smolagents",
        "Python",
        "smolagents",
        "smolagents_agent.py",
        ("--threads",),
        note="runs tools in threads and prints each result as it comes: so it is recorded with `--threads`, without "
        "which two results may be printed in another order in a replay",
    ),
    Client("boto3 (Bedrock)", "Python", "boto3", "bedrock_agent.py", server="bedrock"),
    Client("grpcio", "Python", "grpcio", "grpcio_agent.py", server="grpc"),
    Client("openai (npm)", "Node", "openai", "openai.mjs"),
    Client("@anthropic-ai/sdk", "Node", "@anthropic-ai/sdk", "anthropic.mjs"),
    Client("ai", "Node", "ai", "ai.mjs"),
    Client("node:http2", "Node", "", "http2.mjs"),
    Client("curl", "shell", "curl", "curl_agent.sh", note=_UNSEEN),
    Client("net/http", "Go", "go", "go", note=_UNSEEN),
    *(
        Client(f"std::net, {way}", "Rust", "rustc", "rust/main.rs", options, arguments, note=_PLAIN)
        for way, options, arguments in (
            ("--reverse", ("--reverse", "https://api.openai.com"), ("reverse",)),
            ("HTTP_PROXY", (), ("proxy",)),
            ("--local", ("--local",), ("plain",)),
        )
    ),
    Client("java.net.http", "Java", "java", "java/Agent.java", ("--java",), note=_UNSEEN),
)
