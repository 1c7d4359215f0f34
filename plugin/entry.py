"""The hooks of pytest: which tests have a tape, when it is opened, and that a violation fails the test.

Loaded with every pytest of an environment that has tapeproxy, so the rest is imported when a test has a tape.
"""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tapeproxy.plugin.session import TapeSession
    from tapeproxy.plugin.testtape import TestTape

_SESSION = pytest.StashKey["TapeSession"]()
_TAPE = pytest.StashKey["TestTape"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tapeproxy", "tapes of tests")
    group.addoption(
        "--tape-mode",
        choices=("none", "once", "new", "update", "all", "rewrite", "verify"),
        default=None,
        help="none: only replay (the default where CI is set); once: record what has no tape (the default elsewhere); "
        "new: once, and add to tapes what is not on them; update: record only what changed, and show it; "
        "all: record every test anew, and keep the tapes of those that pass; rewrite: the same, but remove the old "
        "tape first and keep the new one in any case; verify: replay, and fail where an answer was not asked for",
    )
    group.addoption(
        "--tape-allow-network",
        action="store_true",
        help="Let marked tests connect past the clients that hear the tape.",
    )
    group.addoption(
        "--tape-report",
        metavar="FILE",
        default=None,
        help="write what each test did with its tape, as JSON, for tapeproxy ci",
    )
    group.addoption(
        "--tape-accept", action="store_true", help="Have --tape-mode=update write its tapes, without a question."
    )
    parser.addini("tape_mode", "the mode where --tape-mode is not given", default="")
    parser.addini("tape_max_age", "how old a tape may be: 30d, 12h", default="")
    parser.addini("tape_rules", "rules as in tapeproxy.toml, for every tape", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "tape(path=None, *, scope='function', max_age=None, rules=(), allow=(), block_network=True, match='lane', "
        "on_drift='fail', hosts=None, upstream_ca=None, frozen=False): the test hears a tape, offline, or is recorded "
        "(tapeproxy, docs/PYTEST.md)",
    )
    path = report_path(config)
    if path is not None and not hasattr(config, "workerinput"):
        from tapeproxy.plugin.reports import check_place

        check_place(path)  # now, and not when all tests have run


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before anything is deselected, so that a tape is not taken for an orphan because of that."""
    for item in items:
        if item.get_closest_marker("tape") is not None and isinstance(item, pytest.Function):
            _use_tape(item)
    taped = [item for item in items if "tape" in getattr(item, "fixturenames", ())]
    if taped:
        _session(config).collected(items, taped)


def _use_tape(item: pytest.Function) -> None:
    """Have the fixture set up before others of a test: what they ask is on the tape too; what wider ones ask is not."""
    names = item.fixturenames
    if "tape" not in names:
        known = item._fixtureinfo.name2fixturedefs
        wider = [name for name in names if name in known and known[name][-1].scope != "function"]
        names.insert(max((names.index(name) + 1 for name in wider), default=0), "tape")


def report_path(config: pytest.Config) -> Path | None:
    """Where the report for `tapeproxy ci` is to be; None where nobody asked for one."""
    named = config.getoption("tape_report") or os.environ.get("TAPEPROXY_TEST_REPORT")
    return config.invocation_params.dir / named if named else None


def _session(config: pytest.Config) -> "TapeSession":
    if _SESSION not in config.stash:
        from tapeproxy.plugin.session import TapeSession

        config.stash[_SESSION] = TapeSession(config)
    return config.stash[_SESSION]


@pytest.fixture(scope="session")
def tape_config() -> dict[str, Any]:
    """Options of every tape; override it in a conftest.py. The same names as the marker's."""
    return {}


@pytest.fixture(scope="session")
def _tapes_of_session(pytestconfig: pytest.Config) -> "Iterator[dict[Path, TestTape]]":
    yield from _session(pytestconfig).shared("session")


@pytest.fixture(scope="module")
def _tapes_of_module(pytestconfig: pytest.Config) -> "Iterator[dict[Path, TestTape]]":
    yield from _session(pytestconfig).shared("module")


@pytest.fixture
def tape(request: pytest.FixtureRequest, tape_config: dict[str, Any]) -> "Iterator[TestTape]":
    """The test's tape: its HTTP is answered from there, or recorded there."""
    item = request.node
    session = _session(request.config)
    plan = session.plan(item, tape_config)
    if plan.scope == "function":
        opened = session.open(plan)
    else:
        shared = request.getfixturevalue(f"_tapes_of_{plan.scope}")
        opened = shared.get(plan.path) or shared.setdefault(plan.path, session.open(plan))
    item.stash[_TAPE] = opened
    session.begin(item, opened, shared=plan.scope != "function")
    try:
        yield opened
    finally:
        session.end(item, opened, own=plan.scope == "function")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that did what is not on its tape, whatever it made of that."""
    __tracebackhide__ = True
    cause: BaseException | None = None
    result: object = None
    opened = item.stash.get(_TAPE, None)
    try:
        result = yield
    except (KeyboardInterrupt, pytest.exit.Exception):
        if opened is not None:
            _session(item.config).interrupted(opened)
        raise
    except BaseException as error:
        cause = error
    if opened is not None:
        _session(item.config).check(opened, cause)
    if cause is not None:
        raise cause
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have the report carry what was found, and tell a failing test's where its tape is, and what the replay knows."""
    report = yield
    opened = item.stash.get(_TAPE, None)
    if opened is not None:
        _session(item.config).reported(item, opened, report, call.excinfo)
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if _SESSION in config.stash or _has_reports(terminalreporter):
        from tapeproxy.plugin.summary import summarise

        summarise(terminalreporter, config.stash.get(_SESSION, None))
    if (path := report_path(config)) is not None:
        from tapeproxy.plugin.reports import write_report

        late = config.stash[_SESSION].late if _SESSION in config.stash else {}
        terminalreporter.write(write_report(path, _reports(terminalreporter), late), red=True)


def _has_reports(terminalreporter: Any) -> bool:
    reports = _reports(terminalreporter)
    return any(name.startswith("tape_") for report in reports for name, _ in report.user_properties)


def _reports(terminalreporter: Any) -> Iterator[pytest.TestReport]:
    found = (report for reports in terminalreporter.stats.values() for report in reports)
    return (report for report in found if isinstance(report, pytest.TestReport))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist hands over what no report has. What comes of a test that is over fails the run."""
    ours = session.config.stash.get(_SESSION, None)
    if ours is None:
        return
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["tape_orphans"] = [str(path) for path in ours.orphans()]
        output["tape_late"] = ours.late
    elif ours.late and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    orphans, late = output.get("tape_orphans", ()), output.get("tape_late", {})
    if orphans or late:
        ours = _session(node.config)
        ours.heard_orphans.update(map(Path, orphans))
        ours.late |= late


def pytest_report_header(config: pytest.Config) -> str | None:
    mode = config.getoption("tape_mode") or config.getini("tape_mode")
    return f"tapeproxy: --tape-mode={mode}" if mode else None
