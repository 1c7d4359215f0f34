"""The command line of a fork up to the point where something would be run: what it checks, what a dry run says."""

import io
import json
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import agentruns
import pytest
from click.testing import CliRunner, Result
from editsamples import streamed

from tapeproxy.cli.fork import command
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Chunks, End, Lane, Record, Request, Response

TEXTS = ["The ", "sea."]


def records(exchange: Exchange, index: int, lane: str, n: int) -> list[Record]:
    assert exchange.response is not None
    t = 100 * index
    asked, got = exchange.request, exchange.response
    request = Request(
        t=t, method=asked.method, url=asked.url, headers=asked.headers, body=exchange.request_body, lane=lane, n=n
    )
    response = Response(t=t + 1, of=index, status=200, headers=got.headers, framing="length")
    parts = tuple((k, chunk.data) for k, chunk in enumerate(exchange.chunks))
    end = End(t=t + 60, of=index, how="complete")
    return [request, response, Chunks(t=t + 2, of=index, parts=parts), end]


@pytest.fixture(autouse=True)
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three calls: one of the main lane, two of a worker called worker_a that it starts after the first."""
    monkeypatch.chdir(tmp_path)
    out: list[Record] = []
    for kind, lane, n in (("openai-chat", "m", 0), ("anthropic", "m/t0", 0), ("anthropic", "m/t0", 1)):
        if lane != "m" and n == 0:
            out.append(Lane(t=100 * (len(out) + 1), id=lane, what="thread", name="worker_a"))
        out += records(streamed(kind, TEXTS, ['{"a": ', "1}"] if n else []), len(out) + 1, lane, n)
    agentruns.write_tape(Path("t.tape.jsonl.gz"), out)


def run(*words: str, input: bytes = b"") -> Result:
    return CliRunner().invoke(
        command, ["t.tape.jsonl.gz", *words], standalone_mode=False, input=io.BytesIO(input), catch_exceptions=False
    )


def planned(*words: str) -> Any:
    return json.loads(run(*words, "--dry-run", "--json").stdout)


def test_a_dry_run_says_what_would_happen() -> None:
    done = run("--at", "worker_a#0", "--text", "x", "--model", "gpt-9", "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        'edit 2: text "x"',
        'edit model "gpt-9"',
        "m: 1 reused (1)",
        "worker_a (m/t0): 1 mutated (2), 1 live (3)",
        "about 1 live call",
    ]


def test_several_edits_at_once_as_json() -> None:
    told = planned("--at", "2", "--text", "x", "--text", "3::y", "--rerun", "changed")
    assert told["edits"] == [{"what": "text", "at": 2, "value": "x"}, {"what": "text", "at": 3, "value": "y"}]
    assert told["lanes"] == [
        {"lane": "m", "name": "m", "reused": [1], "mutated": [], "live": []},
        {"lane": "m/t0", "name": "worker_a (m/t0)", "reused": [], "mutated": [2, 3], "live": []},
    ]
    assert (told["tape"], told["rerun"], told["live_calls"]) == ("t.tape.jsonl.gz", "changed", 0)


@pytest.mark.parametrize(
    ("words", "branch", "live"),
    [
        (["--at", "3"], [3], [3]),  # asked anew itself
        (["--set", "3:$text=x", "--set", "2:$.model=y", "--rerun", "changed"], [2, 3], []),
        (["--request-set", "3:$.temperature=0"], [3], [3]),
        (["--at", "last", "--text", "x"], [3], []),
        (["--system", "Be brief."], [], [1, 2, 3]),
        (["--at", "0", "--env", "A=b"], [], [1, 2, 3]),
        (["--at", "2", "--clock", "+1h"], [2], [2, 3]),
    ],
)
def test_where_the_tape_is_left(words: Sequence[str], branch: list[int], live: list[int]) -> None:
    told = planned(*words)
    assert told["branch"] == branch
    assert [number for lane in told["lanes"] for number in lane["live"]] == live


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "a fork needs something to change"),
        (["--at", "9", "--text", "x"], "there is no exchange 9 on the tape: it has 1 to 3"),
        (["--at", "m/t7#0", "--text", "x"], "there is no lane 'm/t7'"),
        (["--text", "x"], "it is not said which answer is to be changed"),
        (["--at", "0", "--text", "x"], "it is not said which answer is to be changed"),
        (["--at", "1", "--set", "$.choices[0].mesage=1"], "did you mean $.choices[0].message?"),
        (["--at", "1", "--set", "$.choices"], "after the path '$.choices' comes = or +="),
        (["--at", "1", "--body", "no-such-file"], "no-such-file: the body cannot be read: no such file"),
        (["--request-set", "1:$.a.b=1"], "$ has no 'a': it is an object with"),
        (["--lane-seed", "m/t9=new"], "there is no lane 'm/t9' on the tape"),
        (["--lane-seed", "m=new"], "the tape has no seed"),
        (["--at", "1", "--value", "m#0=1"], "lane m has no value 0 of a tool"),
        (["--edit"], "it is not said which answer is to be edited"),
        (["--at", "x", "--edit"], "'x' names no exchange"),
        (["--at", "2", "--text", "x", "--text", "3::y"], "it comes after another change"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_runs(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(*words, "-o", "none.gz")
    assert said in str(caught.value)
    assert not Path("none.gz").exists()


@pytest.mark.parametrize("source", ["body.json", "-", '@{"a": 1}', "1::body.json", '1::@{"a": 1}'])
def test_where_a_body_comes_from(source: str) -> None:
    Path("body.json").write_text('{"a": 1}')
    done = run("--at", "1", "--body", source, "--dry-run", input=b'{"a": 1}')
    assert done.stdout.splitlines()[0] == 'edit 1: body of 8 bytes: "{\\"a\\": 1}"'


# --- the editor ----------------------------------------------------------------------------------------------------


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Plan a fork of the first answer, with a program as the editor that runs this code on `text`, and saves it."""

    def planned_with(code: str, at: str = "1") -> Any:
        path = tmp_path / "editor.py"
        lines = [
            "import sys, json",
            "path = sys.argv[-1]",
            "text = open(path).read()",
            code,
            "open(path, 'w').write(text)",
        ]
        path.write_text("\n".join([f"#!{sys.executable}", *lines]))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("EDITOR", f"{path} --wait")
        monkeypatch.delenv("VISUAL", raising=False)
        return run("--at", at, "--edit", "--dry-run", "--json")

    return planned_with


