"""Child processes: of the run, each in its lane, however they are started and with whatever environment."""

import shutil
from pathlib import Path

import pytest
from shimruns import everywhere, run, with_packages

from tapeproxy.shim import INJECT

CHILD = "import os, uuid; print(os.environ.get('TAPEPROXY_LANE'), os.environ['PYTHONPATH'], uuid.uuid4(), sep='|')"
HEAD = f"""
import asyncio, json, os, subprocess, sys
CHILD = {CHILD!r}
COMMAND = [sys.executable, "-c", CHILD]
def show(output): print(output.decode() if isinstance(output, bytes) else output, end="", flush=True)
"""
STARTS = {
    "run": "show(subprocess.run(COMMAND, capture_output=True).stdout)",
    "run, bare environment": "show(subprocess.run(COMMAND, capture_output=True, env={}).stdout)",
    "run, bytes environment": "show(subprocess.run(COMMAND, capture_output=True, env={b'A': b'b'}).stdout)",
    "run, closed descriptors": "show(subprocess.run(COMMAND, stdout=-1, close_fds=False).stdout)",
    "check_output": "show(subprocess.check_output(COMMAND, text=True))",
    "shell": "show(subprocess.check_output(f'{sys.executable} -c \"{CHILD}\"', shell=True))",
    "before exec": "show(subprocess.run(COMMAND, stdout=-1, preexec_fn=lambda: None).stdout)",
    "another session": "show(subprocess.run(COMMAND, stdout=-1, start_new_session=True).stdout)",
    "os.popen": "show(os.popen(f'{sys.executable} -c \"{CHILD}\"').read())",
    "os.system": "os.system(f'{sys.executable} -c \"{CHILD}\"')",
    "os.posix_spawn": "os.waitpid(os.posix_spawn(sys.executable, COMMAND, os.environ), 0)",
    "os.posix_spawn, bare": "os.waitpid(os.posix_spawn(sys.executable, COMMAND, {}), 0)",
    "os.posix_spawnp": "os.environ['PATH'] = os.path.dirname(sys.executable)\n"
    "os.waitpid(os.posix_spawnp(os.path.basename(sys.executable), COMMAND, os.environ), 0)",
    "os.spawnv": "os.spawnv(os.P_WAIT, sys.executable, COMMAND)",
    "os.spawnve": "os.spawnve(os.P_WAIT, sys.executable, COMMAND, {})",
    "os.execv": "os.execv(sys.executable, COMMAND)",
    "os.execve": "os.execve(sys.executable, COMMAND, {})",
    "os.execl": "os.execl(sys.executable, *COMMAND)",
    "os.execvp": "os.environ['PATH'] = '/nowhere:/no/where:' + os.path.dirname(sys.executable)\n"
    "os.execvp(os.path.basename(sys.executable), COMMAND)",
    "fork and exec": "if os.fork(): os.wait()\nelse: os.execv(sys.executable, COMMAND)",
    "pty": "import pty; pty.spawn(COMMAND)",
    "asyncio": "async def main():\n"
    "    p = await asyncio.create_subprocess_exec(*COMMAND); await p.wait()\n"
    "asyncio.run(main())",
    "asyncio, shell, bare": "async def main():\n"
    "    p = await asyncio.create_subprocess_shell(f'{sys.executable} -c \"{CHILD}\"', env={}); await p.wait()\n"
    "asyncio.run(main())",
    "a changed path": "os.environ['PYTHONPATH'] = '/elsewhere'; show(subprocess.check_output(COMMAND))",
    "a cleared environment": "os.environ.clear(); show(subprocess.check_output(COMMAND))",
}
LANES = {
    "os.spawnv": "m/f0/p0",
    "os.spawnve": "m/f0/p0",
    "fork and exec": "m/f0/p0",
    "pty": "m/f0/p0",
    "asyncio": "m/a0/p0",
    "asyncio, shell, bare": "m/a0/p0",
}


REPLACING = [
    name for name in STARTS if name.startswith(("os.exec", "fork", "pty", "os.spawn")) or "environment" in name
]
TOGETHER = [name for name in STARTS if name not in REPLACING or name.startswith("run")]


