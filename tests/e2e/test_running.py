"""Supervision: how runs begin and end. Signals, exit codes, refusals; every tape is whole or not there."""

import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.magic import MAGIC
from tapeproxy.tapes.records import Exit
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.testing import FakeProvider

PY = sys.executable
FETCH = """
import os, sys, httpx
url = os.environ.get("TOOL", "https://search.example.com")
print(httpx.get(url + "/search?q=tide", timeout=30).status_code, flush=True)
"""


def agent(cli: Cli, text: str) -> str:
    path = cli.cwd / "agent.py"
    path.write_text(FETCH + text)
    return str(path)


def record(provider: FakeProvider, *words: str) -> list[str]:
    return ["record", "-o", "t.jsonl.gz", *maps(provider.url), *words]


# --- how it ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "code", "exit_record"),
    [
        ("", 0, (0, None)),
        ("sys.exit(7)", 7, (7, None)),
        ("raise RuntimeError('crash')", 1, (1, None)),
        ("os.kill(os.getpid(), 9)", 137, (None, "SIGKILL")),
        ("os._exit(3)", 3, (3, None)),
    ],
)
def test_the_agent_s_end_is_ours_and_on_the_tape(
    cli: Cli, provider: FakeProvider, ending: str, code: int, exit_record: tuple[int | None, str | None]
) -> None:
    done = cli.run(*record(provider), "--", PY, agent(cli, ending))
    assert (done.returncode, done.stdout) == (code, "200\n"), done.stderr
    tape, verdict = load(cli.cwd / "t.jsonl.gz")
    assert verdict.canonical
    assert isinstance(tape.exit, Exit)
    assert (tape.exit.code, tape.exit.signal) == exit_record
    replayed = cli.run("replay", "t.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (code, "200\n")


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "user"), (signal.SIGTERM, "user")])
def test_a_signal_ends_the_agent_and_leaves_a_sealed_tape(
    cli: Cli, provider: FakeProvider, number: int, word: str
) -> None:
    running = cli.start(*record(provider), "--", PY, agent(cli, "import time; time.sleep(60)"))
    assert running.stdout is not None
    assert running.stdout.readline() == "200\n"
    running.send_signal(number)
    running.communicate(timeout=30)
    assert running.returncode == 128 + number or number == signal.SIGINT
    tape, verdict = load(cli.cwd / "t.jsonl.gz")
    assert verdict.canonical
    assert tape.seal is not None
    assert tape.seal.outcome == word
    assert len(tape.exchanges) == 1


