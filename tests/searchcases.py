"""What is searched for in a run, and the numbers of the exchanges that say it: one rule for server and single file."""

import json

from agentruns import JSON_TYPE
from difftapes import MODEL, Ask, get, say, streamed

_ESCAPED = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": 'die Br\u00fccke \U0001f600\nsays "hello there"'}],
}
_CALL = {"function": {"name": "look", "arguments": json.dumps({"where": "K\u00f6ln"})}, "id": "c1", "type": "function"}
_ANSWER = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [_CALL]}}]}
ASKS = (
    say("m", "What is it?", answer="A thing."),
    streamed("m/t0", "And then?", "This", " and", " that."),
    get("m/t0", "a?b=c", '{"x": 1}', status=503),
    get(None, "d", "\u00e9t\u00e9 \U0001f680"),
    Ask("m", MODEL, _ESCAPED, json.dumps(_ANSWER).encode(), headers=(JSON_TYPE, (b"X-Word", b"Zebra"))),
)
"""The fifth has only ASCII on the tape: what is not stands there escaped, once and twice."""
SEARCHES = (
    ("what IS it", [1]),
    ("this", [2]),
    ("this and that", [2]),
    ("service.test", [3, 4]),
    ("\u00e9t\u00e9", [4]),
    ("\U0001f680", [4]),
    ("b=c", [3]),
    ("die br\u00fccke", [5]),
    ("die Br\\u00fccke", [5]),
    ("\U0001f600", [5]),
    ("\U0001f600 says", [5]),
    ('says "hello  there"', [5]),
    ("k\u00f6ln", [5]),
    ("zebra", [5]),
    ("", []),
    ("nowhere", []),
    ("pieces", []),
    ("whole", []),
    ("dialect", []),
    ("coding", []),
    ("at_ns", []),
    ("x-word", []),
)