def check(lines: list[str], name: str) -> None:
    (line,) = [line for line in lines if line.strip()]
    lane, path, _ = line.split("|")
    assert lane == "None", name  # it is the child's alone
    assert path.split(":")[0] == str(INJECT), name
    assert path.split(":")[1:] == (["/elsewhere"] if name == "a changed path" else []), name


@everywhere
def test_ways_to_start_a_program(python: Path, sidecar: Path) -> None:
    """All in one process; each child prints its line between two of ours."""
    code = HEAD + "from _tapeproxy import lanes\n"
    for name in TOGETHER:
        code += "print('--', flush=True); kept = dict(os.environ)\n"
        code += f"lanes.run_in(lanes.current().child('z'), exec, {STARTS[name]!r}, globals())\n"
        code += "os.environ.clear(); os.environ.update(kept)\n"
    recorded = run(code, python=python, sidecar=sidecar)
    parts = recorded.stdout.split("--\n")[1:]
    assert len(parts) == len(TOGETHER), recorded.stderr
    for name, part in zip(TOGETHER, parts, strict=True):
        check(part.splitlines(), name)
    hellos = {line["lane"] for line in recorded.of("hello")}
    assert hellos == {"m"} | {f"m/z{n}/{LANES.get(name, 'm/p0')[2:]}" for n, name in enumerate(TOGETHER)}
    assert not recorded.of("note")
    replayed = run(code, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    assert replayed.stdout == recorded.stdout


@everywhere
@pytest.mark.parametrize("name", [name for name in STARTS if name not in TOGETHER])
def test_ways_to_become_a_program(name: str, python: Path, sidecar: Path) -> None:
    recorded = run(HEAD + STARTS[name], python=python, sidecar=sidecar)
    check(recorded.stdout.splitlines(), name)
    assert LANES.get(name, "m/p0") in {line["lane"] for line in recorded.of("hello")}
    assert not recorded.of("note")


def test_uvloop_starts_programs_by_itself(sidecar: Path) -> None:
    code = (
        HEAD
        + """
import uvloop
async def main():
    for how in ({}, {"env": {}}): await (await asyncio.create_subprocess_exec(*COMMAND, **how)).wait()
    await (await asyncio.create_subprocess_shell(f'{sys.executable} -c "{CHILD}"', env={"A": "b"})).wait()
uvloop.run(main())
"""
    )
    ran = run(code, python=with_packages("uvloop"), sidecar=sidecar)
    for line in ran.stdout.splitlines():
        check([line], "uvloop")
    assert {line["lane"] for line in ran.of("hello")} == {"m", "m/a0/p0", "m/a0/p1", "m/a0/p2"}


@everywhere
def test_children_of_two_threads(python: Path, sidecar: Path) -> None:
    code = (
        HEAD
        + """
import threading
out = {}
def work(name): out[name] = [subprocess.check_output(COMMAND, text=True) for _ in range(2)]
threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(out))
"""
    )
    runs = [run(code, mode=mode, python=python, sidecar=sidecar) for mode in ("record", "replay")]
    assert runs[0].json == runs[1].json
    assert len({text for texts in runs[0].json.values() for text in texts}) == 4
    assert {line["lane"] for line in runs[0].of("hello")} == {"m"} | {f"m/t{t}/p{p}" for t in (0, 1) for p in (0, 1)}


@everywhere
def test_what_a_child_of_the_run_needs_is_put_back(python: Path, sidecar: Path) -> None:
    """An MCP server is started with a bare PATH: its requests are the run's all the same."""
    child = "import json, os; print(json.dumps(dict(os.environ)))"
    code = f"""
import subprocess, sys
env = {{"A": "b", "https_proxy": "own"}}
print(subprocess.check_output([sys.executable, "-c", {child!r}], env=env).decode())
"""
    extra = {"HTTPS_PROXY": "http://p", "https_proxy": "http://p", "SSL_CERT_FILE": "/bundle", "OTHER": "stays out"}
    env = run(code, python=python, sidecar=sidecar, extra=extra).json
    assert env["A"] == "b"
    assert env["https_proxy"] == "own"  # what the agent says itself stands
    assert (env["HTTPS_PROXY"], env["SSL_CERT_FILE"], env["PYTHONHASHSEED"]) == ("http://p", "/bundle", "0")
    assert "OTHER" not in env
    assert {name for name in env if name.startswith("TAPEPROXY_")} == {
        *("TAPEPROXY_RUN", "TAPEPROXY_MODE", "TAPEPROXY_SEED", "TAPEPROXY_SIDECAR", "TAPEPROXY_ORIGIN")
    }


@everywhere
def test_programs_that_are_not_python_run_as_ever(python: Path, sidecar: Path) -> None:
    code = f"""
import os, subprocess, sys
print(subprocess.run([{shutil.which("sh")!r}, "-c", "echo out; echo err >&2; exit 3"], capture_output=True))
print(os.system("exit 4") >> 8, os.system("echo 'a;b' \\"c\\" $((1+1)) # comment"), os.system(""))
print(os.popen("printf x").read())
print(os.WTERMSIG(os.system("kill -9 $$")))
def fails(call):
    try: call()
    except Exception as error: return f"{{type(error).__name__}}: {{error}}"
for call in (
    lambda: subprocess.run(["/not/there"]), lambda: subprocess.run([1]), lambda: os.execv("/not/there", ["x"]),
    lambda: os.posix_spawn("/not/there", ["x"], {{}}), lambda: os.system(1), lambda: os.execv(sys.executable, []),
    lambda: subprocess.run(["true"], env={{"A=B": "c"}}), lambda: os.execve("/bin/true", ["x"], {{1: 2}}),
):
    print(fails(call))
"""
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar) for mode in ("bare", "record"))
    assert bare.stdout == ours.stdout, ours.stderr


