"""Decides the answer to a request: the script's entry that fits, else the default. Knows no wire format, sends nothing.

The default is what a small obliging model would do: call the first tool when tools are offered and no result is there
yet, give JSON when a schema is asked for, else answer in words that mention the tool result or the question.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from tapeproxy.testing.arguments import Hints, find_field, invent_arguments, invent_json
from tapeproxy.testing.chance import Chance
from tapeproxy.testing.conversation import Ask, Reply, Tool, ToolCall, dumps
from tapeproxy.testing.script import Delivery, Entry, Script, When

_PLAIN: Final = (
    "You asked: “{user}” Here is a short answer — it has a few sentences, so that a stream of it takes several events. "
    "Nothing in it was thought about.",
    "About “{user}”: the answer depends on whom you ask. This one was made up on the spot; another would do.",
    "Good question. {user} Let me put it this way: it is so on most days, and on the others it is not.",
)
_PLACE: Final = re.compile(r"\{user\}|\{tool_result(?:\.(?P<name>\w+))?\}")
_AFTER_TOOL: Final = (
    "I looked it up. The tool says: {tool_result} That is all I know.",
    "According to the tool: {tool_result}",
    "Here is what came back: {tool_result} I hope that helps.",
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error answer; an empty message means the provider's usual words."""

    status: int
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to answer and how it travels."""

    answer: Reply | Refusal
    delivery: Delivery


class Playbook:
    """A script being played: remembers how often each entry has been met and used."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._met: Counter[int] = Counter()
        self._used: Counter[int] = Counter()

    def plan(self, api: str, ask: Ask, chance: Chance) -> Plan:
        """The answer to one request to a model; counts it."""
        entry = self._pick(api, ask)
        if entry is None:
            return Plan(default_reply(ask, chance), self._script.delivery)
        if entry.status >= 400:
            return Plan(_refusal(entry), entry.delivery)
        return Plan(_scripted_reply(entry, ask) or default_reply(ask, chance), entry.delivery)

    def plan_search(self, query: str) -> tuple[Refusal | None, Delivery]:
        """How to answer one request to the search API (None: as it is); only entries for that API count."""
        entry = self._pick("search", Ask(model="", body={}, user=query))
        if entry is None:
            # What the script says about every answer is said of the model; the tool API only keeps its pace.
            return None, Delivery(delay_ms=self._script.delivery.delay_ms)
        return (_refusal(entry) if entry.status >= 400 else None), entry.delivery

    def _pick(self, api: str, ask: Ask) -> Entry | None:
        chosen: Entry | None = None
        for number, entry in enumerate(self._script.entries):
            if not fits(entry.when, api, ask):
                continue
            # Every entry counts what it meets, chosen or not: `nth` must not depend on the entries above it.
            self._met[number] += 1
            is_turn = entry.when.nth in (None, self._met[number])
            is_left = entry.times is None or self._used[number] < entry.times
            if chosen is None and is_turn and is_left:
                self._used[number] += 1
                chosen = entry
        return chosen


def fits(when: When, api: str, ask: Ask) -> bool:
    """Whether everything but `nth` holds. An entry that names no API is for the models only."""
    if (when.api is None and api == "search") or when.api not in (None, api):
        return False
    if when.user is not None and when.user.lower() not in ask.user.lower():
        return False
    if when.model is not None and not fnmatchcase(ask.model, when.model):
        return False
    if isinstance(when.tool_result, bool):
        return when.tool_result == bool(ask.tool_results)
    return when.tool_result is None or when.tool_result.lower() in _latest_result(ask).lower()


def default_reply(ask: Ask, chance: Chance) -> Reply:
    """The answer without a script."""
    if ask.tools and (ask.must_call or not ask.tool_results):
        return Reply(tool_calls=(_invent_call(ask.tools[0], ask),))
    if ask.output_schema is not None:
        return Reply(invent_json(ask.output_schema, _hints(ask)))
    wordings: Sequence[str] = _AFTER_TOOL if ask.tool_results else _PLAIN
    return Reply(_fill(chance.pick(wordings), ask))


def _scripted_reply(entry: Entry, ask: Ask) -> Reply | None:
    if entry.text is None and not entry.tool_calls:
        return None
    return Reply(_fill(entry.text or "", ask), tuple(_complete(call, ask) for call in entry.tool_calls))


def _complete(call: ToolCall | str, ask: Ask) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    tool = next((tool for tool in ask.tools if tool.name == call), Tool(call, {}))
    return _invent_call(tool, ask)


def _invent_call(tool: Tool, ask: Ask) -> ToolCall:
    return ToolCall(tool.name, invent_arguments(tool.schema, _hints(ask)))


def _refusal(entry: Entry) -> Refusal:
    retry_after = 1 if entry.retry_after is None and entry.status == 429 else entry.retry_after
    return Refusal(entry.status, entry.message, retry_after)


def _fill(text: str, ask: Ask) -> str:
    """Put the conversation into a text: `{user}`, `{tool_result}`, or `{tool_result.NAME}` for a field of JSON."""
    return _PLACE.sub(lambda place: _value_at(place, ask), text)


def _value_at(place: re.Match[str], ask: Ask) -> str:
    if place[0] == "{user}":
        return ask.user
    if place["name"] is None:
        return _latest_result(ask)
    found = find_field(_latest_result(ask), place["name"])
    return found if isinstance(found, str) else dumps(found)


def _hints(ask: Ask) -> Hints:
    return Hints(ask.user, _latest_result(ask))


def _latest_result(ask: Ask) -> str:
    return ask.tool_results[-1] if ask.tool_results else ""
