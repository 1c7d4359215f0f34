"""How the context of two LLM calls differs, as messages: injected, dropped, changed, truncated. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from tapeproxy.tapes.conversation import Media, Message, Part, Text, Thought, ToolCall, ToolResult
from tapeproxy.tapes.wording import EXCERPT, excerpts, shared_prefix, word_diff

type ContextKind = Literal["injected", "dropped", "changed", "truncated"]

_MARKS = ("…", "...", "[truncated]")
"""What programs put where they cut a text."""
_LEAST_KEPT = 8
"""Fewer characters that two texts begin with are no sign of a cut."""


@dataclass(frozen=True, slots=True)
class ContextChange:
    """A message that differs. `taped` and `asked` are its numbers in the two contexts, from 0; None: it is not there.

    `text`: the message in a few words, or its changed words (`[-taped-]{+asked+}`).
    """

    kind: ContextKind
    role: str
    taped: int | None
    asked: int | None
    text: str


def context_changes(taped: Sequence[Message], asked: Sequence[Message]) -> Iterator[ContextChange]:
    """What happened to the context between two calls, in the order of the messages."""
    if len(taped) == len(asked):  # nothing came or went, so there is nothing to align
        for at, (was, now) in enumerate(zip(taped, asked, strict=True)):
            if was != now:
                yield from _block(taped, asked, range(at, at + 1), range(at, at + 1))
        return
    numbers: dict[Message, int] = {}  # a message's hash is that of all its text, each time
    ours, theirs = ([numbers.setdefault(message, len(numbers)) for message in side] for side in (taped, asked))
    for what, a0, a1, b0, b1 in SequenceMatcher(None, ours, theirs).get_opcodes():
        if what != "equal":
            yield from _block(taped, asked, range(a0, a1), range(b0, b1))


def message_text(message: Message) -> str:
    """A message as text, whatever its parts are."""
    return "\n".join(map(_part_text, message.parts))


def _block(taped: Sequence[Message], asked: Sequence[Message], a: range, b: range) -> Iterator[ContextChange]:
    """Where both have messages, those of one role that come in the same order stand for each other."""
    roles = [taped[at].role for at in a], [asked[at].role for at in b]
    if len(a) == len(b):
        pairs: list[tuple[int | None, int | None]] = [*zip(a, b, strict=True)]
    else:
        pairs = []
        for what, a0, a1, b0, b1 in SequenceMatcher(None, *roles).get_opcodes():
            if what == "equal":
                pairs += zip(a[a0:a1], b[b0:b1], strict=True)
            else:
                pairs += [(at, None) for at in a[a0:a1]] + [(None, at) for at in b[b0:b1]]
    for was, now in pairs:
        before = None if was is None else taped[was]
        after = None if now is None else asked[now]
        if before is not None and after is not None and before.role != after.role:
            yield ContextChange("dropped", before.role, was, None, _few_words(before))
            yield ContextChange("injected", after.role, None, now, _few_words(after))
        elif before is None and after is not None:
            yield ContextChange("injected", after.role, None, now, _few_words(after))
        elif before is not None and after is None:
            yield ContextChange("dropped", before.role, was, None, _few_words(before))
        elif before is not None and after is not None:
            yield _changed(before, after, was, now)


def _changed(before: Message, after: Message, was: int | None, now: int | None) -> ContextChange:
    a, b = message_text(before), message_text(after)
    if _cut_short(a, b):
        return ContextChange("truncated", after.role, was, now, f"{len(a)} to {len(b)} characters: {_tail(b)}")
    return ContextChange("changed", after.role, was, now, word_diff(a, b) or "what it holds beside its text")


def _cut_short(taped: str, asked: str) -> bool:
    """Whether `asked` is `taped` without its end, its beginning or its middle."""
    if len(asked) >= len(taped):
        return False
    kept = shared_prefix(taped, asked)
    rest = asked[kept:]
    if not rest.strip():
        return kept >= _LEAST_KEPT or not asked
    if not any(mark in rest for mark in _MARKS):
        return len(rest) >= _LEAST_KEPT and not kept and taped.endswith(rest)
    mark = next(mark for mark in _MARKS if mark in rest)
    return kept + len(rest) >= _LEAST_KEPT and taped.endswith(rest.partition(mark)[2].lstrip())


def _few_words(message: Message) -> str:
    text = " ".join(message_text(message).split())
    return excerpts(text, None)[0] or "(empty)"


def _tail(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else "…" + flat[-EXCERPT:]


def _part_text(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case Thought():
            return f"(thinking) {part.text}"
        case ToolCall():
            return f"{part.name}({part.arguments})"
        case ToolResult():
            return f"result{' (error)' if part.error else ''}: {part.text}"
        case Media():
            return f"[{part.kind} {part.detail}]"
