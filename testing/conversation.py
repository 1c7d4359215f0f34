"""What an LLM call asks and what it is answered, as plain data. Knows no wire format and no script.

The dialects (`openai_chat`, `openai_responses`, `anthropic_messages`, `gemini`) read their JSON into an `Ask` and write
a `Reply` back out; everything that decides sits between the two.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tapeproxy.tapes.errors import TapeproxyError

type Json = dict[str, object]

_WORD = re.compile(r"\w+|[^\w\s]")


class AskError(TapeproxyError):
    """A request body that the real provider would answer with 400."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call, and the JSON schema of its arguments."""

    name: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model makes."""

    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to a model.

    `user` is the last user text; `tool_results` are the results that came after it, oldest first. `tools` are those
    the model may call: none when the caller forbade it, one when the caller named it. `body` is the whole request.
    """

    model: str
    body: Mapping[str, object]
    user: str = ""
    tools: tuple[Tool, ...] = ()
    must_call: bool = False
    tool_results: tuple[str, ...] = ()
    output_schema: Mapping[str, object] | None = None
    stream: bool = False
    include_usage: bool = False

    @property
    def input_words(self) -> int:
        """Input tokens, counted as words and punctuation of every text in the request."""
        return count_words(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says: text, tool calls, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def words(self) -> int:
        """Output tokens, counted as `Ask.input_words` counts; at least 1."""
        called = sum(count_words([call.name, dumps(call.arguments)]) for call in self.tool_calls)
        return max(1, count_words(self.text) + called)


def dumps(value: object) -> str:
    """JSON as a model writes it into tool arguments: spaced, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False)


def count_words(value: object) -> int:
    """Count the words and punctuation marks of all strings in a JSON value."""
    if isinstance(value, str):
        return len(_WORD.findall(value))
    if isinstance(value, Mapping):
        return sum(map(count_words, value.values()))
    if isinstance(value, list):
        return sum(map(count_words, value))
    return 0


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the `text` of its parts joined."""
    if isinstance(content, str):
        return content
    parts = (part.get("text") for part in items_of(content))
    return "\n".join(part for part in parts if isinstance(part, str))


def items_of(value: object) -> list[Json]:
    """The objects of a JSON list; nothing for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping_of(value: object) -> Json:
    """A JSON object as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def narrow(tools: Iterable[Tool], choice: object) -> tuple[tuple[Tool, ...], bool]:
    """Apply a tool choice (`none`, `required` or `any`, a name, else auto): the tools left, and if one must be called.

    The spellings of all three providers are taken: a bare word, `{"type": word}`, a name at the top or in `function`.
    """
    offered = tuple(tools)
    as_object = mapping_of(choice)
    word = choice if isinstance(choice, str) else as_object.get("type")
    if word == "none":
        return (), False
    name = mapping_of(as_object.get("function")).get("name") or as_object.get("name")
    if isinstance(name, str):
        return tuple(tool for tool in offered if tool.name == name), True
    return offered, word in ("required", "any")


def required_list(body: Mapping[str, object], key: str) -> list[Json]:
    """The list under `key`, or AskError in the words a provider would use."""
    if not isinstance(body.get(key), list):
        raise AskError(f"Missing required parameter: '{key}'.", fix="send a list of messages")
    return items_of(body[key])


def required_model(body: Mapping[str, object]) -> str:
    """The model's name, or AskError."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise AskError("Missing required parameter: 'model'.", fix="send the name of any model")
    return model
