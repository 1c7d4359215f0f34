"""The plugin in runs of pytest: which tests have a tape, what fails and why, what is told."""

import gzip
import json
from xml.etree import ElementTree

import pytest
from pluginsuites import Suite

from tapeproxy.cli.verify import examine
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.testplaces import plain
from tapeproxy.proxy.unlocking import ask_nobody
from tapeproxy.tapes.cireports import read_report

pytest_plugins = ["pytester"]


def test_a_marked_test_hears_its_tape(suite: Suite) -> None:
    suite.tape("test_a/test_one", "/one")
    suite.tape("test_a/TestIt.test_two[x-1]", "/two")
    suite.tape("shared", "/three")
    suite.file(
        "test_a",
        """
@pytest.mark.tape
def test_one():
    assert get("/one") == "/one"

class TestIt:
    @pytest.mark.parametrize("n", [1])
    @pytest.mark.parametrize("c", ["x"])
    def test_two(self, tape, n, c):
        assert get("/two") == "/two"
        assert [one.number for one in tape.exchanges] == [1] and not tape.unused and not tape.recording

@pytest.mark.tape("tapes/shared.tape.jsonl.gz")
def test_a_path_of_its_own():
    assert get("/three") == "/three"

def test_without():
    pass
""",
    )
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*an orphan:*")


def test_tests_that_must_fail_say_why(suite: Suite) -> None:
    for name in ("miss", "swallowed", "thread", "network", "twice", "forked"):
        suite.tape(f"test_a/test_{name}", "/one")
    suite.file(
        "test_a",
        """
@pytest.mark.tape
def test_miss():
    assert get("/two") == "/two"

@pytest.mark.tape
def test_swallowed():
    try:
        get("/two?a=1")
    except Exception:
        pass

@pytest.mark.tape
def test_thread():
    import threading
    thread = threading.Thread(target=get, args=("/three",))
    thread.start()
    thread.join()

@pytest.mark.tape
def test_network():
    import socket
    with pytest.raises(OSError):
        socket.create_connection(("elsewhere.test", 80))

@pytest.mark.tape
def test_twice():
    get("/one"), get("/one")

@pytest.mark.tape
@pytest.mark.filterwarnings("ignore")
def test_forked():
    import os
    child = os.fork()
    if not child:
        try:
            get("/forked")
        finally:
            os._exit(0)
    os.waitpid(child, 0)

@pytest.mark.tape
def test_no_tape():
    get("/one")

@pytest.fixture
def asking():
    yield
    get("/late")

@pytest.mark.tape
def test_in_a_fixture(asking):
    pass
""",
    )
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(failed=7, passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*test_miss.tape.jsonl.gz: this request is not on the tape",
            "*GET https://api.test/two",
            "*tape: /one",
            "*now:  /two",
            "*0 answers of tapes/test_a/test_miss.tape.jsonl.gz were given, 1 were not",
            "what the replay knows: .tapes/failures/*test_miss*.json",
        ],
        consecutive=False,
    )
    for why in (
        "*GET https://api.test/two[?]a=1",
        "*GET https://api.test/three",
        "*look up elsewhere.test, at *test_a.py:*",
        "*the tape has this request once, and each answer was given out already*",
        "*there is no such tape yet: record it with --tape-mode=once, and commit it",
        "*GET https://api.test/late",
        "*a process that was forked within a replay asked for this, and was refused*",
        "there is no tape tapes/test_a/test_no_tape.tape.jsonl.gz",
    ):
        result.stdout.fnmatch_lines([why])
    facts = json.loads((suite.path / ".tapes/failures" / f"{plain('test_a.py::test_miss')}.json").read_text())
    assert facts["unused"] == [1]
    assert facts["violations"][0]["kind"] == "miss"


