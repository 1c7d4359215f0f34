"""The record wire: mitmproxy inside this process, with our addons. Other modules leave mitmproxy alone.

mitmproxy is imported when a wire starts, not before (300 ms), and without its thirty unused addons. It runs on the
event loop that is running already; its `Master.run` is not used, because that takes over the loop's task factory and
exception handler and tells nobody why a port could not be had.
"""

import abc
import asyncio
import errno
import importlib.util
import sys
import types
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import anyio

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.mitmlog import MitmLog
from tapeproxy.proxy.alpn import Servers
from tapeproxy.proxy.clientcerts import ClientCerts
from tapeproxy.proxy.led import Led
from tapeproxy.proxy.ledstreams import LedStream
from tapeproxy.proxy.roots import trusted_roots
from tapeproxy.proxy.wireoptions import WireError, WireOptions
from tapeproxy.tapes.errors import PortInUseError, TapeproxyError, UsageError, install
from tapeproxy.tapes.fronts import Front, Fronts

if TYPE_CHECKING:
    from mitmproxy.addons.proxyserver import Proxyserver
    from mitmproxy.connection import Client as Client
    from mitmproxy.master import Master

    from tapeproxy.addons.fronting import FrontIn
    from tapeproxy.addons.sockets import Resets

_CA = "mitmproxy-ca.pem"
_NEVER = 365 * 24 * 3600
"""Seconds before mitmproxy drops a silent connection: an agent may think, or a model stream nothing, for long."""
_GRACE = 5.0
"""Seconds for exchanges under way to end by themselves."""
_CLOSING = 5.0
"""Seconds for connections to run their last hooks once they are cancelled."""


