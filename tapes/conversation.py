"""An LLM call as plain data: what was asked, what was answered. Knows no wire format; the dialects do.

Values are as the provider gave them; what it did not give is None. Nothing is invented, so a field can be trusted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tapeproxy.tapes.records import Json


@dataclass(frozen=True, slots=True)
class Text:
    """Words for the reader. `refusal`: the model's refusal, which some providers keep apart."""

    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    """The model's reasoning; empty when the provider hid or encrypted it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model makes. `arguments` is the text the model wrote, mostly JSON, cut where its stream was cut."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """A placeholder for what is not text: `kind` (image, audio, document, …) and what is known of it.

    `image`: the picture itself as a data URL, where the call held it and any browser can show it; see `picture`.
    """

    kind: str
    detail: str = ""
    image: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back. `id` is the call's; `media`: the pictures among it, for which `text` has placeholders."""

    text: str
    id: str | None = None
    error: bool = False
    media: tuple[Media, ...] = ()


type Part = Text | Thought | ToolCall | ToolResult | Media


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `role` is the provider's word."""

    role: str
    parts: tuple[Part, ...] = ()

    @property
    def text(self) -> str:
        """The words of the turn, joined; no reasoning and no tools."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a model, system prompt and all, oldest message first."""

    model: str | None
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back, put together from the stream where it was one.

    `tokens_in` counts the whole prompt, cached parts included, whatever the provider's way to count them. Of these,
    `tokens_cached` were read from the provider's cache, and `tokens_written` written to it, which have other prices.
    """

    model: str | None = None
    message: Message | None = None
    stop: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    error: str | None = None
    tokens_cached: int | None = None
    tokens_written: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A response body as JSON objects: one, or those of a stream (`streamed`) in order. `status` is HTTP's."""

    objects: tuple[Json, ...] = ()
    streamed: bool = False
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One provider's way to put a call in JSON. Both readers take anything and never raise.

    `read_request(path, body)` gives None when the request is not of this dialect.
    """

    name: str
    read_request: Callable[[str, Json], Asked | None]
    read_answer: Callable[[Answer], Answered]


@dataclass(frozen=True, slots=True)
class Call:
    """A whole LLM call. `model` is the one that answered, or else the one that was asked for."""

    dialect: str
    model: str | None
    messages: tuple[Message, ...]
    answer: Message | None = None
    stop: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    error: str | None = None
    streamed: bool = False
    tokens_cached: int | None = None
    tokens_written: int | None = None
