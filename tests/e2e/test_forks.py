"""Forks, whole: a real mitmproxy, real clients, the fake provider, which counts what reaches it."""

import json
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.testing import FakeProvider

TEAM = str(Path(__file__).with_name("programs") / "team.py")
EMPTY = '{"query":"tides","results":[]}'
CHANGED = '{"query":"tides","results":[{"title":"Changed"}]}'


@dataclass(slots=True)
class Ran:
    """What a run printed and how it ended."""

    code: int
    out: str
    err: str


@dataclass(slots=True)
class Bench:
    """One agent, one provider, tapes `t.gz` (the parent) and `c.gz` (the child)."""

    cli: Cli
    provider: FakeProvider
    recorded: Path | None = None
    words: tuple[str, ...] = ()
    program: str = TEAM

    @property
    def argv(self) -> list[str]:
        return ["--", sys.executable, self.program, *self.words]

    def record(self, *options: str) -> Tape:
        """Record the agent; of the usual one there is a tape."""
        if self.recorded is not None and not (options or self.words) and self.program == TEAM:
            shutil.copy(self.recorded, self.cli.cwd / "t.gz")
            return load(self.recorded)[0]
        done = self.cli.run("record", "-o", "t.gz", *options, *maps(self.provider.url), *self.argv, keys=True)
        assert done.returncode == 0, done.stderr
        self.provider.requests.clear()
        return load(self.cli.cwd / "t.gz")[0]

    def fork(self, *options: str, tape: str = "t.gz", child: str = "c.gz", keys: bool = True, **env: str) -> Ran:
        words = ["fork", tape, "-o", child, *options, *maps(self.provider.url), *self.argv]
        done = self.cli.run(*words, keys=keys, env=env)
        return Ran(done.returncode, done.stdout, done.stderr)

    def child(self, name: str = "c.gz") -> Tape:
        tape, ending = load(self.cli.cwd / name)
        assert ending.canonical
        return tape

    def replay(self, tape: str = "c.gz") -> Ran:
        """Replay offline: on every event of the tape, without drift."""
        done = self.cli.run("replay", tape, *self.argv)
        said = re.search(r"(\d+) of (\d+) exchanges? served, 0 violations", done.stderr)
        assert said is not None, done.stderr
        assert said[1] == said[2], done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def asked(self) -> list[str]:
        """What has reached the provider since the recording."""
        return [request.target + request.body.decode() for request in self.provider.requests]


@pytest.fixture(scope="module")
def recorded(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tape of the usual agent."""
    folder = tmp_path_factory.mktemp("team")
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script={"gap_ms": [1, 3]}, tls=tls) as provider:
        Bench(Cli(folder, home), provider).record()
    return folder / "t.gz"


@pytest.fixture
def bench(cli: Cli, provider: FakeProvider, recorded: Path) -> Bench:
    return Bench(cli, provider, recorded)


def event(tape: Tape, lane: str, n: int) -> Exchange:
    return next(one for one in tape.exchanges if (one.request.lane, one.request.n) == (lane, n))


def lane(tape: Tape, name: str) -> list[Exchange]:
    return [one for one in tape.exchanges if one.request.lane == name]


def bytes_of(exchanges: Sequence[Exchange]) -> list[object]:
    """All that an event is, but when it was and what record it stands on."""
    out: list[object] = []
    for one in exchanges:
        asked, answer, end = one.request, one.response, one.end
        assert answer is not None
        assert end is not None
        out.append((asked.method, asked.url, asked.http, asked.headers, asked.body, asked.lane, asked.n, asked.reads))
        out.append((answer.status, answer.reason, answer.http, answer.headers, answer.framing, answer.informational))
        out.append(([chunk.data for chunk in one.chunks], end.how, end.trailers))
    return out


def sources(tape: Tape) -> dict[str, list[str | None]]:
    return {
        name: [one.request.source for one in lane(tape, name)]
        for name in {o.request.lane or "" for o in tape.exchanges}
    }


# --- the promise ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Shared:
    """A fork that several tests look at: worker_a's tool said something else."""

    folder: Path
    parent: Tape
    ran: Ran
    asked: list[str]
    begun: float

    @property
    def child(self) -> Tape:
        return load(self.folder / "c.gz")[0]


@pytest.fixture(scope="module")
def forked(home: Path, recorded: Path) -> Shared:
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script={"gap_ms": [1, 3]}, tls=tls) as provider:
        bench = Bench(Cli(recorded.parent, home), provider)
        parent, begun = load(recorded)[0], time.time()
        ran = bench.fork("--at", str(event(parent, "m/t0", 0).number), "--body", f"@{CHANGED}")
        return Shared(recorded.parent, parent, ran, bench.asked(), begun)