def test_the_text_of_a_stream_in_the_editor(edit: Any) -> None:
    told = json.loads(edit("assert text == 'The sea.'; text = 'The lake.\\n'").stdout)
    assert told["edits"] == [{"what": "text", "at": 1, "value": "The lake."}]


@pytest.mark.parametrize("code", ["pass", "text += '\\n'"])
def test_an_editor_that_changes_nothing(edit: Any, code: str) -> None:
    done = edit(code)
    assert done.exit_code == 0
    assert done.stderr == "tapeproxy: nothing was changed, and nothing is run\n"


def test_an_editor_that_fails(edit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="the editor ended with 3: nothing was changed"):
        edit("sys.exit(3)")
    monkeypatch.setenv("VISUAL", "no-such-editor")
    with pytest.raises(UsageError, match="the editor cannot be run: no such file or directory"):
        run("--at", "1", "--edit")


@pytest.mark.parametrize(
    ("code", "said"),
    [("text += '}'", "what was edited is not JSON"), ("text = text.replace('\"role\"', '\"rule\"')", "does not fit")],
)
def test_what_was_written_in_vain_is_kept(edit: Any, code: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        edit(f"assert text.startswith('{{'); {code}", at="3")
    kept = Path(caught.value.fix.removeprefix("what you wrote is in "))
    assert kept.suffix == ".json"
    assert "sea" in kept.read_text()
    kept.unlink()
