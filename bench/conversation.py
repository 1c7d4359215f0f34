"""Chat requests as agents send them: each repeats the whole conversation so far.

They are made of a seed, so every process that is told the seed has the same ones, and none has to be stored or sent.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

HOST = "api.example.com"
PATH = "/v1/chat/completions"
_SYSTEM_BYTES = 12_000
_ANSWER_WORDS_BYTES = 720
_TEXT = (
    "the model reads a file and finds that its test fails because the index of the last entry was never checked so "
    "it changes the function runs the suite again sees one failure less and writes down what it learned about the "
    "parser before it goes on with the next one on the list"
)
_WORDS = _TEXT.split(" ")
# As in real text: line ends and quotes, which JSON escapes, and letters beyond ASCII.
_SPICE = ("\n", '"quoted"', "naïve", "→", "`code_block(x)`", "\n\n- item:", "C:\\temp")


@dataclass(frozen=True, slots=True)
class Turn:
    """One request body of a conversation, and the body of its answer (about 1 KB)."""

    request: bytes
    answer: bytes


@dataclass(frozen=True, slots=True)
class Growth:
    """A conversation's `turns` requests grow evenly from about `first` to about `last` bytes."""

    turns: int
    first: int = 20_000
    last: int = 200_000

    def size(self, turn: int) -> int:
        return self.first + (self.last - self.first) * turn // max(self.turns - 1, 1)


def conversation(seed: int, growth: Growth) -> Iterator[Turn]:
    """The turns of conversation number `seed`; no two requests of all conversations are the same."""
    rng = random.Random(seed)
    rendered = [_dump("system", _prose(rng, _SYSTEM_BYTES))]
    size = len(rendered[0])
    for turn in range(growth.turns):
        room = (growth.size(turn) - size) * rng.uniform(0.8, 1.2)
        for role, share in (("assistant", 0.3), ("tool", 0.5), ("user", 0.2)):
            rendered.append(_dump(role, _prose(rng, max(int(room * share), 20))))
            size += len(rendered[-1]) + 1
        yield Turn(_request(rendered), _answer(seed, turn))


def answer_mark(seed: int, turn: int) -> bytes:
    """What stands in the answer to one turn and in no other."""
    return b"chatcmpl-%06d-%06d" % (seed, turn)


def sample_answer() -> bytes:
    """An answer to anything, as large as the others."""
    return _answer(0, 0)


def request_head(size: int) -> bytes:
    """The head that an SDK sends with a body of `size` bytes."""
    return (
        f"POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
        "Accept: application/json\r\nContent-Type: application/json\r\nUser-Agent: OpenAI/Python 3.57.0\r\n"
        "X-Stainless-Lang: python\r\nX-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\n"
        f"Authorization: Bearer sk-bench-0123456789abcdef\r\nContent-Length: {size}\r\n\r\n"
    ).encode()


def _request(messages: list[bytes]) -> bytes:
    return b'{"messages":[%b],"model":"gpt-4o","temperature":0.2,"tool_choice":"auto"}' % b",".join(messages)


def _answer(seed: int, turn: int) -> bytes:
    words = _prose(random.Random(seed * 100_003 + turn), _ANSWER_WORDS_BYTES)
    message = {"role": "assistant", "content": words, "refusal": None}
    answer = {
        "id": answer_mark(seed, turn).decode(),
        "object": "chat.completion",
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000 + turn, "completion_tokens": 170, "total_tokens": 1170 + turn},
    }
    return json.dumps(answer).encode()


def _prose(rng: random.Random, size: int) -> str:
    words = rng.choices(_WORDS, k=size // 5 + 1)
    words[::17] = rng.choices(_SPICE, k=len(words[::17]))
    return " ".join(words)[:size]


def _dump(role: str, content: str) -> bytes:
    return json.dumps({"role": role, "content": content}, ensure_ascii=False, separators=(",", ":")).encode()