def test_only_the_causal_future_of_a_changed_answer_runs_live(forked: Shared, home: Path) -> None:
    parent, child, ran = forked.parent, forked.child, forked.ran
    number = event(parent, "m/t0", 0).number
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[-1] == "tapeproxy: 3 reused, 1 mutated, 2 live: c.gz"
    assert len(forked.asked) == 2
    assert "worker_a: tides" in forked.asked[0]
    assert "Changed" in forked.asked[0]
    assert "synthesize" in forked.asked[1]
    assert sources(child) == {"m": ["reused", "live"], "m/t0": ["mutated", "live"], "m/t1": ["reused", "reused"]}
    assert bytes_of(lane(child, "m/t1")) == bytes_of(lane(parent, "m/t1"))
    assert bytes_of(lane(child, "m")[:1]) == bytes_of(lane(parent, "m")[:1])
    told = json.loads(ran.out.splitlines()[0])
    assert forked.begun < told["clock"] < time.time()  # real time, after the change
    assert "Changed" in told["out"]["worker_a"]
    cli = Cli(forked.folder, home)
    assert cli.run("verify", "c.gz").returncode == 0
    diff = cli.run("diff", "t.gz", "c.gz", "--json")
    assert diff.returncode == 1
    apart = json.loads(diff.stdout)
    assert apart["relation"] == f"B is a fork of A at exchange {number}"
    assert (apart["branch"]["a"], apart["branch"]["source"]) == (number, "mutated")
    assert [one["a"] for one in apart["lanes"] if not one["events"]] == ["m/t1"]
    replayed = cli.run("replay", "c.gz")
    assert (replayed.returncode, replayed.stdout) == (0, ran.out)
    assert "6 of 6 exchanges served, 0 violations" in replayed.stderr


def test_its_head_tells_where_it_comes_from(forked: Shared) -> None:
    head, parent, number = forked.child.head, forked.parent, event(forked.parent, "m/t0", 0).number
    assert parent.seal is not None
    last = load(forked.folder / "t.gz")[1].hash
    assert head.parent == {"name": "t.gz", "trace": parent.seal.trace, "last": last}
    assert head.branch == {"events": [number], "rerun": "future", "served": 3, "lane": "m/t0", "n": 0}
    assert head.edit == {"edits": [{"what": "body", "at": number, "size": len(CHANGED), "value": CHANGED}]}
    assert (head.seed, head.hash_seed, head.tmpdir) == (parent.head.seed, parent.head.hash_seed, parent.head.tmpdir)


def test_streams_keep_their_pieces_whether_reused_or_live(forked: Shared) -> None:
    child, was = forked.child, event(forked.parent, "m/t1", 1)
    reused, live = event(child, "m/t1", 1), event(child, "m/t0", 1)
    assert len(was.chunks) > 3
    assert [chunk.data for chunk in reused.chunks] == [chunk.data for chunk in was.chunks]
    assert len(live.chunks) > 3
    first, last = live.chunks[0].t, live.chunks[-1].t
    assert first is not None
    assert last is not None
    assert last > first


def test_a_child_can_be_forked_again(forked: Shared, bench: Bench) -> None:
    shutil.copy(forked.folder / "c.gz", bench.cli.cwd)
    child = forked.child
    again = bench.fork("--at", str(event(child, "m/t1", 0).number), "--body", f"@{CHANGED}", tape="c.gz", child="d.gz")
    assert again.code == 0, again.err
    grandchild = bench.child("d.gz")
    assert sources(grandchild) == {"m": ["reused", "live"], "m/t0": ["reused", "reused"], "m/t1": ["mutated", "live"]}
    assert bytes_of(lane(grandchild, "m/t0")) == bytes_of(lane(child, "m/t0"))
    assert [("worker_b:" in text, "synthesize" in text) for text in bench.asked()] == [(True, False), (False, True)]
    bench.provider.stop()
    assert bench.replay("d.gz").out == again.out


