"""Which files are scanned: those named, those of a folder that are the user's, those that a command runs."""

import os
from pathlib import Path

import pytest

from tapeproxy.proxy.sources import find_files, own_files, scan_files
from tapeproxy.tapes.errors import UsageError


def write(folder: Path, *names: str, text: str = "") -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_folder_gives_the_user_s_own_files_sorted(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a/z.py", "a/y.pyw", "readme.md", ".venv/x.py", "node_modules/x.py", "a/__pycache__/x.py")
    write(tmp_path, "lib/python3.12/site-packages/x.py")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    found = [str(path.relative_to(tmp_path)) for path in find_files([tmp_path])]
    assert found == ["b.py", "a/y.pyw", "a/z.py"]


def test_a_file_is_taken_as_named_and_once(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "tool")
    assert list(find_files([tmp_path / "tool", tmp_path / "a.py", tmp_path])) == [tmp_path / "tool", tmp_path / "a.py"]


def test_nothing_is_found_in_an_empty_folder(tmp_path: Path) -> None:
    assert list(find_files([tmp_path])) == []


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such file"):
        list(find_files([tmp_path / "none"]))


def test_what_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    write(tmp_path, "a.py", text="import os\nprint(os.getpid())")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    scanned = scan_files([tmp_path / "a.py", tmp_path / "pipe.py", tmp_path / "gone.py"])
    assert scanned.files == 3
    assert [(f.rule.code, Path(f.file).name) for f in scanned.findings] == [
        ("TP101", "a.py"),
        ("TP001", "pipe.py"),
        ("TP001", "gone.py"),
    ]


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["python", "app/agent.py", "--x"], ["app/agent.py", "app/near.py", "app/pkg/__init__.py", "app/pkg/deep.py"]),
        (["uv", "run", "app/agent.py"], ["app/agent.py", "app/near.py", "app/pkg/__init__.py", "app/pkg/deep.py"]),
        (["python3.12", "-u", "-m", "mod"], ["mod.py"]),
        (["python", "-m", "whole"], ["whole/__main__.py", "whole/__init__.py", "whole/inner.py"]),
        (["python", "-c", "import mod"], []),
        (["python", "-m", "json.tool"], []),
        (["python", "none.py"], []),
        (["node", "-m", "mod"], []),
        ([], []),
    ],
)
def test_a_command_s_own_files_are_its_script_and_what_it_imports(
    tmp_path: Path, argv: list[str], found: list[str]
) -> None:
    write(tmp_path, "app/agent.py", text="import near, httpx\nfrom pkg import deep\nimport far.away")
    write(tmp_path, "app/near.py", text="import agent, near")
    write(tmp_path, "app/pkg/deep.py", text="from . import deep\nfrom .. import near")
    write(tmp_path, "app/pkg/__init__.py", "far.py", "app/other.py", "mod.py", "whole/inner.py", "whole/__init__.py")
    write(tmp_path, "whole/__main__.py", text="from . import inner")
    assert sorted(str(path.relative_to(tmp_path)) for path in own_files(argv, tmp_path)) == sorted(found)
