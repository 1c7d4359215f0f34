"""The child's environment: tables for the rules, real clients and shells for whether they hold."""

import contextlib
import dataclasses
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import (
    ChildSettings,
    Shell,
    UpstreamWorld,
    child_environment,
    difference,
    render_exports,
    render_unsets,
    upstream_of,
)

SETTINGS = ChildSettings(
    proxy_url="http://127.0.0.1:4711",
    bundle=Path("/home/me/bundle.pem"),
    certificate=Path("/home/me/ca.pem"),
    run_id="run-1",
    placeholders={"OPENAI_API_KEY": "sk-placeholder", "GITHUB_TOKEN": "ghp-placeholder"},
)


def test_an_empty_parent_shows_all_that_we_set() -> None:
    assert child_environment({}, SETTINGS) == {
        **dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"], "http://127.0.0.1:4711"),
        **dict.fromkeys(["http_proxy", "https_proxy", "all_proxy"], "http://127.0.0.1:4711"),
        "NO_PROXY": "",
        "no_proxy": "",
        "SSL_CERT_FILE": "/home/me/bundle.pem",
        "REQUESTS_CA_BUNDLE": "/home/me/bundle.pem",
        "CURL_CA_BUNDLE": "/home/me/bundle.pem",
        "GIT_SSL_CAINFO": "/home/me/bundle.pem",
        "PIP_CERT": "/home/me/bundle.pem",
        "AWS_CA_BUNDLE": "/home/me/bundle.pem",
        "CARGO_HTTP_CAINFO": "/home/me/bundle.pem",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": "/home/me/bundle.pem",
        "HTTPLIB2_CA_CERTS": "/home/me/bundle.pem",
        "NODE_EXTRA_CA_CERTS": "/home/me/ca.pem",
        "DENO_CERT": "/home/me/ca.pem",
        "NODE_USE_ENV_PROXY": "1",
        "TAPEPROXY_RUN": "run-1",
        "OPENAI_API_KEY": "sk-placeholder",
        "GITHUB_TOKEN": "ghp-placeholder",
    }


def test_java_is_led_here_where_it_is_told() -> None:
    java = dataclasses.replace(SETTINGS, truststore=Path("/home/my own/bundle.p12"))
    told = child_environment({"JAVA_TOOL_OPTIONS": "-Xmx1g "}, java)["JAVA_TOOL_OPTIONS"]
    assert told == (
        "-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttps.proxyHost=127.0.0.1 -Dhttp.proxyPort=4711 -Dhttps.proxyPort=4711 "
        '-Dhttp.nonProxyHosts= -Djavax.net.ssl.trustStore="/home/my own/bundle.p12" '
        "-Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit"
    )
    assert child_environment({"JAVA_TOOL_OPTIONS": "-Xmx1g"}, SETTINGS)["JAVA_TOOL_OPTIONS"] == "-Xmx1g"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("PATH", "/bin", "/bin"),
        ("BEHIND_PROXY", "1", "1"),
        ("HTTPS_PROXY", "http://corp:3128", "http://127.0.0.1:4711"),
        ("no_proxy", "localhost", ""),
        ("NO_PROXY", "*", ""),
        ("SSL_CERT_FILE", "/etc/corp.pem", "/home/me/bundle.pem"),
        ("SSL_CERT_DIR", "/etc/ssl/certs", None),
        ("NODE_EXTRA_CA_CERTS", "/etc/corp.pem", "/home/me/bundle.pem"),
        ("NIX_SSL_CERT_FILE", "/nix/x.pem", "/home/me/bundle.pem"),
        ("npm_config_cafile", "/etc/corp.pem", "/home/me/bundle.pem"),
        ("grpc_proxy", "http://corp:3128", None),
        ("no_grpc_proxy", "localhost", None),
        ("WSS_PROXY", "http://corp:3128", None),
        ("socks_proxy", "socks5://corp:1080", None),
        ("npm_config_https_proxy", "http://corp:3128", None),
        ("NPM_CONFIG_NOPROXY", "localhost", None),
        ("PIP_PROXY", "http://corp:3128", None),
        ("TAPEPROXY_RUN", "outer", "run-1"),
        ("TAPEPROXY_PASSPHRASE", "correct horse", None),
        ("TAPEPROXY_PASSPHRASE_FILE", "/home/me/words", None),
        ("TAPEPROXY_KEY_FILE", "/home/me/tapes.key", None),
        ("OPENAI_API_KEY", "sk-real", "sk-real"),
        ("OPENAI_API_KEY", "", "sk-placeholder"),
    ],
)
def test_what_becomes_of_the_parents_variables(name: str, value: str, expected: str | None) -> None:
    parent = {name: value, "OTHER": "kept"}
    child = child_environment(parent, SETTINGS)
    assert child.get(name) == expected
    assert child["OTHER"] == "kept"
    assert parent == {name: value, "OTHER": "kept"}