OUTCOMES = """
import sys, unittest
from tapeproxy import TapeViolationError

def miss():
    try:
        get("/miss")
    except Exception:
        pass

@pytest.mark.tape
class TestIt(unittest.TestCase):
    def test_skips(self):
        miss(), self.skipTest("no service")

    @unittest.expectedFailure
    def test_expected(self):
        miss(), self.fail("as expected")

    def test_asserts(self):
        miss(), self.assertEqual(1, 2)

    def test_subtests(self):
        for n in range(2):
            with self.subTest(n=n):
                miss(), self.assertEqual(n, 1)

    def test_swallows(self):
        miss()

@pytest.mark.tape
def test_skip(): miss(), pytest.skip("no service")

@pytest.mark.tape
def test_raises():
    miss()
    with pytest.raises(ValueError): pass

@pytest.mark.tape
def test_exit(): miss(), sys.exit(0)

@pytest.mark.tape
@pytest.mark.xfail(strict=True)
def test_xfail(): assert get("/miss") == "x"

@pytest.mark.tape
@pytest.mark.xfail(raises=Exception)
def test_xfail_of_all(): miss()

@pytest.mark.tape
def test_xfail_within(): miss(), pytest.xfail("known")

@pytest.mark.tape
@pytest.mark.xfail(raises=TapeViolationError, strict=True)
def test_meant(): miss()

@pytest.mark.tape
@pytest.mark.xfail(raises=(ValueError, TapeViolationError), strict=True)
def test_meant_and_raised(): miss(), sys.exit(1)

@pytest.mark.tape
@pytest.mark.xfail(strict=True)
def test_other(): assert False
"""


def test_a_violation_is_told_whatever_else_becomes_of_the_test(suite: Suite) -> None:
    suite.file("test_a", OUTCOMES)
    result = suite.run("--tape-mode=none", "-p", "xdist", "-n", "2", "--junitxml=out.xml")
    result.assert_outcomes(failed=12, xfailed=3)
    told = {case.attrib["name"]: case for case in ElementTree.parse(suite.path / "out.xml").iter("testcase")}
    expected = {name for name, case in told.items() if case.find("skipped") is not None}
    assert expected == {"test_meant", "test_meant_and_raised", "test_other"}
    for name, case in told.items():
        if name not in expected:
            said = " ".join("".join(failure.itertext()) for failure in case.iter("failure"))
            assert "this request is not on the tape" in said, name


