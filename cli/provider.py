"""`tapeproxy provider`: the fake LLM provider as a command."""

import asyncio
import contextlib
from pathlib import Path

import click

from tapeproxy.cli.helpflags import HELP


@click.command(context_settings=HELP)
@click.option("--script", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Replies (TOML or JSON).")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The port to listen on.  [default: a free one]")
@click.option(
    "--tls",
    is_flag=True,
    help="Serve TLS with a certificate of our own authority, with HTTP/2 for clients that offer it.",
)
@click.option("--seed", type=int, help="What the answers are made from.  [default: 0, or chance]")
@click.option("--nondeterministic", is_flag=True, help="Fresh ids, times, wording and chunks for every request.")
def command(script: Path | None, port: int, tls: bool, seed: int | None, nondeterministic: bool) -> int:
    """Run the fake LLM provider, for tests without a key.

    It speaks OpenAI chat completions and responses, Anthropic messages and Gemini, streams included;
    docs/FAKE_PROVIDER.md has the script's format. Prints its URL, then serves until it is stopped.

    \b
    tapeproxy provider --tls --port 8443 &
    tapeproxy record --map api.openai.com=https://127.0.0.1:8443 -- python agent.py
    """
    from tapeproxy.proxy.ca import CertificateAuthority
    from tapeproxy.testing import FakeProvider, serve_forever

    context = CertificateAuthority.open().server_context("127.0.0.1", http2=True) if tls else None
    if seed is None and not nondeterministic:
        seed = 0
    provider = FakeProvider(script=script, tls=context, port=port, seed=seed, nondeterministic=nondeterministic)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_forever(provider, lambda: click.echo(provider.url)))
    return 0
