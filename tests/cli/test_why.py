import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from difftapes import get, say, write

from tapeproxy.cli.rendering import Screen
from tapeproxy.cli.why import command
from tapeproxy.cli.whypage import why_page
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.why import Provenance

DOC = "Paris is the \x1b[31mcapital of France"


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return write(tmp_path / "t.tape.jsonl.gz", get("m", "a", json.dumps({"text": DOC})), say("m", f"Tool: {DOC}"))


def why(*args: str) -> str:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_parts_are_numbered_and_explained_below(tape: Path) -> None:
    lines = why(str(tape), "--event", "2", "--path", "$.messages[0].content").splitlines()
    assert lines == [
        "event 2",
        "",
        "$.messages[0].content",
        r"  Tool: [1: Paris is the \x1b[31mcapital of France]",
        '  -  "Tool:": the agent\'s own words; in the requests since event 2',
        "  1  the answer of event 1, $.text [0:35]; in the requests since event 2",
    ]


def test_json(tape: Path) -> None:
    document = json.loads(why(str(tape), "--event", "2", "--text", "capital of France", "--json"))
    (span,) = document["texts"][0]["spans"]
    assert span["text"] == "capital of France"
    assert span["source"] == {
        "kind": "answer",
        "path": "$.text",
        "words": "the answer of event 1, $.text",
        "event": 1,
        "start": DOC.index("capital"),
        "end": len(DOC),
        "around": [DOC[: DOC.index("capital")], "capital of France", ""],
    }


def test_colours_come_only_where_the_screen_has_them_and_from_us(tape: Path) -> None:
    found = Provenance(load(tape)[0]).why(2)
    plain, coloured = ("\n".join(why_page(found, Screen(80, colour=colour))) for colour in (False, True))
    assert "\x1b" not in plain
    assert click.unstyle(coloured) == plain != coloured


def test_an_event_is_needed_and_must_be_there(tape: Path) -> None:
    with pytest.raises(UsageError, match="there is no event 3"):
        why(str(tape), "--event", "3")
