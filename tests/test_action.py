"""The action for GitHub and the snippet for GitLab: well-formed, pinned, and run in bash as far as they go."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import inprocesstapes
import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "CI.md").read_text("utf-8")
ACTION: dict[str, Any] = YAML(typ="safe", pure=True).load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SNIPPETS = [YAML(typ="safe", pure=True).load(text) for text in re.findall(r"```yaml\n(.*?)```", DOC, re.S)]
PINNED = re.compile(r"[\w.-]+/[\w.-]+@(v\d+|[0-9a-f]{40})")
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
TESTS = """
import httpx, pytest

@pytest.mark.tape
def test_good():
    assert httpx.get("https://api.test/one").text == "/one"

@pytest.mark.tape
def test_bad():
    httpx.get("https://api.test/two")
"""


def test_it_is_a_composite_action() -> None:
    assert ACTION["name"] and ACTION["description"] and ACTION["runs"]["using"] == "composite"
    for step in STEPS:
        assert step["name"] and ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert PINNED.fullmatch(step["uses"]), step
        else:
            assert step["shell"] == "bash"
            # What somebody writes into an input must reach bash as a value, never as its text.
            assert "${{" not in step["run"]
    for what in ACTION["inputs"].values():
        assert what["description"] and isinstance(what["default"], str)


def test_expressions_name_what_is_there() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    names = {*EXPRESSION.findall(text), *re.findall(r"\binputs\.[\w-]+", text)}
    assert {name for name in names if name.startswith("inputs.")} == {f"inputs.{name}" for name in ACTION["inputs"]}
    assert {name for name in names if name.startswith("steps.")} == {"steps.run.outputs.exit-code"}
    assert [step for step in STEPS if step.get("id") == "run"]


def test_the_document_names_every_input() -> None:
    for name, what in ACTION["inputs"].items():
        assert f"| `{name}` |" in DOC
        assert not what["default"] or what["default"] in DOC + ".", name
    used = [SNIPPETS[0]["jobs"]["tapes"]["steps"][1]["with"], SNIPPETS[1]["with"]] if len(SNIPPETS) == 3 else []
    assert used and all(set(one) <= set(ACTION["inputs"]) for one in used)


class Runner:
    """A job in a folder of its own, with a fake Python that installs nothing."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.summary, self.output, self.installed = folder / "summary.md", folder / "output", folder / "installed"
        bin = folder / "bin"
        bin.mkdir()
        for name in ("python", "pip"):
            (bin / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {self.installed}\n')
            (bin / name).chmod(0o755)
        self._environment = {
            "PATH": f"{bin}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TAPEPROXY_HOME": str(folder / "home"),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_WORKSPACE": str(self.work),
        }

    def step(self, name: str, **inputs: str) -> "subprocess.CompletedProcess[str]":
        """Run a step of the action as a runner does."""
        (step,) = (one for one in STEPS if one["name"] == name)
        values = {f"inputs.{key}": what["default"] for key, what in ACTION["inputs"].items()}
        values |= {f"inputs.{key.replace('_', '-')}": value for key, value in inputs.items()}
        values["github.action_path"] = str(ROOT)
        environment = {key: EXPRESSION.sub(lambda found: values[found[1]], text) for key, text in step["env"].items()}
        return self.bash(step["run"], **environment)

    def bash(self, script: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.work,
            env=self._environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def failing(runner: Runner) -> Runner:
    """With one test that passes and one that does not."""
    (runner.work / "test_a.py").write_text(TESTS)
    for name in ("good", "bad"):
        path = runner.work / f"tapes/test_a/test_{name}.tape.jsonl.gz"
        inprocesstapes.gets(path.parent, "/one").rename(path)
    return runner


def test_a_job_with_a_failing_test(failing: Runner) -> None:
    done = failing.step("Run", command="pytest -q -p no:cacheprovider -p no:asyncio")
    assert done.returncode == 1, done.stdout + done.stderr
    assert failing.output.read_text() == "exit-code=1\n"
    done = failing.step("Summary", prices="a=1,2\n\nb*=3,4\n")
    assert done.returncode == 0, done.stderr
    assert "\n::error file=test_a.py,title=tapeproxy%3A test_a.py%3A%3Atest_bad::1 violation%0A" in "\n" + done.stdout
    page = failing.summary.read_text()
    assert "## Tapes: 1 passed, **1 failed**" in page and page.count("test_bad`") == 1
    (kept,) = (failing.work / ".tapes/failures").glob("*.tape.jsonl.gz")
    assert f"what it did: `.tapes/failures/{kept.name}`" in page
    # The same on GitLab.
    job = SNIPPETS[-1]["tapes"]
    done = failing.bash(job["after_script"][0])
    assert done.returncode == 0 and done.stdout == page == (failing.work / ".tapes/summary.md").read_text()
    assert {".tapes/summary.md", ".tapes/failures"} == set(job["artifacts"]["paths"])


def test_a_job_without_tests(runner: Runner) -> None:
    (runner.work / "weekend.json").write_text('{"exit_code": 0, "violations": [], "tape": "weekend.tape.jsonl.gz"}')
    assert runner.step("Run", command="false | cat").returncode == 1
    assert runner.step("Run", command="echo '$(touch gone)'; exit 7").returncode == 7
    assert runner.step("Run", command='true\ntest "$CI" = true').returncode == 0
    assert runner.output.read_text() == "exit-code=1\nexit-code=7\nexit-code=0\n"
    assert not (runner.work / "gone").exists()
    assert runner.step("Summary").returncode == 0 and not runner.summary.exists()
    assert runner.step("Summary", reports="weekend.json none.json").returncode == 0
    assert "`weekend.tape.jsonl.gz`" in runner.summary.read_text()


def test_what_is_installed(runner: Runner) -> None:
    assert runner.step("Install tapeproxy").returncode == 0
    assert runner.step("Install the project", setup="pip install x\npip install y").returncode == 0
    assert runner.step("Install the project", setup="false\ntrue").returncode == 1
    told = runner.installed.read_text().splitlines()
    assert told == [f"python -m pip install --quiet {ROOT}", "pip install x", "pip install y"]


def test_the_snippet_for_gitlab() -> None:
    job = SNIPPETS[-1]["tapes"]
    assert job["script"] == ["pytest"] and job["variables"]["CI"] == "true"
    assert job["variables"]["TAPEPROXY_TEST_REPORT"].endswith("/.tapes/tests.json")
    assert job["artifacts"]["when"] == "always"
