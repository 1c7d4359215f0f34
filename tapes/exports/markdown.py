"""A tape as a transcript in Markdown: what was said to models, and what was fetched in between, lane by lane.

What comes from a tape stands in code: no markup of it is taken for ours.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tapeproxy.tapes.agentnames import all_names
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Call, Media, Message, Part, Text, Thought, ToolCall, ToolResult
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.exports import Lost
from tapeproxy.tapes.indenting import indent_json
from tapeproxy.tapes.invisible import spelled
from tapeproxy.tapes.lanepairs import depth_first
from tapeproxy.tapes.markdowntext import code, fenced
from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.outcomes import outcome
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.tokens import replace_tokens

_LONGEST: Final = 20_000
"""Characters of a message, or of a body."""
_REMEMBERED: Final = 8
"""Conversations of a lane that a call may go on with."""


def export(tape: Tape, source: str, lost: Lost) -> Iterator[bytes]:
    """The transcript. What is longer than 20,000 characters is cut, and `lost` told."""
    transcript = _Transcript(tape, source)
    for text in transcript.pieces():
        yield text.encode()
    if transcript.cut:
        lost(f"{transcript.cut} long texts were cut" if transcript.cut > 1 else "1 long text was cut")


@dataclass
class _Transcript:
    tape: Tape
    source: str
    cut: int = 0
    _told: list[tuple[Message, ...]] = field(default_factory=list[tuple[Message, ...]])

    def pieces(self) -> Iterator[str]:
        head = self.tape.head
        yield f"# {_code(shlex.join(head.argv) or self.source)}\n\n"
        facts = [
            f"tape {_code(self.source)}",
            f"begun {_code(head.started_at)}",
            outcome(self.tape.seal, self.tape.exit),
        ]
        yield f"{', '.join(facts)}, {len(self.tape.exchanges)} exchanges\n"
        lanes: dict[str, list[int]] = {}
        for at, exchange in enumerate(self.tape.exchanges):
            lanes.setdefault(exchange.request.lane or "", []).append(at)
        names = {lane: ", ".join(called) for lane, called in all_names(self.tape).items()}
        for lane in sorted(lanes, key=depth_first):
            if len(lanes) > 1:
                name = names.get(lane, "")
                yield f"\n## {_code(name) + ' ' if name else ''}{f'(lane {_code(lane)})' if lane else 'no lane'}\n"
            self._told.clear()
            for at in lanes[lane]:
                yield from self._exchange(self.tape.exchanges[at])

    def _exchange(self, exchange: Exchange) -> Iterator[str]:
        call = read_call(exchange)
        if call is not None:
            yield from self._call(exchange, call)
            return
        request, response = exchange.request, exchange.response
        line = f"{request.method.decode('latin-1')} {request.url.decode('latin-1')}"
        yield f"\n### {exchange.number}. {_code(line)}\n{_ended(exchange)}"
        yield from self._body("sent", exchange.request_body, request.headers)
        if response is not None:
            yield from self._body("received", exchange.response_body, response.headers)
        for message in read_frames(exchange.frames):
            if message.type in ("text", "binary"):
                yield from self._body(f"{message.sender} says", message.data, ())
            elif message.type == "close":
                number = "" if message.code is None else f" {message.code}"
                reason = f" {_code(message.data.decode(errors='replace'))}" if message.data else ""
                yield f"\n{message.sender} closes{number}{reason}\n"

    def _call(self, exchange: Exchange, call: Call) -> Iterator[str]:
        counts = ((call.tokens_in, "in"), (call.tokens_out, "out"))
        facts = [f"stop: {_code(call.stop)}"] if call.stop else []
        facts += [f"{count} tokens {way}" for count, way in counts if count is not None]
        told = f" ({', '.join(facts)})" if facts else ""
        yield f"\n### {exchange.number}. {_code(call.model or call.dialect)}{told}\n"
        yield _ended(exchange)
        known = self._known(call.messages)
        if known:
            yield f"\n*after the {known} messages above*\n" if known > 1 else "\n*after the message above*\n"
        for message in call.messages[known:]:
            yield from self._message(message)
        if call.answer is not None:
            yield from self._message(call.answer)
        if call.error:
            yield f"\n**error**\n{self._fenced(call.error)}"
        self._told.append((*call.messages, *([call.answer] if call.answer is not None else ())))
        del self._told[:-_REMEMBERED]

    def _known(self, messages: Sequence[Message]) -> int:
        """How many of the messages were told before, in a conversation that this call goes on with."""
        plain = [_words(message) for message in messages]
        return max((_shared(plain, [_words(message) for message in told]) for told in self._told), default=0)

    def _message(self, message: Message) -> Iterator[str]:
        if not message.parts:
            yield f"\n**{_safe(message.role)}**: (empty)\n"
        for part in message.parts:
            yield self._part(message.role, part)

    def _part(self, role: str, part: Part) -> str:
        who = _safe(role)
        match part:
            case Text():
                return f"\n**{who}**{' (refusal)' if part.refusal else ''}\n{self._fenced(part.text)}"
            case Thought():
                return f"\n**{who}**, thinking\n{self._fenced(part.text or '(hidden)')}"
            case ToolCall():
                text = indent_json(part.arguments) or part.arguments
                return f"\n**{who}** calls {_code(part.name)}\n{self._fenced(text)}"
            case ToolResult():
                return f"\n**{who}**, {'error' if part.error else 'result'} of a tool\n{self._fenced(part.text)}"
            case Media():
                return f"\n**{who}**: {_code(f'{part.kind} {part.detail}'.strip())}\n"

    def _body(self, what: str, body: bytes, headers: Headers) -> Iterator[str]:
        if not body:
            return
        data = decode(body, headers).data
        try:
            text = data.decode()
        except UnicodeDecodeError:
            yield f"\n{what}: {len(data)} bytes that are no text\n"
            return
        yield f"\n{what}\n{self._fenced(indent_json(text) or text)}"

    def _fenced(self, text: str) -> str:
        if len(text) > _LONGEST:
            self.cut += 1
            text = f"{text[:_LONGEST]}\n… and {len(text) - _LONGEST} more characters"
        return f"\n{fenced(_plain(text))}"


def _ended(exchange: Exchange) -> str:
    """The status and the ending, where they are worth a word."""
    words = [] if exchange.response is None else [str(exchange.response.status)]
    how = exchange.end.how if exchange.end is not None else "unfinished"
    words += [] if how == "complete" else [how]
    return "" if words == ["200"] else f"\n→ {', '.join(words) or 'no response'}\n"


def _words(message: Message) -> tuple[str, tuple[object, ...]]:
    """What a message says: the ids of calls are others where an answer is sent back."""
    return message.role, tuple(
        (type(part), part.name, part.arguments)
        if isinstance(part, ToolCall)
        else (type(part), part.text, part.error)
        if isinstance(part, ToolResult)
        else part
        for part in message.parts
    )


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _plain(text: str) -> str:
    """Text without what cannot be seen, and with secrets' tokens as a word."""
    return spelled(replace_tokens(text.encode(errors="surrogatepass"), _redacted).decode(errors="surrogatepass"))


def _redacted(_: bytes) -> bytes:
    return b"[redacted]"


def _code(text: str) -> str:
    return code(_plain(text))


def _safe(role: str) -> str:
    """A provider's word for who speaks; whatever else stands there is code."""
    return role if role.isascii() and role.isalnum() else _code(role)
