"""What is asked of the system, and that no more is asked than is wanted."""

import os
import platform
import subprocess
import sys
from pathlib import Path

from tapeproxy.proxy.machine import machine_facts


def test_the_facts_of_a_run() -> None:
    facts = machine_facts({"HOME": "/home/ada/", "TMPDIR": "/var/x/"}, "/home/ada/proj", pythons=["3.9.18", ""])
    assert facts["cwd"] == ("/home/ada/proj",)
    assert (facts["home"], facts["tmpdir"]) == (("/home/ada",), ("/var/x",))
    assert facts["python"] == ("3.9.18", platform.python_version())
    assert facts["release"] == (os.uname().release,)
    assert machine_facts({"HOME": "/home/ada"}, "/a/b", "/run/t1", wanted=["tmpdir"]) == {"tmpdir": ("/run/t1",)}


def test_a_folder_has_the_name_that_the_shell_knows_it_by_too(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = str(tmp_path / "real"), str(tmp_path / "link")
    assert machine_facts({"PWD": link}, real, wanted=["cwd"]) == {"cwd": (real, link)}
    assert machine_facts({"PWD": "/elsewhere"}, real, wanted=["cwd"]) == {"cwd": (real,)}


def test_versions_are_looked_up_only_when_wanted() -> None:
    code = (
        "import sys; from tapeproxy.proxy.machine import machine_facts;"
        "machine_facts({}, '/a/b', wanted=['cwd', 'home', 'tmpdir', 'hostname']); print('platform' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
