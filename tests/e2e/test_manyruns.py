"""Many runs behind one proxy: real clients at the same time, each on a tape of its own, with no mixing."""

import contextlib
import gzip
import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from clirun import HOSTS, KEYS, Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

PY = sys.executable
AGENTS = Path(__file__).parent / "agents"
CLIENTS = ("openai", "requests", "aiohttp", "curl")
CROWD = {f"{client}-{n}": client for n in (1, 2) for client in CLIENTS}
"""Names of runs, and the client of each. The first of each kind has a shell's variables, the second a URL alone."""

FEW = ("openai-1", "requests-2", "aiohttp-2", "curl-1")
"""Each client once, each way twice."""
ALONE = ("requests-2", "curl-1")
"""Those whose tapes are also replayed by themselves."""

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running `tapeproxy start`."""

    cli: Cli
    process: subprocess.Popen[str]
    port: int
    heard: list[str]

    def url(self, user: str) -> str:
        return f"http://{user}@127.0.0.1:{self.port}" if user else f"http://127.0.0.1:{self.port}"

    def environment(self, user: str) -> dict[str, str]:
        """What a program needs that comes without `env`."""
        bundle = str(CertificateAuthority.open(self.cli.home).bundle())
        names = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")
        trust = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), bundle)
        return self.cli.environment() | KEYS | dict.fromkeys(names, self.url(user)) | trust

    def end(self) -> tuple[int, str]:
        """Stop it; its exit code, and all that it said."""
        assert self.cli.run("stop").returncode == 0
        _, rest = self.process.communicate(timeout=60)
        return self.process.returncode, "".join(self.heard) + rest


@contextlib.contextmanager
def started(cli: Cli, *words: str) -> Iterator[Proxy]:
    process = cli.start("start", *words, keys="--record" in words, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    try:
        heard = [process.stderr.readline()]
        found = re.search(r"listening on [^ ]*:(\d+);", heard[0])
        assert found is not None, heard[0] + process.stderr.read()
        yield Proxy(cli, process, int(found[1]), heard)
    finally:
        process.kill()
        process.communicate()


def argv_of(name: str) -> list[str]:
    client = CROWD[name]
    return ["sh", str(AGENTS / "crowd.sh"), name] if client == "curl" else [PY, str(AGENTS / "crowd.py"), name, client]


def begin(argv: Sequence[str], cli: Cli, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv,
        cwd=cli.cwd,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def all_at_once(running: dict[str, subprocess.Popen[str]]) -> dict[str, str]:
    """Let them ask, and hear them out: what each has printed."""
    for process in running.values():
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {}
    for name, process in running.items():
        stdout, stderr = process.communicate(timeout=90)
        assert process.returncode == 0, f"{name}: {stderr}"
        said[name] = stdout
    return said


def crowd(proxy: Proxy, names: Iterable[str]) -> dict[str, str]:
    """Run agents through a proxy, all at once."""
    running = {}
    for name in names:
        if name.endswith("1"):
            shell = f'eval "$({PY} -m tapeproxy.cli.main env --tape {name})" && exec "$@"'
            argv, environment = ["sh", "-c", shell, "sh", *argv_of(name)], proxy.cli.environment(keys=True)
        else:
            argv, environment = argv_of(name), proxy.environment(f"{name}:x")
        running[name] = begin(argv, proxy.cli, environment)
    return all_at_once(running)


def bytes_of(body: object) -> bytes:
    assert isinstance(body, bytes)
    return body


def asked_of(path: Path) -> list[str]:
    """The names that stand in what was asked, one for each exchange."""
    tape, ending = load(path)
    assert ending.canonical, path
    found = [
        re.search(rb"(?:q=|\")(\w+-\d)\.", e.request.url + b" " + bytes_of(e.request.body)) for e in tape.exchanges
    ]
    return ["" if match is None else match[1].decode() for match in found]


@pytest.mark.parametrize(
    "names", [pytest.param(FEW, id="four"), pytest.param(tuple(CROWD), id="eight", marks=pytest.mark.soak)]
)
def test_agents_at_once_have_a_tape_each_and_replay_alone_and_together(
    cli: Cli, provider: FakeProvider, names: tuple[str, ...]
) -> None:
    assert set(HOSTS) >= {"api.openai.com", "search.example.com"}
    with started(cli, "--record", "tapes", *maps(provider.url)) as proxy:
        recorded = crowd(proxy, names)
        status = json.loads(cli.run("status", "--json").stdout)
        assert {run["name"] for run in status["runs"]} == {*names}
        one = cli.run("stop", "curl-1")
        assert (one.returncode, "taped 12 exchanges" in one.stderr) == (0, True), one.stderr
        code, said = proxy.end()
    assert code == 0, said
    for name in names:
        owners = asked_of(cli.cwd / "tapes" / f"{name}.tape.jsonl.gz")
        assert set(owners) == {name}
        assert (f"{name}: taped {len(owners)} exchanges" in said) == (name != "curl-1"), said
    asked = [re.search(r"(\w+-\d)\.", request.target + str(request.body)) for request in provider.requests]
    turns = [match[1] for match in asked if match is not None]
    assert sum(a != b for a, b in itertools.pairwise(turns)) > len(names), "they did not come at the same time"
    assert not any("proxy-authorization" in dict(request.headers) for request in provider.requests)
    provider.stop()

    with started(cli, "--replay", "tapes") as proxy:
        assert crowd(proxy, names) == recorded
        reports = {name: cli.run("stop", name) for name in names}
        assert {name: report.returncode for name, report in reports.items()} == dict.fromkeys(names, 0), reports
        code, said = proxy.end()
    assert code == 0, said
    alone = {
        name: begin(cli.argv("replay", f"tapes/{name}.tape.jsonl.gz", "--", *argv_of(name)), cli, cli.environment())
        for name in ALONE
    }
    assert all_at_once(alone) == {name: recorded[name] for name in ALONE}


def curl(*words: str, proxy: str) -> subprocess.CompletedProcess[str]:
    argv = ["curl", "-sSk", "--max-time", "30", "-x", proxy, "-w", "\n%{http_connect} %{http_code}", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env={})


SEARCH = "https://search.example.com/search?q=tide"
IN_THE_CLEAR = "http://search.example.com/search?q=tide"


def test_a_killed_proxy_leaves_every_tape_readable(cli: Cli, provider: FakeProvider) -> None:
    names = ["one", "two", "three"]
    with started(cli, "--record", "tapes", *maps(provider.url)) as proxy:
        for name in names:
            for url in (SEARCH, IN_THE_CLEAR):
                assert curl(url, proxy=proxy.url(f"{name}:x")).stdout.endswith(" 200")
        proxy.process.send_signal(signal.SIGKILL)
        proxy.process.wait(30)
    for name in names:
        tape, ending = load(cli.cwd / "tapes" / f"{name}.tape.jsonl.gz")
        assert (len(tape.exchanges), ending.sealed, ending.lost) == (2, False, 0)
        assert all(exchange.end is not None for exchange in tape.exchanges)
    with started(cli, "--replay", "tapes") as proxy:
        assert curl(SEARCH, proxy=proxy.url("two:x")).stdout.endswith("200 200")
        done = cli.run("stop", "two")
        assert (done.returncode, "interrupted" in done.stderr) == (0, True), done.stderr


def test_past_loopback_nobody_comes_in_without_the_token(cli: Cli, provider: FakeProvider) -> None:
    for words in (["--record", "tapes", *maps(provider.url)], ["--replay", "tapes"]):
        with started(cli, *words, "--listen", "0.0.0.0") as proxy:
            assert proxy.process.stderr is not None
            proxy.heard.append(proxy.process.stderr.readline())
            token = re.search(r"http://NAME:([\w-]{20,})@", proxy.heard[-1])
            assert token is not None, proxy.heard
            for user in ("", "one", "one:x", f"one:{token[1][:-1]}", f"{token[1]}:"):
                for url in (SEARCH, IN_THE_CLEAR):
                    assert "407" in curl(url, proxy=proxy.url(user)).stdout.splitlines()[-1], (user, url)
            for url in (SEARCH, IN_THE_CLEAR):
                assert curl(url, proxy=proxy.url(f"one:{token[1]}")).stdout.endswith(" 200")
            variables = cli.run("env", "--tape", "two" if "--record" in words else "one").stdout
            assert f":{token[1]}@127.0.0.1:{proxy.port}" in variables
            code, said = proxy.end()
        assert code == (0 if "--record" in words else 3), said
        assert said.count(token[1]) == 1
        for path in (cli.cwd / "tapes").iterdir():
            assert token[1].encode() not in gzip.decompress(path.read_bytes())
    assert not any("proxy-authorization" in dict(request.headers) for request in provider.requests)


def test_a_replay_says_what_there_is_and_exits_as_replay_does(cli: Cli, provider: FakeProvider) -> None:
    with started(cli, "--record", "tapes", *maps(provider.url)) as proxy:
        assert curl(SEARCH, proxy=proxy.url("one:x")).stdout.endswith("200 200")
        assert curl(SEARCH, proxy=proxy.url("")).stdout.endswith("407 000")
        assert proxy.end()[0] == 0
    provider.stop()
    with started(cli, "--replay", "tapes") as proxy:
        # One tape alone needs no name.
        assert curl(SEARCH, proxy=proxy.url("")).stdout.endswith("200 200")
        shutil.copy(cli.cwd / "tapes" / "one.tape.jsonl.gz", cli.cwd / "tapes" / "two.tape.jsonl.gz")
        for user in ("", "three:x"):
            refused = curl(IN_THE_CLEAR, proxy=proxy.url(user))
            assert refused.stdout.endswith("000 407"), refused.stdout
            assert "one of these names: one, two" in refused.stdout
        assert curl(SEARCH.replace("tide", "moon"), proxy=proxy.url("two:x")).stdout.endswith("200 470")
        reports = {name: cli.run("stop", name, "--report", f"{name}.json") for name in ("one", "two", "three")}
        assert {name: report.returncode for name, report in reports.items()} == {"one": 0, "two": 3, "three": 2}
        assert "1 of 1 exchange served, 0 violations" in reports["one"].stderr
        assert "0 of 1 exchange served, 1 violation" in reports["two"].stderr
        found = {name: json.loads((cli.cwd / f"{name}.json").read_text())["violations"] for name in ("one", "two")}
        assert {name: [one["kind"] for one in ones] for name, ones in found.items()} == {"one": [], "two": ["miss"]}
        # The tape can be replayed again.
        assert curl(SEARCH, proxy=proxy.url("two:x")).stdout.endswith("200 200")
        code, said = proxy.end()
    assert code == 3
    assert "two: violation: this request is not on the tape" in said


def test_an_idle_run_is_sealed_by_itself(cli: Cli, provider: FakeProvider) -> None:
    with started(cli, "--record", "tapes", "--idle", "0.2", *maps(provider.url)) as proxy:
        assert curl(SEARCH, proxy=proxy.url("one:x")).stdout.endswith("200 200")
        assert proxy.process.stderr is not None
        while "one: taped 1 exchange" not in proxy.heard[-1]:
            proxy.heard.append(proxy.process.stderr.readline())
            assert proxy.heard[-1], proxy.heard
        assert load(cli.cwd / "tapes" / "one.tape.jsonl.gz")[1].sealed
        assert proxy.end()[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--record", "a", "--replay", "b"], "two things"),
        (["--record", "a", "-o", "t.jsonl.gz"], "-o names one tape"),
        (["--record", "file"], "wants a folder"),
        (["--replay", "."], "no tapes here"),
        (["--listen", "0.0.0.0"], "add --record DIR"),
        (["--record", "a", "--strict-tape"], "are for one tape"),
        (["--replay", "t.jsonl.gz", "--fsync"], "are for recording"),
        (["--passphrase-env", "PATH"], "add --encrypt"),
    ],
)
def test_what_cannot_be_started(cli: Cli, words: list[str], says: str) -> None:
    (cli.cwd / "file").touch()
    done = cli.run("start", *words)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_what_one_tape_alone_cannot_do(cli: Cli) -> None:
    with started(cli, "-o", "t.jsonl.gz") as proxy:
        for words in (["stop", "a"], ["env", "--tape", "a"]):
            done = cli.run(*words)
            assert (done.returncode, "one tape alone" in done.stderr) == (2, True), done.stderr
        assert "record t.jsonl.gz" in cli.run("status").stdout
        assert proxy.end()[0] == 0
    assert cli.run("status").returncode == 2
