"""An agent on httpx: `python bench/agent.py CONVERSATIONS TURNS [vcrpy|cassetter CASSETTE]`.

Asks OPENAI_BASE_URL one chat request after the other, and prints a line when it begins and when it has ended.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import httpx

from bench.conversation import Growth, conversation

_MATCH_ON = ["method", "uri", "body"]
BEGAN, ENDED = "it begins", "it has ended"  # as in bench.processes, which a peer's interpreter can't import


def main(conversations: int, turns: int, *cassette: str) -> None:
    """Ask, within a cassette or not."""
    bodies = [turn.request for seed in range(conversations) for turn in conversation(seed, Growth(turns))]
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
    with httpx.Client(timeout=60, headers=headers) as client, _cassette(*cassette):
        print(BEGAN, flush=True)
        for body in bodies:
            answer = client.post(url, content=body)
            answer.raise_for_status()
            assert answer.json()["choices"]
        print(ENDED, flush=True)


def _cassette(kind: str = "", path: str = "") -> contextlib.AbstractContextManager[Any]:
    if not kind:
        return contextlib.nullcontext()
    open_cassette: Callable[..., contextlib.AbstractContextManager[Any]]
    if kind == "vcrpy":
        from vcr import use_cassette as open_cassette  # type: ignore[import-not-found,no-redef]
    else:
        from cassetter import use_cassette as open_cassette  # type: ignore[import-not-found,no-redef]
    return open_cassette(path, match_on=_MATCH_ON)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
