"""Tapes whose chain is right and whose records are not what a recorder writes: commands take or refuse them."""

import gzip
import os
import random
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from difftapes import get, records, say, streamed
from tapesamples import chained, written, zipped

from tapeproxy.cli.main import cli
from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.tapes.records import Clock, Edge, Lane, LaneEnd, Value

TEXTS = [
    *("", "\0", "\x1b[2J", "\u2028", "\U0010ffff", "x" * 70_000, "http://[", "http://x:99999999/", "//", "\xff" * 9),
    *("m/t0", "m", "m/t0#1", "[" * 2000, '{"model":"x","messages":"y","tools":3}'),
    'data: {"choices":[{"delta":0}]}\n\n',
    '{"messages":[{"role":5,"content":[null,{"type":"text"}]}],"model":{}}',
]
NUMBERS = [True, -1, 0, 1, 3, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 0.5, 1e308]
OTHERS: list[Any] = [None, [], {}, [[]], [None, None], [[0, "x"]], {"b64": "?"}, {"b64": "eyJhIjpbMV19"}, {"ref": 1}]
COMMANDS = [
    *("show T", "show T --json", "show T --tools", "show T --vector", "show T 2", "show T --size", "cat T"),
    *("cat T --pretty", "export T --to markdown", "diff T B", "diff B T --json", "diff T B --html x.html --force"),
    *("verify T", "scrub --check T", "fork T --at 2 --set $.response.a=1 --dry-run -- true"),
    "fork T --at 1 --status 500 --dry-run -- true",
    *("why T --event 2", "why T --event 4 --path $ --json"),
]


def base() -> list[dict[str, Any]]:
    """The objects of an honest tape that has something of everything."""
    asks = (
        say("m", "What is it?"),
        streamed("m/t0", "And then?", "This", " and", " that."),
        get("m/t0", "a?b=c", '{"x": [1, {"y": null}]}'),
        get(None, "d", "\xff", status=503),
    )
    first = (
        Lane(t=1, id="m/t0", what="thread", name="worker", origin=("m", 0, 0)),
        Clock(t=2, lane="m", n=0, ns=5),
        Value(t=3, lane="m", n=0, what="tool", name="look", content=b'{"v": 1}', digest="ab", data={"end": 1}),
        Edge(t=3, what="queue", on="q1", lane="m", n=0, asked=0, out=True),
        Edge(t=4, what="queue", on="q1", lane="m/t0", n=0, asked=0),
        LaneEnd(t=5, lane="m/t0", reads=2),
    )
    text = gzip.decompress(written(records(asks, first=first)))
    return [orjson.loads(line[:-73] + b"}") for line in text.splitlines(keepends=True)]


def changed(rng: random.Random, value: Any) -> Any:
    """Another value in the place of this one, mostly of its type, or with a part of it changed."""
    if isinstance(value, str) and rng.random() < 0.7:
        return rng.choice(TEXTS)
    if isinstance(value, int) and rng.random() < 0.7:
        return rng.choice(NUMBERS)
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], changed(rng, value[at]), *value[at + 1 :]]
    if isinstance(value, dict) and value and rng.random() < 0.7:
        name = rng.choice([*value])
        return value | {name: changed(rng, value[name])}
    return rng.choice([*TEXTS, *NUMBERS, *OTHERS])


def hostile(rng: random.Random, honest: list[dict[str, Any]]) -> bytes:
    """A tape with a few fields changed, records left out or doubled, and a chain that fits."""
    objects = [dict(obj) for obj in honest]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        obj = rng.choice(objects)
        name = rng.choice([name for name in obj if name not in ("k", "i")])
        match rng.randrange(10):
            case 0:
                obj.pop(name)
            case 1:
                objects.insert(rng.randrange(1, len(objects)), dict(obj))
            case 2 if len(objects) > 2:
                objects.remove(obj)
            case _:
                obj[name] = changed(rng, obj[name])
    return zipped(*chained(*({key: value for key, value in obj.items() if key != "i"} for obj in objects)))


def run_all(folder: Path, seed: int, honest: list[dict[str, Any]]) -> int:
    """Have every command look at one hostile tape; how many took it for a tape."""
    (folder / "T").write_bytes(hostile(random.Random(seed), honest))
    taken = 0
    for words in COMMANDS:
        begun = time.process_time()
        done = CliRunner().invoke(cli, words.split())
        assert time.process_time() - begun < 10, (seed, words)
        if done.exception is not None and not isinstance(done.exception, SystemExit | TapeproxyError):
            done.exception.add_note(f"seed {seed}: tapeproxy {words}")
            raise done.exception
        taken += done.exception is None
    return taken


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "B").write_bytes(zipped(*chained(*({k: v for k, v in obj.items() if k != "i"} for obj in base()))))
    return tmp_path


def test_commands_take_or_refuse_a_hostile_tape(folder: Path) -> None:
    honest = base()
    taken = [run_all(folder, seed, honest) for seed in range(60)]
    assert sum(count > 5 for count in taken) > 10, "it gets past the reader, into the commands"


@pytest.mark.soak
def test_commands_take_or_refuse_hostile_tapes_for_long(folder: Path) -> None:
    honest, seed = base(), random.SystemRandom().getrandbits(32)
    until = time.monotonic() + float(os.environ.get("TAPEPROXY_FUZZ_SECONDS", "600"))
    while time.monotonic() < until:
        run_all(folder, seed, honest)
        seed += 1
