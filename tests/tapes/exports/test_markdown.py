import re

import difftapes
import pytest
from difftapes import Ask, get, run, say, streamed
from hypothesis import example, given
from hypothesis import strategies as st

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.exports.markdown import export
from tapeproxy.tapes.tokens import make_token

HOSTILE = st.text("`~<>#*[]()!_|\\-\n \t\r\x1b\u202ea", max_size=40)


def transcript(tape: Tape, lost: list[str] | None = None) -> str:
    return b"".join(export(tape, "x.tape.jsonl.gz", (lost if lost is not None else []).append)).decode()


def outside(text: str) -> tuple[str, list[str]]:
    """What is not code, and the content of its fenced blocks, as CommonMark reads them."""
    plain: list[str] = []
    blocks: list[str] = []
    fence: str | None = None
    for line in text.split("\n"):
        if fence is None and (opened := re.fullmatch(r" {0,3}(`{3,})[^`]*", line)):
            fence = opened[1]
            blocks.append("")
        elif (
            fence is not None
            and (closed := re.fullmatch(r" {0,3}(`{3,})[ \t]*", line))
            and len(closed[1]) >= len(fence)
        ):
            fence = None
        elif fence is not None:
            blocks[-1] += line + "\n"
        else:
            plain.append(line)
    assert fence is None
    # Code spans: as many ticks at the end as at the beginning.
    return re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "CODE", "\n".join(plain)), blocks


def test_a_conversation() -> None:
    tape = run(
        say("m", "Where is\nthe sea?", answer="West."),
        get("m", "a?b=c", '{"a":[1]}'),
        streamed("m", "And now?", "Still ", "west."),
    )
    assert (
        transcript(tape)
        == """\
# `python agent.py 'a b'`

tape `x.tape.jsonl.gz`, begun `2026-01-02T03:04:05.000000Z`, exit 0, 3 exchanges

### 1. `gpt-4o-2024` (stop: `stop`)

**user**

```text
Where is
the sea?
```

**assistant**

```text
West.
```

### 2. `GET https://service.test/a?b=c`

received

```text
{
  "a": [
    1
  ]
}
```

### 3. `gpt-4o` (stop: `stop`)

**user**

```text
And now?
```

**assistant**

```text
Still west.
```
"""
    )


def turn(*messages: dict[str, object]) -> Ask:
    return Ask("m", difftapes.MODEL, {"model": "m", "messages": list(messages)}, say("m", answer="Then.").answer)


def test_a_call_that_goes_on_tells_what_is_new() -> None:
    first: dict[str, object] = {"role": "user", "content": "When?"}
    answered: dict[str, object] = {"role": "assistant", "content": "Then."}
    text = transcript(run(turn(first), turn(first, answered, {"role": "user", "content": "Why?"})))
    assert text.count("When?") == 1
    assert "*after the 2 messages above*\n\n**user**\n\n```text\nWhy?\n```" in text


def test_tools_and_errors() -> None:
    call = {"id": "c1", "function": {"name": "add`up", "arguments": '{"a":1}'}}
    text = transcript(
        run(
            turn({"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "2"}),
            Ask(
                "m",
                difftapes.MODEL,
                {"messages": [{"role": "user", "content": "x"}]},
                b'{"error":{"message":"no"}}',
                500,
            ),
        )
    )
    assert '**assistant** calls ``add`up``\n\n```text\n{\n  "a": 1\n}\n```' in text
    assert "**tool**, result of a tool\n\n```text\n2\n```" in text
    assert "→ 500\n" in text
    assert "**error**\n\n```text\nno\n```" in text


def test_lanes_have_headings() -> None:
    text = transcript(run(get("m", "a"), get("m/t0", "b"), names={"m/t0": "worker"}))
    assert "\n## (lane `m`)\n" in text
    assert "\n## `worker` (lane `m/t0`)\n" in text


def test_bytes_that_are_no_text() -> None:
    assert "received: 3 bytes that are no text" in transcript(run(Ask("m", "https://x.test/", None, b"\xff\xfe\x00")))


def test_long_texts_are_cut_and_that_is_told() -> None:
    lost: list[str] = []
    text = transcript(run(get("m", "a", "x" * 30_000)), lost)
    assert "… and 10000 more characters" in text
    assert lost == ["1 long text was cut"]


def test_secrets_are_a_word() -> None:
    token = make_token(b"k" * 32, b"a secret of some length").decode()
    assert "key [redacted] end" in transcript(run(get("m", "a", f"key {token} end")))


@pytest.mark.parametrize("role", ["user", "**bold**", "<script>", "", "a\n# b"])
def test_roles_are_the_providers(role: str) -> None:
    plain, _ = outside(transcript(run(turn({"role": role, "content": "x"}))))
    assert "<script>" not in plain
    assert "\n# b" not in plain


@example("a\n```\n<script>\n````\n# x", "`<b>`` ```")
@given(HOSTILE, HOSTILE)
def test_no_text_of_a_tape_is_markup(said: str, name: str) -> None:
    tape = run(
        say("m", said, answer=name + said),
        get("m", "a", said),
        turn({"role": name, "content": said}),
        names={"m": name, "m/t0": said},
    )
    text = transcript(tape)
    assert re.search(r"[\x00-\x08\x0b-\x1f\u202e]", text) is None
    plain, blocks = outside(text)
    assert not set("<>[]|~!_\\") & set(plain)
    assert all(line.startswith(("# CODE", "### ")) for line in plain.split("\n") if line.startswith("#"))
    shown = said.replace("\r\n", "\n").replace("\r", "\\r").replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    if said:
        assert shown.rstrip("\n") in "".join(blocks)