def test_an_interrupted_test_is_told_of_and_leaves_no_half_a_tape(suite: Suite, world: list[str]) -> None:
    suite.tape("test_a/test_one", "/one")
    suite.file(
        "test_a",
        """
@pytest.mark.tape
def test_one():
    assert get("/miss")
    raise KeyboardInterrupt

@pytest.mark.tape
def test_new():
    assert get("/new") == "/new live"
    pytest.exit("it is enough")
""",
    )
    result = suite.run("-k", "one")
    result.stdout.fnmatch_lines(["*= tapes =*", "*test_one.tape.jsonl.gz: this request is not on the tape"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    suite.run("-k", "new")
    assert world == ["/new"]
    assert [path.name for path in (suite.path / "tapes/test_a").iterdir()] == ["test_one.tape.jsonl.gz"]


def kept(suite: Suite, test: str, run: str = "") -> list[tuple[str, int | None, str | None]]:
    """URL, status and source of what is on the tape that a failing test left, which is whole."""
    path = suite.path / ".tapes/failures" / f"{plain(test)}{run}.tape.jsonl.gz"
    assert examine(path, ask_nobody).good
    tape, _ = load(path)
    asked = ((one.request, one.response) for one in tape.exchanges)
    return [
        (request.url.decode(), None if response is None else response.status, request.source)
        for request, response in asked
    ]


def test_a_failing_test_leaves_a_tape_of_what_it_did(suite: Suite) -> None:
    for name in ("miss", "assert", "silent", "network"):
        suite.tape(f"test_a/test_{name}", "/one", "/two")
    suite.file(
        "test_a",
        """
@pytest.mark.tape
def test_miss():
    httpx.get("https://api.test/one", headers={"Authorization": "Bearer sk-live-0123456789abcdefghijkl"})
    get("/three")

@pytest.mark.tape
def test_no_tape():
    httpx.post("https://api.test/three", json={"api_key": "sk-live-0123456789abcdefghijkl"})

@pytest.mark.tape
def test_assert():
    assert get("/two") + get("/one") == "x"

@pytest.mark.tape
def test_silent():
    assert False

@pytest.mark.tape
def test_network():
    import socket
    with pytest.raises(OSError):
        socket.create_connection(("elsewhere.test", 80))

@pytest.mark.tape
def test_passes():
    pass
""",
    )
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(failed=5, passed=1)
    result.stdout.fnmatch_lines(["what it did, as a tape: .tapes/failures/*test_miss*.tape.jsonl.gz"])
    assert kept(suite, "test_a.py::test_miss") == [
        ("https://api.test/one", 200, "reused"),
        ("https://api.test/three", 470, "refused"),
    ]
    assert kept(suite, "test_a.py::test_assert") == [
        ("https://api.test/two", 200, "reused"),
        ("https://api.test/one", 200, "reused"),
    ]
    assert kept(suite, "test_a.py::test_network") == []
    folder = suite.path / ".tapes/failures"
    assert kept(suite, "test_a.py::test_no_tape") == [("https://api.test/three", 470, "refused")]
    assert len([*folder.glob("*.tape.jsonl.gz")]) == 4
    for path in folder.iterdir():
        data = path.read_bytes()
        assert b"sk-live" not in (gzip.decompress(data) if path.suffix == ".gz" else data.replace(b"json={", b""))


def test_a_report_of_all_tests(suite: Suite) -> None:
    for name in ("good", "bad"):
        suite.tape(f"test_a/test_{name}", "/one", "/two")
    suite.tape("test_b", "/one", "/two")
    suite.file(
        "test_a",
        """
@pytest.mark.tape
def test_good(): get("/one")

@pytest.mark.tape
def test_bad(): get("/one"), get("/three")

@pytest.mark.tape
def test_skipped(): pytest.skip()

def test_without(): pass
""",
    )
    suite.file(
        "test_b",
        """
@pytest.mark.tape(scope="module")
def test_one(): get("/one")

@pytest.mark.tape(scope="module")
def test_two(): get("/two")
""",
    )
    suite.run("--tape-mode=none", "--tape-report=out/tests.json", "-p", "xdist", "-n", "2", "--dist", "loadfile")
    found = json.loads((suite.path / "out/tests.json").read_text())["tests"]
    told = {one["test"]: (one["outcome"], one["answered"], one["exchanges"], len(one["violations"])) for one in found}
    assert told == {
        "test_a.py::test_good": ("passed", [1], 2, 0),
        "test_a.py::test_bad": ("failed", [1], 2, 1),
        "test_a.py::test_skipped": ("skipped", [], 0, 0),
        "test_b.py::test_one": ("passed", [1], 2, 0),
        "test_b.py::test_two": ("passed", [2], 1, 0),
    }
    (bad,) = (one for one in found if one["outcome"] == "failed")
    assert "this request is not on the tape" in bad["longrepr"]
    assert bad["kept"] == [f".tapes/failures/{plain('test_a.py::test_bad')}.tape.jsonl.gz"]
    entries = {entry.name: (entry.code, entry.why) for entry in read_report({"tests": found}, "tests.json")}
    assert entries["test_a.py::test_bad"] == (3, "1 violation")


def test_once_records_and_then_replays(suite: Suite, world: list[str]) -> None:
    suite.file(
        "test_a",
        """
@pytest.mark.tape
def test_one():
    assert get("/one") == "/one live"

@pytest.mark.tape
def test_silent():
    pass

@pytest.mark.tape
def test_failing():
    assert get("/one") == "something else"
""",
    )
    first = suite.run()
    first.assert_outcomes(passed=2, failed=1)
    first.stdout.fnmatch_lines(["tapes/test_a/test_one.tape.jsonl.gz (recorded)"])
    assert world == ["/one", "/one"]
    suite.run("-k", "one or silent").assert_outcomes(passed=2)
    assert [path.name for path in (suite.path / "tapes/test_a").iterdir()] == ["test_one.tape.jsonl.gz"]
    suite.run("--tape-mode=none", "-k", "one").assert_outcomes(passed=1)
    assert len(world) == 2


def test_all_keeps_the_old_tape_of_a_failing_test(suite: Suite, world: list[str]) -> None:
    suite.tape("test_a/test_pass", "/old")
    kept = suite.tape("test_a/test_fail", "/old")
    before = kept.read_bytes()
    suite.file(
        "test_a",
        """
@pytest.mark.tape
def test_pass():
    assert get("/new") == "/new live"

@pytest.mark.tape
def test_fail():
    assert get("/new") == "?"
""",
    )
    suite.run("--tape-mode=all").assert_outcomes(passed=1, failed=1)
    assert world == ["/new", "/new"]
    assert kept.read_bytes() == before
    suite.run("--tape-mode=verify", "-k", "pass").assert_outcomes(passed=1)
    suite.run("--tape-mode=rewrite").assert_outcomes(passed=1, failed=1)
    assert kept.read_bytes() != before


def test_answers_that_nobody_asked_for(suite: Suite) -> None:
    suite.tape("test_a/test_one", "/one", "/two")
    suite.file("test_a", "@pytest.mark.tape\ndef test_one():\n    get('/one')\n")
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["tapes/test_a/test_one.tape.jsonl.gz: 1 (answers that were not asked for)"])
    result = suite.run("--tape-mode=verify")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*1 answers were not asked for: exchange 2"])


def test_orphans_are_told_of(suite: Suite) -> None:
    suite.tape("test_a/test_one", "/one")
    suite.tape("test_a/test_gone", "/one")
    suite.file("test_a", "@pytest.mark.tape\ndef test_one():\n    get('/one')\n")
    gone = ["test_gone/test_it.run1", "test_gone/test_it", "test_gone"]
    for place in (*gone, "shared", "test_b/test_it", "test_b"):  # of files that were there, the user's, that are there
        suite.tape(place, "/one")
    (suite.path / "test_b.py").touch()
    (suite.path / "tapes/test_gone/notes.txt").touch()
    line = "tapes/test_a/test_gone.tape.jsonl.gz (an orphan: no test has it)"
    told = [one for one in suite.run("-k", "one").outlines if "an orphan" in one]
    assert told == [line, *(f"tapes/{place}.tape.jsonl.gz (an orphan: no test has it)" for place in gone)]
    suite.run("test_a.py::test_one").stdout.no_fnmatch_line("*an orphan:*")
    suite.run("-n", "2", "-p", "xdist").stdout.fnmatch_lines([line])


@pytest.mark.parametrize("scope", ["module", "session"])
def test_one_tape_for_many_tests(suite: Suite, scope: str) -> None:
    suite.tape("test_a" if scope == "module" else "session", "/one", "/two", "/three")
    suite.file(
        "test_a",
        f"""
pytestmark = pytest.mark.tape(scope={scope!r})

def test_one():
    assert get("/one") == "/one"

def test_wrong():
    get("/wrong")

def test_two():
    assert get("/two") == "/two"
""",
    )
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(passed=2, failed=1)
    suite.file("test_a", f"@pytest.mark.tape(scope={scope!r})\ndef test_one():\n    get('/one')\n")
    suite.run("--tape-mode=none").stdout.fnmatch_lines(["*2 (answers that were not asked for)"])


def test_a_module_records_one_tape(suite: Suite, world: list[str]) -> None:
    suite.file(
        "test_a",
        "pytestmark = pytest.mark.tape(scope='module')\n"
        "def test_one(): assert get('/one') == '/one live'\ndef test_two(): assert get('/two') == '/two live'\n",
    )
    suite.run().assert_outcomes(passed=2)
    suite.run("--tape-mode=verify").assert_outcomes(passed=2)
    assert world == ["/one", "/two"]
    assert (suite.path / "tapes/test_a.tape.jsonl.gz").is_file()


ASYNC = """
async def aget(path):
    async with httpx.AsyncClient() as client:
        return (await client.get("https://api.test" + path)).text

pytestmark = [pytest.mark.tape, pytest.mark.{mark}]

async def test_good():
    assert await aget("/one") == "/one"

async def test_bad():
    await aget("/two")
"""


def test_anyio(suite: Suite) -> None:
    for backend in ("asyncio", "trio"):
        suite.tape(f"test_a/test_good[{backend}]", "/one")
        suite.tape(f"test_a/test_bad[{backend}]", "/one")
    suite.file("test_a", ASYNC.format(mark="anyio"))
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*test_bad?trio?.tape.jsonl.gz: *not on the tape"])


def test_asyncio(suite: Suite) -> None:
    suite.tape("test_a/test_good", "/one")
    suite.tape("test_a/test_bad", "/one")
    suite.file("test_a", ASYNC.format(mark="asyncio"))
    options = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")
    suite.run("--tape-mode=none", *options).assert_outcomes(passed=1, failed=1)


def test_workers(suite: Suite) -> None:
    names = [f"test_{n}" for n in range(8)]
    for name in names:
        suite.tape(f"test_a/{name}", "/one", "/two")
    bodies = [f"@pytest.mark.tape\ndef {name}(): assert get('/one') == '/one'\n" for name in names]
    bodies[3] = "@pytest.mark.tape\ndef test_3(): get('/wrong')\n"
    suite.file("test_a", "".join(bodies))
    result = suite.run("--tape-mode=none", "-p", "xdist", "-n", "2")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["*GET https://api.test/wrong"])
    result.stdout.fnmatch_lines(["tapes/test_a/test_7.tape.jsonl.gz: 1 (answers that were not asked for)"])