class MitmWire(abc.ABC):
    """One running mitmproxy, as an async context manager or by hand. Its globals allow one a process at a time.

    `failures` counts everything that went wrong while taping.
    """

    _running: "ClassVar[MitmWire | None]" = None

    def __init__(self, options: WireOptions) -> None:
        self.failures = Failures()
        self.port = 0
        self._options = options
        self._log = MitmLog(self.failures)
        self._certs = ClientCerts(options.host_certs)
        self._master: Master | None = None
        self._server: Proxyserver
        self._doors: list[asyncio.Server] = []
        self._led: Led | None = None
        self._fronts: FrontIn

    @abc.abstractmethod
    def _taping(self, resets: "Resets") -> list[object]:
        """The addons that tape; called at each start, before `_gates` and `_refused`."""

    @abc.abstractmethod
    def _gates(self) -> list[object]:
        """The addons that keep out of what is not to be taped."""

    @abc.abstractmethod
    def _refused(self, line: bytes, reason: str, server: tuple[str, int] | None, client: "Client") -> None:
        """Hear of a request that mitmproxy answered by itself, as h1fixes.apply tells it."""

    @abc.abstractmethod
    async def _idle(self) -> None:
        """Wait until no exchange is under way."""

    async def start(self) -> int:
        """Listen; returns the port. Raises PortInUseError, WireError, or UsageError for a setting that can't be."""
        if MitmWire._running is not None:
            raise RuntimeError("a record wire is running in this process")
        slim_imports()
        ca = self._options.confdir / _CA
        if not ca.is_file():
            raise WireError("there is no certificate authority here", where=str(ca))  # or mitmproxy would make one
        MitmWire._running = self
        self._log.attach()
        try:
            master = self._build()
            await self._listen(master)
        except BaseException:
            await self._clean_up()
            raise
        return self.port

    async def open_door(self, host: str, port: int = 0) -> int:
        """Listen on one more port of `host`; returns it. Raises PortInUseError."""
        (instance,) = self._server.servers
        try:
            door = await asyncio.start_server(instance.handle_stream, host, port)
        except OSError as error:
            raise PortInUseError(host, port, (error.strerror or str(error)).lower()) from None
        self._doors.append(door)
        bound: int = door.sockets[0].getsockname()[1]
        return bound

    async def open_fronts(self, fronts: Iterable[Front]) -> Fronts:
        """Open a port in front of each of these URLs. Raises PortInUseError."""
        self._fronts.fronts = Fronts({await self.open_door("127.0.0.1", one.port): one for one in fronts})
        return self._fronts.fronts

    async def open_led(self, led: Led, loopback: Iterable[int]) -> None:
        """Take all connections of this process's namespace too. Raises UsageError."""
        (instance,) = self._server.servers
        self._led = led
        await led.open(lambda led: LedStream(led, instance.handle_stream), loopback)

    async def drain(self, timeout: float = _GRACE) -> None:
        """Take no new clients, give exchanges under way `timeout` seconds, then disconnect everyone.

        The hooks that tape how the remaining ones ended have run when this returns: seal the tape after it, not before.
        """
        if self._master is None:
            return
        self._close_doors()
        await self._server.servers.update([])
        with anyio.move_on_after(timeout):
            await self._idle()
        await self._disconnect(self._server.connections)

    async def _disconnect(self, clients: Collection[object]) -> None:
        """Disconnect the clients with these ids, and wait until their last hooks have run. `clients` may shrink."""
        for handler in [one for known, one in self._server.connections.items() if known in clients]:
            io = handler.transports.get(handler.client)
            if io is not None and io.handler is not None:
                io.handler.cancel("the recording has ended")
        with anyio.move_on_after(_CLOSING):
            # mitmproxy has no event for a connection that is wholly gone
            while any(known in clients for known in self._server.connections):
                await anyio.sleep(0.002)

    async def stop(self) -> None:
        """End mitmproxy; again does nothing, and `start` begins anew. What `drain` did not end is taped as cut off."""
        if MitmWire._running is self:
            await self._clean_up()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # Also when this task is being cancelled, and then at once: the tape needs its ends.
        with anyio.CancelScope(shield=True):
            await self.drain(_GRACE if kind is None else 0)
            await self.stop()

    def _build(self) -> "Master":
        from mitmproxy import options as mitm_options
        from mitmproxy.addons import core, disable_h2c, next_layer, proxyserver, tlsconfig
        from mitmproxy.exceptions import OptionsError
        from mitmproxy.master import Master

        from tapeproxy.addons import h1fixes, h2fixes, passing
        from tapeproxy.addons.sockets import Resets

        resets = Resets()
        h1fixes.apply(resets.was_reset, self._refused)
        h2fixes.apply()
        passing.apply()
        # The CA's place has to be known before TlsConfig is added, or mitmproxy makes one in the home folder.
        settings: Any = mitm_options.Options(confdir=str(self._options.confdir))
        master = self._master = Master(settings)
        self._server = proxyserver.Proxyserver()  # type: ignore[no-untyped-call]  # mitmproxy's
        registry: Any = master.addons  # its methods have no types
        try:
            registry.add(core.Core(), disable_h2c.DisableH2C(), self._server, next_layer.NextLayer())
            registry.add(*self._addons(resets), tlsconfig.TlsConfig())
            settings.update(**self._settings())
        except OptionsError as error:
            raise UsageError(str(error)) from None
        return master

    def _addons(self, resets: "Resets") -> list[object]:
        """Ours, in the order that their hooks run in: what is taped is what the client sent, not what we make of it."""
        from tapeproxy.addons.fronting import FrontIn, FrontOut
        from tapeproxy.addons.hangup import HangUp
        from tapeproxy.addons.hostmap import HostMap
        from tapeproxy.addons.inline import InlineHooks
        from tapeproxy.addons.negotiation import Negotiation
        from tapeproxy.addons.offers import Offers
        from tapeproxy.addons.quickack import QuickAck
        from tapeproxy.addons.upstream import UpstreamErrors, UpstreamProxy, bypasses, parse_upstream

        failures, given = self.failures, self._options
        hosts = HostMap(given.hosts, failures)
        upstream = None if given.upstream is None else parse_upstream(given.upstream)
        servers = Servers(
            hosts.place,
            lambda host, port: None if bypasses(host, port, given.no_proxy) else upstream,
            self._speaks_http2,
        )
        self._fronts = FrontIn(Fronts(), failures)
        addons: list[object] = [
            InlineHooks(failures),
            QuickAck(failures),
            resets,
            self._fronts,
            *([] if upstream is None else [UpstreamErrors(upstream, failures)]),
            *self._taping(resets),
            Offers(failures),
            FrontOut(failures),
            HangUp(resets, failures),
            *self._gates(),
            Negotiation(servers.speak_http2, failures, self._plain_port(), lambda at: at in self._fronts.fronts.open),
            hosts,
        ]
        if upstream is not None:
            addons.append(UpstreamProxy(upstream, given.no_proxy, failures))
        return addons

    def _speaks_http2(self, _host: str, _port: int) -> bool | None:
        """Whether HTTP/2 is spoken with a server, where it is known without asking it."""
        return None

    def _plain_port(self) -> int:
        """A port of our own on loopback with which HTTP/1.1 is spoken; 0: there is none."""
        return 0

    def _settings(self) -> dict[str, Any]:
        from tapeproxy.addons.upstream import parse_upstream

        given = self._options
        settings: dict[str, Any] = {
            "listen_host": given.host,
            "listen_port": given.port,
            "connection_strategy": "lazy",  # a request is on the tape before anybody is called
            "upstream_cert": False,
            "http2_ping_keepalive": 0,  # servers of gRPC break off with who pings them unasked
            "tcp_timeout": _NEVER,
            # A server that sends both length and chunked is the agent's affair, as it would be without us.
            "validate_inbound_headers": False,
        }
        if given.upstream is not None:
            settings["mode"] = [f"upstream:{parse_upstream(given.upstream).spec}"]
        if given.upstream_ca is not None or given.roots:
            roots = trusted_roots(given.upstream_ca, given.roots, given.confdir)
            settings["ssl_verify_upstream_trusted_ca"] = str(roots)
        if (certs := self._certs.place() or given.client_certs) is not None:
            settings["client_certs"] = str(certs)
        return settings

    async def _listen(self, master: "Master") -> None:
        listening = await self._server.setup_servers()
        if not listening:
            raise self._bind_error()
        await master.running()
        if self.failures.first is not None:
            raise WireError(f"the record wire could not start: {self.failures.first}")
        self.port = self._server.listen_addrs()[0][1]

    def _bind_error(self) -> TapeproxyError:
        given = self._options
        causes = [server.last_exception for server in self._server.servers if server.last_exception is not None]
        cause = causes[0].__cause__ if causes else None
        if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
            return PortInUseError(given.host, given.port, "it is in use")
        reason = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
        return WireError(f"the record wire cannot listen: {reason.lower()}", where=f"{given.host}:{given.port}")

    def _close_doors(self) -> None:
        for door in self._doors:
            door.close()
        if self._led is not None:
            self._led.close()
        self._doors.clear()

    async def _clean_up(self) -> None:
        master, self._master = self._master, None
        self._close_doors()
        try:
            if master is not None:
                await self._server.servers.update([])
                await master.done()
        finally:
            self._certs.close()
            self._log.detach()
            MitmWire._running = None


def slim_imports() -> None:
    """Keep `mitmproxy.addons` from importing all of its addons (flask, ldap3, ...): a third of the start-up time.

    Has to run before anything imports it; does nothing where somebody has.
    """
    if "mitmproxy.addons" in sys.modules:
        return
    spec = importlib.util.find_spec("mitmproxy")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("recording needs mitmproxy", fix=f"install it with: {install('record')}")
    package = types.ModuleType("mitmproxy.addons")
    package.__path__ = [str(Path(spec.submodule_search_locations[0]) / "addons")]
    sys.modules["mitmproxy.addons"] = package
