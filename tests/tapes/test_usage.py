"""What answers had cost: tokens by model, and the time in which at least one was under way."""

import json
from pathlib import Path

import agentruns

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import End, Request
from tapeproxy.tapes.usage import Usage, summed, usage_of, waited_ns

CHAT = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "gpt-4o", "messages": []}


def exchanges(*spans: tuple[int, int | None], inside: bool = False) -> list[Exchange]:
    return [
        Exchange(
            number=at,
            index=at,
            request=Request(t=start, method=b"GET", url=b"http://a.test/", inside=inside),
            end=None if end is None else End(t=end, of=at, how="complete"),
        )
        for at, (start, end) in enumerate(spans, 1)
    ]


def test_time_counts_once() -> None:
    assert waited_ns([]) == 0
    assert waited_ns(exchanges((0, 10), (5, 20), (30, 40), (31, 32))) == 30
    assert waited_ns(exchanges((0, 10), (20, None), (30, 20))) == 10
    assert waited_ns(exchanges((0, 10), inside=True)) == 0


def test_tokens_by_model(tmp_path: Path) -> None:
    records = [*agentruns.chat(1)]
    records += agentruns.chat(len(records) + 1)
    records += agentruns.exchange(len(records) + 1, CHAT, method="POST", asked=ASKED, status=529)
    records += agentruns.exchange(len(records) + 1, CHAT, method="POST", asked=ASKED, chunks=[b"{}"])
    records += agentruns.exchange(len(records) + 1, "https://api.test/")
    tape, _ = load(agentruns.write_tape(tmp_path / "a.tape.jsonl.gz", records))
    usage = usage_of(tape.exchanges)
    assert usage == [Usage("gpt-4o", 1, 0, 0, 1), Usage("gpt-4o-2024", 2, 80, 10, 0)]
    assert summed([*usage, *usage]) == [Usage("gpt-4o", 2, 0, 0, 2), Usage("gpt-4o-2024", 4, 160, 20, 0)]


def test_cached_tokens_are_counted_apart(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 40, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 30}}
    body = json.dumps({"model": "m", "choices": [], "usage": usage}).encode()
    records = agentruns.exchange(1, CHAT, method="POST", asked=ASKED, chunks=[body])
    tape, _ = load(agentruns.write_tape(tmp_path / "a.tape.jsonl.gz", records))
    found = usage_of(tape.exchanges)
    assert found == [Usage("m", 1, 40, 5, 0, 30, 0)]
    assert summed([*found, Usage("m", 1, 91, 2, 0, 70, 9)]) == [Usage("m", 2, 131, 7, 0, 100, 9)]
