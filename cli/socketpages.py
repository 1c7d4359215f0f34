"""What passed on a WebSocket, for people: a line a message. Knows messages and screens; yields lines, prints none."""

from collections.abc import Iterator

from tapeproxy.cli.redactions import mark
from tapeproxy.cli.rendering import Screen, clip, duration, printable, size
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.messages import Message, read_frames

_FIRST, _LAST = 40, 10
"""Messages that are shown of a long talk."""


def message_lines(exchange: Exchange, screen: Screen) -> Iterator[str]:
    """What passed on a WebSocket: who said what, and when after the request; the middle of a long talk is left out."""
    messages = read_frames(exchange.frames)
    if not messages:
        return
    sent = sum(one.sender == "client" for one in messages)
    facts = f"{sent} of the client, {len(messages) - sent} of the server"
    yield screen.paint("messages", bold=True) + f" ({facts})"
    shown = messages[:_FIRST] if len(messages) > _FIRST + _LAST else messages
    yield from (message_line(exchange.request.t, one, screen) for one in shown)
    if shown is not messages:
        yield f"  … {len(messages) - _FIRST - _LAST} more …"
        yield from (message_line(exchange.request.t, one, screen) for one in messages[-_LAST:])
    yield ""


def message_line(start: int, message: Message, screen: Screen) -> str:
    """A message, and when after `start` (ns) it passed."""
    head = f"  {f'+{duration(max(0, message.t - start))}':>9}  {'>' if message.sender == 'client' else '<'} "
    text = _text(message.data)
    shown = f"{size(len(message.data))}  {message.data[:24].hex(' ')}" if text is None else printable(mark(text))
    if message.type != "text":
        code = "" if message.code is None else f" {message.code}"
        head += f"{message.type}{code} "
    if not message.whole:
        head += "(not whole) "
    return (head + clip(shown, max(20, (screen.width or 100) - len(head)))).rstrip()


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