@pytest.mark.soak  # test_fork_edits.py has each SDK, but not in threads
def test_an_agent_with_an_sdk_is_forked_as_any_other(bench: Bench) -> None:
    bench.words = ("sdk",)
    parent = bench.record()
    ran = bench.fork("--at", str(event(parent, "m/t0", 0).number), "--body", f"@{CHANGED}")
    assert (ran.code, ran.err.splitlines()[-1]) == (0, "tapeproxy: 3 reused, 1 mutated, 2 live: c.gz")
    bench.provider.stop()
    assert bench.replay().out == ran.out


def test_a_lane_that_the_tape_does_not_have_runs_live_below_the_future(bench: Bench) -> None:
    parent = bench.record()
    ran = bench.fork("--at", str(event(parent, "m/t0", 0).number), "--body", f"@{EMPTY}")
    assert ran.code == 0, ran.err
    child = bench.child()
    assert sources(child)["m/t0/t0"] == ["live"]
    assert "worker_a helper" in ran.out
    bench.provider.stop()
    assert bench.replay().out == ran.out


# --- what may not go out -------------------------------------------------------------------------------------------


def test_a_lane_outside_of_the_future_that_asks_something_else_is_refused(bench: Bench) -> None:
    parent = bench.record()
    agent = Path(TEAM).read_text().replace('"worker_b": "moon"', '"worker_b": "sun"')
    path = bench.cli.cwd / "team.py"
    path.write_text(agent)
    bench.program = str(path)
    ran = bench.fork("--at", str(event(parent, "m/t0", 0).number), "--body", f"@{CHANGED}")
    assert ran.code == 3
    assert "this request is not on the tape" in ran.err
    assert not [text for text in bench.asked() if "sun" in text or "worker_b:" in text]
    assert sources(bench.child())["m/t1"][0] == "refused"
    again = bench.cli.run("replay", "c.gz", *bench.argv)
    assert (again.returncode, again.stdout) == (3, ran.out)
    assert "of the tape was refused when it was taped, and no server answered it: this request is not" in again.stderr


def test_without_the_key_nothing_is_run(bench: Bench) -> None:
    parent = bench.record()
    at = ["--at", str(event(parent, "m/t0", 0).number), "--body", f"@{CHANGED}"]
    ran = bench.fork(*at, keys=False)
    assert (ran.code, ran.out) == (2, "")
    assert "a fork calls the world, and ANTHROPIC_API_KEY, OPENAI_API_KEY are not set" in ran.err
    assert "--keyless ANTHROPIC_API_KEY" in ran.err
    assert not (bench.cli.cwd / "c.gz").exists()
    assert bench.asked() == []


def test_a_placeholder_is_no_key(bench: Bench) -> None:
    parent = bench.record()
    at = ["--at", str(event(parent, "m/t0", 0).number), "--body", f"@{CHANGED}"]
    held = placeholder("OTHER_TOKEN")
    ran = bench.fork(*at, OTHER_TOKEN=held)
    assert (ran.code, ran.out) == (2, "")
    assert "a fork calls the world, and OTHER_TOKEN is not set" in ran.err
    assert bench.asked() == []
    assert bench.fork(*at, "--keyless", "OTHER_TOKEN", OTHER_TOKEN=held).code == 0


def test_a_placeholder_is_never_sent(bench: Bench) -> None:
    parent = bench.record()
    at = ["--at", str(event(parent, "m/t0", 0).number), "--body", f"@{CHANGED}"]
    ran = bench.fork(*at, "--keyless", "OPENAI_API_KEY", "--keyless", "ANTHROPIC_API_KEY", keys=False)
    assert ran.code == 3
    assert "a live request holds the placeholder of a secret" in ran.err
    assert bench.asked() == []


def test_the_agent_itself_reaches_the_proxy_only(bench: Bench) -> None:
    path = bench.cli.cwd / "agent.py"
    path.write_text(
        "import httpx, socket, sys\n"
        "print(httpx.get('https://search.example.com/search?q=tides').status_code)\n"
        "try:\n    socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print('reached')\n"
        "except OSError as error: print('refused')\n"
    )
    bench.program, bench.words = str(path), (str(bench.provider.port),)
    bench.record()
    ran = bench.fork("--at", "1", "--body", f"@{EMPTY}")
    assert (ran.code, ran.out.splitlines()[-1]) == (3, "refused")
    assert "past the proxy, and was refused" in ran.err


