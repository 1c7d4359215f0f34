"""The environment of a taped child, as a value. Knows which variables clients read; sets none, reads none itself.

Sources: curl(1), git-config(1) and the documents of requests, httpx, aiohttp, pip, Node, Deno, gRPC, boto3, Go
(net/http, crypto/x509), cargo, httplib2, npm and uv.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tapeproxy.proxy.processes import RUN_VARIABLE
from tapeproxy.proxy.unlocking import SECRETS
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.secretvars import placeholder_names

type Shell = Literal["sh", "fish"]

# curl reads http_proxy in lower case only, others prefer either; ALL_PROXY is what httpx, curl and websockets fall
# back to for schemes without a variable of their own. gRPC reads https_proxy.
_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")

# Each names one file, instead of the client's own roots.
_BUNDLE = (
    "SSL_CERT_FILE",  # OpenSSL, and so Python and Ruby; httpx, Go, rustls, uv
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",  # curl; requests too
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",  # gRPC brings its own roots and looks at nothing else
    "HTTPLIB2_CA_CERTS",  # Google's API client; it brings certifi
)
# Read only where somebody set them, and then they win over the ones above.
_BUNDLE_IF_SET = (
    "NIX_SSL_CERT_FILE",
    "NPM_CONFIG_CAFILE",
    "npm_config_cafile",
    "WEBSOCKET_CLIENT_CA_BUNDLE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
)
# Read on top of the client's own roots.
_CERTIFICATE = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")

OURS: tuple[str, ...] = (*_PROXY, *_NO_PROXY, *_BUNDLE, *_CERTIFICATE, "NODE_USE_ENV_PROXY", RUN_VARIABLE)
"""The names that every child gets. `child_environment` sets a few more where the parent has them."""

REPLAY_VARIABLE = "TAPEPROXY_REPLAY"
"""Set in replays and forks, with the shim or without: what passes by HTTP_PROXY comes from a tape."""
BEFORE_VARIABLE = "TAPEPROXY_BEFORE"
"""Set in recordings: a JSON object of the variables that we have changed and the user had set, as they were. An MCP
server on stdio, which is outside of the run, gets them back."""

# A proxy or an exception for one client or scheme would win over ours; without it they fall back to ours.
_OVERRIDING = re.compile(
    r"(no_)?(grpc|ws|wss|ftp|socks|pip|cargo_http|yarn_https?|npm_config(_https?)?|global_agent_https?)_proxy"
    r"|npm_config_no_?proxy|global_agent_no_proxy",
    re.IGNORECASE,
)
# A second place for roots, which OpenSSL adds to SSL_CERT_FILE: one place is enough to reason about.
# Pinned by the shim, or led to it.
PINNED: tuple[str, ...] = ("PYTHONHASHSEED", "TMPDIR", "NODE_OPTIONS", "SSL_CERT_DIR")
# What opens the user's encrypted tapes is no business of an agent's.
_REMOVED = ("SSL_CERT_DIR", *SECRETS)

JAVA_VARIABLE = "JAVA_TOOL_OPTIONS"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """What the child is to be told. `placeholders` maps each secret variable set when recording to a stand-in.

    `replay`: what passes by the proxy comes from a tape, or is refused.
    `truststore`: the roots as Java reads them, where Java is to be told.
    """

    proxy_url: str
    bundle: Path
    certificate: Path
    run_id: str
    placeholders: Mapping[str, str] = field(default_factory=dict[str, str])
    replay: bool = False
    truststore: Path | None = None


@dataclass(frozen=True, slots=True)
class UpstreamWorld:
    """What the user's own environment says about the way out, for whoever goes there in the child's stead.

    `proxy` is a URL with a scheme, perhaps with credentials; `no_proxy` are its exceptions as they were written.
    `ca_file` has the roots that most clients read; `named` are all files and folders of roots that any was told of.
    """

    proxy: str | None = None
    ca_file: Path | None = None
    no_proxy: tuple[str, ...] = ()
    named: tuple[Path, ...] = ()

    def proxy_for(self, host: str, port: int) -> str | None:
        """The proxy through which to reach `host`, or None to go there directly."""
        return None if any(_covers(entry, host.strip("[]"), port) for entry in self.no_proxy) else self.proxy


def check_keys(environment: Mapping[str, str]) -> None:
    """Raise UsageError where a variable holds what a replay gives for a key: whoever calls the world would send it."""
    if names := placeholder_names(environment):
        which, holds = ", ".join(names), "holds" if len(names) == 1 else "hold"
        raise UsageError(
            f"{which} {holds} a placeholder of a replay, which is no key",
            fix=f"set the key itself, or unset {which}",
        )


def child_environment(parent: Mapping[str, str], settings: ChildSettings) -> dict[str, str]:
    """The whole environment of the child: the parent's, with every client's proxy and trust pointing at us."""
    placeholders = {
        name: value
        for name, value in settings.placeholders.items()
        if _NAME.fullmatch(name) and not parent.get(name) and name not in _REMOVED
    }
    kept = {name: value for name, value in parent.items() if name not in _REMOVED and not _OVERRIDING.fullmatch(name)}
    return kept | placeholders | _ours(parent, settings) | _java(parent, settings)


def _java(parent: Mapping[str, str], settings: ChildSettings) -> dict[str, str]:
    """What leads Java's own HTTP clients to us. Every JVM says on stderr that it has picked it up."""
    if settings.truststore is None:
        return {}
    from urllib.parse import urlsplit

    from tapeproxy.proxy.ca import TRUST_PASSWORD

    proxy = urlsplit(settings.proxy_url)
    words = [
        *filter(None, [parent.get(JAVA_VARIABLE, "").strip()]),
        *(f"-D{scheme}.proxyHost={proxy.hostname}" for scheme in ("http", "https")),
        *(f"-D{scheme}.proxyPort={proxy.port}" for scheme in ("http", "https")),
        "-Dhttp.nonProxyHosts=",  # its default is loopback
        f'-Djavax.net.ssl.trustStore="{settings.truststore}"',
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={TRUST_PASSWORD}",
    ]
    return {JAVA_VARIABLE: " ".join(words)}