@everywhere
def test_what_was_put_past_os_environ_is_inherited(python: Path, sidecar: Path) -> None:
    code = """
import os, subprocess, sys
os.putenv("PUT", "yes"); os.environ["GONE"] = "no"; os.unsetenv("GONE")
os.environ["SET"] = "yes"; os.environ["WAS"] = "x"; del os.environ["WAS"]
show = "import os; print([os.environ.get(name) for name in ('PUT', 'GONE', 'SET', 'WAS', 'PRE')], flush=True)"
command = [sys.executable, "-c", show]
def run(**kwargs): print(subprocess.run(command, stdout=-1, **kwargs).stdout)
run(); run(preexec_fn=lambda: os.putenv("PRE", "yes")); run(env=os.environ); run(env={}, preexec_fn=lambda: None)
print(os.popen(f'{sys.executable} -c "{show}"').read(), flush=True)
os.system(f'{sys.executable} -c "{show}"')
os.execv(sys.executable, command)
"""
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar) for mode in ("bare", "record"))
    assert bare.stdout == ours.stdout, ours.stderr
    lanes = [line["lane"] for line in ours.of("hello")]
    assert sorted(lanes) == ["m", *(f"m/p{number}" for number in range(7))]


@everywhere
def test_a_failed_exec_counts_for_nothing(python: Path, sidecar: Path) -> None:
    code = (
        HEAD
        + """
for _ in range(3):
    try: os.execv("/not/there", ["x"])
    except OSError: pass
show(subprocess.check_output(COMMAND))
"""
    )
    assert {line["lane"] for line in run(code, python=python, sidecar=sidecar).of("hello")} == {"m", "m/p0"}


@everywhere
def test_every_python_says_hello(python: Path, sidecar: Path) -> None:
    """Which is how the launcher knows who did not; one that only forks to execute says nothing."""
    code = HEAD + "subprocess.run([sys.executable, '-c', ''], preexec_fn=lambda: None)\n"
    code += "subprocess.run([sys.executable, '-I', '-c', ''])\nos.fork() or os._exit(0); os.wait()"
    hellos = run(code, python=python, sidecar=sidecar).of("hello")
    assert [line["lane"] for line in hellos] == ["m", "m/p0", "m/f0"]
    assert len({line["pid"] for line in hellos}) == 3