# --- what is asked anew --------------------------------------------------------------------------------------------


def test_what_is_asked_as_on_the_tape_may_be_reused_in_the_future_too(bench: Bench) -> None:
    parent = bench.record()
    one = event(parent, "m/t0", 0)
    same = json.dumps(json.loads(one.response_body) | {"unread": True})
    ran = bench.fork("--at", str(one.number), "--body", f"@{same}", "--rerun", "changed")
    assert ran.code == 0, ran.err
    # The clock is real after the change, and what says so is asked anew.
    assert sources(bench.child())["m/t0"] == ["mutated", "live"]
    ran = bench.fork("--at", str(event(parent, "m", 1).number), "--body", "@data: [DONE]\n\n", child="d.gz")
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[-1] == "tapeproxy: 5 reused, 1 mutated, 0 live: d.gz"


def test_an_event_is_asked_anew_where_it_is_not_changed(bench: Bench) -> None:
    parent = bench.record()
    ran = bench.fork("--at", str(event(parent, "m", 1).number))
    assert ran.err.splitlines()[-1] == "tapeproxy: 5 reused, 0 mutated, 1 live: c.gz"
    assert ["synthesize" in text for text in bench.asked()] == [True]
    ran = bench.fork("--at", "0", child="d.gz")
    assert ran.err.splitlines()[-1] == "tapeproxy: 0 reused, 0 mutated, 6 live: d.gz"


def test_a_dry_run_says_it_and_runs_nothing(bench: Bench) -> None:
    parent = bench.record()
    ran = bench.fork("--at", str(event(parent, "m/t0", 0).number), "--body", f"@{EMPTY}", "--dry-run")
    assert ran.code == 0
    lines = [line for line in ran.out.splitlines() if not line.startswith("edit ")]
    worker = "worker_a (m/t0): 1 mutated (N), 1 live (N)"
    numbered = sorted(re.sub(r"(?<!t)\d+([-, ]+\d+)?(?=\))", "N", line) for line in lines)
    assert numbered == [
        "about 2 live calls",
        "m: 1 reused (N), 1 live (N)",
        worker,
        "worker_b (m/t1): 2 reused (N)",
    ]
    assert not (bench.cli.cwd / "c.gz").exists()
    assert bench.asked() == []


# --- what a run begins with ----------------------------------------------------------------------------------------


def test_a_lane_with_a_new_seed_draws_other_numbers_from_there_on_and_so_does_a_replay(bench: Bench) -> None:
    path = bench.cli.cwd / "agent.py"
    path.write_text(
        "import httpx, random, uuid\n"
        "for n in range(3):\n"
        "    words = f'{random.random()} {uuid.uuid4()}'\n"
        "    print(words, httpx.get('https://search.example.com/search', params={'q': words}).status_code)\n"
    )
    bench.program = str(path)
    bench.record()
    was = bench.cli.run("replay", "t.gz").stdout.splitlines()
    seed = "ab" * 32
    ran = bench.fork("--at", "2", "--set", "2:$.results=[]", "--lane-seed", f"m={seed}")
    assert ran.code == 0, ran.err
    now = ran.out.splitlines()
    assert now[:2] == was[:2]
    assert now[2] != was[2]
    assert (bench.child().head.branch or {})["seeds"] == [["m", 2, seed]]
    again = bench.fork("--at", "3", tape="c.gz", child="d.gz")
    assert again.out == ran.out, again.err
    bench.provider.stop()
    assert bench.replay().out == bench.replay("d.gz").out == ran.out


def test_a_replay_of_a_child_has_the_environment_that_the_fork_had(bench: Bench) -> None:
    path = bench.cli.cwd / "agent.py"
    path.write_text(
        "import httpx, os\n"
        "colour = os.environ.get('COLOUR', 'none')\n"
        "print(colour, httpx.get('https://search.example.com/search', params={'q': colour}).status_code)\n"
    )
    bench.program = str(path)
    bench.record()
    ran = bench.fork("--env", "COLOUR=blue")
    assert (ran.code, ran.out) == (0, "blue 200\n"), ran.err
    assert bench.fork("--at", "0", tape="c.gz", child="d.gz").out == ran.out
    bench.provider.stop()
    assert bench.replay().out == bench.replay("d.gz").out == ran.out


