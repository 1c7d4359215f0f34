"""The options that say what a fork changes, and the edits that follow from them. Knows files, not tapes."""

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.tapes.edits import Edit

# Word of the edit -> how the option's value is called, and its help. Applied in this order.
_OPTIONS: Final = {
    "body": ("FILE|-|@TEXT", "Give the answer another body, whole."),
    "status": ("CODE", "Give the answer another status."),
    "header": ("'NAME: VALUE'", "Set a header of the answer."),
    "text": ("TEXT", "Have the model say something else, also in a stream."),
    "set": ("PATH=VALUE", "Set a value in the answer; PATH+=VALUE appends to a list or a text."),
    "delete": ("PATH", "Delete a value of the answer, an event of a stream or a header."),
    "request-set": ("PATH=VALUE", "Set a value in requests to models before they are sent."),
    "request-delete": ("PATH", "Delete a value there."),
    "system": ("TEXT", "Give requests to models another system prompt."),
    "model": ("NAME", "Ask another model."),
    "clock": ("+1h|MOMENT", "Put the clock on or back from the fork on, or to a moment (RFC 3339)."),
    "lane-seed": ("LANE=HEX|new", "Give a lane another seed of chance from the fork on."),
    "env": ("NAME=VALUE", "Give the agent another environment variable."),
    "unset": ("NAME", "Take an environment variable away."),
    "value": ("LANE#N=JSON", "Have a tool of hints.tool give something else."),
}


def edit_options(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command these options; its function gets what they say as `edits`, a list of Edit."""

    @functools.wraps(callback)
    def gathered(*args: Any, **values: Any) -> int:
        given = {word: values.pop(word.replace("-", "_")) for word in _OPTIONS}
        return callback(*args, edits=list(_edits(given)), **values)

    options = [
        click.option(f"--{word}", word.replace("-", "_"), multiple=True, metavar=metavar, help=said)
        for word, (metavar, said) in _OPTIONS.items()
    ]
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), gathered)


def _edits(given: dict[str, tuple[str, ...]]) -> "Iterator[Edit]":
    from tapeproxy.tapes.editwords import read_as

    for word, arguments in given.items():
        for argument in arguments:
            yield _body(argument) if word == "body" else read_as(word, argument)


def _body(argument: str) -> "Edit":
    from tapeproxy.tapes.editwords import body_edit, read_as, split_event

    event, source = split_event(argument, texts=True)
    if source.startswith("@"):
        return read_as("body", argument)
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        fix = "a text stands behind @, as in --body '@{\"found\": false}'"
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"the body cannot be read: {why}", where=source, fix=fix) from None
    return body_edit(data, event)
