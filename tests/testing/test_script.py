"""What a script file may say, and what is said about one that can't be played."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.testing.conversation import ToolCall
from tapeproxy.testing.script import Delivery, Entry, Script, When, load_script, parse_script, read_script
from tapeproxy.testing.tables import ScriptError

EXAMPLES = Path(__file__).parents[2] / "examples"

FULL = """
delay_ms = 5
gap_ms = [0, 2.5]
headers = { Server = "cloudflare" }

[[reply]]
when = { api = "openai-chat", user = "weather", model = "gpt-*", tool_result = false, nth = 2 }
text = "Let me see."
tool_calls = [{ name = "get_weather", arguments = { city = "Lima" } }, { name = "get_time" }]
times = 3

[[reply]]
when.tool_result = "rain"
gzip = true
gap_ms = [1, 1]
headers = { Set-Cookie = ["a=1", "b=2"] }

[[reply]]
status = 529
message = "later"
retry_after = 0.5

[[reply]]
cut_after = 0
reset = true
"""


def test_every_key() -> None:
    base = Delivery(delay_ms=5, gap_ms=(0, 2.5), headers=(("server", "cloudflare"),))
    cookies = (*base.headers, ("set-cookie", "a=1"), ("set-cookie", "b=2"))
    assert parse_script(FULL, "a.toml") == Script(
        (
            Entry(
                When(api="openai-chat", user="weather", model="gpt-*", tool_result=False, nth=2),
                text="Let me see.",
                tool_calls=(ToolCall("get_weather", {"city": "Lima"}), "get_time"),
                times=3,
                delivery=base,
            ),
            Entry(When(tool_result="rain"), delivery=Delivery(5, (1, 1), gzip=True, headers=cookies)),
            Entry(status=529, message="later", retry_after=0.5, delivery=base),
            Entry(delivery=Delivery(5, (0, 2.5), cut_after=0, reset=True, headers=base.headers)),
        ),
        base,
    )


def test_json_says_the_same_as_toml() -> None:
    toml = parse_script('[[reply]]\nwhen = { user = "a" }\ntext = "b"', "a.toml")
    assert parse_script('{"reply": [{"when": {"user": "a"}, "text": "b"}]}', "a.json") == toml


def test_an_empty_script_is_a_script() -> None:
    assert parse_script("", "a.toml") == Script()


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        ("reply = [", 0, "a.toml: not TOML: "),
        ("replies = []", 0, "a.toml: the script has no key 'replies'\n  did you mean 'reply'?"),
        ("reply = 3", 0, "a.toml: 'reply' must be a list\n  write each reply as a [[reply]] table"),
        ("reply = [3]", 1, "a.toml, reply 1: a reply is not a table\n  write key = value pairs"),
        ("[[reply]]\n[[reply]]\ntxet = 'x'", 2, "a.toml, reply 2: a reply has no key 'txet'\n  did you mean 'text'?"),
        ("[[reply]]\nzzz = 1", 1, "a.toml, reply 1: a reply has no key 'zzz'\n  the keys are cut_after, delay_ms, "),
        ("[[reply]]\nwhen = 'x'", 1, "a.toml, reply 1: 'when' is not a table"),
        ("[[reply]]\nwhen.usr = 'x'", 1, "a.toml, reply 1: 'when' has no key 'usr'\n  did you mean 'user'?"),
        ("[[reply]]\nwhen.api = 'openai'", 1, "a.toml, reply 1: 'api' is 'openai'\n  use one of openai-chat, "),
        ("[[reply]]\nwhen.nth = 0", 1, "a.toml, reply 1: 'nth' must be a whole number, 1 or more"),
        ("[[reply]]\nwhen.tool_result = 1", 1, "a.toml, reply 1: 'tool_result' must be true, false or a text"),
        ("[[reply]]\nwhen.tool_result = 1.5", 1, "a.toml, reply 1: 'tool_result' must be true, false or a text"),
        ("[[reply]]\ntext = 1", 1, "a.toml, reply 1: 'text' must be a text"),
        ("[[reply]]\ntext = 'x'\nstatus = 500", 1, "a.toml, reply 1: has both an answer and an error status"),
        ("[[reply]]\nstatus = 302", 1, "a.toml, reply 1: 'status' is 302\n  use 200, or an error from 400 to 599"),
        ("[[reply]]\nstatus = 429.5", 1, "a.toml, reply 1: 'status' must be a whole number"),
        ("[[reply]]\ntimes = true", 1, "a.toml, reply 1: 'times' must be a number"),
        ("[[reply]]\nretry_after = -1", 1, "a.toml, reply 1: 'retry_after' must be a number, 0 or more"),
        ("[[reply]]\ndelay_ms = inf", 1, "a.toml, reply 1: 'delay_ms' must be a number, 0 or more"),
        ("[[reply]]\ngap_ms = [0, inf]", 1, "a.toml, reply 1: 'gap_ms' must be two numbers, the smaller first"),
        ("[[reply]]\ngap_ms = [2, 1]", 1, "a.toml, reply 1: 'gap_ms' must be two numbers, the smaller first"),
        ("[[reply]]\ngap_ms = 2", 1, "a.toml, reply 1: 'gap_ms' must be two numbers, the smaller first"),
        ("[[reply]]\ngzip = 1", 1, "a.toml, reply 1: 'gzip' must be true or false"),
        ("[[reply]]\ntool_calls = 'f'", 1, "a.toml, reply 1: 'tool_calls' must be a list"),
        ("[[reply]]\ntool_calls = ['f']", 1, "a.toml, reply 1: a tool call is not { name, arguments }"),
        ("[[reply]]\ntool_calls = [{nam = 'f'}]", 1, "a.toml, reply 1: a tool call is not { name, arguments }"),
        ("[[reply]]\ntool_calls = [{name = 'f', arguments = 1}]", 1, "reply 1: the arguments of 'f' are not a table"),
        ("[[reply]]\nheaders.x = 1", 1, "a.toml, reply 1: the header 'x' is not a text or a list of texts"),
        ("[[reply]]\nwhen.api = 'search'\ntext = 'x'", 1, "reply 1: gives a model's answer to the search API"),
    ],
)
def test_a_bad_script_says_where_and_what_to_do(text: str, entry: int, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "a.toml")
    assert message in str(caught.value)
    assert (caught.value.source, caught.value.entry) == ("a.toml", entry)
    assert caught.value.fix


def test_bad_json_is_named_so() -> None:
    with pytest.raises(ScriptError, match=r"a\.json: not JSON: "):
        parse_script("{", "a.json")


@pytest.mark.parametrize(
    ("content", "message"), [(None, "No such file"), (b"\xff", "it is not UTF-8 text")], ids=["missing", "binary"]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "s.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScriptError, match=message) as caught:
        load_script(path)
    assert caught.value.source == str(path)


def test_the_examples_script_loads() -> None:
    assert load_script(EXAMPLES / "provider.toml").entries


KEYS = st.sampled_from(
    ["reply", "when", "text", "tool_calls", "status", "gap_ms", "headers", "times", "user", "name", "x"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 600) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


ENTRIES = st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=3)


@given(JSON | st.fixed_dictionaries({"reply": ENTRIES}))
def test_any_data_is_a_script_or_a_script_error(data: object) -> None:
    try:
        assert isinstance(read_script(data), Script)
    except ScriptError as error:
        assert error.fix
