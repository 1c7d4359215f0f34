"""What `why` found, for a terminal: each text with its parts marked, and below it where each comes from."""

from collections.abc import Iterator

from tapeproxy.cli.rendering import Screen, block, printable
from tapeproxy.tapes.whydocuments import own_words, told_words
from tapeproxy.tapes.whyspans import Explained, Span, Why

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue")
_LONGEST_OWN = 240
_LONGEST = 600
_WORDS = 60


def why_page(why: Why, screen: Screen) -> Iterator[str]:
    """The lines."""
    if why.fresh:
        yield f"event {why.number}: what the call before, event {why.previous}, did not have"
    else:
        yield f"event {why.number}"
    if not why.texts:
        yield "  nothing: --path shows where the rest comes from"
    for text in why.texts:
        yield ""
        yield from _text(text, screen)
    if not why.whole:
        yield ""
        yield "this is much text: not every arrow is followed to its end; ask for a part with --path or --text"


def _text(text: Explained, screen: Screen) -> Iterator[str]:
    yield screen.paint(printable(text.place), bold=True)
    numbers: dict[int, int] = {}
    for at, span in enumerate(text.spans):
        if span.told is not None:
            numbers[at] = len(numbers) + 1
    marked = [_marked(span, numbers.get(at), screen) for at, span in enumerate(text.spans)]
    yield from ("  " + line for line in "".join(marked).split("\n"))
    for at, span in enumerate(text.spans):
        if span.told is not None:
            yield from _source(span, numbers[at], screen)
        elif len(text.spans) == 1 or span.text.strip():
            words = f'"{_few(span.text)}": ' if len(text.spans) > 1 else ""
            yield f"  -  {words}{own_words(span)}{_since(span)}"


def _marked(span: Span, number: int | None, screen: Screen) -> str:
    if number is None:
        return _clipped(span.text, _LONGEST_OWN)
    text = f"[{number}: {_clipped(span.text, _LONGEST)}]"
    return "\n".join(screen.paint(line, _colour(number)) for line in text.split("\n"))


def _source(span: Span, number: int, screen: Screen) -> Iterator[str]:
    assert span.told is not None
    head = screen.paint(f"{number:3}", _colour(number))
    yield f"{head}  {printable(told_words(span.told))} [{span.told_start}:{span.told_end}]{_since(span)}"
    if span.others:
        yield f"     or {'; '.join(printable(told_words(told)) for told in span.others)}"
    yield from _came(span, "     ")


def _came(span: Span, indent: str) -> Iterator[str]:
    """The chain back to where words came in."""
    for one in span.came:
        through = "" if one.passed is None else f", asked in event {one.passed[0]} at {printable(one.passed[1])}"
        whence = "the agent's own words" if one.told is None else printable(told_words(one.told))
        if one.told is not None:
            whence += f" [{one.told_start}:{one.told_end}]"
        yield f'{indent}\u2190 "{_few(one.text)}"{through}: {whence}'
        yield from _came(one, indent + "  ")


def _since(span: Span) -> str:
    return "" if span.since is None else f"; in the requests since event {span.since}"


def _colour(number: int) -> str:
    return _COLOURS[(number - 1) % len(_COLOURS)]


def _clipped(text: str, most: int) -> str:
    """A text that is safe to print, without its middle where it is long."""
    if len(text) > most:
        text = f"{text[: most // 2]} … ({len(text) - most} characters) … {text[len(text) - most // 2 :]}"
    return block(text)


def _few(text: str) -> str:
    flat = " ".join(text.split())
    return printable(flat if len(flat) <= _WORDS else f"{flat[: _WORDS - 1]}…")
