"""What `why` asks and answers, as values: a text in parts, each with the text that it comes from. Pure."""

from dataclasses import dataclass

from tapeproxy.tapes.whysources import Told


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, `start` to `end`, and where it comes from.

    `told`: the text it comes from, of which it is `[told_start:told_end]`; None: the agent's own words. `others`: what
    else has the same words, and may be meant as well. `passed`: of the agent's own words that an answer repeats, where
    in that answer's request they stand. `since`: the first request in a row that has it. `came`: where the source had
    it from, as parts of the source's text.
    """

    start: int
    end: int
    text: str
    told: Told | None = None
    told_start: int = 0
    told_end: int = 0
    others: tuple[Told, ...] = ()
    passed: tuple[int, str] | None = None
    since: int | None = None
    came: tuple["Span", ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """A text of a request, in parts."""

    place: str
    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to a question. `whole`: all was looked for; `fresh`: only what the previous call did not have."""

    number: int
    texts: tuple[Explained, ...]
    previous: int | None
    fresh: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked about: a place in the request, in it a `text`, or characters `start` to `end`."""

    path: str | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None