@pytest.mark.parametrize("name", ["", "A=B", "A B", "X;true", "1A", "A\0", "A\n"])
def test_a_tape_cannot_name_a_variable_that_is_none(name: str) -> None:
    settings = ChildSettings("http://p", Path("b"), Path("c"), "r", {name: "value"})
    assert name not in child_environment({}, settings)


def test_a_placeholder_cannot_take_the_place_of_ours() -> None:
    settings = ChildSettings("http://p", Path("b"), Path("c"), "r", {"HTTPS_PROXY": "http://evil"})
    assert child_environment({}, settings)["HTTPS_PROXY"] == "http://p"


def test_what_opens_tapes_has_no_placeholder_either() -> None:
    settings = ChildSettings("http://p", Path("b"), Path("c"), "r", {"TAPEPROXY_PASSPHRASE": "x"})
    assert "TAPEPROXY_PASSPHRASE" not in child_environment({}, settings)


# --- the way out ---


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        ({}, UpstreamWorld()),
        ({"HTTPS_PROXY": "", "SSL_CERT_FILE": " "}, UpstreamWorld()),
        ({"HTTPS_PROXY": "http://u:p@corp:3128"}, UpstreamWorld(proxy="http://u:p@corp:3128")),
        ({"https_proxy": "corp:3128", "HTTPS_PROXY": "http://other"}, UpstreamWorld(proxy="http://corp:3128")),
        ({"http_proxy": "http://a", "ALL_PROXY": "socks5://b"}, UpstreamWorld(proxy="socks5://b")),
        ({"http_proxy": "http://a"}, UpstreamWorld(proxy="http://a")),
        ({"REQUESTS_CA_BUNDLE": "/r.pem"}, UpstreamWorld(ca_file=Path("/r.pem"), named=(Path("/r.pem"),))),
        (
            {"REQUESTS_CA_BUNDLE": "/r.pem", "SSL_CERT_FILE": "/s.pem", "CURL_CA_BUNDLE": "/r.pem"},
            UpstreamWorld(ca_file=Path("/s.pem"), named=(Path("/s.pem"), Path("/r.pem"))),
        ),
        (
            {"NODE_EXTRA_CA_CERTS": "/n.pem", "AWS_CA_BUNDLE": "/a.pem", "SSL_CERT_DIR": "/d:/e"},
            UpstreamWorld(named=(Path("/a.pem"), Path("/n.pem"), Path("/d"), Path("/e"))),
        ),
        ({"no_proxy": "a, b  c,,", "NO_PROXY": "d"}, UpstreamWorld(no_proxy=("a", "b", "c"))),
    ],
)
def test_upstream_of(parent: Mapping[str, str], expected: UpstreamWorld) -> None:
    assert upstream_of(parent) == expected


@pytest.mark.parametrize(
    ("entry", "host", "direct"),
    [
        ("*", "api.example.com", True),
        ("example.com", "example.com", True),
        ("example.com", "api.EXAMPLE.com", True),
        ("example.com", "notexample.com", False),
        (".example.com", "api.example.com", True),
        ("*.example.com", "api.example.com", True),
        ("api.example.com", "example.com", False),
        ("example.com:443", "example.com", True),
        ("example.com:80", "example.com", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "::1", False),
        ("::1", "::1", True),
        ("::1", "[::1]", True),
        ("[::1]:443", "::1", True),
        ("[::1]:80", "::1", False),
        (".", "example.com", False),
        (":443", "example.com", False),
    ],
)
def test_exceptions_from_the_upstream_proxy(entry: str, host: str, direct: bool) -> None:
    world = UpstreamWorld(proxy="http://corp", no_proxy=("unrelated.example", entry))
    assert world.proxy_for(host, 443) == (None if direct else "http://corp")


