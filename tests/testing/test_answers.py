"""Which answer a request gets: the script first, then the default."""

import random

import pytest

from tapeproxy.testing.answers import Playbook, Refusal, default_reply, fits
from tapeproxy.testing.chance import EPOCH, Chance
from tapeproxy.testing.conversation import Ask, Reply, Tool, ToolCall
from tapeproxy.testing.script import When, read_script

CHANCE = Chance(random.Random(0), EPOCH, varied=False)
WEATHER = Tool("get_weather", {"type": "object", "properties": {"city": {"type": "string"}}})
TIME = Tool("get_time", {"type": "object", "properties": {}})


def ask(user: str = "", **fields: object) -> Ask:
    return Ask(**{"model": "gpt-4o-mini", "body": {}, "user": user, **fields})  # pyright: ignore[reportArgumentType]  # a short form


def play(playbook: Playbook, asks: list[Ask], api: str = "openai-chat") -> list[object]:
    """What was answered to each: the text, the tool calls, or the status."""
    answers = [playbook.plan(api, one, CHANCE).answer for one in asks]
    return [one.status if isinstance(one, Refusal) else one.text or one.tool_calls for one in answers]


@pytest.mark.parametrize(
    ("when", "request_", "expected"),
    [
        (When(), ask(), True),
        (When(api="openai-chat"), ask(), True),
        (When(api="openai-responses"), ask(), False),
        (When(user="WEATHER"), ask("the weather?"), True),
        (When(user="news"), ask("the weather?"), False),
        (When(model="gpt-4o*"), ask(), True),
        (When(model="gpt-4o"), ask(), False),
        (When(tool_result=True), ask(tool_results=("x",)), True),
        (When(tool_result=True), ask(), False),
        (When(tool_result=False), ask(tool_results=("x",)), False),
        (When(tool_result="Rain"), ask(tool_results=("sun", "rain")), True),
        (When(tool_result="sun"), ask(tool_results=("sun", "rain")), False),
        (When(user="weather", tool_result=True), ask("weather"), False),
    ],
)
def test_fits(when: When, request_: Ask, expected: bool) -> None:
    assert fits(when, "openai-chat", request_) is expected


def test_only_an_entry_that_names_the_search_api_is_for_it() -> None:
    assert not fits(When(), "search", ask())
    assert fits(When(api="search", user="tides"), "search", ask("Tides"))


def test_the_first_entry_that_fits_answers() -> None:
    playbook = Playbook(read_script({"reply": [{"when": {"user": "b"}, "text": "B"}, {"text": "any"}]}))
    assert play(playbook, [ask("a"), ask("b"), ask("a")]) == ["any", "B", "any"]


def test_times_and_nth() -> None:
    script = {"reply": [{"status": 429, "times": 2}, {"when": {"nth": 4}, "text": "fourth"}, {"text": "rest"}]}
    assert play(Playbook(read_script(script)), [ask()] * 5) == [429, 429, "rest", "fourth", "rest"]


def test_nth_counts_only_what_the_rest_of_the_entry_fits() -> None:
    script = {"reply": [{"when": {"user": "x", "nth": 2}, "text": "second x"}, {"text": "other"}]}
    asks = [ask("x"), ask("y"), ask("x"), ask("x")]
    assert play(Playbook(read_script(script)), asks) == ["other", "other", "second x", "other"]


def test_a_429_asks_to_wait_unless_told_otherwise() -> None:
    def wait(entry: dict[str, object]) -> float | None:
        answer = Playbook(read_script({"reply": [entry]})).plan("openai-chat", ask(), CHANCE).answer
        assert isinstance(answer, Refusal)
        return answer.retry_after

    assert wait({"status": 429}) == 1
    assert wait({"status": 429, "retry_after": 0}) == 0
    assert wait({"status": 500}) is None


def test_places_in_a_scripted_text() -> None:
    script = {"reply": [{"text": "{user}: {tool_result}, {tool_result.n}, {tool_result.s}, {user.x} {other}"}]}
    given = ask("{tool_result}?", tool_results=('{"n": [1], "s": "é"}',))
    said = '{tool_result}?: {"n": [1], "s": "é"}, [1], é, {user.x} {other}'
    assert play(Playbook(read_script(script)), [given]) == [said]


def test_a_scripted_call_without_arguments_gets_them_from_the_schema() -> None:
    script = {"reply": [{"tool_calls": [{"name": "get_weather"}, {"name": "unknown"}]}]}
    given = ask("in Lima", tools=(TIME, WEATHER))
    expected = (ToolCall("get_weather", {"city": "Lima"}), ToolCall("unknown", {}))
    assert play(Playbook(read_script(script)), [given]) == [expected]


CALL = Reply(tool_calls=(ToolCall("get_weather", {"city": "Lima"}),))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ask("in Lima", tools=(WEATHER, TIME)), CALL),
        (ask("in Lima", tools=(WEATHER,), must_call=True, tool_results=("x",)), CALL),
        (ask("in Lima", output_schema={"properties": {"city": {"type": "string"}}}), Reply('{"city": "Lima"}')),
    ],
)
def test_default_reply(given: Ask, expected: Reply) -> None:
    assert default_reply(given, CHANCE) == expected


def test_default_words_mention_what_was_heard() -> None:
    varied = [Chance(random.Random(n), EPOCH, varied=True) for n in range(20)]
    for given, mention in ((ask("why?"), "why?"), (ask("why?", tools=(TIME,), tool_results=("rain",)), "rain")):
        assert all(mention in default_reply(given, chance).text for chance in varied)
        assert len({default_reply(given, chance).text for chance in varied}) > 1


def test_search_answers() -> None:
    playbook = Playbook(read_script({"delay_ms": 3, "reply": [{"when": {"api": "search"}, "status": 503, "times": 1}]}))
    first, second = playbook.plan_search("a"), playbook.plan_search("a")
    assert first[0] == Refusal(503)
    assert second[0] is None
    assert second[1].delay_ms == 3
