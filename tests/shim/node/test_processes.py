"""Processes and threads that a Node program starts: each has its lane, and ends it."""

import re
import sys
from pathlib import Path

import pytest
import shimruns
from noderuns import node, run_node
from shimruns import Run

from tapeproxy.proxy.childenv import OURS
from tapeproxy.proxy.processes import RUN_VARIABLE
from tapeproxy.shim import INJECT, NODE

PROGRAM = """
const { spawn, spawnSync, execSync, execFileSync, fork } = require('child_process');
const { Worker, isMainThread, SHARE_ENV } = require('worker_threads');
const draw = () => require('crypto').randomUUID();
const here = __filename, node = process.execPath;
if (!isMainThread || process.argv[2]) console.log(process.argv[2] || 'thread', draw(), Date.now() > 0);
else {
  console.log('lane', process.env.TAPEPROXY_LANE, draw());
  const done = (name, out) => console.log(name, String(out).trim());
  done('spawnSync', spawnSync(node, [here, 'sync']).stdout);
  done('execFileSync', execFileSync(node, [here, 'file'], { env: {} }));
  done('execSync', execSync(`"${node}" "${here}" shell`));
  done('python', execFileSync(process.env.PYTHON, ['-c', 'import uuid; print(uuid.uuid4())']));
  const child = spawn(node, [here, 'spawned'], { env: { PATH: process.env.PATH, NODE_OPTIONS: '--no-deprecation' } });
  child.stdout.on('data', (text) => done('spawn', text));
  child.on('close', () => {
    fork(here, ['forked']).on('close', () => {
      new Worker(here).on('exit', () => {
        new Worker(here, { env: SHARE_ENV }).on('exit', () => {
          new Worker(here, { env: {}, execArgv: [] }).on('exit', () => process.exit(3));
        });
      });
    });
  });
}
"""
LANES = ["m/js", *(f"m/js/p{n}/js" for n in (0, 1, 2, 4, 5)), "m/js/p3"]


def hellos(run: Run) -> list[str]:
    return sorted(line["lane"] for line in run.of("hello"))


def test_each_has_a_lane_of_its_own_and_draws_the_same_again(tmp_path: Path) -> None:
    program = tmp_path / "a.cjs"
    program.write_text(PROGRAM)
    python = {"PYTHON": sys.executable, "PYTHONPATH": str(INJECT)}
    first, again = (run_node(program, folder=tmp_path, mode=mode, extra=python) for mode in ("record", "replay"))
    assert (first.returncode, first.stderr) == (3, "")
    assert first.stdout == again.stdout
    assert "lane undefined" in first.stdout
    drawn = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", first.stdout)
    assert len(drawn) == len(set(drawn)) == 10
    threads = [lane for lane in hellos(first) if re.fullmatch(r"m/js/.*t\d/js", lane)]
    assert (hellos(first), len(threads)) == (sorted([*LANES, *threads]), 3)
    assert {*LANES[1:6], *threads} <= {line["lane"] for line in first.of("end")}


def test_the_launcher_s_own_variables_are_known() -> None:
    text = (NODE.parent / "processes.cjs").read_text()
    for name in {*OURS} - {RUN_VARIABLE}:
        assert f"'{name}'" in text, name


def test_a_lane_that_another_process_has_taken_is_not_taken_again(tmp_path: Path) -> None:
    program = tmp_path / "a.sh"
    program.write_text("node -e 'console.log(Math.random())'; node -e 'console.log(Math.random())'\n")
    runner = tmp_path / "a.cjs"
    runner.write_text(f"console.log(String(require('child_process').execFileSync('sh', [{str(program)!r}])));")
    run = run_node(runner, folder=tmp_path)
    one, other = run.stdout.split()
    assert one != other
    assert hellos(run) == ["m/js", "m/js/p0/js", "m/js/p0/x1/js"]


@pytest.mark.parametrize("given", ["{}", "{'NODE_OPTIONS': '--no-deprecation'}", "dict(os.environ)"])
def test_a_node_that_a_python_starts_is_of_the_run(given: str, tmp_path: Path) -> None:
    code = f"import os, subprocess; print(subprocess.check_output([{node()!r}, '-p', 'Math.random()'], env={given}))"
    options = {"NODE_OPTIONS": f'--require="{NODE}"'}
    ran = [shimruns.run(code, python=sys.executable, sidecar=tmp_path / "s", extra=options) for _ in range(2)]
    assert hellos(ran[0]) == ["m", "m/p0/js"]
    assert ran[0].stdout == ran[1].stdout