def test_a_tape_that_is_too_old(suite: Suite) -> None:
    text = ""
    for name, age in (("old", "1d"), ("young", "9999w")):
        suite.tape(f"test_a/test_{name}", "/one")
        text += f"@pytest.mark.tape(max_age={age!r})\ndef test_{name}(): get('/one')\n\n"
    suite.file("test_a", text)
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(passed=2)
    (told,) = (line for line in result.outlines if "older than it may be" in line)
    assert told.startswith("tapes/test_a/test_old.tape.jsonl.gz (")


def test_ci_records_nothing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    suite.file("test_a", "@pytest.mark.tape\ndef test_one(): get('/one')\n")
    suite.run().assert_outcomes(failed=1)


def test_without_a_tape_nothing_is_loaded(suite: Suite) -> None:
    suite.file(
        "test_a",
        "def test_one():\n    import sys\n    print(sorted(n for n in sys.modules if n.startswith('tapeproxy')))\n",
    )
    suite.run_anew("-s").stdout.fnmatch_lines(["*['tapeproxy', 'tapeproxy.plugin', 'tapeproxy.plugin.entry']*"])


def test_a_program_has_a_tape_of_its_own(suite: Suite, world: list[str]) -> None:
    text = """
import sys

@pytest.mark.tape
def test_one(tape, tmp_path):
    code = "import os, urllib.request as u; print(os.getcwd(), u.urlopen('http://api.test/PATH').read().decode())"
    done = tape.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path} /PATH live\\n"), done.stderr
    assert done.served == (not tape_records) and not done.unused and bool(done.trace_hash) == (not tape_records)
"""
    suite.file("test_a", text.replace("PATH", "one").replace("tape_records", "True"))
    suite.run().assert_outcomes(passed=1)
    assert [path.name for path in (suite.path / "tapes/test_a").iterdir()] == ["test_one.run1.tape.jsonl.gz"]
    text = text.replace("tape_records", "False")
    suite.file("test_a", text.replace("PATH", "one").replace("mark.tape", "mark.tape(frozen=True)"))
    suite.run("--tape-mode=all").assert_outcomes(passed=1)
    suite.file("test_a", text.replace("PATH", "one").replace("mark.tape", "mark.tape(max_age='1s')"))
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*an orphan:*")
    result.stdout.fnmatch_lines(["tapes/test_a/test_one.run1.tape.jsonl.gz (older than it may be*"])
    suite.file("test_a", text.replace("PATH", "two"))
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ProgramError*this request is not on the tape*", "*GET http://api.test/two"])
    assert kept(suite, "test_a.py::test_one", ".run1") == [("http://api.test/two", 470, "refused")]
    assert world == ["/one"]
    suite.file("test_a", "@pytest.mark.tape\ndef test_one(tape):\n    tape.run(['true'])\n")
    result = suite.run("--tape-mode=verify")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*test_one.run1.tape.jsonl.gz: 1 answers were not asked for: exchange 1"])


