"""The modes `new` and `update` of the plugin, in runs of pytest."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import inprocesstapes
import pytest
import warm
from origin import Call, Origin
from pluginsuites import run_pytest

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape

pytest_plugins = ["pytester"]
WORLD = """import pytest

@pytest.fixture(scope="session")
def tape_config():
    return {{"hosts": {{"api.test": {url!r}}}}}
"""
TEST = """import httpx, os, pytest

def get(path):
    return httpx.get("https://api.test" + path, headers={{"x-api-key": os.environ.get("TEST_API_KEY", "none")}}).text

@pytest.mark.tape{marker}
def test_it():
    {code}
"""
ARGS = ("-p", "tapeproxy.plugin.entry", "-p", "no:cacheprovider", "-W", "error")


class Suite:
    """A test, its tape, and the world that it asks; `asked`: what has reached that since the last look."""

    def __init__(self, path: Path, heard: list[str]) -> None:
        self.path = path
        self._heard = heard

    @property
    def tape(self) -> Path:
        return self.path / "tapes" / "test_a" / "test_it.tape.jsonl.gz"

    @property
    def new(self) -> Path:
        return self.tape.with_name(f"{self.tape.name}.new")

    def taped(self, *paths: str) -> bytes:
        """Give the test a tape with GETs of these."""
        inprocesstapes.gets(self.tape.parent, *paths).rename(self.tape)
        return self.tape.read_bytes()

    def test(self, code: str, marker: str = "") -> None:
        (self.path / "test_a.py").write_text(TEST.format(code=code, marker=marker), "utf-8")

    def run(self, *args: str) -> pytest.RunResult:
        return run_pytest(self.path, *ARGS, *args)

    def asked(self) -> list[str]:
        found = [*self._heard]
        self._heard.clear()
        return found

    def files(self) -> list[str]:
        return sorted(path.name for path in self.tape.parent.iterdir())


def urls(tape: Tape) -> list[str]:
    return [one.request.url.decode().removeprefix("https://api.test") for one in tape.exchanges]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Suite]:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("TEST_API_KEY", "a-key-that-is-only-for-tests-0815")
    monkeypatch.delenv("CI", raising=False)
    heard: list[str] = []

    async def answer(call: Call) -> None:
        heard.append(call.request.target)
        text = f"{call.request.target} live".encode()
        await call.head("200 OK", f"Content-Length: {len(text)}")
        await call.send(text)

    with Origin(answer) as running:
        (pytester.path / "conftest.py").write_text(WORLD.format(url=running.url), "utf-8")
        yield Suite(pytester.path, heard)


def test_an_update_asks_only_what_changed_and_leaves_the_new_tape_beside_the_old_one(suite: Suite) -> None:
    before = suite.taped("/one", "/two", "/three")
    suite.test('assert [get("/one"), get("/new"), get("/three")] == ["/one", "/new live", "/three"]')
    result = suite.run("--tape-mode=update")
    result.assert_outcomes(passed=1)
    assert suite.asked() == ["/new"]
    result.stdout.fnmatch_lines(
        [
            "tapes/test_a/test_it.tape.jsonl.gz: 2 same, 1 changed",
            "  ~ GET https://api.test/two",
            "      path: /two -> /new",
            "not written: the new tapes wait beside the old ones*",
            "  tapeproxy update --review tapes/test_a *",
        ]
    )
    assert suite.tape.read_bytes() == before
    tape, ending = load(suite.new)
    assert (urls(tape), ending.sealed) == (["/one", "/new", "/three"], True)
    assert [one.request.source for one in tape.exchanges] == ["reused", "live", "reused"]
    assert (tape.head.parent or {})["last"] == load(suite.tape)[1].hash

    words = [sys.executable, "-m", "tapeproxy.cli.main", "update", "--accept", "tapes"]
    assert warm.run(words, suite.path, os.environ).returncode == 0
    assert suite.files() == [suite.tape.name]
    suite.run("--tape-mode=verify").assert_outcomes(passed=1)
    after = suite.tape.read_bytes()
    result = suite.run("--tape-mode=update", "--tape-accept")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*test_it.tape.jsonl.gz*")
    assert suite.asked() == []
    assert suite.tape.read_bytes() == after


def test_what_is_no_longer_asked_for_is_dropped_and_accepted_at_once_where_that_is_said(suite: Suite) -> None:
    suite.taped("/one", "/two")
    suite.test('get("/two")')
    result = suite.run("--tape-mode=update", "--tape-accept")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["tapes/test_a/test_it.tape.jsonl.gz: 1 same, 1 missing", "  - GET https://api.test/one"]
    )
    assert suite.asked() == []
    assert urls(load(suite.tape)[0]) == ["/two"]
    assert suite.files() == [suite.tape.name]


def test_a_failing_test_and_one_that_wants_a_key_change_nothing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    before = suite.taped("/one")
    suite.test('assert get("/new") == "/one"')
    result = suite.run("--tape-mode=update")
    result.assert_outcomes(failed=1)
    assert suite.asked() == ["/new"]
    monkeypatch.delenv("TEST_API_KEY")
    suite.test('get("/new")')
    result = suite.run("--tape-mode=update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*holds the placeholder of a secret that is not set here, and was not sent*"])
    assert suite.asked() == []
    assert (suite.tape.read_bytes(), suite.files()) == (before, [suite.tape.name])


def test_new_adds_what_is_not_there_and_drops_nothing(suite: Suite) -> None:
    before = suite.taped("/one", "/two")
    suite.test('get("/two")')
    suite.run("--tape-mode=new").assert_outcomes(passed=1)
    assert (suite.asked(), suite.tape.read_bytes()) == ([], before)
    suite.test('assert [get("/two"), get("/two")] == ["/two", "/two live"]')
    result = suite.run("--tape-mode=new")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["tapes/test_a/test_it.tape.jsonl.gz: 1 added"])
    assert suite.asked() == ["/two"]
    tape, ending = load(suite.tape)
    assert (urls(tape), ending.sealed, ending.canonical) == (["/two", "/two", "/one"], True, True)
    assert [one.response_body for one in tape.exchanges] == [b"/two", b"/two live", b"/one"]
    suite.run("--tape-mode=none").assert_outcomes(passed=1)
    verified = [sys.executable, "-m", "tapeproxy.cli.main", "verify", str(suite.tape)]
    assert warm.run(verified, suite.path, os.environ).returncode == 0


@pytest.mark.parametrize("mode", ["new", pytest.param("update", marks=pytest.mark.soak)])
def test_where_there_is_no_tape_one_is_recorded(suite: Suite, mode: str) -> None:
    suite.test('get("/one")')
    suite.run(f"--tape-mode={mode}").assert_outcomes(passed=1)
    assert suite.asked() == ["/one"]
    assert urls(load(suite.tape)[0]) == ["/one"]
    assert suite.files() == [suite.tape.name]


def test_a_tape_of_several_tests_keeps_what_those_ask_that_do_not_run(suite: Suite) -> None:
    suite.taped("/one", "/two")
    shared = suite.tape.rename(suite.path / "tapes" / "test_a.tape.jsonl.gz")
    suite.test('get("/new")', '(scope="module")')
    suite.run("--tape-mode=update", "--tape-accept").assert_outcomes(passed=1)
    assert urls(load(shared)[0]) == ["/new", "/one", "/two"]


SCOPES = """import httpx, pytest