def _ours(parent: Mapping[str, str], settings: ChildSettings) -> dict[str, str]:
    bundled = (*_BUNDLE, *(name for name in _BUNDLE_IF_SET if name in parent))
    return {
        **dict.fromkeys(_PROXY, settings.proxy_url),
        **dict.fromkeys(_NO_PROXY, ""),
        **dict.fromkeys(bundled, str(settings.bundle)),
        # Who was told of more roots may need them where --no-tape lets it through.
        **{name: str(settings.bundle if parent.get(name) else settings.certificate) for name in _CERTIFICATE},
        "NODE_USE_ENV_PROXY": "1",  # Node 24 and 22.21; before that Node has no proxy of its own
        RUN_VARIABLE: settings.run_id,
        **({REPLAY_VARIABLE: "1"} if settings.replay else _before(parent)),
    }


def _before(parent: Mapping[str, str]) -> dict[str, str]:
    names = (*OURS, *_BUNDLE_IF_SET, *PINNED)
    changed = {name: parent[name] for name in parent if name in names or _OVERRIDING.fullmatch(name)}
    return {BEFORE_VARIABLE: json.dumps(changed)} if changed else {}


def upstream_of(parent: Mapping[str, str]) -> UpstreamWorld:
    """Read the way out from the environment that the user gave us. An empty variable is as good as none."""
    proxy = _first(parent, ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY"))
    ca_file = _first(parent, ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))
    no_proxy = _first(parent, ("no_proxy", "NO_PROXY"))
    return UpstreamWorld(
        proxy=f"http://{proxy}" if proxy and "://" not in proxy else proxy or None,
        ca_file=Path(ca_file) if ca_file else None,
        no_proxy=tuple(no_proxy.replace(",", " ").split()),
        named=tuple(dict.fromkeys(_named(parent))),
    )


def _named(parent: Mapping[str, str]) -> Iterator[Path]:
    for name in (*_BUNDLE, *_BUNDLE_IF_SET, *_CERTIFICATE):
        if value := parent.get(name, "").strip():
            yield Path(value)
    yield from (Path(folder) for folder in parent.get("SSL_CERT_DIR", "").split(os.pathsep) if folder.strip())


def _first(parent: Mapping[str, str], names: Iterable[str]) -> str:
    return next((value for name in names if (value := parent.get(name, "").strip())), "")


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether a NO_PROXY entry means this host, read as curl and Go do.

    A name stands for itself and all below it, with or without a dot or `*.` in front; a port may follow; an address
    may be a network.
    """
    import ipaddress

    if entry == "*":
        return True
    name, _, wanted = entry.rpartition(":")
    if wanted.isdigit() and (":" not in name or name.endswith("]")):
        if int(wanted) != port:
            return False
    else:
        name = entry
    name = name.strip("[]").lower()
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:
        suffix = name.removeprefix("*").lstrip(".")
        return f".{host.lower()}".endswith(f".{suffix}") if suffix else False


@dataclass(frozen=True, slots=True)
class Change:
    """How one environment becomes another: variables to set, names to remove."""

    set: Mapping[str, str]
    unset: tuple[str, ...]


def difference(parent: Mapping[str, str], child: Mapping[str, str]) -> Change:
    """What a shell with the `parent` environment has to do to get the `child`'s."""
    return Change(
        set={name: value for name, value in child.items() if parent.get(name) != value},
        unset=tuple(name for name in parent if name not in child),
    )


def render_exports(env: Mapping[str, str], shell: Shell = "sh") -> str:
    """Lines for `eval` that set these variables. Names that no shell can set are left out."""
    form = {"sh": "export {}={};\n", "fish": "set -gx {} {};\n"}[shell]
    return "".join(form.format(name, _quote(value, shell)) for name, value in env.items() if _NAME.fullmatch(name))


def render_unsets(names: Iterable[str], shell: Shell = "sh") -> str:
    """Lines for `eval` that remove these variables."""
    form = {"sh": "unset {};\n", "fish": "set -e {};\n"}[shell]
    return "".join(form.format(name) for name in names if _NAME.fullmatch(name))


def _quote(value: str, shell: Shell) -> str:
    if shell == "fish":  # within single quotes fish knows \' and \\ (fish-language(1))
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + value.replace("'", "'\\''") + "'"