def test_without_an_upstream_proxy_all_is_direct() -> None:
    assert UpstreamWorld().proxy_for("example.com", 443) is None


# --- shells ---

NASTY = {
    "PLAIN": "a b",
    "QUOTES": "it's \"quoted\" `date` $(date) $HOME \\ \\' !",
    "LINES": "one\ntwo\n",
    "EMPTY": "",
    "UNICODE": "käse",
    "STAR": "*",
}


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish"])
@pytest.mark.parametrize("eval_form", ['eval "$TEXT"', "eval $TEXT"], ids=["quoted", "bare"])
def test_a_real_shell_evaluates_the_exports(shell: str, eval_form: str) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} on this machine")
    dialect: Shell = "fish" if shell == "fish" else "sh"
    values = NASTY if '"' in eval_form else {"PLAIN": "a", "OTHER": "b"}
    text = render_exports({**values, "BASH_FUNC_x%%": "() { :; }"}, dialect) + render_unsets(["GONE", "A;B"], dialect)
    show = f"{sys.executable} -c 'import os, sys; sys.stdout.buffer.write(repr(dict(os.environb)).encode())'"
    done = subprocess.run(
        [path, "-c", f"{eval_form}; {show}"], env={"TEXT": text, "GONE": "x"}, capture_output=True, check=True
    )
    assert done.stderr == b""
    seen = eval(done.stdout)
    assert {name: seen.get(name.encode(), b"?").decode() for name in values} == values
    assert b"GONE" not in seen


def test_difference_is_what_has_to_be_exported_and_unset() -> None:
    change = difference({"A": "1", "B": "2", "C": "3"}, {"A": "1", "B": "x", "D": ""})
    assert change.set == {"B": "x", "D": ""}
    assert change.unset == ("C",)


# --- real clients ---


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy that answers every CONNECT itself, with a leaf of ours, and notes for whom it did."""

    daemon_threads = True

    def __init__(self, authority: CertificateAuthority) -> None:
        self.authority = authority
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Connection)


class Connection(socketserver.StreamRequestHandler):
    server: Proxy  # pyright: ignore[reportIncompatibleVariableOverride] - narrower than the base's, on purpose

    def handle(self) -> None:
        _, target, _ = self.rfile.readline().split()
        while self.rfile.readline().strip():
            pass
        host = target.decode().rpartition(":")[0]
        self.server.asked.append(host)
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        context = self.server.authority.server_context(host)
        with context.wrap_socket(self.connection, server_side=True) as tls:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                request += tls.recv(65536)
            tls.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")


@contextlib.contextmanager
def serving(authority: CertificateAuthority) -> Iterator[Proxy]:
    with Proxy(authority) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


def python(code: str) -> Callable[[str], list[str]]:
    return lambda url: [sys.executable, "-c", code, url]


CLIENTS = {
    "urllib": python("import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"),
    "httpx": python("import sys, httpx; print(httpx.get(sys.argv[1]).text)"),
    "requests": python("import sys, requests; print(requests.get(sys.argv[1]).text)"),
    "curl": lambda url: ["curl", "-sS", url],
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.open(tmp_path_factory.mktemp("ca"))


@pytest.mark.parametrize("host", ["api.example.com", "localhost"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_real_client_takes_our_proxy_and_trusts_our_leaf(
    authority: CertificateAuthority, client: str, host: str
) -> None:
    if client == "curl" and shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    parent = {"PATH": "/usr/bin:/bin", "NO_PROXY": "localhost", "SSL_CERT_DIR": "/nowhere"}
    with serving(authority) as proxy:
        settings = ChildSettings(
            proxy_url=f"http://127.0.0.1:{proxy.server_address[1]}",
            bundle=authority.bundle(),
            certificate=authority.certificate,
            run_id="run-1",
        )
        done = subprocess.run(
            CLIENTS[client](f"https://{host}/"), env=child_environment(parent, settings), capture_output=True, text=True
        )
    assert (done.stdout.strip(), done.stderr) == ("hello", "")
    assert proxy.asked == [host]
