"""A fake LLM provider that speaks the real wire formats: keyless tests of real SDKs.

    with FakeProvider() as provider:
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="any")

docs/FAKE_PROVIDER.md describes it.
"""

from tapeproxy.testing.inbox import Request
from tapeproxy.testing.provider import FakeProvider, serve_forever
from tapeproxy.testing.script import Script, load_script, parse_script
from tapeproxy.testing.tables import ScriptError
from tapeproxy.testing.wire import ListenError

__all__ = [
    "FakeProvider",
    "ListenError",
    "Request",
    "Script",
    "ScriptError",
    "load_script",
    "parse_script",
    "serve_forever",
]