def get(path):
    return httpx.get("https://api.test" + path).text

@pytest.mark.tape(scope="session")
def test_session(): assert get("/s") == "/s live"

@pytest.mark.tape
def test_function(): assert get("/f") == "/f live"

@pytest.mark.tape(scope="module")
def test_module(): assert get("/m") == "/m live"

@pytest.mark.tape(scope="session")
def test_session_again(): assert get("/t") == "/t live"
"""


def test_tapes_of_all_scopes_are_recorded_and_updated_in_one_run(suite: Suite) -> None:
    (suite.path / "test_a.py").write_text(SCOPES)
    suite.run().assert_outcomes(passed=4)
    assert suite.asked() == ["/s", "/f", "/m", "/t"]
    assert urls(load(suite.path / "tapes/session.tape.jsonl.gz")[0]) == ["/s", "/t"]
    (suite.path / "test_a.py").write_text(SCOPES.replace("/s", "/S").replace("/f", "/F").replace("/t", "/T"))
    result = suite.run("--tape-mode=update", "--tape-accept")
    result.assert_outcomes(passed=4)
    assert suite.asked() == ["/S", "/F", "/T"]
    suite.run("--tape-mode=none").assert_outcomes(passed=4)


AGENT = """import sys, urllib.request
print(urllib.request.urlopen("https://api.test" + sys.argv[1]).read().decode())
sys.exit(3)
"""
RUN = """import sys
def test_it(tape):
    done = tape.run([sys.executable, "agent.py", {path!r}])
    assert (done.returncode, done.stdout) == (3, {path!r} + " live\\n")
"""


@pytest.mark.soak
def test_a_program_of_a_test_is_updated_too(suite: Suite) -> None:
    (suite.path / "agent.py").write_text(AGENT)
    test = suite.path / "test_a.py"
    test.write_text(RUN.format(path="/one"))
    suite.run("--tape-mode=once").assert_outcomes(passed=1)
    test.write_text(RUN.format(path="/new"))
    assert suite.asked() == ["/one"]
    result = suite.run("--tape-mode=update", "--tape-accept")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["tapes/test_a/test_it.run1.tape.jsonl.gz: 1 changed"])
    assert suite.asked() == ["/new"]
    suite.run("--tape-mode=none").assert_outcomes(passed=1)


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), pytest.param("n\n", False, marks=pytest.mark.soak)])
def test_on_a_terminal_it_asks(suite: Suite, answer: str, written: bool) -> None:
    before = suite.taped("/one")
    suite.test('get("/new")')
    mine, theirs = pty.openpty()
    words = [sys.executable, "-m", "pytest", *ARGS, "--tape-mode=update"]
    running = subprocess.Popen(words, cwd=suite.path, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        assert select.select([mine], [], [], 60)[0], said
        said += os.read(mine, 4096)
    os.write(mine, answer.encode())
    assert running.wait(60) == 0
    assert (suite.tape.read_bytes() != before) is written
    assert suite.files() == [suite.tape.name]