def test_a_wrong_marker_fails_its_test_and_no_other(suite: Suite) -> None:
    suite.file(
        "test_a",
        """
@pytest.mark.tape(scope="class")
def test_scope(): pass

@pytest.mark.tape(5)
def test_path(): pass

@pytest.mark.tape(on_drift="ignore")
def test_word(): pass

@pytest.mark.tape(max_ag="3d")
def test_name(): pass

@pytest.mark.tape(rules=["ignore-heder x"])
def test_rule(): pass

@pytest.mark.tape(rules="ignore-header x")
def test_text(): pass

@pytest.mark.tape
def test_right(): pass
""",
    )
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(passed=1, errors=6)
    for said in (
        "*on_drift is fail or report, not 'ignore'*",
        "*a tape's scope is function, module or session, not 'class'*",
        "*a tape's path is a text, not 5*",
        "*the marker tape and tape_config have no 'max_ag'*",
        "*perhaps max_age is meant*",
        "*rules: 'ignore-heder' is no rule; there are *",
        "*rules are a list of texts, not 'ignore-header x'*",
    ):
        result.stdout.fnmatch_lines([said])


def test_folders_that_cannot_be_written(suite: Suite) -> None:
    suite.tape("test_a/test_miss", "/one")
    suite.file("test_a", "@pytest.mark.tape\ndef test_miss(): get('/two')\n")
    (suite.path / ".tapes").write_text("no folder")
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*this request is not on the tape", "what the replay knows could not be written: *"])
    result = suite.run("--tape-mode=none", "--tape-report=.tapes/report.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --tape-report: *report.json cannot be written: *"])


