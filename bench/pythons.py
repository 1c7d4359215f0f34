"""The interpreters that are found here, and the environments that they run in: bare, and recorded by the shim."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tapeproxy.proxy.shimming import ShimSettings, new_seed, shim_environment


def environments(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Without the shim and with it."""
    bare = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(folder)}
    settings = ShimSettings(
        mode="record",
        seed=new_seed(),
        hash_seed="0",
        tmpdir=str(folder),
        origin_ns=time.time_ns(),
        sidecar=folder,
        proxy="127.0.0.1:1",
    )
    return bare, bare | shim_environment(bare, settings)


def find(version: str) -> str | None:
    """An interpreter of this version that starts; pyenv has names on PATH for versions that it does not."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*map(str, pyenv.glob(f"versions/{version}.*/bin/python")), shutil.which(f"python{version}") or ""]
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        found.insert(0, sys.executable)
    return next((path for path in found if path and _starts(path)), None)


def _starts(path: str) -> bool:
    return subprocess.run([path, "-c", "pass"], capture_output=True).returncode == 0
