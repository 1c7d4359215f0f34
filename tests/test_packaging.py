"""The links point home, the wheel ships every module, and with nothing else installed it can do all but record."""

import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterable
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tapeproxy.web.assets import LICENCES, ONLINE, SCRIPTS, STYLE

ROOT = Path(__file__).parents[1]
PACKAGES = ["proxy", "addons", "tapes", "cli", "testing", "shim", "hints", "plugin", "web"]
GOLDEN = ROOT / "tests" / "golden" / "v1.tape.jsonl.gz"


@pytest.mark.parametrize("name", PACKAGES)
def test_link_points_home(name: str) -> None:
    assert (ROOT / "src/tapeproxy" / name).is_symlink()
    assert (ROOT / "src/tapeproxy" / name).samefile(ROOT / name)


def test_every_package_has_its_link() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests", "examples"}
    assert found == set(PACKAGES)
    assert {path.name for path in (ROOT / "src/tapeproxy").iterdir() if path.is_symlink()} == set(PACKAGES)


def build(source: Path, out: Path, target: str = "wheel") -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (built,) = [path for path in out.iterdir() if path.name.endswith((".whl", ".tar.gz"))]
    return built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


def shipped(wheel: Path) -> set[str]:
    return {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_wheel_ships_every_module(wheel: Path) -> None:
    source = {f"tapeproxy/{path.relative_to(ROOT)}" for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    assert {name for name in shipped(wheel) if name.endswith(".py")} == source | {"tapeproxy/__init__.py"}
    assert "tapeproxy/py.typed" in shipped(wheel)
    page = {f"tapeproxy/web/{name}" for name in (*SCRIPTS, ONLINE, STYLE, LICENCES)}
    assert {name for name in shipped(wheel) if name.endswith((".js", ".css", "LICENSES.txt"))} == page
    scripts = {f"tapeproxy/{path.relative_to(ROOT)}" for path in (ROOT / "shim").rglob("*.cjs")}
    assert {name for name in shipped(wheel) if name.endswith(".cjs")} == scripts != set()


def test_a_wheel_built_without_the_links_is_the_same(wheel: Path, tmp_path: Path) -> None:
    copy = tmp_path / "source"
    (copy / "src" / "tapeproxy").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "src/tapeproxy/__init__.py", "src/tapeproxy/py.typed"):
        shutil.copy(ROOT / name, copy / name)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    assert shipped(build(copy, tmp_path / "out")) == shipped(wheel)


def test_the_wheel_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build(ROOT, tmp_path / "sdist", "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("tapeproxy-*")
    assert shipped(build(unpacked, tmp_path / "out")) == shipped(wheel)


def requirements(lines: Iterable[str], extras: Iterable[str]) -> list[Requirement]:
    """Those that count here, for the given extras and without any."""
    wanted = [Requirement(line) for line in lines]
    environments = [{"extra": extra} for extra in ("", *extras)]
    return [one for one in wanted if one.marker is None or any(map(one.marker.evaluate, environments))]


def needs(wheel: Path) -> list[Requirement]:
    """What the wheel needs with no extra."""
    (name,) = [name for name in ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA")]
    metadata = HeaderParser().parsestr(ZipFile(wheel).read(name).decode())
    return requirements(metadata.get_all("Requires-Dist", []), ())


def closure(todo: list[Requirement]) -> dict[str, Distribution]:
    """What pip would install for these, out of what is installed here."""
    found: dict[str, Distribution] = {}
    while todo:
        one = todo.pop()
        if one.name not in found:
            found[one.name] = distribution(one.name)
            todo += requirements(found[one.name].requires or (), one.extras)
    return found


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the wheel and its dependencies, linked from here, and nothing more."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    ZipFile(wheel).extractall(site)
    link(needs(wheel), site)
    return folder / "bin" / "python"


def link(wanted: list[Requirement], site: Path) -> None:
    """Have these, and what they need, in a folder for modules."""
    for found in closure(wanted).values():
        tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            assert not (site / top).exists(), f"two distributions bring {top}"
            (site / top).symlink_to(str(found.locate_file(top)))


def run(bare: Path, home: Path, *argv: str, **more: str) -> str:
    """What a command prints, in an environment with next to nothing in it."""
    done = subprocess.run(
        [bare, *argv],
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONWARNINGS": "error", **more},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


TAPEPROXY = ("-m", "tapeproxy.cli.main")


def test_the_bare_environment_is_bare(bare: Path, tmp_path: Path) -> None:
    code = """
import importlib.util, tapeproxy
print(tapeproxy.__file__)
print([name for name in ("mitmproxy", "httpx", "openai", "pytest", "starlette") if importlib.util.find_spec(name)])
"""
    where, found = run(bare, tmp_path, "-c", code).splitlines()
    assert Path(where).is_relative_to(bare.parents[1])
    assert found == "[]"


def test_the_bare_wheel_has_its_command(bare: Path, tmp_path: Path) -> None:
    said = run(bare, tmp_path, *TAPEPROXY, "--help")
    for command in ("record", "replay", "verify", "show"):
        assert command in said


def test_the_bare_wheel_shows_a_tape(bare: Path, tmp_path: Path) -> None:
    assert "golden.example" in run(bare, tmp_path, *TAPEPROXY, "show", str(GOLDEN))
    assert "data: [DONE]" in run(bare, tmp_path, *TAPEPROXY, "show", "--json", str(GOLDEN), "2")
    assert "hello" in run(bare, tmp_path, *TAPEPROXY, "show", str(GOLDEN), "1")


def test_the_bare_wheel_verifies_a_tape(bare: Path, tmp_path: Path) -> None:
    run(bare, tmp_path, *TAPEPROXY, "verify", str(GOLDEN))


AGENT = """
import urllib.request
print(urllib.request.urlopen("http://golden.example/hello?a=1&b=2&a=0").read().decode(), end="")
"""


def test_the_bare_wheel_replays_a_tape(bare: Path, tmp_path: Path) -> None:
    assert run(bare, tmp_path, *TAPEPROXY, "replay", str(GOLDEN), "--", str(bare), "-c", AGENT) == "hello\n"


def test_the_bare_wheel_replays_within_the_interpreter(bare: Path, tmp_path: Path) -> None:
    indented = "    ".join(AGENT.splitlines(keepends=True))
    code = f"import tapeproxy\nwith tapeproxy.replay({str(GOLDEN)!r}):\n{indented}"
    assert run(bare, tmp_path, "-c", code) == "hello\n"


MARKED = """
import urllib.request
import pytest

@pytest.mark.tape("golden.tape.jsonl.gz", max_age="1d")
def test_it():
    assert urllib.request.urlopen("http://golden.example/hello?a=1&b=2&a=0").read() == b"hello\\n"
"""


def test_the_bare_wheel_replays_a_marked_test_also_when_its_tape_has_expired(bare: Path, tmp_path: Path) -> None:
    """In the default mode, in which an old tape would be recorded anew, if there were a recorder."""
    site = tmp_path / "site"
    site.mkdir()
    link([Requirement("pytest")], site)
    shutil.copy(GOLDEN, tmp_path / "golden.tape.jsonl.gz")
    (tmp_path / "test_a.py").write_text(MARKED, "utf-8")
    said = run(bare, tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "test_a.py", PYTHONPATH=str(site))
    assert "1 passed" in said
    assert "golden.tape.jsonl.gz (older than it may be" in said


CASSETTE = "interactions: [{request: {method: GET, uri: 'http://a.test/'}, response: {status: {code: 204}}}]"


def test_the_bare_wheel_imports_yaml_with_its_parser_alone(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CASSETTE)
    code = "import sys; sys.path.append('more'); from tapeproxy.cli.main import main; main(['import', 'c.yaml'])"
    with pytest.raises(AssertionError, match=r"c\.yaml: reading YAML needs ruamel\.yaml\n.*pip install ruamel\.yaml"):
        run(bare, tmp_path, "-c", code)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "ruamel").symlink_to(str(distribution("ruamel.yaml").locate_file("ruamel")))
    run(bare, tmp_path, "-c", code)
    assert (tmp_path / "c.tape.jsonl.gz").is_file()