def test_a_recorder_that_is_killed_leaves_a_tape_that_replays_what_it_has(cli: Cli, provider: FakeProvider) -> None:
    running = cli.start(*record(provider), "--", PY, agent(cli, "sys.stdin.read()"), stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == "200\n"
    running.kill()
    running.communicate(timeout=30)
    tape, verdict = load(cli.cwd / "t.jsonl.gz")
    assert not verdict.sealed
    assert [e.response.status for e in tape.exchanges if e.response] == [200]
    assert cli.run("verify", "t.jsonl.gz").returncode == 5
    assert cli.run("show", "t.jsonl.gz").stdout.splitlines()[1].endswith(", interrupted")
    replayed = cli.run("replay", "t.jsonl.gz", input="")
    assert (replayed.returncode, replayed.stdout) == (0, "200\n")
    assert "interrupted" in replayed.stderr
    assert cli.run("repair", "t.jsonl.gz", "-o", "repaired.jsonl.gz").returncode == 0
    further = agent(cli, FETCH)
    for name in ("t.jsonl.gz", "repaired.jsonl.gz"):
        replayed = cli.run("replay", name, "--", PY, further)
        assert (replayed.returncode, replayed.stdout) == (3, "200\n470\n")
        assert "the tape broke off here: after exchange 1, the last of lane m\n" in replayed.stderr
        assert "--ignore" not in replayed.stderr


def test_timeout_ends_the_run(cli: Cli, provider: FakeProvider) -> None:
    path = agent(cli, "import threading; threading.Event().wait(60)")  # a replayed sleep would return at once
    done = cli.run(*record(provider, "-q", "--timeout", "2.5"), "--", PY, path)
    assert done.returncode == 124
    assert re.fullmatch(r"tapeproxy: stopped the run after 2\.\d+ s \(--timeout\)\n", done.stderr)
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert tape.seal is not None
    assert tape.seal.outcome == "timeout"
    assert cli.run("replay", "t.jsonl.gz", "--timeout", "1.5").returncode == 124


def test_a_run_that_only_makes_violations_is_stopped(cli: Cli, provider: FakeProvider) -> None:
    assert cli.run(*record(provider), "--", PY, agent(cli, "")).returncode == 0
    loop = f"import httpx\nwhile True: print(httpx.get('{provider.url}/x', verify=False).status_code, flush=True)"
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json", "--", PY, "-W", "ignore", "-c", loop)
    assert done.returncode == 3
    assert "stopped the run after 20 violations" in done.stderr
    assert (cli.cwd / "r.json").read_text().count('"kind": "miss"') in (20, 21)


def test_a_violation_counts_even_when_the_agent_swallows_it(cli: Cli, provider: FakeProvider) -> None:
    assert cli.run(*record(provider), "--", PY, agent(cli, "")).returncode == 0
    swallow = "import httpx\ntry: httpx.get('https://other.example.com/')\nexcept Exception: pass"
    done = cli.run("replay", "t.jsonl.gz", "--", PY, "-c", swallow)
    assert done.returncode == 3


def test_a_replay_that_asks_for_nothing_says_so_last(cli: Cli, provider: FakeProvider) -> None:
    assert cli.run(*record(provider), "--", PY, agent(cli, "")).returncode == 0
    elsewhere = cli.cwd / "elsewhere"
    elsewhere.mkdir()
    done = Cli(elsewhere, cli.home).run("replay", "-q", str(cli.cwd / "t.jsonl.gz"), "--", "false")
    assert done.returncode == 1
    said = "the agent asked for nothing that is on the tape: 1 exchange was not asked for; it exited 1"
    assert done.stderr.splitlines()[-3:-1] == [
        f"tapeproxy: warning: {said}",
        f"  it was recorded in {cli.cwd}, you are in {elsewhere}",
    ]
    assert "warning" not in cli.run("replay", "t.jsonl.gz").stderr


def test_all_may_be_required(cli: Cli, provider: FakeProvider) -> None:
    twice = "print(httpx.get(url + '/pages/tides').status_code)"
    assert cli.run(*record(provider), "--", PY, agent(cli, twice)).returncode == 0
    words = ["replay", "t.jsonl.gz", "--require-all", "--report", "r.json"]
    assert cli.run(*words).returncode == 0
    done = cli.run(*words, "--", PY, agent(cli, "sys.exit(7)"))
    assert done.returncode == 4
    assert "tapeproxy: unused: --require-all, and 1 exchange was not asked for:" in done.stderr
    assert "    2  GET https://search.example.com/pages/tides" in done.stderr
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (report["exit_code"], report["agent_exit_code"], report["unused"]) == (4, 7, [2])
    assert cli.run("replay", "t.jsonl.gz", "--", PY, agent(cli, "sys.exit(7)")).returncode == 7
    violating = agent(cli, "httpx.get(url + '/other')")
    assert cli.run(*words, "--", PY, violating).returncode == 3


def test_a_tape_without_exchanges_says_so(cli: Cli) -> None:
    recorded = cli.run("record", "-o", "t.jsonl.gz", "--", "false")
    assert "nothing was taped: the agent exited 1 before it asked anything" in recorded.stderr
    replayed = cli.run("replay", "-q", "t.jsonl.gz")
    assert replayed.stderr == "tapeproxy: warning: there are no exchanges on the tape, so nothing was replayed\n"


def test_exchanges_that_failed_are_counted_with_their_reason(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    tries = f"""
for _ in range(2):
    try: httpx.get("http://gone.example:{port}")
    except httpx.HTTPError: pass
"""
    path = cli.cwd / "agent.py"
    path.write_text("import httpx" + tries)
    done = cli.run("record", "-o", "t.jsonl.gz", "--map", f"gone.example=http://127.0.0.1:{port}", "--", PY, str(path))
    assert done.returncode == 0
    first, second = done.stderr.splitlines()[-2:]
    assert first.startswith(f"tapeproxy: taped 2 exchanges, 2 failed: gone.example:{port}: connect call failed")
    assert second.startswith("tapeproxy: the tape is t.jsonl.gz (")


def test_an_upstream_that_is_not_trusted_says_what_helps(cli: Cli, home: Path) -> None:
    """A certificate of an authority that the recorder does not know."""
    context = CertificateAuthority.open(home / "another").server_context("127.0.0.1")
    with FakeProvider(tls=context) as stranger:
        path = cli.cwd / "agent.py"
        path.write_text(f"import httpx\ntry: httpx.get('{stranger.url}/')\nexcept httpx.HTTPError: print('failed')")
        done = cli.run("record", "-o", "t.jsonl.gz", "--", PY, str(path))
    assert done.stdout == "failed\n"
    assert re.search(
        r"taped 1 exchange, 1 failed: 127\.0\.0\.1:\d+: certificate verify failed.*--upstream-ca", done.stderr
    )


# --- what passes through -------------------------------------------------------------------------------------------


def test_stdin_and_output_are_the_agent_s_own(cli: Cli, provider: FakeProvider) -> None:
    path = agent(cli, "print(sys.stdin.read().upper()); print('to stderr', file=sys.stderr)")
    done = cli.run(*record(provider, "-q"), "--", PY, path, input="héllo")
    assert (done.stdout, done.stderr) == ("200\nHÉLLO\n", "to stderr\n")
    replayed = cli.run("replay", "t.jsonl.gz", "-q", input="héllo")
    assert (replayed.stdout, replayed.stderr) == ("200\nHÉLLO\n", "to stderr\n")


def test_the_agent_sees_the_terminal(cli: Cli, provider: FakeProvider) -> None:
    ours, theirs = os.openpty()
    path = agent(cli, "print(sys.stdin.isatty(), sys.stdout.isatty())")
    running = cli.start(*record(provider), "--", PY, path, stdin=theirs, stdout=theirs, stderr=theirs, text=False)
    os.close(theirs)
    text = b""
    while select.select([ours], [], [], 30)[0]:
        try:
            text += os.read(ours, 4096)
        except OSError:  # the last end of the terminal is closed
            break
    assert running.wait(30) == 0
    os.close(ours)
    assert b"True True" in text


def test_secret_variables_that_are_absent_get_placeholders(cli: Cli, provider: FakeProvider) -> None:
    path = agent(cli, "print(len(os.environ['OPENAI_API_KEY']) > 8, os.environ['OPENAI_API_KEY'][:7])")
    done = cli.run(*record(provider), "--", PY, path, keys=True)
    assert done.stdout == "200\nTrue sk-test\n"
    assert cli.run("replay", "t.jsonl.gz").stdout.startswith("200\nTrue tpx")
    assert cli.run("replay", "t.jsonl.gz", keys=True).stdout == done.stdout


# --- one clear line each -------------------------------------------------------------------------------------------


def refusal(cli: Cli, *words: str, code: int, says: str) -> str:
    done = cli.run(*words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3
    return done.stderr


def tapes(cli: Cli) -> list[str]:
    return sorted(str(path.relative_to(cli.cwd)) for path in cli.cwd.rglob("*.jsonl.gz"))


def test_a_missing_command(cli: Cli) -> None:
    refusal(cli, "record", "--", "no-such-command", code=127, says="no such command")
    refusal(cli, "record", code=2, says="put it after --")
    assert tapes(cli) == []


@pytest.mark.parametrize("words", [("record", "-o", "t.jsonl.gz", "--", "touch", "ran"), ("start", "-o", "t.jsonl.gz")])
def test_a_placeholder_in_place_of_a_key_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    done = cli.run(*words, env={"MY_API_KEY": placeholder("MY_API_KEY")})
    assert done.returncode == 2, done.stderr
    assert "MY_API_KEY holds a placeholder of a replay, which is no key" in done.stderr
    assert placeholder("MY_API_KEY") not in done.stderr
    assert (tapes(cli), (cli.cwd / "ran").exists()) == ([], False)


def test_a_command_that_is_not_executable(cli: Cli) -> None:
    (cli.cwd / "plain.txt").write_text("hello")
    refusal(cli, "record", "--", "./plain.txt", code=126, says="not executable")
    assert tapes(cli) == []


def test_a_port_in_use(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refusal(cli, "record", "--port", port, "--", "true", code=2, says=port)
        assert tapes(cli) == []
        assert cli.run("record", "-o", "t.jsonl.gz", "-q", "--", "true").returncode == 0
        refusal(cli, "replay", "t.jsonl.gz", "--port", port, code=2, says=port)


def test_a_tape_that_exists_is_kept_unless_forced(cli: Cli) -> None:
    assert cli.run("record", "-o", "t.jsonl.gz", "--", "true").returncode == 0
    before = (cli.cwd / "t.jsonl.gz").read_bytes()
    refusal(cli, "record", "-o", "t.jsonl.gz", "--", "true", code=2, says="--force")
    refusal(cli, "record", "-o", "t.jsonl.gz", "--force", "--", "no-such-command", code=127, says="no such")
    assert (cli.cwd / "t.jsonl.gz").read_bytes() == before
    assert cli.run("record", "-o", "t.jsonl.gz", "--force", "--", "true").returncode == 0
    assert (cli.cwd / "t.jsonl.gz").read_bytes() != before


@pytest.mark.parametrize("path", ["file.txt/t.jsonl.gz", "/proc/t.jsonl.gz"])
def test_a_tape_that_cannot_be_written(cli: Cli, path: str) -> None:
    (cli.cwd / "file.txt").touch()
    refusal(cli, "record", "-o", path, "--", "true", code=5, says="cannot be written")


def test_no_space_for_the_head_leaves_nothing(cli: Cli) -> None:
    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    assert cli.run("record", "-o", "warm.jsonl.gz", "--", "true").returncode == 0
    (cli.cwd / "warm.jsonl.gz").unlink()
    running = cli.start("record", "--no-shim", "-o", "t.jsonl.gz", "--", "true", preexec_fn=no_room)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 5
    assert "cannot be written" in stderr
    assert tapes(cli) == []


def test_no_space_later_warns_and_does_not_touch_the_run(cli: Cli, provider: FakeProvider) -> None:
    def little_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))

    more = "for n in range(40): httpx.post(url + '/upload', content=os.urandom(40_000))\nprint('done')"
    assert cli.run("ca").returncode == 0
    running = cli.start(*record(provider), "--", PY, agent(cli, more), preexec_fn=little_room)
    stdout, stderr = running.communicate(timeout=60)
    assert stdout == "200\ndone\n"
    assert running.returncode == 5
    assert "not whole" in stderr
    tape, verdict = load(cli.cwd / "t.jsonl.gz")
    assert not verdict.sealed
    assert verdict.lost == 0
    assert 0 < len(tape.exchanges) < 41


def test_a_map_rule_with_a_scheme_in_front(cli: Cli) -> None:
    said = refusal(
        cli, "record", "--map", "https://a.example/v1=http://b", "--", "true", code=2, says="leave out https://"
    )
    assert "--map a.example=http://b" in said


@pytest.mark.parametrize("rule", ["api.openai.com", "=http://x", "a=ftp://x", "a=http://"])
def test_a_broken_map_rule(cli: Cli, rule: str) -> None:
    refusal(cli, "record", "--map", rule, "--", "true", code=2, says="--map")


def test_a_damaged_tape_and_a_missing_one(cli: Cli) -> None:
    (cli.cwd / "t.jsonl.gz").write_bytes(b"not a tape")
    refusal(cli, "replay", "t.jsonl.gz", "--", "true", code=5, says="t.jsonl.gz")
    refusal(cli, "replay", "none.jsonl.gz", code=2, says="none.jsonl.gz")
    refusal(cli, "replay", code=2, says="tapeproxy record")


def test_a_stranger_s_command_is_not_run_unasked(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert cli.run("record", "-o", "t.jsonl.gz", "--", "touch", "marker").returncode == 0
    (cli.cwd / "marker").unlink()
    elsewhere = Cli(cli.cwd, tmp_path_factory.mktemp("elsewhere"))
    stderr = refusal(elsewhere, "replay", "t.jsonl.gz", code=2, says="recorded elsewhere")
    assert "to run it: tapeproxy replay t.jsonl.gz -- touch marker" in stderr
    assert not (cli.cwd / "marker").exists()
    assert cli.run("replay", "t.jsonl.gz").returncode == 0
    assert (cli.cwd / "marker").exists()


def test_a_script_runs_with_or_without_python_in_front(cli: Cli, provider: FakeProvider) -> None:
    agent(cli, "")
    env = {"PATH": f"{Path(PY).parent}:{os.environ['PATH']}"}
    done = cli.run(*record(provider), "--", "agent.py", env=env)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr


# --- the default tape ----------------------------------------------------------------------------------------------


def test_without_a_name_the_tape_is_in_dot_tapes_and_replay_takes_the_last(cli: Cli, provider: FakeProvider) -> None:
    assert cli.run("record", *maps(provider.url), "--", "true").returncode == 0
    assert cli.run("record", *maps(provider.url), "--", PY, agent(cli, "")).returncode == 0
    names = tapes(cli)
    assert len(names) == 2
    assert all(name.startswith(".tapes/") for name in names)
    assert any("agent" in name for name in names)
    replayed = cli.run("replay")
    assert (replayed.returncode, replayed.stdout) == (0, "200\n")
    last = next(name for name in names if "agent" in name)
    assert re.fullmatch(r"\.tapes/\d{8}T\d{6}Z-agent\.tape\.jsonl\.gz", last)
    assert replayed.stderr.splitlines()[0] == f"tapeproxy: replaying the last tape, {last}"
    assert "agent" in cli.run("ls").stdout.splitlines()[-1]


def test_a_run_that_is_recorded_and_one_that_was_stopped_are_called_so(cli: Cli, provider: FakeProvider) -> None:
    running = cli.start("record", *maps(provider.url), "--", PY, agent(cli, "sys.stdin.read()"), stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == "200\n"
    assert cli.run("ls").stdout.splitlines()[-1].endswith("  recording")
    running.send_signal(signal.SIGINT)
    running.wait(30)  # with its input open, or the agent might end by itself
    running.communicate()
    assert cli.run("ls").stdout.splitlines()[-1].endswith("  Ctrl-C")


# --- start, env, stop ----------------------------------------------------------------------------------------------


def test_a_long_running_proxy_records_and_replays_agents_started_elsewhere(cli: Cli, provider: FakeProvider) -> None:
    path = agent(cli, "")
    assert cli.run("env", "--wait", "0").returncode == 2
    for words in (["-o", "t.jsonl.gz", *maps(provider.url)], ["--replay", "t.jsonl.gz"]):
        running = cli.start("start", *words)
        assert running.stderr is not None
        assert "listening on 127.0.0.1:" in running.stderr.readline()
        assert "already" in cli.run("start").stderr
        shell = f'eval "$({PY} -m tapeproxy.cli.main env)"; {PY} {path}'
        done = subprocess.run(
            ["sh", "-c", shell], cwd=cli.cwd, env=cli.environment(), capture_output=True, text=True, check=False
        )
        assert done.stdout == "200\n", done.stderr
        stopped = cli.run("stop")
        assert stopped.returncode == 0, stopped.stderr
        assert re.match(r"tapeproxy: stopped: (the tape is|it served) t\.jsonl\.gz\n", stopped.stderr)
        assert "env --unset" in stopped.stderr
        _, stderr = running.communicate(timeout=30)
        assert running.returncode == 0, stderr
        provider.stop()
    assert load(cli.cwd / "t.jsonl.gz")[1].canonical
    assert f"no proxy is running here (in {cli.cwd})" in cli.run("stop").stderr


def test_a_long_running_proxy_writes_an_encrypted_tape_and_serves_it(cli: Cli, provider: FakeProvider) -> None:
    path = agent(cli, "")
    key = cli.cwd / "tapes.key"
    assert cli.run("keygen", "--encryption", str(key)).returncode == 0
    for words in (["-o", "t.enc", "--encrypt", "--fsync", *maps(provider.url)], ["--replay", "t.enc"]):
        running = cli.start("start", *words, "--key-file", str(key))
        assert running.stderr is not None
        assert "listening on 127.0.0.1:" in running.stderr.readline()
        shell = f'eval "$({PY} -m tapeproxy.cli.main env)"; {PY} {path}'
        done = subprocess.run(
            ["sh", "-c", shell], cwd=cli.cwd, env=cli.environment(), capture_output=True, text=True, check=False
        )
        assert done.stdout == "200\n", done.stderr
        assert cli.run("stop").returncode == 0
        running.communicate(timeout=30)
        assert running.returncode == 0
        provider.stop()
    assert (cli.cwd / "t.enc").read_bytes().startswith(MAGIC)
    assert json.loads(cli.run("verify", "t.enc", "--key-file", str(key), "--json").stdout)["finding"] == "intact"


def test_env_waits_for_a_proxy_that_is_just_starting(cli: Cli) -> None:
    waiting = cli.start("env", "--wait", "60")
    assert waiting.stderr is not None
    assert "waiting for a proxy to start here" in waiting.stderr.readline()
    running = cli.start("start", "-o", "t.jsonl.gz")
    stdout, _ = waiting.communicate(timeout=30)
    assert (waiting.returncode, "export HTTPS_PROXY=" in stdout) == (0, True)
    assert cli.run("stop").returncode == 0
    running.communicate(timeout=30)


def test_without_a_proxy_the_shell_goes_no_further(cli: Cli) -> None:
    env = f"{PY} -m tapeproxy.cli.main env"
    command = f'eval "$({env} --wait 0)" && echo ran; eval "$({env} --unset)"'
    done = subprocess.run(
        ["sh", "-c", f"{command}; echo $HTTPS_PROXY$? "],
        cwd=cli.cwd,
        env=cli.environment(HTTPS_PROXY="http://127.0.0.1:1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "0\n"


# --- what the documents say ----------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def test_the_violation_in_the_readme_is_a_real_one(cli: Cli, scripted: FakeProvider) -> None:
    argv = [PY, str(ROOT / "examples" / "research.py")]
    assert cli.run("record", "-o", "t.jsonl.gz", *maps(scripted.url), "--", *argv, keys=True).returncode == 0
    done = cli.run("replay", "t.jsonl.gz", "--", *argv, "Why is the sea salty?")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    (shown,) = re.findall(
        r"^ +tapeproxy: violation:.*?(?=^ +```)", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert textwrap.dedent(shown) in done.stderr


def test_the_recipe_of_the_fake_provider_works(cli: Cli) -> None:
    """docs/FAKE_PROVIDER.md: a provider as a command, a mapped host, a replay without it."""
    provider = cli.start("provider", "--tls")
    assert provider.stdout is not None
    url = provider.stdout.readline().strip()
    argv = [PY, str(ROOT / "examples" / "openai_tools.py")]
    key = {"OPENAI_API_KEY": "none"}
    recorded = cli.run("record", "--map", f"api.openai.com={url}", "--", *argv, env=key)
    provider.terminate()
    provider.communicate(timeout=30)
    assert recorded.returncode == 0, recorded.stderr
    replayed = cli.run("replay", "--require-all", env=key)
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout)
