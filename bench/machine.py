"""What the benchmark ran on: processor, system, versions."""

import importlib.metadata
import os
import platform
import re
import shutil
import ssl
import subprocess
from pathlib import Path

from bench.servers import nginx_program

_PACKAGES = ("mitmproxy", "httptools", "blake3", "orjson", "httpx")


def load() -> float | None:
    """What the machine has to do besides, on the average of the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def describe(busy: float | None = None) -> dict[str, str]:
    """Facts by name, for the head of the report. `busy` is the load before the run."""
    facts = {
        "processor": f"{_processor()}, {os.cpu_count()} cores{_busy(busy)}",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": f"{platform.python_version()}, {ssl.OPENSSL_VERSION}",
    }
    programs = {"node": ["node", "--version"], "java": ["java", "-version"]}
    told = {name: said for name, command in programs.items() if (said := _said(command))}
    return facts | told | {name: version for name in _PACKAGES if (version := _version(name))} | _nginx()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", info.read_text()) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _busy(before: float | None) -> str:
    return "" if before is None else f", load average {before:.1f} before the run, {os.getloadavg()[2]:.1f} in it"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _nginx() -> dict[str, str]:
    program = nginx_program()
    if program is None:
        return {}
    return {"nginx": _said([program, "-v"]).rpartition("/")[2]}


def _said(command: list[str]) -> str:
    """The first line that a program prints, wherever it does."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().partition("\n")[0]
