"""The mitmproxy that the recorder embeds, by itself: `python -m bench.baremitm CONFDIR UPSTREAM_CA`. Says its port.

The same parts and options as in `proxy/mitm.py`, and nothing of ours. What is left is what recording builds on.
"""

import asyncio
import sys
from typing import Any

from tapeproxy.proxy.mitm import slim_imports


async def _serve(confdir: str, upstream_ca: str) -> None:
    slim_imports()
    from mitmproxy import options
    from mitmproxy.addons import core, disable_h2c, next_layer, proxyserver, tlsconfig
    from mitmproxy.master import Master

    settings: Any = options.Options(confdir=confdir)
    master = Master(settings)
    server: Any = proxyserver.Proxyserver()  # type: ignore[no-untyped-call]  # mitmproxy's
    registry: Any = master.addons  # its methods have no types
    registry.add(core.Core(), disable_h2c.DisableH2C(), server, next_layer.NextLayer(), tlsconfig.TlsConfig())
    settings.update(
        listen_host="127.0.0.1",
        listen_port=0,
        connection_strategy="lazy",
        upstream_cert=False,
        http2=False,
        validate_inbound_headers=False,
        ssl_verify_upstream_trusted_ca=upstream_ca,
    )
    await server.setup_servers()
    await master.running()
    print(f"listening at 127.0.0.1:{server.listen_addrs()[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], sys.argv[2]))
