"""What the benchmark ran on: processor, system, versions."""

import importlib.metadata
import os
import platform
import re
import shutil
import ssl
import subprocess
from pathlib import Path

_PACKAGES = ("mitmproxy", "httptools", "blake3", "orjson", "httpx")


def describe() -> dict[str, str]:
    """Facts by name, for the head of the report."""
    facts = {
        "processor": f"{_processor()}, {os.cpu_count()} cores{_busy()}",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": f"{platform.python_version()}, {ssl.OPENSSL_VERSION}",
    }
    return facts | {name: version for name in _PACKAGES if (version := _version(name))} | _nginx()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", info.read_text()) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _busy() -> str:
    """What else the machine had to do in the last quarter of an hour, the benchmark included."""
    return f", load average {os.getloadavg()[2]:.1f}" if hasattr(os, "getloadavg") else ""


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _nginx() -> dict[str, str]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        return {}
    said = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr
    return {"nginx": said.strip().rpartition("/")[2]}
