"""Recording never hurts: a Node program runs as without the shim, whatever goes wrong with ours."""

import re
from pathlib import Path

import pytest
from noderuns import run_node

from tapeproxy.shim import NODE

PROGRAM = """
import { randomUUID } from 'node:crypto';
console.log(typeof Date.now(), randomUUID().length);
"""
SAID = "number 36\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "a.mjs"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"TAPEPROXY_SIDECAR": "/nowhere/at/all"}, id="no folder"),
        pytest.param({"TAPEPROXY_SIDECAR": "/dev/null"}, id="no directory"),
        pytest.param({"TAPEPROXY_PROXY": "nonsense"}, id="no proxy"),
        pytest.param({"TAPEPROXY_LANE": ""}, id="no lane"),
        pytest.param(
            {"TAPEPROXY_PROXY": "127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NODE_USE_ENV_PROXY": "1"},
            id="Node's own proxies",  # of which Node 22 warns
        ),
        pytest.param({"TAPEPROXY_MODE": ""}, id="no run"),
    ],
)
def test_a_run_that_cannot_be_told_of_goes_on(extra: dict[str, str], program: Path, tmp_path: Path) -> None:
    run = run_node(program, folder=tmp_path, extra=extra)
    assert (run.returncode, run.stdout, run.stderr) == (0, SAID, "")


@pytest.mark.parametrize(("mode", "code", "said"), [("record", 0, SAID), ("replay", 97, "")])
def test_a_shim_that_cannot_be_installed(mode: str, code: int, said: str, program: Path, tmp_path: Path) -> None:
    run = run_node(program, folder=tmp_path, mode=mode, extra={"TAPEPROXY_SEED": "ab"})  # type: ignore[arg-type]
    assert (run.returncode, run.stdout) == (code, said)
    assert ("would prove nothing" in run.stderr) == (mode == "replay")


def test_it_does_not_depend_on_the_package_that_it_lies_in(program: Path, tmp_path: Path) -> None:
    """A folder below a package.json that says "module" would make plain .js files something else."""
    assert {path.suffix for path in NODE.parent.iterdir() if path.is_file()} == {".cjs"}
    copy = tmp_path / 'a folder\'s "name"'
    copy.mkdir()
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for path in NODE.parent.glob("*.cjs"):
        (copy / path.name).write_text(path.read_text())
    from tapeproxy.proxy.shimming import node_option

    run = run_node(program, folder=tmp_path, extra={"NODE_OPTIONS": node_option(copy / "install.cjs")})
    assert (run.stdout, run.stderr, len(run.of("hello"))) == (SAID, "", 1)


def test_an_error_of_the_agent_s_is_its_own(tmp_path: Path) -> None:
    program = tmp_path / "a.cjs"
    program.write_text(
        "process.on('exit', (code) => console.log(code, Date.now() > 0)); setTimeout(() => { throw 5 }, 1);"
    )
    bare, ours = (run_node(program, folder=tmp_path, mode=mode) for mode in ("bare", "record"))
    assert (ours.returncode, ours.stdout) == (bare.returncode, bare.stdout) == (1, "1 true\n")
    assert ours.of("end")[-1]["reads"] == 1


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("Object.freeze(Error); await null; await 1", id="frozen errors"),
        pytest.param("Error.prepareStackTrace = () => { throw 1 }; await null", id="stacks that throw"),
        pytest.param("Object.freeze(Object.prototype); Object.freeze(Promise.prototype); await null", id="frozen"),
        pytest.param(
            "const p = Object.freeze(Promise.resolve(1)); await p; await p.then(() => 2)", id="frozen promise"
        ),
        pytest.param("globalThis.Date = class extends Date {}; new Date(); await null", id="another Date"),
        pytest.param("const D = Date; delete globalThis.Date; D.now(); await null; globalThis.Date = D", id="no Date"),
        pytest.param(
            "await new Promise((r) => { setTimeout(r, '3'); setTimeout(r, NaN); setTimeout(r, -1) })", id="delays"
        ),
        pytest.param("process.emit('exit', 0); process.hrtime = null; await null", id="exit told twice"),
    ],
)
def test_what_an_agent_does_to_the_language_is_its_own(code: str, tmp_path: Path) -> None:
    program = tmp_path / "a.mjs"
    program.write_text(f"{code}; console.log('done');\n")
    bare, ours = (run_node(program, folder=tmp_path, mode=mode) for mode in ("bare", "record"))
    assert (ours.returncode, ours.stdout) == (bare.returncode, bare.stdout)
    said = [re.sub(r"\(node:\d+\)", "(node)", run.stderr) for run in (ours, bare)]
    assert said[0] == said[1]