def test_what_is_read_past_the_wire_is_on_the_child_too(bench: Bench) -> None:
    path = bench.cli.cwd / "agent.py"
    (bench.cli.cwd / "notes.txt").write_text("tides")
    path.write_text(
        "import httpx, os\n"
        "url, words = 'https://search.example.com/search', open('notes.txt').read()\n"
        "found = httpx.get(url, params={'q': f'{words} {os.getpid()}'}).json()['results']\n"
        "again = httpx.get(url, params={'q': f'{found} {os.getpid()}'})\n"
        "print(len(found), open('notes.txt').read(), again.status_code)\n"
    )
    bench.program = str(path)
    parent = bench.record("--io")
    ran = bench.fork("--at", "1", "--set", "1:$.results=[]")
    assert (ran.code, ran.out) == (0, "0 tides 200\n"), ran.err
    child = bench.child()
    assert child.head.io
    read = [[(value.what, value.name, value.content) for _, value in tape.values] for tape in (parent, child)]
    assert read[0] == read[1]
    assert [value.data for _, value in child.values if value.what == "pid"] == [
        value.data for _, value in parent.values if value.what == "pid"
    ]
    bench.provider.stop()
    assert bench.replay().out == ran.out


# --- time ----------------------------------------------------------------------------------------------------------


def test_sleeps_are_skipped_before_the_change_and_slept_after_it(bench: Bench) -> None:
    bench.words = ("sleepy", "4", "nap", "0.7")
    parent = bench.record()
    ran = bench.fork("--at", str(event(parent, "m/t0", 0).number), "--body", f"@{CHANGED}")
    assert ran.code == 0, ran.err
    child = bench.child()
    planned, searched = event(child, "m", 0).end, event(child, "m/t0", 0).end
    assert planned is not None
    assert searched is not None
    assert event(child, "m/t0", 0).request.t - planned.t < 3.5e9
    assert event(child, "m/t0", 1).request.t - searched.t > 0.65e9
    bench.provider.stop()
    assert bench.replay().out == ran.out


# --- when the world fails ------------------------------------------------------------------------------------------


def test_a_provider_that_is_gone_is_a_taped_connect_error(bench: Bench) -> None:
    parent = bench.record()
    bench.provider.stop()
    ran = bench.fork("--at", str(event(parent, "m", 1).number))
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "RemoteProtocolError"), ran.err
    live = event(bench.child(), "m", 1)
    assert live.request.source == "live"
    assert live.response is None
    assert live.end is not None
    assert live.end.how == "connect-error"
    assert bench.replay().out == ran.out


def test_a_provider_that_dies_in_the_middle_of_a_live_stream_is_a_taped_cut(bench: Bench) -> None:
    parent, cli = bench.record(), bench.cli
    tls = CertificateAuthority.open(cli.home).server_context("127.0.0.1")
    slow = FakeProvider(script={"gap_ms": [20_000, 20_000]}, tls=tls).start()
    try:
        words = ["fork", "t.gz", "-o", "c.gz", "--at", str(event(parent, "m", 1).number), *maps(slow.url)]
        running = cli.start(*words, "--", sys.executable, TEAM, keys=True)
        assert running.stdout is not None
        assert running.stdout.readline().startswith('{"clock"')
        while not slow.requests:
            time.sleep(0.01)
    finally:
        slow.stop()
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    live = event(bench.child(), "m", 1)
    assert live.end is not None
    assert live.end.how in ("upstream-cut", "reset")
    assert out.splitlines()[-1].endswith("Error")


def test_a_connection_that_failed_on_the_tape_fails_again(bench: Bench) -> None:
    path = bench.cli.cwd / "agent.py"
    path.write_text(
        "import httpx\n"
        "try: httpx.get('http://127.0.0.2:9/')\n"
        "except httpx.TransportError as error: print(type(error).__name__)\n"
        "print(httpx.get('https://search.example.com/search?q=tides').status_code)\n"
    )
    bench.program = str(path)
    parent = bench.record()
    ran = bench.fork("--at", "2")
    assert ran.code == 0, ran.err
    failed, was = bench.child().exchanges[0], parent.exchanges[0]
    assert failed.request.source == "reused"
    assert failed.end is not None
    assert was.end is not None
    assert (failed.end.how, failed.end.error) == (was.end.how, was.end.error)
    assert was.end.how == "connect-error"
