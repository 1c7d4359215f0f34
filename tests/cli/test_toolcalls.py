"""What `show --tools` says of a tape with hints."""

import json
from pathlib import Path
from typing import Any

from agentruns import exchange, write_tape
from click.testing import CliRunner

from tapeproxy.cli.show import command
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Record, Value


def value(n: int, what: str, name: str, content: bytes | None = None, **data: Any) -> Value:
    error = data.pop("error", None)
    return Value(t=n, lane="m", n=n, what=what, name=name, where="a.py:1 in f", content=content, error=error, data=data)


def tape(path: Path) -> str:
    times: dict[str, Any] = {"asked": 0, "began": 1_000_000, "ended": 4_000_000}
    records: list[Record] = [
        *exchange(1, "http://a.test/", lane="m/k0"),
        value(0, "tool", "search", b'["\\u001b[31m"]', call="m/k0", args='{"query":"tides"}', **times),
        value(
            1,
            "tool",
            "fails",
            b'{"type":"builtins:OSError","text":"gone"}',
            call="m/k1",
            args="{}",
            end="raised",
            error="builtins:OSError",
            **times,
        ),
        value(2, "tool", "lock", call="m/k2", args="{}", untaped="it is a lock", **times),
        value(3, "message", "worker", b'{"do":1}', **{"from": "planner", "number": 0}),
        value(4, "hint", "dice", b"6", call="m/k3", args="{}", **times),
        value(5, "final", "final", b"true", asked=1),
        value(6, "file", "a.txt", b"text"),
    ]
    return str(write_tape(path / "t.tape.jsonl.gz", records))


def show(*argv: str) -> str:
    done = CliRunner().invoke(command, [*argv], standalone_mode=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_calls_messages_and_conclusions_are_listed(tmp_path: Path) -> None:
    out = show(tape(tmp_path), "--tools")
    lines = [line.split(maxsplit=1) for line in out.splitlines()[3:-2]]
    assert [words[0] for words in lines] == [f"m#{n}" for n in range(6)]
    said = [" ".join(words[1].split()) for words in lines]
    assert said[0].startswith('search(query="tides") ["')
    assert said[0].endswith("1 3.0 ms")
    assert "\x1b" not in said[0]
    assert said[1].startswith('fails() OSError: {"type": "builtins:OSError"')
    assert said[2].startswith("lock() it is a lock")
    assert said[3:] == ['message from planner to worker {"do": 1}', "value dice 6 3.0 ms", "final state true"]
    assert out.splitlines()[-1] == "4 tool calls"


def test_the_same_as_json(tmp_path: Path) -> None:
    found = json.loads(show(tape(tmp_path), "--tools", "--json"))["values"]
    assert [(one["lane"], one["n"], one["kind"], one["end"]) for one in found] == [
        ("m", 0, "tool", "returned"),
        ("m", 1, "tool", "raised"),
        ("m", 2, "tool", "untaped"),
        ("m", 3, "message", "returned"),
        ("m", 4, "hint", "returned"),
        ("m", 5, "final", "returned"),
    ]
    assert (found[0]["arguments"], found[0]["exchanges"], found[0]["took_ns"]) == ({"query": "tides"}, [1], 3_000_000)


def test_it_is_about_a_whole_tape(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [tape(tmp_path), "1", "--tools"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
