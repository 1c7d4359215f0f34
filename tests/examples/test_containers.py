"""examples/compose on a real engine: podman, with an image that has nothing of its own and sees this machine's files.

What the Dockerfile installs is not part of this: there is no network. Networks, volumes, users and variables are the
compose files' own.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from clirun import KEYS
from hosts import Machine

from tapeproxy.proxy.tapefile import load

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
WORLD = "10.99.9.1"
"""Where the provider is: an address of the machine that the engine runs on."""
PLAINLY = f"import socket; socket.create_connection(('{WORLD}', 8000), 5)"
IMAGE = "localhost/tapeproxy-test:latest"
SETTINGS = """
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'
PROVIDER = """
import time
from tapeproxy.testing import FakeProvider
with FakeProvider(host="10.99.9.1", port=8000, seed=0) as provider:
    print(provider.url, flush=True)
    time.sleep(600)
"""
PATIENCE = 60.0


class Engine:
    """podman and podman-compose on a machine without a network, with images and networks of their own."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        (folder / "containers.conf").write_text(SETTINGS)
        (folder / "storage.conf").write_text(STORAGE.format(folder))
        self.machine, self.folder = machine, folder
        self.env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "TAPEPROXY_TOKEN": "0123456789abcdef-token",
        }

    def run(self, *words: str, keys: bool = False) -> subprocess.CompletedProcess[str]:
        return self.machine.run(*words, env=self.env | (KEYS if keys else {}), cwd=self.folder)

    def compose(self, *words: str, replay: bool = False) -> subprocess.CompletedProcess[str]:
        files = ["compose.yaml", *(["replay.yaml"] if replay else []), "here.yaml"]
        named = [word for file in files for word in ("-f", file)]
        return self.run(_composer(), "-p", "tried", *named, *words, keys=not replay)

    def import_image(self) -> None:
        """An image of empty folders, and of the links and users that programs expect."""
        root = self.folder / "root"
        empty = ("usr", "etc", "tmp", "tapes", "handover", "agent", "proc", "sys", "dev", *map(_inner, _mounted()))
        for name in empty:
            (root / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            (root / name).symlink_to(f"usr/{name}")
        (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\ntapeproxy:x:1000:1000::/tmp:/bin/sh\n")
        for name in ("tmp", "tapes", "handover"):
            (root / name).chmod(0o777)
        archive = self.folder / "root.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root, ".")
        done = self.run("podman", "import", str(archive), IMAGE)
        if done.returncode != 0:
            pytest.skip(f"podman can't keep an image here: {done.stderr.strip()[-200:]}")
        tried = self.run("podman", "run", "--rm", "--network=none", *_volume_words(), IMAGE, sys.executable, "-c", "")
        if tried.returncode != 0:
            pytest.skip(f"podman runs no container here: {tried.stderr.strip()[-200:]}")

    def wait_until_healthy(self) -> None:
        """As compose does where systemd runs health checks."""
        until = time.monotonic() + PATIENCE
        while (checked := self.run("podman", "healthcheck", "run", "tried_tapeproxy_1")).returncode != 0:
            assert time.monotonic() < until, checked.stderr


def _composer() -> str:
    return shutil.which("podman-compose") or str(Path(sys.executable).parent / "podman-compose")


def _mounted() -> list[str]:
    """The folders of this machine that a container sees: its programs, this Python and its packages, ourselves."""
    wanted = {"/usr", sys.base_prefix, sys.prefix, str(ROOT)}
    return sorted(path for path in wanted if not any(path.startswith(f"{other}/") for other in wanted))


def _inner(path: str) -> str:
    return path.lstrip("/")


def _volumes() -> list[str]:
    return [f"{path}:{path}:ro" for path in _mounted()]


def _volume_words() -> list[str]:
    return [word for volume in _volumes() for word in ("-v", volume)]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    if os.geteuid() != 0 or shutil.which("podman") is None or not Path(_composer()).exists():
        pytest.skip("needs root, podman and podman-compose")
    machine = Machine(as_root=True)
    try:
        if machine.refusal:
            pytest.skip(f"no network namespace here: {machine.refusal}")
        if os.path.ismount("/sys/fs/cgroup/unified"):  # two versions at once are more than crun takes
            machine.set_up("umount", "/sys/fs/cgroup/unified")
        engine = Engine(machine, tmp_path)
        engine.import_image()
        yield engine
        engine.compose("down", "-v")
    finally:
        machine.stop()


def test_the_compose_files_record_and_replay_on_podman(engine: Engine) -> None:
    for name in ("compose.yaml", "replay.yaml", "agent.py"):
        shutil.copy(ROOT / "examples" / "compose" / name, engine.folder)
    tapes = engine.folder / "tapes"
    tapes.mkdir()
    tapes.chmod(0o777)
    command = yaml.safe_load((engine.folder / "compose.yaml").read_text())["services"]["tapeproxy"]["command"]
    mapped = [*command[:-1], f"{command[-1]} --map api.openai.com=http://{WORLD}:8000"]
    _write_override(engine.folder, {"command": mapped})

    engine.machine.set_up("ip", "address", "add", f"{WORLD}/32", "dev", "lo")
    environment = engine.env | {"PYTHONPATH": ":".join(filter(None, sys.path))}
    with engine.machine.serving(
        *[sys.executable, "-c", PROVIDER], env=environment, cwd=engine.folder, until="http://", stream="stdout"
    ):
        engine.compose("up", "-d", "tapeproxy")
        engine.wait_until_healthy()
        heard = engine.compose("run", "--rm", "-T", "agent")
        past = engine.compose("run", "--rm", "-T", "agent", "python", "-c", PLAINLY)
        key = engine.compose("run", "--rm", "-T", "agent", "sh", "-c", "ls /handover /tapes")
        engine.compose("down")
    assert (heard.returncode, heard.stdout.strip() != "") == (0, True), heard.stderr
    assert "OSError: [Errno 101] Network is unreachable" in past.stderr, "the proxy is the only way out"
    assert key.stdout.split() == ["/handover:", "ca.pem", "/tapes:"]
    tape, ending = load(tapes / "agent.tape.jsonl.gz")
    assert (len(tape.exchanges), ending.sealed) == (1, True)

    _write_override(engine.folder, {})
    engine.compose("up", "-d", "tapeproxy", replay=True)
    engine.wait_until_healthy()
    again = engine.compose("run", "--rm", "-T", "agent", replay=True)
    outwards = engine.compose("exec", "-T", "tapeproxy", "python", "-c", PLAINLY, replay=True)
    stopped = engine.compose("exec", "-T", "tapeproxy", "tapeproxy", "stop", "agent", replay=True)
    assert (again.returncode, again.stdout) == (0, heard.stdout), again.stderr
    assert "Network is unreachable" in outwards.stderr, "nor has the proxy any in a replay"
    assert stopped.returncode == 0, stopped.stderr
    assert "1 of 1 exchange served" in stopped.stdout + stopped.stderr


def _write_override(folder: Path, proxy: dict[str, object]) -> None:
    """What is this machine's own in both services; `proxy`: more for tapeproxy's."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    service = {"image": IMAGE, "volumes": _volumes(), "environment": {"PATH": path}}
    services = {"tapeproxy": service | {"user": "tapeproxy"} | proxy, "agent": service}
    (folder / "here.yaml").write_text(yaml.safe_dump({"services": services}))