def test_tests_in_folders_in_any_order(suite: Suite) -> None:
    """Two files of one name, each with a conftest of its own and tapes beside it; run backwards by two workers."""
    text = "import httpx, pytest\n\ndef get(path): return httpx.get('https://api.test' + path).text\n"
    for folder, asked in (("x", "/one"), ("y", "/two")):
        (suite.path / folder).mkdir()
        suite.tape(f"test_a/test_{folder}", asked).rename(suite.path / folder / "own.tape.jsonl.gz")
        (suite.path / folder / "conftest.py").write_text(
            "import pytest\n\n@pytest.fixture(scope='session')\n"
            f"def tape_config(): return {{'rules': ['ignore-query {folder}'], 'on_drift': 'report'}}\n"
        )
        (suite.path / folder / "test_a.py").write_text(
            f"{text}@pytest.mark.tape('own.tape.jsonl.gz')\n"
            f"def test_it(): assert get('{asked}?{folder}=1') == '{asked}'\n"
        )
    (suite.path / "conftest.py").write_text(
        "import pytest\n\n@pytest.hookimpl(trylast=True)\ndef pytest_collection_modifyitems(items): items.reverse()\n"
    )
    more = ("--import-mode=importlib", "-p", "xdist", "-n", "2")
    suite.run("--tape-mode=verify", *more).assert_outcomes(passed=2)


def test_a_tape_that_was_interrupted_is_said_to_be(suite: Suite) -> None:
    whole = suite.tape("test_a/test_one", "/one", "/two")
    lines = gzip.decompress(whole.read_bytes()).splitlines(keepends=True)
    whole.write_bytes(gzip.compress(b"".join(lines[:-1])))
    suite.file("test_a", "@pytest.mark.tape\ndef test_one():\n    get('/three')\n")
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the tape was interrupted and may end before this*"])
