"""Whom the wire trusts: what any client of the run would, and what is no good is nobody's loss."""

import ssl
import subprocess
import sys
from pathlib import Path

import certifi
import pytest
from authority import Authority
from clirun import Cli
from origin import Call, Origin

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import UpstreamWorld, upstream_of
from tapeproxy.proxy.roots import agents_bundle, trusted_roots


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path, tmp_path / "home")


@pytest.fixture
def corporate(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "corporate", "a company's CA")


def names(path: Path) -> set[str]:
    """Of the authorities in a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    return {str(one["subject"]) for one in context.get_ca_certs()}


def test_what_clients_were_told_of_is_trusted_and_what_is_no_good_left_out(
    tmp_path: Path, corporate: Authority
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "0a1b2c3d.0").write_bytes(corporate.cert.read_bytes())
    (folder / "README").write_text("none of these")
    broken = Path(__file__).with_name("broken.pem")
    public = names(Path(certifi.where()))
    for others in ([corporate.cert], [folder], [tmp_path / "none", broken, Path(__file__), corporate.cert]):
        (new,) = names(trusted_roots(None, others, tmp_path)) - public
        assert "a company's CA" in new
    assert names(trusted_roots(None, [broken], tmp_path)) == public
    first = trusted_roots(None, [corporate.cert], tmp_path)
    assert trusted_roots(None, [corporate.cert, corporate.cert], tmp_path) == first
    assert first.read_bytes().count(b"BEGIN CERTIFICATE") == len(public) + 1
    assert trusted_roots(corporate.cert, [], tmp_path).read_bytes() == first.read_bytes()


def test_where_hosts_pass_by_the_agents_clients_trust_what_they_did(tmp_path: Path, corporate: Authority) -> None:
    ca = CertificateAuthority.open(tmp_path / "ours")
    world = upstream_of({"NODE_EXTRA_CA_CERTS": str(corporate.cert), "AWS_CA_BUNDLE": __file__ + ".none"})
    assert agents_bundle(ca, UpstreamWorld(), passing=False) == ca.bundle()
    more = names(agents_bundle(ca, world, passing=True)) - names(agents_bundle(ca, world, passing=False))
    assert any("a company's CA" in name for name in more)


ASK = "import ssl, sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"


async def hello(call: Call) -> None:
    await call.reply(b"hello")


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
def test_a_root_that_one_client_was_told_of_is_one_of_the_recordings(
    cli: Cli, corporate: Authority, variable: str
) -> None:
    agent = [sys.executable, "-c", ASK]
    with Origin(hello, tls=corporate.serving("127.0.0.1")) as origin:
        env = {variable: str(corporate.cert)}
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", "--", *agent, origin.url, env=env)
    assert (recorded.returncode, recorded.stdout) == (0, "hello\n"), recorded.stderr


def test_a_root_in_the_systems_store_is_one_of_the_recordings(cli: Cli, corporate: Authority) -> None:
    """In a mount namespace of its own, where the store is another file."""
    store = Path("/etc/ssl/certs/ca-certificates.crt")
    script = 'mount --bind "$0" "$1" && shift && exec "$@"'
    own = ["unshare", "-rm", "sh", "-c", script, str(corporate.cert), str(store)]
    if not store.is_file() or subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no such store here, or no mount namespace")
    with Origin(hello, tls=corporate.serving("127.0.0.1")) as origin:
        argv = [sys.executable, "-m", "tapeproxy.cli.main", "record", "-o", "t.tape.jsonl.gz", "--"]
        done = subprocess.run(
            [*own, *argv, sys.executable, "-c", ASK, origin.url],
            cwd=cli.cwd,
            env=cli.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
