import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import difftapes
import pytest
from click.testing import CliRunner
from difftapes import get, say

from tapeproxy.cli.cat import command

HOSTILE = "\x1b[31m\u202eevil\r\n\x07 \U000e0041 é"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cat(*args: str) -> str:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def values(text: str) -> list[Any]:
    """The JSON values that stand one after the other."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += 1
    return found


def test_each_line_is_a_record() -> None:
    difftapes.write(Path("x.tape.jsonl.gz"), say("m", HOSTILE), get("m", "a"))
    output = cat("x.tape.jsonl.gz")
    records = [json.loads(line) for line in output.splitlines()]
    assert [record["k"] for record in records].count("request") == 2
    assert (records[0]["k"], records[-1]["k"]) == ("head", "seal")
    assert json.loads(records[1]["body"])["messages"][0]["content"] == HOSTILE


def test_pretty_is_a_document_for_each_exchange() -> None:
    difftapes.write(Path("x.tape.jsonl.gz"), say("m", HOSTILE), get("m", "a"))
    run, first, second = values(cat("x.tape.jsonl.gz", "--pretty"))
    assert run["exchanges"] == 2
    assert first["request"]["body"]["messages"][0]["content"]["lines"] == HOSTILE.split("\n")
    assert second["request"]["url"].endswith("/a")


@pytest.mark.parametrize("options", [(), ("--pretty",)])
def test_nothing_acts_on_the_terminal(options: tuple[str, ...]) -> None:
    difftapes.write(Path("x.tape.jsonl.gz"), get("m", "a", HOSTILE), names={"m": HOSTILE})
    output = cat("x.tape.jsonl.gz", *options)
    assert not set(output) & set("\x1b\u202e\x07\r\U000e0041")
    assert "é" in output


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_git_shows_what_changed_on_a_tape() -> None:
    def git(*words: str) -> str:
        identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(Path.cwd()), "GIT_CONFIG_NOSYSTEM": "1"} | identity
        return subprocess.run(["git", *words], env=environment, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    Path(".gitattributes").write_text("*.tape.jsonl.gz diff=tapeproxy\n")
    git("config", "diff.tapeproxy.textconv", f"{sys.executable} -m tapeproxy.cli.main cat --pretty")
    tape = Path("x.tape.jsonl.gz")
    difftapes.write(tape, say("m", "Be kind.\nWhere is\nthe sea?", call_id="c1"))
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    difftapes.write(tape, say("m", "Be strict.\nWhere is\nthe sea?", call_id="c22"))
    changed = [
        line.strip("+- ") for line in git("diff").splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert changed == ['"Be kind.",', '"Be strict.",']
